//! From a chat format and what a request wants of its answer to a structural tag.
//!
//! The tag is read from the same [`ChatFormat`] as the parser is, so what is written along it is
//! read as what was asked for: calls of the functions on offer whose arguments follow their
//! schemas, and content that follows the one of the response. Thinking stays free, but for the
//! markers of calls: a call in the middle of it would be read as one.

mod answer;
mod begun;
mod call;
mod channels;
mod pieces;

use super::format::ChatFormat;
use crate::grammar::StructuralTag;
use crate::grammar::json_schema::SchemaOptions;
use answer::Answer;

/// What a request wants of its answer.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// The functions that may be called, each at least once where `must_call` says so.
    pub functions: Vec<Function>,
    /// The answer is a call, or several.
    pub must_call: bool,
    /// The answer has no more than one call.
    pub one_call: bool,
    /// There are functions, and none may be called: what would open a call does not come.
    pub no_calls: bool,
    /// What the content is held to; `None`: it is free.
    pub content: Option<StructuralTag>,
}

/// A function that may be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The schema of its arguments, as JSON text.
    pub schema: String,
    /// How the schema is followed.
    pub options: SchemaOptions,
    /// Where the schema comes from, for errors.
    pub place: String,
}

/// What an answer is held to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The whole of it.
    pub tag: StructuralTag,
    /// What the prompt has written of it.
    pub begun: String,
}

/// Why a format cannot hold an answer to a wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotHold {
    /// Calls are wanted, and nothing is known of how the model writes them.
    #[error("the model's chat format has no tool calls")]
    NoCalls,
    /// A call is wanted of nothing.
    #[error("there is no function to call")]
    NoFunctions,
}

/// What the answer of a model that writes in this format is held to. `prefill` is the end of the
/// prompt, which the answer continues; `message` what there is of the message that it continues.
/// `None`: nothing needs to be held.
///
/// # Errors
/// [`CannotHold`] if the format cannot express what is wanted.
pub fn hold(
    format: &ChatFormat,
    wish: Wish,
    prefill: &str,
    message: Option<&str>,
) -> Result<Option<Held>, CannotHold> {
    if wish.must_call && wish.functions.is_empty() {
        return Err(CannotHold::NoFunctions);
    }
    if format.tools.is_none() && wish.must_call {
        return Err(CannotHold::NoCalls);
    }
    let Some(tag) = Answer { format, wish: &wish }.tag() else { return Ok(None) };
    Ok(Some(Held { tag, begun: begun::begun(format, prefill, message) }))
}
