//! The plan of one step: who takes part with how many tokens.

use super::event::SessionId;
use super::pace::CHUNK_TOKENS;
use super::runs::{RunCost, run_length};

/// Rows of one session in one step, at most: a row is as long as the vocabulary.
const ROWS_PER_PIECE_MAX: u32 = 32;

/// A session that could take part in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) session: SessionId,
    /// Tokens that the device holds.
    pub(super) computed: u32,
    /// Tokens that are not computed, at least 1.
    pub(super) pending: u32,
    /// Tokens up to a place where its piece has to end, if that comes first.
    pub(super) until_stop: Option<u32>,
    /// It only needs its latest tokens, or its only one: every step counts for its client.
    pub(super) decoding: bool,
    /// All its positions want rows.
    pub(super) all_rows: bool,
}

/// What a step may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// Tokens in a step.
    pub(super) tokens: u32,
    /// Of these, beyond one for each session that decodes.
    pub(super) further: u32,
    /// What a run costs where each length of pieces is computed on its own.
    pub(super) runs: Option<RunCost>,
}

/// Chooses who takes part, with how many tokens: one for each that decodes, then the rest of
/// forced runs, then prompts. Of what prompts may have, the oldest gets half and the shortest the
/// rest: a short one need not wait for a long one, which gets on all the same.
///
/// Never exceeds the budget; never empty for a budget and a candidate of at least one.
pub(super) fn plan(candidates: &[Candidate], budget: Budget) -> Vec<(SessionId, u32)> {
    let mut chosen = Vec::with_capacity(candidates.len());
    let mut left = budget.tokens;
    let decoding = || candidates.iter().filter(|candidate| candidate.decoding);
    let singles = u32::try_from(decoding().count()).unwrap_or(u32::MAX).min(left);
    let mut further = budget.further.min(left - singles);
    let pending: Vec<u32> = decoding().map(|candidate| candidate.pending).collect();
    let length = budget.runs.map(|cost| run_length(&pending, further, cost));
    for candidate in decoding() {
        if left == 0 {
            return chosen;
        }
        // A token each is kept for those that come after.
        let more = match length {
            None => (candidate.pending - 1).min(further),
            Some(length) if candidate.pending >= length => (length - 1).min(further),
            Some(_) => 0,
        };
        further -= more;
        left -= 1 + more;
        chosen.push((candidate.session, 1 + more));
    }
    let prompts = candidates.iter().filter(|candidate| !candidate.decoding).collect();
    plan_prompts(prompts, further.min(left), &mut chosen);
    chosen
}

fn plan_prompts(mut prompts: Vec<&Candidate>, tokens: u32, chosen: &mut Vec<(SessionId, u32)>) {
    let Some(oldest) = prompts.iter().min_by_key(|prompt| prompt.session).copied() else { return };
    let mut left = tokens - chunk(oldest, tokens.div_ceil(2));
    prompts.sort_by_key(|prompt| (prompt.pending, prompt.session));
    for prompt in prompts.into_iter().filter(|prompt| prompt.session != oldest.session) {
        let count = chunk(prompt, left);
        left -= count;
        if count > 0 {
            chosen.push((prompt.session, count));
        }
    }
    let rest = chunk(oldest, tokens.div_ceil(2)) + left;
    chosen.push((oldest.session, chunk(oldest, rest)));
    chosen.retain(|&(_, count)| count > 0);
}

