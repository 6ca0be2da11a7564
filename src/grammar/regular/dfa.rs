//! The automaton, and the simplest ones.

use super::super::CharSet;

/// "No state": what a missing arm leads to.
pub(super) const DEAD: u32 = u32::MAX;

/// All scalar values: the code points on both sides of the surrogates.
pub(super) const SCALARS: [(u32, u32); 2] = [(0, 0xD7FF), (0xE000, 0x10FFFF)];

/// A regular language over Unicode scalar values.
///
/// Every state is reached from state 0, the start, and reaches an accepting one; an automaton
/// without states is the empty language. States are numbered breadth first and arms that could be
/// one are one, so that two automata that were [minimized](Dfa::minimize) are equal exactly when
/// their languages are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dfa {
    states: Vec<DfaState>,
}

/// What may follow at one point of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DfaState {
    /// Whether the text may end here.
    pub accepting: bool,
    /// Where each character leads: ascending, disjoint, without surrogates. A character of no arm
    /// is not allowed.
    pub arms: Box<[DfaArm]>,
}

/// The characters `low..=high` lead to `next`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DfaArm {
    /// First character.
    pub low: u32,
    /// Last character.
    pub high: u32,
    /// The state after it.
    pub next: u32,
}

/// Arms of one state while they are gathered in ascending order.
#[derive(Debug, Default)]
pub(super) struct Arms(Vec<DfaArm>);

impl Arms {
    /// Adds a range above all others; one that continues the last is joined to it.
    pub(super) fn push(&mut self, low: u32, high: u32, next: u32) {
        match self.0.last_mut() {
            Some(last) if last.next == next && last.high + 1 == low => last.high = high,
            _ => self.0.push(DfaArm { low, high, next }),
        }
    }

    /// Adds every scalar value.
    pub(super) fn all(next: u32) -> Self {
        Self(SCALARS.iter().map(|&(low, high)| DfaArm { low, high, next }).collect())
    }

    /// The arms gathered; none are left.
    pub(super) fn take(&mut self) -> Box<[DfaArm]> {
        let arms = self.0.as_slice().into();
        self.0.clear();
        arms
    }
}

impl Dfa {
    /// No text.
    pub fn never() -> Self {
        Self { states: Vec::new() }
    }

    /// Every text.
    pub fn any() -> Self {
        Self { states: vec![DfaState { accepting: true, arms: Arms::all(0).take() }] }
    }

    /// Exactly `text`.
    pub fn literal(text: &str) -> Self {
        Self::literals(&[text])
    }

    /// Texts of one character, which is of `set`.
    pub fn chars(set: &CharSet) -> Self {
        let mut arms = Arms::default();
        for &(low, high) in set.ranges() {
            arms.push(low, high, 1);
        }
        let end = DfaState { accepting: true, arms: Box::default() };
        Self::assemble(vec![DfaState { accepting: false, arms: arms.take() }, end], 0)
    }

    /// Texts of at least `min` and at most `max` characters. It has a state for each of the
    /// larger of the two, so large bounds are better counted by other means.
    pub fn length(min: u32, max: Option<u32>) -> Self {
        if max.is_some_and(|max| max < min) {
            return Self::never();
        }
        let last = max.unwrap_or(min);
        let state = |index: u32| DfaState {
            accepting: index >= min,
            arms: match (index < last, max) {
                (true, _) => Arms::all(index + 1).take(),
                (false, None) => Arms::all(index).take(),
                (false, Some(_)) => Box::default(),
            },
        };
        Self { states: (0..=last).map(state).collect() }
    }

    /// The states; the first is the start.
    pub fn states(&self) -> &[DfaState] {
        &self.states
    }

    /// The state after `character`.
    pub fn step(&self, state: u32, character: char) -> Option<u32> {
        find(&self.states.get(state as usize)?.arms, u32::from(character))
    }

    /// Whether `text` is in the language.
    pub fn accepts(&self, text: &str) -> bool {
        let end = text.chars().try_fold(0, |state, character| self.step(state, character));
        end.and_then(|state| self.states.get(state as usize)).is_some_and(|state| state.accepting)
    }

    /// Makes an automaton of states that need not be alive, in any order.
    pub(in super::super) fn assemble(raw: Vec<DfaState>, start: u32) -> Self {
        let alive = alive(&raw);
        if !alive.get(start as usize).is_some_and(|&alive| alive) {
            return Self::never();
        }
        let mut order = vec![start];
        let mut renumbered = vec![DEAD; raw.len()];
        renumbered[start as usize] = 0;
        let mut states = Vec::with_capacity(raw.len());
        let mut arms = Arms::default();
        while let Some(&index) = order.get(states.len()) {
            let state = &raw[index as usize];
            for arm in &state.arms {
                if !alive[arm.next as usize] {
                    continue;
                }
                let next = &mut renumbered[arm.next as usize];
                if *next == DEAD {
                    *next = order.len() as u32;
                    order.push(arm.next);
                }
                arms.push(arm.low, arm.high, *next);
            }
            states.push(DfaState { accepting: state.accepting, arms: arms.take() });
        }
        Self { states }
    }
}

/// Where a character leads.
pub(super) fn find(arms: &[DfaArm], character: u32) -> Option<u32> {
    let arm = arms.get(arms.partition_point(|arm| arm.high < character))?;
    (arm.low <= character).then_some(arm.next)
}

/// Which states reach an accepting one.
fn alive(states: &[DfaState]) -> Vec<bool> {
    let mut alive: Vec<bool> = states.iter().map(|state| state.accepting).collect();
    let mut reached: Vec<u32> = (0..states.len() as u32).filter(|&s| alive[s as usize]).collect();
    if reached.len() == states.len() {
        return alive;
    }
    let mut first = vec![0_u32; states.len() + 1];
    for arm in states.iter().flat_map(|state| &state.arms) {
        first[arm.next as usize] += 1;
    }
    let mut total = 0;
    for count in &mut first {
        total += *count;
        *count = total;
    }
    let mut sources = vec![0_u32; total as usize];
    for (index, state) in states.iter().enumerate() {
        for arm in &state.arms {
            let slot = &mut first[arm.next as usize];
            *slot -= 1;
            sources[*slot as usize] = index as u32;
        }
    }
    while let Some(state) = reached.pop() {
        let range = first[state as usize] as usize..first[state as usize + 1] as usize;
        for &source in &sources[range] {
            if !alive[source as usize] {
                alive[source as usize] = true;
                reached.push(source);
            }
        }
    }
    alive
}
