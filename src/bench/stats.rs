//! Medians and percentiles of what was measured.

use std::time::Duration;

/// The value below which `share` (0 to 1) of the values lie; 0 of none.
pub fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    of_sorted(&sorted, share)
}

/// The same of values in ascending order.
pub fn of_sorted(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let index = (last as f64 * share).round() as usize;
    sorted.get(index).copied().unwrap_or_default()
}

/// The middle value; 0 of none.
pub fn median(values: &[f64]) -> f64 {
    percentile(values, 0.5)
}

/// Milliseconds.
pub fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let values: Vec<f64> = (1..=101).rev().map(f64::from).collect();
        assert_eq!(
            [0.0, 0.5, 0.9, 0.99, 1.0].map(|share| percentile(&values, share)),
            [1.0, 51.0, 91.0, 100.0, 101.0]
        );
        assert_eq!(median(&[]), 0.0);
        assert_eq!(median(&[3.0]), 3.0);
    }
}
