//! Arrays: how many items, and what each place holds.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::super::{ArrayShape, Conj, Literal, SchemaError};
use super::Lowering;
use super::style::Style;
use super::values::NEVER;
use crate::grammar::expr::{ExprId, ExprPool, Mark, Members, RuleId};
use crate::grammar::limits::Fuel;
use crate::grammar::members::{KeyOrder, MemberRules, Presence};

/// Places of an array with `contains` that are told apart, at most.
const CONTAINS_PLACES_MAX: u32 = 20_000;

impl Lowering<'_> {
    /// An array of the shape.
    pub(super) fn array(
        &mut self,
        shape: &ArrayShape,
        style: Style,
        fuel: &mut Fuel<'_>,
    ) -> Result<ExprId, SchemaError> {
        let max = match &shape.rest {
            Some(_) => shape.max,
            None => {
                let prefix = shape.prefix.len() as u32;
                Some(shape.max.map_or(prefix, |max| max.min(prefix)))
            }
        };
        if max.is_some_and(|max| max < shape.min) {
            return Ok(NEVER);
        }
        if shape.unique && max.is_none_or(|max| max > 1) {
            return self.unique_array(shape, max, style, fuel);
        }
        let items = match shape.contains.is_empty() {
            true => self.items(shape, max, style, fuel)?,
            false => self.counted_items(shape, max, style, fuel)?,
        };
        let (open, close, gap) =
            (self.pool.literal(b"["), self.pool.literal(b"]"), self.gap_before_value(style));
        Ok(self.pool.seq(&[open, gap, items, close]))
    }

    /// One item and the gap after it.
    fn item(&mut self, conj: &Conj, style: Style) -> ExprId {
        let rule = self.rule(conj, style);
        let (item, gap) = (self.pool.call(rule), self.gap_of(style));
        self.pool.seq(&[item, gap])
    }

    /// A comma, the gap after it and an item.
    fn next_item(&mut self, item: ExprId, style: Style) -> ExprId {
        let comma = self.pool.literal(self.comma(style).as_bytes());
        let gap = self.gap_before_value(style);
        self.pool.seq(&[comma, gap, item])
    }

    /// All items, without `contains`.
    fn items(
        &mut self,
        shape: &ArrayShape,
        max: Option<u32>,
        style: Style,
        fuel: &mut Fuel<'_>,
    ) -> Result<ExprId, SchemaError> {
        let prefix = shape.prefix.len().min(max.unwrap_or(u32::MAX) as usize);
        // What may follow the prefix, and then, from the back, what may follow each place of it.
        let mut after = ExprPool::EMPTY;
        if let Some(rest) = &shape.rest {
            let item = self.item(rest, style);
            let another = self.next_item(item, style);
            let (done, most) = (prefix as u32, max.map(|max| max - prefix as u32));
            let least = shape.min.saturating_sub(done);
            after = match prefix {
                0 => {
                    let others = most.map(|most| most.saturating_sub(1));
                    let others = self.pool.repeat(another, least.saturating_sub(1), others);
                    let some = self.pool.seq(&[item, others]);
                    match (least, most) {
                        (_, Some(0)) => ExprPool::EMPTY,
                        (0, _) => self.pool.optional(some),
                        _ => some,
                    }
                }
                _ => self.pool.repeat(another, least, most),
            };
        }
        for place in (0..prefix).rev() {
            fuel.spend(1)?;
            let mut item = self.item(&shape.prefix[place], style);
            if place > 0 {
                item = self.next_item(item, style);
            }
            let here = self.pool.seq(&[item, after]);
            let is_needed = (place as u32) < shape.min;
            after = if is_needed { here } else { self.pool.optional(here) };
        }
        Ok(after)
    }

    /// All items, counted by what they must contain: a rule for each place and counts.
    fn counted_items(
        &mut self,
        shape: &ArrayShape,
        max: Option<u32>,
        style: Style,
        fuel: &mut Fuel<'_>,
    ) -> Result<ExprId, SchemaError> {
        let places = CountedPlaces::new(self, shape, max, style)?;
        places.lower(self, fuel)
    }

    /// An array whose items differ.
    fn unique_array(
        &mut self,
        shape: &ArrayShape,
        max: Option<u32>,
        style: Style,
        fuel: &mut Fuel<'_>,
    ) -> Result<ExprId, SchemaError> {
        let texts = match (&shape.rest, shape.prefix.is_empty(), shape.contains.is_empty()) {
            (Some(rest), true, true) => self.few_texts(rest, style, fuel)?,
            _ => None,
        };
        let Some(texts) = texts else {
            if self.relax(shape.at, "uniqueItems") {
                let relaxed = ArrayShape { unique: false, ..shape.clone() };
                return self.array(&relaxed, style, fuel);
            }
            return Err(self.inexact(
                shape.at,
                "uniqueItems",
                "can only be followed where the items are of a few known values",
            ));
        };
        let keys = super::keys::texts(&texts);
        let declared = texts.len() as u32;
        let gap = self.gap_of(style);
        Ok(self.pool.members(Members {
            open: b"[".as_slice().into(),
            close: b"]".as_slice().into(),
            comma: self.comma(style).as_bytes().into(),
            colon: Mark::new(),
            keys: Arc::new(keys),
            values: vec![None; texts.len()].into(),
            quoted: false,
            rules: Arc::new(MemberRules {
                declared,
                order: KeyOrder::Any,
                presence: [Presence::default()].into(),
                min: shape.min,
                max,
            }),
            gap,
        }))
    }
}

