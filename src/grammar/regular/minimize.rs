//! The smallest automaton of a language.

use super::super::Fuel;
use super::RegularError;
use super::dfa::{Arms, DEAD, Dfa, DfaState};

impl Dfa {
    /// The automaton with the fewest states for the same language: the same one for each
    /// language.
    pub fn minimize(self, fuel: &mut Fuel<'_>) -> Result<Self, RegularError> {
        let labels: Vec<u32> = self.states().iter().map(|s| u32::from(s.accepting)).collect();
        let edges = edges(self.states().iter().map(|state| &*state.arms), fuel)?;
        let blocks = equivalent(&labels, edges, fuel)?;
        if blocks.iter().max().is_none_or(|&last| last as usize + 1 == blocks.len()) {
            return Ok(self);
        }
        let mut states: Vec<Option<DfaState>> = Vec::new();
        let mut arms = Arms::default();
        for (state, &block) in self.states().iter().zip(&blocks) {
            let block = block as usize;
            if states.len() <= block {
                states.resize(block + 1, None);
            }
            if states[block].is_none() {
                for arm in &state.arms {
                    arms.push(arm.low, arm.high, blocks[arm.next as usize]);
                }
                states[block] = Some(DfaState { accepting: state.accepting, arms: arms.take() });
            }
        }
        let start = blocks.first().copied().unwrap_or(DEAD);
        Ok(Self::assemble(states.into_iter().flatten().collect(), start))
    }
}

/// One step of an automaton, its characters as a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) tail: u32,
    pub(super) symbol: u32,
    pub(super) head: u32,
}

/// The steps of an automaton whose arms are cut so that each symbol is a fixed range of
/// characters, and characters that no state tells apart are one symbol.
pub(super) fn edges<'a>(
    states: impl Iterator<Item = &'a [super::DfaArm]> + Clone,
    fuel: &mut Fuel<'_>,
) -> Result<Vec<Edge>, RegularError> {
    let mut bounds: Vec<u32> =
        states.clone().flatten().flat_map(|arm| [arm.low, arm.high + 1]).collect();
    bounds.sort_unstable();
    bounds.dedup();
    let symbols = Symbols::new(&bounds, states.clone(), fuel)?;
    let mut edges = Vec::new();
    for (tail, arms) in states.enumerate() {
        for arm in arms {
            let first = bounds.partition_point(|&bound| bound < arm.low);
            let covered = bounds[first..].iter().take_while(|&&bound| bound <= arm.high).count();
            fuel.spend(1 + covered as u32)?;
            for (index, &symbol) in symbols.of[first..first + covered].iter().enumerate() {
                // A symbol of several ranges is the edge of the first of them only.
                if symbols.first[symbol as usize] as usize == first + index {
                    edges.push(Edge { tail: tail as u32, symbol, head: arm.next });
                }
            }
        }
    }
    Ok(edges)
}

/// Which ranges between bounds lead to the same states everywhere.
struct Symbols {
    /// The symbol of each range.
    of: Vec<u32>,
    /// The first range of each symbol.
    first: Vec<u32>,
}

impl Symbols {
    fn new<'a>(
        bounds: &[u32],
        states: impl Iterator<Item = &'a [super::DfaArm]>,
        fuel: &mut Fuel<'_>,
    ) -> Result<Self, RegularError> {
        let mut of = vec![0_u32; bounds.len()];
        let mut count = u32::from(!bounds.is_empty());
        let mut seen = rustc_hash::FxHashMap::default();
        for arms in states {
            if count as usize == bounds.len() {
                break;
            }
            fuel.spend(1 + bounds.len() as u32 / 4)?;
            seen.clear();
            count = 0;
            let mut arms = arms.iter().peekable();
            for (symbol, &low) in of.iter_mut().zip(bounds) {
                while arms.next_if(|arm| arm.high < low).is_some() {}
                let next = arms.peek().filter(|arm| arm.low <= low).map_or(DEAD, |arm| arm.next);
                *symbol = *seen.entry((*symbol, next)).or_insert_with(|| {
                    count += 1;
                    count - 1
                });
            }
        }
        let mut first = vec![u32::MAX; count as usize];
        for (index, &symbol) in of.iter().enumerate().rev() {
            first[symbol as usize] = index as u32;
        }
        Ok(Self { of, first })
    }
}

/// Elements in sets that only ever split.
#[derive(Debug)]
struct Partition {
    /// Elements, those of a set together, marked ones first.
    elements: Vec<u32>,
    /// Where each element is in `elements`.
    places: Vec<u32>,
    /// The set of each element.
    set_of: Vec<u32>,
    /// Start, end of the marked ones, and end of each set in `elements`.
    sets: Vec<(u32, u32, u32)>,
    /// Sets with marks.
    touched: Vec<u32>,
}

