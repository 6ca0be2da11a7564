//! Automata from programs: a state is the set of threads that a text has led to.
//!
//! A thread is a node and what the rest of the text must be besides. Look-behinds run along as
//! threads of their own from every place on, so whether one matches at a place is known there.
//! What the next character is, as `$` and `\b` ask, is known when an edge is made: it is made for
//! each kind of next character.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::dfa::DEAD;
use super::lookahead::{Duty, FREE, Shared};
use super::program::{Assertion, DONE, Needs, Node, Program};
use super::table::{Table, UNIVERSAL};
use super::{RegularError, STATES_MAX};

/// Entries of one table: 4 bytes each.
const ENTRIES_MAX: usize = 4_000_000;

/// What a character is, or that there is none.
type Kind = u64;
const EDGE: Kind = 0;
const WORD: Kind = 1;
const OTHER: Kind = 2;

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
    next: Vec<u32>,
    accepting: Vec<bool>,
    reach: Reach,
    /// The threads after one character: its class and the thread.
    after: Vec<(u32, u64)>,
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
            next: Vec::new(),
            accepting: Vec::new(),
            reach: Reach::default(),
            after: Vec::new(),
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
            if self.keys.len() > STATES_MAX || self.next.len() > ENTRIES_MAX {
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
        let wanted = |is_word: bool| words.is_none_or(|words| words == is_word);
        shared.fuel.spend(1 + self.is_word.len() as u32 / 4)?;
        if self.reach.matched {
            for (next, _) in
                self.next[row..].iter_mut().zip(&self.is_word).filter(|(_, w)| wanted(**w))
            {
                *next = UNIVERSAL;
            }
            return Ok(());
        }
        let alphabet = shared.alphabet;
        for &(set, node, duty) in &self.reach.sets {
            let classes = alphabet.classes(set);
            shared.fuel.spend(1 + classes.len() as u32)?;
            for &class in classes.iter().filter(|class| wanted(self.is_word[**class as usize])) {
                if let Some(duty) = shared.step(duty, class)? {
                    self.after.push((class, thread(node, duty)));
                }
            }
        }
        if !self.reach.pending.is_empty() {
            for class in 0..self.is_word.len() {
                if words.is_none_or(|words| words == self.is_word[class]) {
                    self.pending_edges(row, class, shared)?;
                }
            }
        }
        if !self.anchored {
            self.enter_rest(row, words);
        }
        self.enter(row, shared.program);
        Ok(())
    }

    /// Adds what matches that depend on the rest of the text lead to.
    fn pending_edges(
        &mut self,
        row: usize,
        class: usize,
        shared: &mut Shared<'_, '_, '_>,
    ) -> Result<(), RegularError> {
        for &duty in &self.reach.pending {
            match shared.step(duty, class as u32)? {
                None => {}
                Some(FREE) => self.next[row + class] = UNIVERSAL,
                Some(duty) => self.after.push((class as u32, thread(DONE, duty))),
            }
        }
        Ok(())
    }

    /// Enters where a character leads that ends all threads: back to where a match may start.
    fn enter_rest(&mut self, row: usize, words: Option<bool>) {
        for is_word in [false, true].into_iter().filter(|&w| words.is_none_or(|words| words == w)) {
            if !self.is_word.contains(&is_word) {
                continue;
            }
            let rest = self.find(is_word, &[]);
            for (next, _) in self.next[row..]
                .iter_mut()
                .zip(&self.is_word)
                .filter(|(n, w)| **n == DEAD && **w == is_word)
            {
                *next = rest;
            }
        }
    }

    /// Enters where the threads gathered in `after` lead, and clears it.
    fn enter(&mut self, row: usize, program: &Program) {
        let mut after = std::mem::take(&mut self.after);
        after.sort_unstable();
        after.dedup();
        // Neighbouring classes often lead to the same place: a look back saves a look-up.
        let mut recent: (&[(u32, u64)], bool, u32) = (&[], false, DEAD);
        for group in after.chunk_by(|left, right| left.0 == right.0) {
            let Some(&(class, _)) = group.first() else { continue };
            let is_word = self.is_word[class as usize];
            let threads = || group.iter().map(|&(_, thread)| thread);
            let is_dead =
                self.anchored && threads().all(|thread| program.is_behind(node_of(thread)));
            if is_dead || self.next[row + class as usize] == UNIVERSAL {
                continue;
            }
            let is_same = recent.1 == is_word && threads().eq(recent.0.iter().map(|pair| pair.1));
            if !is_same {
                recent = (group, is_word, self.find(is_word, group));
            }
            self.next[row + class as usize] = recent.2;
        }
        after.clear();
        self.after = after;
    }

    /// The state of these threads after a character that is of a word or not; a new one if need
    /// be.
    fn find(&mut self, is_word: bool, threads: &[(u32, u64)]) -> u32 {
        self.key.clear();
        self.key.push(relevant(if is_word { WORD } else { OTHER }, self.needs));
        self.key.extend(threads.iter().map(|&(_, thread)| thread));
        if let Some(&state) = self.ids.get(self.key.as_slice()) {
            return state;
        }
        let state = self.keys.len() as u32;
        let key: Rc<[u64]> = self.key.as_slice().into();
        self.keys.push(key.clone());
        self.ids.insert(key, state);
        state
    }
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
