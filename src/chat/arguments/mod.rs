//! From the argument dialects of chat formats to JSON text, as the text arrives.
//!
//! Three things are offered, one for each way a format writes arguments:
//!
//! | the format writes | use |
//! |---|---|
//! | one value that shows its own end: JSON, Python literals, Gemma's dictionaries | [`Converter`] |
//! | one text a parameter, whose end a marker shows (the XML-like formats) | [`TypedText`] with [`DeclaredTypes`] |
//! | the names around those texts | [`Members`] |
//!
//! What holds for all of them:
//!
//! - `out` is only ever appended to, and what has been appended is JSON text or the start of one.
//! - How the text was cut into pushes makes no difference to what is appended in sum.
//! - What is appended after a prefix of the text is a prefix of what is appended after all of it.
//! - Time is linear in the text, memory in what must be held back (a number, a word, an escape)
//!   plus one byte a level of nesting; nothing recurses.
//!
//! JSON comes out as the model wrote it, whitespace included; the other dialects come out compact.

mod candidate;
mod converter;
mod delimited;
mod fit;
mod json;
mod json_string;
mod literal;
mod members;
mod nested;
mod number;
mod quoted;
mod sink;
mod syntax;
mod typed;
mod word;
mod wrapping;
mod write;

#[cfg(test)]
mod tests;

pub use crate::grammar::json_schema::DeclaredTypes;
pub use converter::{Converter, Dialect, MAX_DEPTH, Progress};
pub use members::Members;
pub use typed::TypedText;
pub use write::write_string;
