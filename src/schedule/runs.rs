//! How much of forced runs goes into a step.
//!
//! Some devices compute pieces of one length together, and one length after another: a run beside
//! sessions that take one token each is a pass of its own through the model. It costs as much as a
//! step of few tokens, whatever is in it. So runs are taken only where enough of them come together;
//! else their tokens ride along one by one, like drawn ones.

/// What a run costs on such a device, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RunCost {
    /// A further pass.
    pub(super) pass: f64,
    /// A token in it.
    pub(super) token: f64,
    /// A token that is left to a later step.
    pub(super) later: f64,
}

/// The one length of runs in a step, at least 1: those that have fewer tokens to compute take one.
/// `pending`: what is missing of each that decodes; `further`: tokens that there is room for beyond
/// one for each.
pub(super) fn run_length(pending: &[u32], further: u32, cost: RunCost) -> u32 {
    let runs_of = |length: u32| pending.iter().filter(|&&missing| missing >= length).count();
    let saved = |length: u32| {
        let runs = runs_of(length);
        let pass = if runs == pending.len() { 0.0 } else { cost.pass };
        let tokens = runs as f64 * f64::from(length - 1);
        tokens * (cost.later - cost.token) - pass
    };
    let fits = |length: u32| runs_of(length) as u64 * u64::from(length - 1) <= u64::from(further);
    let fitting = pending.iter().filter_map(|&length| {
        let room = further.checked_div(u32::try_from(runs_of(length)).unwrap_or(u32::MAX))?;
        Some(length.min(1 + room)).filter(|&length| length > 1 && fits(length))
    });
    let best = fitting.max_by(|&one, &other| saved(one).total_cmp(&saved(other)));
    best.filter(|&length| saved(length) > 0.0).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const COST: RunCost = RunCost { pass: 20.0, token: 5.0, later: 9.0 };

    #[test]
    fn a_short_run_beside_others_waits_and_a_long_one_pays() {
        assert_eq!(run_length(&[5, 1, 1, 1], 100, COST), 1, "4 times 4 is less than a pass");
        assert_eq!(run_length(&[7, 1, 1, 1], 100, COST), 7);
        assert_eq!(run_length(&[4, 4, 1, 1], 100, COST), 4, "two make up for one pass");
    }

    #[test]
    fn where_all_have_a_run_it_costs_no_pass() {
        assert_eq!(run_length(&[3], 100, COST), 3);
        assert_eq!(run_length(&[2, 2, 3], 100, COST), 2);
    }

    #[test]
    fn the_length_that_saves_most_is_taken() {
        assert_eq!(run_length(&[20, 4, 4, 4, 1], 100, COST), 20);
        assert_eq!(run_length(&[20, 9, 9, 9, 1], 100, COST), 9);
        assert_eq!(run_length(&[20, 9, 9, 9, 1], 15, COST), 16, "there is room for one only");
    }

    proptest! {
        #[test]
        fn runs_fit_the_room(
            pending in proptest::collection::vec(1u32..40, 0..20),
            further in 0u32..200,
            pass in 0.0..50.0,
        ) {
            let length = run_length(&pending, further, RunCost { pass, ..COST });
            let runs = pending.iter().filter(|&&missing| missing >= length).count() as u32;
            prop_assert!(length >= 1 && runs * (length - 1) <= further);
        }
    }
}
