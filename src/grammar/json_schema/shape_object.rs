//! From object terms to object shapes: alternatives that differ only in which properties are
//! there become one shape.

use std::sync::Arc;

use super::atom::{NameId, Properties};
use super::conj::{Conj, Literal, NodeId};
use super::error::SchemaError;
use super::graph::Graph;
use super::presence::{self, ENTRIES_MAX, Entries, Entry};
use super::shape::{FreeRule, ObjectShape, Presence, Property};
use super::shaper::Shaper;
use super::term_object::ObjectTerm;

/// A term whose properties are worked out.
struct Settled {
    term: ObjectTerm,
    /// In the order of the shape.
    properties: Vec<Known>,
    names: Conj,
    closed: bool,
    entries: Entries,
}

#[derive(Clone, Debug, PartialEq)]
struct Known {
    name: NameId,
    value: Conj,
    possible: bool,
}

impl Shaper<'_, '_> {
    /// The shapes of the terms.
    pub(super) fn objects(
        &mut self,
        terms: Vec<ObjectTerm>,
        at: NodeId,
    ) -> Result<Vec<ObjectShape>, SchemaError> {
        let mut settled: Vec<Settled> = Vec::with_capacity(terms.len());
        'terms: for term in terms {
            let Some(mut next) = self.settle(term, at)? else { continue };
            for earlier in &mut settled {
                if self.fold(&mut next, earlier)? || self.fold_back(&mut next, earlier)? {
                    continue 'terms;
                }
            }
            settled.push(next);
        }
        let mut shapes = Vec::with_capacity(settled.len());
        for settled in settled {
            shapes.push(self.shape(settled, at)?);
        }
        Ok(shapes)
    }

    /// Works out a term. `None`: nothing satisfies it.
    fn settle(&mut self, mut term: ObjectTerm, at: NodeId) -> Result<Option<Settled>, SchemaError> {
        let Some(entries) = term.presence(self)? else {
            let reason = format!("leaves more than {ENTRIES_MAX} combinations of properties");
            return Err(self.graph.inexact(at, "required", &reason));
        };
        let mut order: Vec<(u32, NameId)> =
            term.known.iter().map(|known| (known.declared, known.name)).collect();
        if !order.is_sorted_by_key(|&(declared, _)| declared) {
            order.sort_by_key(|&(declared, _)| declared);
        }
        let mut properties = Vec::with_capacity(order.len());
        for (_, name) in order {
            properties.push(self.property(&mut term, name)?);
        }
        let names = self.graph.conj(term.names.iter().copied());
        let closed = term.is_closed(self)?;
        let mut settled = Settled { term, properties, names, closed, entries: Entries::new() };
        for entry in entries {
            if let Some(entry) = settled.feasible(entry) {
                presence::add(&mut settled.entries, entry);
            }
        }
        Ok((!settled.entries.is_empty()).then_some(settled))
    }

    fn property(&mut self, term: &mut ObjectTerm, name: NameId) -> Result<Known, SchemaError> {
        let value = term.value(name, self)?;
        let possible = self.possible(&value)? && term.allows_name(name, self)?;
        Ok(Known { name, value, possible })
    }

    /// Adds the entries of `from` to `into`, if the two differ in nothing but properties that
    /// `from` does not have.
    fn fold(&mut self, from: &mut Settled, into: &mut Settled) -> Result<bool, SchemaError> {
        self.fuel.spend(1)?;
        let same_bounds = from.term.min == into.term.min && from.term.max == into.term.max;
        if !same_bounds || from.names != into.names || !same_rules(&from.term, &into.term) {
            return Ok(false);
        }
        let mut missing = Vec::new();
        let mut absent = Vec::new();
        for index in 0..into.properties.len().max(from.properties.len()) {
            self.fuel.spend(1)?;
            if let Some(ours) = into.properties.get(index).cloned() {
                let theirs = match from.find(index, ours.name) {
                    Some(theirs) => theirs.clone(),
                    None => self.property(&mut from.term, ours.name)?,
                };
                if theirs != ours && !from.lacks(&theirs) {
                    return Ok(false);
                }
                if theirs != ours {
                    absent.push(ours.name);
                }
            }
            let Some(theirs) = from.properties.get(index).cloned() else { continue };
            if into.find(index, theirs.name).is_none() {
                let ours = self.property(&mut into.term, theirs.name)?;
                if theirs != ours && !from.lacks(&theirs) {
                    return Ok(false);
                }
                if theirs != ours {
                    absent.push(theirs.name);
                }
                missing.push(ours);
            }
        }
        into.properties.extend(missing);
        for entry in from.entries.drain(..) {
            let mut entry = entry;
            for &name in &absent {
                if !entry.contains(&(name, false)) {
                    entry.push((name, false));
                }
            }
            entry.sort_unstable();
            if let Some(entry) = into.feasible(entry) {
                presence::add(&mut into.entries, entry);
            }
        }
        Ok(true)
    }

    /// The same the other way round; `into` takes the place of `earlier`.
    fn fold_back(
        &mut self,
        into: &mut Settled,
        earlier: &mut Settled,
    ) -> Result<bool, SchemaError> {
        let folded = self.fold(earlier, into)?;
        if folded {
            std::mem::swap(into, earlier);
        }
        Ok(folded)
    }

    fn shape(&mut self, settled: Settled, at: NodeId) -> Result<ObjectShape, SchemaError> {
        let Settled { term, mut properties, names, closed, entries } = settled;
        if closed {
            properties.retain(|known| known.possible);
        }
        let mut places: Vec<(NameId, usize)> =
            properties.iter().enumerate().map(|(place, known)| (known.name, place)).collect();
        places.sort_unstable();
        let presence: Vec<Presence> =
            entries.iter().map(|entry| presence_of(entry, &places)).collect();
        let least = presence.iter().map(|entry| entry.required.len()).min().unwrap_or(0);
        let most = properties.iter().filter(|known| known.possible).count();
        let free = if closed {
            let rule = FreeRule {
                patterns: Vec::new(),
                additional: Conj::any(),
                additional_allowed: false,
            };
            vec![rule]
        } else {
            self.free_rules(&term)
        };
        let properties = properties.into_iter().map(|known| Property {
            name: Arc::clone(self.graph.name(known.name)),
            value: known.value,
            possible: known.possible,
        });
        Ok(ObjectShape {
            properties: properties.collect(),
            free,
            names: if closed || names.is_any() { Vec::new() } else { vec![names] },
            min: if least >= term.min as usize { 0 } else { term.min },
            max: term.max.filter(|&max| !closed || (max as usize) < most),
            presence,
            at,
        })
    }

    fn free_rules(&self, term: &ObjectTerm) -> Vec<FreeRule> {
        let conj = |node: NodeId| self.graph.conj([Literal::yes(node)]);
        let mut rules: Vec<FreeRule> = Vec::with_capacity(term.rules.len());
        for (_, rule) in &term.rules {
            let allowed = rule.additional != Graph::NEVER;
            let additional = if allowed { conj(rule.additional) } else { Conj::any() };
            let trivial = |value: &Conj| value.is_any() && allowed && additional.is_any();
            let patterns = rule.patterns.iter().map(|(text, node)| (Arc::clone(text), conj(*node)));
            let patterns: Vec<_> = patterns.filter(|(_, value)| !trivial(value)).collect();
            if patterns.is_empty() && trivial(&additional) {
                continue;
            }
            let rule = FreeRule { patterns, additional, additional_allowed: allowed };
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        rules
    }
}

