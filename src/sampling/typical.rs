//! Locally typical sampling (Meister et al. 2022, "Locally Typical Sampling").

use super::rank::{Ranked, smallest_prefix};
use super::softmax::{Entropy, Scale};
use super::truncate::best_logit;

/// Keeps the candidates whose surprise is closest to the entropy: the fewest of them, closest
/// first, whose probability reaches `p`; ties to the better candidate. `logits` and `keys` are
/// scratch.
pub(super) fn typical(
    candidates: &mut Vec<Ranked>,
    p: f32,
    min_keep: usize,
    logits: &mut Vec<f32>,
    keys: &mut Vec<Key>,
) {
    let scale = Scale::natural(best_logit(candidates));
    logits.clear();
    logits.extend(candidates.iter().map(|candidate| candidate.logit()));
    let Entropy { nats, log_mass, .. } = scale.entropy(logits);

    keys.clear();
    keys.extend(candidates.iter().map(|&candidate| {
        let surprise = log_mass - (f64::from(candidate.logit()) - f64::from(scale.max));
        // A distance is not negative, and such floats sort as their bits do.
        Key { distance: ((surprise - nats).abs() as f32).to_bits(), candidate }
    }));
    let weight = |key: Key| scale.weight(key.candidate.logit());
    let kept = smallest_prefix(keys, weight, f64::from(p) * log_mass.exp(), min_keep);
    candidates.clear();
    candidates.extend(keys.iter().take(kept).map(|key| key.candidate));
}

/// A candidate by its distance from the entropy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    distance: u32,
    candidate: Ranked,
}
