//! What ends a command before its time.

use crate::config::ConfigError;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The settings cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The command was called in a way that makes no sense.
    #[error("{0}")]
    Usage(String),
    /// The command could not do its work: a file, a port, a model.
    #[error("{0}")]
    Failure(String),
    /// The command's answer, already on standard output, is no.
    #[error("")]
    No,
    /// The daemon cannot go on: its device fails again and again, or a part of it died.
    #[error("{0}")]
    Fault(String),
}

impl CliError {
    /// 1: failure; 2: usage or settings, trying again will not help; 70: fault of a running
    /// daemon, systemd should start it again. (0 is success.)
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Failure(_) | Self::No => 1,
            Self::Config(_) | Self::Usage(_) => 2,
            Self::Fault(_) => 70,
        }
    }
}
