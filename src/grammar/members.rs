//! The members of an object: which key may come next, and when the object may end.
//!
//! What has been written so far is a [`Progress`]; the key that comes next moves it on. The rules
//! are exact: a key is allowed only if the object can still be completed after it.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;

use super::expr::{ExprId, Mark};
use super::key_reach::{Keys, NodeKeys};
use super::program::{NO_WAY, NodeId};

/// A key that may be written: an index into [`MemberRules::keys`], or one more for free keys.
pub(crate) type KeyId = u32;

/// Keys that must and that must not be there, by their ids, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Presence {
    /// Keys without which the object is not complete.
    pub required: Box<[u32]>,
    /// Keys that may not be there.
    pub forbidden: Box<[u32]>,
}

/// In which order declared keys come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyOrder {
    /// As declared, each at most once; free keys after them.
    Declared,
    /// Any order, each at most once; free keys anywhere.
    Any,
}

/// Which keys an object may have.
///
/// Invariant: `presence` is not empty; its lists are ascending and name declared keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemberRules {
    /// How many keys are declared; their ids are below this number.
    pub declared: u32,
    /// Order of the declared keys.
    pub order: KeyOrder,
    /// What must be there: any one of these.
    pub presence: Box<[Presence]>,
    /// Least number of members.
    pub min: u32,
    /// Greatest number of members; `None`: any.
    pub max: Option<u32>,
}

/// How far an object has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Progress {
    /// Declared keys below this one are over; only in declared order.
    position: u32,
    /// Members so far; only where their number matters.
    count: u32,
    /// Declared keys that were written; only as far as it matters.
    seen: KeySet,
}

impl Progress {
    fn has(&self, key: KeyId) -> bool {
        self.seen.get(key as usize / 64).is_some_and(|word| word >> (key % 64) & 1 == 1)
    }

    fn add(&mut self, key: KeyId) {
        insert(&mut self.seen, key);
    }
}

/// The rules of one object with what is known once it is lowered.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    rules: Arc<MemberRules>,
    /// Whether keys need be remembered, and not only how far their order has come.
    remembers: bool,
    /// What is known of each key, the declared ones first.
    of_keys: Vec<OfKey>,
    keys: Keys,
    /// Which keys may come of the nodes of the key.
    sets: OnceLock<NodeKeys>,
    marks: MarkBytes,
    /// What a token can see of the object from outside of its keys, beside its progress.
    outside: Outside,
    /// The nodes that were made for the object.
    nodes: Range<NodeId>,
    member_bytes_max: OnceLock<u32>,
}

/// What is known of one key.
#[derive(Clone, Copy, Debug)]
struct OfKey {
    /// Least bytes of a member, without a comma; [`NO_WAY`]: it has no value.
    bytes: u32,
    /// Least bytes of what comes after the key, to the end of the member.
    rest: u32,
    /// Where the value starts; 0: it has none.
    value_start: NodeId,
}

/// What tokens can see of an object from outside of its keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Outside {
    /// What ends it.
    pub(crate) close: Mark,
    /// The whitespace in its gaps.
    pub(crate) gap: ExprId,
    /// The first node of its keys, if they are quoted; what it is differs from object to object.
    pub(crate) first_key: Option<NodeId>,
    /// The node after a value.
    pub(crate) after_value: NodeId,
    /// States of the key from which nothing leads elsewhere, if all states take the same
    /// characters.
    pub(crate) final_keys: Vec<NodeId>,
    /// Where the key is one that nobody declared, whatever comes.
    pub(crate) free_key: Option<NodeId>,
}

/// Bytes of what stands around members.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkBytes {
    /// Before the first state of a key.
    pub(super) quote: u32,
    /// Between two members.
    pub(super) comma: u32,
    /// After the last member.
    pub(super) close: u32,
}

impl Machine {
    /// A machine for rules and keys.
    pub(super) fn new(rules: Arc<MemberRules>, keys: Keys, marks: MarkBytes) -> Self {
        let alone = matches!(&*rules.presence, [only] if only.forbidden.is_empty());
        let remembers = rules.order == KeyOrder::Any || !alone;
        let count = keys.count();
        Self {
            rules,
            remembers,
            of_keys: vec![OfKey { bytes: NO_WAY, rest: NO_WAY, value_start: 0 }; count],
            keys,
            sets: OnceLock::new(),
            marks,
            outside: Outside::default(),
            nodes: 0..0,
            member_bytes_max: OnceLock::new(),
        }
    }

