//! The settings: a TOML file, and flags that beat it.
//!
//! One struct a section. Every field has its unit in its name, a default and an allowed range, all
//! written in `config/example.toml` too; a key that does not exist is an error, never ignored.

mod auth;
mod check;
mod device;
mod error;
mod grammar;
mod limits;
mod locate;
mod model;
mod overrides;
mod process;
mod sampling;
mod server;

#[cfg(test)]
mod tests;

pub use auth::{ApiKey, AuthConfig, ClientKey, KeyDigest, hash_key};
pub use device::{
    DeviceConfig, DeviceKind, FaultKind, FlashAttentionMode, RepeatableMode, SimulatedConfig,
};
pub use error::{ConfigError, Problem};
pub use grammar::GrammarConfig;
pub use limits::LimitsConfig;
pub use model::ModelConfig;
pub use overrides::Overrides;
pub use process::{LogConfig, LogFormat, ShutdownConfig};
pub use sampling::SamplingDefaults;
pub use server::ServerConfig;

use std::path::Path;

use serde::{Deserialize, Serialize};

use check::Problems;
use locate::Source;

/// All settings of the daemon.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// `[server]`: the HTTP listener.
    pub server: ServerConfig,
    /// `[model]`: what is served, and under which name.
    pub model: ModelConfig,
    /// `[device]`: what the model runs on.
    pub device: DeviceConfig,
    /// `[limits]`: how much of everything there may be.
    pub limits: LimitsConfig,
    /// `[grammar]`: what constrained answers may cost.
    pub grammar: GrammarConfig,
    /// `[auth]`: who may ask.
    pub auth: AuthConfig,
    /// `[sampling]`: what a request that does not say gets.
    pub sampling: SamplingDefaults,
    /// `[log]`: what is logged, and how.
    pub log: LogConfig,
    /// `[shutdown]`: how long stopping may take.
    pub shutdown: ShutdownConfig,
}

impl Config {
    /// The settings of `file` (none: the defaults) with `overrides` on top, checked, and the files
    /// that they name looked for. Relative paths in the file start at the file's own folder.
    ///
    /// # Errors
    /// A [`ConfigError`] that names the key, and the line and column or the flag it came from.
    pub fn load(file: Option<&Path>, overrides: &Overrides) -> Result<Self, ConfigError> {
        let source = file.map(Source::read).transpose()?;
        let mut config = match &source {
            Some(source) => Self::parse(source)?,
            None => Self::default(),
        };
        overrides.apply(&mut config);
        let mut problems = Problems::default();
        config.check_values(&mut problems);
        config.check_files(&mut problems);
        problems.into_result(|key| match overrides.flag_of(key) {
            Some(flag) => Some(flag.to_owned()),
            None => source.as_ref().map(|source| source.place_of(key)),
        })?;
        Ok(config)
    }

    /// Checks every value against its range, and those that depend on each other together.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`] with every problem found.
    pub fn check(&self) -> Result<(), ConfigError> {
        let mut problems = Problems::default();
        self.check_values(&mut problems);
        problems.into_result(|_| None)
    }

    /// What is allowed but probably not meant; for the log, one sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.auth.keys.is_empty() && !self.server.listen.ip().is_loopback() {
            warnings.push(format!(
                "server.listen is {} and auth.keys is empty: whoever reaches this address can use \
                 the model; add a key (pleach hash-key) or listen on 127.0.0.1",
                self.server.listen
            ));
        }
        if self.device.kind == DeviceKind::Simulated && self.model.path.is_some() {
            warnings.push(
                "device.kind is \"simulated\": model.path is not read for answers; \
                 set device.kind to \"ggml\" to serve the model"
                    .to_owned(),
            );
        }
        if self.device.simulated.fault.is_some() && self.device.kind == DeviceKind::Simulated {
            warnings.push("device.simulated.fault is set: steps will fail on purpose".to_owned());
        }
        warnings
    }

    fn parse(source: &Source) -> Result<Self, ConfigError> {
        let mut config: Self =
            toml::from_str(source.text()).map_err(|error| source.syntax_error(&error))?;
        config.model.resolve_paths(source.folder());
        config.auth.resolve_paths(source.folder());
        Ok(config)
    }

    fn check_values(&self, problems: &mut Problems) {
        self.server.check(problems);
        self.model.check(problems);
        self.device.check(problems);
        self.limits.check(problems);
        self.grammar.check(problems);
        self.auth.check(problems);
        self.sampling.check(problems);
        self.log.check(problems);
        self.shutdown.check(problems);
        self.check_together(problems);
    }

    /// The rules that span sections.
    fn check_together(&self, problems: &mut Problems) {
        let sessions = self.limits.max_sessions;
        if self.device.kind == DeviceKind::Ggml {
            if self.model.path.is_none() {
                problems.add("model.path", "is not set: give --model FILE or set it in [model]");
            }
            if sessions > device::GGML_MAX_SEQUENCES {
                problems.add(
                    "limits.max_sessions",
                    format!(
                        "must be 1 to {} for the ggml device, not {sessions}",
                        device::GGML_MAX_SEQUENCES
                    ),
                );
            }
        }
        if self.device.max_batch_tokens < sessions {
            problems.add(
                "device.max_batch_tokens",
                format!(
                    "must be at least limits.max_sessions ({sessions}), so that every session \
                     can have a token in a step, not {}",
                    self.device.max_batch_tokens
                ),
            );
        }
        if self.limits.queue_deadline_seconds > self.limits.request_deadline_seconds {
            problems.add(
                "limits.queue_deadline_seconds",
                format!(
                    "must be at most limits.request_deadline_seconds ({}), not {}",
                    self.limits.request_deadline_seconds, self.limits.queue_deadline_seconds
                ),
            );
        }
    }

    fn check_files(&self, problems: &mut Problems) {
        self.model.check_files(problems);
        self.auth.check_files(problems);
    }
}
