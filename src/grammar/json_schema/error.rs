//! Why a JSON Schema cannot be followed.

use crate::grammar::LimitError;

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
