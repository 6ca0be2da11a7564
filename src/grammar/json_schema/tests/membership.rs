//! Whether a value is in shapes, for tests: by the definition of the shapes alone.

use std::sync::Arc;

use super::super::{
    ArrayShape, Conj, Document, Format, FreeRule, Json, ObjectShape, SchemaError, Shapes, StringSet,
};
use crate::grammar::Fuel;

type Verdict = Result<bool, SchemaError>;

/// Walks values along shapes.
pub(super) struct Membership<'a> {
    pub(super) document: &'a mut Document,
    pub(super) fuel: Fuel<'static>,
}

impl Membership<'_> {
    pub(super) fn conj(&mut self, conj: &Conj, value: &Json) -> Verdict {
        let shapes = self.document.shapes(conj, &mut self.fuel)?;
        self.shapes(&shapes, value)
    }

    fn shapes(&mut self, shapes: &Shapes, value: &Json) -> Verdict {
        if shapes.values.contains(value) {
            return Ok(true);
        }
        match value {
            Json::Null => Ok(shapes.null),
            Json::Bool(value) => Ok(shapes.booleans[usize::from(*value)]),
            Json::Number(number) => Ok(shapes.numbers.iter().any(|set| set.contains(number))),
            Json::String(text) => self.any(&shapes.strings, |this, set| this.string(set, text)),
            Json::Array(items) => self.any(&shapes.arrays, |this, shape| this.array(shape, items)),
            Json::Object(entries) => {
                self.any(&shapes.objects, |this, shape| this.object(shape, entries))
            }
        }
    }

    fn any<T>(&mut self, list: &[T], mut test: impl FnMut(&mut Self, &T) -> Verdict) -> Verdict {
        for item in list {
            if test(self, item)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn finds(&mut self, pattern: &Arc<str>, text: &str) -> bool {
        self.document.languages.finds(pattern, text, &mut self.fuel).unwrap()
    }

    fn string(&mut self, set: &StringSet, text: &str) -> Verdict {
        let count = text.chars().count();
        let has = |this: &mut Self, format: Format| {
            this.document.languages.has_format(format, text, &mut this.fuel).unwrap()
        };
        Ok(count >= set.min_chars as usize
            && set.max_chars.is_none_or(|max| count <= max as usize)
            && !set.excluded.iter().any(|excluded| &**excluded == text)
            && set.patterns.iter().all(|(pattern, found)| self.finds(pattern, text) == *found)
            && set.formats.iter().all(|&(format, positive)| has(self, format) == positive))
    }

    fn array(&mut self, shape: &ArrayShape, items: &[Json]) -> Verdict {
        if items.len() < shape.min as usize
            || shape.max.is_some_and(|max| items.len() > max as usize)
            || (shape.rest.is_none() && items.len() > shape.prefix.len())
        {
            return Ok(false);
        }
        for (index, item) in items.iter().enumerate() {
            let conj = shape.prefix.get(index).or(shape.rest.as_ref()).unwrap();
            if !self.conj(conj, item)? {
                return Ok(false);
            }
        }
        for contains in &shape.contains {
            let mut count = 0;
            for item in items {
                count += u32::from(self.conj(&contains.item, item)?);
            }
            if count < contains.min || contains.max.is_some_and(|max| count > max) {
                return Ok(false);
            }
        }
        let repeated = |(index, item): (usize, &Json)| items[..index].contains(item);
        Ok(!shape.unique || !items.iter().enumerate().any(repeated))
    }

    fn object(&mut self, shape: &ObjectShape, entries: &[(Arc<str>, Json)]) -> Verdict {
        let there =
            |place: &usize| entries.iter().any(|(name, _)| *name == shape.properties[*place].name);
        if entries.len() < shape.min as usize
            || shape.max.is_some_and(|max| entries.len() > max as usize)
            || !shape.presence.iter().any(|presence| {
                presence.required.iter().all(there) && !presence.forbidden.iter().any(there)
            })
        {
            return Ok(false);
        }
        for (name, value) in entries {
            let fits = match shape.properties.iter().find(|property| property.name == *name) {
                Some(property) => property.possible && self.conj(&property.value, value)?,
                None => self.free(shape, name, value)?,
            };
            if !fits {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn free(&mut self, shape: &ObjectShape, name: &Arc<str>, value: &Json) -> Verdict {
        for conj in &shape.names {
            if !self.conj(conj, &Json::String(name.clone()))? {
                return Ok(false);
            }
        }
        for rule in &shape.free {
            if !self.rule(rule, name, value)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn rule(&mut self, rule: &FreeRule, name: &Arc<str>, value: &Json) -> Verdict {
        let mut found = false;
        for (pattern, conj) in &rule.patterns {
            if self.finds(pattern, name) {
                found = true;
                if !self.conj(conj, value)? {
                    return Ok(false);
                }
            }
        }
        Ok(found || (rule.additional_allowed && self.conj(&rule.additional, value)?))
    }
}