    /// Says which nodes were made for it.
    pub(super) fn set_nodes(&mut self, nodes: Range<NodeId>) {
        self.nodes = nodes;
    }

    /// The nodes that were made for it.
    pub(super) fn nodes(&self) -> Range<NodeId> {
        self.nodes.clone()
    }

    /// Says where the value of a key starts.
    pub(super) fn set_value_start(&mut self, key: KeyId, start: NodeId) {
        self.of_keys[key as usize].value_start = start;
    }

    /// Where the value of a key starts; 0: it has none.
    pub(super) fn value_start(&self, key: KeyId) -> NodeId {
        self.of_keys[key as usize].value_start
    }

    /// Says what tokens can see from outside.
    pub(super) fn set_outside(&mut self, outside: Outside) {
        self.outside = outside;
    }

    /// Bytes of what stands between two members.
    pub(super) fn comma_bytes(&self) -> u32 {
        self.marks.comma
    }

    /// What tokens can see from outside of the keys.
    pub(super) fn outside(&self) -> &Outside {
        &self.outside
    }

    /// Most bytes by which one more member can lengthen what it takes to finish, and what it may
    /// take itself.
    pub(super) fn member_bytes_max(&self) -> u32 {
        *self.member_bytes_max.get_or_init(|| self.find_member_bytes_max())
    }

    fn find_member_bytes_max(&self) -> u32 {
        let rests = |&(key, bytes): &(KeyId, u32)| {
            let rest = self.of_keys[key as usize].rest;
            if rest == NO_WAY { 0 } else { bytes.saturating_add(rest) }
        };
        let member = self.keys.reaches().all().iter().map(rests).max().unwrap_or(0);
        let is_settled = matches!(&*self.rules.presence, [only] if only.forbidden.is_empty());
        let more = if is_settled && self.rules.max.is_none() {
            0
        } else {
            // Whatever the object may come to lack.
            let all = self.of_keys.iter().map(|key| key.bytes).filter(|bytes| *bytes != NO_WAY);
            let sum = all.fold(0u32, |sum, bytes| {
                sum.saturating_add(bytes).saturating_add(self.marks.comma)
            });
            sum.saturating_mul(1 + self.rules.min)
        };
        member.saturating_add(more)
    }

    /// Which keys may come of its nodes; `find` says it once.
    pub(super) fn node_keys(&self, find: impl FnOnce() -> NodeKeys) -> &NodeKeys {
        self.sets.get_or_init(find)
    }

    /// The keys of a set that [`NodeKeys`] gave a number.
    pub(crate) fn key_set(&self, set: u32) -> &[u64] {
        self.sets.get().map_or(&[], |sets| sets.set(set))
    }

    /// Bytes of memory of what was found out about its keys, about.
    pub(super) fn bytes_of_keys(&self) -> usize {
        self.keys.memory_bytes() + self.sets.get().map_or(0, NodeKeys::memory_bytes)
    }

    /// Keys that a state of the key may become.
    pub(super) fn keys_from(&self, state: u32) -> KeySet {
        let mut keys = KeySet::new();
        self.keys.reaches().of(state).iter().for_each(|&(key, _)| insert(&mut keys, key));
        keys
    }

    /// Keys that are not declared and may come.
    pub(super) fn free_keys(&self) -> KeySet {
        let mut free = KeySet::new();
        let keys = self.rules.declared..self.of_keys.len() as KeyId;
        keys.filter(|key| self.is_possible(*key)).for_each(|key| insert(&mut free, key));
        free
    }

    /// Whether every text is a key, and may become one that nobody declared at any byte. Free keys
    /// differ in their values only, so if one may come, all may.
    pub(super) fn is_free_everywhere(&self) -> bool {
        self.keys.all_may_become(|key| !self.is_declared(key) && self.is_possible(key))
    }

    /// What a progress means.
    fn facts(&self, progress: &Progress) -> Facts {
        Facts::new(
            self.of_keys.len(),
            |key| self.may_come_next(progress, key),
            self.may_close(progress),
        )
    }

    /// What holds of every progress there could be.
    fn facts_of_any(&self) -> Facts {
        Facts::new(self.of_keys.len(), |key| self.is_possible(key), true)
    }

