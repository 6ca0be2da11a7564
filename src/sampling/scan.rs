//! The one pass over all values: block maxima, from which the few interesting blocks are found.

use super::SampleError;
use super::rank::Ranked;

/// Values that share one maximum.
const BLOCK: usize = 128;
const LANES: usize = 16;

/// The maximum of each block of values. Reused from token to token.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockMaxima {
    maxima: Vec<f32>,
    scratch: Vec<f32>,
    max: f32,
}

impl BlockMaxima {
    /// Reads `values` once. A NaN or a positive infinity among them is
    /// [`SampleError::NonFinite`]; nothing but negative infinities is [`SampleError::EmptyMask`].
    pub(super) fn scan(&mut self, values: &[f32]) -> Result<(), SampleError> {
        self.maxima.clear();
        self.max = f32::NEG_INFINITY;
        let mut finite = true;
        for block in values.chunks(BLOCK) {
            let (max, block_finite) = block_max(block);
            finite &= block_finite;
            self.maxima.push(max);
            self.max = self.max.max(max);
        }
        if !finite {
            return Err(SampleError::NonFinite);
        }
        if self.max == f32::NEG_INFINITY {
            return Err(SampleError::EmptyMask);
        }
        Ok(())
    }

    /// The highest value.
    pub(super) fn max(&self) -> f32 {
        self.max
    }

    /// Index of the highest of the `values` that were scanned; the lowest index of a tie.
    pub(super) fn argmax(&self, values: &[f32]) -> Option<usize> {
        let block = self.maxima.iter().position(|&max| max == self.max)?;
        let start = block * BLOCK;
        let offset = values.get(start..)?.iter().position(|&value| value == self.max)?;
        Some(start + offset)
    }

    /// A value that at least `count` values reach: the `count`-th highest block maximum, or the
    /// lowest finite number where there are fewer blocks.
    pub(super) fn reached_by(&mut self, count: usize) -> f32 {
        if count <= 1 {
            return self.max;
        }
        if count > self.maxima.len() {
            return f32::MIN;
        }
        self.scratch.clone_from(&self.maxima);
        let descending = |a: &f32, b: &f32| b.total_cmp(a);
        let (_, &mut bound, _) = self.scratch.select_nth_unstable_by(count - 1, descending);
        bound.max(f32::MIN)
    }

    /// Replaces `candidates` by those of the `values` that were scanned that reach `threshold`,
    /// in the order of their indices. Negative infinity is never a candidate.
    pub(super) fn gather(&self, values: &[f32], threshold: f32, candidates: &mut Vec<Ranked>) {
        candidates.clear();
        let threshold = threshold.max(f32::MIN);
        for (number, (block, &max)) in values.chunks(BLOCK).zip(&self.maxima).enumerate() {
            if max < threshold {
                continue;
            }
            for (index, &value) in (number * BLOCK..).zip(block) {
                if value >= threshold {
                    candidates.push(Ranked::new(value, index as u32));
                }
            }
        }
    }
}

/// Whether no value is NaN or positive infinity.
pub(super) fn is_finite(values: &[f32]) -> bool {
    values.chunks(BLOCK).all(|block| block_max(block).1)
}

/// The maximum, and whether every value is below positive infinity (so none is NaN).
fn block_max(block: &[f32]) -> (f32, bool) {
    let mut maxima = [f32::NEG_INFINITY; LANES];
    let mut faults = [0_u32; LANES];
    let (chunks, rest) = block.as_chunks::<LANES>();
    for chunk in chunks {
        for ((max, fault), &value) in maxima.iter_mut().zip(&mut faults).zip(chunk) {
            *max = if value > *max { value } else { *max };
            *fault |= u32::from(value.is_nan() | (value == f32::INFINITY));
        }
    }
    let mut max = maxima.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut fault = faults.iter().fold(0, |all, fault| all | fault) != 0;
    for &value in rest {
        max = max.max(value);
        fault |= value.is_nan() | (value == f32::INFINITY);
    }
    (max, !fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scanned(values: &[f32]) -> BlockMaxima {
        let mut maxima = BlockMaxima::default();
        maxima.scan(values).unwrap();
        maxima
    }

    #[test]
    fn finds_faults_at_any_place() {
        for length in [1, 15, 16, 127, 128, 129, 300] {
            for place in 0..length {
                for fault in [f32::NAN, -f32::NAN, f32::INFINITY] {
                    let mut values = vec![0.5; length];
                    values[place] = fault;
                    let mut maxima = BlockMaxima::default();
                    assert_eq!(maxima.scan(&values), Err(SampleError::NonFinite));
                    assert!(!is_finite(&values));
                }
            }
        }
        assert!(is_finite(&[f32::NEG_INFINITY, f32::MIN, f32::MAX]));
    }

    #[test]
    fn the_lowest_index_wins_a_tie() {
        let mut values = vec![0.0; 1000];
        for place in [999, 700, 130, 129] {
            values[place] = 4.0;
            assert_eq!(scanned(&values).argmax(&values), Some(place));
        }
        assert_eq!(scanned(&[-0.0, 0.0]).argmax(&[-0.0, 0.0]), Some(0));
    }

    #[test]
    fn the_bound_is_reached_by_enough_values() {
        let values: Vec<f32> = (0..5000).map(|i| ((i * 7919) % 5000) as f32).collect();
        let mut maxima = scanned(&values);
        for count in [1, 2, 10, 39, 40, 41, 4000] {
            let bound = maxima.reached_by(count);
            let mut candidates = Vec::new();
            maxima.gather(&values, bound, &mut candidates);
            assert!(candidates.len() >= count);
            assert_eq!(candidates.len(), values.iter().filter(|&&value| value >= bound).count());
        }
    }

    #[test]
    fn an_impossible_token_is_never_gathered() {
        let values = [f32::NEG_INFINITY, f32::MIN, 1.0];
        let mut candidates = Vec::new();
        scanned(&values).gather(&values, f32::NEG_INFINITY, &mut candidates);
        assert_eq!(candidates.iter().map(|c| c.index()).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(
            BlockMaxima::default().scan(&[f32::NEG_INFINITY; 3]),
            Err(SampleError::EmptyMask)
        );
        assert_eq!(BlockMaxima::default().scan(&[]), Err(SampleError::EmptyMask));
    }
}
