//! How long steps take, learned from those that ended, and how many prompt tokens may ride along.
//!
//! A step is taken to cost a time that depends on its sequences, as decoding does, and so much for
//! each further token. Both are running averages: contexts grow, and other processes come and go.

use std::time::Duration;

use super::draft::StepCost;
use super::runs::RunCost;

/// Weight of the latest step.
const WEIGHT: f64 = 0.2;

/// What a step without drafts leaves of what they are known to cost.
const SPARED: f64 = 0.97;

/// One place for each power of two of sequences in a step.
const SIZES: usize = 16;

/// Of the time that a step takes beyond a plain one, at least so much is put down to its tokens: what
/// its passes cost is an estimate.
const TOKENS_SHARE_MIN: f64 = 0.25;

/// What rides along before anything was measured.
const FIRST_TOKENS: u32 = 64;

/// Prompt tokens come in multiples of this: a step of another shape costs the ggml device a new
/// plan of its work.
pub(super) const CHUNK_TOKENS: u32 = 16;

/// How many times longer than usual a step may take for prompts that it brings to their end, at
/// most: others may come
/// meanwhile.
const TIMES_MAX: f64 = 8.0;

/// How many tokens may ride along at least, so that prompts get on.
const TOKENS_MIN: u32 = 8;

#[derive(Debug)]
pub(super) struct Pace {
    target: f64,
    /// Seconds of a step with one token for each sequence, by the number of sequences.
    plain: [Option<f64>; SIZES],
    /// Seconds and number of the tokens beyond one for each sequence, both fading.
    further: (f64, f64),
    /// The same of drafts, all of whose rows are wanted, by the number of sequences.
    drafts: [(f64, f64); SIZES],
}

/// A step that went well.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) sequences: usize,
    /// Tokens, without drafts.
    pub(super) tokens: u32,
    pub(super) drafts: u32,
    /// Times that the device ran the model, beyond the first.
    pub(super) passes: u32,
    pub(super) time: Duration,
}

impl Pace {
    /// `target`: how long a step may take for the sake of prompts.
    pub(super) fn new(target: Duration) -> Self {
        Self {
            target: target.as_secs_f64(),
            plain: [None; SIZES],
            further: (0.0, 0.0),
            drafts: [(0.0, 0.0); SIZES],
        }
    }

    /// A step took so long.
    pub(super) fn measured(&mut self, step: Measured) {
        let Measured { sequences, tokens, drafts, passes, time } = step;
        let seconds = time.as_secs_f64();
        if sequences == 0 {
            return;
        }
        let further = tokens.saturating_sub(u32::try_from(sequences).unwrap_or(u32::MAX));
        if drafts > 0 {
            let others = self.plain_seconds(sequences) + f64::from(further) * self.per_token();
            if let Some(known) = self.drafts.get_mut(place(sequences)) {
                *known = fading(*known, (seconds - others).max(0.0), drafts);
            }
            return;
        }
        if further == 0 {
            if let Some(known) = self.plain.get_mut(place(sequences)) {
                *known = Some(known.map_or(seconds, |known| known + WEIGHT * (seconds - known)));
            }
            return;
        }
        let beyond = (seconds - self.plain_seconds(sequences)).max(0.0);
        let for_tokens = beyond - f64::from(passes) * self.pass_seconds();
        self.further = fading(self.further, for_tokens.max(beyond * TOKENS_SHARE_MIN), further);
    }

    /// What a step of so many sequences costs, and a draft in it; none where no such step was seen.
    pub(super) fn with_drafts(&self, sequences: usize) -> Option<StepCost> {
        let seconds = self.plain.get(place(sequences)).copied().flatten()?;
        let (spent, drafts) = self.drafts.get(place(sequences)).copied()?;
        // As if one had been tried and was cheap: so the first comes to be tried.
        let cheap = seconds / (4.0 * sequences.max(1) as f64);
        let draft_seconds = (spent + cheap) / (drafts + 1.0);
        Some(StepCost { seconds, draft_seconds, tokens: sequences })
    }

    /// Drafts in a step of so many sequences were found too dear. What is known of their cost
    /// fades, so that one slow step is not believed for ever.
    pub(super) fn spared_drafts(&mut self, sequences: usize) {
        if let Some((seconds, drafts)) = self.drafts.get_mut(place(sequences)) {
            *seconds *= SPARED;
            *drafts *= SPARED;
        }
    }

