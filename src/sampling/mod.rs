//! Sampling: from a row of logits to a token.
//!
//! A [`Sampler`] belongs to one generation. [`Sampler::sample`] runs the chain, in this order: logit
//! bias, repetition, frequency and presence penalties, DRY, the grammar's mask and the banned
//! tokens, top-n-sigma, top-k, typical, top-p, min-p, XTC, temperature, draw. Each stage is off at
//! its neutral value. Stages only filter; temperature alone rescales, and it divides logits: a
//! probability that a stage computes is never written back over them.
//!
//! The device's row is read, never written. It is copied only where a penalty, a bias, a ban or a
//! dense mask changes it, and no stage sorts the vocabulary: block maxima ([`scan`]) tell which few
//! blocks hold the tokens that can survive.
//!
//! The draws come from a seeded generator: one uniform number for each sampled token, one more
//! before it while XTC is on, none at temperature 0.

mod draw;
mod dry;
mod error;
mod live;
mod logprobs;
mod params;
mod penalties;
mod pool;
mod rank;
mod sampler;
mod scan;
mod softmax;
mod temperature;
mod top_n_sigma;
mod truncate;
mod typical;
mod xtc;

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

pub use dry::{DryBreakers, DryBreakersError};
pub use error::SampleError;
pub use logprobs::{TokenLogprobs, logprobs};
pub use params::{DryParams, SamplingParams};
pub use sampler::{SampleInput, Sampler};
