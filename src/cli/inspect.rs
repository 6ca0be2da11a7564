//! `pleach inspect`: what a GGUF model is.

use super::{CliError, InspectArgs};

#[cfg(feature = "ggml")]
mod facts;
#[cfg(feature = "ggml")]
mod file_type;
#[cfg(feature = "ggml")]
mod kv;

#[cfg(feature = "ggml")]
pub(super) fn run(args: &InspectArgs) -> Result<(), CliError> {
    use crate::device::ggml::gguf::GgufMetadata;

    let failure = |error: &dyn std::fmt::Display| CliError::Failure(error.to_string());
    let metadata = GgufMetadata::read(&args.model).map_err(|error| failure(&error))?;
    let facts = facts::ModelFacts::of(&metadata)
        .map_err(|error| CliError::Failure(format!("{}: {error}", args.model.display())))?;
    if args.json {
        let json = serde_json::to_string_pretty(&facts).map_err(|error| failure(&error))?;
        return super::print(&format!("{json}\n"));
    }
    super::print(&facts.to_string())
}

#[cfg(not(feature = "ggml"))]
pub(super) fn run(args: &InspectArgs) -> Result<(), CliError> {
    Err(CliError::Failure(format!(
        "{} cannot be read: this build has no GGUF reader; build with the feature ggml",
        args.model.display()
    )))
}
