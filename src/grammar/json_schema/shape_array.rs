//! Alternatives of arrays.

use smallvec::SmallVec;

use super::atom::{Atom, Items, Types};
use super::conj::{Conj, Literal, NodeId};
use super::error::SchemaError;
use super::expand::{Choice, Disjunction, Goal, Next, Term};
use super::graph::Graph;
use super::json::Json;
use super::shape::{ArrayShape, Contains};
use super::shaper::Shaper;

type Literals = SmallVec<[Literal; 2]>;

/// What is known of an array.
#[derive(Clone, Debug, Default)]
pub(super) struct ArrayTerm {
    prefix: Vec<Literals>,
    rest: Literals,
    min: u32,
    max: Option<u32>,
    counts: Vec<(Literal, u32, Option<u32>)>,
    unique: bool,
    /// The schema that wants two items to be equal.
    not_unique: Option<NodeId>,
}

impl Term for ArrayTerm {
    const TYPES: Types = Types::ARRAY;

    fn assume(
        &mut self,
        at: (NodeId, u32),
        atom: &Atom,
        positive: bool,
        next: &mut Next,
        shaper: &mut Shaper<'_, '_>,
    ) -> Result<bool, SchemaError> {
        let keyword = atom.keyword();
        let choose = |choices: Vec<Choice>| Disjunction { node: at.0, keyword, choices };
        match (atom, positive) {
            (Atom::Items(rule), true) => self.items(rule),
            (Atom::Items(rule), false) => match not_items(rule) {
                Some(choices) => next.open.push(choose(choices)),
                None => {
                    let reason = "cannot be negated when it follows other items";
                    return shaper.give_up(at.0, keyword, reason);
                }
            },
            (Atom::MinItems(min), true) => self.min = self.min.max(*min),
            (Atom::MaxItems(max), true) => self.lower_max(*max),
            (Atom::MinItems(min), false) => match min.checked_sub(1) {
                Some(max) => self.lower_max(max),
                None => return Ok(false),
            },
            (Atom::MaxItems(max), false) => self.min = self.min.max(max.saturating_add(1)),
            (Atom::Contains(counted), true) => {
                self.count(Literal::yes(counted.item), counted.min, counted.max);
            }
            (Atom::Contains(counted), false) => {
                let item = Literal::yes(counted.item);
                let fewer = counted.min.checked_sub(1).map(|max| Goal::Count(item, 0, Some(max)));
                let more = counted.max.map(|max| Goal::Count(item, max.saturating_add(1), None));
                let choices = [fewer, more].into_iter().flatten();
                next.open.push(choose(choices.map(|goal| Choice::from_iter([goal])).collect()));
            }
            (Atom::Unique, true) => self.unique = true,
            (Atom::Unique, false) => self.not_unique = Some(at.0),
            (Atom::UnevaluatedItems(_), _) => {
                let reason = "depends on which of several schemas hold";
                return shaper.give_up(at.0, keyword, reason);
            }
            (Atom::Enum(values), _) => {
                for value in &values.list {
                    if let Json::Array(items) = value {
                        next.open.push(choose(other_than(items, shaper.graph)));
                    }
                }
            }
            _ => {}
        }
        Ok(true)
    }

    fn take(&mut self, goal: &Goal) -> bool {
        match *goal {
            Goal::MinItems(min) => self.min = self.min.max(min),
            Goal::MaxItems(max) => self.lower_max(max),
            Goal::Item(index, literal) => {
                self.lengthen(index as usize + 1);
                if let Some(item) = self.prefix.get_mut(index as usize) {
                    item.push(literal);
                }
            }
            Goal::Count(literal, min, max) => self.count(literal, min, max),
            _ => {}
        }
        true
    }

    fn is_dead(&mut self, _shaper: &mut Shaper<'_, '_>) -> Result<bool, SchemaError> {
        Ok(self.max.is_some_and(|max| max < self.min)
            || (self.not_unique.is_some() && (self.unique || self.max.is_some_and(|max| max < 2))))
    }
}

impl ArrayTerm {
    fn lower_max(&mut self, max: u32) {
        self.max = Some(self.max.map_or(max, |old| old.min(max)));
    }

    /// Makes the prefix at least so long.
    fn lengthen(&mut self, length: usize) {
        if self.prefix.len() < length {
            self.prefix.resize(length, self.rest.clone());
        }
    }

