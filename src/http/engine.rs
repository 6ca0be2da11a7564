//! What the HTTP room needs of the runtime. `actors` implements it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::admission::AdmissionPermit;
use crate::session::{Frame, Generation};

/// The runtime behind the routes. Calls come from HTTP workers and must not block.
pub trait Engine: Send + Sync {
    /// Starts every generation of a request. Dropping the receiver cancels them all. The channel
    /// closes after the last choice's `Done`; if it closes earlier, the answer is an error.
    fn submit(&self, job: Job) -> mpsc::Receiver<Frame>;

    /// How the runtime is doing now.
    fn status(&self) -> EngineStatus;
}

/// One request, ready to run.
#[derive(Debug)]
pub struct Job {
    /// For the log; also in the answer's `x-request-id`.
    pub request_id: Arc<str>,
    /// Whom the queue should be fair to: the name of the API key, or the peer's address.
    pub client: Arc<str>,
    /// One for each choice, `choice` counting from 0; never empty.
    pub generations: Vec<Generation>,
    /// The place in the daemon; one permit for each generation.
    pub permit: AdmissionPermit,
    /// Time from now after which the request ends with [`crate::session::Outcome::Deadline`].
    pub deadline: Option<Duration>,
    /// Frames that the channel holds before a session has to pause.
    pub frame_capacity: usize,
}

/// A snapshot of the runtime.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineStatus {
    /// Whether requests are taken.
    pub health: Health,
    /// Generations that wait for their first step.
    pub queued: usize,
    /// Tokens still to be computed for waiting and running generations, prompts and answers.
    pub waiting_tokens: u64,
    /// Measured speed over all sessions; 0: nothing measured yet.
    pub tokens_per_second: f64,
}

/// Whether the runtime takes requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// The model is being loaded.
    Loading,
    /// Requests are answered.
    Ready,
    /// Running answers are finished, new ones refused.
    Draining,
    /// Something is broken; the text says what.
    Unhealthy(String),
}

impl EngineStatus {
    /// Seconds until the work at hand is done at the measured speed: at least 1, at most 60.
    pub fn retry_after_s(&self) -> u32 {
        if self.tokens_per_second <= 0.0 || !self.tokens_per_second.is_finite() {
            return 1;
        }
        let seconds = (self.waiting_tokens as f64 / self.tokens_per_second).ceil();
        seconds.clamp(1.0, 60.0) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_the_time_of_the_waiting_work_within_bounds() {
        let status = |waiting_tokens, tokens_per_second| EngineStatus {
            health: Health::Ready,
            queued: 0,
            waiting_tokens,
            tokens_per_second,
        };
        assert_eq!(status(0, 100.0).retry_after_s(), 1);
        assert_eq!(status(1001, 100.0).retry_after_s(), 11);
        assert_eq!(status(1_000_000, 1.0).retry_after_s(), 60);
        assert_eq!(status(1_000_000, 0.0).retry_after_s(), 1);
        assert_eq!(status(1_000_000, f64::NAN).retry_after_s(), 1);
    }
}
