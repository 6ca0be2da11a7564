//! The plan of one step: who takes part with how many tokens.

use super::event::SessionId;

/// Rows of one session in one step, at most: a row is as long as the vocabulary.
const ROWS_PER_PIECE_MAX: u32 = 32;

/// A session that could take part in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) session: SessionId,
    /// Tokens that are not computed, at least 1.
    pub(super) pending: u32,
    /// It only needs its latest tokens: every step counts for its client.
    pub(super) decoding: bool,
    /// All its positions want rows.
    pub(super) all_rows: bool,
}

/// What a step may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// Tokens in a step.
    pub(super) tokens: u32,
    /// Prompt tokens in a step in which others decode.
    pub(super) prefill_beside_decode: u32,
    /// Sessions in a step.
    pub(super) pieces: usize,
}

/// Chooses who takes part, with how many tokens: those that decode first, in order (single tokens
/// before forced runs), then prompts in order until the budget is full. Never exceeds the budget; never empty for a budget and a
/// candidate of at least one.
pub(super) fn plan(candidates: &[Candidate], budget: Budget) -> Vec<(SessionId, u32)> {
    let mut chosen = Vec::with_capacity(candidates.len().min(budget.pieces));
    let mut left = budget.tokens;
    let (runs, singles): (Vec<&Candidate>, Vec<&Candidate>) = candidates
        .iter()
        .filter(|candidate| candidate.decoding)
        .partition(|candidate| candidate.pending > 1);
    for candidate in singles.into_iter().chain(runs) {
        take(candidate, &mut left, budget.pieces, &mut chosen);
    }
    if !chosen.is_empty() {
        left = left.min(budget.prefill_beside_decode);
    }
    for candidate in candidates.iter().filter(|candidate| !candidate.decoding) {
        take(candidate, &mut left, budget.pieces, &mut chosen);
    }
    chosen
}

fn take(
    candidate: &Candidate,
    left: &mut u32,
    pieces_max: usize,
    chosen: &mut Vec<(SessionId, u32)>,
) {
    let rows_limit = if candidate.all_rows { ROWS_PER_PIECE_MAX } else { u32::MAX };
    let count = candidate.pending.min(*left).min(rows_limit);
    if count > 0 && chosen.len() < pieces_max {
        *left -= count;
        chosen.push((candidate.session, count));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn candidate(session: u64, pending: u32, decoding: bool) -> Candidate {
        Candidate { session: SessionId(session), pending, decoding, all_rows: false }
    }

    const BUDGET: Budget = Budget { tokens: 100, prefill_beside_decode: 10, pieces: 8 };

    #[test]
    fn decodes_come_first_and_prompts_fill_the_rest() {
        let candidates = [candidate(1, 500, false), candidate(2, 1, true), candidate(3, 5, false)];
        assert_eq!(plan(&candidates, BUDGET), [(SessionId(2), 1), (SessionId(1), 10)]);
    }

    #[test]
    fn prompts_alone_take_the_whole_step() {
        let candidates = [candidate(1, 60, false), candidate(2, 60, false)];
        assert_eq!(plan(&candidates, BUDGET), [(SessionId(1), 60), (SessionId(2), 40)]);
    }

    #[test]
    fn a_prompt_whose_rows_are_all_wanted_comes_in_small_pieces() {
        let wanting = Candidate { all_rows: true, ..candidate(1, 90, false) };
        assert_eq!(plan(&[wanting], BUDGET), [(SessionId(1), ROWS_PER_PIECE_MAX)]);
    }

    proptest! {
        #[test]
        fn the_budget_holds_and_something_runs(
            shapes in proptest::collection::vec((1u32..300, any::<bool>(), any::<bool>()), 1..40),
            tokens in 1u32..200,
            prefill in 1u32..50,
            pieces in 1usize..20,
        ) {
            let candidates: Vec<Candidate> = shapes.iter().enumerate().map(|(i, &(pending, decoding, all_rows))| Candidate {
                session: SessionId(i as u64), pending, decoding, all_rows,
            }).collect();
            let chosen = plan(&candidates, Budget { tokens, prefill_beside_decode: prefill, pieces });
            prop_assert!(!chosen.is_empty() && chosen.len() <= pieces);
            prop_assert!(chosen.iter().map(|&(_, count)| count).sum::<u32>() <= tokens);
            for &(session, count) in &chosen {
                prop_assert!(count >= 1 && count <= candidates[session.0 as usize].pending);
            }
        }
    }
}
