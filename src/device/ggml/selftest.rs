//! The test behind [`Repeatable`]: the same tokens by different ways, the rows compared bit by bit.

use crate::TokenId;
use crate::device::{Device, DeviceError, Piece, Repeatable, Rows, Slot, StepBatch};

/// Tokens of the prompt of the short cases.
const PROMPT: usize = 24;
/// Tokens after it.
const ANSWER: usize = 8;
/// Chunks into which the prompt is cut; the rest is the last.
const ODD_CHUNKS: [usize; 5] = [1, 2, 3, 1, 5];
/// Sequences in the batch, one for each token of the answer; cut to what the device has.
const WIDTHS: [usize; ANSWER] = [2, 3, 4, 5, 7, 8, 9, usize::MAX];
/// Sequences that take part, at most.
const MAX_SLOTS: usize = 32;
/// Context lengths at which kernels are known to change their ways.
const BOUNDARIES: [usize; 2] = [256, 512];
/// Chunks of a prompt as a scheduler cuts them, up to the first of these; the rest is the last.
const STEP_CHUNKS: [usize; 5] = [16, 64, 7, 41, 96];
/// How far before a boundary the ways part, and how far behind it they end.
const BEFORE: usize = 12;
const BEHIND: usize = 3;

/// Tests whether a sequence's rows of logits are the same bits alone and in company, in another
/// slot, with the prompt in one piece and in odd ones, and with tokens one by one and as a run;
/// with short contexts and, where the device's is long enough, across 256 and 512 tokens.
///
/// The device must be empty and is left empty. At most 32 sequences take part. Costs about 1,200
/// tokens' worth of prefill: one to four seconds for a model of 135 million weights on two cores.
///
/// # Errors
/// What a step returned. A difference is no error but [`Repeatable::Refuted`], which names the
/// case.
pub fn repeatability(device: &mut dyn Device) -> Result<Repeatable, DeviceError> {
    watched(device, &mut |_| true)
}

/// The same; `progress` hears fractions from 0 to 1 and ends the test when it returns false.
pub(super) fn watched(
    device: &mut dyn Device,
    progress: &mut dyn FnMut(f32) -> bool,
) -> Result<Repeatable, DeviceError> {
    let mut probe = Probe::new(device);
    let verdict = probe.run(progress);
    probe.clear();
    match verdict {
        Ok(()) => Ok(Repeatable::Proven),
        Err(Stop::Differs(case)) => Ok(Repeatable::Refuted(case)),
        Err(Stop::Failed(error)) => Err(error),
    }
}

/// Why the test ended before its last case.
enum Stop {
    Differs(String),
    Failed(DeviceError),
}

impl From<DeviceError> for Stop {
    fn from(error: DeviceError) -> Self {
        Self::Failed(error)
    }
}

type Outcome<T = ()> = Result<T, Stop>;

/// One row of logits.
type Line = Vec<f32>;

struct Probe<'a> {
    device: &'a mut dyn Device,
    vocab_size: usize,
    context: usize,
    max_batch: usize,
    slots: usize,
    held: Vec<Sequence>,
}

/// What a slot holds.
#[derive(Clone, Copy, Default)]
struct Sequence {
    length: usize,
    /// Which text its tokens are of: 0 the one that is tested, else a neighbour's.
    text: usize,
}

impl<'a> Probe<'a> {
    fn new(device: &'a mut dyn Device) -> Self {
        let info = device.info();
        let (vocab_size, context) = (info.vocab_size, info.context_tokens as usize);
        let (max_batch, slots) = (info.max_batch_tokens as usize, info.max_sequences as usize);
        let slots = slots.min(MAX_SLOTS);
        Self {
            device,
            vocab_size,
            context,
            max_batch,
            slots,
            held: vec![Sequence::default(); slots],
        }
    }

