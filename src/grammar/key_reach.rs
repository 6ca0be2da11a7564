//! Which keys an object's key may become from where it is: found out when an answer first comes to
//! a key of the object.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

use super::error::LimitError;
use super::grouped::Grouped;
use super::limits::Fuel;
use super::members::{KeyId, KeySet, insert};
use super::program::{NO_WAY, Node, NodeId, Program, Role};
use super::regular::DfaArm;
use super::text::TextMachine;

/// For each state of the key: the keys that it may become, ascending, and the least bytes to their
/// ends.
type Reaches = Grouped<(KeyId, u32)>;

/// States times keys from which on what they become is paid for when the grammar is compiled.
const LATER_MAX: usize = 1 << 18;

/// The keys of an object as texts.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    texts: Arc<TextMachine>,
    /// Bytes after the last character.
    quote: u32,
    /// Least bytes of each key, the closing quote included; [`NO_WAY`]: no text is that key.
    bytes: Vec<u32>,
    reaches: OnceLock<Reaches>,
}

impl Keys {
    /// The `count` keys that texts can be.
    pub(super) fn new(
        texts: &Arc<TextMachine>,
        quoted: bool,
        count: usize,
        fuel: &mut Fuel<'_>,
    ) -> Result<Self, LimitError> {
        let quote = u32::from(quoted);
        let mut bytes = vec![NO_WAY; count];
        for (state, from_start) in texts.bytes_from_start().into_iter().enumerate() {
            if let (Some(key), true) = (texts.states[state].end, from_start != NO_WAY) {
                let known = &mut bytes[key as usize];
                *known = (*known).min(from_start + quote);
            }
        }
        fuel.spend(texts.states.len() as u32)?;
        let reaches = OnceLock::new();
        if texts.states.len().saturating_mul(count) > LATER_MAX {
            let _ = reaches.set(find_reaches(texts, quote, &mut |steps| fuel.spend(steps))?);
        }
        Ok(Self { texts: Arc::clone(texts), quote, bytes, reaches })
    }

    /// How many keys there are.
    pub(super) fn count(&self) -> usize {
        self.bytes.len()
    }

    /// Least bytes of a key, if a text can be that key.
    pub(super) fn bytes(&self, key: KeyId) -> Option<u32> {
        self.bytes.get(key as usize).copied().filter(|bytes| *bytes != NO_WAY)
    }

    /// What each state of the key may become.
    pub(super) fn reaches(&self) -> &Reaches {
        self.reaches.get_or_init(|| {
            find_reaches(&self.texts, self.quote, &mut |_| Ok(())).unwrap_or_default()
        })
    }

    /// Bytes of memory that it takes to know what states may become, about.
    pub(super) fn memory_bytes(&self) -> usize {
        self.reaches.get().map_or(0, Grouped::bytes)
    }

    /// Whether each state of the key may become one of some keys.
    pub(super) fn all_may_become(&self, is_one: impl Fn(KeyId) -> bool) -> bool {
        let bytes = self.texts.bytes_to_ends(|key| if is_one(key) { 0 } else { NO_WAY });
        bytes.iter().all(|bytes| *bytes != NO_WAY)
    }
}

/// Pays for steps.
type Pay<'p> = &'p mut dyn FnMut(u32) -> Result<(), LimitError>;

fn find_reaches(keys: &TextMachine, quote: u32, pay: Pay<'_>) -> Result<Reaches, LimitError> {
    match keys.goes_forward() {
        true => reaches_ahead(keys, quote, pay),
        false => reaches_from_ends(keys, quote, pay),
    }
}

