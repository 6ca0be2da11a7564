//! Live counters: what is held at this moment. All of them are zero when nothing runs, which is
//! how the tests prove that every way out of a session gives back everything.

use std::sync::atomic::{AtomicI64, Ordering};

use super::metrics;

/// A kind of thing that is counted while it lives.
#[derive(Debug)]
pub struct LiveCounter {
    metric: &'static str,
    value: AtomicI64,
}

/// Sessions from submission to drop.
pub static SESSIONS: LiveCounter = LiveCounter::new(metrics::LIVE_SESSIONS);
/// Grammar matchers.
pub static GRAMMARS: LiveCounter = LiveCounter::new(metrics::LIVE_GRAMMARS);
/// Device slots that the scheduler has given out.
pub static SLOTS: LiveCounter = LiveCounter::new(metrics::LIVE_SLOTS);

impl LiveCounter {
    const fn new(metric: &'static str) -> Self {
        Self { metric, value: AtomicI64::new(0) }
    }

    /// Counts one thing for as long as the guard lives.
    pub fn guard(&'static self) -> LiveGuard {
        self.guard_many(1)
    }

    /// Counts `count` things for as long as the guard lives.
    pub fn guard_many(&'static self, count: u32) -> LiveGuard {
        let count = i64::from(count);
        self.add(count);
        LiveGuard { counter: self, count }
    }

    /// How many live now.
    pub fn get(&self) -> i64 {
        self.value.load(Ordering::Relaxed)
    }

    /// Sets the count, where one owner keeps the ledger.
    pub fn set(&self, count: usize) {
        self.value.store(i64::try_from(count).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    fn add(&self, count: i64) {
        self.value.fetch_add(count, Ordering::Relaxed);
    }
}

/// Counts as long as it lives.
#[derive(Debug)]
pub struct LiveGuard {
    counter: &'static LiveCounter,
    count: i64,
}

impl Drop for LiveGuard {
    fn drop(&mut self) {
        self.counter.add(-self.count);
    }
}

/// Every live counter with its metric name. Admission permits are counted by the HTTP room.
pub fn snapshot() -> [(&'static str, i64); 3] {
    [&SESSIONS, &GRAMMARS, &SLOTS].map(|counter| (counter.metric, counter.get()))
}
