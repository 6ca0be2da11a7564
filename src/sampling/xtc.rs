//! XTC, "exclude top choices" (P. E. Weidmann, text-generation-webui pull request 6335).

use super::SamplingParams;
use super::rank::Ranked;
use super::truncate::best_logit;

/// Whether the stage takes part, and so takes a draw for each token.
pub(super) fn is_on(params: &SamplingParams) -> bool {
    params.xtc_probability > 0.0 && params.xtc_threshold <= 0.5
}

/// Removes all candidates whose probability reaches `threshold` but the least probable of them.
/// Does nothing where that would leave fewer than `min_keep`. `mass` is the sum of the
/// candidates' weights. Keeps their order.
pub(super) fn exclude(candidates: &mut Vec<Ranked>, threshold: f32, mass: f64, min_keep: usize) {
    let bound = f64::from(best_logit(candidates)) + (f64::from(threshold) * mass).ln();
    let top = || candidates.iter().filter(|candidate| f64::from(candidate.logit()) >= bound);
    let Some(&least) = top().max() else { return };
    let removed = top().count() - 1;
    if candidates.len() - removed >= min_keep {
        candidates.retain(|&candidate| candidate >= least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excluded(probabilities: &[f32], threshold: f32, min_keep: usize) -> Vec<u32> {
        let ranked = |(index, p): (usize, &f32)| Ranked::new(p.ln(), index as u32);
        let mut candidates: Vec<_> = probabilities.iter().enumerate().map(ranked).collect();
        let best = probabilities.iter().copied().fold(0.0, f32::max);
        exclude(&mut candidates, threshold, f64::from(1.0 / best), min_keep);
        candidates.iter().map(|candidate| candidate.index()).collect()
    }

    #[test]
    fn leaves_the_least_of_the_top_choices() {
        let row = [0.4, 0.3, 0.2, 0.06, 0.04];
        assert_eq!(excluded(&row, 0.1, 1), [2, 3, 4]);
        assert_eq!(excluded(&row, 0.25, 1), [1, 2, 3, 4]);
        assert_eq!(excluded(&row, 0.35, 1), [0, 1, 2, 3, 4]);
        assert_eq!(excluded(&row, 0.5, 1), [0, 1, 2, 3, 4]);
        assert_eq!(excluded(&row, 0.0, 1), [4]);
    }

    #[test]
    fn min_keep_calls_it_off() {
        let row = [0.4, 0.3, 0.2, 0.06, 0.04];
        assert_eq!(excluded(&row, 0.1, 3), [2, 3, 4]);
        assert_eq!(excluded(&row, 0.1, 4), [0, 1, 2, 3, 4]);
        assert_eq!(excluded(&[], 0.1, 1), [0_u32; 0]);
    }
}
