//! What a session sends to the connection that asked.

use std::time::Duration;

use super::{FinishReason, Outcome, StopCause};
use crate::TokenId;

/// One message from a session. All choices of a request share one channel.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Which choice it belongs to.
    pub choice: u32,
    /// What it says.
    pub body: FrameBody,
}

/// The message itself. A choice sends any number of deltas, then exactly one `Done`. A channel that
/// closes with a choice not done is a fault, never the end of an answer.
#[derive(Clone, Debug)]
pub enum FrameBody {
    /// More of the answer.
    Delta(Delta),
    /// The end of the choice.
    Done(Summary),
}

/// A piece of the answer. Deltas only ever add: joined, they are the answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delta {
    /// Text to append; may be empty when only the others grew. Where the answer is read as a chat
    /// message, its content.
    pub text: String,
    /// Reasoning to append.
    pub reasoning: String,
    /// What tool calls gained, in order.
    pub calls: Vec<CallPart>,
    /// The tokens reported with it, where log-probabilities were asked for.
    pub tokens: Vec<TokenEntry>,
}

impl Delta {
    /// Appends what came after it.
    pub fn extend(&mut self, later: Delta) {
        self.text.push_str(&later.text);
        self.reasoning.push_str(&later.reasoning);
        later.calls.into_iter().for_each(|part| self.push_call(part));
        self.tokens.extend(later.tokens);
    }

    /// Whether it adds nothing.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
            && self.reasoning.is_empty()
            && self.calls.is_empty()
            && self.tokens.is_empty()
    }

    /// Appends a part of a call; arguments that go on are one part.
    pub(super) fn push_call(&mut self, part: CallPart) {
        if let (
            Some(CallPart::Arguments { index, json }),
            CallPart::Arguments { index: same, json: more },
        ) = (self.calls.last_mut(), &part)
            && *index == *same
        {
            json.push_str(more);
            return;
        }
        self.calls.push(part);
    }
}

/// What a tool call gained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallPart {
    /// It begins.
    Begin {
        /// Its place among the answer's calls, from 0.
        index: usize,
        /// Its id.
        id: String,
        /// The function's name.
        name: String,
    },
    /// More of its arguments.
    Arguments {
        /// The call's place, from 0.
        index: usize,
        /// Text to append to the arguments.
        json: String,
    },
}

/// A generated (or, with `echo`, prompt) token with its log-probability.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenEntry {
    /// The token.
    pub token: TokenId,
    /// Natural logarithm of its probability; `None` for the first token of a prompt.
    pub logprob: Option<f32>,
    /// The most probable tokens at this position with their log-probabilities, best first.
    pub top: Vec<(TokenId, f32)>,
    /// Where the token's text starts in the choice's text, in characters.
    pub text_offset: u32,
}

/// The end of a choice.
#[derive(Clone, Debug)]
pub struct Summary {
    /// How it ended.
    pub outcome: Outcome,
    /// Whether there are tool calls, each with all of its arguments.
    pub has_called: bool,
    /// What it cost.
    pub usage: Usage,
    /// From submission to the first step that held its prompt.
    pub queue_time: Duration,
    /// From submission to the first generated token; `None`: there was none.
    pub time_to_first_token: Option<Duration>,
}

impl Summary {
    /// The finish reason of an answer that a client may use; `None`: it gets an error instead.
    /// Calls are the reason only where the turn ended by itself.
    pub fn finish_reason(&self) -> Option<FinishReason> {
        use StopCause::{EndToken, Grammar, OneCall};
        match &self.outcome {
            Outcome::Stop(EndToken(_) | Grammar | OneCall) if self.has_called => {
                Some(FinishReason::ToolCalls)
            }
            outcome => outcome.finish_reason(),
        }
    }
}

/// Tokens of one choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Tokens generated, the end token included.
    pub completion_tokens: u32,
    /// Those of them that are reasoning, its markers included.
    pub reasoning_tokens: u32,
    /// Prompt tokens that were not computed because their KV state was at hand.
    pub cached_tokens: u32,
}
