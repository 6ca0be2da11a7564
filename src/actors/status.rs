//! What the runtime is doing, readable from any thread without a message.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::schedule::Stats;

/// Whether requests can be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineHealth {
    /// They can.
    Good,
    /// The device does not answer; it may come back.
    Hung,
}

/// A snapshot of the runtime.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Status {
    /// Whether requests can be served.
    pub health: EngineHealth,
    /// Sessions with a slot.
    pub running: u64,
    /// Sessions without one.
    pub waiting: u64,
    /// Slots.
    pub capacity: u64,
    /// Tokens still to be computed, for prompts and answers, as far as can be told.
    pub work_tokens: u64,
    /// Tokens a second through the device, over the last busy seconds; 0: not known yet.
    pub tokens_per_second: f64,
    /// Steps that ended since the start.
    pub steps: u64,
}

/// The cell behind [`Status`]; written by the scheduler actor alone.
#[derive(Debug, Default)]
pub(super) struct StatusCell {
    hung: AtomicBool,
    running: AtomicU64,
    waiting: AtomicU64,
    capacity: AtomicU64,
    work_tokens: AtomicU64,
    rate_bits: AtomicU64,
    steps: AtomicU64,
}

impl StatusCell {
    pub(super) fn read(&self) -> Status {
        let hung = self.hung.load(Ordering::Relaxed);
        Status {
            health: if hung { EngineHealth::Hung } else { EngineHealth::Good },
            running: self.running.load(Ordering::Relaxed),
            waiting: self.waiting.load(Ordering::Relaxed),
            capacity: self.capacity.load(Ordering::Relaxed),
            work_tokens: self.work_tokens.load(Ordering::Relaxed),
            tokens_per_second: f64::from_bits(self.rate_bits.load(Ordering::Relaxed)),
            steps: self.steps.load(Ordering::Relaxed),
        }
    }

    pub(super) fn publish(&self, stats: Stats, hung: bool) {
        self.hung.store(hung, Ordering::Relaxed);
        self.running.store(stats.running as u64, Ordering::Relaxed);
        self.waiting.store(stats.waiting as u64, Ordering::Relaxed);
        self.capacity.store(stats.capacity as u64, Ordering::Relaxed);
        self.work_tokens.store(stats.work_tokens, Ordering::Relaxed);
    }

    pub(super) fn publish_rate(&self, tokens_per_second: f64) {
        self.rate_bits.store(tokens_per_second.to_bits(), Ordering::Relaxed);
    }

    pub(super) fn count_step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }
}
