//! What the schemas beside `unevaluatedProperties` and `unevaluatedItems` have looked at.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::grammar::Fuel;

use super::atom::{Atom, Items, NameId, Properties};
use super::conj::NodeId;
use super::error::SchemaError;
use super::graph::Graph;
use super::json::Json;
use super::validate::Validator;

impl Validator<'_, '_> {
    /// For each entry whether another keyword of the schema, which holds, has evaluated it.
    pub(super) fn evaluated_properties(
        &mut self,
        node: NodeId,
        entries: &[(Arc<str>, Json)],
        value: &Json,
    ) -> Result<Vec<bool>, SchemaError> {
        let mut evaluated = vec![false; entries.len()];
        let mut pending = vec![(node, true)];
        while let Some((node, outermost)) = pending.pop() {
            self.fuel.spend(1)?;
            for atom in self.graph.atoms(node) {
                match atom {
                    Atom::Properties(rule) => {
                        self.mark_properties(node, rule, entries, &mut evaluated)?;
                    }
                    Atom::UnevaluatedProperties(_) if !outermost => evaluated.fill(true),
                    _ => self.applied(atom, value, &mut pending)?,
                }
            }
        }
        Ok(evaluated)
    }

    fn mark_properties(
        &mut self,
        node: NodeId,
        rule: &Properties,
        entries: &[(Arc<str>, Json)],
        evaluated: &mut [bool],
    ) -> Result<(), SchemaError> {
        for ((name, _), evaluated) in entries.iter().zip(evaluated) {
            let declared = self.graph.name_id(name).is_some_and(|name| rule.declares(name));
            *evaluated |= declared || rule.additional_written;
            for (pattern, _) in &rule.patterns {
                *evaluated = *evaluated || self.finds(node, pattern, name)?;
            }
        }
        Ok(())
    }

    /// For each item whether another keyword of the schema, which holds, has evaluated it.
    pub(super) fn evaluated_items(
        &mut self,
        node: NodeId,
        items: &[Json],
    ) -> Result<Vec<bool>, SchemaError> {
        let mut evaluated = vec![false; items.len()];
        let value = Json::Array(items.to_vec());
        let mut pending = vec![(node, true)];
        while let Some((node, outermost)) = pending.pop() {
            self.fuel.spend(1 + items.len() as u32)?;
            for atom in self.graph.atoms(node) {
                match atom {
                    Atom::Items(rule) => {
                        let count = if rule.rest_written { items.len() } else { rule.prefix.len() };
                        evaluated.iter_mut().take(count).for_each(|evaluated| *evaluated = true);
                    }
                    Atom::Contains(counted) => {
                        for (item, evaluated) in items.iter().zip(&mut evaluated) {
                            *evaluated = *evaluated || self.holds(counted.item, item)?;
                        }
                    }
                    Atom::UnevaluatedItems(_) if !outermost => evaluated.fill(true),
                    _ => self.applied(atom, &value, &mut pending)?,
                }
            }
        }
        Ok(evaluated)
    }

