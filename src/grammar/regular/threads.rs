//! Automata from programs: a state is the set of threads that a text has led to.
//!
//! A thread is a node and what the rest of the text must be besides. Look-behinds run along as
//! threads of their own from every place on, so whether one matches at a place is known there.
//! What the next character is, as `$` and `\b` ask, is known when an edge is made: it is made for
//! each kind of next character.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::dfa::DEAD;
use super::groups::Groups;
use super::lookahead::{Duty, FREE, Shared};
use super::program::{Assertion, DONE, Needs, Node, Program};
use super::table::{Table, UNIVERSAL};
use super::{RegularError, STATES_MAX};

/// Entries of one table: 4 bytes each.
const ENTRIES_MAX: usize = 4_000_000;

/// Threads of all states of one table: 8 bytes each.
const THREADS_MAX: usize = 4_000_000;

/// What a character is, or that there is none.
///
/// The top bit sets them apart from threads.
type Kind = u64;
const EDGE: Kind = 1 << 63;
const WORD: Kind = EDGE + 1;
const OTHER: Kind = EDGE + 2;

/// A node, and above its 32 bits the [`Duty`].
fn thread(node: u32, duty: Duty) -> u64 {
    u64::from(duty) << 32 | u64::from(node)
}

fn node_of(thread: u64) -> u32 {
    thread as u32
}

fn duty_of(thread: u64) -> Duty {
    (thread >> 32) as Duty
}

/// The making of one automaton.
///
/// The key of a state is the kind of the character before, as far as it matters, and then its
/// threads, sorted.
pub(super) struct Run {
    start: u32,
    /// Whether only the first state has a thread at `start`; otherwise every state has one.
    anchored: bool,
    needs: Needs,
    keys: Vec<Rc<[u64]>>,
    ids: FxHashMap<Rc<[u64]>, u32>,
    /// Threads in all keys.
    thread_count: usize,
    next: Vec<u32>,
    accepting: Vec<bool>,
    reach: Reach,
    groups: Groups,
    /// Where a key is put together.
    key: Vec<u64>,
    /// For each class whether it is of word characters.
    is_word: Vec<bool>,
}

/// Where the threads of a state get to without a character.
#[derive(Default)]
struct Reach {
    /// Nodes that a thread without duty was at, by round.
    marks: Vec<u32>,
    round: u32,
    with_duty: FxHashSet<u64>,
    stack: Vec<u64>,
    /// Threads with a duty: they come last, since the same node without one makes them needless.
    later: Vec<u64>,
    /// For each look-behind whether it matches here.
    behind: Vec<bool>,
    /// Sets that can be passed: the set, the node behind, the duty.
    sets: Vec<(u32, u32, Duty)>,
    /// Whether there is a match already.
    matched: bool,
    /// The duties of matches that depend on the rest of the text.
    pending: Vec<Duty>,
    /// Whether anything depended on the next character.
    by_next: bool,
}

impl Run {
    /// An automaton for matches from `start` on, at a place of which `context` is known.
    pub(super) fn new(start: u32, anchored: bool, needs: Needs, context: &[u64]) -> Self {
        let mut first = context.to_vec();
        if anchored {
            first.push(thread(start, FREE));
        }
        if let Some(threads) = first.get_mut(1..) {
            threads.sort_unstable();
        }
        Self {
            start,
            anchored,
            needs,
            keys: vec![first.into()],
            ids: FxHashMap::default(),
            thread_count: 0,
            next: Vec::new(),
            accepting: Vec::new(),
            reach: Reach::default(),
            groups: Groups::default(),
            key: Vec::new(),
            is_word: Vec::new(),
        }
    }

    /// What is known at the start of a text.
    pub(super) fn at_start(needs: Needs) -> Vec<u64> {
        vec![relevant(EDGE, needs)]
    }

    /// The part of a state's key that matters to something with these needs.
    pub(super) fn context(program: &Program, needs: Needs, key: &[u64]) -> Vec<u64> {
        let (before, threads) =
            key.split_first().map_or((OTHER, key), |(&kind, rest)| (kind, rest));
        let mut context = vec![relevant(before, needs)];
        if needs.behind {
            let is_behind = |thread: &&u64| program.is_behind(node_of(**thread));
            context.extend(threads.iter().filter(is_behind));
        }
        context
    }

