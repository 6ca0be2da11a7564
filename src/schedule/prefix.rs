//! Saved sequences by their tokens, so that what prompts have in common is computed once.
//!
//! The keys are in the order of their tokens. In that order the longest beginning that a text has
//! in common with any of them is the one it has with a neighbour, so a look-up compares with two
//! keys however many there are.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use crate::TokenId;

/// What is shorter is computed again: that costs about as much as bringing it back.
pub(super) const PREFIX_TOKENS_MIN: usize = 16;

/// A saved sequence more than so many times longer than what is needed of it is not worth loading.
const EXCESS_MAX: usize = 64;

/// A sequence's tokens.
pub(super) type Key = Arc<[TokenId]>;

/// Saved sequences under a byte budget. What was not used for the longest time goes first.
///
/// Exact: `bytes` is what the saved states and their keys hold, and it, with what is being saved,
/// never exceeds the budget. Only the size of what is being saved is an estimate.
#[derive(Debug)]
pub(super) struct PrefixIndex {
    budget_bytes: u64,
    /// A saved sequence can be cut back, so that any beginning of it can be used.
    can_trim: bool,
    entries: BTreeMap<Key, Saved>,
    by_age: BTreeMap<u64, Key>,
    age: u64,
    bytes: u64,
    pending: HashMap<u64, Pending>,
    pending_bytes: u64,
    tickets: u64,
    /// Bytes and tokens of the latest state, for the estimate.
    latest: (u64, u64),
    evictions: u64,
}

#[derive(Debug)]
struct Saved {
    state: Arc<Vec<u8>>,
    age: u64,
}

#[derive(Debug)]
struct Pending {
    key: Key,
    bytes: u64,
}

/// What was found for a prompt.
#[derive(Debug)]
pub(super) struct Hit {
    /// Tokens of the prompt that need not be computed.
    pub(super) tokens: u32,
    /// The saved sequence, which begins with them, and may go on.
    pub(super) key: Key,
    pub(super) state: Arc<Vec<u8>>,
}

impl PrefixIndex {
    /// An empty index; a budget of 0 turns it off.
    pub(super) fn new(budget_bytes: u64, can_trim: bool) -> Self {
        Self {
            budget_bytes,
            can_trim,
            entries: BTreeMap::new(),
            by_age: BTreeMap::new(),
            age: 0,
            bytes: 0,
            pending: HashMap::new(),
            pending_bytes: 0,
            tickets: 0,
            latest: (0, 1),
            evictions: 0,
        }
    }

    pub(super) fn is_on(&self) -> bool {
        self.budget_bytes > 0
    }

    pub(super) fn can_trim(&self) -> bool {
        self.can_trim
    }

    /// The device cannot save after all.
    pub(super) fn turn_off(&mut self) {
        *self = Self { evictions: self.evictions, ..Self::new(0, false) };
    }

    /// The device cannot cut back what it restored.
    pub(super) fn stop_trimming(&mut self) {
        self.can_trim = false;
    }

    /// The longest beginning of `tokens` that can be brought back.
    pub(super) fn find(&mut self, tokens: &[TokenId]) -> Option<Hit> {
        let whole = self.whole_beginning(tokens);
        let cut = if self.can_trim { self.nearest(tokens) } else { None };
        let (key, common) = match (whole, cut) {
            // Of two that serve equally well the one that need not be cut.
            (Some(whole), Some((_, common))) if whole.len() >= common => {
                (Arc::clone(&whole), whole.len())
            }
            (_, Some((key, common))) if key.len() <= common.saturating_mul(EXCESS_MAX) => {
                (key, common)
            }
            (Some(whole), _) => (Arc::clone(&whole), whole.len()),
            (None, _) => return None,
        };
        if common < PREFIX_TOKENS_MIN {
            return None;
        }
        let state = Arc::clone(&self.entries.get(&key)?.state);
        self.touch(&key);
        Some(Hit { tokens: u32::try_from(common).ok()?, key, state })
    }

    /// How many of `tokens` some saved sequence begins with, whether or not that is of use.
    pub(super) fn common_with_any(&self, tokens: &[TokenId]) -> usize {
        self.nearest(tokens).map_or(0, |(_, common)| common)
    }

