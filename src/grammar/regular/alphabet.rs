//! The classes of characters that a pattern cannot tell apart.

use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use super::super::{CharSet, Fuel, LimitError};
use super::dfa::{Arms, DEAD, DfaArm};

/// A partition of the scalar values for a list of sets: every set is a union of classes.
#[derive(Debug, Default)]
pub(super) struct Alphabet {
    /// First and last character and class of each range, ascending, without gaps but the
    /// surrogates.
    ranges: Vec<(u32, u32, u32)>,
    class_count: usize,
    /// Where the classes of each set start in `members`.
    first: Vec<u32>,
    members: Vec<u32>,
}

impl Alphabet {
    pub(super) fn new(sets: &[CharSet], fuel: &mut Fuel<'_>) -> Result<Self, LimitError> {
        // Where a set starts or ends, each range's end being the start of what follows.
        let mut turns: Vec<(u32, u32)> = Vec::new();
        for (index, set) in sets.iter().enumerate() {
            fuel.spend(1 + set.ranges().len() as u32)?;
            for &(low, high) in set.ranges() {
                turns.extend([(low, index as u32), (high + 1, index as u32)]);
            }
        }
        let outside = sets.len() as u32;
        turns.extend([(0xD800, outside), (0xE000, outside), (0x11_0000, outside)]);
        turns.sort_unstable();
        let mut classes = Classes::new(sets.len() + 1);
        let mut ranges: Vec<(u32, u32, u32)> = Vec::with_capacity(turns.len());
        let mut low = 0;
        for (at, set) in turns {
            if at > low && !classes.contains(outside) {
                fuel.spend(1 + outside / 64)?;
                let class = classes.current();
                match ranges.last_mut() {
                    Some(last) if last.2 == class && last.1 + 1 == low => last.1 = at - 1,
                    _ => ranges.push((low, at - 1, class)),
                }
            }
            low = at;
            classes.toggle(set);
        }
        let (mut first, mut members) = (Vec::with_capacity(sets.len() + 1), Vec::new());
        for set in 0..outside {
            first.push(members.len() as u32);
            classes.with(set, &mut members);
        }
        first.push(members.len() as u32);
        Ok(Self { ranges, class_count: classes.count(), first, members })
    }

    /// Number of classes.
    pub(super) fn class_count(&self) -> usize {
        self.class_count
    }

    /// The classes that a set consists of, ascending.
    pub(super) fn classes(&self, set: u32) -> &[u32] {
        let (start, end) = (self.first[set as usize], self.first[set as usize + 1]);
        &self.members[start as usize..end as usize]
    }

    /// The arms of a state, by where each class leads.
    pub(super) fn arms(&self, next: &[u32], arms: &mut Arms) -> Box<[DfaArm]> {
        for &(low, high, class) in &self.ranges {
            if next[class as usize] != DEAD {
                arms.push(low, high, next[class as usize]);
            }
        }
        arms.take()
    }
}

/// Classes by which sets they are in: one bit for each set.
struct Classes {
    now: Bits,
    ids: FxHashMap<Bits, u32>,
    all: Vec<Bits>,
}

type Bits = SmallVec<[u64; 1]>;

impl Classes {
    fn new(sets: usize) -> Self {
        let now = smallvec![0; sets.div_ceil(64)];
        Self { now, ids: FxHashMap::default(), all: Vec::new() }
    }

    fn toggle(&mut self, set: u32) {
        self.now[set as usize / 64] ^= 1 << (set % 64);
    }

    fn contains(&self, set: u32) -> bool {
        self.now[set as usize / 64] >> (set % 64) & 1 == 1
    }

    fn current(&mut self) -> u32 {
        if let Some(&id) = self.ids.get(&self.now) {
            return id;
        }
        let id = self.all.len() as u32;
        self.ids.insert(self.now.clone(), id);
        self.all.push(self.now.clone());
        id
    }

    /// Adds the classes that are in `set`.
    fn with(&self, set: u32, found: &mut Vec<u32>) {
        let is_in = |bits: &[u64]| bits[set as usize / 64] >> (set % 64) & 1 == 1;
        let indexed = self.all.iter().enumerate().filter(|(_, bits)| is_in(bits));
        found.extend(indexed.map(|(class, _)| class as u32));
    }

    fn count(&self) -> usize {
        self.all.len()
    }
}
