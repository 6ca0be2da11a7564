//! Objects: declared keys in their order, and free ones.

use std::borrow::Cow;
use std::sync::Arc;

use super::super::{Conj, Literal, NodeId, ObjectShape, SchemaError};
use super::Lowering;
use super::keys::{OtherKeys, keys};
use super::style::{Quotes, Style};
use crate::grammar::expr::{ExprId, Mark, Members, RuleId};
use crate::grammar::limits::Fuel;
use crate::grammar::members::{KeyOrder, MemberRules, Presence};
use crate::grammar::regular::{Classifier, Dfa};
use crate::grammar::text::{Spelling, TextMachine};

/// Free keys of an object are listed if there are no more than this: of few keys each may be used
/// up, and one must not be begun if it is.
const LISTED_KEYS_MAX: usize = 64;

/// What free keys there are.
pub(super) struct FreeKeys {
    others: OtherKeys,
    /// The value of each kind of them.
    pub(super) values: Vec<Conj>,
    /// All of them with their kinds, if they are few.
    pub(super) listed: Option<Vec<(String, u32)>>,
}

impl Lowering<'_> {
    /// An object of the shape.
    pub(super) fn object(
        &mut self,
        shape: &ObjectShape,
        style: Style,
        fuel: &mut Fuel<'_>,
    ) -> Result<ExprId, SchemaError> {
        let mut free = self.free_keys(shape, shape.properties.len() as u32, style, fuel)?;
        if matches!(style, Style::Bare(_) | Style::Python(Quotes::Either))
            && free.as_ref().is_some_and(|free| free.listed.is_none())
        {
            if !may_leave_free_keys_out(shape) || !shape.properties.iter().any(|key| key.possible) {
                let style = self.style_of_free_keys(shape, style)?;
                return self.object(shape, style, fuel);
            }
            free = None;
        }
        let order = self.property_order(shape);
        let mut names: Vec<Cow<'_, str>> = Vec::with_capacity(order.len());
        let mut values: Vec<Option<RuleId>> = Vec::with_capacity(order.len() + 1);
        for property in order.iter().map(|&index| &shape.properties[index]) {
            fuel.spend(1)?;
            names.push(self.key_in_members(shape, &property.name, style)?);
            let rule = match property.possible {
                true => self.rule(&property.value, style),
                false => self.never_rule(),
            };
            values.push(Some(rule));
        }
        let spelling = match style {
            Style::Bare(_) => Spelling::Plain,
            _ => Spelling::Json,
        };
        let first_free = names.len() as u32;
        let keys = match free {
            Some(FreeKeys { listed: Some(ref listed), values: ref kinds, .. }) => {
                for (name, kind) in listed.iter().filter(|(name, _)| !is_known(shape, name)) {
                    names.push(self.key_in_members(shape, name, style)?);
                    values.push(Some(self.rule(&kinds[(kind - first_free) as usize], style)));
                }
                keys(names.iter().map(AsRef::as_ref), None, spelling)
            }
            Some(free) => {
                values.extend(free.values.iter().map(|conj| Some(self.rule(conj, style))));
                self.pool.distinguish_keys();
                keys(names.iter().map(AsRef::as_ref), Some(&free.others), spelling)
            }
            None => keys(names.iter().map(AsRef::as_ref), None, spelling),
        };
        // Only where the text is JSON, or close to it, keys are told apart by reading it.
        let reads_keys = matches!(style, Style::Json | Style::Python(Quotes::Double));
        let gap = self.gap_of(style);
        let open: &[u8] = b"{";
        let object = self.pool.members(Members {
            open: if reads_keys { open.into() } else { Mark::new() },
            close: b"}".as_slice().into(),
            comma: self.comma(style).as_bytes().into(),
            colon: self.colon(style).as_bytes().into(),
            keys: Arc::new(keys),
            values: values.into(),
            quoted: !matches!(style, Style::Bare(_)),
            rules: self.member_rules(shape, &order, names.len() as u32).into(),
            gap,
        });
        if reads_keys {
            return Ok(object);
        }
        let open = self.pool.literal(open);
        Ok(self.pool.seq(&[open, object]))
    }

    /// The properties of a shape in the order in which they come.
    pub(super) fn property_order(&self, shape: &ObjectShape) -> Vec<usize> {
        let mut order: Vec<usize> = (0..shape.properties.len()).collect();
        if self.options.sorted {
            order.sort_by_cached_key(|&index| {
                let name = &shape.properties[index].name;
                (name.to_lowercase(), Arc::clone(name))
            });
        }
        order
    }

    /// What keys there may be, given the order of the properties and how many keys are known.
    pub(super) fn member_rules(
        &self,
        shape: &ObjectShape,
        order: &[usize],
        declared: u32,
    ) -> MemberRules {
        let mut places = vec![0u32; order.len()];
        for (place, &index) in order.iter().enumerate() {
            places[index] = place as u32;
        }
        let ids = |list: &[usize]| {
            let mut ids: Vec<u32> = list.iter().map(|&index| places[index]).collect();
            ids.sort_unstable();
            ids.into()
        };
        let presence = shape.presence.iter().map(|presence| Presence {
            required: ids(&presence.required),
            forbidden: ids(&presence.forbidden),
        });
        MemberRules {
            declared,
            order: if self.options.any_order { KeyOrder::Any } else { KeyOrder::Declared },
            presence: presence.collect(),
            min: shape.min,
            max: shape.max,
        }
    }

    /// How an object is written whose keys are not all known, where keys cannot be told apart in
    /// the style at hand.
    pub(super) fn style_of_free_keys(
        &self,
        shape: &ObjectShape,
        style: Style,
    ) -> Result<Style, SchemaError> {
        match style {
            Style::Python(_) => Ok(Style::Python(Quotes::Double)),
            Style::Bare(_) if self.reads_json_strings() => Ok(Style::Json),
            _ => Err(self.no_free_keys(shape)),
        }
    }

    /// The error for an object whose keys must be written and are not all known.
    pub(super) fn no_free_keys(&self, shape: &ObjectShape) -> SchemaError {
        let has_patterns = shape.free.iter().any(|rule| !rule.patterns.is_empty());
        let (keyword, reason) = if has_patterns {
            ("patternProperties", "allows keys that are not known beforehand")
        } else if !shape.free.is_empty() {
            ("additionalProperties", "allows keys that are not known beforehand")
        } else if !shape.names.is_empty() {
            ("propertyNames", "allows keys that are not known beforehand")
        } else {
            ("minProperties", "asks for keys that are not known beforehand")
        };
        let reason = format!("{reason}, which arguments of this model cannot have");
        self.inexact(shape.at, keyword, &reason)
    }

    /// A key as the automaton of an object's keys has it.
    fn key_in_members<'n>(
        &self,
        shape: &ObjectShape,
        name: &'n str,
        style: Style,
    ) -> Result<Cow<'n, str>, SchemaError> {
        let text = match style {
            Style::Bare(_) => self.key_text(name, style).map(Cow::Owned),
            _ => {
                let holds_close = self.close().is_some_and(|it| name.contains(it));
                Some(Cow::Borrowed(name)).filter(|_| !holds_close)
            }
        };
        text.ok_or_else(|| self.unwritable_name(shape.at, name))
    }

    /// The error for a property whose name cannot be written.
    pub(super) fn unwritable_name(&self, at: NodeId, name: &str) -> SchemaError {
        let reason = format!("has the name {name:?}, which arguments of this model cannot have");
        self.inexact(at, "properties", &reason)
    }

    /// A key of an object with what stands around it; `None` if it cannot be written.
    pub(super) fn key_text(&self, name: &str, style: Style) -> Option<String> {
        let json = || format!("\"{}\"", Spelling::Json.spelled(name));
        match style {
            Style::Bare(_) if self.is_bare(name) => Some(name.to_owned()),
            Style::Bare(_) => self.reads_json_strings().then(json),
            _ => Some(self.json_without_close(&json())),
        }
    }

    /// Whether a name is read as it is where keys are bare.
    pub(super) fn is_bare(&self, name: &str) -> bool {
        let first = self.delimiter().chars().next();
        name.trim() == name
            && name.chars().next().is_some_and(|start| !"[])\"".contains(start))
            && !name.chars().any(|it| Some(it) == first || ":,{}".contains(it))
    }

    /// A rule that nothing matches.
    pub(super) fn never_rule(&mut self) -> RuleId {
        match self.find_known(|known| known.never.as_ref()) {
            Some(never) => never,
            None => *self.known.never.insert(self.pool.declare("nothing")),
        }
    }

    /// The keys that are not known by name. `None`: there are none.
    pub(super) fn free_keys(
        &mut self,
        shape: &ObjectShape,
        first_kind: u32,
        style: Style,
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
        if style == Style::Json {
            languages.extend(self.text_limits(style, fuel)?);
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

/// Whether an object can do without keys that it does not declare.
pub(super) fn may_leave_free_keys_out(shape: &ObjectShape) -> bool {
    let possible = shape.properties.iter().filter(|property| property.possible).count();
    shape.free.is_empty() && shape.names.is_empty() && shape.min as usize <= possible
}

pub(super) fn is_known(shape: &ObjectShape, name: &str) -> bool {
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
