//! The schemas of a document as a graph: numbered, simplified, equal ones merged.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;

use crate::grammar::regular::RegularError;
use crate::grammar::{Fuel, LimitError};

use super::atom::{Atom, NameId, Types, Values};
use super::conj::{Conj, Literal, NodeId};
use super::error::SchemaError;
use super::json::Json;
use super::tree::{Span, Tree, ValueId};

/// Schemas applied to one value through each other (`allOf` in `anyOf` in …) beyond this depth
/// are refused, so that recursion over them is safe.
const IN_PLACE_DEPTH_MAX: u32 = 200;

/// Longer lists are no keys that a negation singles out.
const KEYS_MAX: usize = 64;

/// A schema: the conjunction of its atoms.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) at: ValueId,
    pub(super) atoms: Vec<Atom>,
    /// Types that some value of which may satisfy it.
    pub(super) upper: Types,
    /// Types whose values all satisfy it.
    pub(super) lower: Types,
    /// A list that all values that satisfy it are from.
    finite: Option<Arc<Values>>,
}

impl Node {
    fn new(at: ValueId, atoms: Vec<Atom>) -> Self {
        Self { at, atoms, upper: Types::ALL, lower: Types::NONE, finite: None }
    }
}

/// All schemas of a document.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) tree: Tree,
    nodes: Vec<Node>,
    names: Vec<Arc<str>>,
    name_ids: FxHashMap<Arc<str>, NameId>,
    constants: FxHashMap<Json, NodeId>,
    pub(super) root: NodeId,
    /// Whether some schema has `unevaluatedProperties` or `unevaluatedItems`.
    pub(super) has_unevaluated: bool,
    /// Whether a number with a point or an exponent is no integer, as in draft 4.
    pub(super) plain_integers: bool,
}

impl Graph {
    /// The schema that everything satisfies.
    pub(super) const ANY: NodeId = NodeId(0);
    /// The schema that nothing satisfies.
    pub(super) const NEVER: NodeId = NodeId(1);

    pub(super) fn new(tree: Tree) -> Self {
        // Most schemas are values of properties, and take a few values to say.
        let expected = tree.len() / 4;
        let mut graph = Self {
            tree,
            nodes: Vec::with_capacity(expected),
            names: Vec::with_capacity(expected),
            name_ids: FxHashMap::with_capacity_and_hasher(expected, FxBuildHasher),
            constants: FxHashMap::default(),
            root: Self::ANY,
            has_unevaluated: false,
            plain_integers: false,
        };
        graph.nodes.push(Node { lower: Types::ALL, ..Node::new(ValueId(0), Vec::new()) });
        let never = Node::new(ValueId(0), vec![Atom::Type(Types::NONE)]);
        graph.nodes.push(Node { upper: Types::NONE, ..never });
        graph
    }

    /// The node; [`ANY`](Self::ANY) is there from the start, so there is always one.
    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    pub(super) fn atoms(&self, id: NodeId) -> &[Atom] {
        &self.node(id).atoms
    }

    /// A list that all values that satisfy the schema are from.
    pub(super) fn finite(&self, id: NodeId) -> Option<&Arc<Values>> {
        self.node(id).finite.as_ref()
    }

    /// A list that all values of the conjunction are from.
    pub(super) fn finite_of(&self, conj: &Conj) -> Option<&Arc<Values>> {
        let positive = conj.literals().iter().filter(|literal| literal.positive);
        positive
            .filter_map(|literal| self.finite(literal.node))
            .min_by_key(|values| values.list.len())
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn push(&mut self, at: ValueId) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(Node::new(at, Vec::new()));
        id
    }

    pub(super) fn set_atoms(&mut self, id: NodeId, atoms: Vec<Atom>) {
        self.nodes[id.index()].atoms = atoms;
    }

