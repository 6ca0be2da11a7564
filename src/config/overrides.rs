//! Flags of the command line that beat the file.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::{Config, DeviceKind, LogFormat};

/// What the command line sets; `None`: the file's value, else the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--model`: [`super::ModelConfig::path`].
    pub model: Option<PathBuf>,
    /// `--listen`: [`super::ServerConfig::listen`].
    pub listen: Option<SocketAddr>,
    /// `--threads`: [`super::DeviceConfig::threads`].
    pub threads: Option<u32>,
    /// `--context`: [`super::ModelConfig::context_tokens`].
    pub context_tokens: Option<u32>,
    /// `--max-sessions`: [`super::LimitsConfig::max_sessions`].
    pub max_sessions: Option<u32>,
    /// `--device`: [`super::DeviceConfig::kind`].
    pub device: Option<DeviceKind>,
    /// `--log-format`: [`super::LogConfig::format`].
    pub log_format: Option<LogFormat>,
    /// `--log-level`: [`super::LogConfig::level`].
    pub log_level: Option<String>,
}

impl Overrides {
    pub(super) fn apply(&self, config: &mut Config) {
        if let Some(path) = &self.model {
            config.model.path = Some(path.clone());
        }
        if let Some(level) = &self.log_level {
            config.log.level.clone_from(level);
        }
        set(&mut config.server.listen, self.listen);
        set(&mut config.device.threads, self.threads);
        set(&mut config.model.context_tokens, self.context_tokens);
        set(&mut config.limits.max_sessions, self.max_sessions);
        set(&mut config.device.kind, self.device);
        set(&mut config.log.format, self.log_format);
    }

    /// The flag that set `key`, where one did.
    pub(super) fn flag_of(&self, key: &str) -> Option<&'static str> {
        let (flag, given) = match key {
            "model.path" => ("--model", self.model.is_some()),
            "server.listen" => ("--listen", self.listen.is_some()),
            "device.threads" => ("--threads", self.threads.is_some()),
            "model.context_tokens" => ("--context", self.context_tokens.is_some()),
            "limits.max_sessions" => ("--max-sessions", self.max_sessions.is_some()),
            "device.kind" => ("--device", self.device.is_some()),
            "log.format" => ("--log-format", self.log_format.is_some()),
            "log.level" => ("--log-level", self.log_level.is_some()),
            _ => return None,
        };
        given.then_some(flag)
    }
}

fn set<T: Copy>(value: &mut T, flag: Option<T>) {
    if let Some(flag) = flag {
        *value = flag;
    }
}
