//! A device without a model: a timing model, seeded or scripted tokens, and faults on demand. For
//! load tests with thousands of sessions, fault injection and demonstrations.
//!
//! Its tokens are the 256 bytes and a few control tokens. What it says next is
//! a function of the sequence so far, so it is repeatable whatever shares its batch.

mod sequence;
mod source;
mod tokens;

pub use source::TokenSource;
pub use tokens::{ASSISTANT, BOS, CHAT_TEMPLATE, CONTROL, END, TOKENS, USER};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{
    Capabilities, Device, DeviceError, DeviceInfo, Piece, Repeatable, Rows, Slot, StepBatch,
};
use sequence::Sequence;

/// Logit of the token that the source chose; all others have 0.
const CHOSEN_LOGIT: f32 = 16.0;

/// How the simulated device behaves.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedSettings {
    /// Tokens that one sequence can hold.
    pub context_tokens: u32,
    /// Sequences.
    pub max_sequences: u32,
    /// Tokens that all sequences hold together; 0: as many as all of them full.
    pub kv_tokens: u64,
    /// Tokens in a step.
    pub max_batch_tokens: u32,
    /// What it can do beside steps.
    pub capabilities: Capabilities,
    /// Logits in a row; at least [`TOKENS`].
    pub vocab_size: usize,
    /// Time of a step, whatever is in it.
    pub fixed: Duration,
    /// More for each token.
    pub per_token: Duration,
    /// More for each sequence.
    pub per_sequence: Duration,
    /// What it says.
    pub source: TokenSource,
    /// What goes wrong.
    pub faults: Vec<FaultPlan>,
    /// Every so manieth sequence that is to be loaded or copied cannot be; 0: all can.
    pub lost_restores: u64,
}

impl Default for SimulatedSettings {
    fn default() -> Self {
        Self {
            context_tokens: 4096,
            max_sequences: 8,
            kv_tokens: 0,
            max_batch_tokens: 512,
            capabilities: Capabilities {
                trim: true,
                copy: true,
                save_state: true,
                abort: true,
                mixed_lengths: true,
            },
            vocab_size: TOKENS,
            fixed: Duration::ZERO,
            per_token: Duration::ZERO,
            per_sequence: Duration::ZERO,
            source: TokenSource::Seeded(0),
            faults: Vec::new(),
            lost_restores: 0,
        }
    }
}

/// One fault.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultPlan {
    /// In which step first, counted from 1.
    pub at_step: u64,
    /// In how many steps from there on.
    pub steps: u64,
    /// What happens.
    pub fault: InjectedFault,
}

/// What goes wrong in a step.
#[derive(Clone, Debug, PartialEq)]
pub enum InjectedFault {
    /// The device panics.
    Panic,
    /// The step takes this much longer, or until it is aborted if that is set to work.
    Hang(Duration),
    /// The first row holds a NaN.
    NanRow,
    /// The last row lacks its last logit.
    ShortRow,
    /// The step fails with an error.
    Error,
    /// The device says that its memory is full.
    NoRoom,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct SimulatedDevice {
    settings: SimulatedSettings,
    info: DeviceInfo,
    sequences: Vec<Sequence>,
    steps: u64,
    restores: u64,
    abort: Arc<AtomicBool>,
}

impl SimulatedDevice {
    /// A device with no sequences.
    ///
    /// # Errors
    /// When a setting is zero or the vocabulary has less than its own tokens.
    pub fn new(settings: SimulatedSettings) -> Result<Self, DeviceError> {
        if settings.vocab_size < TOKENS {
            return Err(DeviceError::Load(format!(
                "the simulated device needs a vocabulary of at least {TOKENS} tokens, not {}",
                settings.vocab_size
            )));
        }
        if settings.max_sequences == 0
            || settings.context_tokens == 0
            || settings.max_batch_tokens == 0
        {
            return Err(DeviceError::Load(
                "the simulated device needs at least one sequence, one token of context and one \
                 token in a step"
                    .to_owned(),
            ));
        }
        let whole = u64::from(settings.context_tokens) * u64::from(settings.max_sequences);
        let kv_tokens = if settings.kv_tokens == 0 { whole } else { settings.kv_tokens.min(whole) };
        let context_tokens = u32::try_from(kv_tokens)
            .map_or(settings.context_tokens, |most| most.min(settings.context_tokens));
        let info = DeviceInfo {
            kind: "simulated",
            description: format!(
                "simulated device: {:?} a step, {:?} a token, {:?} a sequence",
                settings.fixed, settings.per_token, settings.per_sequence
            ),
            vocab_size: settings.vocab_size,
            context_tokens,
            trained_context_tokens: context_tokens,
            max_sequences: settings.max_sequences,
            kv_tokens,
            max_batch_tokens: settings.max_batch_tokens,
            capabilities: settings.capabilities,
            repeatable: Repeatable::Proven,
        };
        let sequences = vec![Sequence::default(); settings.max_sequences as usize];
        Ok(Self { settings, info, sequences, steps: 0, restores: 0, abort: Arc::default() })
    }

