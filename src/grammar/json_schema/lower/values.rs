//! Values that are allowed one by one.

use super::super::{Bound, Json, NumberSet, SchemaError, types};
use super::Lowering;
use super::style::Style;
use crate::grammar::expr::{ExprId, ExprPool};
use crate::grammar::limits::Fuel;

/// Numbers in one list from which on each has only its shortest spelling.
const SPELLED_NUMBERS_MAX: usize = 64;

impl Lowering<'_> {
    /// Any one of the values.
    pub(super) fn values(
        &mut self,
        values: &[Json],
        style: Style,
        fuel: &mut Fuel<'_>,
    ) -> Result<ExprId, SchemaError> {
        if values.is_empty() {
            return Ok(NEVER);
        }
        let mut choices = Vec::new();
        let mut strings = Vec::new();
        let many = values.iter().filter(|value| matches!(value, Json::Number(_))).count();
        let shortest = many > SPELLED_NUMBERS_MAX && style.tells(types::NUMBER);
        for value in values {
            fuel.spend(1)?;
            match value {
                Json::String(text) if style.tells(types::STRING) => {
                    strings.append(&mut self.string_texts(text, style, fuel)?);
                }
                Json::Number(number) if shortest => strings.push(number.to_string()),
                _ => choices.push(self.value(value, style, fuel)?),
            }
        }
        choices.push(self.pool.literals(&strings));
        Ok(self.pool.alt(&choices))
    }

    /// Exactly one value. Keys of objects come in the order of the schema.
    fn value(
        &mut self,
        value: &Json,
        style: Style,
        fuel: &mut Fuel<'_>,
    ) -> Result<ExprId, SchemaError> {
        fuel.spend(1)?;
        let [null, no, yes] = style.words();
        Ok(match value {
            Json::Null => self.pool.literals(null),
            Json::Bool(false) => self.pool.literals(no),
            Json::Bool(true) => self.pool.literals(yes),
            Json::String(text) => {
                let texts = match style.tells(types::STRING) {
                    true => self.string_texts(text, style, fuel)?,
                    false => Vec::new(),
                };
                self.pool.literals(&texts)
            }
            Json::Number(number) => {
                let bound = Some(Bound { value: number.clone(), exclusive: false });
                let only = NumberSet { min: bound.clone(), max: bound, ..NumberSet::default() };
                self.numbers(&[only], style, fuel)?
            }
            Json::Array(items) => {
                if !self.tells_bracketed(style, types::ARRAY) {
                    return Ok(NEVER);
                }
                let mut members = Vec::with_capacity(items.len());
                for item in items {
                    members.push(self.value(item, style.inner(), fuel)?);
                }
                self.bracketed(b"[", &members, b"]", style.inner())
            }
            Json::Object(entries) => {
                if !self.tells_bracketed(style, types::OBJECT) {
                    return Ok(NEVER);
                }
                let mut members = Vec::with_capacity(entries.len());
                for (key, value) in entries {
                    members.push(self.entry(key, value, style.inner(), fuel)?);
                }
                self.bracketed(b"{", &members, b"}", style.inner())
            }
        })
    }

    /// One key of an object and its value.
    fn entry(
        &mut self,
        key: &str,
        value: &Json,
        style: Style,
        fuel: &mut Fuel<'_>,
    ) -> Result<ExprId, SchemaError> {
        let Some(key) = self.key_text(key, style) else { return Ok(NEVER) };
        let key = self.pool.literal(key.as_bytes());
        let (gap, colon) = (self.gap_of(style), self.pool.literal(self.colon(style).as_bytes()));
        let value = self.value(value, style, fuel)?;
        Ok(self.pool.seq(&[key, gap, colon, gap, value]))
    }

    /// Whether an array or object is taken for one, all of it.
    pub(super) fn tells_bracketed(&self, style: Style, type_bit: u8) -> bool {
        style.tells(type_bit) && (self.json_can_avoid_close() || !matches!(style, Style::Plain(..)))
    }

    /// All of `members`, with commas between them and gaps around.
    fn bracketed(&mut self, open: &[u8], members: &[ExprId], close: &[u8], style: Style) -> ExprId {
        let (gap, comma) = (self.gap_of(style), self.pool.literal(self.comma(style).as_bytes()));
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
