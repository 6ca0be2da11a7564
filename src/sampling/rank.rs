//! Candidates as integers whose order is the order of sampling.

/// A candidate: its logit and its index among the values. The natural order is best first: the
/// higher logit, then the lower index. One integer, so that selecting and sorting cost no more
/// than for plain numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ranked(u64);

const SIGN: u32 = 1 << 31;

impl Ranked {
    /// `logit` must not be NaN.
    pub(super) fn new(logit: f32, index: u32) -> Self {
        // Adding zero turns -0 into +0: the two are a tie.
        let bits = (logit + 0.0).to_bits();
        let ascending = if bits & SIGN == 0 { bits | SIGN } else { !bits };
        Self(u64::from(!ascending) << 32 | u64::from(index))
    }

    pub(super) fn logit(self) -> f32 {
        let ascending = !((self.0 >> 32) as u32);
        f32::from_bits(if ascending & SIGN == 0 { !ascending } else { ascending & !SIGN })
    }

    pub(super) fn index(self) -> u32 {
        self.0 as u32
    }
}

/// Ranges at most this long are sorted rather than split further.
const SORTED_AT_MOST: usize = 32;

/// Moves the smallest prefix (in the keys' order) whose weight reaches `target` to the front and
/// returns its length; at least `min_keep` and at most all. The prefix itself is left unordered.
///
/// A selection by weight: each round splits at the median, weighs the better half and goes on in
/// the half that holds the end, so the cost is linear.
pub(super) fn smallest_prefix<K: Ord + Copy>(
    keys: &mut [K],
    weight: impl Fn(K) -> f32,
    target: f64,
    min_keep: usize,
) -> usize {
    let mut taken = 0;
    let mut mass = 0.0;
    let mut open = &mut *keys;
    while open.len() > SORTED_AT_MOST {
        let half = open.len() / 2;
        open.select_nth_unstable(half);
        let (better, worse) = open.split_at_mut(half);
        let better_mass: f64 = better.iter().map(|&key| f64::from(weight(key))).sum();
        if mass + better_mass >= target {
            open = better;
        } else {
            mass += better_mass;
            taken += half;
            open = worse;
        }
    }
    open.sort_unstable();
    for &key in open.iter() {
        mass += f64::from(weight(key));
        taken += 1;
        if mass >= target {
            break;
        }
    }
    if taken >= min_keep { taken } else { best_first(keys, min_keep) }
}

/// Moves the best `count` keys to the front and returns how many they are.
pub(super) fn best_first<K: Ord>(keys: &mut [K], count: usize) -> usize {
    if count == 0 || count >= keys.len() {
        return count.min(keys.len());
    }
    keys.select_nth_unstable(count - 1);
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_by_logit_then_index() {
        let logits = [f32::MIN, -3.5, -0.0, 0.0, 1e-40, 2.0, f32::MAX];
        for (index, &logit) in logits.iter().enumerate() {
            let ranked = Ranked::new(logit, index as u32);
            assert_eq!(ranked.logit(), logit);
            assert_eq!(ranked.index(), index as u32);
        }
        assert!(Ranked::new(2.0, 9) < Ranked::new(1.0, 0));
        assert!(Ranked::new(-1.0, 9) < Ranked::new(-2.0, 0));
        assert!(Ranked::new(1.0, 3) < Ranked::new(1.0, 4));
        assert!(Ranked::new(-0.0, 3) < Ranked::new(0.0, 4));
    }

    #[test]
    fn the_prefix_is_the_smallest_that_reaches_the_target() {
        // 0..1000 shuffled by a step that is coprime to the length; each key weighs 1.
        let shuffled: Vec<u32> = (0..1000).map(|i| i * 367 % 1000).collect();
        for (target, min_keep, expected) in
            [(1.0, 1, 1), (0.5, 1, 1), (250.0, 1, 250), (250.5, 1, 251), (3.0, 700, 700)]
        {
            let mut keys = shuffled.clone();
            let length = smallest_prefix(&mut keys, |_| 1.0, target, min_keep);
            assert_eq!(length, expected, "target {target}");
            let mut prefix = keys[..length].to_vec();
            prefix.sort_unstable();
            assert_eq!(prefix, (0..length as u32).collect::<Vec<_>>());
        }
        assert_eq!(smallest_prefix(&mut shuffled.clone(), |_| 1.0, 5000.0, 1), 1000);
        assert_eq!(smallest_prefix(&mut shuffled.clone(), |_| 1.0, 1.0, 5000), 1000);
    }
}
