//! What goes into a step and what comes out of it.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::TokenId;

/// A sequence id of the device, from 0 to `max_sequences - 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u32);

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slot {}", self.0)
    }
}

/// Consecutive tokens of one sequence in one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Whose tokens these are.
    pub slot: Slot,
    /// Position of the first token: the sequence's length before this step.
    pub start: u32,
    /// The tokens; never empty.
    pub tokens: Vec<TokenId>,
    /// How many of the last positions want a row of logits; at most `tokens.len()`.
    pub rows_wanted: u32,
}

/// All pieces of one step; at most one a slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepBatch {
    /// The pieces, in the order in which their rows come back.
    pub pieces: Vec<Piece>,
}

impl StepBatch {
    /// Tokens over all pieces.
    pub fn token_count(&self) -> usize {
        self.pieces.iter().map(|piece| piece.tokens.len()).sum()
    }

    /// Rows that the step has to deliver.
    pub fn row_count(&self) -> usize {
        self.pieces.iter().map(|piece| piece.rows_wanted as usize).sum()
    }
}

/// The logits of one step: `len()` rows of `vocab_size` values, one after another.
#[derive(Debug)]
pub struct Rows {
    vocab_size: usize,
    logits: Vec<f32>,
}

impl Rows {
    /// An empty block for rows of `vocab_size` logits, with room for `capacity` rows.
    pub fn new(vocab_size: usize, capacity: usize) -> Self {
        Self { vocab_size, logits: Vec::with_capacity(vocab_size * capacity) }
    }

    /// Empties the block and keeps its memory.
    pub fn clear(&mut self) {
        self.logits.clear();
    }

    /// Appends one row. A row of a wrong length is taken as it is; [`Rows::is_whole`] then says so.
    pub fn push(&mut self, row: &[f32]) {
        self.logits.extend_from_slice(row);
    }

    /// Logits in a row.
    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    /// Whole rows in the block.
    pub fn len(&self) -> usize {
        self.logits.len().checked_div(self.vocab_size).unwrap_or(0)
    }

    /// Whether there is no whole row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the block holds exactly `expected` rows, none of them short or long.
    pub fn is_whole(&self, expected: usize) -> bool {
        self.logits.len() == expected * self.vocab_size
    }

    /// Logits in the block, those of a row that is not whole included.
    pub fn logit_count(&self) -> usize {
        self.logits.len()
    }

    /// Replaces one logit, counted over the whole block; for injected faults.
    pub(super) fn replace_logit(&mut self, index: usize, logit: f32) {
        if let Some(place) = self.logits.get_mut(index) {
            *place = logit;
        }
    }

    /// Drops the last logit; for injected faults.
    pub(super) fn pop_logit(&mut self) {
        self.logits.pop();
    }

    /// Row `index`, or `None` past the end.
    pub fn get(&self, index: usize) -> Option<&[f32]> {
        self.logits.get(index * self.vocab_size..(index + 1) * self.vocab_size)
    }
}

/// One row of a step's output, shared with the other sessions' rows without a copy.
#[derive(Clone, Debug)]
pub struct Row {
    block: Arc<Rows>,
    index: usize,
}

impl Row {
    /// Row `index` of `block`, or `None` past its end.
    pub fn new(block: &Arc<Rows>, index: usize) -> Option<Self> {
        block.get(index)?;
        Some(Self { block: Arc::clone(block), index })
    }
}

impl AsRef<[f32]> for Row {
    fn as_ref(&self) -> &[f32] {
        self
    }
}

impl Deref for Row {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        self.block.get(self.index).unwrap_or_default()
    }
}
