//! The temperature of one draw.

use super::SamplingParams;
use super::softmax::Entropy;

/// The temperature; `entropy` is asked only where the temperature follows it.
pub(super) fn of(params: &SamplingParams, entropy: impl FnOnce() -> Entropy) -> f32 {
    if params.dynatemp_range > 0.0 { dynamic(params, entropy()) } else { params.temperature }
}

/// Entropy-based dynamic temperature (kalomaze's, as in koboldcpp and llama.cpp): from
/// `temperature - range` (not below 0) at no entropy to `temperature + range` at the entropy of a
/// uniform choice among the candidates that are left.
fn dynamic(params: &SamplingParams, entropy: Entropy) -> f32 {
    if entropy.count <= 1 {
        return params.temperature;
    }
    let normalised = (entropy.nats / (entropy.count as f64).ln()).clamp(0.0, 1.0) as f32;
    let low = (params.temperature - params.dynatemp_range).max(0.0);
    let high = params.temperature + params.dynatemp_range;
    low + (high - low) * normalised.powf(params.dynatemp_exponent)
}

#[cfg(test)]
mod tests {
    use super::super::softmax::Scale;
    use super::*;

    fn temperature(range: f32, exponent: f32, logits: &[f32]) -> f32 {
        let params = SamplingParams {
            temperature: 1.0,
            dynatemp_range: range,
            dynatemp_exponent: exponent,
            ..Default::default()
        };
        let max = logits.iter().copied().fold(f32::MIN, f32::max);
        dynamic(&params, Scale::natural(max).entropy(logits))
    }

    #[test]
    fn follows_the_normalised_entropy() {
        let near = |a: f32, b: f32| assert!((a - b).abs() < 1e-5, "{a} is not {b}");
        near(temperature(0.5, 1.0, &[1.0; 8]), 1.5);
        near(temperature(0.5, 1.0, &[80.0, 0.0, 0.0]), 0.5);
        near(temperature(3.0, 1.0, &[80.0, 0.0, 0.0]), 0.0);
        // 1/2, 1/4, 1/4 has 1.5 of log2(3) bits.
        let normalised = 1.5 / 3.0_f32.log2();
        let logits = [2.0_f32.ln(), 0.0, 0.0];
        near(temperature(0.5, 1.0, &logits), 0.5 + normalised);
        near(temperature(0.5, 2.0, &logits), 0.5 + normalised * normalised);
        near(temperature(0.5, 1.0, &[4.0, f32::NEG_INFINITY]), 1.0);
    }
}
