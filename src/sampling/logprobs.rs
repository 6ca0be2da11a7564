//! Log-probabilities of the model's own distribution.

use super::SampleError;
use super::rank::best_first;
use super::scan::BlockMaxima;
use super::softmax::Scale;
use crate::TokenId;

/// Log-probabilities at one position, natural logarithms.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenLogprobs {
    /// Of the token that was asked about; `-inf` where the model rules it out.
    pub logprob: f32,
    /// The most probable tokens, best first, ties to the lowest id. Shorter than asked for where
    /// the model leaves fewer tokens possible.
    pub top: Vec<(TokenId, f32)>,
}

/// The log-probability of `token` and of the `top` most probable tokens, by the model's own
/// distribution: before bias, penalties, mask and chain.
///
/// The sum over the vocabulary is taken in `f64`, so the results are exact to about 1e-6.
///
/// # Errors
/// [`SampleError::NonFinite`] for a row with a NaN or a positive infinity,
/// [`SampleError::EmptyMask`] for one of negative infinities only, and
/// [`SampleError::RowLength`] where the row is too short to hold `token`.
pub fn logprobs(row: &[f32], token: TokenId, top: usize) -> Result<TokenLogprobs, SampleError> {
    let index = token as usize;
    let too_short = SampleError::RowLength { expected: index + 1, found: row.len() };
    let &logit = row.get(index).ok_or(too_short)?;
    let mut maxima = BlockMaxima::default();
    maxima.scan(row)?;
    let max = f64::from(maxima.max());
    let log_mass = Scale::natural(maxima.max()).mass(row).ln();
    let logprob = |logit: f32| (f64::from(logit) - max - log_mass) as f32;

    let mut candidates = Vec::new();
    if top > 0 {
        let bound = maxima.reached_by(top);
        maxima.gather(row, bound, &mut candidates);
        let kept = best_first(&mut candidates, top);
        candidates.truncate(kept);
        candidates.sort_unstable();
    }
    let top = candidates.iter().map(|best| (best.index(), logprob(best.logit()))).collect();
    Ok(TokenLogprobs { logprob: logprob(logit), top })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_known_distribution() {
        // 1/8, 1/2, 1/4, 1/8.
        let row: Vec<f32> = [1.0_f32, 4.0, 2.0, 1.0].map(f32::ln).to_vec();
        let found = logprobs(&row, 2, 3).unwrap();
        let near = |a: f32, b: f64| assert!((f64::from(a) - b.ln()).abs() < 1e-6);
        near(found.logprob, 0.25);
        assert_eq!(found.top.iter().map(|top| top.0).collect::<Vec<_>>(), [1, 2, 0]);
        near(found.top[0].1, 0.5);
        near(found.top[1].1, 0.25);
        near(found.top[2].1, 0.125);
        assert_eq!(logprobs(&row, 0, 0).unwrap().top, []);
    }

    #[test]
    fn of_the_whole_vocabulary_sum_to_one() {
        let row: Vec<f32> = (0..40_000).map(|i| ((i * 7919) % 1009) as f32 / 60.0).collect();
        let found = logprobs(&row, 0, row.len()).unwrap();
        assert_eq!(found.top.len(), row.len());
        let sum: f64 = found.top.iter().map(|top| f64::from(top.1).exp()).sum();
        assert!((sum - 1.0).abs() < 2e-6, "{sum}");
        for pair in found.top.windows(2) {
            assert!(pair[0].1 > pair[1].1 || pair[0].1 == pair[1].1 && pair[0].0 < pair[1].0);
        }
        let exact = row.iter().map(|&x| f64::from(x).exp()).sum::<f64>();
        for (token, logprob) in [found.top[0], found.top[777], found.top[39_999]] {
            let expected = f64::from(row[token as usize]) - exact.ln();
            assert!((f64::from(logprob) - expected).abs() < 2e-6);
            assert_eq!(logprobs(&row, token, 0).unwrap().logprob, logprob);
        }
    }

    #[test]
    fn impossible_tokens_are_not_named() {
        let row = [f32::NEG_INFINITY, 0.0, 0.0];
        let found = logprobs(&row, 0, 3).unwrap();
        assert_eq!(found.logprob, f32::NEG_INFINITY);
        assert_eq!(found.top.iter().map(|top| top.0).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn faults() {
        assert_eq!(logprobs(&[0.0, f32::NAN], 0, 1), Err(SampleError::NonFinite));
        assert_eq!(logprobs(&[0.0, f32::INFINITY], 0, 1), Err(SampleError::NonFinite));
        assert_eq!(logprobs(&[f32::NEG_INFINITY], 0, 1), Err(SampleError::EmptyMask));
        let short = SampleError::RowLength { expected: 3, found: 2 };
        assert_eq!(logprobs(&[0.0, 0.0], 2, 1), Err(short));
    }
}
