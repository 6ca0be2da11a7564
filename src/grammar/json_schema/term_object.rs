//! What is known of an object while its alternatives are made.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::grammar::regular::Dfa;

use super::atom::{Atom, NameId, Properties, Types};
use super::conj::{Conj, Literal, NodeId};
use super::error::SchemaError;
use super::expand::{Choice, Disjunction, Goal, Next, Term};
use super::graph::Graph;
use super::json::Json;
use super::presence::{self, Entries, Entry, PresenceReader};
use super::shaper::Shaper;

/// Terms with more names look them up in a map.
const SCAN_NAMES_MAX: usize = 12;
/// Keys that a pattern may stand for when it is taken apart.
const PATTERN_KEYS_MAX: usize = 64;
const DECLARED_NOWHERE: u32 = u32::MAX;

/// A property known by name.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) name: NameId,
    /// What its value satisfies, besides what the rules say of it.
    pub(super) literals: SmallVec<[Literal; 2]>,
    /// Whether it is there, as far as that is decided.
    pub(super) there: Option<bool>,
    /// Place among the declarations.
    pub(super) declared: u32,
    /// Not yet held against what is known since.
    unchecked: bool,
}

/// Some key, known or free, for which a choice was put off.
#[derive(Clone, Debug)]
pub(super) enum SomeKey {
    /// One in which the pattern of the rule is found, whose value fails the pattern's schema.
    Pattern { node: NodeId, pattern: Arc<str>, value: Literal },
    /// One that the rule leaves to `additionalProperties`, whose value fails that.
    Additional { node: NodeId, rule: Arc<Properties> },
    /// One that fails `propertyNames`.
    Name { node: NodeId, names: Literal },
}

#[derive(Clone, Debug, Default)]
pub(super) struct ObjectTerm {
    pub(super) known: Vec<Known>,
    places: FxHashMap<NameId, u32>,
    declarations: u32,
    /// Rules that say something of keys that they do not declare.
    pub(super) rules: SmallVec<[(NodeId, Arc<Properties>); 2]>,
    pub(super) names: SmallVec<[Literal; 1]>,
    pub(super) min: u32,
    pub(super) max: Option<u32>,
    /// One entry of each.
    pub(super) clauses: Vec<Arc<Entries>>,
    some: Vec<SomeKey>,
}

impl Term for ObjectTerm {
    const TYPES: Types = Types::OBJECT;

    fn assume(
        &mut self,
        at: (NodeId, u32),
        atom: &Atom,
        positive: bool,
        next: &mut Next,
        shaper: &mut Shaper<'_, '_>,
    ) -> Result<bool, SchemaError> {
        let (node, keyword) = (at.0, atom.keyword());
        let choose = |choices: Vec<Choice>| Disjunction { node, keyword, choices };
        match (atom, positive) {
            (Atom::Properties(rule), true) => self.properties(node, rule),
            (Atom::Properties(rule), false) => self.not_properties(node, rule, shaper.graph, next),
            (Atom::Required(names), true) => {
                return Ok(names.iter().all(|&name| self.decide(name, true)));
            }
            (Atom::Required(names), false) => {
                let absent = names.iter().map(|&name| Choice::from_iter([Goal::Absent(name)]));
                next.open.push(choose(absent.collect()));
            }
            (Atom::MinProperties(min), true) => self.min = self.min.max(*min),
            (Atom::MaxProperties(max), true) => self.lower_max(*max),
            (Atom::MinProperties(min), false) => match min.checked_sub(1) {
                Some(max) => self.lower_max(max),
                None => return Ok(false),
            },
            (Atom::MaxProperties(max), false) => self.min = self.min.max(max.saturating_add(1)),
            (Atom::PropertyNames(names), true) => {
                self.names.push(Literal::yes(*names));
                self.uncheck_all();
            }
            (Atom::PropertyNames(names), false) => {
                self.some.push(SomeKey::Name { node, names: Literal::yes(*names).negated() });
            }
            (Atom::DependentRequired(_) | Atom::DependentSchemas(_), _) => {
                dependencies(node, atom, positive, next);
            }
            (Atom::UnevaluatedProperties(_), _) => {
                let reason = "depends on which of several schemas hold";
                return shaper.give_up(node, keyword, reason);
            }
            (Atom::Enum(values), _) => {
                for value in &values.list {
                    if let Json::Object(entries) = value {
                        next.open.push(choose(other_than(entries, shaper.graph)));
                    }
                }
            }
            _ => {}
        }
        Ok(true)
    }

