//! `[sampling]`: what a request that does not say gets.

use serde::{Deserialize, Serialize};

use super::check::Problems;
use crate::sampling::{DryParams, SamplingParams};

/// What a request that does not say gets. Each field means what the request's field of the same
/// name means ([`SamplingParams`]), and its default is the neutral value: greedy, nothing else on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SamplingDefaults {
    /// 0 to 100; 0 (default): greedy.
    pub temperature: f32,
    /// 0 to 100; 0 (default): off.
    pub dynatemp_range: f32,
    /// 0 to 100. Default 1.
    pub dynatemp_exponent: f32,
    /// 0 to 1048576; 0 (default): off.
    pub top_k: u32,
    /// Above 0, at most 1; 1 (default): off.
    pub top_p: f32,
    /// 0 to 1; 0 (default): off.
    pub min_p: f32,
    /// Above 0, at most 1; 1 (default): off.
    pub typical_p: f32,
    /// 0 to 1000; 0 (default): off.
    pub top_n_sigma: f32,
    /// 0 to 1; 0 (default): off.
    pub xtc_probability: f32,
    /// 0 to 1. Default 0.1; above 0.5: off.
    pub xtc_threshold: f32,
    /// 1 to 1048576. Default 1.
    pub min_keep: u32,
    /// Above 0, at most 10; 1 (default): off.
    pub repetition_penalty: f32,
    /// -2 to 2; 0 (default): off.
    pub frequency_penalty: f32,
    /// -2 to 2; 0 (default): off.
    pub presence_penalty: f32,
    /// Tokens; -1 to 16777216. Default 64; -1: all, 0: off.
    pub repeat_last_n: i32,
    /// 0 to 100; 0 (default): off.
    pub dry_multiplier: f32,
    /// 1 to 100. Default 1.75.
    pub dry_base: f32,
    /// Tokens; 0 to 16777216. Default 2.
    pub dry_allowed_length: u32,
    /// Tokens; -1 to 16777216. Default -1: all; 0: off.
    pub dry_penalty_last_n: i32,
    /// None of them empty. Default: a line break, a colon, a double quote, an asterisk.
    pub dry_sequence_breakers: Vec<String>,
}

impl Default for SamplingDefaults {
    fn default() -> Self {
        let params = SamplingParams::default();
        Self {
            temperature: params.temperature,
            dynatemp_range: params.dynatemp_range,
            dynatemp_exponent: params.dynatemp_exponent,
            top_k: params.top_k,
            top_p: params.top_p,
            min_p: params.min_p,
            typical_p: params.typical_p,
            top_n_sigma: params.top_n_sigma,
            xtc_probability: params.xtc_probability,
            xtc_threshold: params.xtc_threshold,
            min_keep: params.min_keep,
            repetition_penalty: params.repetition_penalty,
            frequency_penalty: params.frequency_penalty,
            presence_penalty: params.presence_penalty,
            repeat_last_n: params.repeat_last_n,
            dry_multiplier: params.dry.multiplier,
            dry_base: params.dry.base,
            dry_allowed_length: params.dry.allowed_length,
            dry_penalty_last_n: params.dry.penalty_last_n,
            dry_sequence_breakers: params.dry.sequence_breakers,
        }
    }
}

impl SamplingDefaults {
    /// The sampler chain that these defaults describe, without a bias.
    pub fn to_params(&self) -> SamplingParams {
        SamplingParams {
            temperature: self.temperature,
            dynatemp_range: self.dynatemp_range,
            dynatemp_exponent: self.dynatemp_exponent,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            typical_p: self.typical_p,
            top_n_sigma: self.top_n_sigma,
            xtc_probability: self.xtc_probability,
            xtc_threshold: self.xtc_threshold,
            min_keep: self.min_keep,
            repetition_penalty: self.repetition_penalty,
            frequency_penalty: self.frequency_penalty,
            presence_penalty: self.presence_penalty,
            repeat_last_n: self.repeat_last_n,
            dry: DryParams {
                multiplier: self.dry_multiplier,
                base: self.dry_base,
                allowed_length: self.dry_allowed_length,
                penalty_last_n: self.dry_penalty_last_n,
                sequence_breakers: self.dry_sequence_breakers.clone(),
            },
            logit_bias: Vec::new(),
        }
    }

    pub(super) fn check(&self, problems: &mut Problems) {
        const TOKENS: i32 = 16_777_216;
        problems.range("sampling.temperature", self.temperature, 0.0..=100.0);
        problems.range("sampling.dynatemp_range", self.dynatemp_range, 0.0..=100.0);
        problems.range("sampling.dynatemp_exponent", self.dynatemp_exponent, 0.0..=100.0);
        problems.range("sampling.top_k", self.top_k, 0..=1_048_576);
        above_zero("sampling.top_p", self.top_p, 1.0, problems);
        problems.range("sampling.min_p", self.min_p, 0.0..=1.0);
        above_zero("sampling.typical_p", self.typical_p, 1.0, problems);
        problems.range("sampling.top_n_sigma", self.top_n_sigma, 0.0..=1000.0);
        problems.range("sampling.xtc_probability", self.xtc_probability, 0.0..=1.0);
        problems.range("sampling.xtc_threshold", self.xtc_threshold, 0.0..=1.0);
        problems.range("sampling.min_keep", self.min_keep, 1..=1_048_576);
        above_zero("sampling.repetition_penalty", self.repetition_penalty, 10.0, problems);
        problems.range("sampling.frequency_penalty", self.frequency_penalty, -2.0..=2.0);
        problems.range("sampling.presence_penalty", self.presence_penalty, -2.0..=2.0);
        problems.range("sampling.repeat_last_n", self.repeat_last_n, -1..=TOKENS);
        problems.range("sampling.dry_multiplier", self.dry_multiplier, 0.0..=100.0);
        problems.range("sampling.dry_base", self.dry_base, 1.0..=100.0);
        let allowed_length = self.dry_allowed_length;
        problems.range("sampling.dry_allowed_length", allowed_length, 0..=TOKENS.unsigned_abs());
        problems.range("sampling.dry_penalty_last_n", self.dry_penalty_last_n, -1..=TOKENS);
        for (index, breaker) in self.dry_sequence_breakers.iter().enumerate() {
            if breaker.is_empty() {
                problems.add(format!("sampling.dry_sequence_breakers[{index}]"), "is empty");
            }
        }
    }
}

/// Requires `value` to be above 0 and at most `high`.
fn above_zero(key: &str, value: f32, high: f32, problems: &mut Problems) {
    if !(value > 0.0 && value <= high) {
        problems.add(key, format!("must be above 0 and at most {high}, not {value}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_the_chain_with_every_stage_off() {
        assert_eq!(SamplingDefaults::default().to_params(), SamplingParams::default());
    }
}
