//! Keywords as atoms: a schema is the conjunction of what its keywords demand.

use std::ops::{BitAnd, BitOr, Not};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::conj::NodeId;
use super::decimal::Decimal;
use super::format_name::Format;
use super::graph::Graph;
use super::json::Json;
use super::shape::Bound;

/// A set of JSON types, where numbers are integers or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Types(u8);

impl Types {
    pub(super) const NONE: Self = Self(0);
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(2);
    pub(super) const INTEGER: Self = Self(4);
    pub(super) const FRACTION: Self = Self(8);
    pub(super) const NUMBER: Self = Self(4 | 8);
    pub(super) const STRING: Self = Self(16);
    pub(super) const ARRAY: Self = Self(32);
    pub(super) const OBJECT: Self = Self(64);
    pub(super) const ALL: Self = Self(127);

    pub(super) fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "integer" => Self::INTEGER,
            "number" => Self::NUMBER,
            "string" => Self::STRING,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            _ => return None,
        })
    }

    pub(super) fn of(value: &Json) -> Self {
        match value {
            Json::Null => Self::NULL,
            Json::Bool(_) => Self::BOOLEAN,
            Json::Number(number) if number.is_integer() => Self::INTEGER,
            Json::Number(_) => Self::FRACTION,
            Json::String(_) => Self::STRING,
            Json::Array(_) => Self::ARRAY,
            Json::Object(_) => Self::OBJECT,
        }
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether they have a type in common.
    pub(super) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether all of `other` is in it.
    pub(super) fn covers(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitAnd for Types {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl BitOr for Types {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Not for Types {
    type Output = Self;
    fn not(self) -> Self {
        Self(!self.0 & Self::ALL.0)
    }
}

/// A property name of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct NameId(pub(super) u32);

/// The values of an `enum` or `const`, distinct.
#[derive(Clone, Debug)]
pub(super) struct Values {
    pub(super) list: Vec<Json>,
    /// Long lists are looked up by hash.
    index: Option<FxHashMap<Json, u32>>,
    pub(super) types: Types,
}

/// Lists up to this length are searched one by one.
const SCAN_VALUES_MAX: usize = 8;

impl Values {
    pub(super) fn new(values: impl IntoIterator<Item = Json>) -> Self {
        let mut list: Vec<Json> = values.into_iter().collect();
        let types = list.iter().fold(Types::NONE, |types, value| types | Types::of(value));
        let index = if list.len() <= SCAN_VALUES_MAX {
            let mut kept: Vec<Json> = Vec::with_capacity(list.len());
            for value in list {
                if !kept.contains(&value) {
                    kept.push(value);
                }
            }
            list = kept;
            None
        } else {
            let mut seen = FxHashMap::default();
            list.retain(|value| {
                let next = seen.len() as u32;
                seen.insert(value.clone(), next).is_none()
            });
            Some(seen)
        };
        Self { list, index, types }
    }

    pub(super) fn contains(&self, value: &Json) -> bool {
        match &self.index {
            Some(index) => index.contains_key(value),
            None => self.list.contains(value),
        }
    }
}

impl PartialEq for Values {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}

impl Eq for Values {}

impl std::hash::Hash for Values {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.list.hash(state);
    }
}

/// `properties`, `patternProperties` and `additionalProperties` of one schema object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Properties {
    /// In the order of the document.
    pub(super) declared: Vec<(NameId, NodeId)>,
    /// The same by name.
    pub(super) sorted: Vec<(NameId, NodeId)>,
    pub(super) patterns: Vec<(Arc<str>, NodeId)>,
    pub(super) additional: NodeId,
    /// Whether `additionalProperties` is there, so that no key is left unevaluated.
    pub(super) additional_written: bool,
}

impl Properties {
    pub(super) fn new(
        declared: Vec<(NameId, NodeId)>,
        patterns: Vec<(Arc<str>, NodeId)>,
        additional: Option<NodeId>,
    ) -> Self {
        let mut sorted = declared.clone();
        sorted.sort_unstable();
        let (additional_written, additional) =
            (additional.is_some(), additional.unwrap_or(Graph::ANY));
        Self { declared, sorted, patterns, additional, additional_written }
    }

    /// The schema that `properties` has for the name.
    pub(super) fn child(&self, name: NameId) -> Option<NodeId> {
        let at = self.sorted.binary_search_by_key(&name, |&(name, _)| name).ok()?;
        self.sorted.get(at).map(|&(_, node)| node)
    }

    pub(super) fn declares(&self, name: NameId) -> bool {
        self.child(name).is_some()
    }

    /// Whether it says nothing about keys that are not declared.
    pub(super) fn leaves_free(&self) -> bool {
        self.patterns.is_empty() && self.additional == Graph::ANY
    }
}

/// `prefixItems` and `items`, in any draft's spelling.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Items {
    pub(super) prefix: Vec<NodeId>,
    pub(super) rest: NodeId,
    /// Whether there is a keyword for the rest, so that no item is left unevaluated.
    pub(super) rest_written: bool,
}

/// `if`, `then` and `else`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Condition {
    pub(super) test: NodeId,
    pub(super) then: NodeId,
    pub(super) otherwise: NodeId,
}

/// `contains` with `minContains` and `maxContains`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Counted {
    pub(super) item: NodeId,
    pub(super) min: u32,
    pub(super) max: Option<u32>,
}

