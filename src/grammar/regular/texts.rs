//! The minimal automaton of a list of texts, built without any larger one first.

use rustc_hash::FxHashMap;

use super::dfa::{Arms, Dfa, DfaArm, DfaState};

/// A state whose texts are not all read yet.
#[derive(Debug, Default)]
struct Open {
    accepting: bool,
    arms: Arms,
    /// The character that leads to the open state after this one.
    character: u32,
}

/// States that are done, equal ones once.
#[derive(Debug, Default)]
struct Done {
    states: Vec<DfaState>,
    ids: FxHashMap<(bool, Box<[DfaArm]>), u32>,
}

impl Done {
    fn close(&mut self, mut open: Open) -> u32 {
        let arms = open.arms.take();
        let Self { states, ids } = self;
        *ids.entry((open.accepting, arms)).or_insert_with_key(|(accepting, arms)| {
            states.push(DfaState { accepting: *accepting, arms: arms.clone() });
            states.len() as u32 - 1
        })
    }
}

impl Dfa {
    /// Any one of these texts. The automaton is minimal; it takes time in proportion to the
    /// characters of the texts, and to sort them.
    ///
    /// After Daciuk, Mihov, Watson and Watson, "Incremental construction of minimal acyclic
    /// finite-state automata" (2000), for sorted words.
    pub fn literals<T: AsRef<str>>(texts: &[T]) -> Self {
        let mut sorted: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.is_empty() {
            return Self::never();
        }
        let mut done = Done::default();
        let mut path = vec![Open::default()];
        for text in sorted {
            let shared =
                path.iter().zip(text.chars()).take_while(|(o, c)| o.character == u32::from(*c));
            // The last of the path has no character yet: it is no part of a shared prefix.
            let shared = shared.count().min(path.len() - 1);
            close_down_to(&mut path, shared, &mut done);
            for character in text.chars().skip(shared) {
                if let Some(last) = path.last_mut() {
                    last.character = u32::from(character);
                }
                path.push(Open::default());
            }
            if let Some(last) = path.last_mut() {
                last.accepting = true;
            }
        }
        close_down_to(&mut path, 0, &mut done);
        let start = path.pop().map_or(0, |root| done.close(root));
        Self::assemble(done.states, start)
    }
}

/// Closes the states of the path that are deeper than `depth`.
fn close_down_to(path: &mut Vec<Open>, depth: usize, done: &mut Done) {
    while path.len() > depth + 1 {
        let Some(open) = path.pop() else { return };
        let next = done.close(open);
        if let Some(parent) = path.last_mut() {
            parent.arms.push(parent.character, parent.character, next);
        }
    }
}
