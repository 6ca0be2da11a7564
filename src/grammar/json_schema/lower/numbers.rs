//! Numbers, by the languages of their texts.

use std::sync::Arc;

use super::super::{NumberSet, SchemaError};
use super::Lowering;
use crate::grammar::expr::ExprId;
use crate::grammar::limits::Fuel;
use crate::grammar::text::{Spelling, TextMachine};

impl Lowering {
    /// A number of any of the sets.
    pub(super) fn numbers(
        &mut self,
        sets: &[NumberSet],
        fuel: &mut Fuel<'_>,
    ) -> Result<ExprId, SchemaError> {
        if let Some(&known) = self.numbers.get(sets) {
            return Ok(known);
        }
        let mut language = super::super::number::language_of(&sets[0], fuel)?;
        for set in &sets[1..] {
            let other = super::super::number::language_of(set, fuel)?;
            language = language.union(&other, fuel)?;
        }
        let machine = TextMachine::of_language(&language, Spelling::Plain);
        let number = self.pool.text(Arc::new(machine));
        self.numbers.insert(sets.to_vec(), number);
        Ok(number)
    }
}
