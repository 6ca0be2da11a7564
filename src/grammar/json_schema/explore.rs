//! Automata from rules that say, state by state, what may follow.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use crate::grammar::Fuel;
use crate::grammar::regular::{Dfa, DfaArm, DfaState, RegularError, STATES_MAX};

/// A deterministic automaton whose states are met one by one.
pub(super) trait Machine {
    /// What must be known of a text to tell how it may go on.
    type State: Clone + Eq + Hash;

    /// What is known of the empty text.
    fn start(&self) -> Self::State;

    /// Whether the text may end here.
    fn accepts(&self, state: &Self::State) -> bool;

    /// Calls `to` for each range of characters that may come next, ascending and disjoint, with
    /// the state that it leads to.
    fn follow(&self, state: &Self::State, to: &mut dyn FnMut(u32, u32, Self::State));
}

/// The language of a machine. States that lead nowhere are left out; the automaton is minimal
/// only as far as the machine's states are.
pub(super) fn explore<M: Machine>(machine: &M, fuel: &mut Fuel<'_>) -> Result<Dfa, RegularError> {
    let mut ids: FxHashMap<M::State, u32> = FxHashMap::default();
    let mut met = vec![machine.start()];
    ids.insert(machine.start(), 0);
    let mut states: Vec<DfaState> = Vec::new();
    let mut arms: Vec<DfaArm> = Vec::new();
    while let Some(state) = met.get(states.len()).cloned() {
        let mut last = state.clone();
        machine.follow(&state, &mut |low, high, state| {
            let next = match arms.last() {
                Some(arm) if last == state => arm.next,
                _ => *ids.entry(state.clone()).or_insert_with(|| {
                    met.push(state.clone());
                    met.len() as u32 - 1
                }),
            };
            last = state;
            match arms.last_mut() {
                Some(arm) if arm.next == next && arm.high + 1 == low => arm.high = high,
                _ => arms.push(DfaArm { low, high, next }),
            }
        });
        fuel.spend(8 + 4 * arms.len() as u32)?;
        if met.len() > STATES_MAX {
            return Err(RegularError::TooLarge { states_max: STATES_MAX });
        }
        states.push(DfaState { accepting: machine.accepts(&state), arms: arms.as_slice().into() });
        arms.clear();
    }
    Ok(Dfa::assemble(states, 0))
}
