//! Locally typical sampling (Meister et al. 2022, "Locally Typical Sampling").

use super::rank::{Ranked, smallest_prefix};
use super::softmax::{Entropy, Scale};
use super::truncate::{best_logit, top_p_bound};

/// Keeps the candidates whose surprise is closest to the entropy: the fewest of them, closest
/// first, whose probability reaches `p`; ties to the better candidate. `entropy` is that of the
/// distribution they come from. `keys` is scratch.
pub(super) fn typical(
    candidates: &mut Vec<Ranked>,
    p: f32,
    entropy: Entropy,
    min_keep: usize,
    keys: &mut Vec<Key>,
) {
    let Entropy { nats, log_mass, .. } = entropy;
    let max = best_logit(candidates);
    let scale = Scale::natural(max);
    keys.clear();
    keys.extend(candidates.iter().map(|&candidate| {
        let surprise = log_mass - (f64::from(candidate.logit()) - f64::from(max));
        // A distance is not negative, and such floats sort as their bits do.
        Key { distance: ((surprise - nats).abs() as f32).to_bits(), candidate }
    }));
    let weight = |key: Key| scale.weight(key.candidate.logit());
    let kept = smallest_prefix(keys, weight, f64::from(p) * log_mass.exp(), min_keep);
    candidates.clear();
    candidates.extend(keys.iter().take(kept).map(|key| key.candidate));
}

/// A logit that everything typical keeps reaches, `min_keep` aside, among `count` values.
///
/// Below it lies no more than `p` may leave out (as for top-p). And it is so far down that its
/// surprise is above the entropy by more than the entropy itself, so nothing above it is further.
pub(super) fn typical_bound(max: f32, p: f32, entropy: &Entropy, count: usize) -> f32 {
    let by_distance = f64::from(max) - (2.0 * entropy.nats - entropy.log_mass) - 0.01;
    top_p_bound(max, p, entropy.log_mass.exp(), count).min(by_distance as f32)
}

/// A candidate by its distance from the entropy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    distance: u32,
    candidate: Ranked,
}
