//! The filters, one after the other, and the draw from what they leave.

use super::rank::Ranked;
use super::scan::BlockMaxima;
use super::softmax::{Entropy, Scale};
use super::truncate::{best_logit, leave, min_p, min_p_bound, top_k, top_p, top_p_bound};
use super::typical::{self, typical, typical_bound};
use super::{SampleError, SamplingParams, draw, temperature, top_n_sigma, xtc};

/// Depths below the highest logit, in nats, within which the nucleus is sought first.
const NUCLEUS_DEPTHS: [f32; 2] = [4.0, 8.0];

/// Chooses one of the values. All its parts are scratch, reused from token to token.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    maxima: BlockMaxima,
    candidates: Vec<Ranked>,
    logits: Vec<f32>,
    keys: Vec<typical::Key>,
    sums: Vec<f64>,
}

/// What the filters left.
#[derive(Clone, Copy, Debug)]
enum Kept {
    /// Every value that reaches `floor`, in the order of their indices; there is no list.
    Values {
        /// Finite.
        floor: f32,
    },
    /// The list of candidates, best first; by index where XTC was the only filter.
    Candidates,
}

/// What the first filter had to compute of the whole distribution.
#[derive(Clone, Copy, Debug, Default)]
struct Whole {
    mass: Option<f64>,
    entropy: Option<Entropy>,
}

/// The filters that make a list, `None` or false where they are off.
#[derive(Clone, Copy, Debug)]
struct Filters {
    k: Option<usize>,
    typical_p: Option<f32>,
    top_p: Option<f32>,
    min_p: Option<f32>,
    excludes: bool,
    min_keep: usize,
}

impl Filters {
    fn new(params: &SamplingParams, values: usize, excludes: bool) -> Self {
        Self {
            k: Some(params.top_k as usize).filter(|&k| k > 0 && k < values),
            typical_p: Some(params.typical_p).filter(|&p| p < 1.0),
            top_p: Some(params.top_p).filter(|&p| p < 1.0),
            min_p: Some(params.min_p).filter(|&p| p > 0.0),
            excludes,
            min_keep: params.min_keep.max(1) as usize,
        }
    }
}

impl Pool {
    /// The index of the highest value, the lowest of a tie.
    pub(super) fn best(&mut self, values: &[f32]) -> Result<Option<u32>, SampleError> {
        self.maxima.scan(values)?;
        Ok(self.maxima.argmax(values).map(|index| index as u32))
    }

    /// Filters, scales and draws: the index of one of the values. `excludes` says that XTC fires,
    /// `uniform` in [0, 1) is the draw.
    pub(super) fn draw(
        &mut self,
        values: &[f32],
        params: &SamplingParams,
        excludes: bool,
        uniform: f64,
    ) -> Result<Option<u32>, SampleError> {
        match self.filter(values, params, excludes)? {
            Kept::Values { floor } => {
                let scale = Scale::natural(self.maxima.max()).above(floor);
                let temperature = temperature::of(params, || scale.entropy(values));
                let scale = scale.at(temperature);
                let drawn = draw::from_values(values, scale, uniform, &mut self.sums);
                Ok(drawn.map(|index| index as u32))
            }
            Kept::Candidates => {
                let natural = self.list_logits();
                let temperature = temperature::of(params, || natural.entropy(&self.logits));
                let scale = natural.at(temperature);
                let drawn = draw::from_values(&self.logits, scale, uniform, &mut self.sums);
                let candidate = drawn.and_then(|place| self.candidates.get(place));
                Ok(candidate.map(|candidate| candidate.index()))
            }
        }
    }

