//! JSON Schemas in requests: their text as it was sent, and how they are to be followed.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::fields::{Fields, wrong_type};
use crate::chat::constraint::Function;
use crate::grammar::json_schema::{GAP_CHARACTERS_MAX, SchemaOptions};
use crate::grammar::{GrammarSource, Whitespace};
use crate::http::error::ApiError;

/// What `json_whitespace` may be.
const WHITESPACE: [(&str, Whitespace); 4] = [
    ("spaced", Whitespace::Spaced),
    ("compact", Whitespace::Compact),
    ("usual", USUAL),
    ("bounded", Whitespace::Any { characters_max: GAP_CHARACTERS_MAX }),
];
const USUAL: Whitespace = Whitespace::Usual { characters_max: GAP_CHARACTERS_MAX };

/// How all schemas of a request are followed, as its fields say.
#[derive(Clone, Copy, Debug)]
pub(super) struct SchemaFields {
    /// Unless a schema says otherwise.
    strict: bool,
    any_order: bool,
    whitespace: Whitespace,
    /// The first of the fields that was given.
    given: Option<&'static str>,
}

impl SchemaFields {
    /// Takes `property_order` and `json_whitespace`. `strict`: whether schemas are that do not say so
    /// themselves. `continues`: the answer goes on with a text that somebody else has begun.
    pub(super) fn take(f: &mut Fields, strict: bool, continues: bool) -> Result<Self, ApiError> {
        let order = one_of(f, "property_order", &["declared", "any"])?;
        let whitespace = one_of(f, "json_whitespace", &WHITESPACE.map(|(word, _)| word))?;
        let given = match (order, whitespace) {
            (Some(_), _) => Some("property_order"),
            (None, Some(_)) => Some("json_whitespace"),
            (None, None) => None,
        };
        let whitespace = match whitespace {
            Some(index) => WHITESPACE[index].1,
            None if continues => USUAL,
            None => Whitespace::Spaced,
        };
        Ok(Self { strict, any_order: order == Some(1), whitespace, given })
    }

    /// Refuses the fields where no schema uses them. `has_functions`: arguments follow schemas.
    pub(super) fn check_used(
        &self,
        source: Option<&GrammarSource>,
        has_functions: bool,
    ) -> Result<(), ApiError> {
        use GrammarSource::{JsonSchema, StructuralTag};
        let is_used = has_functions || matches!(source, Some(JsonSchema { .. } | StructuralTag(_)));
        match self.given {
            Some(field) if !is_used => {
                let message = format!("`{field}` needs a JSON Schema that constrains the answer");
                Err(ApiError::invalid(field, message))
            }
            _ => Ok(()),
        }
    }

    /// The same without whitespace, if a field beside the schema says so.
    pub(super) fn compact_if(self, compact: Option<bool>) -> Self {
        match compact {
            Some(true) => Self { whitespace: Whitespace::Compact, ..self },
            _ => self,
        }
    }

    /// A schema of the request; `strict` as it says itself.
    pub(super) fn source(&self, schema: String, strict: Option<bool>) -> GrammarSource {
        GrammarSource::JsonSchema { schema, options: self.options(strict.unwrap_or(self.strict)) }
    }

    /// How a schema is followed that does not say whether it is strict.
    pub(super) fn default_options(&self) -> SchemaOptions {
        self.options(self.strict)
    }

    /// How a schema is followed that is strict or not.
    pub(super) fn options(&self, strict: bool) -> SchemaOptions {
        SchemaOptions {
            strict,
            any_order: self.any_order,
            whitespace: self.whitespace,
            plain_integers: true,
            ..SchemaOptions::default()
        }
    }
}

/// A field that is one of some words: which of them.
fn one_of(f: &mut Fields, name: &str, words: &[&str]) -> Result<Option<usize>, ApiError> {
    let Some(word) = f.string(name)? else { return Ok(None) };
    let known = words.iter().position(|known| *known == word);
    known.map(Some).ok_or_else(|| {
        let known: Vec<String> = words.iter().map(|known| format!("{known:?}")).collect();
        let message = format!("`{name}` must be {}, not {word:?}", known.join(" or "));
        ApiError::invalid(name, message)
    })
}

/// The text of a schema that is given as JSON or, as vLLM has it too, as a string that holds JSON.
pub(super) fn text(value: Value, param: &str) -> Result<String, ApiError> {
    match value {
        Value::String(text) => Ok(text),
        Value::Object(_) | Value::Bool(_) => Ok(value.to_string()),
        other => Err(wrong_type(param, "a JSON Schema", &other)),
    }
}

