//! The sampler: history, values, then a choice among them.

use super::dry::{Dry, DryBreakers};
use super::live::Live;
use super::penalties::{Penalties, apply_bias};
use super::pool::Pool;
use super::{SampleError, SamplingParams, xtc};
use crate::TokenId;

/// Samples the tokens of one generation.
///
/// The same parameters, seed, prompt and inputs give the same tokens. It owns its history, its
/// generator and the scratch that it reuses from token to token.
#[derive(Clone, Debug)]
pub struct Sampler {
    params: SamplingParams,
    vocab_size: usize,
    rng: fastrand::Rng,
    penalties: Penalties,
    dry: Option<Dry>,
    live: Live,
    pool: Pool,
}

/// What one token is sampled from.
#[derive(Clone, Copy, Debug)]
pub struct SampleInput<'a> {
    /// The device's logits, read only: one for each token of the vocabulary. Negative infinity is
    /// the model's way to rule a token out, and never sampled; NaN or positive infinity is a fault.
    pub row: &'a [f32],
    /// The grammar's mask: bit `i % 32` of word `i / 32` set means that token i is allowed. Tokens
    /// past its end are not allowed. `None`: no grammar.
    pub mask: Option<&'a [u32]>,
    /// Tokens that may not be sampled now, such as the end tokens before `min_tokens`. Ids outside
    /// the vocabulary have no effect.
    pub banned: &'a [TokenId],
}

impl Sampler {
    /// A sampler for rows of `vocab_size` logits. `prompt` is the history that the repetition
    /// penalty and DRY start with; `breakers` are those of `params.dry`.
    pub fn new(
        params: SamplingParams,
        vocab_size: usize,
        seed: u64,
        prompt: &[TokenId],
        breakers: DryBreakers,
    ) -> Self {
        Self {
            rng: fastrand::Rng::with_seed(seed),
            penalties: Penalties::new(&params, prompt),
            dry: Dry::new(&params.dry, prompt, breakers),
            live: Live::default(),
            pool: Pool::default(),
            params,
            vocab_size,
        }
    }

    /// Samples the next token. It joins the history only through [`Sampler::accept`].
    ///
    /// At temperature 0 the token is the highest logit after bias, penalties, mask and bans, ties
    /// to the lowest id, whatever the filters (XTC and typical could drop it).
    ///
    /// # Errors
    /// [`SampleError::NonFinite`] for a row with a NaN or a positive infinity, masked or not;
    /// [`SampleError::EmptyMask`] where nothing is left; [`SampleError::RowLength`].
    pub fn sample(&mut self, input: SampleInput<'_>) -> Result<TokenId, SampleError> {
        let Self { params, vocab_size, rng, penalties, dry, live, pool } = self;
        if input.row.len() != *vocab_size {
            let found = input.row.len();
            return Err(SampleError::RowLength { expected: *vocab_size, found });
        }
        let adjusts = !params.logit_bias.is_empty() || penalties.is_on() || dry.is_some();
        let adjust = adjusts.then_some(|logits: &mut [f32]| {
            apply_bias(&params.logit_bias, logits);
            penalties.apply(logits);
            if let Some(dry) = dry {
                dry.apply(logits);
            }
        });
        let view = live.view(&input, adjust)?;
        let chosen = if params.temperature > 0.0 {
            let excludes = xtc::is_on(params) && rng.f64() < f64::from(params.xtc_probability);
            pool.draw(view.values, params, excludes, rng.f64())?
        } else {
            pool.best(view.values)?
        };
        // Only parameters out of their range leave even the highest logit without a weight.
        chosen.and_then(|index| view.token(index)).ok_or(SampleError::NonFinite)
    }

    /// Passes over the draws of one token, for one that needs no sampling: what is drawn later is
    /// then the same as if it had been sampled.
    pub fn skip(&mut self) {
        if self.params.temperature > 0.0 {
            if xtc::is_on(&self.params) {
                self.rng.f64();
            }
            self.rng.f64();
        }
    }

    /// Adds a token to the history: the one just sampled, or one that was forced without sampling.
    /// Takes no draw; see [`Sampler::skip`].
    pub fn accept(&mut self, token: TokenId) {
        self.penalties.push(token);
        if let Some(dry) = &mut self.dry {
            dry.push(token);
        }
    }
}
