//! Numbers, by the languages of their texts.

use std::sync::Arc;

use super::super::{NumberOptions, NumberSet, SchemaError};
use super::Lowering;
use super::values::NEVER;
use crate::grammar::expr::ExprId;
use crate::grammar::limits::Fuel;
use crate::grammar::regular::Dfa;
use crate::grammar::text::{Spelling, TextMachine};

impl Lowering<'_> {
    /// A number of any of the sets.
    pub(super) fn numbers(
        &mut self,
        sets: &[NumberSet],
        fuel: &mut Fuel<'_>,
    ) -> Result<ExprId, SchemaError> {
        if let Some(&known) = self.numbers.get(sets) {
            return Ok(known);
        }
        let mut language: Option<Arc<Dfa>> = None;
        for set in sets {
            let texts = set.language(&NumberOptions::default(), fuel)?;
            language = Some(match language {
                None => texts,
                Some(known) => Arc::new(known.union(&texts, fuel)?),
            });
        }
        let Some(language) = language else { return Ok(NEVER) };
        let machine = TextMachine::of_language(&language, Spelling::Plain);
        let number = self.pool.text(Arc::new(machine));
        self.numbers.insert(sets.to_vec(), number);
        Ok(number)
    }
}