    /// Whether a key may be the next one.
    fn may_come_next(&self, progress: &Progress, key: KeyId) -> bool {
        let is_simple = self.rules.order == KeyOrder::Any
            && self.rules.max.is_none()
            && matches!(&*self.rules.presence, [only] if only.forbidden.is_empty());
        if is_simple {
            // Every other key may still come after it.
            return self.is_possible(key) && !(self.is_declared(key) && progress.has(key));
        }
        self.after(progress, key).is_some()
    }

    /// Says how many bytes come after a key at least.
    pub(super) fn set_rest(&mut self, key: KeyId, rest: u32) {
        let Some(bytes) = self.keys.bytes(key) else { return };
        let of_key = &mut self.of_keys[key as usize];
        of_key.rest = rest;
        of_key.bytes = (bytes + self.marks.quote).saturating_add(rest);
    }

    /// Whether a key is one of the declared ones.
    pub(crate) fn is_declared(&self, key: KeyId) -> bool {
        key < self.rules.declared
    }

    fn is_possible(&self, key: KeyId) -> bool {
        self.of_keys.get(key as usize).is_some_and(|key| key.bytes != NO_WAY)
    }

    /// The progress after one more member, if the object can be completed then.
    pub(crate) fn after(&self, progress: &Progress, key: KeyId) -> Option<Progress> {
        if !self.is_possible(key) {
            return None;
        }
        let mut after = progress.clone();
        if self.is_declared(key) {
            if progress.has(key) || key < progress.position {
                return None;
            }
            if self.remembers {
                after.add(key);
            }
        }
        if self.rules.order == KeyOrder::Declared {
            let skipped_to = key.min(self.rules.declared);
            if !self.remembers && self.skips_required(progress.position, skipped_to) {
                return None;
            }
            after.position = (skipped_to + 1).min(self.rules.declared);
        }
        if self.counts() {
            let most = self.rules.max.map_or(self.rules.min, |max| max.saturating_add(1));
            after.count = (progress.count + 1).min(most);
        }
        self.is_viable(&after).then_some(after)
    }

    fn counts(&self) -> bool {
        self.rules.min > 0 || self.rules.max.is_some()
    }

    /// Whether a required key lies in a range of ids; only for rules with one presence.
    fn skips_required(&self, from: u32, to: u32) -> bool {
        self.rules.presence.first().is_some_and(|presence| {
            let first = presence.required.partition_point(|&key| key < from);
            presence.required.get(first).is_some_and(|&key| key < to)
        })
    }

    /// Whether a required key is there, or, if it is not, may still come.
    fn is_there(&self, progress: &Progress, key: KeyId) -> bool {
        if self.remembers { progress.has(key) } else { key < progress.position }
    }

    fn may_come(&self, progress: &Progress, key: KeyId) -> bool {
        self.is_possible(key) && key >= progress.position && !self.is_there(progress, key)
    }

    /// The members that one way of being complete still lacks: how many, and their bytes.
    fn missing(&self, progress: &Progress, presence: &Presence) -> Option<(u32, u32)> {
        if presence.forbidden.iter().any(|&key| self.is_there(progress, key)) {
            return None;
        }
        let mut missing = (0u32, 0u32);
        for &key in &presence.required {
            if self.is_there(progress, key) {
                continue;
            }
            if !self.may_come(progress, key) {
                return None;
            }
            missing.0 += 1;
            missing.1 = missing.1.saturating_add(self.of_keys[key as usize].bytes);
        }
        if self.rules.max.is_some_and(|max| progress.count.saturating_add(missing.0) > max) {
            return None;
        }
        Some(missing)
    }

