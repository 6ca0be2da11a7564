//! Which of several languages a text is in.

use rustc_hash::FxHashMap;

use super::super::Fuel;
use super::dfa::{Arms, DEAD, Dfa, DfaArm, find};
use super::minimize::{edges, equivalent};
use super::nfa::sweep;
use super::{RegularError, STATES_MAX};

/// An automaton that tells for each text which of several languages it is in.
///
/// It has the fewest states that do. A text that falls off it is in none of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classifier {
    states: Vec<ClassifierState>,
    labels: Vec<Box<[bool]>>,
}

/// What is known at one point of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassifierState {
    /// Where each character leads: ascending, disjoint, without surrogates. After a character of
    /// no arm the text is in none of the languages, whatever follows.
    pub arms: Box<[DfaArm]>,
    /// The label of the text that ends here: a number for [`Classifier::label`].
    pub label: u32,
}

impl Classifier {
    /// The label of texts that are in none of the languages.
    pub const NONE: u32 = 0;

    /// Tells `languages` apart.
    pub fn new(languages: &[&Dfa], fuel: &mut Fuel<'_>) -> Result<Self, RegularError> {
        let none: Box<[bool]> = vec![false; languages.len()].into();
        let mut labels = Labels { ids: FxHashMap::default(), all: Vec::new() };
        labels.id(none);
        let start: Box<[u32]> =
            languages.iter().map(|dfa| if dfa.is_never() { DEAD } else { 0 }).collect();
        let mut tuples = vec![start.clone()];
        let mut ids: FxHashMap<Box<[u32]>, u32> = FxHashMap::default();
        ids.insert(start, 0);
        let mut states: Vec<ClassifierState> = Vec::new();
        let mut arms = Arms::default();
        while let Some(tuple) = tuples.get(states.len()).cloned() {
            let rows = || languages.iter().zip(&tuple).map(|(dfa, &state)| dfa.row(state));
            let label = labels.id(rows().map(|(accepting, _)| accepting).collect());
            // Arms of all languages in one list: the language goes along as an index.
            let mut origin: Vec<(u32, u32)> = Vec::new();
            let mut all: Vec<DfaArm> = Vec::new();
            for (language, (_, arms)) in rows().enumerate() {
                for arm in arms {
                    all.push(DfaArm { next: origin.len() as u32, ..*arm });
                    origin.push((language as u32, arm.next));
                }
            }
            let mut next_tuple = vec![DEAD; languages.len()];
            sweep(all, fuel, |low, high, targets| {
                next_tuple.fill(DEAD);
                for &target in targets.iter() {
                    let (language, next) = origin[target as usize];
                    next_tuple[language as usize] = next;
                }
                let next = ids.get(next_tuple.as_slice()).copied().unwrap_or_else(|| {
                    let next = tuples.len() as u32;
                    tuples.push(next_tuple.as_slice().into());
                    ids.insert(next_tuple.as_slice().into(), next);
                    next
                });
                arms.push(low, high, next);
            })?;
            if tuples.len() > STATES_MAX {
                return Err(RegularError::TooLarge { states_max: STATES_MAX });
            }
            states.push(ClassifierState { arms: arms.take(), label });
        }
        Self { states, labels: labels.all }.minimize(fuel)
    }

    /// The states; the first is the start.
    pub fn states(&self) -> &[ClassifierState] {
        &self.states
    }

    /// All labels that a text can have and that of no language: for each language whether the
    /// text is in it.
    pub fn labels(&self) -> &[Box<[bool]>] {
        &self.labels
    }

    /// For each language whether texts with this label are in it.
    pub fn label(&self, label: u32) -> &[bool] {
        self.labels.get(label as usize).map_or(&[], |label| label)
    }

    /// For each language whether `text` is in it.
    pub fn classify(&self, text: &str) -> &[bool] {
        let step = |state: u32, character: char| {
            find(&self.states.get(state as usize)?.arms, u32::from(character))
        };
        let end = text.chars().try_fold(0, step);
        let state = end.and_then(|state| self.states.get(state as usize));
        self.label(state.map_or(Self::NONE, |state| state.label))
    }

    fn minimize(self, fuel: &mut Fuel<'_>) -> Result<Self, RegularError> {
        let labels: Vec<u32> = self.states.iter().map(|state| state.label).collect();
        let edges = edges(self.states.iter().map(|state| &*state.arms), fuel)?;
        let blocks = equivalent(&labels, edges, fuel)?;
        let mut renumbered = vec![DEAD; self.states.len()];
        let mut order: Vec<u32> = vec![0];
        renumbered[blocks[0] as usize] = 0;
        let mut states: Vec<ClassifierState> = Vec::new();
        let mut arms = Arms::default();
        while let Some(&index) = order.get(states.len()) {
            let state = &self.states[index as usize];
            for arm in &state.arms {
                let next = &mut renumbered[blocks[arm.next as usize] as usize];
                if *next == DEAD {
                    *next = order.len() as u32;
                    order.push(arm.next);
                }
                arms.push(arm.low, arm.high, *next);
            }
            states.push(ClassifierState { arms: arms.take(), label: state.label });
        }
        Ok(Self { states, labels: self.labels })
    }
}

/// Labels, each once.
struct Labels {
    ids: FxHashMap<Box<[bool]>, u32>,
    all: Vec<Box<[bool]>>,
}

impl Labels {
    fn id(&mut self, label: Box<[bool]>) -> u32 {
        if let Some(&id) = self.ids.get(&label) {
            return id;
        }
        let id = self.all.len() as u32;
        self.all.push(label.clone());
        self.ids.insert(label, id);
        id
    }
}
