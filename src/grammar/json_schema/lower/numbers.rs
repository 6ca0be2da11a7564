//! Numbers, by the languages of their texts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::super::{NumberOptions, NumberSet, SchemaError, types};
use super::Lowering;
use super::style::Style;
use super::values::NEVER;
use crate::grammar::expr::ExprId;
use crate::grammar::limits::Fuel;
use crate::grammar::regular::Dfa;
use crate::grammar::text::{Spelling, TextMachine};

/// Languages that are remembered, at most; they can be made again.
const SHARED_MAX: usize = 512;
/// States of one of them, at most: so all together take a few megabytes.
const SHARED_STATES_MAX: usize = 128;

/// A union of sets, and how its numbers are written.
type Key = (Vec<NumberSet>, NumberOptions);

impl Lowering<'_> {
    /// A number of any of the sets.
    pub(super) fn numbers(
        &mut self,
        sets: &[NumberSet],
        style: Style,
        fuel: &mut Fuel<'_>,
    ) -> Result<ExprId, SchemaError> {
        if !style.tells(types::NUMBER) {
            // A text with a fraction would be taken for a string.
            let integers =
                sets.iter().filter(|set| !set.not_integer && style.tells(types::INTEGER));
            let integers: Vec<NumberSet> =
                integers.map(|set| NumberSet { integer: true, ..set.clone() }).collect();
            return self.numbers(&integers, Style::Json, fuel);
        }
        if let Some(known) = self.find_known(|known| known.numbers.get(sets)) {
            return Ok(known);
        }
        let options = self.document.number_options();
        let Some(machine) = number_machine(sets, &options, fuel)? else { return Ok(NEVER) };
        let number = self.pool.text(machine);
        self.known.numbers.insert(sets.to_vec(), number);
        Ok(number)
    }
}

/// The texts of numbers by their sets, for all schemas.
fn shared() -> MutexGuard<'static, FxHashMap<Key, Arc<TextMachine>>> {
    static SHARED: Mutex<FxHashMap<Key, Arc<TextMachine>>> =
        Mutex::new(FxHashMap::with_hasher(FxBuildHasher));
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The texts of the numbers in any of the sets; they are remembered.
fn number_machine(
    sets: &[NumberSet],
    options: &NumberOptions,
    fuel: &mut Fuel<'_>,
) -> Result<Option<Arc<TextMachine>>, SchemaError> {
    let key = (sets.to_vec(), *options);
    if let Some(known) = shared().get(&key) {
        return Ok(Some(Arc::clone(known)));
    }
    let mut language: Option<Arc<Dfa>> = None;
    for set in sets {
        let texts = set.language(options, fuel)?;
        language = Some(match language {
            None => texts,
            Some(known) => Arc::new(known.union(&texts, fuel)?),
        });
    }
    let Some(language) = language else { return Ok(None) };
    let machine = Arc::new(TextMachine::of_language(&language, Spelling::Plain));
    if machine.states.len() <= SHARED_STATES_MAX {
        share(key, &machine);
    }
    Ok(Some(machine))
}

fn share(key: Key, machine: &Arc<TextMachine>) {
    let mut shared = shared();
    if shared.len() >= SHARED_MAX {
        shared.clear();
    }
    shared.insert(key, Arc::clone(machine));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_sets_are_made_once() {
        let make = |set: NumberSet| {
            number_machine(&[set], &NumberOptions::default(), &mut Fuel::new(1_000_000))
                .unwrap()
                .unwrap()
        };
        let integer = NumberSet { integer: true, ..NumberSet::default() };
        let known = make(integer.clone());
        assert!(Arc::ptr_eq(&known, &make(integer)));
        assert!(!Arc::ptr_eq(&known, &make(NumberSet::default())));
    }
}
