//! What can be wrong with the settings.

use std::fmt;
use std::path::PathBuf;

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: cannot read the config file: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file is not TOML, or holds a key or a type that does not belong there.
    #[error("{place}: {message}")]
    Syntax {
        /// File, line and column.
        place: String,
        /// The key's path where there is one, and what is wrong.
        message: String,
    },
    /// Values out of range, or files that are not there: one line each.
    #[error("{}", lines(.0))]
    Invalid(Vec<Problem>),
}

/// One value that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where it was set: `config.toml:12:1` or a flag; `None`: nowhere, it is a default.
    pub place: Option<String>,
    /// The key's path, such as `limits.max_sessions` or `auth.keys[0].file`.
    pub key: String,
    /// What is wrong; reads on from the key.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        write!(f, "{} {}", self.key, self.message)
    }
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}