    /// Whether a sequence of these tokens is worth saving: long enough, small enough, and not
    /// there already.
    pub(super) fn wants(&mut self, tokens: &[TokenId]) -> bool {
        if !self.is_on()
            || tokens.len() < PREFIX_TOKENS_MIN
            || self.estimate(tokens.len()) > self.budget_bytes
        {
            return false;
        }
        if self.pending.values().any(|pending| self.covers(&pending.key, tokens)) {
            return false;
        }
        let after =
            self.entries.range::<[TokenId], _>((Bound::Included(tokens), Bound::Unbounded)).next();
        let covering = after.map(|(key, _)| Arc::clone(key)).filter(|key| self.covers(key, tokens));
        match covering {
            Some(key) => {
                self.touch(&key);
                false
            }
            None => true,
        }
    }

    /// Makes room for a sequence that is to be saved; the number to save it under.
    pub(super) fn begin_save(&mut self, key: Key) -> u64 {
        let bytes = self.estimate(key.len());
        self.pending_bytes += bytes;
        self.tickets += 1;
        self.pending.insert(self.tickets, Pending { key, bytes });
        self.evict();
        self.tickets
    }

    /// Takes what was saved, or nothing where it could not be.
    pub(super) fn finish_save(&mut self, ticket: u64, state: Option<Vec<u8>>) {
        let Some(pending) = self.pending.remove(&ticket) else { return };
        self.pending_bytes -= pending.bytes;
        let Some(mut state) = state.filter(|_| self.is_on()) else { return };
        state.shrink_to_fit();
        self.latest = (size_of(&pending.key, &state), pending.key.len().max(1) as u64);
        self.insert(pending.key, state);
    }

    /// What was to be saved never will be.
    pub(super) fn cancel_saves(&mut self) {
        self.pending.clear();
        self.pending_bytes = 0;
    }