    fn items(&mut self, rule: &Items) {
        self.lengthen(rule.prefix.len());
        for (index, item) in self.prefix.iter_mut().enumerate() {
            item.push(Literal::yes(rule.prefix.get(index).copied().unwrap_or(rule.rest)));
        }
        self.rest.push(Literal::yes(rule.rest));
    }

    fn count(&mut self, literal: Literal, min: u32, max: Option<u32>) {
        // So many items must satisfy it, so there are at least as many.
        self.min = self.min.max(min);
        if max.is_some_and(|max| max < min) {
            self.max = Some(0);
        } else if literal == Literal::yes(Graph::ANY) {
            max.into_iter().for_each(|max| self.lower_max(max));
        } else if max == Some(0) {
            // None of the items: all of them fail.
            self.prefix.iter_mut().for_each(|item| item.push(literal.negated()));
            self.rest.push(literal.negated());
        } else if min > 0 || max.is_some() {
            self.counts.push((literal, min, max));
        }
    }

    /// The shape, or `None` if nothing has it.
    pub(super) fn shape(
        mut self,
        at: NodeId,
        shaper: &mut Shaper<'_, '_>,
    ) -> Result<Option<ArrayShape>, SchemaError> {
        let mut prefix: Vec<Conj> = Vec::with_capacity(self.prefix.len());
        for literals in std::mem::take(&mut self.prefix) {
            let item = shaper.graph.conj(literals);
            if !shaper.possible(&item)? {
                self.lower_max(prefix.len() as u32);
                break;
            }
            prefix.push(item);
        }
        let rest = shaper.graph.conj(std::mem::take(&mut self.rest));
        if !shaper.possible(&rest)? {
            self.lower_max(prefix.len() as u32);
        }
        let mut contains = Vec::with_capacity(self.counts.len());
        for (literal, min, max) in std::mem::take(&mut self.counts) {
            let item = shaper.graph.conj([literal]);
            if item.is_any() {
                max.into_iter().for_each(|max| self.lower_max(max));
            } else if !shaper.possible(&item)? {
                if min > 0 {
                    return Ok(None);
                }
            } else {
                contains.push(Contains { item, min, max });
            }
        }
        if self.is_dead(shaper)? {
            return Ok(None);
        }
        if let Some(node) = self.not_unique {
            shaper.give_up(node, "uniqueItems", "cannot be negated")?;
        }
        let ends = self.max.is_some_and(|max| max as usize <= prefix.len());
        if let Some(max) = self.max.filter(|_| ends) {
            prefix.truncate(max as usize);
        }
        let rest = (!ends).then_some(rest);
        while prefix.last().is_some() && prefix.last() == rest.as_ref() {
            prefix.pop();
        }
        let unique = self.unique && self.max.is_none_or(|max| max > 1);
        let (min, max) = (self.min, self.max);
        Ok(Some(ArrayShape { prefix, rest, min, max, contains, unique, at }))
    }
}

/// Some item fails. `None`: that cannot be said.
fn not_items(rule: &Items) -> Option<Vec<Choice>> {
    let no = |node: NodeId| Literal { node, positive: false };
    let mut choices: Vec<Choice> = Vec::with_capacity(rule.prefix.len() + 1);
    for (index, &node) in rule.prefix.iter().enumerate() {
        if node != Graph::ANY {
            let index = index as u32;
            choices.push([Goal::MinItems(index + 1), Goal::Item(index, no(node))].into());
        }
    }
    let length = rule.prefix.len() as u32;
    match rule.rest {
        Graph::ANY => {}
        Graph::NEVER => choices.push(Choice::from_iter([Goal::MinItems(length + 1)])),
        rest if length == 0 => choices.push(Choice::from_iter([Goal::Count(no(rest), 1, None)])),
        _ => return None,
    }
    Some(choices)
}

/// The array differs from `items`: in length, or in some item.
fn other_than(items: &[Json], graph: &Graph) -> Vec<Choice> {
    let length = items.len() as u32;
    let mut choices: Vec<Choice> = vec![Choice::from_iter([Goal::MinItems(length + 1)])];
    if let Some(max) = length.checked_sub(1) {
        choices.push(Choice::from_iter([Goal::MaxItems(max)]));
    }
    for (index, item) in (0..).zip(items) {
        if let Some(node) = graph.constant(item) {
            let other = Literal { node, positive: false };
            choices.push([Goal::MinItems(index + 1), Goal::Item(index, other)].into());
        }
    }
    choices
}