    fn size(&self) -> u32 {
        self.known.len() as u32
    }

    fn take(&mut self, goal: &Goal) -> bool {
        match *goal {
            Goal::Some(ref some) => self.some.push((**some).clone()),
            Goal::Present(name) => return self.decide(name, true),
            Goal::Absent(name) => return self.decide(name, false),
            Goal::Value(name, literal) => {
                let known = self.known(name);
                known.literals.push(literal);
                known.unchecked = true;
            }
            Goal::MinProperties(min) => self.min = self.min.max(min),
            _ => {}
        }
        true
    }

    fn absorb(
        &mut self,
        open: &Disjunction,
        shaper: &mut Shaper<'_, '_>,
    ) -> Result<bool, SchemaError> {
        let Some(entries) = PresenceReader { shaper }.disjunction(open)? else { return Ok(false) };
        let names: Vec<NameId> = entries.iter().flatten().map(|&(name, _)| name).collect();
        names.into_iter().for_each(|name| {
            self.known(name);
        });
        self.clauses.push(Arc::new(entries));
        Ok(true)
    }

    fn is_dead(&mut self, shaper: &mut Shaper<'_, '_>) -> Result<bool, SchemaError> {
        if self.max.is_some_and(|max| max < self.min) {
            return Ok(true);
        }
        for index in 0..self.known.len() {
            let Some(known) = self.known.get_mut(index) else { break };
            let check = known.unchecked && known.there == Some(true);
            if check {
                known.unchecked = false;
                let name = known.name;
                let value = self.value(name, shaper)?;
                if !self.allows_name(name, shaper)? || !shaper.possible(&value)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn last(&mut self, shaper: &mut Shaper<'_, '_>) -> Result<Option<Disjunction>, SchemaError> {
        match self.some.pop() {
            Some(some) => self.some_key(&some, shaper),
            None => Ok(None),
        }
    }
}

impl ObjectTerm {
    fn place(&mut self, name: NameId) -> Option<usize> {
        if self.known.len() <= SCAN_NAMES_MAX {
            return self.known.iter().position(|known| known.name == name);
        }
        for index in self.places.len()..self.known.len() {
            if let Some(known) = self.known.get(index) {
                self.places.insert(known.name, index as u32);
            }
        }
        self.places.get(&name).map(|&place| place as usize)
    }

    fn known(&mut self, name: NameId) -> &mut Known {
        let place = match self.place(name) {
            Some(place) => place,
            None => {
                self.known.push(new_known(name));
                self.known.len() - 1
            }
        };
        &mut self.known[place]
    }

    fn decide(&mut self, name: NameId, there: bool) -> bool {
        let known = self.known(name);
        known.unchecked = true;
        *known.there.get_or_insert(there) == there
    }

    fn lower_max(&mut self, max: u32) {
        self.max = Some(self.max.map_or(max, |old| old.min(max)));
    }

    fn uncheck_all(&mut self) {
        self.known.iter_mut().for_each(|known| known.unchecked = true);
    }

    fn properties(&mut self, node: NodeId, rule: &Arc<Properties>) {
        let first = self.known.is_empty();
        self.known.reserve(rule.declared.len());
        for &(name, child) in &rule.declared {
            let order = self.declarations;
            self.declarations += 1;
            if first {
                // The names of one object are distinct: no need to look.
                self.known.push(new_known(name));
            }
            let known = match first {
                true => self.known.last_mut(),
                false => Some(self.known(name)),
            };
            let Some(known) = known else { continue };
            known.declared = known.declared.min(order);
            if child != Graph::ANY {
                known.literals.push(Literal::yes(child));
                known.unchecked = true;
            }
        }
        if !rule.leaves_free() {
            self.rules.push((node, Arc::clone(rule)));
            self.uncheck_all();
        }
    }

    fn not_properties(&self, node: NodeId, rule: &Arc<Properties>, graph: &Graph, next: &mut Next) {
        let no = |node: NodeId| Literal { node, positive: false };
        let mut declared: Vec<(NameId, NodeId)> =
            rule.declared.iter().copied().filter(|&(_, child)| child != Graph::ANY).collect();
        // What tells alternatives apart comes first, so that most of the rest is ruled out.
        declared.sort_by_key(|&(_, child)| graph.finite(child).is_none());
        let mut held: Vec<Goal> = Vec::with_capacity(declared.len());
        let mut choices: Vec<Choice> = Vec::with_capacity(declared.len());
        for (name, child) in declared {
            let mut choice = Choice::from_iter(held.iter().cloned());
            choice.extend([Goal::Present(name), Goal::Value(name, no(child))]);
            choices.push(choice);
            held.push(Goal::Value(name, Literal::yes(child)));
        }
        let patterns = rule.patterns.iter().filter(|(_, child)| *child != Graph::ANY);
        let mut some: Vec<SomeKey> = patterns
            .map(|(pattern, child)| SomeKey::Pattern {
                node,
                pattern: Arc::clone(pattern),
                value: no(*child),
            })
            .collect();
        if rule.additional != Graph::ANY {
            some.push(SomeKey::Additional { node, rule: Arc::clone(rule) });
        }
        choices.extend(some.into_iter().map(|some| {
            held.iter().cloned().chain([Goal::Some(Box::new(some))]).collect::<Choice>()
        }));
        next.open.push(Disjunction { node, keyword: "properties", choices });
    }

    /// What the value of a property satisfies, if it is there.
    pub(super) fn value(
        &mut self,
        name: NameId,
        shaper: &mut Shaper<'_, '_>,
    ) -> Result<Conj, SchemaError> {
        let mut literals: SmallVec<[Literal; 4]> = SmallVec::new();
        if let Some(known) = self.place(name).and_then(|place| self.known.get(place)) {
            literals.extend(known.literals.iter().copied());
        }
        for (node, rule) in &self.rules {
            let mut matched = rule.declares(name);
            for (pattern, child) in &rule.patterns {
                if shaper.finds(*node, pattern, name)? {
                    matched = true;
                    literals.push(Literal::yes(*child));
                }
            }
            if !matched {
                literals.push(Literal::yes(rule.additional));
            }
        }
        Ok(shaper.graph.conj(literals))
    }

    /// Whether `propertyNames` has nothing against the name.
    pub(super) fn allows_name(
        &self,
        name: NameId,
        shaper: &mut Shaper<'_, '_>,
    ) -> Result<bool, SchemaError> {
        if self.names.is_empty() {
            return Ok(true);
        }
        let text = Json::String(Arc::clone(shaper.graph.name(name)));
        shaper.accepts(&self.names, &text)
    }

    /// Whether there can be no key but the known ones.
    pub(super) fn is_closed(&self, shaper: &mut Shaper<'_, '_>) -> Result<bool, SchemaError> {
        if self.names.contains(&Literal::yes(Graph::NEVER)) {
            return Ok(true);
        }
        let alive = |(_, child): &(_, NodeId)| *child != Graph::NEVER;
        // Keys have to match a pattern of each of these.
        let narrow = self.rules.iter().filter(|(_, rule)| rule.additional == Graph::NEVER);
        let mut keys: Option<Arc<Dfa>> = None;
        let several = narrow.clone().count() > 1;
        for (node, rule) in narrow {
            if !rule.patterns.iter().any(alive) {
                return Ok(true);
            }
            if several {
                let patterns = rule.patterns.iter().filter(|pattern| alive(pattern));
                keys = Some(shaper.keys_in(*node, patterns.map(|(pattern, _)| pattern), keys)?);
            }
        }
        Ok(keys.is_some_and(|keys| keys.is_never()))
    }

    /// The entries of all clauses and of what is decided. `None`: too many.
    pub(super) fn presence(
        &self,
        shaper: &mut Shaper<'_, '_>,
    ) -> Result<Option<Entries>, SchemaError> {
        let mut decided: Entry =
            self.known.iter().filter_map(|known| Some((known.name, known.there?))).collect();
        decided.sort_unstable();
        let mut entries = vec![decided];
        for clause in &self.clauses {
            shaper.fuel.spend((entries.len() * clause.len()) as u32)?;
            match presence::product(&entries, clause) {
                Some(joined) => entries = joined,
                None => return Ok(None),
            }
        }
        Ok(Some(entries))
    }

    /// The ways in which some key can be there.
    fn some_key(
        &mut self,
        some: &SomeKey,
        shaper: &mut Shaper<'_, '_>,
    ) -> Result<Option<Disjunction>, SchemaError> {
        let (node, keyword, value) = match some {
            SomeKey::Pattern { node, value, .. } => (*node, "patternProperties", Some(*value)),
            SomeKey::Additional { node, rule } => {
                let value = Literal { node: rule.additional, positive: false };
                (*node, "additionalProperties", Some(value))
            }
            SomeKey::Name { node, .. } => (*node, "propertyNames", None),
        };
        let mut names: Vec<NameId> = self.known.iter().map(|known| known.name).collect();
        let (finite, keys) = self.keys_of(some, shaper)?;
        names.extend(keys.into_iter().filter(|&key| self.place(key).is_none()));
        let mut choices = Vec::with_capacity(names.len());
        for name in names {
            if self.concerns(some, name, shaper)? {
                let mut choice = Choice::from_iter([Goal::Present(name)]);
                choice.extend(value.map(|literal| Goal::Value(name, literal)));
                choices.push(choice);
            }
        }
        if !finite && !self.is_closed(shaper)? {
            let reason = "cannot be negated where it is about keys without a name";
            if shaper.give_up(node, keyword, reason)? {
                return Ok(None);
            }
        }
        Ok(Some(Disjunction { node, keyword, choices }))
    }

    /// Whether the finitely many keys that it can be are known, and which of them have a name in
    /// the document.
    fn keys_of(
        &self,
        some: &SomeKey,
        shaper: &mut Shaper<'_, '_>,
    ) -> Result<(bool, Vec<NameId>), SchemaError> {
        let keys = match some {
            SomeKey::Pattern { node, pattern, .. } => {
                shaper.pattern_keys(*node, pattern, PATTERN_KEYS_MAX)?
            }
            SomeKey::Name { names, .. } => shaper.only_strings(*names)?,
            SomeKey::Additional { .. } => None,
        };
        let Some(keys) = keys else { return Ok((false, Vec::new())) };
        let named: Vec<NameId> = keys.iter().filter_map(|key| shaper.graph.name_id(key)).collect();
        Ok((named.len() == keys.len(), named))
    }

    /// Whether the key, if it is there with such a value, is the one that is looked for.
    fn concerns(
        &self,
        some: &SomeKey,
        name: NameId,
        shaper: &mut Shaper<'_, '_>,
    ) -> Result<bool, SchemaError> {
        match some {
            SomeKey::Pattern { node, pattern, .. } => shaper.finds(*node, pattern, name),
            SomeKey::Additional { node, rule } => {
                if rule.declares(name) {
                    return Ok(false);
                }
                for (pattern, _) in &rule.patterns {
                    if shaper.finds(*node, pattern, name)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            SomeKey::Name { names, .. } => {
                let text = Json::String(Arc::clone(shaper.graph.name(name)));
                shaper.accepts(&[*names], &text)
            }
        }
    }
}

fn new_known(name: NameId) -> Known {
    Known {
        name,
        literals: SmallVec::new(),
        there: None,
        declared: DECLARED_NOWHERE,
        unchecked: false,
    }
}

fn dependencies(node: NodeId, atom: &Atom, positive: bool, next: &mut Next) {
    let keyword = atom.keyword();
    let mut broken: Vec<Choice> = Vec::new();
    let mut depend = |key: NameId, demands: Vec<Goal>| {
        let mut present = Choice::from_iter([Goal::Present(key)]);
        present.extend(demands);
        let choices = vec![Choice::from_iter([Goal::Absent(key)]), present];
        next.open.push(Disjunction { node, keyword, choices });
    };
    match atom {
        Atom::DependentRequired(list) => {
            for (key, names) in list {
                if positive {
                    depend(*key, names.iter().map(|&name| Goal::Present(name)).collect());
                } else {
                    let missing =
                        names.iter().map(|&name| [Goal::Present(*key), Goal::Absent(name)]);
                    broken.extend(missing.map(Choice::from));
                }
            }
        }
        Atom::DependentSchemas(list) => {
            for &(key, schema) in list {
                let literal = Goal::Literal(Literal { node: schema, positive });
                if positive {
                    depend(key, vec![literal]);
                } else {
                    broken.push([Goal::Present(key), literal].into());
                }
            }
        }
        _ => {}
    }
    if !positive {
        next.open.push(Disjunction { node, keyword, choices: broken });
    }
}

/// The object differs from these entries: one is missing, or has another value, or there is one
/// more.
fn other_than(entries: &[(Arc<str>, Json)], graph: &Graph) -> Vec<Choice> {
    let count = entries.len() as u32;
    let mut choices = vec![Choice::from_iter([Goal::MinProperties(count + 1)])];
    for (name, value) in entries {
        let (Some(name), Some(node)) = (graph.name_id(name), graph.constant(value)) else {
            continue;
        };
        choices.push(Choice::from_iter([Goal::Absent(name)]));
        let other = Goal::Value(name, Literal { node, positive: false });
        choices.push([Goal::Present(name), other].into());
    }
    choices
}
