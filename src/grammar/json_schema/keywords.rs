//! From the JSON of a schema to its atoms.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::grammar::Fuel;

use super::atom::{Atom, Condition, Types, Values};
use super::conj::NodeId;
use super::decimal::Decimal;
use super::error::SchemaError;
use super::format_name::Format;
use super::graph::Graph;
use super::json::Json;
use super::references::{References, Unresolved, is_draft_4};
use super::shape::Bound;
use super::tree::{Slice, Tree, Value, ValueId};

/// Builds the graph of everything that the root reaches; what nothing refers to is not looked at.
pub(super) struct Compiler {
    pub(super) graph: Graph,
    /// The node of each value that is a schema.
    nodes: Vec<Option<NodeId>>,
    queue: Vec<(ValueId, NodeId)>,
    root: ValueId,
    references: Option<References>,
}

/// Reads a document into a graph.
pub(super) fn compile(text: &str, fuel: &mut Fuel<'_>) -> Result<Graph, SchemaError> {
    let mut tree = Tree::default();
    let root = tree.read(text)?;
    fuel.spend(tree.len() as u32)?;
    let nodes = vec![None; tree.len()];
    let mut graph = Graph::new(tree);
    graph.plain_integers = is_draft_4(&graph.tree, root);
    let mut compiler = Compiler { graph, nodes, queue: Vec::new(), root, references: None };
    let root = compiler.schema(root)?;
    compiler.graph.root = root;
    let mut next = 0;
    while let Some(&(value, node)) = compiler.queue.get(next) {
        next += 1;
        let atoms = SchemaObject { compiler: &mut compiler, value }.atoms(fuel)?;
        compiler.graph.set_atoms(node, atoms);
    }
    compiler.graph.finish(fuel)?;
    Ok(compiler.graph)
}

impl Compiler {
    /// The node of a value that is to be a schema.
    fn schema(&mut self, value: ValueId) -> Result<NodeId, SchemaError> {
        if let Some(Some(node)) = self.nodes.get(value.0 as usize) {
            return Ok(*node);
        }
        let node = match self.graph.tree.get(value) {
            Value::Bool(true) => Graph::ANY,
            Value::Bool(false) => Graph::NEVER,
            Value::Object(entries) if self.graph.tree.entries(entries).is_empty() => Graph::ANY,
            Value::Object(_) => {
                let node = self.graph.push(value);
                self.queue.push((value, node));
                node
            }
            _ => {
                return Err(SchemaError::Invalid {
                    pointer: self.graph.tree.pointer(value),
                    keyword: String::new(),
                    reason: "must be a schema: an object, true or false".to_owned(),
                });
            }
        };
        if let Some(slot) = self.nodes.get_mut(value.0 as usize) {
            *slot = Some(node);
        }
        Ok(node)
    }

    fn references(&mut self) -> &References {
        let (tree, root) = (&self.graph.tree, self.root);
        self.references.get_or_insert_with(|| References::new(tree, &[root]))
    }
}

/// A schema that is being read.
pub(super) struct SchemaObject<'a> {
    pub(super) compiler: &'a mut Compiler,
    pub(super) value: ValueId,
}