    /// Drops a saved sequence that is of no use.
    pub(super) fn forget(&mut self, key: &Key) {
        if let Some(saved) = self.entries.remove(key) {
            self.bytes -= size_of(key, &saved.state);
            self.by_age.remove(&saved.age);
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Sequences dropped to make room.
    pub(super) fn evictions(&self) -> u64 {
        self.evictions
    }

    fn insert(&mut self, key: Key, state: Vec<u8>) {
        self.forget(&key);
        if self.can_trim {
            self.forget_beginnings(&key);
        }
        self.age += 1;
        self.bytes += size_of(&key, &state);
        self.by_age.insert(self.age, Arc::clone(&key));
        self.entries.insert(key, Saved { state: Arc::new(state), age: self.age });
        self.evict();
    }

    /// A chat that went on covers what was saved of it before. One that is much shorter stays: it
    /// is the beginning of others too, and quicker to load.
    fn forget_beginnings(&mut self, key: &Key) {
        let mut end = key.len();
        while let Some(before) = self.whole_beginning(key.get(..end).unwrap_or_default()) {
            if before.len() * 2 <= key.len() {
                return;
            }
            self.forget(&before);
            end = before.len();
        }
    }

    fn evict(&mut self) {
        while self.bytes + self.pending_bytes > self.budget_bytes {
            let Some((_, oldest)) = self.by_age.first_key_value() else { return };
            let oldest = Arc::clone(oldest);
            self.forget(&oldest);
            self.evictions += 1;
        }
    }

    fn touch(&mut self, key: &Key) {
        let Some(saved) = self.entries.get_mut(key) else { return };
        self.age += 1;
        self.by_age.remove(&saved.age);
        saved.age = self.age;
        self.by_age.insert(self.age, Arc::clone(key));
    }

    /// Whether a sequence saved under `key` serves in place of one of `tokens`.
    fn covers(&self, key: &[TokenId], tokens: &[TokenId]) -> bool {
        key.starts_with(tokens) && (self.can_trim || key.len() == tokens.len())
    }

    fn estimate(&self, tokens: usize) -> u64 {
        let (bytes, of) = self.latest;
        (tokens as u64).saturating_mul(bytes).div_ceil(of.max(1))
    }

    /// The key that has most in common with `tokens`, and how much.
    fn nearest(&self, tokens: &[TokenId]) -> Option<(Key, usize)> {
        let before = self
            .entries
            .range::<[TokenId], _>((Bound::Unbounded, Bound::Included(tokens)))
            .next_back();
        let after =
            self.entries.range::<[TokenId], _>((Bound::Excluded(tokens), Bound::Unbounded)).next();
        let neighbours = before.into_iter().chain(after);
        neighbours
            .map(|(key, _)| (Arc::clone(key), common_length(key, tokens)))
            .max_by_key(|(key, common)| (*common, std::cmp::Reverse(key.len())))
            .filter(|(_, common)| *common > 0)
    }

    /// The longest key that `tokens` begin with.
    fn whole_beginning(&self, tokens: &[TokenId]) -> Option<Key> {
        let mut end = tokens.len();
        loop {
            let text = tokens.get(..end)?;
            let range = (Bound::Unbounded, Bound::Included(text));
            let (key, _) = self.entries.range::<[TokenId], _>(range).next_back()?;
            let common = common_length(key, text);
            if common == key.len() {
                return Some(Arc::clone(key));
            }
            // No key between this one and `text` can be a beginning of it; a shorter one may.
            end = common;
        }
    }

    /// What must hold after every event.
    pub(super) fn check(&self) -> Result<(), String> {
        let bytes: u64 = self.entries.iter().map(|(key, saved)| size_of(key, &saved.state)).sum();
        let pending: u64 = self.pending.values().map(|pending| pending.bytes).sum();
        let ages = self
            .by_age
            .iter()
            .all(|(age, key)| self.entries.get(key).is_some_and(|saved| saved.age == *age));
        if bytes != self.bytes || pending != self.pending_bytes {
            return Err(format!("{bytes} bytes are held and {} counted", self.bytes));
        }
        if bytes > self.budget_bytes || (bytes + pending > self.budget_bytes && bytes > 0) {
            return Err(format!("{bytes} + {pending} bytes of {}", self.budget_bytes));
        }
        if !ages || self.by_age.len() != self.entries.len() {
            return Err("the ages do not match the saved sequences".to_owned());
        }
        Ok(())
    }
}

fn size_of(key: &Key, state: &[u8]) -> u64 {
    (state.len() + std::mem::size_of_val::<[TokenId]>(key)) as u64
}

/// How many tokens two texts begin with alike.
pub(super) fn common_length(one: &[TokenId], other: &[TokenId]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn save(index: &mut PrefixIndex, tokens: &[TokenId], bytes: usize) {
        let ticket = index.begin_save(tokens.into());
        index.finish_save(ticket, Some(vec![0; bytes]));
        index.check().unwrap();
    }

    fn text(parts: &[(TokenId, usize)]) -> Vec<TokenId> {
        parts.iter().flat_map(|&(token, count)| vec![token; count]).collect()
    }

    fn found(index: &mut PrefixIndex, tokens: &[TokenId]) -> Option<(u32, usize)> {
        index.find(tokens).map(|hit| (hit.tokens, hit.key.len()))
    }

    #[test]
    fn the_longest_common_beginning_is_found_and_cut() {
        let mut index = PrefixIndex::new(1 << 20, true);
        save(&mut index, &text(&[(1, 40), (2, 40)]), 10);
        save(&mut index, &text(&[(1, 40), (4, 90)]), 10);
        assert_eq!(found(&mut index, &text(&[(1, 40), (2, 10), (3, 5)])), Some((50, 80)));
        assert_eq!(found(&mut index, &text(&[(1, 40), (4, 100)])), Some((130, 130)));
        assert_eq!(found(&mut index, &text(&[(1, 15), (3, 50)])), None, "too short");
        assert_eq!(found(&mut index, &text(&[(9, 50)])), None);
    }

    #[test]
    fn of_equal_ones_the_one_that_is_whole_is_taken() {
        let mut index = PrefixIndex::new(1 << 20, true);
        save(&mut index, &text(&[(1, 40), (2, 90)]), 10);
        save(&mut index, &text(&[(1, 40), (3, 90)]), 10);
        save(&mut index, &text(&[(1, 32)]), 10);
        assert_eq!(found(&mut index, &text(&[(1, 32), (9, 5)])), Some((32, 32)));
    }

    #[test]
    fn a_device_that_cannot_cut_uses_whole_ones_only() {
        let mut index = PrefixIndex::new(1 << 20, false);
        save(&mut index, &text(&[(1, 40)]), 10);
        save(&mut index, &text(&[(1, 40), (1, 1), (2, 40)]), 10);
        assert_eq!(found(&mut index, &text(&[(1, 41), (2, 20)])), Some((40, 40)));
        assert_eq!(index.common_with_any(&text(&[(1, 41), (2, 20)])), 61);
        assert!(index.wants(&text(&[(1, 41), (2, 20)])));
        assert!(!index.wants(&text(&[(1, 40)])));
    }

    #[test]
    fn what_is_covered_is_not_saved_again_and_a_longer_one_replaces_its_beginning() {
        let mut index = PrefixIndex::new(1 << 20, true);
        save(&mut index, &text(&[(1, 32)]), 10);
        save(&mut index, &text(&[(1, 70)]), 10);
        save(&mut index, &text(&[(1, 100)]), 10);
        assert!(!index.wants(&text(&[(1, 90)])));
        assert!(index.wants(&text(&[(1, 101)])));
        assert_eq!(index.entries.len(), 2, "70 went, 32 is the beginning of others too");
    }

    #[test]
    fn the_one_not_used_for_the_longest_time_goes_first() {
        let mut index = PrefixIndex::new(3 * (100 + 4 * 40), false);
        for token in 1..=3 {
            save(&mut index, &text(&[(token, 40)]), 100);
        }
        assert!(index.find(&text(&[(1, 41)])).is_some());
        save(&mut index, &text(&[(4, 40)]), 100);
        let there = |index: &mut PrefixIndex, token| index.find(&text(&[(token, 41)])).is_some();
        assert_eq!([1, 2, 3, 4].map(|token| there(&mut index, token)), [true, false, true, true]);
        assert_eq!((index.evictions(), index.bytes()), (1, 3 * 260));
        save(&mut index, &text(&[(5, 40)]), 10_000);
        assert_eq!(index.bytes(), 0, "one that is larger than the budget does not stay");
        assert!(!index.wants(&text(&[(6, 40)])), "and is not tried again");
    }

    #[test]
    fn what_could_not_be_saved_leaves_nothing() {
        let mut index = PrefixIndex::new(1000, true);
        let ticket = index.begin_save(text(&[(1, 40)]).into());
        assert!(!index.wants(&text(&[(1, 40)])), "it is being saved");
        index.finish_save(ticket, None);
        index.finish_save(99, Some(vec![1]));
        index.begin_save(text(&[(1, 40)]).into());
        index.cancel_saves();
        assert_eq!((index.bytes(), index.entries.len(), index.pending_bytes), (0, 0, 0));
        index.turn_off();
        assert!(!index.wants(&text(&[(1, 40)])));
    }

    proptest! {
        /// Against a search through all keys, and the accounting after every change.
        #[test]
        fn it_finds_what_a_search_through_all_finds(
            texts in proptest::collection::vec((proptest::collection::vec(0u32..2, 0..8), 1usize..400), 1..40),
            asked in proptest::collection::vec(proptest::collection::vec(0u32..2, 0..10), 1..10),
            can_trim in any::<bool>(),
        ) {
            let spread = |short: &[u32]| -> Vec<u32> { short.iter().flat_map(|&t| [t; 16]).collect() };
            let mut index = PrefixIndex::new(3000, can_trim);
            for (short, bytes) in &texts {
                let tokens = spread(short);
                if index.wants(&tokens) {
                    save(&mut index, &tokens, *bytes);
                }
            }
            for short in &asked {
                let tokens = spread(short);
                let all = index.entries.keys();
                let usable = all.map(|key| match common_length(key, &tokens) {
                    common if can_trim || common == key.len() => common,
                    _ => 0,
                });
                let best = usable.max().filter(|&most| most >= PREFIX_TOKENS_MIN);
                let hit = index.find(&tokens);
                prop_assert_eq!(hit.as_ref().map(|hit| hit.tokens as usize), best);
                if let Some(hit) = hit {
                    prop_assert!(hit.key.starts_with(&tokens[..hit.tokens as usize]));
                }
                index.check().map_err(TestCaseError::fail)?;
            }
        }
    }
}
