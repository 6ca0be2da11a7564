//! What the scheduler may do, and what it tells of itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What the scheduler may do; the rest it reads from the device.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long a step in which sessions decode may take for the sake of prompts. One that takes
    /// longer than half of it without them may take twice as long with them.
    pub target_step: Duration,
    /// A step that takes longer is a hang.
    pub step_deadline: Duration,
    /// Memory for saved sequences, in bytes; 0: no prompt uses what was computed for another.
    pub prefix_bytes: u64,
    /// Tokens that a session may draft ahead, computed where that is expected to pay; 0: none.
    pub draft_tokens: u32,
    /// Shares of clients that compete for the device, at least 1; who is not named has 1.
    pub weights: BTreeMap<Arc<str>, u32>,
}

/// Whether the device answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It does, as far as is known.
    Good,
    /// The running step is over its deadline.
    Hung,
}

/// What the scheduler holds and has done, for metrics and for `Retry-After`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Sessions with a slot.
    pub running: usize,
    /// Sessions without one.
    pub waiting: usize,
    /// Slots of the device.
    pub capacity: usize,
    /// Tokens of the waiting sessions.
    pub waiting_tokens: u64,
    /// Tokens still to be computed for all sessions: what is known of them, and of each answer as
    /// much as answers have had lately.
    pub work_tokens: u64,
    /// Tokens that the device holds.
    pub held_tokens: u64,
    /// Tokens that the device can hold.
    pub room_tokens: u64,
    /// Prompt tokens that were looked up among the saved sequences, since the start.
    pub prefix_queried_tokens: u64,
    /// Of these, those that need not be computed.
    pub prefix_hit_tokens: u64,
    /// Bytes of the saved sequences.
    pub prefix_bytes: u64,
    /// Saved sequences that were dropped to make room for others, since the start.
    pub prefix_evictions: u64,
    /// Drafted tokens that were computed, since the start.
    pub drafted_tokens: u64,
    /// Of these, those that were right.
    pub kept_drafts: u64,
    /// Sessions that lost their slot to another, since the start.
    pub preemptions: u64,
}

impl Stats {
    /// Tokens held over the room for them, 0 to 1.
    pub fn held_ratio(&self) -> f64 {
        self.held_tokens as f64 / self.room_tokens.max(1) as f64
    }
}