    /// Makes the table of all states.
    pub(super) fn table(mut self, shared: &mut Shared<'_, '_, '_>) -> Result<Table, RegularError> {
        let class_count = shared.alphabet.class_count();
        self.is_word = vec![false; class_count];
        for &class in shared.program.word_set.map_or(&[][..], |set| shared.alphabet.classes(set)) {
            self.is_word[class as usize] = true;
        }
        self.reach.marks = vec![0; shared.program.nodes.len()];
        self.reach.behind = vec![false; shared.program.looks.len()];
        if let Some(first) = self.keys.first() {
            self.ids.insert(first.clone(), 0);
        }
        while let Some(key) = self.keys.get(self.accepting.len()).cloned() {
            self.state(&key, shared)?;
            let is_large = self.keys.len() > STATES_MAX
                || self.next.len() > ENTRIES_MAX
                || self.thread_count > THREADS_MAX;
            if is_large {
                return Err(RegularError::TooLarge { states_max: STATES_MAX });
            }
        }
        let Self { next, accepting, .. } = self;
        Ok(Table { class_count, next, accepting, start: 0 })
    }

    /// Finishes the next state, whose key is `key`.
    fn state(&mut self, key: &[u64], shared: &mut Shared<'_, '_, '_>) -> Result<(), RegularError> {
        self.close(key, EDGE, shared)?;
        let may_end = self.reach.matched || self.reach.pending.iter().any(|&d| shared.may_end(d));
        self.accepting.push(may_end);
        let row = self.next.len();
        self.next.resize(row + self.is_word.len(), DEAD);
        if !self.reach.by_next {
            return self.edges(row, None, shared);
        }
        self.close(key, OTHER, shared)?;
        self.edges(row, Some(false), shared)?;
        if shared.program.word_set.is_some() {
            self.close(key, WORD, shared)?;
            self.edges(row, Some(true), shared)?;
        }
        Ok(())
    }

    /// Follows the threads of `key` as far as they get when a character of kind `next` follows.
    fn close(
        &mut self,
        key: &[u64],
        next: Kind,
        shared: &mut Shared<'_, '_, '_>,
    ) -> Result<(), RegularError> {
        let program = shared.program;
        let Some((_, threads)) = key.split_first() else { return Ok(()) };
        self.reach.begin();
        if self.needs.behind {
            for (index, look) in program.looks.iter().enumerate().filter(|(_, look)| look.behind) {
                let is_own = |thread: &&u64| look.nodes.contains(&node_of(**thread));
                self.reach.stack.extend(threads.iter().filter(is_own));
                self.reach.stack.push(thread(look.start, FREE));
                self.reach.drain(key, next, shared)?;
                self.reach.behind[index] = std::mem::take(&mut self.reach.matched);
            }
        }
        for &thread in threads.iter().filter(|thread| !program.is_behind(node_of(**thread))) {
            match duty_of(thread) {
                FREE => self.reach.stack.push(thread),
                _ => self.reach.later.push(thread),
            }
        }
        if !self.anchored {
            self.reach.stack.push(thread(self.start, FREE));
        }
        self.reach.drain(key, next, shared)
    }

    /// Enters where the classes lead: those of word characters, the others, or all.
    fn edges(
        &mut self,
        row: usize,
        words: Option<bool>,
        shared: &mut Shared<'_, '_, '_>,
    ) -> Result<(), RegularError> {
        shared.fuel.spend(1 + self.is_word.len() as u32 / 4)?;
        // Duties may tell classes apart that the sets do not.
        let has_duties =
            !self.reach.pending.is_empty() || self.reach.sets.iter().any(|set| set.2 != FREE);
        let moved =
            self.groups.divide(&self.reach.sets, has_duties, &self.is_word, shared.alphabet);
        shared.fuel.spend(moved)?;
        for class in 0..self.is_word.len() {
            if words.is_some_and(|words| words != self.is_word[class]) {
                continue;
            }
            let group = self.groups.of[class] as usize;
            let next = match self.groups.next[group] {
                Some(next) => next,
                None => self.after(class as u32, shared)?,
            };
            self.groups.next[group] = Some(next);
            self.next[row + class] = next;
        }
        Ok(())
    }

