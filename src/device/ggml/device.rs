//! [`GgmlDevice`]: the library behind the trait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::batch::Batch;
use super::context::{Context, Decoded, Shape};
use super::features::cpu_warnings;
use super::model::{Model, Placement};
use super::validate::{self, Held, Limits};
use super::{
    FlashAttention, GgmlSettings, RepeatableMode, attention, library, memory, selftest, state,
    threads,
};
use crate::TokenId;
use crate::device::{
    Capabilities, Device, DeviceError, DeviceInfo, Repeatable, Rows, Slot, StepBatch,
};

/// A GGUF model on llama.cpp's library.
pub struct GgmlDevice {
    info: DeviceInfo,
    shape: Shape,
    /// Whose saved states this device takes.
    fingerprint: u64,
    sliding_window: u32,
    held: Vec<Held>,
    batch: Batch,
    abort: Arc<AtomicBool>,
    /// `None` after a `reset` that failed.
    context: Option<Context>,
    model: Arc<Model>,
}

/// Context where neither the settings nor the model say: a KV memory that most machines have.
const DEFAULT_CONTEXT_TOKENS: u32 = 4096;

/// Share of the progress that goes to the file; the self-test takes the rest.
const LOAD_SHARE: f32 = 0.7;

impl GgmlDevice {
    /// Loads a model. `progress` hears fractions from 0 to 1 (twice, when a first profile turns
    /// out not to be repeatable); when it returns false the load ends with an error within a
    /// moment.
    ///
    /// With [`RepeatableMode::On`] this may set an environment variable: call it before threads
    /// run that read the environment from C.
    ///
    /// # Errors
    /// [`DeviceError::Load`], whose text says what to do: the file is missing, no GGUF or
    /// truncated, the context is longer than the model was trained with, the KV memory does not
    /// fit, or repeatable rows were required and are not to be had.
    pub fn load(
        settings: &GgmlSettings,
        progress: &mut dyn FnMut(f32) -> bool,
    ) -> Result<Self, DeviceError> {
        library::start()?;
        for warning in cpu_warnings() {
            tracing::warn!(target: "ggml", "{warning}");
        }
        match settings.repeatable {
            RepeatableMode::On => Self::open_repeatable(settings, progress),
            RepeatableMode::Auto => Self::open_repeatable_if_cheap(settings, progress),
            RepeatableMode::Off => Self::open_fastest(settings, progress),
        }
    }

    /// Rows are the same bits in any company, whatever that costs.
    fn open_repeatable(
        settings: &GgmlSettings,
        progress: &mut dyn FnMut(f32) -> bool,
    ) -> Result<Self, DeviceError> {
        avoid_tiled_products();
        let mut device = Self::open(settings, true, &mut |part| progress(part * LOAD_SHARE))?;
        device.test(progress)?;
        let Repeatable::Refuted(case) = &device.info.repeatable else { return Ok(device) };
        tracing::info!(target: "ggml", "loading again without repacked weights: {case}");
        drop(device);
        let mut device = Self::open(settings, false, &mut |part| progress(part * LOAD_SHARE))?;
        device.test(progress)?;
        match &device.info.repeatable {
            Repeatable::Refuted(case) => Err(DeviceError::Load(format!(
                "repeatable = \"on\", but {}: {case}; take a Q4_0, Q4_1 or Q8_0 file of the model, \
                 or set repeatable = \"auto\"",
                settings.model.display()
            ))),
            Repeatable::Proven | Repeatable::Untested => Ok(device),
        }
    }

    /// The same where it costs little. Else nothing is promised, and attention is computed in the
    /// faster way.
    fn open_repeatable_if_cheap(
        settings: &GgmlSettings,
        progress: &mut dyn FnMut(f32) -> bool,
    ) -> Result<Self, DeviceError> {
        let mut device = Self::open(settings, true, &mut |part| progress(part * LOAD_SHARE))?;
        let mut times = device.try_attention(settings, progress)?;
        // Before the promise is given up for it: a busy neighbour is not the same twice.
        if let Some(first) = times.filter(|first| !first.plain_costs_little()) {
            times = device.try_attention(settings, progress)?.map(|second| first.least(second));
        }
        if times.is_some_and(|times| !times.plain_costs_little()) {
            tracing::info!(
                target: "ggml",
                "rows of logits are not repeatable here, which would cost too much time: set \
                 repeatable = \"on\" for it"
            );
            device.set_flash_attention(settings, true)?;
            return Ok(device);
        }
        device.test(progress)?;
        if let Repeatable::Refuted(case) = &device.info.repeatable {
            tracing::info!(target: "ggml", "rows of logits are not repeatable here: {case}");
            if times.is_some_and(|times| times.is_fused_faster()) {
                device.set_flash_attention(settings, true)?;
            }
        }
        Ok(device)
    }

