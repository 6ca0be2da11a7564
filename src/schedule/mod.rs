//! Scheduling, pure: which sessions' tokens go into the next device step.
//!
//! [`Scheduler::on_event`] takes what happened and the time, and answers with [`Effects`]. Exactly
//! one step is in flight at a time. A session that has been given rows is waited for a short grace
//! before the next step starts without it; one that says it is paused is not waited for.

mod entry;
mod event;
mod plan;
mod state;
#[cfg(test)]
mod tests;

pub use event::{Effects, Event, Notice, SessionId, Submission};
pub use state::{Health, Scheduler, Settings, Stats};
