//! The daemon: start and stop order, signals, systemd.
//!
//! Start: listen (`/livez` answers, everything else is 503), load the model on a thread of its own,
//! start the actors, tell systemd. Stop, on the first SIGTERM or SIGINT: `/readyz` says 503 for the
//! lame-duck time, then running answers may finish until the drain deadline, then sessions, HTTP,
//! scheduler and device end in this order. A second signal ends the process at once.

mod chat;
mod engine;
mod load;
mod model;
mod settings;
mod signals;
mod systemd;

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::dev::ServerHandle;
use actix_web::web::Data;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::sync::oneshot;

use crate::actors::{Runtime, StartError, Threads};
use crate::config::Config;
use crate::device::DeviceError;
use crate::http::{self, HttpState};
use crate::session::Outcome;
use crate::telemetry;
use engine::{EngineSlot, Lifecycle};
use load::{Cancel, Loaded};
use signals::Signals;
use systemd::Systemd;

/// How long the device may take to finish its step once nobody needs it any more.
const DEVICE_PATIENCE: Duration = Duration::from_secs(2);

/// How long sessions that were told to end may take to do so.
const GOODBYE: Duration = Duration::from_millis(500);

/// Why the daemon ended otherwise than by a signal.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Logs or metrics could not be set up.
    #[error("{0}")]
    Telemetry(String),
    /// The address cannot be listened on.
    #[error("{0}")]
    Listen(#[from] std::io::Error),
    /// The configuration names what cannot be used.
    #[error(transparent)]
    Config(#[from] crate::config::ConfigError),
    /// The model cannot be served.
    #[error("cannot load the model: {0}")]
    Model(String),
    /// The threads could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The device or the scheduler cannot be trusted any more.
    #[error("{0}")]
    GivenUp(String),
}

impl From<DeviceError> for ServeError {
    fn from(error: DeviceError) -> Self {
        Self::Model(error.to_string())
    }
}

/// Serves until a signal comes.
///
/// # Errors
/// See [`ServeError`]; an end by a signal is none.
pub fn serve(config: Config) -> Result<(), ServeError> {
    telemetry::logs::init(settings::log_format(&config), &config.log.level)
        .map_err(ServeError::Telemetry)?;
    telemetry::logs::install_panic_hook();
    let prometheus = telemetry::metrics::install()
        .map_err(|error| ServeError::Telemetry(format!("metrics: {error}")))?;
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    actix::System::new().block_on(run(config, prometheus))
}

async fn run(config: Config, prometheus: PrometheusHandle) -> Result<(), ServeError> {
    let mut signals = Signals::listen()?;
    let systemd = Systemd::from_environment();
    let engine = Arc::new(EngineSlot::default());
    let state = http_state(&config, Arc::clone(&engine), prometheus.clone())?;
    let http = http::serve(state.clone())?;
    let probes = http::serve_probes(state.clone())?;
    for address in &http.addresses {
        tracing::info!(%address, "listening; loading the model");
    }
    let server = actix::spawn(http.server);
    let probes = probes.map(serve_probes);

    let served = async {
        let Some((runtime, threads)) = start(&config, &engine, &state, &mut signals).await? else {
            return Ok(());
        };
        systemd.ready();
        tracing::info!(model = config.model.served_name(), "ready");
        let daemon = Daemon { config: &config, engine: &engine, runtime, systemd: &systemd };
        daemon.until_the_end(threads, &mut signals, &prometheus).await
    };
    let outcome = served.await;
    http.handle.stop(true).await;
    // The server's future ends with the server; how is of no consequence any more.
    let _ = server.await;
    if let Some(probes) = probes {
        probes.stop(false).await;
    }
    outcome
}

fn serve_probes(probes: http::Bound) -> ServerHandle {
    for address in &probes.addresses {
        tracing::info!(%address, "listening for probes");
    }
    actix::spawn(probes.server);
    probes.handle
}

fn http_state(
    config: &Config,
    engine: Arc<EngineSlot>,
    prometheus: PrometheusHandle,
) -> Result<Data<HttpState>, ServeError> {
    let render = Arc::new(move || {
        telemetry::metrics::publish_live();
        prometheus.render()
    });
    Ok(Data::new(HttpState::new(settings::http(config)?, engine, render)))
}

/// Loads the model and starts the actors; `None`: a signal came first.
async fn start(
    config: &Config,
    engine: &EngineSlot,
    state: &Data<HttpState>,
    signals: &mut Signals,
) -> Result<Option<(Runtime, Threads)>, ServeError> {
    let cancel = Cancel::default();
    let loading = load_on_thread(config.clone(), cancel.clone())?;
    let loaded = tokio::select! {
        loaded = loading => {
            loaded.unwrap_or_else(|_| Err(ServeError::Model("loading panicked".to_owned())))?
        }
        () = signals.stop() => {
            cancel.cancel();
            tracing::info!("stopped while loading");
            return Ok(None);
        }
    };
    let settings = settings::runtime(config);
    let vocabulary = Arc::clone(&loaded.model.vocabulary);
    let (runtime, threads) = Runtime::start(loaded.device, vocabulary, settings)?;
    engine.start(runtime.clone());
    if state.set_model(loaded.model).is_err() {
        return Err(ServeError::Model("it was set twice".to_owned()));
    }
    Ok(Some((runtime, threads)))
}

fn load_on_thread(
    config: Config,
    cancel: Cancel,
) -> Result<oneshot::Receiver<Result<Loaded, ServeError>>, ServeError> {
    let (send, receive) = oneshot::channel();
    std::thread::Builder::new().name("load".to_owned()).spawn(move || {
        // Main does not listen any more when a signal came meanwhile.
        let _ = send.send(load::load(&config, &cancel));
    })?;
    Ok(receive)
}

/// A daemon that serves.
struct Daemon<'a> {
    config: &'a Config,
    engine: &'a EngineSlot,
    runtime: Runtime,
    systemd: &'a Systemd,
}