    /// Nothing is promised of its rows, so attention is computed in whichever way takes less time.
    fn open_fastest(
        settings: &GgmlSettings,
        progress: &mut dyn FnMut(f32) -> bool,
    ) -> Result<Self, DeviceError> {
        let mut device = Self::open(settings, true, &mut |part| progress(part * LOAD_SHARE))?;
        if device.try_attention(settings, progress)?.is_some_and(|times| times.is_fused_faster()) {
            device.set_flash_attention(settings, true)?;
        }
        Ok(device)
    }

    /// What either way to compute attention takes, if there is a choice; leaves the plain one.
    fn try_attention(
        &mut self,
        settings: &GgmlSettings,
        progress: &mut dyn FnMut(f32) -> bool,
    ) -> Result<Option<attention::Times>, DeviceError> {
        let is_free = settings.flash_attention == FlashAttention::Auto;
        if !is_free || library::offloads(settings.gpu_layers) {
            return Ok(None);
        }
        let mut cost = |device: &mut Self| match progress(LOAD_SHARE) {
            true => attention::cost(device),
            false => Err(DeviceError::cancelled()),
        };
        let plain = cost(self)?;
        self.set_flash_attention(settings, true)?;
        let fused = cost(self)?;
        self.set_flash_attention(settings, false)?;
        tracing::info!(target: "ggml", "{plain:.1?} without flash attention, {fused:.1?} with");
        Ok(Some(attention::Times { plain, fused }))
    }

    /// Changes how attention is computed. What was held or saved is lost.
    fn set_flash_attention(
        &mut self,
        settings: &GgmlSettings,
        flash_attention: bool,
    ) -> Result<(), DeviceError> {
        self.shape.flash_attention = flash_attention;
        self.reset()?;
        self.info.description = description(&self.model, &self.shape);
        self.fingerprint = fingerprint(settings, &self.shape, &self.info)?;
        Ok(())
    }

    /// Finds out whether its rows are repeatable.
    fn test(&mut self, progress: &mut dyn FnMut(f32) -> bool) -> Result<(), DeviceError> {
        self.info.repeatable =
            selftest::watched(self, &mut |part| progress(LOAD_SHARE + part * (1.0 - LOAD_SHARE)))?;
        Ok(())
    }

    fn open(
        settings: &GgmlSettings,
        repack: bool,
        progress: &mut dyn FnMut(f32) -> bool,
    ) -> Result<Self, DeviceError> {
        let placement = Placement { gpu_layers: settings.gpu_layers, repack };
        let model = Arc::new(Model::load(&settings.model, placement, progress)?);
        let shape = shape(settings, &model)?;
        if !library::offloads(settings.gpu_layers) {
            memory::check_room(&model, &shape)?;
        }
        let abort = Arc::new(AtomicBool::new(false));
        let mut context = Context::new(Arc::clone(&model), &shape, Arc::clone(&abort))?;
        let trim = can_trim(&mut context)? && !model.is_recurrent();
        let info = info(settings, &model, &shape, &context, trim);
        let fingerprint = fingerprint(settings, &shape, &info)?;
        Ok(Self {
            held: vec![Held::Tokens(0); shape.max_sequences as usize],
            batch: Batch::default(),
            sliding_window: model.sliding_window(),
            info,
            shape,
            fingerprint,
            abort,
            context: Some(context),
            model,
        })
    }

