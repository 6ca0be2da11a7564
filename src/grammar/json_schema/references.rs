//! What `$ref` means: resources, anchors and pointers of a document.

use rustc_hash::FxHashMap;

use super::tree::{Tree, Value, ValueId};
use super::uri;

/// What an object or array is, by the keyword that holds it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// A schema, an array of them, or something unknown that may be referred to as one.
    Schema,
    /// Schemas by name.
    Map,
    /// Data, in which nothing is an identifier.
    Data,
}

impl Role {
    fn of_child(self, name: &str) -> Self {
        match (self, name) {
            (Self::Data, _) => Self::Data,
            (Self::Map, _) => Self::Schema,
            (Self::Schema, "enum" | "const" | "default" | "examples") => Self::Data,
            (
                Self::Schema,
                "properties" | "patternProperties" | "definitions" | "$defs" | "dependentSchemas"
                | "dependencies",
            ) => Self::Map,
            (Self::Schema, _) => Self::Schema,
        }
    }
}

/// Why a reference cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unresolved {
    /// It leads out of the document.
    Remote(String),
    /// It leads to nothing.
    Missing(String),
    /// What it means depends on the schemas that lead to it.
    Dynamic(String),
}

/// Where references of a document can lead.
#[derive(Debug, Default)]
pub(super) struct References {
    /// For each value the root of the resource it is in.
    resources: Vec<ValueId>,
    /// The absolute address of each resource.
    uris: FxHashMap<ValueId, String>,
    by_uri: FxHashMap<String, ValueId>,
    anchors: FxHashMap<(ValueId, String), ValueId>,
    /// How many resources have a `$dynamicAnchor` of the name.
    dynamic_anchors: FxHashMap<String, u32>,
    /// How many resources have a `$recursiveAnchor`.
    recursive_anchors: u32,
}

/// Whether a schema says that it is of draft 4, or of the one before.
pub(super) fn is_draft_4(tree: &Tree, root: ValueId) -> bool {
    tree.string_member(root, "$schema").is_some_and(|uri| {
        uri.contains("json-schema.org/draft-04") || uri.contains("json-schema.org/draft-03")
    })
}

impl References {
    /// Finds the identifiers of all texts of the tree.
    pub(super) fn new(tree: &Tree, roots: &[ValueId]) -> Self {
        let resources = (0..tree.len()).map(|id| ValueId(id as u32)).collect();
        let mut references = Self { resources, ..Self::default() };
        for &root in roots {
            references.scan(tree, root);
        }
        references
    }

    fn scan(&mut self, tree: &Tree, root: ValueId) {
        let id_key = if is_draft_4(tree, root) { "id" } else { "$id" };
        let mut stack = vec![(root, root, Role::Schema)];
        self.uris.insert(root, String::new());
        self.by_uri.entry(String::new()).or_insert(root);
        while let Some((id, mut resource, role)) = stack.pop() {
            match tree.get(id) {
                Value::Object(entries) => {
                    if role == Role::Schema {
                        if let Some(text) = tree.string_member(id, id_key) {
                            resource = self.identify(id, resource, text);
                        }
                        self.anchors_of(tree, id, resource);
                    }
                    for &(name, child) in tree.entries(entries) {
                        stack.push((child, resource, role.of_child(tree.text(name))));
                    }
                }
                Value::Array(items) => {
                    let items = tree.items(items).iter();
                    stack.extend(items.map(|&child| (child, resource, role)));
                }
                _ => {}
            }
            if let Some(slot) = self.resources.get_mut(id.0 as usize) {
                *slot = resource;
            }
        }
    }

    /// Notes an identifier, and returns the resource that the schema is in from here on.
    fn identify(&mut self, id: ValueId, outer: ValueId, text: &str) -> ValueId {
        let (address, fragment) = text.split_once('#').unwrap_or((text, ""));
        if address.is_empty() {
            // Up to draft 7, an identifier that is only a fragment is an anchor.
            if !fragment.is_empty() {
                self.anchors.entry((outer, fragment.to_owned())).or_insert(id);
            }
            return outer;
        }
        let base = self.uris.get(&outer).map_or("", String::as_str);
        let address = uri::resolve(base, address);
        self.by_uri.entry(address.clone()).or_insert(id);
        self.uris.insert(id, address);
        id
    }

    fn anchors_of(&mut self, tree: &Tree, id: ValueId, resource: ValueId) {
        if let Some(name) = tree.string_member(id, "$anchor") {
            self.anchors.entry((resource, name.to_owned())).or_insert(id);
        }
        if let Some(name) = tree.string_member(id, "$dynamicAnchor") {
            self.anchors.entry((resource, name.to_owned())).or_insert(id);
            *self.dynamic_anchors.entry(name.to_owned()).or_default() += 1;
        }
        let recursive = tree.member(id, "$recursiveAnchor").map(|value| tree.get(value));
        self.recursive_anchors += u32::from(matches!(recursive, Some(Value::Bool(true))));
    }

    /// The resource that a value is in, and the address that `reference` names there.
    fn resource(&self, from: ValueId, address: &str) -> Result<ValueId, Unresolved> {
        let own = self.resources.get(from.0 as usize).copied().unwrap_or(from);
        if address.is_empty() {
            return Ok(own);
        }
        let base = self.uris.get(&own).map_or("", String::as_str);
        let absolute = uri::resolve(base, address);
        self.by_uri.get(&absolute).copied().ok_or(Unresolved::Remote(absolute))
    }

    /// The schema that a `$ref` at `from` names.
    pub(super) fn resolve(
        &self,
        tree: &Tree,
        from: ValueId,
        reference: &str,
    ) -> Result<ValueId, Unresolved> {
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let resource = self.resource(from, address)?;
        let missing = || Unresolved::Missing(reference.to_owned());
        let fragment = uri::percent_decode(fragment).ok_or_else(missing)?;
        if fragment.is_empty() || fragment.starts_with('/') {
            return tree.follow(resource, &fragment).ok_or_else(missing);
        }
        self.anchors.get(&(resource, fragment)).copied().ok_or_else(missing)
    }

    /// The schema that a `$dynamicRef` names, where there is only one that it could.
    pub(super) fn resolve_dynamic(
        &self,
        tree: &Tree,
        from: ValueId,
        reference: &str,
    ) -> Result<ValueId, Unresolved> {
        let target = self.resolve(tree, from, reference)?;
        let name = reference.split_once('#').map_or("", |(_, fragment)| fragment);
        let is_dynamic = tree.string_member(target, "$dynamicAnchor") == Some(name);
        if is_dynamic && self.dynamic_anchors.get(name).is_some_and(|&count| count > 1) {
            return Err(Unresolved::Dynamic(reference.to_owned()));
        }
        Ok(target)
    }

    /// The schema that a `$recursiveRef` names, where there is only one that it could.
    pub(super) fn resolve_recursive(
        &self,
        tree: &Tree,
        from: ValueId,
        reference: &str,
    ) -> Result<ValueId, Unresolved> {
        let target = self.resolve(tree, from, reference)?;
        let anchor = tree.member(target, "$recursiveAnchor").map(|value| tree.get(value));
        if matches!(anchor, Some(Value::Bool(true))) && self.recursive_anchors > 1 {
            return Err(Unresolved::Dynamic(reference.to_owned()));
        }
        Ok(target)
    }
}
