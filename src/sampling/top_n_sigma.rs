//! Top-n-sigma (Tang et al. 2024, "Top-nσ: Not All Logits Are You Need").

const LANES: usize = 8;

/// The lowest logit that stays: `n` standard deviations below the highest, over the possible
/// tokens. Never above `max`. At most 0 for `n` is off.
pub(super) fn floor(values: &[f32], max: f32, n: f32) -> f32 {
    if n > 0.0 {
        let deviation = standard_deviation(values, max);
        ((f64::from(max) - f64::from(n) * deviation) as f32).max(f32::MIN)
    } else {
        f32::MIN
    }
}

/// Of the values above negative infinity; computed around `max`, which must be among them.
fn standard_deviation(values: &[f32], max: f32) -> f64 {
    let mut counts = [0_u32; LANES];
    let mut sums = [0.0_f64; LANES];
    let mut squares = [0.0_f64; LANES];
    for chunk in values.chunks(LANES) {
        let lanes = counts.iter_mut().zip(&mut sums).zip(&mut squares);
        for (((count, sum), square), &value) in lanes.zip(chunk) {
            let possible = value > f32::NEG_INFINITY;
            let distance = if possible { f64::from(value) - f64::from(max) } else { 0.0 };
            *count += u32::from(possible);
            *sum += distance;
            *square += distance * distance;
        }
    }
    let count = f64::from(counts.iter().sum::<u32>());
    let mean = sums.iter().sum::<f64>() / count;
    (squares.iter().sum::<f64>() / count - mean * mean).max(0.0).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_possible_tokens_only() {
        let never = f32::NEG_INFINITY;
        let values = [2.0, never, 4.0, 4.0, never, 4.0, 5.0, 5.0, 7.0, 9.0, never];
        assert!((standard_deviation(&values, 9.0) - 2.0).abs() < 1e-12);
        assert_eq!(floor(&values, 9.0, 1.5), 6.0);
        assert_eq!(floor(&values, 9.0, 0.0), f32::MIN);
        assert_eq!(floor(&[3.0, never], 3.0, 1.0), 3.0);
    }
}
