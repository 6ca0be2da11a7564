//! Why a request, or all of them, came to nothing.

/// Why there is no whole answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BenchError {
    /// The address is none that can be spoken to.
    #[error("{url} cannot be used: {reason}")]
    Url {
        /// The address.
        url: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Nobody answers there.
    #[error("cannot reach {url}: {reason}; is the server running?")]
    Unreachable {
        /// The address.
        url: String,
        /// What the system says.
        reason: String,
    },
    /// The server answered with an error.
    #[error("the server answered {status}: {message}")]
    Status {
        /// The status code.
        status: u16,
        /// The error's message, or the body.
        message: String,
    },
    /// An error came in the stream.
    #[error("the stream ended with an error: {0}")]
    InStream(String),
    /// The connection ended, or what came over it is not an answer.
    #[error("the answer is broken: {0}")]
    Broken(String),
    /// It took longer than it may.
    #[error("no whole answer within {0} s")]
    Timeout(u64),
}
