//! An answer as it comes.

use std::sync::Arc;

use super::machine::{Machine, Mode};
use super::{ChatMessage, ParseOptions};
use crate::chat::format::ChatFormat;

/// What one more piece of text adds to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// More reasoning.
    Reasoning(String),
    /// More content.
    Content(String),
    /// A call begins.
    CallBegin {
        /// Its place among the message's calls, from 0.
        index: usize,
        /// Its id.
        id: String,
        /// The function's name.
        name: String,
    },
    /// More of a call's arguments.
    CallArguments {
        /// The call's place, from 0.
        index: usize,
        /// What is appended to its arguments.
        json: String,
    },
}

/// Reads an answer piece by piece. What the deltas add up to is what [`super::parse`] makes of the
/// whole text, however it is cut.
#[derive(Clone, Debug)]
pub struct ChatStream {
    machine: Machine,
    told: Told,
}

/// How much of a message has been told.
#[derive(Clone, Debug, Default)]
struct Told {
    reasoning: usize,
    content: usize,
    /// Bytes of the arguments of each call that has begun.
    arguments: Vec<usize>,
}

impl ChatStream {
    /// A stream before the first piece; the prefill is in `options`.
    pub fn new(format: &Arc<ChatFormat>, options: ParseOptions) -> Self {
        let machine = Machine::new(Arc::clone(format), options);
        Self { machine, told: Told::default() }
    }

    /// Takes a piece of the answer.
    pub fn push(&mut self, text: &str) -> Vec<Delta> {
        self.machine.push(text);
        self.news()
    }

    /// The answer has ended: tells what was held back.
    pub fn finish(&mut self) -> Vec<Delta> {
        self.machine.finish();
        self.news()
    }

    /// The message as far as it has been told.
    pub fn message(&self) -> ChatMessage {
        self.machine.message()
    }

    /// Whether the text is within reasoning.
    pub fn is_reasoning(&self) -> bool {
        self.machine.mode == Mode::Reasoning
    }

    /// Whether there is a call, and each has all of its arguments.
    pub fn calls_are_complete(&self) -> bool {
        let calls = self.machine.calls();
        !calls.is_empty() && calls.iter().all(|call| call.complete)
    }

    fn news(&mut self) -> Vec<Delta> {
        let mut deltas = Vec::new();
        if let Some(text) = suffix(self.machine.reasoning(), &mut self.told.reasoning) {
            deltas.push(Delta::Reasoning(text));
        }
        if let Some(text) = suffix(self.machine.content(), &mut self.told.content) {
            deltas.push(Delta::Content(text));
        }
        // Only the last call that has begun can have grown, and others come after it.
        let from = self.told.arguments.len().saturating_sub(1);
        for (index, call) in self.machine.calls().iter().enumerate().skip(from) {
            if index == self.told.arguments.len() {
                let (id, name) = (call.id.clone(), call.name.clone());
                deltas.push(Delta::CallBegin { index, id, name });
                self.told.arguments.push(0);
            }
            let Some(told) = self.told.arguments.get_mut(index) else { continue };
            if let Some(json) = suffix(&call.arguments, told) {
                deltas.push(Delta::CallArguments { index, json });
            }
        }
        deltas
    }
}

/// What `text` has gained since `told`.
fn suffix(text: &str, told: &mut usize) -> Option<String> {
    let news = text.get(*told..).filter(|news| !news.is_empty())?;
    *told = text.len();
    Some(news.to_owned())
}