/// How far an array has come: its items, and how many of them satisfied each `contains`.
type Place = (u32, Vec<u32>);

/// The places of an array with `contains`.
struct CountedPlaces<'s> {
    shape: &'s ArrayShape,
    max: Option<u32>,
    style: Style,
    /// Items from which on their number makes no difference, if there is no greatest one.
    items_cap: u32,
    rules: FxHashMap<Place, RuleId>,
}

impl<'s> CountedPlaces<'s> {
    fn new(
        lowering: &Lowering<'_>,
        shape: &'s ArrayShape,
        max: Option<u32>,
        style: Style,
    ) -> Result<Self, SchemaError> {
        let items_cap = max.unwrap_or(shape.min.max(shape.prefix.len() as u32));
        let counts = shape.contains.iter().fold(1u32, |product, contains| {
            product.saturating_mul(count_cap(contains).saturating_add(1))
        });
        if items_cap.saturating_add(1).saturating_mul(counts) > CONTAINS_PLACES_MAX {
            let reason = "needs too many counts at once";
            return Err(lowering.inexact(shape.at, "contains", reason));
        }
        Ok(Self { shape, max, style, items_cap, rules: FxHashMap::default() })
    }

    fn lower(
        mut self,
        lowering: &mut Lowering<'_>,
        fuel: &mut Fuel<'_>,
    ) -> Result<ExprId, SchemaError> {
        let start: Place = (0, vec![0; self.shape.contains.len()]);
        let mut pending = vec![start.clone()];
        let root = lowering.pool.declare("items");
        self.rules.insert(start, root);
        while let Some(place) = pending.pop() {
            fuel.spend(1)?;
            let body = self.body(lowering, &place, &mut pending)?;
            let rule = self.rules[&place];
            lowering.pool.define(rule, body);
        }
        Ok(lowering.pool.call(root))
    }

    fn body(
        &mut self,
        lowering: &mut Lowering<'_>,
        place: &Place,
        pending: &mut Vec<Place>,
    ) -> Result<ExprId, SchemaError> {
        let (items, counts) = place;
        let enough = self.shape.contains.iter().zip(counts);
        let mut choices = Vec::new();
        if *items >= self.shape.min
            && enough.clone().all(|(contains, count)| *count >= contains.min)
        {
            choices.push(ExprPool::EMPTY);
        }
        let conj = match self.shape.prefix.get(*items as usize) {
            Some(conj) => Some(conj),
            None => self.shape.rest.as_ref(),
        };
        let may_go_on = self.max.is_none_or(|max| *items < max);
        let Some(conj) = conj.filter(|_| may_go_on) else { return Ok(lowering.pool.alt(&choices)) };
        for matched in 0..1u32 << self.shape.contains.len() {
            let Some((conj, counts)) = self.matching(lowering, conj, counts, matched)? else {
                continue;
            };
            let mut item = lowering.item(&conj, self.style);
            if *items > 0 {
                item = lowering.next_item(item, self.style);
            }
            let after: Place = ((items + 1).min(self.items_cap.max(1)), counts);
            let rule = match self.rules.get(&after) {
                Some(&rule) => rule,
                None => {
                    let rule = lowering.pool.declare("items");
                    self.rules.insert(after.clone(), rule);
                    pending.push(after);
                    rule
                }
            };
            let rest = lowering.pool.call(rule);
            choices.push(lowering.pool.seq(&[item, rest]));
        }
        Ok(lowering.pool.alt(&choices))
    }

    /// What an item is that satisfies just some of the `contains`, and the counts after it.
    fn matching(
        &self,
        lowering: &Lowering<'_>,
        conj: &Conj,
        counts: &[u32],
        matched: u32,
    ) -> Result<Option<(Conj, Vec<u32>)>, SchemaError> {
        let mut literals: Vec<Literal> = conj.literals().to_vec();
        let mut after = counts.to_vec();
        for (index, contains) in self.shape.contains.iter().enumerate() {
            if matched >> index & 1 == 1 {
                literals.extend_from_slice(contains.item.literals());
                after[index] = (counts[index] + 1).min(count_cap(contains));
                if contains.max.is_some_and(|max| after[index] > max) {
                    return Ok(None);
                }
                continue;
            }
            // Without a greatest number it does no harm if an item is not counted.
            match (contains.max, contains.item.literals()) {
                (None, _) => {}
                (Some(_), [only]) => literals.push(only.negated()),
                (Some(_), []) => return Ok(None),
                (Some(_), _) => {
                    let reason = "of several schemas at once cannot have a greatest number";
                    return Err(lowering.inexact(self.shape.at, "contains", reason));
                }
            }
        }
        Ok(Some((Conj::of(literals), after)))
    }
}

/// Count from which on the number of matches makes no difference.
fn count_cap(contains: &super::super::Contains) -> u32 {
    contains.max.map_or(contains.min, |max| max.saturating_add(1).max(contains.min))
}
