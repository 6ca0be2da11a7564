//! Logit bias, and the penalties on what was said before: repetition, frequency, presence.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::SamplingParams;
use crate::TokenId;

/// Repetition, frequency and presence penalties with the history they need.
///
/// Repetition (Keskar et al. 2019, "CTRL", with llama.cpp's turn: a logit that is not positive is
/// multiplied, so that it too gets worse) looks at the last tokens of prompt and answer. Frequency
/// and presence are OpenAI's: they count what was generated, and nothing else.
#[derive(Clone, Debug)]
pub(super) struct Penalties {
    repetition: Option<Repetition>,
    frequency: f32,
    presence: f32,
    /// How often each token was generated; empty while both penalties are off.
    generated: FxHashMap<TokenId, u32>,
}

#[derive(Clone, Debug)]
struct Repetition {
    penalty: f32,
    /// The window's tokens, oldest first; `None`: the window is endless and nothing leaves it.
    window: Option<Window>,
    /// How often each token is in the window; never 0.
    counts: FxHashMap<TokenId, u32>,
}

#[derive(Clone, Debug)]
struct Window {
    tokens: VecDeque<TokenId>,
    tokens_max: usize,
}

impl Penalties {
    pub(super) fn new(params: &SamplingParams, prompt: &[TokenId]) -> Self {
        let mut repetition = Repetition::new(params.repetition_penalty, params.repeat_last_n);
        if let Some(repetition) = &mut repetition {
            prompt.iter().for_each(|&token| repetition.push(token));
        }
        Self {
            repetition,
            frequency: params.frequency_penalty,
            presence: params.presence_penalty,
            generated: FxHashMap::default(),
        }
    }

    /// Whether [`Penalties::apply`] would change anything.
    pub(super) fn is_on(&self) -> bool {
        self.repetition.as_ref().is_some_and(|repetition| !repetition.counts.is_empty())
            || !self.generated.is_empty()
    }

    /// Adds a token to the answer.
    pub(super) fn push(&mut self, token: TokenId) {
        if let Some(repetition) = &mut self.repetition {
            repetition.push(token);
        }
        if self.frequency != 0.0 || self.presence != 0.0 {
            *self.generated.entry(token).or_insert(0) += 1;
        }
    }

    /// Changes the logits of the tokens in the history.
    pub(super) fn apply(&self, logits: &mut [f32]) {
        if let Some(repetition) = &self.repetition {
            for &token in repetition.counts.keys() {
                change(logits, token, |logit| {
                    let divided = logit / repetition.penalty;
                    if logit > 0.0 { divided } else { logit * repetition.penalty }
                });
            }
        }
        for (&token, &count) in &self.generated {
            let penalty = self.frequency * count as f32 + self.presence;
            change(logits, token, |logit| logit - penalty);
        }
    }
}

impl Repetition {
    fn new(penalty: f32, repeat_last_n: i32) -> Option<Self> {
        if penalty == 1.0 || repeat_last_n == 0 {
            return None;
        }
        let window = usize::try_from(repeat_last_n)
            .ok()
            .map(|tokens_max| Window { tokens: VecDeque::new(), tokens_max });
        Some(Self { penalty, window, counts: FxHashMap::default() })
    }

    fn push(&mut self, token: TokenId) {
        *self.counts.entry(token).or_insert(0) += 1;
        let Some(window) = &mut self.window else { return };
        window.tokens.push_back(token);
        if window.tokens.len() <= window.tokens_max {
            return;
        }
        let Some(oldest) = window.tokens.pop_front() else { return };
        if let Some(count) = self.counts.get_mut(&oldest) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&oldest);
            }
        }
    }
}

/// Adds each bias to its token's logit. A token outside the vocabulary has no logit to change.
pub(super) fn apply_bias(bias: &[(TokenId, f32)], logits: &mut [f32]) {
    for &(token, bias) in bias {
        change(logits, token, |logit| logit + bias);
    }
}

/// Replaces one logit. What was possible stays possible: a penalty alone never makes a token
/// impossible, since it may be the only one that a grammar allows.
pub(super) fn change(logits: &mut [f32], token: TokenId, by: impl FnOnce(f32) -> f32) {
    if let Some(logit) = logits.get_mut(token as usize)
        && *logit != f32::NEG_INFINITY
    {
        let changed = by(*logit);
        *logit = if changed == f32::NEG_INFINITY { f32::MIN } else { changed };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn penalised(params: &SamplingParams, prompt: &[TokenId], answer: &[TokenId]) -> Vec<f32> {
        let mut penalties = Penalties::new(params, prompt);
        answer.iter().for_each(|&token| penalties.push(token));
        let mut logits = vec![4.0, -4.0, 0.0, 1.0, f32::NEG_INFINITY, -2.0];
        penalties.apply(&mut logits);
        logits
    }

    #[test]
    fn repetition_divides_or_multiplies_once_and_sees_the_prompt() {
        let params = SamplingParams { repetition_penalty: 2.0, ..Default::default() };
        assert_eq!(
            penalised(&params, &[0, 0, 1, 99], &[2, 4]),
            [2.0, -8.0, 0.0, 1.0, f32::NEG_INFINITY, -2.0]
        );
    }

    #[test]
    fn repetition_forgets_what_left_the_window() {
        let params =
            SamplingParams { repetition_penalty: 2.0, repeat_last_n: 2, ..Default::default() };
        let never = f32::NEG_INFINITY;
        assert_eq!(penalised(&params, &[0, 1], &[3]), [4.0, -8.0, 0.0, 0.5, never, -2.0]);
        assert_eq!(penalised(&params, &[0, 0, 1], &[]), [2.0, -8.0, 0.0, 1.0, never, -2.0]);
        let all = SamplingParams { repeat_last_n: -1, ..params.clone() };
        assert_eq!(penalised(&all, &[0, 1], &[3]), [2.0, -8.0, 0.0, 0.5, never, -2.0]);
        let off = SamplingParams { repeat_last_n: 0, ..params };
        assert!(!Penalties::new(&off, &[0, 1]).is_on());
    }

    #[test]
    fn frequency_and_presence_count_the_answer_only() {
        let params =
            SamplingParams { frequency_penalty: 0.5, presence_penalty: 0.25, ..Default::default() };
        assert!(!Penalties::new(&params, &[0, 1, 2]).is_on());
        assert_eq!(
            penalised(&params, &[0, 3, 3], &[1, 0, 1, 1]),
            [3.25, -5.75, 0.0, 1.0, f32::NEG_INFINITY, -2.0]
        );
        let reward = SamplingParams { frequency_penalty: -1.0, ..Default::default() };
        assert_eq!(penalised(&reward, &[], &[3])[3], 2.0);
    }

    #[test]
    fn repetition_comes_before_the_subtraction() {
        let params =
            SamplingParams { repetition_penalty: 2.0, presence_penalty: 1.0, ..Default::default() };
        assert_eq!(penalised(&params, &[], &[0])[0], 1.0);
    }

    #[test]
    fn a_penalty_cannot_make_a_token_impossible() {
        let mut logits = [f32::MIN, 0.0, f32::NEG_INFINITY];
        change(&mut logits, 0, |logit| logit * 4.0);
        change(&mut logits, 2, |logit| logit + 100.0);
        assert_eq!(logits, [f32::MIN, 0.0, f32::NEG_INFINITY]);
    }
}
