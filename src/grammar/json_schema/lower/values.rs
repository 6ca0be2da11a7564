//! Values that are allowed one by one.

use super::super::{Bound, Json, NumberSet, SchemaError};
use super::Lowering;
use crate::grammar::expr::{ExprId, ExprPool};
use crate::grammar::limits::Fuel;
use crate::grammar::text::json_spelled;

/// Numbers in one list from which on each has only its shortest spelling.
const SPELLED_NUMBERS_MAX: usize = 64;

impl Lowering<'_> {
    /// Any one of the values.
    pub(super) fn values(
        &mut self,
        values: &[Json],
        fuel: &mut Fuel<'_>,
    ) -> Result<ExprId, SchemaError> {
        let mut choices = Vec::new();
        let mut strings = Vec::new();
        let many = values.iter().filter(|value| matches!(value, Json::Number(_))).count();
        for value in values {
            fuel.spend(1)?;
            match value {
                Json::String(text) => strings.push(format!("\"{}\"", json_spelled(text))),
                Json::Number(number) if many > SPELLED_NUMBERS_MAX => {
                    strings.push(number.to_string());
                }
                _ => choices.push(self.value(value, fuel)?),
            }
        }
        choices.push(self.pool.literals(&strings));
        Ok(self.pool.alt(&choices))
    }

    /// Exactly one value. Keys of objects come in the order of the schema.
    fn value(&mut self, value: &Json, fuel: &mut Fuel<'_>) -> Result<ExprId, SchemaError> {
        fuel.spend(1)?;
        Ok(match value {
            Json::Null => self.pool.literal(b"null"),
            Json::Bool(false) => self.pool.literal(b"false"),
            Json::Bool(true) => self.pool.literal(b"true"),
            Json::String(text) => {
                self.pool.literal(format!("\"{}\"", json_spelled(text)).as_bytes())
            }
            Json::Number(number) => {
                let bound = Some(Bound { value: number.clone(), exclusive: false });
                let only = NumberSet { min: bound.clone(), max: bound, ..NumberSet::default() };
                self.numbers(&[only], fuel)?
            }
            Json::Array(items) => {
                let mut members = Vec::with_capacity(items.len());
                for item in items {
                    members.push(self.value(item, fuel)?);
                }
                self.bracketed(b"[", &members, b"]")
            }
            Json::Object(entries) => {
                let mut members = Vec::with_capacity(entries.len());
                for (key, value) in entries {
                    let key = self.pool.literal(format!("\"{}\"", json_spelled(key)).as_bytes());
                    let (gap, colon) = (self.gap(), self.pool.literal(b":"));
                    let value = self.value(value, fuel)?;
                    members.push(self.pool.seq(&[key, gap, colon, gap, value]));
                }
                self.bracketed(b"{", &members, b"}")
            }
        })
    }

    /// All of `members`, with commas between them and gaps around.
    fn bracketed(&mut self, open: &[u8], members: &[ExprId], close: &[u8]) -> ExprId {
        let (gap, comma) = (self.gap(), self.pool.literal(b","));
        let mut parts = vec![self.pool.literal(open), gap];
        for (index, &member) in members.iter().enumerate() {
            if index > 0 {
                parts.extend([comma, gap]);
            }
            parts.extend([member, gap]);
        }
        parts.push(self.pool.literal(close));
        self.pool.seq(&parts)
    }
}

/// Nothing at all.
pub(super) const NEVER: ExprId = ExprPool::NEVER;