impl SchemaObject<'_> {
    fn atoms(&mut self, fuel: &mut Fuel<'_>) -> Result<Vec<Atom>, SchemaError> {
        let Value::Object(entries) = self.tree().get(self.value) else { return Ok(Vec::new()) };
        let count = self.tree().entries(entries).len();
        fuel.spend(count as u32)?;
        let mut atoms = Vec::with_capacity(count);
        for index in 0..count {
            let Some(&(name, value)) = self.tree().entries(entries).get(index) else { break };
            // The name is compared where it is; only what an atom keeps is copied.
            let keyword = Keyword::by_name(self.tree().text(name));
            if let Some(keyword) = keyword {
                self.atom(keyword, value, &mut atoms)?;
            }
        }
        Ok(atoms)
    }

    fn atom(
        &mut self,
        keyword: Keyword,
        value: ValueId,
        atoms: &mut Vec<Atom>,
    ) -> Result<(), SchemaError> {
        let name = keyword.name();
        let atom = match keyword {
            Keyword::Type => Atom::Type(self.types(value)?),
            Keyword::Enum => {
                let items = self.array(name, value)?;
                Atom::Enum(self.values(items))
            }
            Keyword::Const => {
                Atom::Enum(Arc::new(Values::new([Json::from_tree(self.tree(), value)])))
            }
            Keyword::Ref | Keyword::DynamicRef | Keyword::RecursiveRef => {
                let target = self.reference(keyword, value)?;
                Atom::All(name, SmallVec::from_slice(&[target]))
            }
            Keyword::AllOf => Atom::All(name, self.schemas(name, value)?.into()),
            Keyword::AnyOf => Atom::Any(self.schemas(name, value)?.into()),
            Keyword::OneOf => Atom::One(self.schemas(name, value)?.into()),
            Keyword::Not => Atom::Not(self.compiler.schema(value)?),
            Keyword::If => self.condition(value)?,
            Keyword::Minimum => self.bound(name, "exclusiveMinimum", value)?,
            Keyword::Maximum => self.bound(name, "exclusiveMaximum", value)?,
            Keyword::ExclusiveMinimum | Keyword::ExclusiveMaximum => {
                // A boolean is draft 4's, and was taken together with the bound itself.
                if let Value::Bool(_) = self.tree().get(value) {
                    return Ok(());
                }
                let bound = Bound { value: self.number(name, value)?, exclusive: true };
                match keyword {
                    Keyword::ExclusiveMinimum => Atom::Minimum(Box::new(bound)),
                    _ => Atom::Maximum(Box::new(bound)),
                }
            }
            Keyword::MultipleOf => {
                let number = self.number(name, value)?;
                if number <= Decimal::zero() {
                    return Err(self.wrong(name, "must be greater than 0"));
                }
                Atom::MultipleOf(Box::new(number))
            }
            Keyword::MinLength => Atom::MinLength(self.least(name, value)?),
            Keyword::MinItems => Atom::MinItems(self.least(name, value)?),
            Keyword::MinProperties => Atom::MinProperties(self.least(name, value)?),
            Keyword::MaxLength => match self.greatest(name, value)? {
                Some(max) => Atom::MaxLength(max),
                None => return Ok(()),
            },
            Keyword::MaxItems => match self.greatest(name, value)? {
                Some(max) => Atom::MaxItems(max),
                None => return Ok(()),
            },
            Keyword::MaxProperties => match self.greatest(name, value)? {
                Some(max) => Atom::MaxProperties(max),
                None => return Ok(()),
            },
            Keyword::Pattern => Atom::Pattern(self.string(name, value)?.into()),
            Keyword::Format => match Format::by_name(self.string(name, value)?) {
                Some(format) => Atom::Format(format),
                None => return Ok(()),
            },
            Keyword::Unique => match self.tree().get(value) {
                Value::Bool(true) => Atom::Unique,
                Value::Bool(false) => return Ok(()),
                _ => return Err(self.wrong(name, "must be a boolean")),
            },
            Keyword::Items | Keyword::PrefixItems => match self.items(keyword)? {
                Some(atom) => atom,
                None => return Ok(()),
            },
            Keyword::Contains => self.contains(value)?,
            Keyword::UnevaluatedItems => {
                self.compiler.graph.has_unevaluated = true;
                Atom::UnevaluatedItems(self.compiler.schema(value)?)
            }
            Keyword::UnevaluatedProperties => {
                self.compiler.graph.has_unevaluated = true;
                Atom::UnevaluatedProperties(self.compiler.schema(value)?)
            }
            Keyword::Properties | Keyword::PatternProperties | Keyword::AdditionalProperties => {
                match self.properties(keyword)? {
                    Some(atom) => atom,
                    None => return Ok(()),
                }
            }
            Keyword::Required => Atom::Required(self.names(name, value)?),
            Keyword::PropertyNames => Atom::PropertyNames(self.compiler.schema(value)?),
            Keyword::Dependencies | Keyword::DependentRequired | Keyword::DependentSchemas => {
                return self.dependencies(keyword, value, atoms);
            }
        };
        atoms.push(atom);
        Ok(())
    }

    fn types(&self, value: ValueId) -> Result<Types, SchemaError> {
        let tree = self.tree();
        let one = |value: ValueId| match tree.get(value) {
            Value::String(name) => Types::by_name(tree.text(name)).ok_or_else(|| {
                self.wrong("type", &format!("names no type: {:?}", tree.text(name)))
            }),
            _ => Err(self.wrong("type", "must be a string or an array of strings")),
        };
        let mut types = match tree.get(value) {
            Value::Array(items) => {
                let mut types = Types::NONE;
                for &item in tree.items(items) {
                    types = types | one(item)?;
                }
                types
            }
            _ => one(value)?,
        };
        match tree.member(self.value, "nullable").map(|value| tree.get(value)) {
            Some(Value::Bool(true)) => types = types | Types::NULL,
            Some(Value::Bool(false)) | None => {}
            Some(_) => return Err(self.wrong("nullable", "must be a boolean")),
        }
        Ok(types)
    }

    fn values(&self, items: Slice) -> Arc<Values> {
        let tree = self.tree();
        Arc::new(Values::new(tree.items(items).iter().map(|&item| Json::from_tree(tree, item))))
    }

    fn condition(&mut self, test: ValueId) -> Result<Atom, SchemaError> {
        let then = self.optional_schema("then")?;
        let otherwise = self.optional_schema("else")?;
        let test = self.compiler.schema(test)?;
        Ok(Atom::If(Box::new(Condition { test, then, otherwise })))
    }

    fn bound(&self, name: &str, exclusive: &str, value: ValueId) -> Result<Atom, SchemaError> {
        let flag = self.tree().member(self.value, exclusive).map(|value| self.tree().get(value));
        let exclusive = matches!(flag, Some(Value::Bool(true)));
        let bound = Box::new(Bound { value: self.number(name, value)?, exclusive });
        Ok(if name == "minimum" { Atom::Minimum(bound) } else { Atom::Maximum(bound) })
    }

    fn reference(&mut self, keyword: Keyword, value: ValueId) -> Result<NodeId, SchemaError> {
        let name = keyword.name();
        let reference = self.string(name, value)?.to_owned();
        let from = self.value;
        self.compiler.references();
        let tree = &self.compiler.graph.tree;
        let resolved = match (&self.compiler.references, keyword) {
            (None, _) => Err(Unresolved::Missing(reference)),
            (Some(references), Keyword::DynamicRef) => {
                references.resolve_dynamic(tree, from, &reference)
            }
            (Some(references), Keyword::RecursiveRef) => {
                references.resolve_recursive(tree, from, &reference)
            }
            (Some(references), _) => references.resolve(tree, from, &reference),
        };
        match resolved {
            Ok(target) => self.compiler.schema(target),
            Err(Unresolved::Missing(reference)) => {
                Err(self.wrong(name, &format!("leads to nothing: {reference:?}")))
            }
            Err(Unresolved::Remote(address)) => Err(SchemaError::Inexact {
                pointer: self.tree().pointer(from),
                keyword: name.to_owned(),
                reason: format!("leads out of the document, to {address:?}"),
            }),
            Err(Unresolved::Dynamic(reference)) => Err(SchemaError::Inexact {
                pointer: self.tree().pointer(from),
                keyword: name.to_owned(),
                reason: format!("means different schemas on different ways: {reference:?}"),
            }),
        }
    }

    pub(super) fn schemas(
        &mut self,
        name: &str,
        value: ValueId,
    ) -> Result<Vec<NodeId>, SchemaError> {
        let items = self.array(name, value)?;
        let items = self.tree().items(items).to_vec();
        if items.is_empty() {
            return Err(self.wrong(name, "must not be empty"));
        }
        items.into_iter().map(|item| self.compiler.schema(item)).collect()
    }

    /// The schema of another keyword of this schema, or what everything satisfies.
    pub(super) fn optional_schema(&mut self, name: &str) -> Result<NodeId, SchemaError> {
        match self.tree().member(self.value, name) {
            Some(value) => self.compiler.schema(value),
            None => Ok(Graph::ANY),
        }
    }

    pub(super) fn schema(&mut self, value: ValueId) -> Result<NodeId, SchemaError> {
        self.compiler.schema(value)
    }

    pub(super) fn tree(&self) -> &Tree {
        &self.compiler.graph.tree
    }

    pub(super) fn array(&self, name: &str, value: ValueId) -> Result<Slice, SchemaError> {
        match self.tree().get(value) {
            Value::Array(items) => Ok(items),
            _ => Err(self.wrong(name, "must be an array")),
        }
    }

    pub(super) fn object(&self, name: &str, value: ValueId) -> Result<Slice, SchemaError> {
        match self.tree().get(value) {
            Value::Object(entries) => Ok(entries),
            _ => Err(self.wrong(name, "must be an object")),
        }
    }

    fn string(&self, name: &str, value: ValueId) -> Result<&str, SchemaError> {
        match self.tree().get(value) {
            Value::String(text) => Ok(self.tree().text(text)),
            _ => Err(self.wrong(name, "must be a string")),
        }
    }

    fn number(&self, name: &str, value: ValueId) -> Result<Decimal, SchemaError> {
        match self.tree().get(value) {
            Value::Number(text) => Decimal::parse(self.tree().text(text)),
            _ => None,
        }
        .ok_or_else(|| self.wrong(name, "must be a number"))
    }

    fn count(&self, name: &str, value: ValueId) -> Result<Decimal, SchemaError> {
        let number = self.number(name, value)?;
        if number.is_integer() && !number.is_negative() {
            Ok(number)
        } else {
            Err(self.wrong(name, "must be an integer of at least 0"))
        }
    }

    /// A lower bound. What no 32 bits hold, no answer reaches.
    pub(super) fn least(&self, name: &str, value: ValueId) -> Result<u32, SchemaError> {
        let count = self.count(name, value)?;
        Ok(count.to_u64().and_then(|count| u32::try_from(count).ok()).unwrap_or(u32::MAX))
    }

    /// An upper bound. What no 32 bits hold, no answer reaches: none.
    pub(super) fn greatest(&self, name: &str, value: ValueId) -> Result<Option<u32>, SchemaError> {
        Ok(self.count(name, value)?.to_u64().and_then(|count| u32::try_from(count).ok()))
    }

    /// The keyword of this schema has a value that it cannot have.
    pub(super) fn wrong(&self, keyword: &str, reason: &str) -> SchemaError {
        SchemaError::Invalid {
            pointer: self.tree().pointer(self.value),
            keyword: keyword.to_owned(),
            reason: reason.to_owned(),
        }
    }
}

