//! Objects: declared keys in their order, and free ones.

use std::sync::Arc;

use super::super::{Conj, Literal, ObjectShape, SchemaError};
use super::Lowering;
use super::keys::{OtherKeys, keys};
use crate::grammar::expr::{ExprId, Members, RuleId};
use crate::grammar::limits::Fuel;
use crate::grammar::members::{KeyOrder, MemberRules, Presence};
use crate::grammar::regular::{Classifier, Dfa};
use crate::grammar::text::{Spelling, TextMachine};

/// Free keys of an object are listed if there are no more than this: of few keys each may be used
/// up, and one must not be begun if it is.
const LISTED_KEYS_MAX: usize = 64;

/// What free keys there are.
struct FreeKeys {
    others: OtherKeys,
    /// The value of each kind of them.
    values: Vec<Conj>,
    /// All of them with their kinds, if they are few.
    listed: Option<Vec<(String, u32)>>,
}

impl Lowering<'_> {
    /// An object of the shape.
    pub(super) fn object(
        &mut self,
        shape: &ObjectShape,
        fuel: &mut Fuel<'_>,
    ) -> Result<ExprId, SchemaError> {
        let never = self.never_rule();
        let mut names: Vec<String> = Vec::with_capacity(shape.properties.len());
        let mut values: Vec<Option<RuleId>> = Vec::with_capacity(shape.properties.len() + 1);
        for property in &shape.properties {
            fuel.spend(1)?;
            names.push(property.name.to_string());
            let rule = if property.possible { self.rule(&property.value) } else { never };
            values.push(Some(rule));
        }
        let first_free = names.len() as u32;
        let free = self.free_keys(shape, first_free, fuel)?;
        let keys = match free {
            Some(FreeKeys { listed: Some(listed), values: kinds, .. }) => {
                for (name, kind) in listed.iter().filter(|(name, _)| !is_known(shape, name)) {
                    names.push(name.clone());
                    values.push(Some(self.rule(&kinds[(kind - first_free) as usize])));
                }
                keys(names.iter().map(String::as_str), None)
            }
            Some(free) => {
                values.extend(free.values.iter().map(|conj| Some(self.rule(conj))));
                self.pool.distinguish_keys();
                keys(names.iter().map(String::as_str), Some(&free.others))
            }
            None => keys(names.iter().map(String::as_str), None),
        };
        let ids = |list: &[usize]| list.iter().map(|&index| index as u32).collect();
        let presence = shape.presence.iter().map(|presence| Presence {
            required: ids(&presence.required),
            forbidden: ids(&presence.forbidden),
        });
        let order = if self.options.any_order { KeyOrder::Any } else { KeyOrder::Declared };
        Ok(self.pool.members(Members {
            open: b"{".as_slice().into(),
            close: b"}".as_slice().into(),
            comma: b",".as_slice().into(),
            colon: b":".as_slice().into(),
            keys: Arc::new(keys),
            values: values.into(),
            quoted: true,
            rules: MemberRules {
                declared: names.len() as u32,
                order,
                presence: presence.collect(),
                min: shape.min,
                max: shape.max,
            },
            gap_max: self.gap_max(),
        }))
    }

    /// A rule that nothing matches.
    fn never_rule(&mut self) -> RuleId {
        *self.never.get_or_insert_with(|| self.pool.declare("nothing"))
    }

    /// The keys that are not known by name. `None`: there are none.
    fn free_keys(
        &mut self,
        shape: &ObjectShape,
        first_kind: u32,
        fuel: &mut Fuel<'_>,
    ) -> Result<Option<FreeKeys>, SchemaError> {
        let patterns: Vec<&Arc<str>> = {
            let all = shape.free.iter().flat_map(|rule| &rule.patterns);
            let mut patterns: Vec<&Arc<str>> = all.map(|(pattern, _)| pattern).collect();
            patterns.sort_unstable();
            patterns.dedup();
            patterns
        };
        let mut languages: Vec<Arc<Dfa>> = Vec::with_capacity(patterns.len() + shape.names.len());
        for pattern in &patterns {
            languages.push(self.document.pattern(pattern, fuel)?);
        }
        for names in &shape.names {
            languages.push(Arc::new(self.key_language(names, fuel)?));
        }
        if languages.is_empty() {
            let value = free_value(shape, |_| false);
            return Ok(value.map(|value| FreeKeys {
                others: OtherKeys::all(first_kind),
                values: vec![value],
                listed: None,
            }));
        }
        // Classes cover what is in some language only, and keys without a pattern count, too.
        languages.push(Arc::new(Dfa::any()));
        let languages: Vec<&Dfa> = languages.iter().map(|language| &**language).collect();
        let classes = Classifier::new(&languages, fuel)?;
        let mut values: Vec<Conj> = Vec::new();
        let mut kinds: Vec<Option<u32>> = Vec::with_capacity(classes.labels().len());
        for label in classes.labels() {
            let (found, named) = label.split_at(patterns.len());
            let is_found = |pattern: &Arc<str>| {
                patterns.binary_search(&pattern).is_ok_and(|index| found[index])
            };
            let value = free_value(shape, is_found).filter(|_| named.iter().all(|named| *named));
            kinds.push(value.map(|value| {
                let known = values.iter().position(|known| *known == value);
                first_kind
                    + known.unwrap_or_else(|| {
                        values.push(value);
                        values.len() - 1
                    }) as u32
            }));
        }
        let kind = |label: u32| kinds[label as usize];
        let machine = TextMachine::of_classes(&classes, Spelling::Json, kind);
        if machine.is_never() {
            return Ok(None);
        }
        let listed = machine.texts(LISTED_KEYS_MAX);
        Ok(Some(FreeKeys { others: OtherKeys::of_classes(&classes, kind), values, listed }))
    }

    /// The strings that `propertyNames` allows.
    fn key_language(&mut self, names: &Conj, fuel: &mut Fuel<'_>) -> Result<Dfa, SchemaError> {
        let shapes = self.document.shapes(names, fuel)?;
        let listed: Vec<&str> = shapes.values.iter().filter_map(|value| value.as_str()).collect();
        let mut language = Dfa::literals(&listed);
        for set in &shapes.strings {
            let strings = self.whole_language(set, fuel)?;
            language = language.union(&strings, fuel)?;
        }
        Ok(language)
    }
}

fn is_known(shape: &ObjectShape, name: &str) -> bool {
    shape.properties.iter().any(|property| &*property.name == name)
}

/// What the value of a free key satisfies, given the patterns that are found in the key.
fn free_value(shape: &ObjectShape, is_found: impl Fn(&Arc<str>) -> bool) -> Option<Conj> {
    let mut literals: Vec<Literal> = Vec::new();
    for rule in &shape.free {
        let mut any = false;
        for (pattern, value) in &rule.patterns {
            if is_found(pattern) {
                any = true;
                literals.extend_from_slice(value.literals());
            }
        }
        if !any {
            if !rule.additional_allowed {
                return None;
            }
            literals.extend_from_slice(rule.additional.literals());
        }
    }
    Some(Conj::of(literals))
}