    /// Bytes of the cheapest members that fill up to the least number, beyond the missing ones.
    fn filling(
        &self,
        progress: &Progress,
        presence: &Presence,
        missing: u32,
    ) -> Option<(u32, u32)> {
        let have = progress.count.saturating_add(missing);
        let lacking = self.rules.min.saturating_sub(have);
        if lacking == 0 {
            return Some((0, 0));
        }
        let is_spare = |key: &KeyId| {
            self.may_come(progress, *key)
                && presence.required.binary_search(key).is_err()
                && presence.forbidden.binary_search(key).is_err()
        };
        let spare = (0..self.rules.declared).filter(is_spare);
        let mut spare: Vec<u32> = spare.map(|key| self.of_keys[key as usize].bytes).collect();
        // Keys differ, so not all of them can be the shortest one.
        let free = self
            .of_keys
            .iter()
            .skip(self.rules.declared as usize)
            .map(|key| key.bytes.saturating_add(2))
            .min()
            .filter(|bytes| *bytes != NO_WAY);
        spare.sort_unstable();
        spare.truncate(lacking as usize);
        spare.retain(|bytes| free.is_none_or(|free| *bytes <= free));
        let rest = lacking - spare.len() as u32;
        let rest = match (rest, free) {
            (0, _) => 0,
            (rest, Some(free)) => rest.saturating_mul(free),
            (_, None) => return None,
        };
        let bytes = spare.iter().fold(rest, |sum, bytes| sum.saturating_add(*bytes));
        Some((lacking, bytes))
    }

    /// Least bytes from where a member may start or the object may end, to its end.
    pub(crate) fn finish_bytes(&self, progress: &Progress, is_first: bool) -> u32 {
        let ways = self.rules.presence.iter().filter_map(|presence| {
            let (missing, bytes) = self.missing(progress, presence)?;
            let (filling, more) = self.filling(progress, presence, missing)?;
            let members = missing + filling;
            let commas = members - u32::from(is_first && members > 0);
            Some(bytes.saturating_add(more).saturating_add(commas.saturating_mul(self.marks.comma)))
        });
        ways.min().map_or(NO_WAY, |bytes| bytes.saturating_add(self.marks.close))
    }

    fn is_viable(&self, progress: &Progress) -> bool {
        self.finish_bytes(progress, false) != NO_WAY
    }

    /// Whether the object may end.
    pub(crate) fn may_close(&self, progress: &Progress) -> bool {
        progress.count >= self.rules.min
            && self.rules.presence.iter().any(|presence| {
                presence.required.iter().all(|&key| self.is_there(progress, key))
                    && !presence.forbidden.iter().any(|&key| self.is_there(progress, key))
            })
    }

    /// Least bytes to the end of the object from the end of a key.
    pub(crate) fn bytes_after_key(&self, progress: &Progress, key: KeyId) -> u32 {
        let Some(after) = self.after(progress, key) else { return NO_WAY };
        self.of_keys[key as usize].rest.saturating_add(self.finish_bytes(&after, false))
    }

    /// Least bytes to the end of the object from a state of the key.
    pub(crate) fn bytes_from_key(&self, progress: &Progress, state: u32) -> u32 {
        let keys = self.keys.reaches().of(state);
        let least = |ways: &mut dyn Iterator<Item = u32>| ways.min().unwrap_or(NO_WAY);
        if self.rules.min > 0 {
            return least(
                &mut keys
                    .iter()
                    .map(|&(key, bytes)| bytes.saturating_add(self.bytes_after_key(progress, key))),
            );
        }
        least(&mut self.rules.presence.iter().map(|presence| {
            let Some((missing, bytes)) = self.missing(progress, presence) else { return NO_WAY };
            let is_missing = |key: &&KeyId| !self.is_there(progress, **key);
            let next = presence.required.iter().find(is_missing).copied();
            let outlook = Outlook { presence, missing, bytes, next };
            least(&mut keys.iter().map(|&(key, bytes)| {
                bytes.saturating_add(self.bytes_after_key_of(progress, key, &outlook))
            }))
        }))
    }

    /// As [`bytes_after_key`](Self::bytes_after_key) for one way of being complete, of which it
    /// is known what is missing, and without a least number of members.
    fn bytes_after_key_of(&self, progress: &Progress, key: KeyId, outlook: &Outlook<'_>) -> u32 {
        let Outlook { presence, missing, bytes, next } = *outlook;
        let is_written = self.is_declared(key) && self.is_there(progress, key);
        let is_skipping = self.rules.order == KeyOrder::Declared
            && (key < progress.position || next.is_some_and(|next| next < key));
        if is_written
            || is_skipping
            || !self.is_possible(key)
            || presence.forbidden.binary_search(&key).is_ok()
        {
            return NO_WAY;
        }
        let is_one_of_them = presence.required.binary_search(&key).is_ok();
        let missing = missing - u32::from(is_one_of_them);
        if self.rules.max.is_some_and(|max| progress.count + 1 + missing > max) {
            return NO_WAY;
        }
        let of_key = &self.of_keys[key as usize];
        let saved = if is_one_of_them { of_key.bytes } else { 0 };
        of_key
            .rest
            .saturating_add(bytes.saturating_sub(saved))
            .saturating_add(missing.saturating_mul(self.marks.comma) + self.marks.close)
    }
}