    /// Seconds of a further token of a prompt; 0 before one was measured.
    fn per_token(&self) -> f64 {
        let (seconds, tokens) = self.further;
        if tokens > 0.0 { seconds / tokens } else { 0.0 }
    }

    /// Tokens beyond one for each of the `decoding` sequences that may be in the next step: as many
    /// as keep it below the target, or make it twice as long as it would be without, or bring as
    /// many prompts to their end as is worth the wait of those that stream. `prompts`: what is
    /// missing of those that wait for their first token, the shortest first.
    pub(super) fn further_tokens(&self, decoding: usize, prompts: &[u32]) -> u32 {
        if self.further.1 == 0.0 {
            return FIRST_TOKENS;
        }
        self.paced_tokens(decoding, prompts.len()).max(self.finishing_tokens(decoding, prompts))
    }

    /// Seconds of a further pass: about what a step of one sequence takes.
    fn pass_seconds(&self) -> f64 {
        self.plain_seconds(1)
    }

    /// What a run costs beside so many sequences, on a device that takes a pass for each length.
    pub(super) fn run_cost(&self, decoding: usize) -> RunCost {
        RunCost {
            pass: self.pass_seconds(),
            token: self.per_token(),
            later: self.plain_seconds(decoding) / decoding.max(1) as f64,
        }
    }

    fn paced_tokens(&self, decoding: usize, prompts: usize) -> u32 {
        let plain = self.plain_seconds(decoding.max(1));
        // Where more wait than stream, a longer step holds up fewer than it serves, and steps are
        // full sooner.
        let (target, times) =
            if decoding >= prompts { (self.target, 2.0) } else { (2.0 * self.target, 4.0) };
        let room = target.max(times * plain) - plain;
        let per_token = self.per_token().max(1e-9);
        let count = (room / per_token).clamp(f64::from(TOKENS_MIN), 1e9) as u32;
        if count < CHUNK_TOKENS { count } else { count - count % CHUNK_TOKENS }
    }

    /// Tokens of the shortest prompts that are read to their end in one step although it takes longer
    /// than the target: as many times longer as prompts begin to stream for each that waits
    /// meanwhile. So those that come together begin together, and nobody's stream stutters while one
    /// after the other is read.
    fn finishing_tokens(&self, decoding: usize, prompts: &[u32]) -> u32 {
        let together = self.plain_seconds(decoding + prompts.len());
        let worth_waiting = self.target.max(2.0 * together);
        let (mut tokens, mut worth) = (0u32, 0);
        for (begun, &missing) in (1u32..).zip(prompts) {
            tokens = tokens.saturating_add(missing);
            let times = f64::from(begun) / decoding.max(1) as f64;
            if f64::from(tokens) * self.per_token() <= worth_waiting * times.min(TIMES_MAX) {
                worth = tokens;
            }
        }
        worth
    }

    /// Seconds of a step without further tokens: of the nearest number of sequences that is known,
    /// fewer before more.
    fn plain_seconds(&self, sequences: usize) -> f64 {
        let at = place(sequences);
        let fewer = self.plain.iter().take(at + 1).rev().flatten().next();
        fewer.or_else(|| self.plain.iter().skip(at).flatten().next()).copied().unwrap_or(0.0)
    }
}

/// A sum of seconds and of what they were spent on, of which the past fades.
fn fading((seconds, count): (f64, f64), spent: f64, on: u32) -> (f64, f64) {
    let keep = 1.0 - WEIGHT;
    (seconds * keep + spent, count * keep + f64::from(on))
}

