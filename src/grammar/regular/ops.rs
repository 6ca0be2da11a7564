//! Languages from languages.

use rustc_hash::FxHashMap;

use super::super::Fuel;
use super::dfa::{Arms, DEAD, Dfa, DfaArm, DfaState, SCALARS};
use super::nfa::Nfa;
use super::{RegularError, STATES_MAX};

/// Which pairs of "is in the left one" and "is in the right one" make the result.
#[derive(Clone, Copy, Debug)]
enum Both {
    And,
    Or,
    AndNot,
}

impl Both {
    fn holds(self, left: bool, right: bool) -> bool {
        match self {
            Self::And => left && right,
            Self::Or => left || right,
            Self::AndNot => left && !right,
        }
    }

    /// Whether texts can still be in the result, by which sides are alive.
    fn is_open(self, left: bool, right: bool) -> bool {
        match self {
            Self::And => left && right,
            Self::Or => left || right,
            Self::AndNot => left,
        }
    }
}

impl Dfa {
    /// Texts in both.
    pub fn intersect(&self, other: &Self, fuel: &mut Fuel<'_>) -> Result<Self, RegularError> {
        self.product(other, Both::And, fuel)
    }

    /// Texts in either.
    pub fn union(&self, other: &Self, fuel: &mut Fuel<'_>) -> Result<Self, RegularError> {
        self.product(other, Both::Or, fuel)
    }

    /// Texts in this one and not in `other`.
    pub fn difference(&self, other: &Self, fuel: &mut Fuel<'_>) -> Result<Self, RegularError> {
        self.product(other, Both::AndNot, fuel)
    }

    /// All other texts.
    pub fn complement(&self, fuel: &mut Fuel<'_>) -> Result<Self, RegularError> {
        if self.is_never() {
            return Ok(Self::any());
        }
        let everything = SCALARS.map(|(low, high)| DfaArm { low, high, next: 0 });
        let sink = self.states().len() as u32;
        let mut states = Vec::with_capacity(self.states().len() + 1);
        let mut arms = Arms::default();
        for state in self.states() {
            fuel.spend(1 + state.arms.len() as u32)?;
            overlay(&state.arms, &everything, |low, high, own, _| {
                arms.push(low, high, if own == DEAD { sink } else { own });
            });
            states.push(DfaState { accepting: !state.accepting, arms: arms.take() });
        }
        states.push(DfaState { accepting: true, arms: Arms::all(sink).take() });
        Ok(Self::assemble(states, 0))
    }

    /// A text of this one and then one of `other`.
    pub fn concat(&self, other: &Self, fuel: &mut Fuel<'_>) -> Result<Self, RegularError> {
        if self.is_never() || other.is_never() {
            return Ok(Self::never());
        }
        let mut nfa = Nfa::default();
        let first = nfa.copy(self, fuel)?;
        let second = nfa.copy(other, fuel)?;
        nfa.join(&first, second.start);
        nfa.accept(&second);
        nfa.determinize(fuel)
    }

    /// At least `min` and at most `max` texts of this one, one after the other. The automaton is
    /// written out: it takes states for each time.
    pub fn repeat(
        &self,
        min: u32,
        max: Option<u32>,
        fuel: &mut Fuel<'_>,
    ) -> Result<Self, RegularError> {
        if max.is_some_and(|max| max < min) {
            return Ok(Self::never());
        }
        let only_empty = self.states().iter().all(|state| state.arms.is_empty());
        match (min, max) {
            (_, Some(0)) => return Ok(Self::literal("")),
            (0, _) if only_empty => return Ok(Self::literal("")),
            _ if only_empty => return Ok(self.clone()),
            (1, Some(1)) => return Ok(self.clone()),
            _ => {}
        }
        let mut nfa = Nfa::default();
        let mut part = nfa.copy(self, fuel)?;
        if min == 0 {
            nfa.accept_empty();
        }
        for done in 1..max.unwrap_or(min.max(1)) {
            if done >= min {
                nfa.accept(&part);
            }
            let next = nfa.copy(self, fuel)?;
            nfa.join(&part, next.start);
            part = next;
        }
        nfa.accept(&part);
        if max.is_none() {
            nfa.join(&part, part.start);
        }
        nfa.determinize(fuel)
    }

    fn product(&self, other: &Self, both: Both, fuel: &mut Fuel<'_>) -> Result<Self, RegularError> {
        let start = |dfa: &Self| if dfa.is_never() { DEAD } else { 0 };
        let mut pairs = vec![(start(self), start(other))];
        let mut ids = FxHashMap::default();
        ids.insert(pairs[0], 0_u32);
        let mut states: Vec<DfaState> = Vec::new();
        let mut arms = Arms::default();
        while let Some(&(left, right)) = pairs.get(states.len()) {
            let (left, right) = (self.row(left), other.row(right));
            fuel.spend(1 + (left.1.len() + right.1.len()) as u32)?;
            overlay(left.1, right.1, |low, high, left, right| {
                if both.is_open(left != DEAD, right != DEAD) {
                    let next = *ids.entry((left, right)).or_insert_with(|| {
                        pairs.push((left, right));
                        pairs.len() as u32 - 1
                    });
                    arms.push(low, high, next);
                }
            });
            if pairs.len() > STATES_MAX {
                return Err(RegularError::TooLarge { states_max: STATES_MAX });
            }
            states.push(DfaState { accepting: both.holds(left.0, right.0), arms: arms.take() });
        }
        Ok(Self::assemble(states, 0))
    }

    /// Acceptance and arms of a state or of [`DEAD`].
    pub(super) fn row(&self, state: u32) -> (bool, &[DfaArm]) {
        self.states().get(state as usize).map_or((false, &[]), |s| (s.accepting, &s.arms))
    }
}

/// Calls `each` with every range on which both sides are constant and one has an arm: the range,
/// and where the sides lead.
fn overlay(left: &[DfaArm], right: &[DfaArm], mut each: impl FnMut(u32, u32, u32, u32)) {
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    let mut from = 0;
    // A side's next state at `low`, and the last character up to which that holds.
    let side = |arm: Option<&&DfaArm>, low: u32| match arm {
        Some(arm) if arm.low <= low => (arm.next, arm.high),
        Some(arm) => (DEAD, arm.low - 1),
        None => (DEAD, u32::MAX),
    };
    loop {
        let lows = [left.peek(), right.peek()].into_iter().flatten().map(|arm| arm.low);
        let Some(low) = lows.min().map(|low| low.max(from)) else { return };
        let (left_next, left_high) = side(left.peek(), low);
        let (right_next, right_high) = side(right.peek(), low);
        let high = left_high.min(right_high);
        each(low, high, left_next, right_next);
        left.next_if(|arm| arm.high == high);
        right.next_if(|arm| arm.high == high);
        from = high + 1;
    }
}
