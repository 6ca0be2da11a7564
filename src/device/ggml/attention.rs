//! Whether fused attention is faster here: by trying both.

use std::time::Duration;

use super::shapes::{Shapes, median};
use crate::device::{Device, DeviceError};

/// Sequences that decode together when the two are compared, where there is room for as many.
const SEQUENCES: u32 = 8;
/// What each of them holds: enough for attention to count, few enough to start soon.
const CONTEXT: u32 = 256;
/// What repeatable rows may cost where nobody has asked for them: a tenth more time.
const LITTLE: f64 = 1.1;
/// Steps that are timed, and those before them, in which the library builds its plans.
const STEPS: usize = 5;
const WARMUP: usize = 2;

/// What the same work took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// With attention step by step.
    pub(super) plain: Duration,
    /// With fused attention.
    pub(super) fused: Duration,
}

impl Times {
    /// The least of two tries.
    pub(super) fn least(self, other: Self) -> Self {
        Self { plain: self.plain.min(other.plain), fused: self.fused.min(other.fused) }
    }

    pub(super) fn is_fused_faster(&self) -> bool {
        self.fused < self.plain
    }

    /// Whether plain attention takes so little more that rows may be repeatable for it.
    pub(super) fn plain_costs_little(&self) -> bool {
        self.plain <= self.fused.mul_f64(LITTLE)
    }
}

/// What a device takes to read `CONTEXT` tokens and to write as many, `SEQUENCES` at a time that
/// hold as many. Leaves it empty.
///
/// # Errors
/// What a step returned.
pub(super) fn cost(device: &mut dyn Device) -> Result<Duration, DeviceError> {
    let (slots, chunk) = (device.info().max_sequences, device.info().max_batch_tokens);
    let room = device.info().context_tokens.saturating_sub((WARMUP + STEPS) as u32).max(1);
    let sequences = SEQUENCES.min(slots).min(chunk);
    let context = CONTEXT.min(room);
    let mut shapes = Shapes::new(device);
    let reading = shapes.prefill(0, context, chunk)?;
    for slot in 1..sequences {
        shapes.copy(0, slot)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_more_time_is_little() {
        let times = |plain, fused| Times {
            plain: Duration::from_millis(plain),
            fused: Duration::from_millis(fused),
        };
        for (plain, fused, is_little) in [(90, 100, true), (110, 100, true), (112, 100, false)] {
            assert_eq!(times(plain, fused).plain_costs_little(), is_little);
            assert_eq!(times(plain, fused).is_fused_faster(), plain > fused);
        }
    }
}