    fn check(&self, batch: &StepBatch) -> Result<(), DeviceError> {
        let invalid = |reason: String| Err(DeviceError::InvalidBatch(reason));
        if batch.pieces.is_empty() || batch.token_count() > self.info.max_batch_tokens as usize {
            return invalid(format!("{} tokens in the step", batch.token_count()));
        }
        for piece in &batch.pieces {
            let slot = piece.slot;
            let Some(sequence) = self.sequences.get(slot.0 as usize) else {
                return invalid(format!("{slot} does not exist"));
            };
            let end = piece.start as usize + piece.tokens.len();
            if piece.start as usize != sequence.len() || end > self.info.context_tokens as usize {
                return invalid(format!("{slot}: a piece at {} to {end}", piece.start));
            }
            if piece.tokens.is_empty() || piece.rows_wanted as usize > piece.tokens.len() {
                return invalid(format!("{slot}: {} rows wanted", piece.rows_wanted));
            }
            if piece.tokens.iter().any(|&token| token as usize >= self.info.vocab_size) {
                return invalid(format!("{slot}: a token outside the vocabulary"));
            }
        }
        let held: usize = self.sequences.iter().map(Sequence::len).sum();
        match held + batch.token_count()
            > usize::try_from(self.info.kv_tokens).unwrap_or(usize::MAX)
        {
            true => Err(DeviceError::NoRoom),
            false => Ok(()),
        }
    }

    /// Counts a sequence that is brought back; an error when it is one of those that cannot be.
    fn count_restore(&mut self, slot: Slot) -> Result<(), DeviceError> {
        self.restores += 1;
        let every = self.settings.lost_restores;
        if every > 0 && self.restores.is_multiple_of(every) {
            let reason = "a fault was planned for this sequence".to_owned();
            return Err(DeviceError::Sequence { slot, reason });
        }
        Ok(())
    }

    fn run(&mut self, piece: &Piece, rows: &mut Rows) {
        let first_wanted = piece.tokens.len() - piece.rows_wanted as usize;
        let Some(sequence) = self.sequences.get_mut(piece.slot.0 as usize) else { return };
        let mut row = vec![0.0; self.settings.vocab_size];
        for (index, &token) in piece.tokens.iter().enumerate() {
            sequence.push(token, &self.settings.source);
            if index >= first_wanted {
                let chosen = self.settings.source.choose(&sequence.state) as usize;
                row[chosen] = CHOSEN_LOGIT;
                rows.push(&row);
                row[chosen] = 0.0;
            }
        }
    }

    /// Passes the time of a step; an abort ends it early.
    fn pass_time(&self, time: Duration) -> Result<(), DeviceError> {
        const SLICE: Duration = Duration::from_millis(2);
        let end = Instant::now() + time;
        loop {
            if self.abort.load(Ordering::Acquire) {
                return Err(DeviceError::Aborted);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(SLICE));
        }
    }

    fn cost(&self, batch: &StepBatch) -> Duration {
        let tokens = u32::try_from(batch.token_count()).unwrap_or(u32::MAX);
        let sequences = u32::try_from(batch.pieces.len()).unwrap_or(u32::MAX);
        self.settings.fixed
            + self.settings.per_token.saturating_mul(tokens)
            + self.settings.per_sequence.saturating_mul(sequences)
    }

    fn planned_fault(&self) -> Option<InjectedFault> {
        let due = |plan: &&FaultPlan| {
            self.steps.checked_sub(plan.at_step).is_some_and(|since| since < plan.steps)
        };
        let plan = self.settings.faults.iter().find(due)?;
        Some(plan.fault.clone())
    }

