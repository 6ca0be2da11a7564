//! Steps of given shapes, timed: what benches drive a bare device with.

use std::time::{Duration, Instant};

use crate::TokenId;
use crate::device::{Device, DeviceError, Piece, Rows, Slot, StepBatch};

/// Sequences that grow step by step. The tokens mean nothing; only their number costs time.
pub struct Shapes<'a> {
    device: &'a mut dyn Device,
    rows: Rows,
    lengths: Vec<u32>,
}

impl<'a> Shapes<'a> {
    /// Takes over a device and releases what it holds.
    pub fn new(device: &'a mut dyn Device) -> Self {
        let (slots, vocab_size) = (device.info().max_sequences, device.info().vocab_size);
        let mut shapes = Self {
            device,
            rows: Rows::new(vocab_size, slots as usize),
            lengths: vec![0; slots as usize],
        };
        shapes.clear();
        shapes
    }

    /// Releases all sequences.
    pub fn clear(&mut self) {
        for (slot, length) in (0..).zip(&mut self.lengths) {
            self.device.release(Slot(slot));
            *length = 0;
        }
    }

    /// Releases one sequence.
    pub fn release(&mut self, slot: u32) {
        self.device.release(Slot(slot));
        if let Some(length) = self.lengths.get_mut(slot as usize) {
            *length = 0;
        }
    }

    /// Gives an empty slot what another holds.
    ///
    /// # Errors
    /// As [`Device::copy`].
    pub fn copy(&mut self, from: u32, to: u32) -> Result<(), DeviceError> {
        self.device.copy(Slot(from), Slot(to))?;
        let length = self.lengths.get(from as usize).copied().unwrap_or(0);
        if let Some(copy) = self.lengths.get_mut(to as usize) {
            *copy = length;
        }
        Ok(())
    }

    /// Grows a sequence alone by `tokens`, in steps of at most `chunk`, with a row of logits at
    /// the end only; returns the time of all steps together.
    ///
    /// # Errors
    /// What a step returned; a slot or length out of range is [`DeviceError::InvalidBatch`].
    pub fn prefill(&mut self, slot: u32, tokens: u32, chunk: u32) -> Result<Duration, DeviceError> {
        let mut time = Duration::ZERO;
        let mut left = tokens;
        while left > 0 {
            let count = left.min(chunk.max(1));
            left -= count;
            time += self.step(&[(slot, count, u32::from(left == 0))])?;
        }
        Ok(time)
    }

    /// Grows each of `slots` by one token in one step, with a row of logits each.
    ///
    /// # Errors
    /// As [`Shapes::prefill`].
    pub fn decode(&mut self, slots: &[u32]) -> Result<Duration, DeviceError> {
        let pieces: Vec<_> = slots.iter().map(|&slot| (slot, 1, 1)).collect();
        self.step(&pieces)
    }

    /// One step of any shape: slots, each with a number of tokens and of rows wanted. Returns the
    /// time until the rows were there.
    ///
    /// # Errors
    /// As [`Shapes::prefill`].
    pub fn step(&mut self, pieces: &[(u32, u32, u32)]) -> Result<Duration, DeviceError> {
        let vocab_size = self.rows.vocab_size();
        let pieces = pieces.iter().map(|&(slot, count, rows_wanted)| {
            let start = self.lengths.get(slot as usize).copied().unwrap_or(0);
            let tokens = (start..start.saturating_add(count)).map(|at| token(at, vocab_size));
            Piece { slot: Slot(slot), start, tokens: tokens.collect(), rows_wanted }
        });
        let batch = StepBatch { pieces: pieces.collect() };
        self.rows.clear();
        let start = Instant::now();
        self.device.step(&batch, &mut self.rows)?;
        let time = start.elapsed();
        for piece in &batch.pieces {
            if let Some(length) = self.lengths.get_mut(piece.slot.0 as usize) {
                *length += u32::try_from(piece.tokens.len()).unwrap_or(0);
            }
        }
        Ok(time)
    }
}

fn token(position: u32, vocab_size: usize) -> TokenId {
    let size = u32::try_from(vocab_size).unwrap_or(u32::MAX).max(1);
    position.wrapping_mul(2_654_435_761) % size
}

/// The middle one of some times; zero of none.
pub fn median(times: &[Duration]) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}