impl Partition {
    /// Elements with equal keys in one set.
    fn by_keys(keys: &[u32]) -> Self {
        let mut elements: Vec<u32> = (0..keys.len() as u32).collect();
        elements.sort_by_key(|&element| keys[element as usize]);
        let mut places = vec![0; keys.len()];
        let mut set_of = vec![0; keys.len()];
        let mut sets: Vec<(u32, u32, u32)> = Vec::new();
        let mut previous = None;
        for (place, &element) in elements.iter().enumerate() {
            let (place, key) = (place as u32, keys[element as usize]);
            if previous != Some(key) {
                previous = Some(key);
                sets.push((place, place, place));
            }
            places[element as usize] = place;
            set_of[element as usize] = sets.len() as u32 - 1;
            if let Some(set) = sets.last_mut() {
                set.2 = place + 1;
            }
        }
        Self { elements, places, set_of, sets, touched: Vec::new() }
    }

    fn mark(&mut self, element: u32) {
        let set = self.set_of[element as usize];
        let (start, marked, _) = self.sets[set as usize];
        let place = self.places[element as usize];
        if place < marked {
            return;
        }
        if marked == start {
            self.touched.push(set);
        }
        let other = self.elements[marked as usize];
        self.elements.swap(place as usize, marked as usize);
        self.places[other as usize] = place;
        self.places[element as usize] = marked;
        self.sets[set as usize].1 += 1;
    }

    /// Splits every set with marks; the smaller part becomes the new set.
    fn split(&mut self) {
        while let Some(set) = self.touched.pop() {
            let (start, marked, end) = self.sets[set as usize];
            self.sets[set as usize].1 = start;
            if marked == end {
                continue;
            }
            let (kept, split) = if marked - start <= end - marked {
                ((marked, marked, end), (start, start, marked))
            } else {
                ((start, start, marked), (marked, marked, end))
            };
            let new = self.sets.len() as u32;
            self.sets[set as usize] = kept;
            for place in split.0..split.2 {
                let element = self.elements[place as usize];
                self.set_of[element as usize] = new;
            }
            self.sets.push(split);
        }
    }
}

/// The block of each state such that states of one block have the same label and lead to the
/// same blocks. Blocks are numbered from 0.
///
/// After Valmari and Lehtinen, "Efficient minimization of DFAs with partial transition functions"
/// (2008): time in proportion to edges × log(edges).
pub(super) fn equivalent(
    labels: &[u32],
    edges: Vec<Edge>,
    fuel: &mut Fuel<'_>,
) -> Result<Vec<u32>, RegularError> {
    fuel.spend((labels.len() + edges.len()) as u32)?;
    let mut blocks = Partition::by_keys(labels);
    let symbols: Vec<u32> = edges.iter().map(|edge| edge.symbol).collect();
    let mut cords = Partition::by_keys(&symbols);
    let heads: Vec<u32> = edges.iter().map(|edge| edge.head).collect();
    let (first, incoming) = group(&heads, labels.len());
    let (mut block, mut cord) = (1, 0);
    while let Some(&(start, _, end)) = cords.sets.get(cord) {
        cord += 1;
        fuel.spend(1 + end - start)?;
        for place in start..end {
            blocks.mark(edges[cords.elements[place as usize] as usize].tail);
        }
        blocks.split();
        while let Some(&(start, _, end)) = blocks.sets.get(block) {
            block += 1;
            for place in start..end {
                let head = blocks.elements[place as usize] as usize;
                let into = &incoming[first[head] as usize..first[head + 1] as usize];
                fuel.spend(1 + into.len() as u32)?;
                for &edge in into {
                    cords.mark(edge);
                }
            }
            cords.split();
        }
    }
    Ok(blocks.set_of)
}

/// The indices of `keys` by key: where those of each key start, and the indices.
pub(super) fn group(keys: &[u32], count: usize) -> (Vec<u32>, Vec<u32>) {
    let mut first = vec![0_u32; count + 1];
    for &key in keys {
        first[key as usize] += 1;
    }
    let mut total = 0;
    for slot in &mut first {
        total += *slot;
        *slot = total;
    }
    let mut indices = vec![0_u32; keys.len()];
    for (index, &key) in keys.iter().enumerate() {
        let slot = &mut first[key as usize];
        *slot -= 1;
        indices[*slot as usize] = index as u32;
    }
    (first, indices)
}