    /// Writes the pieces into the library's form, in the order of their slots: only neighbours in
    /// that order are computed together. Returns, for each piece, the index of its first token.
    fn lay_out(&mut self, batch: &StepBatch) -> Vec<usize> {
        let mut order: Vec<usize> = (0..batch.pieces.len()).collect();
        order.sort_by_key(|&index| batch.pieces.get(index).map(|piece| piece.slot));
        let mut firsts = vec![0; batch.pieces.len()];
        self.batch.clear();
        for index in order {
            let Some(piece) = batch.pieces.get(index) else { continue };
            if let Some(first) = firsts.get_mut(index) {
                *first = self.batch.len();
            }
            let silent = piece.tokens.len() - piece.rows_wanted as usize;
            for (offset, (&token, position)) in piece.tokens.iter().zip(piece.start..).enumerate() {
                self.batch.push(token, position, piece.slot.0, offset >= silent);
            }
        }
        firsts
    }

    /// Copies the wanted rows, in the order of the pieces.
    fn collect(
        &mut self,
        batch: &StepBatch,
        firsts: &[usize],
        rows: &mut Rows,
    ) -> Result<(), DeviceError> {
        let context = alive(&mut self.context)?;
        for (piece, first) in batch.pieces.iter().zip(firsts) {
            let count = piece.tokens.len();
            for offset in count - piece.rows_wanted as usize..count {
                let row = context.row(first + offset, self.info.vocab_size).ok_or_else(|| {
                    DeviceError::Fatal(format!("{} got no row of logits", piece.slot))
                })?;
                rows.push(row);
            }
        }
        Ok(())
    }

    /// After a step that failed half way nobody knows how far its sequences came.
    fn lose(&mut self, batch: &StepBatch) {
        for piece in &batch.pieces {
            self.set_held(piece.slot, Held::Unknown);
        }
    }

    fn set_held(&mut self, slot: Slot, value: Held) {
        if let Some(held) = self.held.get_mut(slot.0 as usize) {
            *held = value;
        }
    }

    /// An empty slot, to be filled by `copy` or `load_state`.
    fn check_empty(&self, slot: Slot) -> Result<(), DeviceError> {
        match validate::length(&self.held, slot)? {
            0 => Ok(()),
            tokens => Err(DeviceError::Sequence {
                slot,
                reason: format!("it holds {tokens} tokens: release it first"),
            }),
        }
    }

    /// Puts the library's own bytes into an empty slot.
    fn restore(&mut self, slot: Slot, length: u32, bytes: &[u8]) -> Result<(), DeviceError> {
        if length > self.info.context_tokens {
            return Err(DeviceError::Sequence {
                slot,
                reason: format!("{length} saved tokens are more than {}", self.info.context_tokens),
            });
        }
        if length == 0 {
            return Ok(());
        }
        let context = alive(&mut self.context)?;
        let last = length - 1;
        let restored = context.restore(slot.0, bytes)
            && context.positions(slot.0).is_some_and(|(_, position)| position == last);
        if !restored {
            context.remove(slot.0, 0);
            return Err(DeviceError::Sequence {
                slot,
                reason: "the library cannot restore the saved sequence".to_owned(),
            });
        }
        self.set_held(slot, Held::Tokens(length));
        Ok(())
    }
}

