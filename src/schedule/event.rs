//! What the scheduler hears and what it says.

use std::sync::Arc;
use std::time::Instant;

use crate::TokenId;
use crate::device::{Row, StepCommand, StepDone};
use crate::session::Outcome;

/// Names a session; later ones are greater, and a client's are served in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u64);

/// A session that wants to run.
#[derive(Clone, Debug)]
pub struct Submission {
    /// Its name; not used before.
    pub session: SessionId,
    /// Whose share of the device it uses.
    pub client: Arc<str>,
    /// Its prompt, never empty.
    pub prompt: Arc<[TokenId]>,
    /// Every position of the prompt wants a row, not just the last.
    pub prompt_rows: bool,
    /// Tokens that may follow the prompt, at most.
    pub answer_tokens_max: u32,
}

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// A session wants to run.
    Submit(Submission),
    /// A session that was given its last rows goes on with these tokens, never none.
    Next {
        /// Which.
        session: SessionId,
        /// What it drew, and what is forced after it. It begins with those drafts of the last step
        /// that were right; at least the last token is new.
        tokens: Vec<TokenId>,
        /// What it guesses will follow. Computed, where that may pay, together with the tokens: then
        /// each draft's row comes after theirs.
        drafts: Vec<TokenId>,
    },
    /// A session that was given rows will take a while: do not wait for it.
    Pause(SessionId),
    /// A session has ended; all it holds is free.
    Leave(SessionId),
    /// The device finished a step.
    StepDone(StepDone),
    /// Time has passed.
    Tick,
}

/// What a session is told.
#[derive(Debug)]
pub enum Notice {
    /// Its first tokens are in a step now.
    Started,
    /// Rows of its latest positions.
    Rows {
        /// In the order of the positions; those of drafts last.
        rows: Vec<Row>,
        /// All its tokens are computed: an [`Event::Next`] is expected.
        prompt_done: bool,
        /// Tokens of its prompt that were computed before, for somebody else or for a prompt that
        /// begins the same.
        cached_tokens: u32,
    },
    /// It is over, and the scheduler has forgotten it.
    End(Outcome),
}

/// What is to be done now.
#[derive(Debug, Default)]
pub struct Effects {
    /// To be told to sessions, in this order.
    pub notices: Vec<(SessionId, Notice)>,
    /// To be run by the device, which is idle.
    pub command: Option<StepCommand>,
    /// The running step is of no use to anyone: set the device's abort flag.
    pub abort: bool,
    /// Send [`Event::Tick`] at this time, unless something else happens before.
    pub wake_at: Option<Instant>,
    /// The device cannot be trusted any more: the process must end, and why.
    pub give_up: Option<String>,
}