    /// Puts a sequence into an empty slot.
    fn fill(&mut self, slot: Slot, sequence: Sequence) -> Result<(), DeviceError> {
        let place = self.slot_mut(slot)?;
        if place.len() > 0 {
            let reason = format!("it holds {} tokens: release it first", place.len());
            return Err(DeviceError::Sequence { slot, reason });
        }
        *place = sequence;
        Ok(())
    }

    fn slot_mut(&mut self, slot: Slot) -> Result<&mut Sequence, DeviceError> {
        self.sequences.get_mut(slot.0 as usize).ok_or_else(|| DeviceError::Sequence {
            slot,
            reason: "there is no such slot".to_owned(),
        })
    }
}

impl Device for SimulatedDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn step(&mut self, batch: &StepBatch, rows: &mut Rows) -> Result<(), DeviceError> {
        self.abort.store(false, Ordering::Release);
        self.check(batch)?;
        self.steps += 1;
        let fault = self.planned_fault();
        self.pass_time(self.cost(batch))?;
        match &fault {
            Some(InjectedFault::Panic) => inject_panic(self.steps),
            Some(InjectedFault::Hang(time)) => self.pass_time(*time)?,
            Some(InjectedFault::Error) => {
                return Err(DeviceError::Fatal("a fault was planned for this step".to_owned()));
            }
            Some(InjectedFault::NoRoom) => return Err(DeviceError::NoRoom),
            Some(InjectedFault::NanRow | InjectedFault::ShortRow) | None => {}
        }
        for piece in &batch.pieces {
            self.run(piece, rows);
        }
        match fault {
            Some(InjectedFault::NanRow) => rows.replace_logit(0, f32::NAN),
            Some(InjectedFault::ShortRow) => rows.pop_logit(),
            _ => {}
        }
        Ok(())
    }

    fn trim(&mut self, slot: Slot, length_tokens: u32) -> Result<(), DeviceError> {
        if !self.settings.capabilities.trim {
            return Err(DeviceError::Unsupported("cut a sequence back"));
        }
        let mut sequence = std::mem::take(self.slot_mut(slot)?);
        let (length, wanted) = (sequence.len(), length_tokens as usize);
        if wanted <= length {
            sequence.trim(wanted, &self.settings.source);
        }
        *self.slot_mut(slot)? = sequence;
        if wanted > length {
            let reason = format!("{length} tokens cannot be cut back to {wanted}");
            return Err(DeviceError::Sequence { slot, reason });
        }
        Ok(())
    }

    fn copy(&mut self, from: Slot, to: Slot) -> Result<(), DeviceError> {
        if !self.settings.capabilities.copy {
            return Err(DeviceError::Unsupported("copy a sequence"));
        }
        self.count_restore(to)?;
        let source = self.slot_mut(from)?.clone();
        self.fill(to, source)
    }

    fn save_state(&mut self, slot: Slot) -> Result<Vec<u8>, DeviceError> {
        if !self.settings.capabilities.save_state {
            return Err(DeviceError::Unsupported("save a sequence"));
        }
        Ok(self.slot_mut(slot)?.save())
    }

    fn load_state(&mut self, slot: Slot, state: &[u8]) -> Result<(), DeviceError> {
        if !self.settings.capabilities.save_state {
            return Err(DeviceError::Unsupported("load a sequence"));
        }
        self.count_restore(slot)?;
        match Sequence::load(state, &self.settings.source) {
            Some(sequence) => self.fill(slot, sequence),
            None => {
                let reason = "these bytes are not a saved sequence".to_owned();
                Err(DeviceError::Sequence { slot, reason })
            }
        }
    }

    fn release(&mut self, slot: Slot) {
        if let Some(sequence) = self.sequences.get_mut(slot.0 as usize) {
            *sequence = Sequence::default();
        }
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        self.sequences.fill(Sequence::default());
        Ok(())
    }

    fn abort_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.abort)
    }
}

