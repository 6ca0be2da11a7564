//! `pleach bench`: drives a server and says how it does.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use serde_json::Value;

use super::args::BenchArgs;
use super::{CliError, note, print};
use crate::bench::{BenchError, Client, Load, Progress, Report, Shape, Target, run as run_load};

/// Where clients of OpenAI look for their key.
const KEY_VARIABLE: &str = "OPENAI_API_KEY";

/// Where standard error is a file, progress is a line this often.
const LINE_EVERY: Duration = Duration::from_secs(10);

pub(super) fn run(args: &BenchArgs) -> Result<(), CliError> {
    let extra = fields(args.extra.as_deref())?;
    let key = std::env::var(KEY_VARIABLE).ok().filter(|key| !key.is_empty());
    let target = Target::new(&args.url, key, Duration::from_secs(args.timeout))
        .map_err(|error| CliError::Usage(error.to_string()))?;
    let report = actix_rt::System::new().block_on(drive(args, target, extra)).map_err(explained)?;
    if args.json {
        let line = serde_json::to_string(&report);
        let line = line.map_err(|error| CliError::Failure(error.to_string()))?;
        print(&format!("{line}\n"))?;
    } else {
        print(&report.to_string())?;
    }
    match report.failed() {
        0 => Ok(()),
        failed => Err(CliError::Failure(format!("{failed} of {} requests failed", args.requests))),
    }
}

async fn drive(args: &BenchArgs, target: Target, extra: Value) -> Result<Report, BenchError> {
    let client = Client::new(target);
    let model = match &args.model {
        Some(model) => model.clone(),
        None => client.first_model().await?,
    };
    let shape = Shape {
        workload: args.workload,
        model,
        max_tokens: args.max_tokens,
        prefix_words: args.prefix_words as usize,
        extra,
        first: 0,
    };
    let load = Load {
        clients: args.clients as usize,
        requests: args.requests as usize,
        warmup: args.warmup as usize,
        shape,
    };
    // What every request would fail for is told once, and at once.
    client.ask(&load.shape.request(load.requests + load.warmup)).await?;
    let display = Display::new();
    let report = run_load(&client, &load, |progress| display.show(progress)).await;
    display.clear();
    Ok(report)
}

fn fields(extra: Option<&str>) -> Result<Value, CliError> {
    let wrong = |why: String| CliError::Usage(format!("--extra: {why}"));
    let Some(text) = extra else { return Ok(Value::Null) };
    let value: Value = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    if value.is_object() { Ok(value) } else { Err(wrong("it is not a JSON object".to_owned())) }
}

fn explained(error: BenchError) -> CliError {
    CliError::Failure(match &error {
        BenchError::Status { status: 401, .. } => format!("{error} (set {KEY_VARIABLE})"),
        _ => error.to_string(),
    })
}

/// Progress on standard error: one line that changes on a terminal, else one now and then.
struct Display {
    is_terminal: bool,
    told: std::cell::Cell<Duration>,
}

impl Display {
    fn new() -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self { is_terminal, told: std::cell::Cell::new(Duration::ZERO) }
    }

    fn show(&self, progress: Progress) {
        let Progress { finished, failed, requests, elapsed } = progress;
        let seconds = elapsed.as_secs();
        let line = format!("{finished} of {requests} requests, {failed} failed, {seconds} s");
        if self.is_terminal {
            let mut out = std::io::stderr().lock();
            // Where standard error is gone there is nobody to tell.
            let _ = write!(out, "\r\x1b[K{line}").and_then(|()| out.flush());
        } else if elapsed >= self.told.get() + LINE_EVERY {
            self.told.set(elapsed);
            note(&line);
        }
    }

    fn clear(&self) {
        if self.is_terminal {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extra_fields_are_an_object() {
        assert_eq!(fields(None).unwrap(), Value::Null);
        assert_eq!(fields(Some("{\"seed\": 1}")).unwrap()["seed"], 1);
        for wrong in ["[1]", "{", "3"] {
            assert_eq!(fields(Some(wrong)).unwrap_err().exit_code(), 2, "{wrong}");
        }
    }

    #[test]
    fn a_missing_key_is_explained() {
        let error = BenchError::Status { status: 401, message: "no key".to_owned() };
        assert!(explained(error).to_string().contains(KEY_VARIABLE));
    }
}
