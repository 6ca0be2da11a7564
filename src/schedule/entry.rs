//! What the scheduler knows of one session.

use std::sync::Arc;

use super::draft::Luck;
use super::event::{SessionId, Submission};
use super::prefix::{Key, common_length};
use super::queue::ClientName;
use crate::TokenId;
use crate::device::Slot;

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It has tokens that are not computed.
    Pending,
    /// It was given its rows and has not answered.
    Awaiting,
    /// The same, and it said that it will take a while.
    Paused,
}

/// Where a session's first tokens come from, when they are not computed for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// They are computed.
    Computed,
    /// They will be copied from a session that computes them.
    Awaited { leader: SessionId, tokens: u32 },
    /// They were copied from another session.
    Copied,
    /// They were saved under this key, and cut back where it is longer than was needed.
    Loaded { key: Key, cut: bool },
}

/// One session. The whole token history is kept, so that a sequence the device has lost can be
/// computed again.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) client: ClientName,
    prompt: Arc<[TokenId]>,
    answer: Vec<TokenId>,
    answer_tokens_max: u32,
    /// Tokens whose KV the device holds in `slot`.
    pub(super) computed: u32,
    /// Tokens of the prompt that were not computed for it.
    cached: u32,
    /// A step has computed tokens for it: what is brought back later may be its own.
    has_computed: bool,
    /// The first position whose row is wanted and was not delivered.
    pub(super) next_row: u32,
    /// Its sequence on the device; `None` while it waits in the queue.
    pub(super) slot: Option<Slot>,
    pub(super) phase: Phase,
    /// Its first step was announced.
    pub(super) started: bool,
    /// Tokens that its client was charged for; none twice.
    pub(super) charged: u32,
    pub(super) source: Source,
    /// Bringing its beginning back has failed: it is computed.
    pub(super) computes_all: bool,
    /// What it guesses will follow all its tokens.
    pub(super) drafts: Vec<TokenId>,
    /// How many of these the device holds in `slot`, after those that are computed.
    pub(super) drafted: u32,
    pub(super) luck: Luck,
    /// Its sequence is to be saved when it has this length.
    pub(super) save_at: Option<u32>,
}

impl Entry {
    pub(super) fn new(submission: Submission) -> Self {
        let length = length_of(submission.prompt.len());
        Self {
            next_row: if submission.prompt_rows { 0 } else { length.saturating_sub(1) },
            client: submission.client,
            prompt: submission.prompt,
            answer: Vec::new(),
            answer_tokens_max: submission.answer_tokens_max,
            computed: 0,
            cached: 0,
            has_computed: false,
            slot: None,
            phase: Phase::Pending,
            started: false,
            charged: 0,
            source: Source::Computed,
            computes_all: false,
            drafts: Vec::new(),
            drafted: 0,
            luck: Luck::default(),
            save_at: None,
        }
    }

    /// All its tokens, computed or not.
    pub(super) fn total(&self) -> u32 {
        length_of(self.prompt.len() + self.answer.len())
    }

    /// Tokens that are not computed.
    pub(super) fn pending(&self) -> u32 {
        self.total() - self.computed
    }

    /// Tokens answered so far.
    pub(super) fn answered(&self) -> u32 {
        length_of(self.answer.len())
    }

    /// Tokens that may still come, at most.
    pub(super) fn to_come(&self) -> u32 {
        self.answer_tokens_max.saturating_sub(self.answered())
    }

    /// Whether the device holds all but the tokens of the latest answer.
    pub(super) fn is_decoding(&self) -> bool {
        !self.answer.is_empty() && self.computed >= length_of(self.prompt.len())
    }

    /// Whether it waits for another session to compute its beginning.
    pub(super) fn is_following(&self) -> bool {
        matches!(self.source, Source::Awaited { .. })
    }

    /// Takes the tokens that the session goes on with; only the last one's row is wanted. Drafts
    /// that were right are computed already. How many there were.
    pub(super) fn append(&mut self, tokens: &[TokenId], drafts: Vec<TokenId>) -> u32 {
        let drafted = self.drafts.iter().take(self.drafted as usize);
        let right = drafted.zip(tokens).take_while(|(draft, token)| draft == token).count();
        // The row of the last token is still to come.
        let kept = length_of(right.min(tokens.len().saturating_sub(1)));
        self.computed += kept;
        self.drafted = 0;
        self.drafts = drafts;
        self.answer.extend_from_slice(tokens);
        self.next_row = self.total() - 1;
        self.phase = Phase::Pending;
        kept
    }

    /// So many of its first tokens were brought back; they are computed, or none are.
    pub(super) fn bring_back(&mut self, tokens: u32) {
        self.computed = tokens;
        if self.answer.is_empty() {
            self.cached = if self.has_computed { self.cached.min(tokens) } else { tokens };
        }
    }

    /// A step has computed so many more of its tokens.
    pub(super) fn add_computed(&mut self, tokens: u32) {
        self.computed += tokens;
        self.has_computed |= tokens > 0;
    }

    /// Tokens of the prompt that were not computed for it.
    pub(super) fn cached(&self) -> u32 {
        self.cached
    }

    /// Tokens that the device holds for it.
    pub(super) fn held(&self) -> u32 {
        self.computed + self.drafted
    }

    /// Its sequence is gone from the device.
    pub(super) fn forget_computed(&mut self) {
        self.bring_back(0);
        self.drafted = 0;
        self.slot = None;
        self.source = Source::Computed;
        self.save_at = None;
    }

    /// The next `count` tokens that are not computed.
    pub(super) fn take_tokens(&self, count: u32) -> Vec<TokenId> {
        self.tokens(self.computed, count)
    }

    /// The first `count` tokens.
    pub(super) fn first_tokens(&self, count: u32) -> Vec<TokenId> {
        self.tokens(0, count)
    }

    fn tokens(&self, from: u32, count: u32) -> Vec<TokenId> {
        let tokens = self.prompt.iter().chain(&self.answer);
        tokens.skip(from as usize).take(count as usize).copied().collect()
    }

    /// How many tokens it and a text begin with alike.
    pub(super) fn common_with(&self, tokens: &[TokenId]) -> u32 {
        let in_prompt = common_length(&self.prompt, tokens);
        let in_answer = match tokens.get(self.prompt.len()..) {
            Some(rest) if in_prompt == self.prompt.len() => common_length(&self.answer, rest),
            Some(_) | None => 0,
        };
        length_of(in_prompt + in_answer)
    }

    /// How many of the positions `computed .. computed + count` want a row.
    pub(super) fn rows_in(&self, count: u32) -> u32 {
        (self.computed + count).saturating_sub(self.next_row.max(self.computed))
    }
}

fn length_of(tokens: usize) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}
