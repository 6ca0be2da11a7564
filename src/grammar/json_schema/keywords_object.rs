//! Keywords of objects and arrays, read into atoms.

use std::sync::Arc;

use super::atom::{Atom, Counted, Items, NameId, Properties};
use super::conj::NodeId;
use super::error::SchemaError;
use super::graph::Graph;
use super::keywords::{Keyword, SchemaObject};
use super::tree::{Value, ValueId};

impl SchemaObject<'_> {
    /// Whether `keyword` is the first of its group in this schema: the group is read once, at
    /// the place of its first keyword.
    fn is_first(&self, keyword: Keyword, group: &[&str]) -> bool {
        let Value::Object(entries) = self.tree().get(self.value) else { return false };
        let mut names = self.tree().entries(entries).iter().map(|entry| self.tree().text(entry.0));
        names.find(|name| group.contains(name)) == Some(keyword.name())
    }

    /// `properties`, `patternProperties` and `additionalProperties` together.
    pub(super) fn properties(&mut self, keyword: Keyword) -> Result<Option<Atom>, SchemaError> {
        let group = ["properties", "patternProperties", "additionalProperties"];
        if !self.is_first(keyword, &group) {
            return Ok(None);
        }
        let declared = self.named_schemas("properties")?;
        let patterns = self.pattern_schemas()?;
        let additional = match self.tree().member(self.value, "additionalProperties") {
            Some(value) => Some(self.schema(value)?),
            None => None,
        };
        Ok(Some(Atom::Properties(Arc::new(Properties::new(declared, patterns, additional)))))
    }

    fn named_schemas(&mut self, keyword: &str) -> Result<Vec<(NameId, NodeId)>, SchemaError> {
        let Some(value) = self.tree().member(self.value, keyword) else { return Ok(Vec::new()) };
        let entries = self.object(keyword, value)?;
        let count = self.tree().entries(entries).len();
        let mut out = Vec::with_capacity(count);
        for index in 0..count {
            let Some(&(name, value)) = self.tree().entries(entries).get(index) else { break };
            let node = self.schema(value)?;
            out.push((self.compiler.graph.intern_span(name), node));
        }
        Ok(out)
    }

    fn pattern_schemas(&mut self) -> Result<Vec<(Arc<str>, NodeId)>, SchemaError> {
        let keyword = "patternProperties";
        let Some(value) = self.tree().member(self.value, keyword) else { return Ok(Vec::new()) };
        let entries = self.object(keyword, value)?;
        let entries = self.tree().entries(entries).to_vec();
        let mut out = Vec::with_capacity(entries.len());
        for (pattern, value) in entries {
            let node = self.schema(value)?;
            out.push((self.tree().text(pattern).into(), node));
        }
        Ok(out)
    }

    /// The names of an array of strings, each once.
    pub(super) fn names(
        &mut self,
        keyword: &str,
        value: ValueId,
    ) -> Result<Box<[NameId]>, SchemaError> {
        let items = self.array(keyword, value)?;
        let items = self.tree().items(items).to_vec();
        let mut names = Vec::with_capacity(items.len());
        for item in items {
            let Value::String(name) = self.tree().get(item) else {
                return Err(self.wrong(keyword, "must be an array of strings"));
            };
            names.push(self.compiler.graph.intern_span(name));
        }
        if names.len() > 1 {
            let mut seen = rustc_hash::FxHashSet::default();
            names.retain(|&name| seen.insert(name));
        }
        Ok(names.into())
    }

    /// `dependencies` of either kind, and the two keywords that it became.
    pub(super) fn dependencies(
        &mut self,
        keyword: Keyword,
        value: ValueId,
        atoms: &mut Vec<Atom>,
    ) -> Result<(), SchemaError> {
        let name = keyword.name();
        let entries = self.object(name, value)?;
        let entries = self.tree().entries(entries).to_vec();
        let (mut required, mut schemas) = (Vec::new(), Vec::new());
        for (key, value) in entries {
            let key = self.compiler.graph.intern_span(key);
            let is_list = matches!(self.tree().get(value), Value::Array(_));
            match keyword {
                Keyword::DependentSchemas => schemas.push((key, self.schema(value)?)),
                Keyword::Dependencies if !is_list => schemas.push((key, self.schema(value)?)),
                _ => required.push((key, self.names(name, value)?)),
            }
        }
        if !required.is_empty() {
            atoms.push(Atom::DependentRequired(required.into()));
        }
        if !schemas.is_empty() {
            atoms.push(Atom::DependentSchemas(schemas.into()));
        }
        Ok(())
    }

    /// `prefixItems`, `items` and `additionalItems` together.
    pub(super) fn items(&mut self, keyword: Keyword) -> Result<Option<Atom>, SchemaError> {
        if !self.is_first(keyword, &["items", "prefixItems"]) {
            return Ok(None);
        }
        let items = self.tree().member(self.value, "items");
        let is_list = items.is_some_and(|items| matches!(self.tree().get(items), Value::Array(_)));
        let prefix = self.tree().member(self.value, "prefixItems");
        let (prefix, rest) = match (prefix, items) {
            (Some(_), Some(_)) if is_list => {
                return Err(self.wrong("items", "must be a schema beside `prefixItems`"));
            }
            (Some(prefix), items) => (self.schemas("prefixItems", prefix)?, items),
            // An empty list is allowed where `items` is one.
            (None, Some(items)) if is_list => {
                let list = self.array("items", items)?;
                let list = self.tree().items(list).to_vec();
                let prefix: Result<_, _> = list.into_iter().map(|item| self.schema(item)).collect();
                (prefix?, self.tree().member(self.value, "additionalItems"))
            }
            (None, items) => (Vec::new(), items),
        };
        let rest_written = rest.is_some();
        let rest = match rest {
            Some(rest) => self.schema(rest)?,
            None => Graph::ANY,
        };
        Ok(Some(Atom::Items(Box::new(Items { prefix, rest, rest_written }))))
    }

    /// `contains` with its bounds.
    pub(super) fn contains(&mut self, value: ValueId) -> Result<Atom, SchemaError> {
        let min = match self.tree().member(self.value, "minContains") {
            Some(min) => self.least("minContains", min)?,
            None => 1,
        };
        let max = match self.tree().member(self.value, "maxContains") {
            Some(max) => self.greatest("maxContains", max)?,
            None => None,
        };
        let item = self.schema(value)?;
        Ok(Atom::Contains(Box::new(Counted { item, min, max })))
    }
}
