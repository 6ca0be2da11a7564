//! Top-k, top-p and min-p: each keeps a prefix of the candidates, best first.

use super::rank::{Ranked, best_first, smallest_prefix};
use super::scan::BlockMaxima;
use super::softmax::Scale;

/// The best logit among the candidates; `-inf` where there is none.
pub(super) fn best_logit(candidates: &[Ranked]) -> f32 {
    candidates.iter().min().map_or(f32::NEG_INFINITY, |best| best.logit())
}

/// Keeps the `k` highest logits, ties to the lowest index (Fan et al. 2018, "Hierarchical Neural
/// Story Generation").
pub(super) fn top_k(candidates: &mut Vec<Ranked>, k: usize) {
    let kept = best_first(candidates, k);
    candidates.truncate(kept);
}

/// Keeps the fewest candidates, best first, whose probability reaches `p` (Holtzman et al. 2019,
/// "The Curious Case of Neural Text Degeneration"). `mass` is the sum of the weights of the
/// distribution they come from.
pub(super) fn top_p(candidates: &mut Vec<Ranked>, p: f32, mass: f64, min_keep: usize) {
    let scale = Scale::natural(best_logit(candidates));
    let weight = |candidate: Ranked| scale.weight(candidate.logit());
    let kept = smallest_prefix(candidates, weight, f64::from(p) * mass, min_keep);
    candidates.truncate(kept);
}

/// A logit that everything top-p keeps reaches, `min_keep` aside, among `count` values whose
/// weights sum up to `mass`.
///
/// What lies more than c below the highest weighs less than `count * exp(-c)` together. Where that
/// is no more than the share that top-p may leave out, the rest alone reaches `p`.
pub(super) fn top_p_bound(max: f32, p: f32, mass: f64, count: usize) -> f32 {
    let spare = (1.0 - f64::from(p)) * mass;
    let depth = (count as f64 / spare).ln();
    // A hundredth more makes up for rounding.
    (f64::from(max) - depth.max(0.0) - 0.01) as f32
}

/// Keeps candidates at least `p` times as probable as the best (Nguyen et al. 2024, "Turning Up the
/// Heat: Min-p Sampling").
pub(super) fn min_p(candidates: &mut Vec<Ranked>, p: f32, min_keep: usize) {
    let bound = min_p_bound(best_logit(candidates), p);
    let reaching = candidates.iter().filter(|candidate| candidate.logit() >= bound).count();
    top_k(candidates, reaching.max(min_keep));
}

/// The lowest logit that min-p keeps, `min_keep` aside.
pub(super) fn min_p_bound(max: f32, p: f32) -> f32 {
    max + p.min(1.0).ln()
}

/// The highest threshold not above `threshold` that lets at least `count` candidates through.
pub(super) fn leave(threshold: f32, maxima: &mut BlockMaxima, count: usize) -> f32 {
    threshold.min(maxima.reached_by(count))
}