    /// The number of a property name that stands in the document.
    pub(super) fn intern_span(&mut self, name: Span) -> NameId {
        match self.name_ids.get(self.tree.text(name)) {
            Some(&id) => id,
            None => self.add_name(self.tree.text(name).into()),
        }
    }

    /// The number of a property name.
    pub(super) fn intern(&mut self, name: &str) -> NameId {
        match self.name_ids.get(name) {
            Some(&id) => id,
            None => self.add_name(name.into()),
        }
    }

    fn add_name(&mut self, name: Arc<str>) -> NameId {
        let id = NameId(self.names.len() as u32);
        self.names.push(Arc::clone(&name));
        self.name_ids.insert(name, id);
        id
    }

    pub(super) fn name_id(&self, name: &str) -> Option<NameId> {
        self.name_ids.get(name).copied()
    }

    pub(super) fn name(&self, id: NameId) -> &Arc<str> {
        &self.names[id.0 as usize]
    }

    /// The schema that only `value` satisfies, for negations that single out a value within an
    /// array or object of an `enum`.
    pub(super) fn constant(&self, value: &Json) -> Option<NodeId> {
        self.constants.get(value).copied()
    }

    /// Gives names to the keys that a negation may single out: strings that `propertyNames` may
    /// list, and patterns that are one text.
    fn intern_keys(&mut self, fuel: &mut Fuel<'_>) -> Result<(), SchemaError> {
        let atoms = || self.nodes.iter().flat_map(|node| &node.atoms);
        let has_names = atoms().any(|atom| matches!(atom, Atom::PropertyNames(_)));
        let mut keys: Vec<Arc<str>> = Vec::new();
        for atom in atoms() {
            fuel.spend(1)?;
            match atom {
                Atom::Enum(values) if has_names && values.list.len() <= KEYS_MAX => {
                    keys.extend(values.list.iter().filter_map(|value| match value {
                        Json::String(text) => Some(Arc::clone(text)),
                        _ => None,
                    }));
                }
                Atom::Properties(rule) => {
                    let patterns = rule.patterns.iter();
                    keys.extend(patterns.filter_map(|(pattern, _)| only_text(pattern)));
                }
                _ => {}
            }
        }
        keys.iter().for_each(|key| {
            self.intern(key);
        });
        Ok(())
    }

    /// Makes schemas for all values within arrays and objects of `enum` and `const`.
    fn make_constants(&mut self, fuel: &mut Fuel<'_>) -> Result<(), SchemaError> {
        let containers = Types::ARRAY | Types::OBJECT;
        let lists: Vec<(ValueId, Arc<Values>)> = self
            .nodes
            .iter()
            .flat_map(|node| node.atoms.iter().map(|atom| (node.at, atom)))
            .filter_map(|(at, atom)| match atom {
                Atom::Enum(values) if values.types.meets(containers) => Some((at, values.clone())),
                _ => None,
            })
            .collect();
        for (at, values) in lists {
            let mut pending: Vec<&Json> = values.list.iter().collect();
            while let Some(value) = pending.pop() {
                fuel.spend(1)?;
                let first = pending.len();
                match value {
                    Json::Array(items) => pending.extend(items),
                    Json::Object(entries) => pending.extend(entries.iter().map(|entry| &entry.1)),
                    _ => {}
                }
                for inner in pending.get(first..).unwrap_or(&[]) {
                    self.make_constant(inner, at);
                }
                if let Json::Object(entries) = value {
                    entries.iter().for_each(|(name, _)| {
                        self.intern(name);
                    });
                }
            }
        }
        Ok(())
    }

    fn make_constant(&mut self, value: &Json, at: ValueId) {
        if !self.constants.contains_key(value) {
            let id = self.push(at);
            let values = Values::new([value.clone()]);
            let node = &mut self.nodes[id.index()];
            node.upper = values.types;
            let values = Arc::new(values);
            node.finite = Some(Arc::clone(&values));
            node.atoms.push(Atom::Enum(values));
            self.constants.insert(value.clone(), id);
        }
    }