impl Device for GgmlDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn step(&mut self, batch: &StepBatch, rows: &mut Rows) -> Result<(), DeviceError> {
        self.abort.store(false, Ordering::Relaxed);
        let limits = Limits {
            vocab_size: self.info.vocab_size,
            context_tokens: self.info.context_tokens,
            max_batch_tokens: self.info.max_batch_tokens,
        };
        validate::check(batch, rows, &self.held, &limits)?;
        let firsts = self.lay_out(batch);
        match alive(&mut self.context)?.decode(&mut self.batch) {
            Decoded::Done => {}
            Decoded::NoRoom => return Err(DeviceError::NoRoom),
            Decoded::Refused => {
                return Err(DeviceError::InvalidBatch("the library refused it".to_owned()));
            }
            Decoded::Aborted => {
                self.lose(batch);
                return Err(DeviceError::Aborted);
            }
            Decoded::Failed(code) => {
                self.lose(batch);
                return Err(DeviceError::Fatal(format!("llama_decode returned {code}")));
            }
        }
        for piece in &batch.pieces {
            let length = piece.start + u32::try_from(piece.tokens.len()).unwrap_or(u32::MAX);
            self.set_held(piece.slot, Held::Tokens(length));
        }
        self.collect(batch, &firsts, rows).inspect_err(|_| self.lose(batch))
    }

    fn trim(&mut self, slot: Slot, length_tokens: u32) -> Result<(), DeviceError> {
        let length = validate::length(&self.held, slot)?;
        let refuse = |reason: String| Err(DeviceError::Sequence { slot, reason });
        if length_tokens > length {
            return refuse(format!("{length} tokens cannot be cut back to {length_tokens}"));
        }
        if length_tokens == length {
            return Ok(());
        }
        if length_tokens == 0 {
            self.release(slot);
            return Ok(());
        }
        if !self.info.capabilities.trim {
            return Err(DeviceError::Unsupported("cut a sequence back"));
        }
        let context = alive(&mut self.context)?;
        // A saved sequence keeps of a layer with a sliding window only the window.
        let first = context.positions(slot.0).map_or(0, |(first, _)| first);
        if first > 0 && first + self.sliding_window > length_tokens + 1 {
            return refuse(format!(
                "it was restored from a saved state, which cannot be cut back to {length_tokens} \
                 tokens: compute it anew"
            ));
        }
        if !context.remove(slot.0, length_tokens) {
            return refuse(format!("the library cannot cut it back to {length_tokens} tokens"));
        }
        self.set_held(slot, Held::Tokens(length_tokens));
        Ok(())
    }

    fn copy(&mut self, from: Slot, to: Slot) -> Result<(), DeviceError> {
        let length = validate::length(&self.held, from)?;
        self.check_empty(to)?;
        if length == 0 {
            return Ok(());
        }
        let mut bytes = Vec::new();
        if !alive(&mut self.context)?.save(from.0, &mut bytes) {
            return Err(unsaved(from));
        }
        self.restore(to, length, &bytes)
    }

    fn save_state(&mut self, slot: Slot) -> Result<Vec<u8>, DeviceError> {
        let length = validate::length(&self.held, slot)?;
        let mut bytes = state::open(self.fingerprint, length);
        if length > 0 && !alive(&mut self.context)?.save(slot.0, &mut bytes) {
            return Err(unsaved(slot));
        }
        state::seal(&mut bytes);
        Ok(bytes)
    }

    fn load_state(&mut self, slot: Slot, state: &[u8]) -> Result<(), DeviceError> {
        self.check_empty(slot)?;
        let (length, bytes) = state::read(state, self.fingerprint)
            .map_err(|reason| DeviceError::Sequence { slot, reason: reason.to_owned() })?;
        self.restore(slot, length, bytes)
    }

    fn release(&mut self, slot: Slot) {
        let Some(held) = self.held.get_mut(slot.0 as usize) else { return };
        if *held == Held::Tokens(0) {
            return;
        }
        *held = Held::Tokens(0);
        if let Some(context) = &mut self.context {
            // A whole sequence can always be removed.
            context.remove(slot.0, 0);
        }
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        // The old one first: there may not be room for two.
        self.context = None;
        self.held.fill(Held::Tokens(0));
        let context = Context::new(Arc::clone(&self.model), &self.shape, Arc::clone(&self.abort))?;
        self.context = Some(context);
        Ok(())
    }

    fn abort_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.abort)
    }

    fn tokenize(&self, text: &str) -> Option<Result<Vec<TokenId>, DeviceError>> {
        self.model.tokenize(text)
    }
}

fn alive(context: &mut Option<Context>) -> Result<&mut Context, DeviceError> {
    context.as_mut().ok_or_else(|| DeviceError::Fatal("its last reset failed".to_owned()))
}

fn unsaved(slot: Slot) -> DeviceError {
    DeviceError::Sequence { slot, reason: "the library cannot save it".to_owned() }
}