    /// Where a character of `class` leads; a new state if need be.
    fn after(&mut self, class: u32, shared: &mut Shared<'_, '_, '_>) -> Result<u32, RegularError> {
        if self.reach.matched {
            return Ok(UNIVERSAL);
        }
        shared.fuel.spend(1 + self.reach.sets.len() as u32)?;
        let kind = if self.is_word[class as usize] { WORD } else { OTHER };
        self.key.clear();
        self.key.push(relevant(kind, self.needs));
        let mut is_alive = !self.anchored;
        for &(set, node, duty) in &self.reach.sets {
            if shared.alphabet.contains(set, class)
                && let Some(duty) = shared.step(duty, class)?
            {
                self.key.push(thread(node, duty));
                is_alive |= !shared.program.is_behind(node);
            }
        }
        for &duty in &self.reach.pending {
            match shared.step(duty, class)? {
                None => {}
                Some(FREE) => return Ok(UNIVERSAL),
                Some(duty) => {
                    self.key.push(thread(DONE, duty));
                    is_alive = true;
                }
            }
        }
        if !is_alive {
            return Ok(DEAD);
        }
        if let Some(threads) = self.key.get_mut(1..) {
            threads.sort_unstable();
        }
        self.key.dedup();
        drop_needless(&mut self.key, shared)?;
        if let Some(&state) = self.ids.get(self.key.as_slice()) {
            return Ok(state);
        }
        let state = self.keys.len() as u32;
        self.thread_count += self.key.len();
        let key: Rc<[u64]> = self.key.as_slice().into();
        self.keys.push(key.clone());
        self.ids.insert(key, state);
        Ok(state)
    }
}

/// Drops threads that ask more of the rest of the text than another at the same node.
fn drop_needless(key: &mut Vec<u64>, shared: &mut Shared<'_, '_, '_>) -> Result<(), RegularError> {
    if key.get(1..).and_then(<[u64]>::last).is_none_or(|&last| duty_of(last) == FREE) {
        return Ok(());
    }
    let threads = key.split_off(1);
    for &thread in &threads {
        shared.fuel.spend(threads.len() as u32)?;
        let is_needless = threads.iter().any(|&other| {
            let same_place = node_of(other) == node_of(thread) && other != thread;
            same_place && shared.asks_no_more(duty_of(other), duty_of(thread))
        });
        if !is_needless {
            key.push(thread);
        }
    }
    Ok(())
}

/// What matters of the kind of the character before.
fn relevant(before: Kind, needs: Needs) -> Kind {
    match before {
        EDGE if needs.start || needs.word => EDGE,
        WORD if needs.word => WORD,
        _ => OTHER,
    }
}

impl Reach {
    fn begin(&mut self) {
        self.round += 1;
        self.with_duty.clear();
        self.sets.clear();
        self.pending.clear();
        self.matched = false;
        self.by_next = false;
    }

    /// Follows the threads on the stack.
    fn drain(
        &mut self,
        key: &[u64],
        next: Kind,
        shared: &mut Shared<'_, '_, '_>,
    ) -> Result<(), RegularError> {
        let before = key.first().copied().unwrap_or(OTHER);
        while let Some(thread) = self.stack.pop().or_else(|| self.later.pop()) {
            shared.fuel.spend(1)?;
            let (node, duty) = (node_of(thread), duty_of(thread));
            if !self.is_first(node, duty) {
                continue;
            }
            match shared.program.nodes[node as usize] {
                Node::Done if duty == FREE => self.matched = true,
                Node::Done => self.pending.push(duty),
                Node::Set { set, next } => self.sets.push((set, next, duty)),
                Node::Split { first, second } => {
                    self.push(second, duty);
                    self.push(first, duty);
                }
                Node::Assert { assertion, next: then } => {
                    if let Some(duty) = self.assert(assertion, duty, key, (before, next), shared)? {
                        self.push(then, duty);
                    }
                }
            }
        }
        Ok(())
    }

    fn push(&mut self, node: u32, duty: Duty) {
        let stack = if duty == FREE { &mut self.stack } else { &mut self.later };
        stack.push(thread(node, duty));
    }

    /// Whether the node was not met before, with this duty or with none.
    fn is_first(&mut self, node: u32, duty: Duty) -> bool {
        let mark = &mut self.marks[node as usize];
        match duty {
            FREE => std::mem::replace(mark, self.round) != self.round,
            _ => *mark != self.round && self.with_duty.insert(thread(node, duty)),
        }
    }

    /// The duty of a thread that gets past an assertion, if it does.
    fn assert(
        &mut self,
        assertion: Assertion,
        duty: Duty,
        key: &[u64],
        (before, next): (Kind, Kind),
        shared: &mut Shared<'_, '_, '_>,
    ) -> Result<Option<Duty>, RegularError> {
        let holds = match assertion {
            Assertion::Start => before == EDGE,
            Assertion::End => {
                self.by_next = true;
                next == EDGE
            }
            Assertion::Word { negated } => {
                self.by_next = true;
                ((before == WORD) != (next == WORD)) != negated
            }
            Assertion::Look { index } => {
                let look = &shared.program.looks[index as usize];
                if !look.behind {
                    return shared.look_ahead(duty, index, key);
                }
                self.behind[index as usize] != look.negated
            }
        };
        Ok(holds.then_some(duty))
    }
}