    pub(super) fn pointer(&self, id: NodeId) -> String {
        self.tree.pointer(self.node(id).at)
    }

    pub(super) fn inexact(&self, at: NodeId, keyword: &str, reason: &str) -> SchemaError {
        SchemaError::Inexact {
            pointer: self.pointer(at),
            keyword: keyword.to_owned(),
            reason: reason.to_owned(),
        }
    }

    /// A pattern or format of the schema has no language here.
    pub(super) fn regular_error(
        &self,
        at: NodeId,
        keyword: &str,
        error: RegularError,
    ) -> SchemaError {
        match error {
            RegularError::Limit(limit) => limit.into(),
            RegularError::Syntax { message } => SchemaError::Invalid {
                pointer: self.pointer(at),
                keyword: keyword.to_owned(),
                reason: format!("is no regular expression: {message}"),
            },
            RegularError::Unsupported { feature } => {
                self.inexact(at, keyword, &format!("uses {feature}"))
            }
            RegularError::TooLarge { states_max } => {
                self.inexact(at, keyword, &format!("needs more than {states_max} states"))
            }
        }
    }

    pub(super) fn replace_atom(&mut self, id: NodeId, at: usize, atom: Atom) {
        if let Some(slot) = self.nodes[id.index()].atoms.get_mut(at) {
            *slot = atom;
        }
    }

    /// Types that some value of which may satisfy the literal.
    pub(super) fn upper(&self, literal: Literal) -> Types {
        let node = self.node(literal.node);
        if literal.positive { node.upper } else { !node.lower }
    }

    /// Types whose values all satisfy the literal.
    pub(super) fn lower(&self, literal: Literal) -> Types {
        let node = self.node(literal.node);
        if literal.positive { node.lower } else { !node.upper }
    }

    /// The conjunction that nothing satisfies.
    pub(super) fn never() -> Conj {
        Conj(SmallVec::from_slice(&[Literal { node: Self::ANY, positive: false }]))
    }

    /// The canonical conjunction of literals.
    pub(super) fn conj(&self, literals: impl IntoIterator<Item = Literal>) -> Conj {
        let mut out: SmallVec<[Literal; 2]> = SmallVec::new();
        for literal in literals {
            if !self.push_literal(literal, &mut out) {
                return Self::never();
            }
        }
        if out.len() > 1 {
            out.sort_unstable();
            out.dedup();
            if out.windows(2).any(|pair| matches!(pair, [a, b] if a.node == b.node)) {
                return Self::never();
            }
        }
        Conj(out)
    }

    /// Adds a literal, seen through `not` and bare `allOf`. False: it never holds.
    fn push_literal(&self, mut literal: Literal, out: &mut SmallVec<[Literal; 2]>) -> bool {
        loop {
            match (literal.node, literal.positive) {
                (Self::ANY, true) | (Self::NEVER, false) => return true,
                (Self::ANY, false) | (Self::NEVER, true) => return false,
                _ => {}
            }
            match self.atoms(literal.node) {
                [Atom::Not(inner)] => {
                    literal = Literal { node: *inner, positive: !literal.positive };
                }
                [Atom::All(_, nodes)] if literal.positive => {
                    return nodes.iter().all(|&node| self.push_literal(Literal::yes(node), out));
                }
                _ => break,
            }
        }
        if self.upper(literal).is_empty() {
            return false;
        }
        if self.lower(literal) != Types::ALL {
            out.push(literal);
        }
        true
    }

    /// Simplifies, merges equal schemas, refuses cycles and works out the types.
    pub(super) fn finish(&mut self, fuel: &mut Fuel<'_>) -> Result<(), SchemaError> {
        fuel.spend(2 * self.nodes.len() as u32)?;
        self.order(fuel)?;
        if self.has_unevaluated {
            self.settle_unevaluated(fuel)?;
        }
        self.merge();
        for id in self.order(fuel)? {
            let (upper, lower) = self.bounds(id);
            let finite = self.shortest_list(id).map(Arc::clone);
            let node = &mut self.nodes[id.index()];
            (node.upper, node.lower, node.finite) = (upper, lower, finite);
        }
        self.intern_keys(fuel)?;
        self.make_constants(fuel)
    }