/// The settings against the model: defaults filled in, limits checked.
fn shape(settings: &GgmlSettings, model: &Model) -> Result<Shape, DeviceError> {
    let refuse = |text: String| Err(DeviceError::Load(text));
    let trained = model.trained_context_tokens();
    let context_tokens = match (settings.context_tokens, trained) {
        (0, 0) => DEFAULT_CONTEXT_TOKENS,
        (0, trained) => trained.min(DEFAULT_CONTEXT_TOKENS),
        (asked, 1..) if asked > trained => {
            return refuse(format!(
                "context_tokens is {asked}, but the model was trained with {trained}: set at most \
                 that, or 0"
            ));
        }
        (asked, _) => asked,
    };
    let most = library::max_sequences();
    if !(1..=most).contains(&settings.max_sequences) {
        return refuse(format!("max_sequences is {}: set 1 to {most}", settings.max_sequences));
    }
    if !(1..=1 << 20).contains(&settings.max_batch_tokens) {
        return refuse(format!(
            "max_batch_tokens is {}: set 1 to {}",
            settings.max_batch_tokens,
            1 << 20
        ));
    }
    Ok(Shape {
        context_tokens,
        max_sequences: settings.max_sequences,
        batch_tokens: settings.max_batch_tokens,
        threads: if settings.threads == 0 { threads::default_threads() } else { settings.threads },
        polling: settings.polling,
        flash_attention: match settings.flash_attention {
            FlashAttention::On => true,
            FlashAttention::Off => false,
            FlashAttention::Auto => {
                settings.repeatable == RepeatableMode::Off && library::offloads(settings.gpu_layers)
            }
        },
    })
}

fn info(
    settings: &GgmlSettings,
    model: &Model,
    shape: &Shape,
    context: &Context,
    trim: bool,
) -> DeviceInfo {
    DeviceInfo {
        kind: "ggml",
        description: description(model, shape),
        vocab_size: model.vocab_size(),
        context_tokens: shape.context_tokens,
        trained_context_tokens: model.trained_context_tokens(),
        max_sequences: shape.max_sequences,
        kv_tokens: u64::from(shape.context_tokens) * u64::from(shape.max_sequences),
        max_batch_tokens: settings.max_batch_tokens.min(context.batch_tokens()),
        capabilities: Capabilities {
            trim,
            copy: true,
            save_state: true,
            abort: true,
            // With memory for each sequence the library cuts a batch into parts of one length.
            mixed_lengths: false,
        },
        repeatable: Repeatable::Untested,
    }
}

fn description(model: &Model, shape: &Shape) -> String {
    format!(
        "{} on llama.cpp {}: {} threads, {}, flash attention {}; {}",
        model.description(),
        library::version(),
        shape.threads,
        memory::kv_text(model, shape),
        if shape.flash_attention { "where it can" } else { "off" },
        library::system_info().trim_end_matches([' ', '|'])
    )
}

fn fingerprint(
    settings: &GgmlSettings,
    shape: &Shape,
    info: &DeviceInfo,
) -> Result<u64, DeviceError> {
    let texts = [library::version(), info.description.clone()];
    let numbers = [u64::from(shape.max_sequences), shape.cells_per_sequence()];
    state::fingerprint(&settings.model, &texts.each_ref().map(String::as_str), &numbers).map_err(
        |error| DeviceError::Load(format!("{} cannot be read: {error}", settings.model.display())),
    )
}

/// Two tokens of one sequence, and an attempt to take the second one back: the one way to learn
/// whether this model's memory can be cut. It also warms the weights up.
fn can_trim(context: &mut Context) -> Result<bool, DeviceError> {
    let mut batch = Batch::default();
    for position in 0..2 {
        batch.clear();
        batch.push(0, position, 0, true);
        match context.decode(&mut batch) {
            Decoded::Done => {}
            other => {
                return Err(DeviceError::Load(format!(
                    "a first step of the model failed: {other:?}"
                )));
            }
        }
    }
    let cut = context.remove(0, 1);
    context.remove(0, 0);
    Ok(cut)
}

/// K-quants have a matrix kernel of their own, which gives a row other bits in another batch. The
/// library reads this switch at its first step and never again.
fn avoid_tiled_products() {
    const SWITCH: &str = "GGML_CPU_TILED_MM";
    if std::env::var_os(SWITCH).is_none() {
        // SAFETY: `GgmlDevice::load` asks its caller that no other thread reads the environment
        // from C meanwhile; Rust's own readers are kept out by the standard library's lock.
        unsafe { std::env::set_var(SWITCH, "0") };
    }
}
