//! The chain, stage after stage.

use super::draw;
use super::dry::{Dry, DryBreakers};
use super::live::{Live, View};
use super::penalties::{Penalties, apply_bias};
use super::rank::Ranked;
use super::scan::BlockMaxima;
use super::softmax::Scale;
use super::truncate::{leave, min_p, min_p_bound, top_k, top_p, top_p_bound};
use super::typical::{self, typical};
use super::{SampleError, SamplingParams, temperature, top_n_sigma, xtc};
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
        pool.sample(view, params, rng)
    }

    /// Adds a token to the history: the one just sampled, or one that was forced without sampling.
    /// Forced tokens take no draw.
    pub fn accept(&mut self, token: TokenId) {
        self.penalties.push(token);
        if let Some(dry) = &mut self.dry {
            dry.push(token);
        }
    }
}

/// Chooses one of the values. All its parts are scratch.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    pub(super) maxima: BlockMaxima,
    pub(super) candidates: Vec<Ranked>,
    logits: Vec<f32>,
    typical: Vec<typical::Key>,
    sums: Vec<f64>,
}

/// What the filters left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kept {
    /// Every value that reaches `floor`; there is no list.
    Values {
        /// Finite.
        floor: f32,
    },
    /// The candidates, best first.
    Candidates,
}

impl Pool {
    fn sample(
        &mut self,
        view: View<'_>,
        params: &SamplingParams,
        rng: &mut fastrand::Rng,
    ) -> Result<TokenId, SampleError> {
        self.maxima.scan(view.values)?;
        let chosen = if params.temperature > 0.0 {
            let excludes = xtc::is_on(params) && rng.f64() < f64::from(params.xtc_probability);
            let kept = self.filter(view.values, params, excludes);
            self.draw(view.values, params, kept, rng.f64())
        } else {
            self.maxima.argmax(view.values).map(|index| index as u32)
        };
        // Only parameters out of their range leave the highest logit without a weight.
        chosen.and_then(|index| view.token(index)).ok_or(SampleError::NonFinite)
    }

    /// The filters, from top-n-sigma to XTC, on values that were scanned.
    pub(super) fn filter(
        &mut self,
        values: &[f32],
        params: &SamplingParams,
        excludes: bool,
    ) -> Kept {
        let min_keep = params.min_keep.max(1) as usize;
        let max = self.maxima.max();
        let floor = top_n_sigma::floor(values, max, params.top_n_sigma);
        let k = Some(params.top_k as usize).filter(|&k| k > 0 && k < values.len());
        let has_typical = params.typical_p < 1.0;
        let has_top_p = params.top_p < 1.0;
        let has_min_p = params.min_p > 0.0;

        // The first stage that is on tells how low a logit can be and still survive it.
        let mut mass = None;
        let threshold = if let Some(k) = k {
            self.maxima.reached_by(k)
        } else if has_typical {
            floor
        } else if has_top_p {
            let whole = Scale { floor, ..Scale::natural(max) }.mass(values);
            mass = Some(whole);
            let bound = top_p_bound(max, params.top_p, whole, values.len());
            leave(bound, &mut self.maxima, min_keep)
        } else if has_min_p {
            leave(min_p_bound(max, params.min_p), &mut self.maxima, min_keep)
        } else if excludes {
            floor
        } else {
            return Kept::Values { floor };
        };
        self.maxima.gather(values, threshold.max(floor), &mut self.candidates);

        let candidates = &mut self.candidates;
        if let Some(k) = k {
            top_k(candidates, k);
        }
        if has_typical {
            typical(candidates, params.typical_p, min_keep, &mut self.logits, &mut self.typical);
        }
        if has_top_p {
            top_p(candidates, params.top_p, mass, min_keep);
        }
        if has_min_p {
            min_p(candidates, params.min_p, min_keep);
        }
        candidates.sort_unstable();
        if excludes {
            xtc::exclude(candidates, params.xtc_threshold, min_keep);
        }
        Kept::Candidates
    }

    /// Temperature and draw. The index of the value that was drawn.
    fn draw(
        &mut self,
        values: &[f32],
        params: &SamplingParams,
        kept: Kept,
        uniform: f64,
    ) -> Option<u32> {
        let mut scale = match kept {
            Kept::Values { floor } => Scale { floor, ..Scale::natural(self.maxima.max()) },
            Kept::Candidates => Scale::natural(self.candidates.first()?.logit()),
        };
        let temperature = self.temperature(values, params, kept, scale);
        if temperature > 0.0 {
            scale.temperature = temperature;
        } else {
            // The dynamic range reaches down to 0: only the highest logit has a weight.
            scale.floor = scale.max;
        }
        match kept {
            Kept::Values { .. } => draw::from_values(values, scale, uniform, &mut self.sums)
                .map(|index| index as u32),
            Kept::Candidates => draw::from_candidates(&self.candidates, scale, uniform)
                .map(|candidate| candidate.index()),
        }
    }

    fn temperature(
        &mut self,
        values: &[f32],
        params: &SamplingParams,
        kept: Kept,
        scale: Scale,
    ) -> f32 {
        if !temperature::is_dynamic(params) {
            return params.temperature;
        }
        let entropy = match kept {
            Kept::Values { .. } => scale.entropy(values),
            Kept::Candidates => {
                self.logits.clear();
                self.logits.extend(self.candidates.iter().map(|candidate| candidate.logit()));
                scale.entropy(&self.logits)
            }
        };
        temperature::dynamic(params, entropy)
    }
}
