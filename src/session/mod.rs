//! One generation, pure: from rows of logits to text, and every way it can end.

mod constraint;
mod draft;
mod frame;
mod generation;
mod outcome;
mod reading;
mod state;
mod stops;
#[cfg(test)]
mod tests;

pub use constraint::Constraint;
pub use frame::{CallPart, Delta, Frame, FrameBody, Summary, TokenEntry, Usage};
pub use generation::{Generation, LogprobsRequest, StopRules};
pub use outcome::{Fault, FinishReason, Outcome, StopCause};
pub use reading::{ChatReading, Reader};
pub use state::{Progress, Session, Then};
pub use stops::{Scan, StopMatcher};