impl Settled {
    /// The property of the name, which is likely to be at the index.
    fn find(&self, index: usize, name: NameId) -> Option<&Known> {
        let likely = self.properties.get(index).filter(|known| known.name == name);
        likely.or_else(|| self.properties.iter().find(|known| known.name == name))
    }

    /// Whether the property is never there.
    fn lacks(&self, known: &Known) -> bool {
        !known.possible || self.entries.iter().all(|entry| entry.contains(&(known.name, false)))
    }

    /// The entry without what is said of impossible properties. `None`: nothing satisfies it.
    fn feasible(&self, mut entry: Entry) -> Option<Entry> {
        let mut absent = 0;
        for known in &self.properties {
            if !known.possible {
                if entry.binary_search(&(known.name, true)).is_ok() {
                    return None;
                }
                if let Ok(at) = entry.binary_search(&(known.name, false)) {
                    entry.remove(at);
                }
                absent += 1;
            }
        }
        let required = entry.iter().filter(|assignment| assignment.1).count();
        if self.term.max.is_some_and(|max| (max as usize) < required) {
            return None;
        }
        absent += entry.len() - required;
        let most = self.properties.len() - absent;
        if self.closed && most < self.term.min as usize { None } else { Some(entry) }
    }
}

fn same_rules(first: &ObjectTerm, second: &ObjectTerm) -> bool {
    let within = |one: &ObjectTerm, other: &ObjectTerm| {
        one.rules
            .iter()
            .all(|(_, rule)| other.rules.iter().any(|(_, second)| same_rule(rule, second)))
    };
    within(first, second) && within(second, first)
}

fn same_rule(first: &Arc<Properties>, second: &Arc<Properties>) -> bool {
    Arc::ptr_eq(first, second) || first == second
}

fn presence_of(entry: &Entry, places: &[(NameId, usize)]) -> Presence {
    let mut presence = Presence::default();
    for &(name, there) in entry {
        let place = places.binary_search_by_key(&name, |&(name, _)| name);
        if let Some(&(_, place)) = place.ok().and_then(|at| places.get(at)) {
            let list = if there { &mut presence.required } else { &mut presence.forbidden };
            list.push(place);
        }
    }
    presence.required.sort_unstable();
    presence.forbidden.sort_unstable();
    presence
}
