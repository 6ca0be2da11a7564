//! Collects what is wrong with a set of values.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::Path;

use super::{ConfigError, Problem};

/// Every problem found so far: a key's path and what is wrong with it.
#[derive(Default)]
pub(super) struct Problems(Vec<(String, String)>);

impl Problems {
    /// Adds "`key` `message`".
    pub(super) fn add(&mut self, key: impl Into<String>, message: impl Into<String>) {
        self.0.push((key.into(), message.into()));
    }

    /// Requires `value` to be in `range`; a NaN is in no range.
    pub(super) fn range<T>(&mut self, key: &str, value: T, range: RangeInclusive<T>)
    where
        T: PartialOrd + Display,
    {
        if !range.contains(&value) {
            let (low, high) = (range.start(), range.end());
            self.add(key, format!("must be {low} to {high}, not {value}"));
        }
    }

    /// Requires `text` to hold more than white space.
    pub(super) fn not_blank(&mut self, key: impl Into<String>, text: &str) {
        if text.trim().is_empty() {
            self.add(key, "must not be empty");
        }
    }

    /// Requires `path` to be a file that can be opened.
    pub(super) fn readable_file(&mut self, key: impl Into<String>, path: &Path) {
        let shown = path.display();
        match std::fs::File::open(path).and_then(|file| file.metadata()) {
            Ok(metadata) if metadata.is_file() => {}
            Ok(_) => self.add(key, format!("names {shown}, which is not a file")),
            Err(error) => self.add(key, format!("names {shown}, which cannot be read: {error}")),
        }
    }

    /// Ok where nothing was found; `place_of` tells where a key was set.
    pub(super) fn into_result(
        self,
        place_of: impl Fn(&str) -> Option<String>,
    ) -> Result<(), ConfigError> {
        if self.0.is_empty() {
            return Ok(());
        }
        let with_place =
            |(key, message): (String, String)| Problem { place: place_of(&key), key, message };
        Err(ConfigError::Invalid(self.0.into_iter().map(with_place).collect()))
    }
}
