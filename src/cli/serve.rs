//! `pleach serve`: settings, then the daemon.

use super::{CliError, ServeArgs};
use crate::config::Config;
use crate::daemon::{self, ServeError};

pub(super) fn run(args: &ServeArgs) -> Result<(), CliError> {
    let config = Config::load(args.config.as_deref(), &args.overrides())?;
    start(config)
}

fn start(config: Config) -> Result<(), CliError> {
    daemon::serve(config).map_err(|error| match error {
        ServeError::Config(error) => CliError::Config(error),
        ServeError::GivenUp(_) => CliError::Fault(error.to_string()),
        ServeError::Telemetry(_)
        | ServeError::Listen(_)
        | ServeError::Model(_)
        | ServeError::Start(_) => CliError::Failure(error.to_string()),
    })
}
