//! How a value is written in an answer.

/// How a value is written in an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// As JSON.
    #[default]
    Json,
}
