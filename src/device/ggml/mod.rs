//! The device that runs a GGUF model with llama.cpp's library (CPU always; GPUs and NPUs where the
//! library was built with their backends).
//!
//! Each sequence has its own stream of KV cells (`kv_unified = false`): steps are faster than with
//! shared cells, and a neighbour in the batch cannot change the order in which a sequence's sums
//! are taken.
//!
//! # Repeatable
//! Whether a row of logits has the same bits whatever shares its batch depends on the kernels that
//! the library picks by the shape of a batch. What is known of llama.cpp on CPUs:
//! * Fused (flash) attention splits a long context over the threads by the shape of the batch, so
//!   it is off in every mode that wants repeatable rows. In [`RepeatableMode::Off`] both ways are
//!   tried at load (`attention`): which is faster depends on machine, threads and contexts. With
//!   layers on a GPU the library decides.
//! * llamafile's matrix kernels do it too; the build leaves them out (`.cargo/config.toml`).
//! * For K-quants, the repacked weights and the tiled products of llama.cpp do it as well.
//!   [`RepeatableMode::On`] turns the tiled products off (the library reads that switch only once)
//!   and, where the test then still fails, loads again without repacking.
//!
//! What is claimed is what [`repeatability`] found at load, for this model, machine and thread
//! count.
//!
//! # Slots
//! The library computes sequences together only while their slots follow on each other: each gap
//! runs the model once more. Eight sequences in every other slot cost twice as much as in
//! neighbouring ones (161 ms of CPU time a step against 77). Whoever hands slots out should take
//! the lowest free one.
//!
//! # The library never ends the process
//! llama.cpp answers many mistakes with an assertion. Every step is checked first (`validate`),
//! saved states travel in an envelope (`state`), the size of the KV memory is compared with what
//! the machine has (`memory`), and `Device::copy` goes through a saved state, because the library
//! defers its own copy to the next step, where it would overwrite what was loaded in between.

mod attention;
mod batch;
mod context;
mod device;
mod features;
pub mod gguf;
mod library;
mod memory;
mod model;
mod quantize;
mod selftest;
pub mod shapes;
mod state;
mod threads;
mod validate;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

pub use device::GgmlDevice;
pub use features::cpu_warnings;
pub use quantize::{WeightType, quantize};
pub use selftest::repeatability;
pub use threads::default_threads;

/// What to load and how to run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GgmlSettings {
    /// The GGUF file (the first one of a split model).
    pub model: PathBuf,
    /// Tokens that one sequence can hold; 0: the lesser of what the model was trained with and
    /// 4096. More than it was trained with is refused.
    pub context_tokens: u32,
    /// Sequences held at once, 1 to 256.
    pub max_sequences: u32,
    /// Tokens in one step over all sequences, at least 1.
    pub max_batch_tokens: u32,
    /// Threads that compute a step; 0: [`default_threads`].
    pub threads: u32,
    /// How long a compute thread spins for the next step before it sleeps, in units of about 2 ms;
    /// 0: it sleeps at once.
    pub polling: u32,
    /// Whether rows must be the same bits whatever shares their batch.
    pub repeatable: RepeatableMode,
    /// Whether attention is computed fused.
    pub flash_attention: FlashAttention,
    /// Layers to place on a GPU, where the library was built with such a backend; negative: all.
    pub gpu_layers: i32,
}

impl GgmlSettings {
    /// The defaults for a model file: 8 sequences, 512 tokens a step, repeatable where it is cheap.
    pub fn new(model: impl Into<PathBuf>) -> Self {
        Self {
            model: model.into(),
            context_tokens: 0,
            max_sequences: 8,
            max_batch_tokens: 512,
            threads: 0,
            polling: 0,
            repeatable: RepeatableMode::Auto,
            flash_attention: FlashAttention::Auto,
            gpu_layers: -1,
        }
    }
}

/// `device.repeatable` of the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RepeatableMode {
    /// Take the repeatable profile where it costs at most a tenth more time, test it, and claim what
    /// the test proves; elsewhere as [`Self::Off`].
    #[default]
    Auto,
    /// Take the profile whatever it costs, and refuse to load where the test fails. Sets the
    /// environment variable `GGML_CPU_TILED_MM` to 0 unless it is set, see [`GgmlDevice::load`].
    On,
    /// The fastest; nothing is tested or claimed.
    Off,
}

/// `device.flash_attention` of the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlashAttention {
    /// Off where rows are repeatable; else what is found faster at load. With layers on a GPU
    /// the library decides.
    #[default]
    Auto,
    /// Wherever the library can; rows are then not repeatable on CPUs.
    On,
    /// Never.
    Off,
}