    fn run(&mut self, progress: &mut dyn FnMut(f32) -> bool) -> Outcome {
        let mut tell = |part: f32| {
            if progress(part) { Ok(()) } else { Err(DeviceError::cancelled()) }
        };
        if self.context < PROMPT + ANSWER {
            let text = format!("a context of {} tokens is too short to test", self.context);
            return Err(Stop::Differs(text));
        }
        let known = self.alone()?;
        tell(0.1)?;
        self.in_odd_chunks(&known)?;
        tell(0.2)?;
        self.one_by_one(&known)?;
        tell(0.35)?;
        self.in_company(&known)?;
        tell(0.5)?;
        self.clear();
        for (boundary, part) in BOUNDARIES.into_iter().zip([0.75, 1.0]) {
            if boundary + BEHIND <= self.context {
                self.across(boundary)?;
            }
            tell(part)?;
        }
        Ok(())
    }

    /// Slot 0: the prompt in one piece, the answer token by token. The row after the prompt and
    /// after each token are what all other ways must give.
    fn alone(&mut self) -> Outcome<Vec<Line>> {
        let mut rows = self.feed(0, PROMPT, 1)?;
        for _ in 0..ANSWER {
            rows.append(&mut self.feed(0, 1, 1)?);
        }
        self.clear();
        Ok(rows)
    }

    /// The last slot: the prompt in odd chunks, the answer as a run.
    fn in_odd_chunks(&mut self, known: &[Line]) -> Outcome {
        let slot = self.slots - 1;
        for chunk in ODD_CHUNKS {
            self.feed(slot, chunk, 0)?;
        }
        let rest = PROMPT - self.length(slot);
        let last = self.feed(slot, rest, 1)?;
        compare(known.get(..1).unwrap_or_default(), &last, || {
            "the prompt in chunks differs from the prompt at once".into()
        })?;
        let run = self.feed(slot, ANSWER, ANSWER)?;
        compare(known.get(1..).unwrap_or_default(), &run, || {
            "tokens as a run differ from tokens one by one".into()
        })?;
        self.clear();
        Ok(())
    }

    /// The prompt token by token, then as a run of which all rows are wanted.
    fn one_by_one(&mut self, known: &[Line]) -> Outcome {
        let mut single = Vec::new();
        for _ in 0..PROMPT {
            single = self.feed(0, 1, 1)?;
        }
        compare(known.get(..1).unwrap_or_default(), &single, || {
            "the prompt in chunks of 1 differs from it at once".into()
        })?;
        self.clear();
        let mut all = self.feed(0, PROMPT, PROMPT)?;
        let last = all.split_off(all.len().saturating_sub(1));
        compare(known.get(..1).unwrap_or_default(), &last, || {
            "a prompt with all rows wanted differs from one row".into()
        })?;
        self.clear();
        Ok(())
    }

    /// The prompt in chunks beside growing neighbours, then each token in a batch of another
    /// width, then the same as a run beside them.
    fn in_company(&mut self, known: &[Line]) -> Outcome {
        if self.slots < 2 {
            return Ok(());
        }
        let slot = self.slots / 2;
        for other in (0..self.slots).filter(|&other| other != slot) {
            self.make_neighbour(other);
            self.feed(other, 3 + other % 5, 0)?;
        }
        let chunk = (PROMPT / 4).min(self.max_batch.saturating_sub(self.slots - 1).max(1));
        let mut last = Vec::new();
        while self.length(slot) < PROMPT {
            let count = chunk.min(PROMPT - self.length(slot));
            last = self.beside(slot, count, self.slots)?;
        }
        compare(known.get(..1).unwrap_or_default(), &last, || {
            "a prompt beside other sequences differs from one alone".into()
        })?;
        for (width, expected) in WIDTHS.into_iter().zip(known.iter().skip(1)) {
            let width = width.min(self.slots).min(self.max_batch);
            let row = self.beside(slot, 1, width)?;
            compare(std::slice::from_ref(expected), &row, || {
                format!("a token in a batch of {width} sequences differs from one alone")
            })?;
        }
        Ok(())
    }

