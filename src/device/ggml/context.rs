//! A context: the KV memory of all sequences and the work space of a step.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use llama_cpp_sys_2 as sys;

use super::batch::Batch;
use super::library;
use super::memory;
use super::model::{Model, reason};
use super::threads::ThreadPool;
use crate::device::DeviceError;

/// What a context is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Tokens in one sequence.
    pub(super) context_tokens: u32,
    pub(super) max_sequences: u32,
    /// Tokens in one call of `decode`.
    pub(super) batch_tokens: u32,
    pub(super) threads: u32,
    /// Spinning between steps, see [`ThreadPool::new`].
    pub(super) polling: u32,
    /// Let the library use its fused attention where it thinks that faster.
    pub(super) flash_attention: bool,
}

impl Shape {
    /// Cells that the library gives a sequence: it rounds up to 256.
    pub(super) fn cells_per_sequence(&self) -> u64 {
        u64::from(self.context_tokens).next_multiple_of(256)
    }
}

/// How a call of `decode` ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decoded {
    Done,
    /// The KV memory had no room; nothing was changed.
    NoRoom,
    /// Ended by the abort flag; a part of the batch may have been taken.
    Aborted,
    /// The library refused the batch; nothing was changed.
    Refused,
    /// Failed with this code; a part of the batch may have been taken.
    Failed(i32),
}

pub(super) struct Context {
    raw: NonNull<sys::llama_context>,
    // The library holds pointers to all of these as long as `raw` lives.
    _model: Arc<Model>,
    _pool: ThreadPool,
    _abort: Arc<AtomicBool>,
}

// SAFETY: a context may be used from any thread, one at a time; `&mut self` sees to that.
unsafe impl Send for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: made by `llama_init_from_model`, freed once, before what it points to.
        unsafe { sys::llama_free(self.raw.as_ptr()) };
    }
}

unsafe extern "C" fn is_aborted(flag: *mut c_void) -> bool {
    // SAFETY: `Context::new` passes a flag that its `Arc` keeps alive as long as the context.
    unsafe { &*flag.cast::<AtomicBool>() }.load(Ordering::Relaxed)
}

impl Context {
    /// Makes a context whose steps `abort` ends early.
    pub(super) fn new(
        model: Arc<Model>,
        shape: &Shape,
        abort: Arc<AtomicBool>,
    ) -> Result<Self, DeviceError> {
        let pool = ThreadPool::new(shape.threads, shape.polling)?;
        let params = params(shape, &abort)?;
        let (raw, errors) = library::with_errors(|| {
            // SAFETY: the model is alive; the context keeps an `Arc` of it and of the flag.
            unsafe { sys::llama_init_from_model(model.as_ptr(), params) }
        });
        let Some(raw) = NonNull::new(raw) else {
            return Err(DeviceError::Load(format!(
                "llama.cpp cannot make room for {} sequences of {} tokens ({}): {}; lower \
                 max_sequences or context_tokens",
                shape.max_sequences,
                shape.context_tokens,
                memory::kv_text(&model, shape),
                reason(&errors)
            )));
        };
        let mut context = Self { raw, _model: model, _pool: pool, _abort: abort };
        let pool = context._pool.as_ptr();
        // SAFETY: both are alive, and the context is freed before the pool.
        unsafe { sys::llama_attach_threadpool(context.raw.as_ptr(), pool, pool) };
        if context.memory().is_null() {
            return Err(DeviceError::Load(
                "this model keeps no KV memory: take a model that writes text".to_owned(),
            ));
        }
        Ok(context)
    }

    /// The sequences' memory; null in models that have none (checked in `new`).
    fn memory(&mut self) -> sys::llama_memory_t {
        // SAFETY: the context is alive.
        unsafe { sys::llama_get_memory(self.raw.as_ptr()) }
    }

    /// Tokens that one call of [`Context::decode`] takes; more ends the process.
    pub(super) fn batch_tokens(&self) -> u32 {
        // SAFETY: the context is alive.
        unsafe { sys::llama_n_batch(self.raw.as_ptr()) }
    }

    /// Runs a batch. The caller has checked that it is not empty and has at most
    /// [`Context::batch_tokens`] tokens.
    pub(super) fn decode(&mut self, batch: &mut Batch) -> Decoded {
        // SAFETY: the arrays of the view have the length it states and live through the call,
        // which reads them and keeps nothing of them.
        match unsafe { sys::llama_decode(self.raw.as_ptr(), batch.raw()) } {
            0 => Decoded::Done,
            1 => Decoded::NoRoom,
            2 => Decoded::Aborted,
            -1 => Decoded::Refused,
            code => Decoded::Failed(code),
        }
    }

