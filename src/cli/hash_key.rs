//! `pleach hash-key`: from an API key to what the config file holds.

use std::io::{self, IsTerminal, Read};

use super::{CliError, note, print};
use crate::config::hash_key;

/// A key shorter than this can be guessed.
const SAFE_LENGTH: usize = 16;
/// More than any key has: standard input is something else.
const MAX_BYTES: u64 = 4096;

pub(super) fn run() -> Result<(), CliError> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        note("Type the key, then Enter and Ctrl-D:");
    }
    let mut text = String::new();
    stdin
        .lock()
        .take(MAX_BYTES)
        .read_to_string(&mut text)
        .map_err(|error| CliError::Failure(format!("cannot read standard input: {error}")))?;
    let key = key_in(&text)?;
    if key.len() < SAFE_LENGTH {
        note("warning: a key this short can be guessed; `openssl rand -hex 32` makes a good one");
    }
    print(&format!("{}\n", hash_key(key.as_bytes()).to_hex()))
}

/// The one word on the one line of `text`.
fn key_in(text: &str) -> Result<&str, CliError> {
    let key = text.trim();
    if key.is_empty() {
        return Err(CliError::Usage(
            "no key on standard input; try: openssl rand -hex 32 | tee alice.key | pleach hash-key"
                .to_owned(),
        ));
    }
    if key.contains(|character: char| character.is_whitespace() || character.is_control()) {
        return Err(CliError::Usage("a key is one word on one line".to_owned()));
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::key_in;

    #[test]
    fn a_key_is_one_word() {
        assert_eq!(key_in("sk-1\n").unwrap(), "sk-1");
        for bad in ["", "\n", "a b", "a\nb"] {
            assert!(key_in(bad).is_err(), "{bad:?}");
        }
    }
}
