//! Logs to standard error, as text or JSON, and the panic hook that logs there too.

use std::cell::Cell;
use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use super::metrics::PANICS_TOTAL;

/// How a log line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Sends logs to standard error. `filter` is a level or a list like `info,pleach=debug`; the
/// environment's `RUST_LOG` beats it.
///
/// # Errors
/// A filter that does not parse, or a second call in one process.
pub fn init(format: LogFormat, filter: &str) -> Result<(), String> {
    let filter = match std::env::var("RUST_LOG") {
        Ok(from_env) if !from_env.is_empty() => from_env,
        _ => filter.to_owned(),
    };
    let filter =
        EnvFilter::try_new(&filter).map_err(|error| format!("log level {filter:?}: {error}"))?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let outcome = match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    outcome.map_err(|error| error.to_string())
}

/// Logs panics as errors and counts them by thread.
pub fn install_panic_hook() {
    std::panic::set_hook(Box::new(|info| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("unnamed");
        let place = PLACE.try_with(Cell::get).unwrap_or(OTHER);
        let place = if name == "device" { "device" } else { place };
        let message = info.payload_as_str().unwrap_or("no message");
        let location = info.location().map(ToString::to_string).unwrap_or_default();
        metrics::counter!(PANICS_TOTAL, "where" => place).increment(1);
        tracing::error!(thread = name, location, message, "panic");
    }));
}

thread_local! {
    static PLACE: Cell<&'static str> = const { Cell::new(OTHER) };
}

const OTHER: &str = "other";

/// Says what this thread is for, as the label of its panics: one of a closed set of words.
pub fn mark_thread(place: &'static str) {
    PLACE.set(place);
}
