//! How many drafts a step computes: tokens that sessions guess will follow their latest. One that
//! was right saves its session a step; one that was wrong has cost its time for nothing.

use super::event::SessionId;

/// Weight of what was tried before, against the latest trial.
const KEEP: f64 = 0.9;

/// What a step without a trial leaves of what is known: a session whose drafts were wrong comes to
/// be tried again.
const FADE: f64 = 0.98;

/// No session's drafts are taken to be better than this.
const RATE_MAX: f64 = 0.95;

/// How often a session's drafts were right of late.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Luck {
    right: f64,
    tried: f64,
}

impl Luck {
    /// The chance that the next draft is right, a half where nothing is known.
    pub(super) fn rate(&self) -> f64 {
        ((self.right + 1.0) / (self.tried + 2.0)).min(RATE_MAX)
    }

    /// Of `drafted` tokens the first `kept` were right. Those after the first wrong one say
    /// nothing.
    pub(super) fn tried(&mut self, drafted: u32, kept: u32) {
        self.right = self.right * KEEP + f64::from(kept);
        self.tried = self.tried * KEEP + f64::from(drafted.min(kept + 1));
    }

    /// A step went by without drafts.
    pub(super) fn fade(&mut self) {
        self.right *= FADE;
        self.tried *= FADE;
    }
}

/// A session with drafts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Drafter {
    pub(super) session: SessionId,
    /// Tokens that it has drafted.
    pub(super) drafts: u32,
    /// The chance that each is right if those before it are.
    pub(super) rate: f64,
}

/// What a step costs without drafts, and what each adds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StepCost {
    pub(super) seconds: f64,
    pub(super) draft_seconds: f64,
    /// Sessions that get a token from it in any case.
    pub(super) tokens: usize,
}

/// Chooses how many drafts of each session go into a step, `most` in all: the likeliest first, as
/// long as one more is expected to bring more tokens a second than the step has without it.
pub(super) fn choose(step: StepCost, drafters: &[Drafter], most: u32) -> Vec<(SessionId, u32)> {
    let mut chances: Vec<(f64, usize)> = Vec::new();
    for (index, drafter) in drafters.iter().enumerate() {
        let mut chance = 1.0;
        for _ in 0..drafter.drafts.min(most) {
            chance *= drafter.rate;
            chances.push((chance, index));
        }
    }
    chances.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let (mut seconds, mut tokens) = (step.seconds, step.tokens as f64);
    let mut counts = vec![0; drafters.len()];
    for (chance, index) in chances.into_iter().take(most as usize) {
        if chance * seconds <= step.draft_seconds * tokens {
            break;
        }
        seconds += step.draft_seconds;
        tokens += chance;
        counts[index] += 1;
    }
    let chosen = drafters.iter().zip(counts).filter(|(_, count)| *count > 0);
    chosen.map(|(drafter, count)| (drafter.session, count)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drafter(session: u64, drafts: u32, rate: f64) -> Drafter {
        Drafter { session: SessionId(session), drafts, rate }
    }

    const ALONE: StepCost = StepCost { seconds: 11e-3, draft_seconds: 2.3e-3, tokens: 1 };

    #[test]
    fn alone_a_few_drafts_pay_and_bad_ones_do_not() {
        assert_eq!(choose(ALONE, &[drafter(1, 8, 0.5)], 16), [(SessionId(1), 1)]);
        let [(_, good)] = choose(ALONE, &[drafter(1, 8, 0.9)], 16)[..] else { panic!("none") };
        assert!(good >= 4, "{good}");
        assert!(choose(ALONE, &[drafter(1, 8, 0.15)], 16).is_empty());
    }

    #[test]
    fn the_likeliest_come_first_and_the_limit_holds() {
        let drafters = [drafter(1, 4, 0.5), drafter(2, 4, 0.95)];
        assert_eq!(choose(ALONE, &drafters, 3), [(SessionId(2), 3)]);
        assert!(choose(ALONE, &drafters, 0).is_empty());
    }

    #[test]
    fn in_a_full_step_each_must_be_likelier() {
        let full = StepCost { seconds: 38e-3, draft_seconds: 2.5e-3, tokens: 8 };
        assert!(choose(full, &[drafter(1, 8, 0.5)], 16).is_empty());
        assert_eq!(choose(full, &[drafter(1, 8, 0.7)], 16), [(SessionId(1), 1)]);
    }

    #[test]
    fn luck_is_learned_and_forgotten() {
        let mut luck = Luck::default();
        assert_eq!(luck.rate(), 0.5);
        (0..20).for_each(|_| luck.tried(4, 0));
        let unlucky = luck.rate();
        assert!(unlucky < 0.1, "{unlucky}");
        (0..200).for_each(|_| luck.fade());
        assert!(luck.rate() > 0.4);
        (0..20).for_each(|_| luck.tried(4, 4));
        assert!(luck.rate() > 0.9);
    }

    proptest! {
        #[test]
        fn a_choice_never_exceeds_what_there_is_and_pays(
            shapes in proptest::collection::vec((0u32..9, 0.0f64..0.95), 0..12),
            most in 0u32..40,
            draft_ms in 0.01f64..20.0,
        ) {
            let drafters: Vec<Drafter> = (0..).zip(&shapes)
                .map(|(id, &(drafts, rate))| drafter(id, drafts, rate)).collect();
            let step = StepCost { seconds: 10e-3, draft_seconds: draft_ms / 1e3, tokens: shapes.len() + 1 };
            let chosen = choose(step, &drafters, most);
            prop_assert!(chosen.iter().map(|&(_, count)| count).sum::<u32>() <= most);
            let (mut seconds, mut tokens) = (step.seconds, step.tokens as f64);
            for &(session, count) in &chosen {
                let drafter = drafters[session.0 as usize];
                prop_assert!(count >= 1 && count <= drafter.drafts);
                for nth in 1..=count {
                    seconds += step.draft_seconds;
                    tokens += drafter.rate.powi(nth as i32);
                }
            }
            prop_assert!(tokens / seconds >= step.tokens as f64 / step.seconds - 1e-9);
        }
    }
}
