//! Strings between two of a delimiter, without escapes.

use std::sync::Arc;

use super::json_string::Taken;

/// What stands before and after each string. It may be empty: then there are no such strings.
#[derive(Clone, Debug)]
pub(super) struct Delimiter(Arc<str>);

impl Delimiter {
    pub(super) fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// Whether a delimiter may start with this character.
    pub(super) fn starts_with(&self, character: char) -> bool {
        self.0.starts_with(character)
    }

    /// Reads the delimiter before a string; `seen` is what has been read of it.
    /// `None` if the next character is another.
    pub(super) fn open(&self, seen: &mut usize, character: char) -> Option<Opening> {
        let missing = self.0.get(*seen..)?.strip_prefix(character)?;
        *seen += character.len_utf8();
        Some(if missing.is_empty() { Opening::Whole } else { Opening::Partial })
    }
}

/// How much of an opening delimiter has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    Partial,
    Whole,
}

/// A string whose opening delimiter has been read.
#[derive(Clone, Debug)]
pub(super) struct Delimited {
    delimiter: Delimiter,
    /// The end of the text so far, which may be the start of the delimiter.
    held: String,
}

impl Delimited {
    pub(super) fn new(delimiter: Delimiter) -> Self {
        Self { delimiter, held: String::new() }
    }

    /// Appends to `decoded` what is certain of `text`.
    pub(super) fn push(&mut self, text: &str, decoded: &mut String) -> Taken {
        let delimiter: &str = &self.delimiter.0;
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            if self.held.is_empty() && !delimiter.starts_with(character) {
                let run = rest.find(|c| delimiter.starts_with(c)).unwrap_or(rest.len());
                decoded.push_str(rest.get(..run).unwrap_or_default());
                rest = rest.get(run..).unwrap_or_default();
                continue;
            }
            self.held.push(character);
            rest = rest.get(character.len_utf8()..).unwrap_or_default();
            while !delimiter.starts_with(&self.held) {
                decoded.push(self.held.remove(0));
            }
            if self.held == delimiter {
                return Taken { bytes: text.len() - rest.len(), ended: true };
            }
        }
        Taken { bytes: text.len(), ended: false }
    }
}
