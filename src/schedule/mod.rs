//! Scheduling, pure: which sessions' tokens go into the next device step.
//!
//! [`Scheduler::on_event`] takes what happened and the time, and answers with [`Effects`]. Exactly
//! one step is in flight at a time. A session that has been given rows is waited for a short grace
//! before the next step starts without it; one that says it is paused is not waited for.
//!
//! `scheduler` holds the state; `admit` decides who has a slot (by `queue`, fair to clients, and by
//! `room`), `step` what goes into a step (by `plan`, and by `pace`, which learns what steps cost),
//! and by `draft`, which tokens are worth a guess), `reuse` what need not be computed again (by `prefix`, the saved sequences), `faults` what becomes
//! of everyone when the device fails.

mod admit;
mod check;
mod draft;
mod entry;
mod event;
mod faults;
mod grace;
mod pace;
mod plan;
mod prefix;
mod queue;
mod reuse;
mod room;
mod runs;
mod scheduler;
mod settings;
mod step;
#[cfg(test)]
mod tests;

pub use event::{Effects, Event, Notice, SessionId, Submission};
pub use scheduler::Scheduler;
pub use settings::{Health, Settings, Stats};