    /// All nodes, each after those that it applies to the same value.
    fn order(&self, fuel: &mut Fuel<'_>) -> Result<Vec<NodeId>, SchemaError> {
        const NEW: u32 = 0;
        const OPEN: u32 = u32::MAX;
        let mut depths = vec![NEW; self.nodes.len()];
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut stack: Vec<NodeId> = Vec::new();
        for start in 0..self.nodes.len() {
            stack.push(NodeId(start as u32));
            while let Some(&id) = stack.last() {
                fuel.spend(1)?;
                match depths[id.index()] {
                    NEW => {
                        depths[id.index()] = OPEN;
                        let mut cycle = false;
                        self.each_in_place(id, &mut |child| match depths[child.index()] {
                            NEW => stack.push(child),
                            OPEN => cycle = true,
                            _ => {}
                        });
                        if cycle {
                            return Err(self.cycle(id));
                        }
                    }
                    OPEN => {
                        let mut depth = 0;
                        self.each_in_place(id, &mut |child| {
                            depth = depth.max(depths[child.index()])
                        });
                        if depth >= IN_PLACE_DEPTH_MAX {
                            return Err(LimitError::Depth { max: IN_PLACE_DEPTH_MAX }.into());
                        }
                        depths[id.index()] = depth + 1;
                        order.push(id);
                        stack.pop();
                    }
                    _ => {
                        stack.pop();
                    }
                }
            }
        }
        Ok(order)
    }

    fn each_in_place(&self, id: NodeId, visit: &mut dyn FnMut(NodeId)) {
        for atom in self.atoms(id) {
            atom.in_place(visit);
        }
    }

    fn cycle(&self, id: NodeId) -> SchemaError {
        let keyword = self.atoms(id).iter().find_map(|atom| {
            let mut nested = false;
            atom.in_place(&mut |_| nested = true);
            nested.then(|| atom.keyword())
        });
        SchemaError::Invalid {
            pointer: self.pointer(id),
            keyword: keyword.unwrap_or("$ref").to_owned(),
            reason: "leads back to the same schema without going into the value".to_owned(),
        }
    }

    /// Simplifies every node and replaces those that say the same by one.
    fn merge(&mut self) {
        let mut alias: Vec<NodeId> = (0..self.nodes.len()).map(|id| NodeId(id as u32)).collect();
        let mut known: HashTable<NodeId> = HashTable::with_capacity(self.nodes.len());
        for index in (2..self.nodes.len()).rev() {
            let mut atoms = std::mem::take(&mut self.nodes[index].atoms);
            for atom in &mut atoms {
                atom.map_nodes(&|node| find(&alias, node));
            }
            let simplified = simplify(atoms, self.has_unevaluated);
            alias[index] = match simplified {
                Simplified::Any => Self::ANY,
                Simplified::Never => Self::NEVER,
                Simplified::Same(node) => node,
                Simplified::Atoms(atoms) => self.merged(NodeId(index as u32), atoms, &mut known),
            };
        }
        for node in &mut self.nodes {
            for atom in &mut node.atoms {
                atom.map_nodes(&|node| find(&alias, node));
            }
        }
        self.root = find(&alias, self.root);
    }