macro_rules! keywords {
    ($($variant:ident $name:literal,)*) => {
        /// The keywords that demand something by themselves; others are looked up by those.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Keyword { $($variant,)* }

        impl Keyword {
            fn by_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }

            pub(super) fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

keywords! {
    Type "type",
    Enum "enum",
    Const "const",
    Ref "$ref",
    DynamicRef "$dynamicRef",
    RecursiveRef "$recursiveRef",
    AllOf "allOf",
    AnyOf "anyOf",
    OneOf "oneOf",
    Not "not",
    If "if",
    Minimum "minimum",
    Maximum "maximum",
    ExclusiveMinimum "exclusiveMinimum",
    ExclusiveMaximum "exclusiveMaximum",
    MultipleOf "multipleOf",
    MinLength "minLength",
    MaxLength "maxLength",
    Pattern "pattern",
    Format "format",
    Items "items",
    PrefixItems "prefixItems",
    MinItems "minItems",
    MaxItems "maxItems",
    Contains "contains",
    Unique "uniqueItems",
    UnevaluatedItems "unevaluatedItems",
    Properties "properties",
    PatternProperties "patternProperties",
    AdditionalProperties "additionalProperties",
    Required "required",
    MinProperties "minProperties",
    MaxProperties "maxProperties",
    PropertyNames "propertyNames",
    Dependencies "dependencies",
    DependentRequired "dependentRequired",
    DependentSchemas "dependentSchemas",
    UnevaluatedProperties "unevaluatedProperties",
}