#[allow(clippy::panic, reason = "the fault that is to be injected is a panic")]
fn inject_panic(step: u64) {
    panic!("a panic was planned for step {step}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TokenId;

    fn device(settings: SimulatedSettings) -> SimulatedDevice {
        SimulatedDevice::new(settings).unwrap()
    }

    fn step(
        device: &mut SimulatedDevice,
        slot: u32,
        start: u32,
        text: &[u8],
    ) -> Result<Rows, DeviceError> {
        let mut rows = Rows::new(device.info.vocab_size, 1);
        let tokens = text.iter().map(|&byte| TokenId::from(byte)).collect();
        let piece = Piece { slot: Slot(slot), start, tokens, rows_wanted: 1 };
        device.step(&StepBatch { pieces: vec![piece] }, &mut rows)?;
        Ok(rows)
    }

    fn best(rows: &Rows) -> TokenId {
        let row = rows.get(0).unwrap();
        (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap() as TokenId
    }

    #[test]
    fn a_script_is_said_and_ends() {
        let source = TokenSource::script("ab");
        let mut device = device(SimulatedSettings { source, ..Default::default() });
        assert_eq!(best(&step(&mut device, 0, 0, b"hello").unwrap()), TokenId::from(b'a'));
        assert_eq!(best(&step(&mut device, 0, 5, b"a").unwrap()), TokenId::from(b'b'));
        assert_eq!(best(&step(&mut device, 0, 6, b"b").unwrap()), END);
    }

    #[test]
    fn seeded_tokens_depend_on_the_sequence_alone() {
        let mut device = device(SimulatedSettings::default());
        let whole = step(&mut device, 0, 0, b"some prompt").unwrap();
        step(&mut device, 1, 0, b"some").unwrap();
        let chunked = step(&mut device, 1, 4, b" prompt").unwrap();
        assert_eq!(best(&whole), best(&chunked));
    }

    #[test]
    fn a_piece_that_does_not_continue_its_sequence_is_refused() {
        let mut device = device(SimulatedSettings::default());
        assert!(matches!(step(&mut device, 0, 3, b"x"), Err(DeviceError::InvalidBatch(_))));
        assert!(matches!(step(&mut device, 99, 0, b"x"), Err(DeviceError::InvalidBatch(_))));
        assert!(matches!(step(&mut device, 0, 0, b""), Err(DeviceError::InvalidBatch(_))));
    }

    #[test]
    fn sequences_that_share_a_memory_fill_it_together() {
        let settings = SimulatedSettings { kv_tokens: 6, max_sequences: 2, ..Default::default() };
        let mut device = device(settings);
        assert_eq!((device.info().kv_tokens, device.info().context_tokens), (6, 6));
        step(&mut device, 0, 0, b"some").unwrap();
        assert!(matches!(step(&mut device, 1, 0, b"more"), Err(DeviceError::NoRoom)));
        step(&mut device, 1, 0, b"mo").unwrap();
        device.release(Slot(0));
        step(&mut device, 1, 2, b"re").unwrap();
    }

    #[test]
    fn a_sequence_that_is_brought_back_says_what_the_original_says() {
        let mut device = device(SimulatedSettings { lost_restores: 3, ..Default::default() });
        step(&mut device, 0, 0, b"some prompt").unwrap();
        let state = device.save_state(Slot(0)).unwrap();
        device.copy(Slot(0), Slot(1)).unwrap();
        device.load_state(Slot(2), &state).unwrap();
        assert!(device.copy(Slot(0), Slot(3)).is_err(), "a fault was planned");
        assert!(device.copy(Slot(0), Slot(2)).is_err(), "it is not empty");
        let whole = step(&mut device, 0, 11, b"x").unwrap();
        for slot in [1, 2] {
            device.trim(Slot(slot), 4).unwrap();
            assert!(device.trim(Slot(slot), 5).is_err());
            assert_eq!(best(&step(&mut device, slot, 4, b" promptx").unwrap()), best(&whole));
        }
    }

    #[test]
    fn planned_faults_come_at_their_step() {
        let faults = vec![
            FaultPlan { at_step: 1, steps: 1, fault: InjectedFault::Error },
            FaultPlan { at_step: 2, steps: 1, fault: InjectedFault::NanRow },
            FaultPlan { at_step: 3, steps: 1, fault: InjectedFault::ShortRow },
        ];
        let mut device = device(SimulatedSettings { faults, ..Default::default() });
        assert!(matches!(step(&mut device, 0, 0, b"x"), Err(DeviceError::Fatal(_))));
        assert!(step(&mut device, 0, 0, b"x").unwrap().get(0).unwrap()[0].is_nan());
        assert!(!step(&mut device, 0, 1, b"x").unwrap().is_whole(1));
        assert!(step(&mut device, 0, 2, b"x").unwrap().is_whole(1));
    }
}
