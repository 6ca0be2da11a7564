//! From conjunctions to shapes: what the makers of alternatives share.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::grammar::Fuel;
use crate::grammar::regular::{Dfa, RegularError};

use super::atom::{Atom, NameId, Types, Values};
use super::conj::{Conj, Literal, NodeId};
use super::error::{Relaxed, SchemaError};
use super::expand::{Term, expand};
use super::graph::Graph;
use super::json::Json;
use super::languages::Languages;
use super::shape::{ArrayShape, NumberSet, Shapes, StringSet};
use super::shape_array::ArrayTerm;
use super::shape_scalar::drop_covered;
use super::term_object::ObjectTerm;
use super::validate::Validator;

/// How far proofs that something is impossible look into values.
const SPECULATION_MAX: u32 = 3;

/// Makes shapes.
pub(super) struct Shaper<'a, 'f> {
    pub(super) graph: &'a Graph,
    pub(super) languages: &'a mut Languages,
    pub(super) fuel: &'a mut Fuel<'f>,
    pub(super) memo: &'a mut FxHashMap<Conj, Arc<Shapes>>,
    pub(super) relaxed: &'a mut Vec<Relaxed>,
    /// Whether what cannot be exact is an error.
    pub(super) strict: bool,
    /// How many proofs this is part of.
    pub(super) speculation: u32,
}

impl Shaper<'_, '_> {
    /// The shapes of a conjunction.
    pub(super) fn shapes(&mut self, conj: &Conj) -> Result<Arc<Shapes>, SchemaError> {
        self.fuel.spend(1)?;
        if let Some(shapes) = self.memo.get(conj) {
            return Ok(Arc::clone(shapes));
        }
        let shapes = Arc::new(self.make(conj)?);
        self.memo.insert(conj.clone(), Arc::clone(&shapes));
        Ok(shapes)
    }

    fn make(&mut self, conj: &Conj) -> Result<Shapes, SchemaError> {
        let mut shapes = Shapes::default();
        if let Some(candidates) = self.graph.finite_of(conj) {
            self.keep_values(conj, &[candidates], Types::ALL, &mut shapes)?;
            return Ok(shapes);
        }
        let types = self.types(conj);
        shapes.null = types.meets(Types::NULL) && self.accepts(conj.literals(), &Json::Null)?;
        if types.meets(Types::BOOLEAN) {
            for (allowed, value) in shapes.booleans.iter_mut().zip([false, true]) {
                *allowed = self.accepts(conj.literals(), &Json::Bool(value))?;
            }
        }
        if types.meets(Types::NUMBER) {
            let mut sets = self.terms::<NumberSet>(conj, &mut shapes)?;
            sets.iter_mut().for_each(NumberSet::tidy);
            shapes.numbers = drop_covered(sets, NumberSet::covers);
        }
        if types.meets(Types::STRING) {
            let mut sets = self.terms::<StringSet>(conj, &mut shapes)?;
            sets.iter_mut().for_each(StringSet::tidy);
            if self.speculation > 0 {
                let mut left = Vec::with_capacity(sets.len());
                for set in sets {
                    if !self.patterns_clash(&set)? {
                        left.push(set);
                    }
                }
                sets = left;
            }
            shapes.strings = drop_covered(sets, StringSet::covers);
        }
        let at = conj.literals().first().map_or(Graph::ANY, |literal| literal.node);
        if types.meets(Types::ARRAY) {
            let mut arrays: Vec<ArrayShape> = Vec::new();
            for term in self.terms::<ArrayTerm>(conj, &mut shapes)? {
                arrays.extend(term.shape(at, self)?);
            }
            shapes.arrays = drop_covered(arrays, ArrayShape::eq);
        }
        if types.meets(Types::OBJECT) {
            let terms = self.terms::<ObjectTerm>(conj, &mut shapes)?;
            shapes.objects = self.objects(terms, at)?;
        }
        Ok(shapes)
    }

    /// Terms of one type; values of that type that the way there demands go to `shapes`.
    fn terms<T: Term>(&mut self, conj: &Conj, shapes: &mut Shapes) -> Result<Vec<T>, SchemaError> {
        let mut candidates = Vec::new();
        let terms = expand::<T>(self, conj, &mut candidates)?;
        let graph = self.graph;
        let lists: Vec<&Arc<Values>> = candidates
            .into_iter()
            .filter_map(|(node, atom)| match graph.atoms(node).get(atom as usize) {
                Some(Atom::Enum(values)) => Some(values),
                _ => None,
            })
            .collect();
        self.keep_values(conj, &lists, T::TYPES, shapes)?;
        Ok(terms)
    }

