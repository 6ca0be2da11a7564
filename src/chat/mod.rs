//! Chat templates and formats.
//!
//! A [`format::ChatFormat`] is detected once for a model ([`detect`]). From it answers are read
//! ([`parse`]): whole, or as they come, with the same result.

pub mod arguments;
pub mod constraint;
pub mod detect;
pub mod format;
pub mod formats;
pub mod parse;
pub mod prompt;
pub mod response_template;
pub mod template;