/// The text of a value of a body just as it was sent, by its path: numbers keep all their digits.
pub(super) fn sent_text<'b>(body: &'b [u8], path: &str) -> Option<&'b str> {
    let mut at: &RawValue = serde_json::from_slice(body).ok()?;
    for key in path.split('.') {
        let mut object: HashMap<String, &'b RawValue> = serde_json::from_str(at.get()).ok()?;
        at = object.remove(key)?;
    }
    Some(at.get()).filter(|text| !text.starts_with('"'))
}

/// Whether the type that a schema names, if it does, is that of an object.
pub(super) fn may_be_object(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        // What is no type at all is the compiler's to refuse.
        _ => true,
    }
}

/// The text of a function's parameters as a schema of its arguments: an object, also where the
/// schema forgets to say so.
pub(super) fn of_arguments(schema: &Value, text: &str) -> String {
    let inner = text.trim_start().strip_prefix('{').unwrap_or(text);
    match schema.get("type") {
        Some(Value::Array(types)) if types.iter().any(|it| it == "object") => {
            let mut schema = schema.clone();
            if let Some(kind) = schema.get_mut("type") {
                *kind = "object".into();
            }
            schema.to_string()
        }
        Some(_) => text.to_owned(),
        None if inner.trim_start().starts_with('}') => "{\"type\":\"object\"}".to_owned(),
        None => format!("{{\"type\":\"object\",{inner}"),
    }
}

/// A body, as far as the parameters of its tools are concerned.
#[derive(Deserialize)]
struct SentTools<'b> {
    #[serde(borrow, default)]
    tools: Option<Vec<SentTool<'b>>>,
}

#[derive(Deserialize)]
struct SentTool<'b> {
    #[serde(borrow)]
    function: SentFunction<'b>,
}

#[derive(Deserialize)]
struct SentFunction<'b> {
    name: String,
    #[serde(borrow, default)]
    parameters: Option<&'b RawValue>,
}

/// Puts the parameters of functions in as they were sent: numbers keep all their digits.
pub(super) fn take_sent_parameters(body: &[u8], functions: &mut [Function]) {
    let Ok(SentTools { tools: Some(tools) }) = serde_json::from_slice(body) else { return };
    for SentTool { function: SentFunction { name, parameters } } in tools {
        let known = functions.iter_mut().find(|function| function.name == name);
        let (Some(known), Some(parameters)) = (known, parameters) else { continue };
        let text = parameters.get();
        if let Ok(schema @ Value::Object(_)) = serde_json::from_str::<Value>(text) {
            known.schema = of_arguments(&schema, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_keeps_the_digits_it_was_sent_with() {
        let body = br#"{"a":1,"response_format":{"json_schema":{"schema":{"const":18446744073709551617}}}}"#;
        let path = "response_format.json_schema.schema";
        assert_eq!(sent_text(body, path), Some(r#"{"const":18446744073709551617}"#));
        assert_eq!(sent_text(body, "response_format.schema"), None);
    }

    #[test]
    fn arguments_are_objects_with_all_their_digits() {
        let of = |text: &str| of_arguments(&serde_json::from_str(text).unwrap(), text);
        assert_eq!(of("{}"), r#"{"type":"object"}"#);
        assert_eq!(of(r#"{ "properties": {}}"#), r#"{"type":"object", "properties": {}}"#);
        assert_eq!(of(r#"{"type": "object"}"#), r#"{"type": "object"}"#);
        assert_eq!(of(r#"{"type": ["null", "object"]}"#), r#"{"type":"object"}"#);
        let body = br#"{"tools":[{"function":{"name":"f","parameters":{"maximum":1e400}}}]}"#;
        let mut functions = [Function {
            name: "f".into(),
            schema: String::new(),
            options: SchemaOptions::default(),
            place: String::new(),
        }];
        take_sent_parameters(body, &mut functions);
        assert_eq!(functions[0].schema, "", "what cannot be read stays as it was");
        let body = br#"{"tools":[{"function":{"name":"f","parameters":
            {"maximum":18446744073709551617}}}]}"#;
        take_sent_parameters(body, &mut functions);
        assert_eq!(functions[0].schema, r#"{"type":"object","maximum":18446744073709551617}"#);
    }
}
