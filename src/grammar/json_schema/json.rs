//! Exact JSON values.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxHasher;

use super::decimal::Decimal;
use super::error::SchemaError;
use super::tree::{Tree, Value, ValueId};

/// A JSON value with exact numbers. Equality is that of JSON Schema: numbers by value, objects
/// whatever the order of their keys.
#[derive(Clone, Debug)]
pub enum Json {
    /// `null`.
    Null,
    /// `false` or `true`.
    Bool(bool),
    /// A number, exact.
    Number(Decimal),
    /// A string, decoded.
    String(Arc<str>),
    /// An array.
    Array(Vec<Json>),
    /// An object in the order of the text; no key twice.
    Object(Vec<(Arc<str>, Json)>),
}

impl Json {
    /// Reads a text. Keys that come twice, lone surrogates and nesting beyond 1,024 levels are
    /// errors.
    pub fn parse(text: &str) -> Result<Self, SchemaError> {
        let mut tree = Tree::default();
        let root = tree.read(text)?;
        Ok(Self::from_tree(&tree, root))
    }

    /// A value of a tree, whose depth is bounded.
    pub(super) fn from_tree(tree: &Tree, id: ValueId) -> Self {
        match tree.get(id) {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(value),
            Value::Number(text) => {
                Self::Number(Decimal::parse(tree.text(text)).unwrap_or_else(Decimal::zero))
            }
            Value::String(text) => Self::String(tree.text(text).into()),
            Value::Array(items) => {
                Self::Array(tree.items(items).iter().map(|&id| Self::from_tree(tree, id)).collect())
            }
            Value::Object(entries) => Self::Object(
                tree.entries(entries)
                    .iter()
                    .map(|&(name, id)| (tree.text(name).into(), Self::from_tree(tree, id)))
                    .collect(),
            ),
        }
    }

    /// The string, if it is one.
    pub(super) fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The value of a key of an object.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(entries) => {
                entries.iter().find(|(name, _)| &**name == key).map(|(_, value)| value)
            }
            _ => None,
        }
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Number(a), Self::Number(b)) => a == b,
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Array(a), Self::Array(b)) => a == b,
            (Self::Object(a), Self::Object(b)) => {
                a.len() == b.len()
                    && a.iter()
                        .all(|(key, value)| other.get(key).is_some_and(|found| found == value))
            }
            _ => false,
        }
    }
}

impl Eq for Json {}

impl Hash for Json {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Null => {}
            Self::Bool(value) => value.hash(state),
            Self::Number(value) => value.hash(state),
            Self::String(value) => value.hash(state),
            Self::Array(items) => items.hash(state),
            Self::Object(entries) => {
                // A sum does not depend on the order of the keys.
                let sum = entries.iter().fold(0_u64, |sum, entry| {
                    let mut hasher = FxHasher::default();
                    entry.hash(&mut hasher);
                    sum.wrapping_add(hasher.finish())
                });
                sum.hash(state);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text).unwrap()
    }

    fn hash(value: &Json) -> u64 {
        let mut hasher = FxHasher::default();
        value.hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn equality_is_that_of_json_schema() {
        for (a, b, equal) in [
            ("1", "1.0", true),
            ("[1,2]", "[2,1]", false),
            (r#"{"a":1,"b":[{}]}"#, r#"{"b":[{}],"a":1e0}"#, true),
            (r#"{"a":1}"#, r#"{"a":1,"b":1}"#, false),
            (r#"{"a":1}"#, r#"{"b":1}"#, false),
            ("0", "false", false),
            ("null", "0", false),
            (r#""a""#, r#""\u0061""#, true),
            ("9007199254740993", "9007199254740992", false),
        ] {
            assert_eq!(json(a) == json(b), equal, "{a} {b}");
            if equal {
                assert_eq!(hash(&json(a)), hash(&json(b)), "{a} {b}");
            }
        }
    }
}