    /// The row of the token with this index in the last batch; `None` where it asked for none.
    pub(super) fn row(&mut self, index: usize, vocab_size: usize) -> Option<&[f32]> {
        let index = i32::try_from(index).ok()?;
        // SAFETY: the context is alive; null for an index without a row.
        let row = unsafe { sys::llama_get_logits_ith(self.raw.as_ptr(), index) };
        // SAFETY: a row has one value for each token of the vocabulary and stays where it is until
        // the next call that takes the context mutably, which the borrow prevents.
        NonNull::new(row).map(|row| unsafe { std::slice::from_raw_parts(row.as_ptr(), vocab_size) })
    }

    /// Forgets a sequence's positions from `from` on; false: the memory cannot be cut there.
    pub(super) fn remove(&mut self, sequence: u32, from: u32) -> bool {
        let memory = self.memory();
        // SAFETY: the memory of a live context; the caller has checked the sequence id.
        unsafe { sys::llama_memory_seq_rm(memory, sequence.cast_signed(), from.cast_signed(), -1) }
    }

    /// The first and the last position held of a sequence; `None`: it is empty.
    pub(super) fn positions(&mut self, sequence: u32) -> Option<(u32, u32)> {
        let (memory, sequence) = (self.memory(), sequence.cast_signed());
        // SAFETY: the memory of a live context; the caller has checked the sequence id.
        let first = unsafe { sys::llama_memory_seq_pos_min(memory, sequence) };
        // SAFETY: as above.
        let last = unsafe { sys::llama_memory_seq_pos_max(memory, sequence) };
        Some((u32::try_from(first).ok()?, u32::try_from(last).ok()?))
    }

    /// Appends the sequence's state to `bytes`; false: the library could not.
    pub(super) fn save(&mut self, sequence: u32, bytes: &mut Vec<u8>) -> bool {
        let (raw, sequence) = (self.raw.as_ptr(), sequence.cast_signed());
        // SAFETY: the context is alive and the caller has checked the sequence id.
        let size = unsafe { sys::llama_state_seq_get_size(raw, sequence) };
        let head = bytes.len();
        bytes.resize(head + size, 0);
        let Some(room) = bytes.get_mut(head..).filter(|room| !room.is_empty()) else {
            return false;
        };
        // SAFETY: as above; writes at most `room.len()` bytes.
        let written =
            unsafe { sys::llama_state_seq_get_data(raw, room.as_mut_ptr(), room.len(), sequence) };
        written == size
    }

    /// Puts a state that [`Context::save`] of an equal context gave into a sequence; false: the
    /// library refused it, and the sequence's content is unknown. The bytes must be known to be
    /// whole: the library writes them into its tensors unseen.
    pub(super) fn restore(&mut self, sequence: u32, bytes: &[u8]) -> bool {
        let (raw, sequence) = (self.raw.as_ptr(), sequence.cast_signed());
        // SAFETY: the context is alive, the caller has checked the sequence id; reads at most
        // `bytes.len()` bytes.
        let read =
            unsafe { sys::llama_state_seq_set_data(raw, bytes.as_ptr(), bytes.len(), sequence) };
        read == bytes.len()
    }
}

fn params(
    shape: &Shape,
    abort: &Arc<AtomicBool>,
) -> Result<sys::llama_context_params, DeviceError> {
    let cells = shape.cells_per_sequence() * u64::from(shape.max_sequences);
    let threads = i32::try_from(shape.threads).unwrap_or(i32::MAX);
    // SAFETY: fills in a plain struct.
    let mut params = unsafe { sys::llama_context_default_params() };
    params.n_ctx =
        u32::try_from(cells).ok().filter(|&cells| cells <= i32::MAX as u32).ok_or_else(|| {
            DeviceError::Load(format!(
                "{} sequences of {} tokens are more than llama.cpp can count: lower \
                 max_sequences or context_tokens",
                shape.max_sequences, shape.context_tokens
            ))
        })?;
    params.n_seq_max = shape.max_sequences;
    // One piece of work a call: a batch split in two would run the model twice.
    params.n_batch = shape.batch_tokens;
    params.n_ubatch = shape.batch_tokens;
    params.n_threads = threads;
    params.n_threads_batch = threads;
    // A stream of cells for each sequence: faster, and a neighbour cannot change the order of sums.
    params.kv_unified = false;
    // All cells of layers with a sliding window, so that a sequence can be cut back.
    params.swa_full = true;
    params.flash_attn_type = if shape.flash_attention {
        sys::LLAMA_FLASH_ATTN_TYPE_AUTO
    } else {
        sys::LLAMA_FLASH_ATTN_TYPE_DISABLED
    };
    params.no_perf = true;
    params.abort_callback = Some(is_aborted);
    params.abort_callback_data = Arc::as_ptr(abort).cast_mut().cast();
    Ok(params)
}
