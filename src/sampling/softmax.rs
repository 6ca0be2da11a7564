//! Weights, masses and entropies of a softmax, always relative to the highest logit.
//!
//! The loops run over fixed lanes so that the compiler turns them into vector code. Sums are `f32`
//! within a lane of one block and `f64` beyond.

/// Values that are summed together before the sum is widened.
pub(super) const BLOCK: usize = 1024;
const LANES: usize = 16;

/// What a token weighs in the softmax: `exp((logit - max) / temperature)`, and 0 below the floor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// The highest logit; finite.
    max: f32,
    /// One over the temperature; finite.
    inverse_temperature: f32,
    /// Logits below it are not in the distribution. Finite, so that it keeps `-inf` out.
    floor: f32,
}

impl Scale {
    /// The distribution of all possible tokens at temperature 1.
    pub(super) fn natural(max: f32) -> Self {
        Self { max, inverse_temperature: 1.0, floor: f32::MIN }
    }

    /// The same without what lies below `floor`, which is finite.
    pub(super) fn above(self, floor: f32) -> Self {
        Self { floor, ..self }
    }

    /// The same at another temperature. At 0 only the highest logit (and its ties) has a weight.
    pub(super) fn at(self, temperature: f32) -> Self {
        // A finite factor keeps the highest logit's product at 0, and any other's is then -inf.
        Self { inverse_temperature: temperature.recip().min(f32::MAX), ..self }
    }

    #[inline(always)]
    fn scaled(&self, logit: f32) -> f32 {
        (logit - self.max) * self.inverse_temperature
    }

    /// The weight of one logit, in [0, 1].
    #[inline(always)]
    pub(super) fn weight(&self, logit: f32) -> f32 {
        let weight = exp(self.scaled(logit));
        if logit >= self.floor { weight } else { 0.0 }
    }

    /// The sum of the weights of one block.
    pub(super) fn block_mass(&self, block: &[f32]) -> f64 {
        let mut lanes = [0.0_f32; LANES];
        let (chunks, rest) = block.as_chunks::<LANES>();
        for chunk in chunks {
            for (lane, &logit) in lanes.iter_mut().zip(chunk) {
                *lane += self.weight(logit);
            }
        }
        let rest: f32 = rest.iter().map(|&logit| self.weight(logit)).sum();
        lanes.iter().map(|&lane| f64::from(lane)).sum::<f64>() + f64::from(rest)
    }

    /// The sum of all weights; at least 1 where the highest logit is among the values.
    pub(super) fn mass(&self, values: &[f32]) -> f64 {
        values.chunks(BLOCK).map(|block| self.block_mass(block)).sum()
    }

    /// The distribution's entropy and what it was computed from.
    pub(super) fn entropy(&self, values: &[f32]) -> Entropy {
        let mut count = 0;
        let mut mass = 0.0;
        let mut moment = 0.0;
        for block in values.chunks(BLOCK) {
            count += block.iter().filter(|&&logit| logit >= self.floor).count();
            mass += self.block_mass(block);
            moment += self.block_moment(block);
        }
        Entropy { nats: mass.ln() - moment / mass, log_mass: mass.ln(), count }
    }

    /// The sum of weight times scaled logit.
    fn block_moment(&self, block: &[f32]) -> f64 {
        // Where the bound cuts in, the weight is 0: it only keeps 0 * -inf out.
        let term = |logit: f32| self.weight(logit) * self.scaled(logit).max(LOWEST);
        let mut lanes = [0.0_f32; LANES];
        let (chunks, rest) = block.as_chunks::<LANES>();
        for chunk in chunks {
            for (lane, &logit) in lanes.iter_mut().zip(chunk) {
                *lane += term(logit);
            }
        }
        let rest: f32 = rest.iter().map(|&logit| term(logit)).sum();
        lanes.iter().map(|&lane| f64::from(lane)).sum::<f64>() + f64::from(rest)
    }
}

