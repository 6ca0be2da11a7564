//! `[log]` and `[shutdown]`: the process itself.

use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;

use super::check::Problems;

/// How a log line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// What is logged (to standard error), and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogConfig {
    /// `text` (default) or `json`.
    pub format: LogFormat,
    /// `error`, `warn`, `info` (default), `debug`, `trace`, or a filter by module such as
    /// `info,pleach::schedule=debug`.
    pub level: String,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { format: LogFormat::default(), level: "info".to_owned() }
    }
}

impl LogConfig {
    pub(super) fn check(&self, problems: &mut Problems) {
        problems.not_blank("log.level", &self.level);
        if let Err(error) = EnvFilter::try_new(&self.level) {
            problems.add("log.level", format!("is no log filter: {error}"));
        }
    }
}

/// How long stopping may take, from SIGTERM.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShutdownConfig {
    /// How long `/readyz` says 503 before the listener closes, so that a load balancer can look
    /// elsewhere. Default 1, 0 to 300.
    pub lame_duck_seconds: u64,
    /// How long running streams may then go on; those that are left end with an error. Default
    /// 30, 0 to 3600.
    pub drain_seconds: u64,
}

impl Default for ShutdownConfig {
    fn default() -> Self {
        Self { lame_duck_seconds: 1, drain_seconds: 30 }
    }
}

impl ShutdownConfig {
    pub(super) fn check(&self, problems: &mut Problems) {
        problems.range("shutdown.lame_duck_seconds", self.lame_duck_seconds, 0..=300);
        problems.range("shutdown.drain_seconds", self.drain_seconds, 0..=3600);
    }
}