/// As [`find_reaches`], from the ends of each key back to the states that lead there.
fn reaches_from_ends(keys: &TextMachine, quote: u32, pay: Pay<'_>) -> Result<Reaches, LimitError> {
    let mut users: Vec<(u32, (u32, u32))> = Vec::with_capacity(2 * keys.states.len());
    let mut ends: Vec<(KeyId, u32)> = Vec::new();
    for (from, state) in keys.states.iter().enumerate() {
        let bytes = |arm: &DfaArm| keys.spelling.least_bytes(arm.low, arm.high);
        users.extend(state.arms.iter().map(|arm| (arm.next, (from as u32, bytes(arm)))));
        ends.extend(state.end.map(|key| (key, from as u32)));
    }
    let users = Grouped::new(keys.states.len(), &users);
    ends.sort_unstable();
    let mut found: Vec<(u32, (KeyId, u32))> = Vec::with_capacity(2 * keys.states.len());
    // Where in `found` each state came last: keys come in ascending order.
    let mut last = vec![usize::MAX; keys.states.len()];
    let mut open: VecDeque<(u32, u32)> = VecDeque::new();
    for group in ends.chunk_by(|a, b| a.0 == b.0) {
        let Some(&(key, _)) = group.first() else { continue };
        open.extend(group.iter().map(|&(_, state)| (state, quote)));
        while let Some((state, bytes)) = open.pop_front() {
            pay(1)?;
            match found.get_mut(last[state as usize]) {
                Some((_, (known, least))) if *known == key => {
                    if bytes >= *least {
                        continue;
                    }
                    *least = bytes;
                }
                _ => {
                    last[state as usize] = found.len();
                    found.push((state, (key, bytes)));
                }
            }
            open.extend(users.of(state).iter().map(|&(user, more)| (user, bytes + more)));
        }
    }
    Ok(Grouped::new(keys.states.len(), &found))
}

/// As [`find_reaches`], where arms lead to later states or stay: what those may become is known
/// before.
fn reaches_ahead(keys: &TextMachine, quote: u32, pay: Pay<'_>) -> Result<Reaches, LimitError> {
    // Backwards, and so are the keys of each state.
    let mut found: Vec<(KeyId, u32)> = Vec::with_capacity(2 * keys.states.len());
    let mut bounds = vec![(0_u32, 0_u32); keys.states.len()];
    let mut here: Vec<(KeyId, u32)> = Vec::new();
    for (from, state) in keys.states.iter().enumerate().rev() {
        here.extend(state.end.map(|key| (key, quote)));
        for arm in state.arms.iter().filter(|arm| arm.next as usize != from) {
            let more = keys.spelling.least_bytes(arm.low, arm.high);
            let (start, end) = bounds[arm.next as usize];
            let ahead = &found[start as usize..end as usize];
            here.extend(ahead.iter().map(|&(key, bytes)| (key, bytes + more)));
        }
        pay(1 + here.len() as u32)?;
        here.sort_unstable_by_key(|&(key, bytes)| (std::cmp::Reverse(key), bytes));
        here.dedup_by_key(|&mut (key, _)| key);
        let start = found.len() as u32;
        found.append(&mut here);
        bounds[from] = (start, found.len() as u32);
    }
    found.reverse();
    let all = found.len() as u32;
    Ok(Grouped::of_lists(found, bounds.iter().map(|&(_, end)| all - end)))
}

/// For the nodes on the way to a key of an object or in one: the set of keys that may come of it.
#[derive(Clone, Debug)]
pub(crate) struct NodeKeys {
    sets: IndexSet<KeySet, FxBuildHasher>,
    first: NodeId,
    /// Numbers of sets, from the first node on.
    of_nodes: Vec<u32>,
    free: u32,
}

/// Stands for the set of a node that is not known yet.
const NO_SET: u32 = u32::MAX;

impl NodeKeys {
    /// Looks at all nodes of an object.
    pub(super) fn new(program: &Program, machine: u32) -> Self {
        let rules = &program.machines[machine as usize];
        let nodes = rules.nodes();
        let mut found = Self {
            sets: IndexSet::default(),
            first: nodes.start,
            of_nodes: vec![NO_SET; nodes.len()],
            free: 0,
        };
        found.free = found.number(rules.free_keys());
        for node in nodes.clone() {
            if let Role::Key { state, .. } = program.role(node) {
                found.of_nodes[(node - nodes.start) as usize] =
                    found.number(rules.keys_from(state));
            }
        }
        nodes.for_each(|node| {
            found.find(program, node);
        });
        found
    }