fn place(sequences: usize) -> usize {
    (sequences.max(1).ilog2() as usize).min(SIZES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &[u32] = &[900];

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn took(pace: &mut Pace, sequences: usize, tokens: u32, time: Duration) {
        pace.measured(Measured { sequences, tokens, drafts: 0, passes: 0, time });
    }

    /// Steps of a device that takes 40 ms for eight sequences and 2 ms for each further token.
    fn learned(target: u64) -> Pace {
        let mut pace = Pace::new(ms(target));
        for _ in 0..20 {
            took(&mut pace, 8, 8, ms(40));
            let further = pace.further_tokens(8, LONG);
            took(&mut pace, 8, 8 + further, ms(40 + 2 * u64::from(further)));
        }
        pace
    }

    #[test]
    fn prompts_fill_the_step_up_to_the_target() {
        assert_eq!(learned(150).further_tokens(8, LONG), 48, "55 fit, in chunks");
        assert_eq!(learned(400).further_tokens(8, LONG), 176);
    }

    #[test]
    fn where_a_step_takes_long_anyway_prompts_may_double_it() {
        assert_eq!(learned(1).further_tokens(8, LONG), 16, "20 take as long as the eight");
    }

    #[test]
    fn a_prompt_gets_on_however_slow_the_device_is() {
        let mut pace = Pace::new(ms(1));
        took(&mut pace, 1, 1, ms(1));
        took(&mut pace, 1, 65, ms(60_000));
        assert_eq!(pace.further_tokens(1, LONG), TOKENS_MIN);
    }

    #[test]
    fn where_more_wait_than_stream_prompts_may_take_longer() {
        let pace = learned(150);
        assert!(pace.further_tokens(0, LONG) > 2 * pace.further_tokens(8, LONG));
        assert!(pace.further_tokens(3, &[900; 5]) > 2 * pace.further_tokens(5, &[900; 3]));
        assert_eq!(Pace::new(ms(100)).further_tokens(0, LONG), FIRST_TOKENS);
    }

    #[test]
    fn short_prompts_that_come_together_are_read_together() {
        let pace = learned(100);
        assert_eq!(pace.further_tokens(0, &[40; 8]), 320, "all eight, 80 ms each");
        assert_eq!(pace.further_tokens(2, &[20; 6]), 120, "three for each that streams");
        assert_eq!(pace.further_tokens(1, &[40, 40, 40, 900]), 120, "one is too long for that");
        assert_eq!(pace.further_tokens(7, &[20]), 16, "one that comes later is no reason");
        let slow = pace.further_tokens(0, &[40; 30]);
        assert_eq!(slow, 400, "as many as take eight targets");
    }

    #[test]
    fn a_pass_is_not_put_down_to_tokens() {
        let mut pace = learned(100);
        took(&mut pace, 1, 1, ms(12));
        for _ in 0..40 {
            let time = ms(40 + 12 + 2 * 10);
            pace.measured(Measured { sequences: 8, tokens: 18, drafts: 0, passes: 1, time });
        }
        assert!((pace.per_token() - 0.002).abs() < 1e-4, "{}", pace.per_token());
    }

    #[test]
    fn what_a_run_costs_is_known_from_other_steps() {
        let mut pace = learned(100);
        took(&mut pace, 1, 1, ms(12));
        let cost = pace.run_cost(8);
        assert_eq!((cost.pass, cost.later), (0.012, 0.005));
        assert!((cost.token - 0.002).abs() < 1e-6, "{cost:?}");
    }

    #[test]
    fn what_a_draft_costs_is_learned_for_each_size() {
        let mut pace = learned(150);
        assert_eq!(pace.with_drafts(1), None, "no such step was seen");
        let first = pace.with_drafts(8).unwrap();
        assert!(first.draft_seconds < 2e-3, "{first:?}");
        for _ in 0..20 {
            pace.measured(Measured {
                sequences: 8,
                tokens: 8,
                drafts: 4,
                passes: 0,
                time: ms(40 + 4 * 3),
            });
        }
        let known = pace.with_drafts(8).unwrap();
        assert!((known.draft_seconds - 3e-3).abs() < 1e-4, "{known:?}");
        assert_eq!(pace.further_tokens(8, LONG), 48, "prompts cost what they did");
        pace.measured(Measured { sequences: 8, tokens: 8, drafts: 1, passes: 0, time: ms(4000) });
        assert!(pace.with_drafts(8).unwrap().draft_seconds > 0.1);
        (0..300).for_each(|_| pace.spared_drafts(8));
        assert!(pace.with_drafts(8).unwrap().draft_seconds < 10e-3, "and is tried again");
    }

    #[test]
    fn one_slow_step_is_forgotten() {
        let mut pace = learned(150);
        took(&mut pace, 8, 8 + 48, ms(4000));
        assert!(pace.further_tokens(8, LONG) < 16);
        for _ in 0..25 {
            took(&mut pace, 8, 8 + 16, ms(40 + 32));
        }
        assert_eq!(pace.further_tokens(8, LONG), 48);
    }
}