/// How spread a distribution is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entropy {
    /// The entropy in nats.
    pub(super) nats: f64,
    /// Logarithm of the sum of the weights.
    pub(super) log_mass: f64,
    /// Tokens in the distribution.
    pub(super) count: usize,
}

/// Below it the result is no longer a normal number; [`exp`] gives 0.
const LOWEST: f32 = -87.0;
/// Added and taken away again it rounds to an integer, which then stands in its low bits.
const ROUNDING: f32 = 12_582_912.0;
/// ln 2 in two parts, the first with so few bits that a multiple of it is exact.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;

/// The exponential of a number that is not positive, within 2 units in the last place; 0 for
/// anything below -87 and for NaN.
///
/// The standard library's calls into the C library for each number; this one is plain arithmetic,
/// so it vectorises and gives the same bits on every machine. The argument is reduced to
/// `n ln 2 + r` and `exp(r)` is its Taylor polynomial of degree 7, whose error on `|r| <= ln 2 / 2`
/// is below a unit in the last place.
#[inline(always)]
fn exp(x: f32) -> f32 {
    let bounded = if x > LOWEST { x } else { LOWEST };
    let rounded = bounded * std::f32::consts::LOG2_E + ROUNDING;
    let n = rounded - ROUNDING;
    let r = bounded - n * LN_2_HIGH - n * LN_2_LOW;
    let mut series = 1.0 / 5040.0;
    for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        series = series * r + coefficient;
    }
    let exponent = rounded.to_bits().wrapping_sub(ROUNDING.to_bits()).wrapping_add(127);
    let power = f32::from_bits(exponent << 23);
    if x >= LOWEST { series * power } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_agrees_with_the_standard_library() {
        for step in 0..=870_000 {
            let x = -(step as f32) * 1e-4;
            let expected = f64::from(x).exp();
            let error = (f64::from(exp(x)) - expected).abs() / expected;
            assert!(error < 2.4e-7, "exp({x}) is off by {error:e}");
        }
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-1e-30), 1.0);
        assert_eq!(exp(-87.1), 0.0);
        assert_eq!(exp(f32::MIN), 0.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(f32::NAN), 0.0);
    }

    #[test]
    fn a_tiny_temperature_leaves_the_highest_logit_alone() {
        for temperature in [0.0, f32::from_bits(1), 1e-30] {
            let scale = Scale::natural(2.0).at(temperature);
            assert_eq!(scale.weight(2.0), 1.0);
            assert_eq!(scale.weight(1.9999), 0.0);
            assert_eq!(scale.weight(f32::NEG_INFINITY), 0.0);
        }
    }

    #[test]
    fn the_floor_is_in_the_distribution() {
        let scale = Scale::natural(2.0).above(1.0);
        assert_eq!(scale.weight(1.0), scale.weight(1.0).max(0.36));
        assert_eq!(scale.weight(0.999), 0.0);
        assert_eq!(scale.mass(&[2.0, 0.0, f32::NEG_INFINITY]), 1.0);
    }

    #[test]
    fn entropy_of_known_distributions() {
        let uniform = Scale::natural(3.0).entropy(&[3.0; 5000]);
        assert!((uniform.nats - 5000.0_f64.ln()).abs() < 1e-6);
        assert_eq!(uniform.count, 5000);
        // 1/2, 1/4, 1/4: one and a half bits.
        let logits = [2.0_f32.ln(), 0.0, 0.0, f32::NEG_INFINITY];
        let skewed = Scale::natural(2.0_f32.ln()).entropy(&logits);
        assert!((skewed.nats - 1.5 * 2.0_f64.ln()).abs() < 1e-6);
        assert_eq!(skewed.count, 3);
        let certain = Scale::natural(0.0).entropy(&[0.0, f32::NEG_INFINITY, f32::MIN]);
        assert_eq!((certain.nats, certain.count), (0.0, 2));
    }
}