/// What one keyword, or a group of keywords that only mean something together, demands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Atom {
    Type(Types),
    Enum(Arc<Values>),
    /// `$ref` and its kin, and `allOf`.
    All(&'static str, SmallVec<[NodeId; 2]>),
    Any(Box<[NodeId]>),
    One(Box<[NodeId]>),
    Not(NodeId),
    If(Box<Condition>),
    Minimum(Box<Bound>),
    Maximum(Box<Bound>),
    MultipleOf(Box<Decimal>),
    MinLength(u32),
    MaxLength(u32),
    Pattern(Arc<str>),
    Format(Format),
    Items(Box<Items>),
    MinItems(u32),
    MaxItems(u32),
    Contains(Box<Counted>),
    Unique,
    UnevaluatedItems(NodeId),
    Properties(Arc<Properties>),
    Required(Box<[NameId]>),
    MinProperties(u32),
    MaxProperties(u32),
    PropertyNames(NodeId),
    DependentRequired(Box<[(NameId, Box<[NameId]>)]>),
    DependentSchemas(Box<[(NameId, NodeId)]>),
    UnevaluatedProperties(NodeId),
}

impl Atom {
    /// The keyword, for messages.
    pub(super) fn keyword(&self) -> &'static str {
        match self {
            Self::Type(_) => "type",
            Self::Enum(_) => "enum",
            Self::All(keyword, _) => keyword,
            Self::Any(_) => "anyOf",
            Self::One(_) => "oneOf",
            Self::Not(_) => "not",
            Self::If(_) => "if",
            Self::Minimum(_) => "minimum",
            Self::Maximum(_) => "maximum",
            Self::MultipleOf(_) => "multipleOf",
            Self::MinLength(_) => "minLength",
            Self::MaxLength(_) => "maxLength",
            Self::Pattern(_) => "pattern",
            Self::Format(_) => "format",
            Self::Items(_) => "items",
            Self::MinItems(_) => "minItems",
            Self::MaxItems(_) => "maxItems",
            Self::Contains(_) => "contains",
            Self::Unique => "uniqueItems",
            Self::UnevaluatedItems(_) => "unevaluatedItems",
            Self::Properties(rule) if !rule.patterns.is_empty() => "patternProperties",
            Self::Properties(rule) if rule.declared.is_empty() => "additionalProperties",
            Self::Properties(_) => "properties",
            Self::Required(_) => "required",
            Self::MinProperties(_) => "minProperties",
            Self::MaxProperties(_) => "maxProperties",
            Self::PropertyNames(_) => "propertyNames",
            Self::DependentRequired(_) => "dependentRequired",
            Self::DependentSchemas(_) => "dependentSchemas",
            Self::UnevaluatedProperties(_) => "unevaluatedProperties",
        }
    }

    /// The types that it can reject; values of other types satisfy it.
    pub(super) fn domain(&self) -> Types {
        match self {
            Self::Type(_)
            | Self::Enum(_)
            | Self::All(..)
            | Self::Any(_)
            | Self::One(_)
            | Self::Not(_)
            | Self::If(_) => Types::ALL,
            Self::Minimum(_) | Self::Maximum(_) | Self::MultipleOf(_) => Types::NUMBER,
            Self::MinLength(_) | Self::MaxLength(_) | Self::Pattern(_) | Self::Format(_) => {
                Types::STRING
            }
            Self::Items(_)
            | Self::MinItems(_)
            | Self::MaxItems(_)
            | Self::Contains(_)
            | Self::Unique
            | Self::UnevaluatedItems(_) => Types::ARRAY,
            Self::Properties(_)
            | Self::Required(_)
            | Self::MinProperties(_)
            | Self::MaxProperties(_)
            | Self::PropertyNames(_)
            | Self::DependentRequired(_)
            | Self::DependentSchemas(_)
            | Self::UnevaluatedProperties(_) => Types::OBJECT,
        }
    }

    /// Calls `visit` with every schema that is applied to the same value.
    pub(super) fn in_place(&self, visit: &mut dyn FnMut(NodeId)) {
        match self {
            Self::All(_, nodes) => nodes.iter().copied().for_each(visit),
            Self::Any(nodes) | Self::One(nodes) => nodes.iter().copied().for_each(visit),
            Self::Not(node) => visit(*node),
            Self::If(condition) => {
                [condition.test, condition.then, condition.otherwise].into_iter().for_each(visit);
            }
            Self::DependentSchemas(list) => list.iter().for_each(|&(_, node)| visit(node)),
            _ => {}
        }
    }

    /// Replaces every schema that it holds.
    pub(super) fn map_nodes(&mut self, map: &dyn Fn(NodeId) -> NodeId) {
        let all = |nodes: &mut [NodeId]| nodes.iter_mut().for_each(|node| *node = map(*node));
        match self {
            Self::All(_, nodes) => all(nodes),
            Self::Any(nodes) | Self::One(nodes) => all(nodes),
            Self::Not(node)
            | Self::PropertyNames(node)
            | Self::UnevaluatedItems(node)
            | Self::UnevaluatedProperties(node) => *node = map(*node),
            Self::If(condition) => {
                condition.test = map(condition.test);
                condition.then = map(condition.then);
                condition.otherwise = map(condition.otherwise);
            }
            Self::Items(items) => {
                all(&mut items.prefix);
                items.rest = map(items.rest);
            }
            Self::Contains(counted) => counted.item = map(counted.item),
            Self::Properties(rule) => {
                let rule = Arc::make_mut(rule);
                rule.declared.iter_mut().for_each(|(_, node)| *node = map(*node));
                rule.sorted.iter_mut().for_each(|(_, node)| *node = map(*node));
                rule.patterns.iter_mut().for_each(|(_, node)| *node = map(*node));
                rule.additional = map(rule.additional);
            }
            Self::DependentSchemas(list) => {
                list.iter_mut().for_each(|(_, node)| *node = map(*node));
            }
            _ => {}
        }
    }
}