    /// Adds the values of the lists that have one of the types and satisfy the conjunction. What
    /// satisfies it is allowed whichever list it came from, and nothing else is.
    fn keep_values(
        &mut self,
        conj: &Conj,
        lists: &[&Arc<Values>],
        types: Types,
        shapes: &mut Shapes,
    ) -> Result<(), SchemaError> {
        let mut seen: FxHashSet<&Json> = FxHashSet::default();
        for value in lists.iter().flat_map(|values| &values.list) {
            if !types.meets(Types::of(value)) || !self.accepts(conj.literals(), value)? {
                continue;
            }
            match value {
                Json::Null => shapes.null = true,
                Json::Bool(value) => {
                    let [no, yes] = &mut shapes.booleans;
                    *(if *value { yes } else { no }) = true;
                }
                _ if lists.len() == 1 || seen.insert(value) => shapes.values.push(value.clone()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Types that some value of which may satisfy the conjunction.
    fn types(&self, conj: &Conj) -> Types {
        let upper = |&literal: &Literal| self.graph.upper(literal);
        conj.literals().iter().map(upper).fold(Types::ALL, |a, b| a & b)
    }

    pub(super) fn accepts(
        &mut self,
        literals: &[Literal],
        value: &Json,
    ) -> Result<bool, SchemaError> {
        Validator::new(self.graph, self.languages, self.fuel).all(literals, value)
    }

    /// Whether the pattern of a `patternProperties` is found in a name.
    pub(super) fn finds(
        &mut self,
        node: NodeId,
        pattern: &Arc<str>,
        name: NameId,
    ) -> Result<bool, SchemaError> {
        let name = self.graph.name(name);
        Validator::new(self.graph, self.languages, self.fuel).finds(node, pattern, name)
    }

    /// The strings in which a pattern is found, if there are no more than so many.
    pub(super) fn pattern_keys(
        &mut self,
        node: NodeId,
        pattern: &Arc<str>,
        at_most: usize,
    ) -> Result<Option<Vec<String>>, SchemaError> {
        match self.languages.pattern(pattern, self.fuel) {
            Ok(dfa) => Ok(dfa.finite(at_most)),
            Err(error) => Err(self.graph.regular_error(node, "patternProperties", error)),
        }
    }

    /// The texts in which one of the patterns is found, and that are in `keys`.
    pub(super) fn keys_in<'p>(
        &mut self,
        node: NodeId,
        patterns: impl Iterator<Item = &'p Arc<str>>,
        keys: Option<Arc<Dfa>>,
    ) -> Result<Arc<Dfa>, SchemaError> {
        let graph = self.graph;
        let refuse = |error| graph.regular_error(node, "patternProperties", error);
        let mut found = Dfa::never();
        for pattern in patterns {
            let language = self.languages.pattern(pattern, self.fuel).map_err(refuse)?;
            found = found.union(&language, self.fuel).map_err(refuse)?;
        }
        Ok(Arc::new(match keys {
            Some(keys) => keys.intersect(&found, self.fuel).map_err(refuse)?,
            None => found,
        }))
    }

    /// Whether the patterns of a string set leave nothing. What has no automaton is taken to
    /// leave something.
    fn patterns_clash(&mut self, set: &StringSet) -> Result<bool, SchemaError> {
        if set.patterns.len() < 2 {
            return Ok(false);
        }
        let mut left = Dfa::any();
        for (pattern, found) in &set.patterns {
            let language = self.languages.pattern(pattern, self.fuel);
            let narrowed = language.and_then(|language| match found {
                true => left.intersect(&language, self.fuel),
                false => left.difference(&language, self.fuel),
            });
            match narrowed {
                Ok(narrowed) => left = narrowed,
                Err(RegularError::Limit(limit)) => return Err(limit.into()),
                Err(_) => return Ok(false),
            }
        }
        Ok(left.is_never())
    }

    /// The strings that satisfy a literal, if that is a plain list.
    pub(super) fn only_strings(
        &mut self,
        literal: Literal,
    ) -> Result<Option<Vec<String>>, SchemaError> {
        let conj = self.graph.conj([literal]);
        let Some(shapes) = self.speculate(&conj)? else { return Ok(None) };
        let strings = shapes.values.iter().filter_map(|value| match value {
            Json::String(text) => Some(text.to_string()),
            _ => None,
        });
        Ok(shapes.strings.is_empty().then(|| strings.collect()))
    }

    /// Something cannot be exact: an error, or a note that it is dropped.
    pub(super) fn give_up(
        &mut self,
        node: NodeId,
        keyword: &str,
        reason: &str,
    ) -> Result<bool, SchemaError> {
        if self.strict || self.speculation > 0 {
            return Err(self.graph.inexact(node, keyword, reason));
        }
        let relaxed = Relaxed { pointer: self.graph.pointer(node), keyword: keyword.to_owned() };
        if !self.relaxed.contains(&relaxed) {
            self.relaxed.push(relaxed);
        }
        Ok(true)
    }

    /// Shapes for a proof. `None`: there are none that are exact, or it goes too deep.
    fn speculate(&mut self, conj: &Conj) -> Result<Option<Arc<Shapes>>, SchemaError> {
        if self.speculation >= SPECULATION_MAX {
            return Ok(self.memo.get(conj).cloned());
        }
        self.speculation += 1;
        let shapes = self.shapes(conj);
        self.speculation -= 1;
        match shapes {
            Ok(shapes) => Ok(Some(shapes)),
            Err(SchemaError::Limit(limit)) => Err(limit.into()),
            Err(_) => Ok(None),
        }
    }

    /// False if it is plain that no value satisfies the conjunction. A schema by itself is
    /// taken to be possible.
    pub(super) fn possible(&mut self, conj: &Conj) -> Result<bool, SchemaError> {
        match conj.literals() {
            [] => return Ok(true),
            [only] if only.positive => return Ok(!self.graph.upper(*only).is_empty()),
            _ => {}
        }
        if self.types(conj).is_empty() {
            return Ok(false);
        }
        if let Some(values) = self.graph.finite_of(conj) {
            for value in &Arc::clone(values).list {
                if self.accepts(conj.literals(), value)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        if conj.literals().len() == 1 {
            return Ok(true);
        }
        Ok(self.speculate(conj)?.is_none_or(|shapes| !shapes.is_never()))
    }

    /// Which pairs of the schemas, by index, no value of the type satisfies both of.
    pub(super) fn apart<T: Term>(
        &mut self,
        nodes: &[NodeId],
        conj: &Conj,
    ) -> Result<FxHashSet<(usize, usize)>, SchemaError> {
        let mut pairs = FxHashSet::default();
        let around = conj.literals().iter().filter(|literal| literal.positive);
        let around: SmallVec<[NodeId; 4]> = around.map(|literal| literal.node).collect();
        let demanded = Facts::of(&around, self.graph).required;
        let facts = nodes.iter().map(|&node| {
            let mut facts = Facts::of(&[node], self.graph);
            facts.required.extend(demanded.iter().copied());
            facts
        });
        let facts: Vec<Facts> = facts.collect();
        for (i, (&first, left)) in nodes.iter().zip(&facts).enumerate() {
            for (j, (&second, right)) in nodes.iter().zip(&facts).enumerate().skip(i + 1) {
                self.fuel.spend(1 + left.declared.len() as u32)?;
                // The facts are about objects: every array satisfies all of them.
                let plain = T::TYPES == Types::OBJECT
                    && (left.excludes(right, self.graph) || right.excludes(left, self.graph));
                if plain || self.never_both::<T>(first, second)? {
                    pairs.insert((i, j));
                }
            }
        }
        Ok(pairs)
    }

    fn never_both<T: Term>(&mut self, first: NodeId, second: NodeId) -> Result<bool, SchemaError> {
        let conj = self.graph.conj([Literal::yes(first), Literal::yes(second)]);
        if !self.types(&conj).meets(T::TYPES) {
            return Ok(true);
        }
        if T::TYPES.meets(Types::NUMBER | Types::STRING) {
            // Their negations are cheap.
            return Ok(false);
        }
        let Some(shapes) = self.speculate(&conj)? else { return Ok(false) };
        let none = match T::TYPES {
            Types::ARRAY => shapes.arrays.is_empty(),
            _ => shapes.objects.is_empty(),
        };
        Ok(none && !shapes.values.iter().any(|value| T::TYPES.meets(Types::of(value))))
    }
}

/// What is plain about the objects of a schema.
struct Facts {
    required: SmallVec<[NameId; 4]>,
    /// Properties with a schema, by name.
    declared: FxHashMap<NameId, NodeId>,
    /// Whether there is no key but the declared ones.
    closed: bool,
}

impl Facts {
    /// Of schemas that hold together.
    fn of(nodes: &[NodeId], graph: &Graph) -> Self {
        let mut facts =
            Self { required: SmallVec::new(), declared: FxHashMap::default(), closed: false };
        let mut pending: SmallVec<[NodeId; 4]> = SmallVec::from_slice(nodes);
        let mut own = nodes.len() == 1;
        while let Some(node) = pending.pop() {
            for atom in graph.atoms(node) {
                match atom {
                    Atom::Required(names) => facts.required.extend(names.iter().copied()),
                    Atom::Properties(rule) => {
                        facts.declared.extend(rule.declared.iter().copied());
                        facts.closed |=
                            own && rule.patterns.is_empty() && rule.additional == Graph::NEVER;
                    }
                    Atom::All(_, nodes) if pending.len() < 8 => {
                        pending.extend(nodes.iter().copied());
                    }
                    _ => {}
                }
            }
            own = false;
        }
        facts
    }

    /// Whether a property that this one requires has no value that satisfies both.
    fn excludes(&self, other: &Self, graph: &Graph) -> bool {
        self.required.iter().any(|name| {
            let Some(&theirs) = other.declared.get(name) else { return other.closed };
            let Some(&ours) = self.declared.get(name) else { return theirs == Graph::NEVER };
            if !graph.node(ours).upper.meets(graph.node(theirs).upper) {
                return true;
            }
            match (graph.finite(ours), graph.finite(theirs)) {
                (Some(a), Some(b)) => !a.list.iter().any(|value| b.contains(value)),
                _ => false,
            }
        })
    }
}
