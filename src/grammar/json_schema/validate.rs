//! Whether a value satisfies a schema: every keyword, exactly.

use crate::grammar::regular::RegularError;
use crate::grammar::{Fuel, LimitError};

use super::atom::{Atom, Condition, Items, NameId, Properties, Types};
use super::conj::{Literal, NodeId};
use super::error::SchemaError;
use super::graph::Graph;
use super::json::Json;
use super::languages::Languages;

/// Schemas within schemas, in place or further into the value, beyond this depth are refused.
const DEPTH_MAX: u32 = 1_000;

/// Holds values against the schemas of a graph.
pub(super) struct Validator<'a, 'f> {
    pub(super) graph: &'a Graph,
    pub(super) languages: &'a mut Languages,
    pub(super) fuel: &'a mut Fuel<'f>,
    depth: u32,
}

type Verdict = Result<bool, SchemaError>;

impl<'a, 'f> Validator<'a, 'f> {
    pub(super) fn new(
        graph: &'a Graph,
        languages: &'a mut Languages,
        fuel: &'a mut Fuel<'f>,
    ) -> Self {
        Self { graph, languages, fuel, depth: 0 }
    }

    /// Whether all literals hold.
    pub(super) fn all(&mut self, literals: &[Literal], value: &Json) -> Verdict {
        for literal in literals {
            if self.holds(literal.node, value)? != literal.positive {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the schema holds.
    pub(super) fn holds(&mut self, node: NodeId, value: &Json) -> Verdict {
        self.fuel.spend(1)?;
        let known = self.graph.node(node);
        let types = Types::of(value);
        if !known.upper.meets(types) {
            return Ok(false);
        }
        if known.lower.meets(types) {
            return Ok(true);
        }
        if self.depth >= DEPTH_MAX {
            return Err(LimitError::Depth { max: DEPTH_MAX }.into());
        }
        self.depth += 1;
        let mut verdict = Ok(true);
        for atom in &known.atoms {
            if atom.domain().meets(types) {
                verdict = self.atom(node, atom, value);
                if !matches!(verdict, Ok(true)) {
                    break;
                }
            }
        }
        self.depth -= 1;
        verdict
    }

    fn atom(&mut self, node: NodeId, atom: &'a Atom, value: &Json) -> Verdict {
        match (atom, value) {
            (Atom::Type(types), _) => Ok(types.meets(Types::of(value))),
            (Atom::Enum(values), _) => Ok(values.contains(value)),
            (Atom::All(_, nodes), _) => self.every(nodes, value),
            (Atom::Any(nodes), _) => Ok(self.count(nodes, value, 1)? > 0),
            (Atom::One(nodes), _) => Ok(self.count(nodes, value, 2)? == 1),
            (Atom::Not(inner), _) => Ok(!self.holds(*inner, value)?),
            (Atom::If(condition), _) => self.condition(condition, value),
            (Atom::Minimum(bound), Json::Number(number)) => {
                Ok(*number > bound.value || (*number == bound.value && !bound.exclusive))
            }
            (Atom::Maximum(bound), Json::Number(number)) => {
                Ok(*number < bound.value || (*number == bound.value && !bound.exclusive))
            }
            (Atom::MultipleOf(divisor), Json::Number(number)) => Ok(number.is_multiple_of(divisor)),
            (_, Json::String(text)) => self.string_atom(node, atom, text),
            (_, Json::Array(items)) => self.array_atom(node, atom, items),
            (_, Json::Object(entries)) => self.object_atom(node, atom, entries, value),
            _ => Ok(true),
        }
    }

    fn every(&mut self, nodes: &[NodeId], value: &Json) -> Verdict {
        for &node in nodes {
            if !self.holds(node, value)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// How many of the schemas hold; counts no further than `enough`.
    fn count(
        &mut self,
        nodes: &[NodeId],
        value: &Json,
        enough: usize,
    ) -> Result<usize, SchemaError> {
        let mut count = 0;
        for &node in nodes {
            count += usize::from(self.holds(node, value)?);
            if count >= enough {
                break;
            }
        }
        Ok(count)
    }

    fn condition(&mut self, condition: &Condition, value: &Json) -> Verdict {
        let branch =
            if self.holds(condition.test, value)? { condition.then } else { condition.otherwise };
        self.holds(branch, value)
    }

    fn string_atom(&mut self, node: NodeId, atom: &Atom, text: &str) -> Verdict {
        let regular = |error: RegularError| self.graph.regular_error(node, atom.keyword(), error);
        match atom {
            Atom::MinLength(min) => Ok(text.chars().count() >= *min as usize),
            Atom::MaxLength(max) => Ok(text.chars().count() <= *max as usize),
            Atom::Pattern(pattern) => {
                self.languages.finds(pattern, text, self.fuel).map_err(regular)
            }
            Atom::Format(format) => {
                self.languages.has_format(*format, text, self.fuel).map_err(regular)
            }
            _ => Ok(true),
        }
    }

    fn array_atom(&mut self, node: NodeId, atom: &Atom, items: &[Json]) -> Verdict {
        match atom {
            Atom::Items(rule) => self.items(rule, items),
            Atom::MinItems(min) => Ok(items.len() >= *min as usize),
            Atom::MaxItems(max) => Ok(items.len() <= *max as usize),
            Atom::Contains(counted) => {
                let mut count = 0;
                for item in items {
                    count += usize::from(self.holds(counted.item, item)?);
                }
                Ok(count >= counted.min as usize
                    && counted.max.is_none_or(|max| count <= max as usize))
            }
            Atom::Unique => {
                self.fuel.spend(items.len() as u32)?;
                let mut seen = rustc_hash::FxHashSet::default();
                Ok(items.iter().all(|item| seen.insert(item)))
            }
            Atom::UnevaluatedItems(rest) => {
                let evaluated = self.evaluated_items(node, items)?;
                for (item, evaluated) in items.iter().zip(evaluated) {
                    if !evaluated && !self.holds(*rest, item)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            _ => Ok(true),
        }
    }

    fn items(&mut self, rule: &Items, items: &[Json]) -> Verdict {
        for (index, item) in items.iter().enumerate() {
            let node = rule.prefix.get(index).copied().unwrap_or(rule.rest);
            if !self.holds(node, item)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn object_atom(
        &mut self,
        node: NodeId,
        atom: &Atom,
        entries: &[(std::sync::Arc<str>, Json)],
        value: &Json,
    ) -> Verdict {
        let has = |name: NameId| value.get(self.graph.name(name)).is_some();
        match atom {
            Atom::Properties(rule) => self.properties(node, rule, entries),
            Atom::Required(names) => Ok(names.iter().all(|&name| has(name))),
            Atom::MinProperties(min) => Ok(entries.len() >= *min as usize),
            Atom::MaxProperties(max) => Ok(entries.len() <= *max as usize),
            Atom::PropertyNames(names) => {
                for (name, _) in entries {
                    if !self.holds(*names, &Json::String(name.clone()))? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Atom::DependentRequired(list) => Ok(list
                .iter()
                .all(|(key, names)| !has(*key) || names.iter().all(|&name| has(name)))),
            Atom::DependentSchemas(list) => {
                for &(key, schema) in list {
                    if value.get(self.graph.name(key)).is_some() && !self.holds(schema, value)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Atom::UnevaluatedProperties(rest) => {
                let evaluated = self.evaluated_properties(node, entries, value)?;
                for ((_, value), evaluated) in entries.iter().zip(evaluated) {
                    if !evaluated && !self.holds(*rest, value)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            _ => Ok(true),
        }
    }

    fn properties(
        &mut self,
        node: NodeId,
        rule: &Properties,
        entries: &[(std::sync::Arc<str>, Json)],
    ) -> Verdict {
        for (name, value) in entries {
            let child = self.graph.name_id(name).and_then(|name| rule.child(name));
            let mut known = child.is_some();
            if let Some(child) = child
                && !self.holds(child, value)?
            {
                return Ok(false);
            }
            for (pattern, child) in &rule.patterns {
                if self.finds(node, pattern, name)? {
                    known = true;
                    if !self.holds(*child, value)? {
                        return Ok(false);
                    }
                }
            }
            if !known && !self.holds(rule.additional, value)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the pattern of a `patternProperties` is found in the name.
    pub(super) fn finds(
        &mut self,
        node: NodeId,
        pattern: &std::sync::Arc<str>,
        name: &str,
    ) -> Verdict {
        self.languages
            .finds(pattern, name, self.fuel)
            .map_err(|error| self.graph.regular_error(node, "patternProperties", error))
    }
}
