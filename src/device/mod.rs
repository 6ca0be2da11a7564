//! The device: what turns a batch of tokens into rows of logits.
//!
//! A [`Device`] is driven by one thread (`thread`), one step at a time. It never sees a request:
//! only slots (its own sequence ids), tokens and positions.

mod batch;
mod error;
#[cfg(feature = "ggml")]
pub mod ggml;
pub mod simulated;
pub mod thread;

pub use batch::{Piece, Row, Rows, Slot, StepBatch};
pub use error::DeviceError;
pub use thread::{SavedSequence, SequenceOp, StepCommand, StepDone, StepFault};

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::TokenId;

/// What a device is and can do. Read once at load; never changes afterwards.
#[derive(Clone, Debug)]
pub struct DeviceInfo {
    /// Which implementation, for logs and `/v1/models`: `ggml`, `simulated`.
    pub kind: &'static str,
    /// Free text for the log: library build, CPU features, threads.
    pub description: String,
    /// Entries in one row of logits.
    pub vocab_size: usize,
    /// Tokens that one sequence can hold, prompt and answer together.
    pub context_tokens: u32,
    /// Tokens of context that the model was trained with; 0 where unknown.
    pub trained_context_tokens: u32,
    /// Sequences that can be held at once. Slots are `0..max_sequences`.
    pub max_sequences: u32,
    /// Tokens that all sequences can hold together: less than each of them full where they share a
    /// memory. At least `context_tokens`.
    pub kv_tokens: u64,
    /// Tokens in one step over all pieces; more is [`DeviceError::InvalidBatch`].
    pub max_batch_tokens: u32,
    /// What else it can do.
    pub capabilities: Capabilities,
    /// Whether a sequence's logits are the same bits whatever shares its batch.
    pub repeatable: Repeatable,
}

/// Optional abilities. A scheduler must do without those that are false.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// [`Device::trim`] works at any length.
    pub trim: bool,
    /// [`Device::copy`] works.
    pub copy: bool,
    /// [`Device::save_state`] and [`Device::load_state`] work.
    pub save_state: bool,
    /// The abort flag ends a running step early.
    pub abort: bool,
    /// Pieces of several lengths are computed together. Without it each length in a step costs a
    /// pass of its own.
    pub mixed_lengths: bool,
}

/// What is known of a device's repeatability: bit-equal logits for a sequence whatever shares
/// its batch, however its prompt was chunked, and whether tokens came one by one or as a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repeatable {
    /// The self-test at load proved it for this model, machine and thread count.
    Proven,
    /// The self-test found a difference; the text says in which case.
    Refuted(String),
    /// Not tested (`repeatable = "off"`).
    Untested,
}

/// A language model that can be stepped.
///
/// # Contract
/// * A sequence grows only through [`Device::step`], and each piece starts at the sequence's
///   present length.
/// * After an error other than [`DeviceError::NoRoom`] and [`DeviceError::InvalidBatch`] the state
///   of the sequences in that batch is unknown: release them.
/// * No call may abort the process: sizes are checked before a library that would is called.
pub trait Device: Send {
    /// What this device is and can do.
    fn info(&self) -> &DeviceInfo;

    /// Runs one step and writes the wanted rows into `rows`, in the order of the pieces and, in a
    /// piece, of its positions. `rows` comes in empty and with this device's vocabulary size.
    fn step(&mut self, batch: &StepBatch, rows: &mut Rows) -> Result<(), DeviceError>;

    /// Cuts a sequence back to its first `length_tokens` tokens.
    fn trim(&mut self, slot: Slot, length_tokens: u32) -> Result<(), DeviceError>;

    /// Makes `to` (released before) an equal of `from`.
    fn copy(&mut self, from: Slot, to: Slot) -> Result<(), DeviceError>;

    /// Saves a sequence as bytes that [`Device::load_state`] of the same model and build accepts.
    fn save_state(&mut self, slot: Slot) -> Result<Vec<u8>, DeviceError>;

    /// Restores a saved sequence into `slot` (released before).
    fn load_state(&mut self, slot: Slot, state: &[u8]) -> Result<(), DeviceError>;

    /// Forgets a sequence. Releasing an empty slot is fine.
    fn release(&mut self, slot: Slot);

    /// Forgets all sequences and rebuilds whatever a caught panic may have left half done.
    fn reset(&mut self) -> Result<(), DeviceError>;

    /// A flag that ends a running step early with [`DeviceError::Aborted`] when set to true, where
    /// the device can; [`Device::step`] clears it when it starts.
    fn abort_flag(&self) -> Arc<AtomicBool>;

    /// The tokens of `text` by the model library's own tokenizer, for the comparison at load.
    /// Special tokens in the text are parsed, none is added. `None`: it has no tokenizer.
    fn tokenize(&self, _text: &str) -> Option<Result<Vec<TokenId>, DeviceError>> {
        None
    }
}
