//! Sampling: from a row of logits to a token.

mod params;

pub use params::{DryParams, SamplingParams};