    /// The one node that has these atoms: this one, if no other does yet.
    fn merged(&mut self, id: NodeId, atoms: Vec<Atom>, known: &mut HashTable<NodeId>) -> NodeId {
        let hash = FxBuildHasher.hash_one(&atoms);
        let same = |twin: &NodeId| self.nodes[twin.index()].atoms == atoms;
        if let Some(&twin) = known.find(hash, same) {
            // Of equal ones the first in the document is the place to name.
            self.nodes[twin.index()].at = self.nodes[id.index()].at;
            return twin;
        }
        self.nodes[id.index()].atoms = atoms;
        let nodes = &self.nodes;
        known.insert_unique(hash, id, |id| FxBuildHasher.hash_one(&nodes[id.index()].atoms));
        id
    }

    /// The shortest `enum` that the schema demands.
    fn shortest_list(&self, id: NodeId) -> Option<&Arc<Values>> {
        let lists = self.atoms(id).iter().filter_map(|atom| match atom {
            Atom::Enum(values) => Some(values),
            Atom::All(_, nodes) => nodes
                .iter()
                .filter_map(|&node| self.finite(node))
                .min_by_key(|values| values.list.len()),
            _ => None,
        });
        lists.min_by_key(|values| values.list.len())
    }

    fn bounds(&self, id: NodeId) -> (Types, Types) {
        self.atoms(id).iter().fold((Types::ALL, Types::ALL), |(upper, lower), atom| {
            (upper & self.atom_upper(atom), lower & self.atom_lower(atom))
        })
    }

    fn atom_upper(&self, atom: &Atom) -> Types {
        let upper = |&node: &NodeId| self.node(node).upper;
        let union = |nodes: &[NodeId]| nodes.iter().map(upper).fold(Types::NONE, |a, b| a | b);
        match atom {
            Atom::Type(types) => *types,
            Atom::Enum(values) => values.types,
            Atom::All(_, nodes) => nodes.iter().map(upper).fold(Types::ALL, |a, b| a & b),
            Atom::Any(nodes) | Atom::One(nodes) => union(nodes),
            Atom::Not(node) => !self.node(*node).lower,
            Atom::If(condition) => {
                upper(&condition.test) & upper(&condition.then)
                    | !self.node(condition.test).lower & upper(&condition.otherwise)
            }
            _ => Types::ALL,
        }
    }

    fn atom_lower(&self, atom: &Atom) -> Types {
        let lower = |&node: &NodeId| self.node(node).lower;
        match atom {
            Atom::Type(types) => *types,
            Atom::Enum(_) => Types::NONE,
            Atom::All(_, nodes) => nodes.iter().map(lower).fold(Types::ALL, |a, b| a & b),
            Atom::Any(nodes) => nodes.iter().map(lower).fold(Types::NONE, |a, b| a | b),
            Atom::One(nodes) => nodes.iter().enumerate().fold(Types::NONE, |all, (index, node)| {
                let others = nodes.iter().enumerate().filter(|&(other, _)| other != index);
                let taken = others.fold(Types::NONE, |a, (_, node)| a | self.node(*node).upper);
                all | lower(node) & !taken
            }),
            Atom::Not(node) => !self.node(*node).upper,
            Atom::If(condition) => {
                let (then, otherwise) = (lower(&condition.then), lower(&condition.otherwise));
                lower(&condition.test) & then
                    | !self.node(condition.test).upper & otherwise
                    | then & otherwise
            }
            other => !other.domain(),
        }
    }
}

/// The text of a pattern like `^text$`.
fn only_text(pattern: &str) -> Option<Arc<str>> {
    let text = pattern.strip_prefix('^')?.strip_suffix('$')?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    text.bytes().all(plain).then(|| text.into())
}

fn find(alias: &[NodeId], mut id: NodeId) -> NodeId {
    while let Some(&next) = alias.get(id.index())
        && next != id
    {
        id = next;
    }
    id
}

/// What a schema comes to, given what its atoms come to.
enum Simplified<A> {
    Any,
    Never,
    Same(NodeId),
    Atoms(A),
}

