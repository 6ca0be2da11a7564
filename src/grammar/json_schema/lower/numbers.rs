//! Numbers, by the languages of their texts.

use std::sync::Arc;

use super::super::{NumberOptions, NumberSet, SchemaError, types};
use super::Lowering;
use super::style::Style;
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
