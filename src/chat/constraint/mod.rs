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

use super::format::{ChatFormat, Piece};
use super::parse::is_plain_name;
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
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotHold {
    /// Calls are wanted, and nothing is known of how the model writes them.
    #[error("the model's chat format has no tool calls")]
    NoCalls,
    /// A call is wanted of nothing.
    #[error("there is no function to call")]
    NoFunctions,
    /// The name of a function has letters that end a name in this format.
    #[error("the model's chat format cannot write the name {name:?}")]
    Name {
        /// The name.
        name: String,
    },
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
    if let Some(tools) = &format.tools
        && tools.call.iter().any(|piece| matches!(piece, Piece::Name))
        && let Some(function) = wish.functions.iter().find(|it| !is_plain_name(&it.name))
    {
        return Err(CannotHold::Name { name: function.name.clone() });
    }
    let Some(tag) = Answer { format, wish: &wish }.tag() else { return Ok(None) };
    Ok(Some(Held { tag, begun: begun::begun(format, prefill, message) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::formats::named;

    fn wish(name: &str, must_call: bool) -> Wish {
        let function = Function {
            name: name.to_owned(),
            schema: "{\"type\":\"object\"}".to_owned(),
            options: SchemaOptions::default(),
            place: String::new(),
        };
        Wish { functions: vec![function], must_call, ..Wish::default() }
    }

    #[test]
    fn what_a_format_cannot_write_is_an_error() {
        let held = |format: &str, wish| hold(&named(format).unwrap(), wish, "", None);
        let error = |format, wish| held(format, wish).unwrap_err();
        assert_eq!(error("content_only", wish("f", true)), CannotHold::NoCalls);
        let nothing = Wish { must_call: true, ..Wish::default() };
        assert_eq!(error("hermes_json", nothing), CannotHold::NoFunctions);
        let name = "two words".to_owned();
        assert_eq!(error("qwen_xml", wish(&name, false)), CannotHold::Name { name });
        assert!(held("hermes_json", wish("two words", true)).unwrap().is_some());
    }

    #[test]
    fn what_needs_no_holding_is_not_held() {
        let free = |wish| hold(&named("content_only").unwrap(), wish, "", None);
        assert_eq!(free(wish("f", false)), Ok(None));
        assert_eq!(free(Wish { no_calls: true, ..Wish::default() }), Ok(None));
        assert_eq!(hold(&named("hermes_json").unwrap(), Wish::default(), "", None), Ok(None));
    }
}
