//! The functions that an answer may call.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use crate::chat::arguments::DeclaredTypes;

/// The functions that an answer may call, by name.
#[derive(Clone, Debug, Default)]
pub struct ToolSet {
    by_name: HashMap<String, Arc<Value>>,
}

impl ToolSet {
    /// The functions of a request's `tools`. What is no function with a name is left out: whoever
    /// checks the request says so.
    pub fn from_request(tools: &[Value]) -> Self {
        let mut by_name = HashMap::new();
        for tool in tools {
            let function = tool.get("function").unwrap_or(tool);
            let Some(name) = function.get("name").and_then(Value::as_str) else { continue };
            let parameters = function.get("parameters").cloned().unwrap_or_default();
            by_name.insert(name.to_owned(), Arc::new(parameters));
        }
        Self { by_name }
    }

    /// Only the functions that `keep` says yes to: one that is named, those that are allowed.
    pub fn only(&self, keep: impl Fn(&str) -> bool) -> Self {
        let kept = self.by_name.iter().filter(|(name, _)| keep(name));
        Self { by_name: kept.map(|(name, schema)| (name.clone(), Arc::clone(schema))).collect() }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Whether a function of this name may be called.
    pub fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The names, in no order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// The schema of a function's parameters.
    pub(super) fn schema(&self, function: &str) -> Option<Arc<Value>> {
        self.by_name.get(function).cloned()
    }

    /// What the function's schema says of one parameter.
    pub(super) fn types(&self, function: &str, parameter: &str) -> DeclaredTypes {
        match self.by_name.get(function) {
            Some(schema) => DeclaredTypes::of_parameter(schema, parameter),
            None => DeclaredTypes::unknown(),
        }
    }

    /// The names of a function's parameters, in the order of its schema.
    pub(super) fn parameters(&self, function: &str) -> Vec<String> {
        let properties = self.by_name.get(function).and_then(|schema| schema.get("properties"));
        properties
            .and_then(Value::as_object)
            .map(|properties| properties.keys().cloned().collect())
            .unwrap_or_default()
    }
}
