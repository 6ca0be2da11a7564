//! The commands of `pleach`: one file each. A command prints to standard output, an error is a
//! line on standard error that says what to do, and the exit code tells the kind of error
//! ([`CliError::exit_code`]).

mod args;
mod bench;
mod chat;
mod check;
mod error;
mod grammar;
mod hash_key;
mod inspect;
mod serve;

pub use args::{Args, BenchArgs, CheckArgs, Command, InspectArgs, ServeArgs};
pub use error::CliError;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    let result = match Args::parse().command {
        Command::Serve(args) => serve::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Grammar(args) => grammar::run(&args),
        Command::Chat(args) => chat::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::HashKey => hash_key::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if !matches!(error, CliError::No) {
                note(&format!("pleach: {error}"));
            }
            ExitCode::from(error.exit_code())
        }
    }
}

/// Writes `text` to standard output. A reader that has gone is no error.
fn print(text: &str) -> Result<(), CliError> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CliError::Failure(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes a line to standard error; where that is closed there is nobody to tell.
fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
