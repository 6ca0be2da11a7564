//! From what a model wrote to reasoning, content and calls.
//!
//! One state machine reads the text letter by letter and only ever appends to the
//! fields of a message. [`parse`] runs it over a whole text, [`ChatStream`] over the pieces as they
//! come; the machine does not know where pieces end, so the two agree for every way of cutting.
//!
//! **Prefix property.** Each field of what a text parses to is a prefix of that field for every
//! continuation of the text. It holds because nothing appended is ever taken back: a tail that may
//! be the start of a marker is held back until it is one or is not; whitespace at the end of a
//! segment is held back; a call shows once its name is known to be a function's and its arguments
//! have begun, and until then its text may still turn out to be content.
//!
//! **Time** is linear in the text: what is read twice is never longer than a marker and
//! a hundred blanks.
//!
//! What a text that fits no call becomes: before the call has shown, content, all of it. After that
//! the call keeps the arguments it got ([`ToolCall::complete`] is false) and the rest is content.
//! A block for a function that is not on offer is content, from its first letter to its last.
//!
//! Feed it the text with the names of control tokens in it: the markers of many formats are such.

mod call;
mod envelope;
mod header;
mod ids;
mod literal;
mod machine;
mod parameters;
mod plan;
mod scan;
mod stream;
mod text;
mod tools;

use std::sync::Arc;

pub(super) use call::is_plain_name;
pub use stream::{ChatStream, Delta};
pub use tools::ToolSet;

use super::format::ChatFormat;
use machine::Machine;

/// What a model said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatMessage {
    /// The thinking; empty where there is none.
    pub reasoning: String,
    /// The answer; empty where there is none.
    pub content: String,
    /// The calls, in the order they were written.
    pub tool_calls: Vec<ToolCall>,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// Its id.
    pub id: String,
    /// The function's name.
    pub name: String,
    /// The arguments: a JSON object, or the start of one.
    pub arguments: String,
    /// Whether the arguments have come to their end.
    pub complete: bool,
}

/// What a request says about reading its answer.
#[derive(Clone, Debug)]
pub struct ParseOptions {
    /// The functions that may be called. Without any, the markup of calls is content.
    pub tools: Arc<ToolSet>,
    /// The end of the prompt, which the text continues: what the generation prompt added.
    pub prefill: String,
    /// The prefill ends inside a message that the text goes on with (`continue_final_message`):
    /// whitespace at the start of the text belongs to the message.
    pub continues: bool,
    /// Whether reasoning is told from content. If not, its markers and its text are content.
    pub separate_reasoning: bool,
    /// Content, once it has begun, is all that comes: it is held to something, and what looks like a
    /// marker in it is part of it.
    pub whole_content: bool,
    /// Where the ids of calls come from: the same seed and text give the same ids.
    pub id_seed: u64,
}

impl Default for ParseOptions {
    fn default() -> Self {
        Self {
            tools: Arc::default(),
            prefill: String::new(),
            continues: false,
            separate_reasoning: true,
            whole_content: false,
            id_seed: 0,
        }
    }
}

/// Reads `text`, which a model of this format wrote. `partial`: more may come, so what may still
/// become something else is left out.
pub fn parse(
    format: &Arc<ChatFormat>,
    text: &str,
    partial: bool,
    options: &ParseOptions,
) -> ChatMessage {
    let mut machine = Machine::new(Arc::clone(format), options.clone());
    machine.push(text);
    if !partial {
        machine.finish();
    }
    machine.message()
}

#[cfg(test)]
mod tests;
