//! What a request may ask of the sampler.

use crate::TokenId;

/// The sampler chain of one request. Each stage is off at its neutral value, which is also its
/// default; the ranges are checked by whoever takes the request.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingParams {
    /// Divides the logits before the draw; 0: the highest logit, ties to the lowest token id, and
    /// the filters (also `dynatemp_range`) have no say.
    pub temperature: f32,
    /// Half width of the dynamic temperature around `temperature`; 0: off.
    pub dynatemp_range: f32,
    /// How the normalised entropy maps into the dynamic range; 1: linearly.
    pub dynatemp_exponent: f32,
    /// Keeps the k highest logits; 0: all.
    pub top_k: u32,
    /// Nucleus: keeps the smallest set whose probability reaches it, in (0, 1]; 1: off.
    pub top_p: f32,
    /// Keeps tokens at least this share as probable as the best, in [0, 1]; 0: off.
    pub min_p: f32,
    /// Locally typical: keeps the mass closest to the entropy, in (0, 1]; 1: off.
    pub typical_p: f32,
    /// Keeps logits within n standard deviations of the highest; 0: off. Does not know `min_keep`.
    pub top_n_sigma: f32,
    /// Chance that XTC removes the top choices, in [0, 1]; 0: off.
    pub xtc_probability: f32,
    /// Probability from which XTC counts a token as a top choice; above 0.5: off.
    pub xtc_threshold: f32,
    /// Candidates that top-p, min-p, typical and XTC always leave; at least 1.
    pub min_keep: u32,
    /// Divides (positive) or multiplies (negative) the logits of seen tokens; above 0, 1: off.
    pub repetition_penalty: f32,
    /// Subtracted once for each time a token was generated; in [-2, 2], 0: off.
    pub frequency_penalty: f32,
    /// Subtracted once from each token that was generated; in [-2, 2], 0: off.
    pub presence_penalty: f32,
    /// How many of the last tokens `repetition_penalty` looks at, prompt included; -1: all, 0: off.
    pub repeat_last_n: i32,
    /// Don't-repeat-yourself.
    pub dry: DryParams,
    /// Added to the logits of these tokens before everything else; finite. An id outside the
    /// vocabulary changes nothing.
    pub logit_bias: Vec<(TokenId, f32)>,
}

impl Default for SamplingParams {
    fn default() -> Self {
        Self {
            temperature: 0.0,
            dynatemp_range: 0.0,
            dynatemp_exponent: 1.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            typical_p: 1.0,
            top_n_sigma: 0.0,
            xtc_probability: 0.0,
            xtc_threshold: 0.1,
            min_keep: 1,
            repetition_penalty: 1.0,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            repeat_last_n: 64,
            dry: DryParams::default(),
            logit_bias: Vec::new(),
        }
    }
}

/// The DRY penalty: tokens that would extend a repetition of what was said before lose
/// `multiplier * base ^ (repeated length - allowed_length)`, where the repeated length counts the
/// tokens that repeat already, without the new one.
#[derive(Clone, Debug, PartialEq)]
pub struct DryParams {
    /// Scale of the penalty; 0: off.
    pub multiplier: f32,
    /// Growth with each repeated token; at least 1.
    pub base: f32,
    /// Repeated tokens from which extending them costs something; then it costs `multiplier`.
    pub allowed_length: u32,
    /// How many of the last tokens are searched; -1: all, 0: off.
    pub penalty_last_n: i32,
    /// Strings that a repetition cannot reach across, wherever they stand in the tokens' text.
    pub sequence_breakers: Vec<String>,
}

impl Default for DryParams {
    fn default() -> Self {
        Self {
            multiplier: 0.0,
            base: 1.75,
            allowed_length: 2,
            penalty_last_n: -1,
            sequence_breakers: ["\n", ":", "\"", "*"].map(String::from).to_vec(),
        }
    }
}
