//! Thin actix adapters around the pure state machines: a session actor a generation, one scheduler
//! actor, and the runtime that starts and stops them. No rule lives here.
//!
//! Cleanup is `Drop` and nothing else: a session actor owns all that belongs to its generation, so
//! however it ends (finish, panic, a stopped arbiter), dropping it gives everything back.

mod messages;
mod meters;
mod outbox;
mod registry;
mod runtime;
mod scheduler;
mod session;
mod status;
#[cfg(test)]
mod tests;
mod watch;

pub use runtime::{Request, Runtime, RuntimeSettings, StartError, Threads};
pub use status::{EngineHealth, Status};
