//! How long steps take, learned from those that ended, and how many prompt tokens may ride along.
//!
//! A step is taken to cost a time that depends on its sequences, as decoding does, and so much for
//! each further token. Both are running averages: contexts grow, and other processes come and go.

use std::time::Duration;

/// Weight of the latest step.
const WEIGHT: f64 = 0.2;

/// One place for each power of two of sequences in a step.
const SIZES: usize = 16;

/// What rides along before anything was measured.
const FIRST_TOKENS: u32 = 64;

/// Prompt tokens come in multiples of this: a step of another shape costs the ggml device a new
/// plan of its work.
pub(super) const CHUNK_TOKENS: u32 = 16;

/// How many tokens may ride along at least, so that prompts get on.
const TOKENS_MIN: u32 = 8;

#[derive(Debug)]
pub(super) struct Pace {
    target: f64,
    /// Seconds of a step with one token for each sequence, by the number of sequences.
    plain: [Option<f64>; SIZES],
    /// Seconds and number of the tokens beyond one for each sequence, both fading.
    further: (f64, f64),
}

impl Pace {
    /// `target`: how long a step may take for the sake of prompts.
    pub(super) fn new(target: Duration) -> Self {
        Self { target: target.as_secs_f64(), plain: [None; SIZES], further: (0.0, 0.0) }
    }

    /// A step of so many sequences and tokens took so long.
    pub(super) fn measured(&mut self, sequences: usize, tokens: usize, time: Duration) {
        let seconds = time.as_secs_f64();
        if sequences == 0 {
            return;
        }
        let further = tokens.saturating_sub(sequences);
        if further == 0 {
            if let Some(known) = self.plain.get_mut(place(sequences)) {
                *known = Some(known.map_or(seconds, |known| known + WEIGHT * (seconds - known)));
            }
            return;
        }
        let beyond = (seconds - self.plain_seconds(sequences)).max(0.0);
        let (old_seconds, old_tokens) = self.further;
        let keep = 1.0 - WEIGHT;
        self.further = (old_seconds * keep + beyond, old_tokens * keep + further as f64);
    }

    /// Tokens beyond one for each of the `decoding` sequences that may be in the next step: as many
    /// as keep it below the target, or make it twice as long as it would be without.
    pub(super) fn further_tokens(&self, decoding: usize) -> u32 {
        let (seconds, tokens) = self.further;
        if tokens == 0.0 {
            return FIRST_TOKENS;
        }
        let plain = self.plain_seconds(decoding.max(1));
        // Nobody is held up while nobody decodes, but for those who come meanwhile.
        let (target, times) =
            if decoding > 0 { (self.target, 2.0) } else { (2.0 * self.target, 4.0) };
        let room = target.max(times * plain) - plain;
        let per_token = (seconds / tokens).max(1e-9);
        let count = (room / per_token).clamp(f64::from(TOKENS_MIN), 1e9) as u32;
        if count < CHUNK_TOKENS { count } else { count - count % CHUNK_TOKENS }
    }

    /// Seconds of a step without further tokens: of the nearest number of sequences that is known,
    /// fewer before more.
    fn plain_seconds(&self, sequences: usize) -> f64 {
        let at = place(sequences);
        let fewer = self.plain.iter().take(at + 1).rev().flatten().next();
        fewer.or_else(|| self.plain.iter().skip(at).flatten().next()).copied().unwrap_or(0.0)
    }
}

fn place(sequences: usize) -> usize {
    (sequences.max(1).ilog2() as usize).min(SIZES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    /// Steps of a device that takes 40 ms for eight sequences and 2 ms for each further token.
    fn learned(target: u64) -> Pace {
        let mut pace = Pace::new(ms(target));
        for _ in 0..20 {
            pace.measured(8, 8, ms(40));
            let further = u64::from(pace.further_tokens(8));
            pace.measured(8, 8 + further as usize, ms(40 + 2 * further));
        }
        pace
    }

    #[test]
    fn prompts_fill_the_step_up_to_the_target() {
        assert_eq!(learned(150).further_tokens(8), 48, "55 fit, in chunks");
        assert_eq!(learned(400).further_tokens(8), 176);
    }

    #[test]
    fn where_a_step_takes_long_anyway_prompts_may_double_it() {
        assert_eq!(learned(1).further_tokens(8), 16, "20 take as long as the eight");
    }

    #[test]
    fn a_prompt_gets_on_however_slow_the_device_is() {
        let mut pace = Pace::new(ms(1));
        pace.measured(1, 1, ms(1));
        pace.measured(1, 65, ms(60_000));
        assert_eq!(pace.further_tokens(1), TOKENS_MIN);
    }

    #[test]
    fn alone_prompts_may_take_longer() {
        let pace = learned(150);
        assert!(pace.further_tokens(0) > 2 * pace.further_tokens(8));
        assert_eq!(Pace::new(ms(100)).further_tokens(0), FIRST_TOKENS);
    }

    #[test]
    fn one_slow_step_is_forgotten() {
        let mut pace = learned(150);
        pace.measured(8, 8 + 48, ms(4000));
        assert!(pace.further_tokens(8) < 16);
        for _ in 0..25 {
            pace.measured(8, 8 + 16, ms(40 + 32));
        }
        assert_eq!(pace.further_tokens(8), 48);
    }
}
