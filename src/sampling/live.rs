//! The values a draw may choose from: the device's row after penalties, mask and bans.

use super::scan::is_finite;
use super::{SampleError, SampleInput};
use crate::TokenId;

/// A mask that allows less than one token in so many is walked bit by bit.
const SPARSE: usize = 16;

/// Room for a session's own copy of a row. Reused from token to token.
#[derive(Clone, Debug, Default)]
pub(super) struct Live {
    values: Vec<f32>,
    ids: Vec<TokenId>,
    allowed: Vec<f32>,
}

/// Logits, one for each token that may be sampled; negative infinity marks one that may not.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    /// The logits.
    pub(super) values: &'a [f32],
    /// The token behind each value; `None`: the index is the token.
    ids: Option<&'a [TokenId]>,
}

impl View<'_> {
    /// The token behind the value at `index`.
    pub(super) fn token(&self, index: u32) -> Option<TokenId> {
        match self.ids {
            Some(ids) => ids.get(index as usize).copied(),
            None => Some(index),
        }
    }
}

impl Live {
    /// The values of `input`. `adjust` is given a copy of the row to change, where there is one;
    /// without it, without a mask and without bans the view is the row itself.
    ///
    /// A fault anywhere in the row is [`SampleError::NonFinite`], except that a row that is viewed
    /// as it is is left for the scan to check.
    pub(super) fn view<'a>(
        &'a mut self,
        input: &SampleInput<'a>,
        adjust: Option<impl FnOnce(&mut [f32])>,
    ) -> Result<View<'a>, SampleError> {
        let row = input.row;
        if adjust.is_none() && input.mask.is_none() && input.banned.is_empty() {
            return Ok(View { values: row, ids: None });
        }
        if !is_finite(row) {
            return Err(SampleError::NonFinite);
        }
        let adjusted = adjust.is_some();
        if let Some(adjust) = adjust {
            self.copy(row);
            adjust(&mut self.values);
        }
        let sparse = input.mask.filter(|mask| count_allowed(mask, row.len()) < row.len() / SPARSE);
        if let Some(mask) = sparse {
            let from = if adjusted { &self.values } else { row };
            compact(from, mask, &mut self.ids, &mut self.allowed);
            for token in input.banned {
                if let Ok(place) = self.ids.binary_search(token)
                    && let Some(value) = self.allowed.get_mut(place)
                {
                    *value = f32::NEG_INFINITY;
                }
            }
            return Ok(View { values: &self.allowed, ids: Some(&self.ids) });
        }
        if !adjusted {
            self.copy(row);
        }
        if let Some(mask) = input.mask {
            forbid(&mut self.values, mask);
        }
        for &token in input.banned {
            if let Some(value) = self.values.get_mut(token as usize) {
                *value = f32::NEG_INFINITY;
            }
        }
        Ok(View { values: &self.values, ids: None })
    }

    fn copy(&mut self, row: &[f32]) {
        self.values.clear();
        self.values.extend_from_slice(row);
    }
}

/// Tokens below `vocab_size` that the mask allows; may count some past it in the last word.
fn count_allowed(mask: &[u32], vocab_size: usize) -> usize {
    mask.iter().take(vocab_size.div_ceil(32)).map(|word| word.count_ones() as usize).sum()
}

/// Collects the allowed tokens and their values, ascending by token.
fn compact(values: &[f32], mask: &[u32], ids: &mut Vec<TokenId>, allowed: &mut Vec<f32>) {
    ids.clear();
    allowed.clear();
    for (start, &word) in (0..).step_by(32).zip(mask.iter().take(values.len().div_ceil(32))) {
        let mut left = word;
        while left != 0 {
            let token: TokenId = start + left.trailing_zeros();
            left &= left - 1;
            if let Some(&value) = values.get(token as usize) {
                ids.push(token);
                allowed.push(value);
            }
        }
    }
}

/// Writes negative infinity over what the mask does not allow. A bit that is missing because the
/// mask is short is not set.
fn forbid(values: &mut [f32], mask: &[u32]) {
    let mut words = mask.iter().copied();
    let (chunks, rest) = values.as_chunks_mut::<32>();
    for chunk in chunks {
        forbid_word(chunk, words.next().unwrap_or(0));
    }
    forbid_word(rest, words.next().unwrap_or(0));
}

/// Each bit of a mask's word, lowest first.
const BITS: [u32; 32] = {
    let mut bits = [1; 32];
    let mut place = 1;
    while place < 32 {
        bits[place] = bits[place - 1] << 1;
        place += 1;
    }
    bits
};

#[inline(always)]
fn forbid_word(values: &mut [f32], word: u32) {
    for (bit, value) in BITS.iter().zip(values) {
        *value = if word & bit == 0 { f32::NEG_INFINITY } else { *value };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: f32 = f32::NEG_INFINITY;

    fn possible(row: &[f32], mask: Option<&[u32]>, banned: &[TokenId]) -> Vec<(TokenId, f32)> {
        let mut live = Live::default();
        let input = SampleInput { row, mask, banned };
        let view = live.view(&input, None::<fn(&mut [f32])>).unwrap();
        let tokens = (0..).map_while(|index| view.token(index));
        let values = view.values.iter().copied();
        tokens.zip(values).filter(|&(_, value)| value != NEVER).collect()
    }

    #[test]
    fn a_plain_row_is_not_copied() {
        let row = [1.0, 2.0];
        let mut live = Live::default();
        let input = SampleInput { row: &row, mask: None, banned: &[] };
        let view = live.view(&input, None::<fn(&mut [f32])>).unwrap();
        assert_eq!(view.values.as_ptr(), row.as_ptr());
    }

    #[test]
    fn sparse_and_dense_masks_agree_with_their_bits() {
        let row: Vec<f32> = (0..100).map(|i| i as f32).collect();
        for mask in [
            vec![1 << 3, 0, 1 << 31, 1],
            vec![u32::MAX, 0, u32::MAX, u32::MAX],
            vec![0xF0F0_F0F0; 4],
            vec![2, 2],
            vec![u32::MAX],
            vec![],
            vec![0, 0, 0, 0, u32::MAX],
        ] {
            let bit = |i: usize| mask.get(i / 32).is_some_and(|word| word >> (i % 32) & 1 == 1);
            let expected: Vec<(TokenId, f32)> =
                (0..100).filter(|&i| bit(i) && i != 95).map(|i| (i as u32, i as f32)).collect();
            assert_eq!(possible(&row, Some(&mask), &[95, 4000]), expected, "{mask:?}");
        }
    }

    #[test]
    fn bans_apply_without_a_mask() {
        assert_eq!(possible(&[1.0, 2.0, 3.0], None, &[1, 7]), [(0, 1.0), (2, 3.0)]);
    }

    #[test]
    fn a_fault_under_the_mask_is_found() {
        let row = [0.0, f32::NAN, 0.0];
        for mask in [[0b101_u32], [0b001]] {
            let input = SampleInput { row: &row, mask: Some(&mask), banned: &[] };
            let mut live = Live::default();
            let view = live.view(&input, None::<fn(&mut [f32])>);
            assert_eq!(view.map(|_| ()), Err(SampleError::NonFinite));
        }
    }
}
