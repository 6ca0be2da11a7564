//! The checks before a step. The library ends the process over some of these mistakes, and reports
//! others only as "invalid".

use crate::device::{DeviceError, Rows, Slot, StepBatch};

/// How far a sequence has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// So many tokens, which may be none.
    Tokens(u32),
    /// A step with this sequence failed half way; it must be released.
    Unknown,
}

/// The limits that a batch must keep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) vocab_size: usize,
    pub(super) context_tokens: u32,
    pub(super) max_batch_tokens: u32,
}

/// The sequence's length, or why the slot cannot be used.
pub(super) fn length(held: &[Held], slot: Slot) -> Result<u32, DeviceError> {
    let refuse = |reason: String| Err(DeviceError::Sequence { slot, reason });
    match held.get(slot.0 as usize) {
        Some(Held::Tokens(tokens)) => Ok(*tokens),
        Some(Held::Unknown) => refuse("a step with it failed: release it first".to_owned()),
        None => refuse(format!("there are only {} slots", held.len())),
    }
}

/// Checks a whole step against the device's contract.
pub(super) fn check(
    batch: &StepBatch,
    rows: &Rows,
    held: &[Held],
    limits: &Limits,
) -> Result<(), DeviceError> {
    let refuse = |text: String| Err(DeviceError::InvalidBatch(text));
    if rows.vocab_size() != limits.vocab_size || !rows.is_whole(0) {
        return refuse(format!(
            "the block for the rows must be empty and {} values wide",
            limits.vocab_size
        ));
    }
    if batch.pieces.is_empty() {
        return refuse("it has no pieces".to_owned());
    }
    let tokens = batch.token_count();
    if tokens > limits.max_batch_tokens as usize {
        return refuse(format!("{tokens} tokens are more than {}", limits.max_batch_tokens));
    }
    let mut seen = vec![false; held.len()];
    for piece in &batch.pieces {
        let slot = piece.slot;
        let length =
            length(held, slot).map_err(|error| DeviceError::InvalidBatch(error.to_string()))?;
        if seen.get_mut(slot.0 as usize).is_some_and(|seen| std::mem::replace(seen, true)) {
            return refuse(format!("{slot} has two pieces"));
        }
        let count = piece.tokens.len();
        if count == 0 {
            return refuse(format!("the piece of {slot} has no tokens"));
        }
        if piece.start != length {
            return refuse(format!(
                "{slot} has {length} tokens, its piece starts at {}",
                piece.start
            ));
        }
        if u64::from(length) + count as u64 > u64::from(limits.context_tokens) {
            return refuse(format!(
                "{slot} would grow from {length} by {count} tokens over its {}",
                limits.context_tokens
            ));
        }
        if piece.rows_wanted as usize > count {
            return refuse(format!("{slot} wants {} rows of {count} tokens", piece.rows_wanted));
        }
        if let Some(token) = piece.tokens.iter().find(|&&id| id as usize >= limits.vocab_size) {
            return refuse(format!("{slot}: token {token} is not in the vocabulary"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Piece;

    const LIMITS: Limits = Limits { vocab_size: 100, context_tokens: 16, max_batch_tokens: 8 };

    fn piece(slot: u32, start: u32, tokens: &[u32], rows_wanted: u32) -> Piece {
        Piece { slot: Slot(slot), start, tokens: tokens.to_vec(), rows_wanted }
    }

    fn verdict(pieces: Vec<Piece>) -> Result<(), DeviceError> {
        let held = [Held::Tokens(0), Held::Tokens(12), Held::Unknown];
        check(&StepBatch { pieces }, &Rows::new(100, 0), &held, &LIMITS)
    }

    #[test]
    fn good_batches_pass() {
        assert_eq!(verdict(vec![piece(0, 0, &[1, 99], 2)]), Ok(()));
        assert_eq!(verdict(vec![piece(1, 12, &[1, 2, 3, 4], 0), piece(0, 0, &[0], 1)]), Ok(()));
    }

    #[test]
    fn each_mistake_is_named() {
        let cases: [(Vec<Piece>, &str); 11] = [
            (vec![], "no pieces"),
            (vec![piece(0, 0, &[], 0)], "no tokens"),
            (vec![piece(0, 1, &[1], 1)], "starts at 1"),
            (vec![piece(1, 11, &[1], 1)], "starts at 11"),
            (vec![piece(1, 12, &[1; 5], 1)], "over its 16"),
            (vec![piece(0, 0, &[1], 2)], "wants 2 rows"),
            (vec![piece(0, 0, &[100], 1)], "token 100"),
            (vec![piece(3, 0, &[1], 1)], "only 3 slots"),
            (vec![piece(2, 0, &[1], 1)], "release it first"),
            (vec![piece(0, 0, &[1], 1), piece(0, 1, &[1], 1)], "two pieces"),
            (vec![piece(0, 0, &[1; 9], 1)], "more than 8"),
        ];
        for (pieces, part) in cases {
            let error = verdict(pieces).expect_err(part);
            assert!(matches!(&error, DeviceError::InvalidBatch(_)), "{error}");
            assert!(error.to_string().contains(part), "{error} lacks {part:?}");
        }
    }

    #[test]
    fn the_block_must_be_empty_and_as_wide_as_the_vocabulary() {
        let batch = StepBatch { pieces: vec![piece(0, 0, &[1], 1)] };
        let held = [Held::Tokens(0)];
        assert!(check(&batch, &Rows::new(99, 0), &held, &LIMITS).is_err());
        let mut rows = Rows::new(100, 1);
        rows.push(&[0.0; 100]);
        assert!(check(&batch, &rows, &held, &LIMITS).is_err());
    }
}