    /// From before `boundary` to behind it: at once; in chunks; alone; as a run; in company.
    fn across(&mut self, boundary: usize) -> Outcome {
        let (slot, other) = (0, self.slots - 1);
        let missing = boundary - BEFORE - self.length(slot);
        self.feed(slot, missing, 0)?;
        let saved = match self.device.save_state(slot_id(slot)) {
            Ok(saved) => saved,
            // Such a device's sequences cannot be brought back here, and the short cases must do.
            Err(DeviceError::Unsupported(_)) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let start = self.length(slot);
        let count = BEFORE + BEHIND;
        let known = self.feed(slot, count, count)?;
        let tail = known.get(known.len().saturating_sub(2 * BEHIND)..).unwrap_or_default();
        let case = |way: &str| format!("across {boundary} tokens of context, {way}");

        if other != slot && BOUNDARIES.first() == Some(&boundary) {
            for chunk in STEP_CHUNKS {
                self.feed(other, chunk, 0)?;
            }
            let rest = start.saturating_sub(self.length(other));
            self.feed(other, rest, 0)?;
            let rows = self.feed(other, count, count)?;
            compare(&known, &rows, || case("a prompt in chunks differs from one at once"))?;
            self.release(other);
        }

        self.bring_back(slot, &saved, start)?;
        for chunk in [1, 5, BEFORE - 6 - BEHIND] {
            self.feed(slot, chunk, 0)?;
        }
        let mut rows = Vec::new();
        for _ in 0..2 * BEHIND {
            rows.append(&mut self.feed(slot, 1, 1)?);
        }
        compare(tail, &rows, || case("tokens one by one differ from a run"))?;

        if other == slot || self.max_batch < 2 {
            self.bring_back(slot, &saved, start)?;
            return Ok(());
        }
        self.bring_back(other, &saved, start)?;
        self.feed(other, count - 2 * BEHIND, 0)?;
        let mut rows = Vec::new();
        for _ in 0..2 * BEHIND {
            rows.append(&mut self.beside(other, 1, 4)?);
        }
        compare(tail, &rows, || case("a token in company differs from one alone"))?;
        for used in 1..self.slots {
            self.release(used);
        }
        self.bring_back(slot, &saved, start)
    }

    /// Feeds `slot` its next tokens while `width - 1` neighbours take one each, and returns the
    /// row of its last.
    fn beside(&mut self, slot: usize, count: usize, width: usize) -> Outcome<Vec<Line>> {
        let width = width.min(self.slots).min(self.max_batch.saturating_sub(count) + 1);
        let slots = self.slots;
        let neighbours = (1..slots).map(|step| (slot + step) % slots);
        let mut pieces: Vec<(usize, usize, usize)> = vec![(slot, count, 1)];
        for other in neighbours.take(width - 1) {
            if self.length(other) == 0 {
                self.make_neighbour(other);
            }
            if self.length(other) < self.context {
                pieces.push((other, 1, 1));
            }
        }
        let mut rows = self.step(&pieces)?;
        rows.truncate(1);
        Ok(rows)
    }

    /// Feeds `slot` its next `count` tokens alone, in as few steps as the device allows, and
    /// returns the rows of the last `rows_wanted` of them.
    fn feed(&mut self, slot: usize, count: usize, rows_wanted: usize) -> Outcome<Vec<Line>> {
        let silent = count - rows_wanted.min(count);
        let mut rows = Vec::new();
        let mut done = 0;
        while done < count {
            let end = count.min(done + self.max_batch);
            let wanted = end.saturating_sub(silent.max(done));
            rows.append(&mut self.step(&[(slot, end - done, wanted)])?);
            done = end;
        }
        Ok(rows)
    }

    /// One step; a piece is a slot, a number of its next tokens, and of rows. The rows come in the
    /// order of the pieces.
    fn step(&mut self, pieces: &[(usize, usize, usize)]) -> Outcome<Vec<Line>> {
        let vocab_size = self.vocab_size;
        let pieces = pieces.iter().map(|&(slot, count, rows_wanted)| {
            let (start, text) = (self.length(slot), self.text(slot));
            Piece {
                slot: slot_id(slot),
                start: narrow(start),
                tokens: (start..start + count).map(|at| token(text, at, vocab_size)).collect(),
                rows_wanted: narrow(rows_wanted),
            }
        });
        let batch = StepBatch { pieces: pieces.collect() };
        let mut rows = Rows::new(vocab_size, batch.row_count());
        self.device.step(&batch, &mut rows)?;
        if !rows.is_whole(batch.row_count()) {
            let text = format!("{} rows were wanted, {} came", batch.row_count(), rows.len());
            return Err(DeviceError::Fatal(text).into());
        }
        for piece in &batch.pieces {
            if let Some(held) = self.held.get_mut(piece.slot.0 as usize) {
                held.length += piece.tokens.len();
            }
        }
        Ok((0..rows.len()).filter_map(|row| rows.get(row)).map(<[f32]>::to_vec).collect())
    }

    fn bring_back(&mut self, slot: usize, saved: &[u8], length: usize) -> Outcome {
        self.release(slot);
        self.device.load_state(slot_id(slot), saved)?;
        if let Some(held) = self.held.get_mut(slot) {
            held.length = length;
        }
        Ok(())
    }

    /// Gives an empty slot a text of its own.
    fn make_neighbour(&mut self, slot: usize) {
        if let Some(held) = self.held.get_mut(slot) {
            held.text = slot + 1;
        }
    }

    fn length(&self, slot: usize) -> usize {
        self.held.get(slot).map_or(0, |held| held.length)
    }

    fn text(&self, slot: usize) -> usize {
        self.held.get(slot).map_or(0, |held| held.text)
    }

    fn release(&mut self, slot: usize) {
        self.device.release(slot_id(slot));
        if let Some(held) = self.held.get_mut(slot) {
            *held = Sequence::default();
        }
    }

    fn clear(&mut self) {
        for slot in 0..self.slots {
            self.release(slot);
        }
    }
}

fn slot_id(slot: usize) -> Slot {
    Slot(narrow(slot))
}

fn narrow(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// The token of a text at a position, spread over the vocabulary.
fn token(text: usize, position: usize, vocab_size: usize) -> TokenId {
    let number = ((text as u64) << 32) + position as u64 + 1;
    let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    narrow(usize::try_from(spread).unwrap_or(0) % vocab_size.max(1))
}

/// Compares rows bit by bit; another number of rows is a difference too.
fn compare(known: &[Line], found: &[Line], case: impl FnOnce() -> String) -> Outcome {
    let same = |(known, found): (&Line, &Line)| {
        known.len() == found.len()
            && known.iter().zip(found).all(|(left, right)| left.to_bits() == right.to_bits())
    };
    if known.len() != found.len() || !known.iter().zip(found).all(same) {
        return Err(Stop::Differs(case()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::device::{Capabilities, DeviceInfo};

    /// When a row gets other bits.
    #[derive(Clone, Copy, PartialEq)]
    enum Flaw {
        None,
        /// In pieces of so many tokens, behind the first few.
        Chunk(usize),
        /// In steps of so many sequences or more.
        Company(usize),
        /// In pieces of more than one token, but for the first of a sequence.
        Run,
        /// In pieces of one token.
        Single,
        /// One by one behind so many tokens.
        Far(usize),
    }

    /// Rows that follow from a sequence's tokens alone, but for the flaw.
    struct Fake {
        info: DeviceInfo,
        held: Vec<Vec<TokenId>>,
        flaw: Flaw,
    }

    impl Fake {
        fn new(flaw: Flaw, max_sequences: u32, max_batch_tokens: u32, context_tokens: u32) -> Self {
            let info = DeviceInfo {
                kind: "fake",
                description: String::new(),
                vocab_size: 50,
                context_tokens,
                trained_context_tokens: 0,
                max_sequences,
                kv_tokens: u64::from(context_tokens) * u64::from(max_sequences),
                max_batch_tokens,
                capabilities: Capabilities::default(),
                repeatable: Repeatable::Untested,
            };
            Self { info, held: vec![Vec::new(); max_sequences as usize], flaw }
        }

        fn is_flawed(&self, batch: &StepBatch, piece: &Piece) -> bool {
            match self.flaw {
                Flaw::None => false,
                Flaw::Chunk(tokens) => piece.tokens.len() == tokens && piece.start > 0,
                Flaw::Company(width) => batch.pieces.len() >= width,
                Flaw::Run => piece.tokens.len() > 1 && piece.start > 0,
                Flaw::Single => piece.tokens.len() == 1 && piece.start < 10,
                Flaw::Far(from) => piece.tokens.len() == 1 && piece.start as usize >= from,
            }
        }
    }

    impl Device for Fake {
        fn info(&self) -> &DeviceInfo {
            &self.info
        }

        fn step(&mut self, batch: &StepBatch, rows: &mut Rows) -> Result<(), DeviceError> {
            assert!(batch.token_count() <= self.info.max_batch_tokens as usize);
            for piece in &batch.pieces {
                let flaw = u64::from(self.is_flawed(batch, piece));
                let held = &mut self.held[piece.slot.0 as usize];
                assert_eq!(held.len(), piece.start as usize);
                for (index, &token) in piece.tokens.iter().enumerate() {
                    // A flaw stays in the sequence, as it does in a KV memory.
                    held.push(token + 1000 * flaw as TokenId);
                    assert!(held.len() <= self.info.context_tokens as usize);
                    if index + piece.rows_wanted as usize >= piece.tokens.len() {
                        let sum = held.iter().fold(1u64, |sum, &token| {
                            sum.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(u64::from(token))
                        });
                        rows.push(&[(sum >> 40) as f32; 50]);
                    }
                }
            }
            Ok(())
        }

        fn trim(&mut self, _: Slot, _: u32) -> Result<(), DeviceError> {
            Err(DeviceError::Unsupported("trim"))
        }

        fn copy(&mut self, _: Slot, _: Slot) -> Result<(), DeviceError> {
            Err(DeviceError::Unsupported("copy"))
        }

        fn save_state(&mut self, slot: Slot) -> Result<Vec<u8>, DeviceError> {
            let held = &self.held[slot.0 as usize];
            Ok(held.iter().flat_map(|token| token.to_le_bytes()).collect())
        }

        fn load_state(&mut self, slot: Slot, state: &[u8]) -> Result<(), DeviceError> {
            let tokens = state.chunks(4).map(|four| u32::from_le_bytes(four.try_into().unwrap()));
            self.held[slot.0 as usize] = tokens.collect();
            Ok(())
        }

        fn release(&mut self, slot: Slot) {
            self.held[slot.0 as usize].clear();
        }

        fn reset(&mut self) -> Result<(), DeviceError> {
            Ok(())
        }

        fn abort_flag(&self) -> Arc<AtomicBool> {
            Arc::default()
        }
    }

    fn verdict(mut device: Fake) -> Repeatable {
        let verdict = repeatability(&mut device).unwrap();
        assert!(device.held.iter().all(Vec::is_empty), "not left empty");
        verdict
    }

    #[test]
    fn a_faultless_device_is_proven_whatever_its_shape() {
        for (sequences, batch, context) in
            [(8, 512, 4096), (1, 512, 4096), (2, 2, 600), (4, 1, 300), (64, 16, 256), (3, 7, 33)]
        {
            let device = Fake::new(Flaw::None, sequences, batch, context);
            let shape = format!("{sequences} sequences, {batch} a step, {context} tokens");
            assert_eq!(verdict(device), Repeatable::Proven, "{shape}");
        }
    }

    #[test]
    fn each_flaw_is_found_and_named() {
        let cases = [
            (Flaw::Company(2), "beside other sequences"),
            (Flaw::Company(8), "beside other sequences"),
            (Flaw::Run, "in chunks"),
            (Flaw::Single, "in chunks"),
            (Flaw::Far(250), "across 256"),
            (Flaw::Chunk(96), "across 256 tokens of context, a prompt in chunks"),
            (Flaw::Far(505), "across 512"),
        ];
        for (flaw, part) in cases {
            match verdict(Fake::new(flaw, 8, 512, 4096)) {
                Repeatable::Refuted(case) => assert!(case.contains(part), "{case} lacks {part}"),
                other => panic!("{part}: {other:?}"),
            }
        }
    }

    #[test]
    fn it_can_be_cancelled_and_claims_nothing_of_a_context_too_short() {
        let mut device = Fake::new(Flaw::None, 8, 512, 4096);
        assert!(watched(&mut device, &mut |_| false).is_err());
        assert!(device.held.iter().all(Vec::is_empty));
        assert!(matches!(verdict(Fake::new(Flaw::None, 8, 512, 16)), Repeatable::Refuted(_)));
    }
}