fn simplify(atoms: Vec<Atom>, keep_tests: bool) -> Simplified<Vec<Atom>> {
    let mut is_never = false;
    let simplified = atoms.into_iter().filter_map(|atom| match simplify_atom(atom, keep_tests) {
        Simplified::Any => None,
        Simplified::Never => {
            is_never = true;
            None
        }
        Simplified::Same(node) => Some(Atom::All("allOf", SmallVec::from_slice(&[node]))),
        Simplified::Atoms(atom) => Some(atom),
    });
    let out: Vec<Atom> = simplified.collect();
    match out.as_slice() {
        _ if is_never => Simplified::Never,
        [] => Simplified::Any,
        [Atom::All(_, nodes)] if nodes.len() == 1 => Simplified::Same(nodes[0]),
        _ => Simplified::Atoms(out),
    }
}

fn simplify_atom(atom: Atom, keep_tests: bool) -> Simplified<Atom> {
    const ANY: NodeId = Graph::ANY;
    const NEVER: NodeId = Graph::NEVER;
    let atom = match atom {
        Atom::Type(types) if types == Types::ALL => return Simplified::Any,
        Atom::Type(types) if types.is_empty() => return Simplified::Never,
        Atom::Enum(values) if values.list.is_empty() => return Simplified::Never,
        Atom::All(keyword, mut nodes) => {
            nodes.retain(|node| *node != ANY);
            match nodes.as_slice() {
                [] => return Simplified::Any,
                nodes if nodes.contains(&NEVER) => return Simplified::Never,
                _ => Atom::All(keyword, nodes),
            }
        }
        Atom::Any(nodes) => {
            let alive: Vec<NodeId> = nodes.iter().copied().filter(|&node| node != NEVER).collect();
            match alive.as_slice() {
                [] => return Simplified::Never,
                alive if alive.contains(&ANY) && !keep_tests => return Simplified::Any,
                [only] => Atom::All("anyOf", SmallVec::from_slice(&[*only])),
                _ => Atom::Any(alive.into()),
            }
        }
        Atom::One(nodes) => {
            let alive: Vec<NodeId> = nodes.iter().copied().filter(|&node| node != NEVER).collect();
            match alive.as_slice() {
                [] => return Simplified::Never,
                [only] => Atom::All("oneOf", SmallVec::from_slice(&[*only])),
                _ => Atom::One(alive.into()),
            }
        }
        Atom::Not(ANY) => return Simplified::Never,
        Atom::Not(NEVER) => return Simplified::Any,
        Atom::If(condition) => match *condition {
            super::atom::Condition { test: ANY, then, .. } => return same(then),
            super::atom::Condition { test: NEVER, otherwise, .. } => return same(otherwise),
            super::atom::Condition { then: ANY, otherwise: ANY, .. } if !keep_tests => {
                return Simplified::Any;
            }
            _ => Atom::If(condition),
        },
        Atom::Properties(rule) if !keep_tests && rule.declared.is_empty() && rule.leaves_free() => {
            return Simplified::Any;
        }
        Atom::Items(mut items) if !keep_tests => {
            while items.prefix.last() == Some(&items.rest) {
                items.prefix.pop();
            }
            items.rest_written = true;
            if items.prefix.is_empty() && items.rest == ANY {
                return Simplified::Any;
            }
            Atom::Items(items)
        }
        Atom::MinLength(0) | Atom::MinItems(0) | Atom::MinProperties(0) => return Simplified::Any,
        Atom::Required(names) if names.is_empty() => return Simplified::Any,
        Atom::PropertyNames(ANY)
        | Atom::UnevaluatedItems(ANY)
        | Atom::UnevaluatedProperties(ANY)
            if !keep_tests =>
        {
            return Simplified::Any;
        }
        other => other,
    };
    Simplified::Atoms(atom)
}

fn same(node: NodeId) -> Simplified<Atom> {
    match node {
        Graph::ANY => Simplified::Any,
        Graph::NEVER => Simplified::Never,
        node => Simplified::Same(node),
    }
}
