//! Automata that are joined end to end, made deterministic by sets of states.

use rustc_hash::FxHashMap;

use super::super::Fuel;
use super::dfa::{Arms, Dfa, DfaArm, DfaState};
use super::{RegularError, STATES_MAX};

/// Deterministic automata side by side, and edges without a character from one to another.
#[derive(Debug, Default)]
pub(super) struct Nfa {
    states: Vec<NfaState>,
    /// Whether the empty text is accepted, whatever the states say.
    accepts_empty: bool,
}

#[derive(Debug, Default)]
struct NfaState {
    accepting: bool,
    arms: Vec<DfaArm>,
    /// A state that may be entered without a character.
    also: Option<u32>,
}

/// A copy of a deterministic automaton within an [`Nfa`].
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// Its start.
    pub(super) start: u32,
    /// Its accepting states.
    ends: Vec<u32>,
}

impl Nfa {
    /// Adds a copy of `dfa`, which no text ends in yet. The first copy is where texts start.
    pub(super) fn copy(&mut self, dfa: &Dfa, fuel: &mut Fuel<'_>) -> Result<Part, RegularError> {
        let start = self.states.len() as u32;
        if self.states.len() + dfa.states().len() > 4 * STATES_MAX {
            return Err(RegularError::TooLarge { states_max: STATES_MAX });
        }
        let mut ends = Vec::new();
        for state in dfa.states() {
            fuel.spend(1 + state.arms.len() as u32)?;
            if state.accepting {
                ends.push(self.states.len() as u32);
            }
            let arms = state.arms.iter().map(|arm| DfaArm { next: arm.next + start, ..*arm });
            self.states.push(NfaState { arms: arms.collect(), ..NfaState::default() });
        }
        Ok(Part { start, ends })
    }

    /// Lets texts go on at `next` after `part`.
    pub(super) fn join(&mut self, part: &Part, next: u32) {
        for &end in &part.ends {
            self.states[end as usize].also = Some(next);
        }
    }

    /// Lets texts end after `part`.
    pub(super) fn accept(&mut self, part: &Part) {
        for &end in &part.ends {
            self.states[end as usize].accepting = true;
        }
    }

    /// Lets the empty text be accepted.
    pub(super) fn accept_empty(&mut self) {
        self.accepts_empty = true;
    }

    /// The same language, deterministic.
    pub(super) fn determinize(&self, fuel: &mut Fuel<'_>) -> Result<Dfa, RegularError> {
        let mut sets: Vec<Box<[u32]>> = Vec::new();
        let mut ids: FxHashMap<Box<[u32]>, u32> = FxHashMap::default();
        let mut seen = vec![0_u32; self.states.len()];
        let mut round = 1;
        let mut start = vec![0];
        self.close(&mut start, &mut seen, round);
        sets.push(start.into());
        let mut states: Vec<DfaState> = Vec::new();
        let mut arms = Arms::default();
        while let Some(set) = sets.get(states.len()).cloned() {
            // The start is not entered in `ids`: alone it may accept the empty text.
            let empty = states.is_empty() && self.accepts_empty;
            let accepting = set.iter().any(|&state| self.states[state as usize].accepting);
            let all = set.iter().flat_map(|&state| &self.states[state as usize].arms);
            sweep(all.copied().collect(), fuel, |low, high, targets| {
                round += 1;
                self.close(targets, &mut seen, round);
                let next = match ids.get(targets.as_slice()) {
                    Some(&next) => next,
                    None => {
                        let next = sets.len() as u32;
                        ids.insert(targets.as_slice().into(), next);
                        sets.push(targets.as_slice().into());
                        next
                    }
                };
                arms.push(low, high, next);
            })?;
            if sets.len() > STATES_MAX {
                return Err(RegularError::TooLarge { states_max: STATES_MAX });
            }
            states.push(DfaState { accepting: accepting || empty, arms: arms.take() });
        }
        Ok(Dfa::assemble(states, 0))
    }

    /// Adds what may be entered without a character; sorts and removes duplicates. `seen` holds
    /// the round in which each state was met last.
    fn close(&self, set: &mut Vec<u32>, seen: &mut [u32], round: u32) {
        set.retain(|&state| std::mem::replace(&mut seen[state as usize], round) != round);
        let mut at = 0;
        while let Some(&state) = set.get(at) {
            at += 1;
            if let Some(also) = self.states[state as usize].also
                && std::mem::replace(&mut seen[also as usize], round) != round
            {
                set.push(also);
            }
        }
        set.sort_unstable();
    }
}

/// Calls `each` for every range of characters on which the same arms hold, ascending, with where
/// they lead.
pub(super) fn sweep(
    mut arms: Vec<DfaArm>,
    fuel: &mut Fuel<'_>,
    mut each: impl FnMut(u32, u32, &mut Vec<u32>),
) -> Result<(), RegularError> {
    arms.sort_unstable_by_key(|arm| arm.low);
    let mut bounds: Vec<u32> = arms.iter().flat_map(|arm| [arm.low, arm.high + 1]).collect();
    bounds.sort_unstable();
    bounds.dedup();
    let mut coming = arms.into_iter().peekable();
    let mut open: Vec<DfaArm> = Vec::new();
    let mut targets = Vec::new();
    for pair in bounds.windows(2) {
        let &[low, above] = pair else { continue };
        open.retain(|arm| arm.high >= low);
        while let Some(arm) = coming.next_if(|arm| arm.low == low) {
            open.push(arm);
        }
        fuel.spend(1 + open.len() as u32)?;
        if !open.is_empty() {
            targets.clear();
            targets.extend(open.iter().map(|arm| arm.next));
            each(low, above - 1, &mut targets);
        }
    }
    Ok(())
}