impl Daemon<'_> {
    async fn until_the_end(
        &self,
        mut threads: Threads,
        signals: &mut Signals,
        prometheus: &PrometheusHandle,
    ) -> Result<(), ServeError> {
        let mut upkeep = tokio::time::interval(telemetry::metrics::UPKEEP_PERIOD);
        let mut watchdog = tokio::time::interval(self.systemd.watchdog_period());
        let given_up = loop {
            tokio::select! {
                () = signals.stop() => break None,
                reason = &mut threads.given_up => {
                    break Some(reason.unwrap_or_else(|_| "the scheduler died".to_owned()));
                }
                _ = upkeep.tick() => telemetry::metrics::upkeep(prometheus),
                _ = watchdog.tick() => self.pet_watchdog(),
            }
        };
        self.systemd.stopping();
        if let Some(reason) = given_up {
            tracing::error!(reason, "giving up");
            self.engine.set(Lifecycle::Unhealthy(reason.clone()));
            self.runtime.finish_all(&Outcome::TornDown);
            self.wait_for_sessions(GOODBYE).await;
            threads.stop(DEVICE_PATIENCE).await;
            return Err(ServeError::GivenUp(reason));
        }
        self.drain(signals).await;
        if !threads.stop(DEVICE_PATIENCE).await {
            tracing::warn!("the device did not finish its step; ending without it");
        }
        Ok(())
    }

    /// Systemd kills a daemon whose device hangs.
    fn pet_watchdog(&self) {
        if self.runtime.status().health == crate::actors::EngineHealth::Good {
            self.systemd.alive();
        }
    }

    async fn drain(&self, signals: &mut Signals) {
        let lame_duck = Duration::from_secs(self.config.shutdown.lame_duck_seconds);
        let drain = Duration::from_secs(self.config.shutdown.drain_seconds);
        self.engine.set(Lifecycle::Draining);
        tracing::info!(sessions = self.runtime.live_sessions(), "draining");
        let end_well = async {
            if self.runtime.live_sessions() > 0 || self.systemd.is_there() {
                tokio::time::sleep(lame_duck).await;
            }
            self.wait_for_sessions(drain).await;
        };
        tokio::select! {
            () = end_well => {}
            () = signals.stop() => tracing::warn!("second signal: not waiting any more"),
        }
        if self.runtime.live_sessions() > 0 {
            self.runtime.finish_all(&Outcome::Drained);
            self.wait_for_sessions(GOODBYE).await;
        }
    }

    async fn wait_for_sessions(&self, patience: Duration) {
        let end = Instant::now() + patience;
        while self.runtime.live_sessions() > 0 && Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
