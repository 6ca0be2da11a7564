//! Why a JSON Schema cannot be followed.

use super::number::NumberError;
use crate::grammar::LimitError;
use crate::grammar::regular::RegularError;

/// What is wrong with a schema, what cannot be exact, what matches nothing. Each is the client's
/// to mend; `pointer` is a JSON pointer as a URI fragment (`#/properties/a`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The text is no JSON.
    #[error("the schema is not JSON: {message} at line {line}, column {column}")]
    Syntax {
        /// What is wrong.
        message: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
    },
    /// A keyword has a value that it cannot have, or refers to nothing.
    #[error("the schema is wrong at {pointer}: `{keyword}` {reason}")]
    Invalid {
        /// The schema object.
        pointer: String,
        /// The keyword, or empty where a schema itself is wrong.
        keyword: String,
        /// What is wrong, as a predicate of the keyword.
        reason: String,
    },
    /// The schema means something that no grammar here expresses exactly.
    #[error("the schema cannot be followed exactly at {pointer}: `{keyword}` {reason}")]
    Inexact {
        /// The schema object.
        pointer: String,
        /// The keyword.
        keyword: String,
        /// Why not, as a predicate of the keyword.
        reason: String,
    },
    /// No value at all is valid.
    #[error("no value is valid against the schema at {pointer}: {reason}")]
    Unsatisfiable {
        /// The schema object.
        pointer: String,
        /// Why.
        reason: String,
    },
    /// A limit was hit.
    #[error("the schema is too expensive to compile: {0}")]
    Limit(#[from] LimitError),
}

/// A keyword that was given up because the request does not insist on exactness: the grammar
/// allows more than the schema does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Relaxed {
    /// The schema object.
    pub pointer: String,
    /// The keyword.
    pub keyword: String,
}

impl SchemaError {
    /// The same with a pointer, if it had none.
    pub(super) fn at(self, pointer: impl Fn() -> String) -> Self {
        match self {
            Self::Invalid { pointer: known, keyword, reason } if known.is_empty() => {
                Self::Invalid { pointer: pointer(), keyword, reason }
            }
            Self::Inexact { pointer: known, keyword, reason } if known.is_empty() => {
                Self::Inexact { pointer: pointer(), keyword, reason }
            }
            other => other,
        }
    }
}

/// Without a pointer: who knows the place puts it in by [`SchemaError::at`].
impl From<RegularError> for SchemaError {
    fn from(error: RegularError) -> Self {
        let (pointer, keyword) = (String::new(), "pattern".to_owned());
        match error {
            RegularError::Limit(limit) => Self::Limit(limit),
            RegularError::Syntax { .. } => {
                Self::Invalid { pointer, keyword, reason: error.to_string() }
            }
            _ => Self::Inexact { pointer, keyword, reason: error.to_string() },
        }
    }
}

/// Without a pointer, as for patterns.
impl From<NumberError> for SchemaError {
    fn from(error: NumberError) -> Self {
        match (error.keyword(), &error) {
            (_, NumberError::Limit(limit)) => Self::Limit(*limit),
            (keyword, _) => Self::Inexact {
                pointer: String::new(),
                keyword: keyword.unwrap_or("type").to_owned(),
                reason: error.to_string(),
            },
        }
    }
}
