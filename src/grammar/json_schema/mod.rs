//! JSON Schema, draft 4 to 2020-12: from a schema to what each place of an answer may hold.
//!
//! ```text
//! text -> Tree (exact JSON) -> Document (schemas by id, references resolved)
//!      -> Conj (schemas that must hold, or fail, at one place) -> Shapes (its normal form by type)
//! ```
//!
//! Value schemas inside shapes are conjunctions again, so a recursive schema has finitely many.
//! What cannot be exact is an error that names the place and the keyword, never a wider shape.

mod atom;
mod conj;
mod decimal;
mod declared;
mod dialect;
mod document;
mod error;
mod expand;
mod explore;
mod format;
mod format_host;
mod format_name;
mod format_regex;
mod format_time;
mod format_uri;
mod graph;
mod json;
mod keywords;
mod keywords_object;
mod languages;
mod lower;
mod number;
mod number_divisor;
mod number_edge;
mod number_exponent;
mod number_machine;
mod presence;
mod references;
mod shape;
mod shape_array;
mod shape_object;
mod shape_scalar;
mod shaper;
mod term_object;
mod tree;
mod unevaluated;
mod uri;
mod validate;

#[cfg(test)]
mod tests;

pub use conj::{Conj, Literal, NodeId};
pub use decimal::Decimal;
pub use declared::DeclaredTypes;
pub(crate) use declared::types;
pub use dialect::{Dialect, Parameters, Typing, Wrapping};
pub use document::{Document, GAP_CHARACTERS_MAX, SchemaOptions};
pub use error::{Relaxed, SchemaError};
pub use format_name::Format;
pub use json::Json;
pub use lower::rules_into;
pub use number::{IntegerSpelling, NumberError, NumberOptions};
pub use shape::{
    ArrayShape, Bound, Contains, FreeRule, NumberSet, ObjectShape, Presence, Property, Shapes,
    StringSet,
};
