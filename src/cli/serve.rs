//! `pleach serve`: settings, then the daemon.

use super::{CliError, ServeArgs};
use crate::config::Config;

pub(super) fn run(args: &ServeArgs) -> Result<(), CliError> {
    let config = Config::load(args.config.as_deref(), &args.overrides())?;
    start(config)
}

/// The call site of the daemon.
fn start(config: Config) -> Result<(), CliError> {
    let _ = config;
    Err(CliError::Failure("this build has no daemon".to_owned()))
}
