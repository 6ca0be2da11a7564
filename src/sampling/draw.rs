//! The draw: a walk along the cumulative sum of the weights.

use super::softmax::{BLOCK, Scale};

/// Draws the index of one of the values; `uniform` is in [0, 1). `None`: none has a weight. `sums`
/// is scratch: the cumulative sums of whole blocks, so that only one block is walked.
pub(super) fn from_values(
    values: &[f32],
    scale: Scale,
    uniform: f64,
    sums: &mut Vec<f64>,
) -> Option<usize> {
    sums.clear();
    let mut mass = 0.0;
    for block in values.chunks(BLOCK) {
        mass += scale.block_mass(block);
        sums.push(mass);
    }
    let target = uniform * mass;
    let number = sums.partition_point(|&sum| sum <= target);
    let before = number.checked_sub(1).and_then(|last| sums.get(last)).copied().unwrap_or(0.0);
    let block = values.get(number * BLOCK..)?.chunks(BLOCK).next()?;
    let place = walk(block.iter().map(|&logit| scale.weight(logit)), target - before)?;
    Some(number * BLOCK + place)
}

/// The first place at which the cumulative sum of the weights passes `target`. The target may stand
/// a rounding error past the end; then the last place with a weight.
fn walk(weights: impl Iterator<Item = f32>, target: f64) -> Option<usize> {
    let mut sum = 0.0;
    let mut last = None;
    for (place, weight) in weights.enumerate() {
        if weight > 0.0 {
            last = Some(place);
            sum += f64::from(weight);
            if sum > target {
                break;
            }
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: f32 = f32::NEG_INFINITY;

    #[test]
    fn never_takes_a_weightless_place() {
        assert_eq!(walk([0.0, 1.0, 0.0, 1.0, 0.0].into_iter(), 0.0), Some(1));
        assert_eq!(walk([0.0, 1.0, 0.0, 1.0, 0.0].into_iter(), 1.0), Some(3));
        assert_eq!(walk([0.0, 1.0, 0.0, 1.0, 0.0].into_iter(), 2.0), Some(3));
        assert_eq!(walk([0.0].into_iter(), 0.0), None);
    }

    #[test]
    fn values_are_drawn_across_blocks() {
        // Four possible tokens of equal weight, in four blocks of five.
        let mut values = vec![NEVER; 5 * BLOCK];
        let places = [7, BLOCK + 1, 3 * BLOCK, 5 * BLOCK - 1];
        for place in places {
            values[place] = 1.0;
        }
        let scale = Scale::natural(1.0);
        let draw = |uniform| from_values(&values, scale, uniform, &mut Vec::new()).unwrap();
        for (quarter, place) in places.into_iter().enumerate() {
            let start = quarter as f64 / 4.0;
            assert_eq!(draw(start), place);
            assert_eq!(draw(start + 0.2499999), place);
        }
        assert_eq!(draw(1.0 - f64::EPSILON / 2.0), places[3]);
    }

    #[test]
    fn the_floor_holds() {
        let values: Vec<f32> = (0..3000).map(|i| -(i as f32) / 400.0).collect();
        let scale = Scale::natural(0.0).at(0.7).above(-6.0);
        for step in 0..1000 {
            let uniform = (f64::from(step) + 0.5) / 1000.0;
            let found = from_values(&values, scale, uniform, &mut Vec::new()).unwrap();
            assert!(values[found] >= -6.0);
        }
    }
}