    /// Adds the schemas that the atom applies to the value itself and that hold.
    fn applied(
        &mut self,
        atom: &Atom,
        value: &Json,
        pending: &mut Vec<(NodeId, bool)>,
    ) -> Result<(), SchemaError> {
        match atom {
            Atom::All(_, nodes) => pending.extend(nodes.iter().map(|&node| (node, false))),
            Atom::Any(nodes) | Atom::One(nodes) => {
                for &node in nodes {
                    if self.holds(node, value)? {
                        pending.push((node, false));
                    }
                }
            }
            Atom::If(condition) => {
                if self.holds(condition.test, value)? {
                    pending.extend([(condition.test, false), (condition.then, false)]);
                } else {
                    pending.push((condition.otherwise, false));
                }
            }
            Atom::DependentSchemas(list) => {
                for &(key, node) in list {
                    if value.get(self.graph.name(key)).is_some() {
                        pending.push((node, false));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// What a schema evaluates whatever the value is.
#[derive(Default)]
struct Evaluated {
    names: Vec<NameId>,
    patterns: Vec<Arc<str>>,
    prefix: usize,
    all: bool,
    /// Something depends on the value.
    dynamic: bool,
}

impl Evaluated {
    fn is_nothing(&self) -> bool {
        let listed = !self.names.is_empty() || !self.patterns.is_empty() || self.prefix > 0;
        !(self.all || self.dynamic || listed)
    }
}

impl Graph {
    /// Replaces `unevaluated…` by `additionalProperties` and `items` where what the other
    /// keywords evaluate does not depend on the value.
    pub(super) fn settle_unevaluated(&mut self, fuel: &mut Fuel<'_>) -> Result<(), SchemaError> {
        let mut left = false;
        for index in 0..self.len() {
            let id = NodeId(index as u32);
            let atoms = self.atoms(id);
            let mut replaced = Vec::new();
            for (at, atom) in atoms.iter().enumerate() {
                if matches!(atom, Atom::UnevaluatedProperties(_) | Atom::UnevaluatedItems(_)) {
                    match self.settled(id, atom, fuel)? {
                        Some(settled) => replaced.push((at, settled)),
                        None => left = true,
                    }
                }
            }
            for (at, atom) in replaced {
                self.replace_atom(id, at, atom);
            }
        }
        self.has_unevaluated = left;
        Ok(())
    }

    fn settled(
        &self,
        id: NodeId,
        atom: &Atom,
        fuel: &mut Fuel<'_>,
    ) -> Result<Option<Atom>, SchemaError> {
        let mut found = Evaluated::default();
        let objects = matches!(atom, Atom::UnevaluatedProperties(_));
        self.evaluated(id, objects, true, &mut found, fuel)?;
        if found.all {
            return Ok(Some(Atom::All(atom.keyword(), SmallVec::from_slice(&[Self::ANY]))));
        }
        if found.dynamic {
            return Ok(None);
        }
        Ok(match atom {
            Atom::UnevaluatedProperties(rest) => {
                found.names.sort_unstable();
                found.names.dedup();
                Some(Atom::Properties(Arc::new(Properties::new(
                    found.names.into_iter().map(|name| (name, Self::ANY)).collect(),
                    found.patterns.into_iter().map(|pattern| (pattern, Self::ANY)).collect(),
                    Some(*rest),
                ))))
            }
            Atom::UnevaluatedItems(rest) => {
                let prefix = vec![Self::ANY; found.prefix];
                Some(Atom::Items(Box::new(Items { prefix, rest: *rest, rest_written: true })))
            }
            _ => None,
        })
    }

    /// Collects what the schema evaluates of objects, or of arrays.
    fn evaluated(
        &self,
        id: NodeId,
        objects: bool,
        outermost: bool,
        found: &mut Evaluated,
        fuel: &mut Fuel<'_>,
    ) -> Result<(), SchemaError> {
        fuel.spend(1)?;
        for atom in self.atoms(id) {
            match atom {
                Atom::Properties(rule) if objects => {
                    found.names.extend(rule.declared.iter().map(|&(name, _)| name));
                    found.patterns.extend(rule.patterns.iter().map(|(pattern, _)| pattern.clone()));
                    found.all |= rule.additional_written;
                }
                Atom::Items(rule) if !objects => {
                    found.prefix = found.prefix.max(rule.prefix.len());
                    found.all |= rule.rest_written;
                }
                Atom::Contains(_) if !objects => found.dynamic = true,
                Atom::UnevaluatedProperties(_) if objects && !outermost => found.all = true,
                Atom::UnevaluatedItems(_) if !objects && !outermost => found.all = true,
                Atom::All(_, nodes) => {
                    for &node in nodes {
                        self.evaluated(node, objects, false, found, fuel)?;
                    }
                }
                // Not even a schema under `not` that holds evaluates anything.
                Atom::Not(_) => {}
                _ => {
                    let mut applied = Vec::new();
                    atom.in_place(&mut |node| applied.push(node));
                    for node in applied {
                        let mut inner = Evaluated::default();
                        self.evaluated(node, objects, false, &mut inner, fuel)?;
                        found.dynamic |= !inner.is_nothing();
                    }
                }
            }
        }
        Ok(())
    }
}
