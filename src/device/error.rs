//! What can go wrong in a device.

use super::Slot;

/// Why a device call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// The KV memory has no room for the batch. Nothing was changed; a smaller batch may fit.
    #[error("no room in the KV memory for this batch")]
    NoRoom,
    /// The abort flag was set while the step ran.
    #[error("the step was aborted")]
    Aborted,
    /// The batch breaks the device's contract; it was not run. A bug of the caller.
    #[error("invalid batch: {0}")]
    InvalidBatch(String),
    /// The slot does not exist, or a saved state does not fit it.
    #[error("{slot}: {reason}")]
    Sequence {
        /// The slot of the call.
        slot: Slot,
        /// What is wrong with it.
        reason: String,
    },
    /// This device cannot do what was asked; see [`super::Capabilities`].
    #[error("this device cannot {0}")]
    Unsupported(&'static str),
    /// The model or its files cannot be used; the text says what to do.
    #[error("{0}")]
    Load(String),
    /// The library failed inside a step.
    #[error("the device failed: {0}")]
    Fatal(String),
}

impl DeviceError {
    /// Whoever wanted the model does not want it any more.
    pub(super) fn cancelled() -> Self {
        Self::Load("loading the model was cancelled".to_owned())
    }
}
