//! The filters as their papers state them, in `f64`, with full sorts and no shortcuts. The tests
//! hold the sampler against this.

use super::{SampleInput, SamplingParams};
use crate::TokenId;

/// Tokens with their logits, best first.
type Tokens = Vec<(TokenId, f64)>;

/// What the filters keep, best first. `margin` moves every threshold by a small relative amount,
/// so that a test can tell a case that stands on an edge.
pub(super) fn kept(
    input: &SampleInput<'_>,
    params: &SamplingParams,
    excludes: bool,
    margin: f64,
) -> Vec<TokenId> {
    let min_keep = params.min_keep as usize;
    let factor = 1.0 + margin;
    let mut tokens = allowed(input);
    top_n_sigma(&mut tokens, f64::from(params.top_n_sigma) * factor);
    if params.top_k > 0 {
        tokens.truncate(params.top_k as usize);
    }
    typical(&mut tokens, f64::from(params.typical_p), factor, min_keep);
    top_p(&mut tokens, f64::from(params.top_p), factor, min_keep);
    min_p(&mut tokens, f64::from(params.min_p) * factor, min_keep);
    if excludes {
        xtc(&mut tokens, f64::from(params.xtc_threshold) * factor, min_keep);
    }
    tokens.iter().map(|token| token.0).collect()
}

fn allowed(input: &SampleInput<'_>) -> Tokens {
    let bit = |mask: &[u32], token: usize| {
        mask.get(token / 32).is_some_and(|word| word & (1 << (token % 32)) != 0)
    };
    let mut tokens: Tokens = (0..)
        .zip(input.row)
        .filter(|&(token, &logit)| {
            logit != f32::NEG_INFINITY
                && input.mask.is_none_or(|mask| bit(mask, token as usize))
                && !input.banned.contains(&token)
        })
        .map(|(token, &logit)| (token, f64::from(logit)))
        .collect();
    best_first(&mut tokens);
    tokens
}

fn best_first(tokens: &mut Tokens) {
    tokens.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
}

pub(super) fn softmax(tokens: &[(TokenId, f64)]) -> Vec<f64> {
    let max = tokens.iter().map(|token| token.1).fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = tokens.iter().map(|token| (token.1 - max).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

fn top_n_sigma(tokens: &mut Tokens, n: f64) {
    if n <= 0.0 || tokens.is_empty() {
        return;
    }
    let count = tokens.len() as f64;
    let mean = tokens.iter().map(|token| token.1).sum::<f64>() / count;
    let variance = tokens.iter().map(|token| (token.1 - mean).powi(2)).sum::<f64>() / count;
    let floor = tokens[0].1 - n * variance.sqrt();
    tokens.retain(|token| token.1 >= floor);
}

fn typical(tokens: &mut Tokens, p: f64, factor: f64, min_keep: usize) {
    if p >= 1.0 {
        return;
    }
    let probabilities = softmax(tokens);
    let entropy: f64 = probabilities.iter().filter(|&&p| p > 0.0).map(|p| -p * p.ln()).sum();
    let mut scored: Vec<(f64, f64, (TokenId, f64))> = tokens
        .iter()
        .zip(&probabilities)
        .map(|(&token, &p)| ((-p.ln() - entropy).abs(), p, token))
        .collect();
    scored.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut sum = 0.0;
    tokens.clear();
    for (_, probability, token) in scored {
        tokens.push(token);
        sum += probability;
        if sum >= p * factor && tokens.len() >= min_keep {
            break;
        }
    }
    best_first(tokens);
}

fn top_p(tokens: &mut Tokens, p: f64, factor: f64, min_keep: usize) {
    if p >= 1.0 {
        return;
    }
    let mut sum = 0.0;
    let mut kept = 0;
    for probability in softmax(tokens) {
        kept += 1;
        sum += probability;
        if sum >= p * factor && kept >= min_keep {
            break;
        }
    }
    tokens.truncate(kept);
}

fn min_p(tokens: &mut Tokens, p: f64, min_keep: usize) {
    if p <= 0.0 {
        return;
    }
    let probabilities = softmax(tokens);
    let kept = probabilities.iter().filter(|&&probability| probability >= p * probabilities[0]);
    let kept = kept.count().max(min_keep);
    tokens.truncate(kept);
}

fn xtc(tokens: &mut Tokens, threshold: f64, min_keep: usize) {
    let top = softmax(tokens).iter().filter(|&&p| p >= threshold).count();
    let removed = top.saturating_sub(1);
    if tokens.len() - removed >= min_keep {
        tokens.drain(..removed);
    }
}
