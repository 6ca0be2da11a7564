//! Whether fused attention is faster here: by trying both.

use std::time::Duration;

use super::shapes::{Shapes, median};
use crate::device::{Device, DeviceError};

/// Sequences that decode together when the two are compared, where there is room for as many.
const SEQUENCES: u32 = 8;
/// What the longest of them holds: enough for attention to count, few enough to start soon.
const CONTEXT: u32 = 256;
/// What the others hold: just a beginning, so that it does not take long either.
const SHORT: u32 = 32;
/// Steps that are timed, and those before them, in which the library builds its plans.
const STEPS: usize = 5;
const WARMUP: usize = 2;

/// What a device takes to read `CONTEXT` tokens and to write as many, `SEQUENCES` at a time. Leaves
/// it empty.
///
/// # Errors
/// What a step returned.
pub(super) fn cost(device: &mut dyn Device) -> Result<Duration, DeviceError> {
    let (slots, chunk) = (device.info().max_sequences, device.info().max_batch_tokens);
    let room = device.info().context_tokens.saturating_sub((WARMUP + STEPS) as u32).max(1);
    let sequences = SEQUENCES.min(slots).min(chunk);
    let context = CONTEXT.min(room);
    let mut shapes = Shapes::new(device);
    let mut reading = Duration::ZERO;
    for slot in 0..sequences {
        let tokens = if slot == 0 { context } else { SHORT.min(room) };
        reading += shapes.prefill(slot, tokens, chunk)? * u32::from(slot == 0);
    }
    let together: Vec<u32> = (0..sequences).collect();
    let mut steps = Vec::new();
    for step in 0..WARMUP + STEPS {
        let time = shapes.decode(&together)?;
        if step >= WARMUP {
            steps.push(time);
        }
    }
    shapes.clear();
    Ok(reading + median(&steps) * (context / sequences.max(1)))
}