    fn filter(
        &mut self,
        values: &[f32],
        params: &SamplingParams,
        excludes: bool,
    ) -> Result<Kept, SampleError> {
        self.maxima.scan(values)?;
        let floor = top_n_sigma::floor(values, self.maxima.max(), params.top_n_sigma);
        let filters = Filters::new(params, values.len(), excludes);
        let Some(whole) = self.gather(values, floor, filters) else {
            return Ok(Kept::Values { floor });
        };
        let Filters { k, typical_p, top_p: nucleus_p, min_p: share, min_keep, .. } = filters;
        if let Some(k) = k {
            top_k(&mut self.candidates, k);
        }
        if let Some(p) = typical_p {
            let entropy = whole.entropy.unwrap_or_else(|| self.entropy());
            typical(&mut self.candidates, p, entropy, min_keep, &mut self.keys);
        }
        if let Some(p) = nucleus_p {
            let mass = whole.mass.unwrap_or_else(|| self.mass());
            top_p(&mut self.candidates, p, mass, min_keep);
        }
        if let Some(p) = share {
            min_p(&mut self.candidates, p, min_keep);
        }
        if excludes {
            let mass = self.mass();
            xtc::exclude(&mut self.candidates, params.xtc_threshold, mass, min_keep);
        }
        // The selections above leave an order that is theirs alone; the draw needs one to rely on.
        if k.is_some() || typical_p.is_some() || nucleus_p.is_some() || share.is_some() {
            self.candidates.sort_unstable();
        }
        Ok(Kept::Candidates)
    }

    /// Lists the values that can survive the first filter that is on; `None`: none is.
    fn gather(&mut self, values: &[f32], floor: f32, filters: Filters) -> Option<Whole> {
        let max = self.maxima.max();
        let scale = Scale::natural(max).above(floor);
        let mut whole = Whole::default();
        let bound = if let Some(k) = filters.k {
            self.maxima.reached_by(k)
        } else if let Some(p) = filters.typical_p {
            let entropy = whole.entropy.insert(scale.entropy(values));
            let bound = typical_bound(max, p, entropy, values.len());
            leave(bound, &mut self.maxima, filters.min_keep)
        } else if let Some(p) = filters.top_p {
            let mass = *whole.mass.insert(scale.mass(values));
            for depth in NUCLEUS_DEPTHS {
                self.maxima.gather(values, floor.max(max - depth), &mut self.candidates);
                let enough = self.candidates.len() >= filters.min_keep;
                if enough && self.mass() >= f64::from(p) * mass {
                    return Some(whole);
                }
            }
            leave(top_p_bound(max, p, mass, values.len()), &mut self.maxima, filters.min_keep)
        } else if let Some(p) = filters.min_p {
            leave(min_p_bound(max, p), &mut self.maxima, filters.min_keep)
        } else if filters.excludes {
            floor
        } else {
            return None;
        };
        self.maxima.gather(values, floor.max(bound), &mut self.candidates);
        Some(whole)
    }

    /// Lists the candidates' logits, in their order, for the loops over plain values. Returns the
    /// candidates' own distribution.
    fn list_logits(&mut self) -> Scale {
        self.logits.clear();
        self.logits.extend(self.candidates.iter().map(|candidate| candidate.logit()));
        Scale::natural(best_logit(&self.candidates))
    }

    fn mass(&mut self) -> f64 {
        self.list_logits().mass(&self.logits)
    }

    fn entropy(&mut self) -> Entropy {
        self.list_logits().entropy(&self.logits)
    }
}

#[cfg(test)]
impl Pool {
    /// What is left when the draw comes, best first.
    pub(super) fn left(
        &mut self,
        values: &[f32],
        params: &SamplingParams,
        excludes: bool,
    ) -> Vec<u32> {
        if let Kept::Values { floor } = self.filter(values, params, excludes).unwrap() {
            self.candidates.clear();
            for (index, &value) in values.iter().enumerate().filter(|value| *value.1 >= floor) {
                self.candidates.push(Ranked::new(value, index as u32));
            }
        }
        self.candidates.sort_unstable();
        self.candidates.iter().map(|candidate| candidate.index()).collect()
    }
}