/// How many of at most `most` tokens a prompt takes: one that is cut ends at a multiple of the
/// chunk, where there is room for a whole one.
fn chunk(prompt: &Candidate, most: u32) -> u32 {
    let rows_limit = if prompt.all_rows { ROWS_PER_PIECE_MAX } else { u32::MAX };
    let wanted = prompt.until_stop.map_or(prompt.pending, |stop| stop.min(prompt.pending));
    let count = wanted.min(most).min(rows_limit);
    let beyond = (prompt.computed + count) % CHUNK_TOKENS;
    if count < wanted && count > beyond { count - beyond } else { count }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn candidate(session: u64, pending: u32, decoding: bool) -> Candidate {
        Candidate {
            session: SessionId(session),
            computed: 0,
            pending,
            until_stop: None,
            decoding,
            all_rows: false,
        }
    }

    const BUDGET: Budget = Budget { tokens: 128, further: 32, runs: None };

    #[test]
    fn decodes_come_first_and_prompts_fill_the_rest() {
        let candidates = [candidate(1, 500, false), candidate(2, 1, true), candidate(3, 5, false)];
        let expected = [(SessionId(2), 1), (SessionId(3), 5), (SessionId(1), 16)];
        assert_eq!(plan(&candidates, BUDGET), expected, "the rest of 27 in chunks");
    }

    #[test]
    fn a_run_never_costs_another_its_token() {
        let candidates = [candidate(1, 40, true), candidate(2, 1, true), candidate(3, 9, true)];
        let tight = Budget { tokens: 12, further: 100, runs: None };
        let expected = [(SessionId(1), 10), (SessionId(2), 1), (SessionId(3), 1)];
        assert_eq!(plan(&candidates, tight), expected);
        let paced = Budget { tokens: 100, further: 6, runs: None };
        let expected = [(SessionId(1), 7), (SessionId(2), 1), (SessionId(3), 1)];
        assert_eq!(plan(&candidates, paced), expected);
    }

    #[test]
    fn where_each_length_is_a_pass_runs_have_one_length() {
        let candidates = [candidate(1, 9, true), candidate(2, 1, true), candidate(3, 8, true)];
        let cost = RunCost { pass: 20.0, token: 5.0, later: 9.0 };
        let budget = Budget { tokens: 100, further: 100, runs: Some(cost) };
        let expected = [(SessionId(1), 8), (SessionId(2), 1), (SessionId(3), 8)];
        assert_eq!(plan(&candidates, budget), expected);
        let dear = Budget { runs: Some(RunCost { pass: 90.0, ..cost }), ..budget };
        let expected = [(SessionId(1), 1), (SessionId(2), 1), (SessionId(3), 1)];
        assert_eq!(plan(&candidates, dear), expected);
    }

    #[test]
    fn the_oldest_prompt_gets_half_and_the_shortest_the_rest() {
        let candidates =
            [candidate(1, 900, false), candidate(2, 800, false), candidate(3, 12, false)];
        let budget = Budget { tokens: 128, further: 128, runs: None };
        let expected = [(SessionId(3), 12), (SessionId(2), 48), (SessionId(1), 64)];
        assert_eq!(plan(&candidates, budget), expected);
        let alone = [candidate(1, 900, false)];
        assert_eq!(plan(&alone, budget), [(SessionId(1), 128)]);
    }

    #[test]
    fn chunks_end_at_multiples_and_where_they_have_to() {
        let budget = Budget { tokens: 128, further: 60, runs: None };
        let odd = Candidate { computed: 5, ..candidate(1, 900, false) };
        assert_eq!(plan(&[odd], budget), [(SessionId(1), 59)]);
        let stop = Candidate { until_stop: Some(33), ..candidate(1, 900, false) };
        assert_eq!(plan(&[stop], budget), [(SessionId(1), 33)]);
    }

    #[test]
    fn a_prompt_whose_rows_are_all_wanted_comes_in_small_pieces() {
        let wanting = Candidate { all_rows: true, ..candidate(1, 90, false) };
        let budget = Budget { tokens: 128, further: 128, runs: None };
        assert_eq!(plan(&[wanting], budget), [(SessionId(1), ROWS_PER_PIECE_MAX)]);
    }

    proptest! {
        #[test]
        fn the_budget_holds_and_everyone_who_decodes_runs(
            shapes in proptest::collection::vec((0u32..99, 1u32..300, any::<bool>(), any::<bool>()), 1..40),
            tokens in 1u32..200,
            further in 1u32..300,
            has_passes in any::<bool>(),
        ) {
            let candidates: Vec<Candidate> = shapes.iter().enumerate().map(|(i, &(computed, pending, decoding, all_rows))| Candidate {
                computed, all_rows, ..candidate(i as u64, pending, decoding)
            }).collect();
            let runs = has_passes.then_some(RunCost { pass: 9.0, token: 1.0, later: 2.0 });
            let chosen = plan(&candidates, Budget { tokens, further, runs });
            prop_assert!(!chosen.is_empty());
            prop_assert!(chosen.iter().map(|&(_, count)| count).sum::<u32>() <= tokens);
            let mut seen: Vec<u64> = chosen.iter().map(|&(session, _)| session.0).collect();
            seen.sort_unstable();
            seen.dedup();
            prop_assert_eq!(seen.len(), chosen.len(), "one piece each");
            for &(session, count) in &chosen {
                prop_assert!(count >= 1 && count <= candidates[session.0 as usize].pending);
            }
            let decoding = candidates.iter().filter(|candidate| candidate.decoding).count();
            let running = chosen.iter().filter(|(session, _)| candidates[session.0 as usize].decoding);
            prop_assert_eq!(running.count(), decoding.min(tokens as usize));
        }
    }
}