    fn number(&mut self, keys: KeySet) -> u32 {
        self.sets.insert_full(keys).0 as u32
    }

    /// The set of one node, if it is on the way to a key: what lies between two states has no cycle.
    fn find(&mut self, program: &Program, node: NodeId) -> Option<u32> {
        if !matches!(program.role(node), Role::Key { .. } | Role::InKey { .. }) {
            return None;
        }
        let at = (node - self.first) as usize;
        if self.of_nodes[at] != NO_SET {
            return Some(self.of_nodes[at]);
        }
        let nexts: SmallVec<[NodeId; 16]> = match program.nodes[node as usize] {
            Node::Switch(span) => program.arms(span).iter().map(|arm| arm.next).collect(),
            Node::Split(span) => program.targets(span).into(),
            Node::Token { next, .. } => [next].as_slice().into(),
            _ => SmallVec::new(),
        };
        let mut keys = KeySet::new();
        if let Node::Member { key, .. } = program.nodes[node as usize] {
            insert(&mut keys, key);
        }
        for next in nexts {
            let Some(set) = self.find(program, next) else { continue };
            let more = self.set(set);
            if keys.len() < more.len() {
                keys.resize(more.len(), 0);
            }
            keys.iter_mut().zip(more).for_each(|(word, more)| *word |= more);
        }
        let set = self.number(keys);
        self.of_nodes[at] = set;
        Some(set)
    }

    /// The keys of a set.
    pub(super) fn set(&self, set: u32) -> &[u64] {
        self.sets.get_index(set as usize).map_or(&[], |keys| keys)
    }

    /// The number of the set of a node of the key.
    pub(super) fn of_node(&self, node: NodeId) -> u32 {
        self.of_nodes[(node - self.first) as usize]
    }

    /// The number of the set of all keys that are not declared and may come.
    pub(super) fn free(&self) -> u32 {
        self.free
    }

    /// Bytes of memory it takes, about.
    pub(super) fn memory_bytes(&self) -> usize {
        self.of_nodes.len() * size_of::<u32>() + self.sets.len() * (size_of::<KeySet>() + 16)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::grammar::text::{Spelling, TextState};

    /// Machines whose arms lead on: for each state the widths and leaps of its arms, and its end.
    fn machines() -> impl Strategy<Value = TextMachine> {
        let arm = (0x20_u32..0x30, 0_u32..3);
        let state = (prop::collection::vec(arm, 0..4), prop::option::of(0_u32..5));
        prop::collection::vec(state, 1..12).prop_map(|states| {
            let last = states.len() as u32 - 1;
            let states = states.into_iter().zip(0_u32..).map(|((arms, end), at)| {
                let mut low = 0;
                let arms = arms.into_iter().map(|(width, leap)| {
                    let arm = DfaArm { low, high: low + width, next: (at + leap).min(last) };
                    low += width + 1;
                    arm
                });
                TextState { arms: arms.collect(), end }
            });
            let states = states.collect();
            TextMachine { states, spelling: Spelling::Json, max_chars: None, shared: None }
        })
    }

    proptest! {
        #[test]
        fn both_ways_find_the_same(keys in machines(), quote in 0_u32..2) {
            let pay = &mut |_| Ok(());
            let ahead = reaches_ahead(&keys, quote, pay).unwrap();
            let back = reaches_from_ends(&keys, quote, pay).unwrap();
            for state in 0..keys.states.len() as u32 {
                prop_assert_eq!(ahead.of(state), back.of(state), "of state {}", state);
            }
        }
    }
}
