//! What systemd is told, where it started the daemon.

use std::time::Duration;

use sd_notify::NotifyState;

/// How often the watchdog is thought of where systemd asks for nothing.
const IDLE_PERIOD: Duration = Duration::from_secs(5);

/// The way to systemd; silent where there is none.
pub(super) struct Systemd {
    is_there: bool,
    watchdog: Option<Duration>,
}

impl Systemd {
    /// Reads what systemd left in the environment.
    pub(super) fn from_environment() -> Self {
        Self {
            is_there: std::env::var_os("NOTIFY_SOCKET").is_some(),
            watchdog: sd_notify::watchdog_enabled(),
        }
    }

    /// Whether systemd listens.
    pub(super) fn is_there(&self) -> bool {
        self.is_there
    }

    /// How often [`Systemd::alive`] is due: twice in each watchdog period.
    pub(super) fn watchdog_period(&self) -> Duration {
        self.watchdog.map_or(IDLE_PERIOD, |period| (period / 2).max(Duration::from_millis(100)))
    }

    /// The model answers.
    pub(super) fn ready(&self) {
        self.tell(&[NotifyState::Ready]);
    }

    /// The daemon is well.
    pub(super) fn alive(&self) {
        if self.watchdog.is_some() {
            self.tell(&[NotifyState::Watchdog]);
        }
    }

    /// The daemon stops.
    pub(super) fn stopping(&self) {
        self.tell(&[NotifyState::Stopping]);
    }

    fn tell(&self, state: &[NotifyState]) {
        if let Err(error) = sd_notify::notify(state) {
            tracing::warn!(%error, "systemd could not be told");
        }
    }
}
