//! Every way in which a session can end.

use crate::TokenId;

/// How a session ended. Each session has exactly one; it is matched without a wildcard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The answer is whole.
    Stop(StopCause),
    /// The token budget or the context ran out.
    Length,
    /// The client closed its connection.
    ClientGone,
    /// The client stopped reading for longer than the stall timeout.
    SlowClient,
    /// The request's deadline passed.
    Deadline,
    /// It waited for a slot longer than the queue's deadline.
    QueueDeadline,
    /// The daemon is stopping and the drain deadline passed.
    Drained,
    /// Nothing the grammar allows could be sampled.
    GrammarDeadEnd,
    /// A fault of the device or of Pleach; the answer is not whole.
    Fault(Fault),
    /// Dropped without any of the above: a bug, or the process is going down.
    TornDown,
}

/// Why an answer is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopCause {
    /// The model produced an end token.
    EndToken(TokenId),
    /// A stop string matched.
    StopString(String),
    /// The grammar is complete and allows nothing more.
    Grammar,
    /// A tool call is complete, and the request takes only one.
    OneCall,
}

/// A fault that ends a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The device failed, panicked or delivered rows of a wrong size.
    Device(String),
    /// A step took longer than the step deadline.
    DeviceHang,
    /// The session's row held a NaN or an infinity.
    NonFinite,
    /// The grammar cost more than its limits allow, or rejected a token that its own mask allowed:
    /// a bug of Pleach.
    Grammar(String),
    /// A panic in the session's own code.
    Panic,
}

/// OpenAI's word for the end of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// `stop`
    Stop,
    /// `length`
    Length,
    /// `tool_calls`
    ToolCalls,
}

impl FinishReason {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
        }
    }
}

impl Outcome {
    /// The closed set of words used as a metric label and in the log.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Stop(_) => "stop",
            Self::Length => "length",
            Self::ClientGone => "client_gone",
            Self::SlowClient => "slow_client",
            Self::Deadline => "deadline",
            Self::QueueDeadline => "queue_deadline",
            Self::Drained => "drained",
            Self::GrammarDeadEnd => "grammar_dead_end",
            Self::Fault(Fault::Device(_) | Fault::DeviceHang) => "device_fault",
            Self::Fault(Fault::NonFinite) => "non_finite",
            Self::Fault(Fault::Grammar(_)) => "grammar_fault",
            Self::Fault(Fault::Panic) => "panic",
            Self::TornDown => "torn_down",
        }
    }

    /// The finish reason of an answer that a client may use; `None`: it gets an error instead.
    pub fn finish_reason(&self) -> Option<FinishReason> {
        match self {
            Self::Stop(_) => Some(FinishReason::Stop),
            Self::Length => Some(FinishReason::Length),
            Self::ClientGone
            | Self::SlowClient
            | Self::Deadline
            | Self::QueueDeadline
            | Self::Drained
            | Self::GrammarDeadEnd
            | Self::Fault(_)
            | Self::TornDown => None,
        }
    }
}