/// What one way of being complete still lacks.
#[derive(Clone, Copy)]
struct Outlook<'p> {
    presence: &'p Presence,
    /// Members, and their bytes.
    missing: u32,
    bytes: u32,
    /// The first of them.
    next: Option<KeyId>,
}

/// A set of keys: bit `k % 64` of word `k / 64` is key `k`.
pub(crate) type KeySet = SmallVec<[u64; 2]>;

/// Adds a key to a set.
pub(crate) fn insert(set: &mut KeySet, key: KeyId) {
    let word = key as usize / 64;
    if set.len() <= word {
        set.resize(word + 1, 0);
    }
    set[word] |= 1 << (key % 64);
}

/// What a progress means for its object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Keys that may come next.
    addable: KeySet,
    /// Whether there are keys and each of them may come next.
    pub(crate) may_add_all: bool,
    /// Whether the object may end.
    pub(crate) may_close: bool,
}

impl Facts {
    fn new(count: usize, may_add: impl Fn(KeyId) -> bool, may_close: bool) -> Self {
        let mut addable = KeySet::new();
        let mut added = 0;
        for key in (0..count as KeyId).filter(|&key| may_add(key)) {
            insert(&mut addable, key);
            added += 1;
        }
        Self { addable, may_add_all: count > 0 && added == count, may_close }
    }

    /// Whether one of a set of keys may come next.
    pub(crate) fn may_add(&self, keys: &[u64]) -> bool {
        self.addable.iter().zip(keys).any(|(a, b)| a & b != 0)
    }

    /// Whether a key may come next.
    pub(crate) fn may_add_key(&self, key: KeyId) -> bool {
        self.addable.get(key as usize / 64).is_some_and(|word| word >> (key % 64) & 1 == 1)
    }

    /// Whether any key may come next.
    pub(crate) fn may_go_on(&self) -> bool {
        self.addable.iter().any(|word| *word != 0)
    }
}

/// The progresses that are met, each with a number: what a stack frame holds.
#[derive(Debug)]
pub(crate) struct Progresses {
    known: Mutex<IndexSet<Progress, FxBuildHasher>>,
    /// By object and number.
    facts: Mutex<FxHashMap<(u32, u32), Arc<Facts>>>,
}

impl Default for Progresses {
    fn default() -> Self {
        let known = Mutex::new(IndexSet::from_iter([Progress::default()]));
        Self { known, facts: Mutex::default() }
    }
}

/// Facts that are remembered, at most; they can be found again.
const FACTS_MAX: usize = 16_384;

impl Progresses {
    /// Bytes of memory it takes, about.
    pub(crate) fn bytes(&self) -> usize {
        /// A progress with its place in the set, and facts with theirs.
        const EACH: (usize, usize) = (size_of::<Progress>() + 16, size_of::<Facts>() + 48);
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).len();
        let facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner).len();
        known * EACH.0 + facts * EACH.1
    }

    /// The number of the progress before any member.
    pub(crate) const START: u32 = 0;
    /// Stands for any progress: whatever may be possible is.
    pub(crate) const ANY: u32 = u32::MAX;

    /// The number of a progress.
    pub(crate) fn number(&self, progress: Progress) -> u32 {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert_full(progress).0 as u32
    }

    /// The progress with a number; the start for one that was never given out.
    pub(crate) fn get(&self, number: u32) -> Progress {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get_index(number as usize).cloned().unwrap_or_default()
    }

    /// What the progress with a number means for an object, given with its own number.
    pub(crate) fn facts(&self, machine: &Machine, of: u32, number: u32) -> Arc<Facts> {
        let mut facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        if facts.len() >= FACTS_MAX {
            facts.clear();
        }
        let found = facts.entry((of, number)).or_insert_with(|| {
            Arc::new(match number {
                Self::ANY => machine.facts_of_any(),
                _ => machine.facts(&self.get(number)),
            })
        });
        Arc::clone(found)
    }
}
