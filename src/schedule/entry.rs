//! What the scheduler knows of one session.

use std::sync::Arc;

use super::event::Submission;
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

/// One session. The whole token history is kept, so that a sequence the device has lost can be
/// computed again.
#[derive(Debug)]
pub(super) struct Entry {
    prompt: Arc<[TokenId]>,
    answer: Vec<TokenId>,
    /// Tokens whose KV the device holds in `slot`.
    pub(super) computed: u32,
    /// The first position whose row is wanted and was not delivered.
    pub(super) next_row: u32,
    /// Its sequence on the device; `None` while it waits in the queue.
    pub(super) slot: Option<Slot>,
    pub(super) phase: Phase,
    /// Its first step was announced.
    pub(super) started: bool,
}

impl Entry {
    pub(super) fn new(submission: Submission) -> Self {
        let length = length_of(submission.prompt.len());
        Self {
            next_row: if submission.prompt_rows { 0 } else { length.saturating_sub(1) },
            prompt: submission.prompt,
            answer: Vec::new(),
            computed: 0,
            slot: None,
            phase: Phase::Pending,
            started: false,
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

    /// Whether the device holds all but the tokens of the latest answer.
    pub(super) fn is_decoding(&self) -> bool {
        !self.answer.is_empty() && self.computed >= length_of(self.prompt.len())
    }

    /// Takes the tokens that the session goes on with; only the last one's row is wanted.
    pub(super) fn append(&mut self, tokens: &[TokenId]) {
        self.answer.extend_from_slice(tokens);
        self.next_row = self.total() - 1;
        self.phase = Phase::Pending;
    }

    /// The device has lost its sequence.
    pub(super) fn forget_computed(&mut self) {
        self.computed = 0;
        self.slot = None;
    }

    /// The next `count` tokens that are not computed.
    pub(super) fn take_tokens(&self, count: u32) -> Vec<TokenId> {
        let from = self.computed as usize;
        let tokens = self.prompt.iter().chain(&self.answer);
        tokens.skip(from).take(count as usize).copied().collect()
    }

    /// How many of the positions `computed .. computed + count` want a row.
    pub(super) fn rows_in(&self, count: u32) -> u32 {
        (self.computed + count).saturating_sub(self.next_row.max(self.computed))
    }
}

fn length_of(tokens: usize) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}
