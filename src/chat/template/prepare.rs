//! From a client's messages to the form that a template takes.
//!
//! Clients send OpenAI's form; templates were written for `transformers`' own. What the template
//! cannot show is an error here: it would otherwise vanish from the prompt without a word.

use serde_json::{Map, Value, json};

use super::caps::{ArgumentsForm, EmptyContent, TemplateCaps};
use super::{TemplateError, tojson};

/// Writes the calls of one message as the text that the model itself would have written.
pub type WriteCalls<'a> = &'a dyn Fn(&[Value]) -> String;

/// Brings `messages` into the form that a template of `caps` takes.
///
/// `write_calls` is for templates that do not show past calls at all: its text joins the content.
pub(super) fn prepare(
    caps: &TemplateCaps,
    messages: &[Value],
    write_calls: Option<WriteCalls>,
) -> Result<Vec<Value>, TemplateError> {
    let mut prepared = Vec::with_capacity(messages.len());
    for (index, message) in messages.iter().enumerate() {
        let at = At { index };
        let Value::Object(message) = message else {
            return Err(at.error("", "a message must be an object"));
        };
        let mut message = message.clone();
        prepare_role(caps, at, &mut message)?;
        prepare_reasoning(caps, &mut message);
        let has_calls = prepare_calls(caps, at, &mut message, write_calls)?;
        prepare_content(caps, at, &mut message, has_calls)?;
        push_split(caps, message, &mut prepared);
    }
    Ok(prepared)
}

/// Names the message in errors.
#[derive(Clone, Copy)]
struct At {
    index: usize,
}

impl At {
    fn error(self, field: impl Into<String>, reason: impl Into<String>) -> TemplateError {
        TemplateError::Message { index: self.index, field: field.into(), reason: reason.into() }
    }
}

fn prepare_role(
    caps: &TemplateCaps,
    at: At,
    message: &mut Map<String, Value>,
) -> Result<(), TemplateError> {
    let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
    match role {
        "developer" if caps.developer_role => Ok(()),
        "developer" | "system" if !caps.system_role => Err(at.error(
            "role",
            format!("this model's chat template does not show messages of the role {role}"),
        )),
        "developer" => {
            message.insert("role".to_owned(), json!("system"));
            Ok(())
        }
        "tool" if !caps.tool_role => {
            Err(at.error("role", "this model's chat template does not show tool results"))
        }
        _ => Ok(()),
    }
}

/// Moves the thinking to the key that the template reads; clients use either of two.
fn prepare_reasoning(caps: &TemplateCaps, message: &mut Map<String, Value>) {
    let long = message.shift_remove("reasoning_content").filter(|value| !value.is_null());
    let short = message.shift_remove("reasoning").filter(|value| !value.is_null());
    if let Some(reasoning) = long.or(short) {
        let key = caps.reasoning_key.map_or("reasoning_content", |key| key.as_str());
        message.insert(key.to_owned(), reasoning);
    }
}

/// Brings the calls into the template's form; whether the message still has any.
fn prepare_calls(
    caps: &TemplateCaps,
    at: At,
    message: &mut Map<String, Value>,
    write_calls: Option<WriteCalls>,
) -> Result<bool, TemplateError> {
    let mut calls = match message.shift_remove("tool_calls") {
        None | Some(Value::Null) => return Ok(false),
        Some(Value::Array(calls)) if calls.is_empty() => return Ok(false),
        Some(Value::Array(calls)) => calls,
        Some(_) => return Err(at.error("tool_calls", "must be a list")),
    };
    if !caps.tool_calls {
        let Some(write) = write_calls else {
            let reason = "this model's chat template does not show past tool calls";
            return Err(at.error("tool_calls", reason));
        };
        append_text(at, message, &write(&calls))?;
        return Ok(false);
    }
    if calls.len() > 1 && !caps.parallel_tool_calls {
        let reason = "this model's chat template shows only one tool call of a message";
        return Err(at.error("tool_calls", reason));
    }
    for call in &mut calls {
        if let Some(arguments) = call.pointer_mut("/function/arguments") {
            prepare_arguments(caps.arguments, arguments);
        }
    }
    message.insert("tool_calls".to_owned(), Value::Array(calls));
    Ok(true)
}

/// A text that is no JSON object stays as it is: the template says what it thinks of it.
fn prepare_arguments(form: ArgumentsForm, arguments: &mut Value) {
    match (form, &*arguments) {
        (ArgumentsForm::Object, Value::Null) => *arguments = json!({}),
        (ArgumentsForm::Object, Value::String(text)) if text.trim().is_empty() => {
            *arguments = json!({});
        }
        (ArgumentsForm::Object, Value::String(text)) => {
            if let Ok(parsed @ Value::Object(_)) = serde_json::from_str(text) {
                *arguments = parsed;
            }
        }
        (ArgumentsForm::Text, Value::Null) => *arguments = json!("{}"),
        (ArgumentsForm::Text, Value::String(_)) => {}
        (ArgumentsForm::Text, value) => *arguments = json!(tojson::dumps(value)),
        (ArgumentsForm::Object, _) => {}
    }
}

/// Adds `text` after the content that is there.
fn append_text(at: At, message: &mut Map<String, Value>, text: &str) -> Result<(), TemplateError> {
    let joined = match message.get("content") {
        None | Some(Value::Null) => text.to_owned(),
        Some(Value::String(before)) if before.is_empty() => text.to_owned(),
        Some(Value::String(before)) => format!("{before}\n{text}"),
        Some(Value::Array(parts)) => format!("{}\n{text}", join_parts(at, parts)?),
        Some(_) => return Err(at.error("content", "must be a string or a list of parts")),
    };
    message.insert("content".to_owned(), Value::String(joined));
    Ok(())
}

fn prepare_content(
    caps: &TemplateCaps,
    at: At,
    message: &mut Map<String, Value>,
    has_calls: bool,
) -> Result<(), TemplateError> {
    let content = message.get("content").cloned().unwrap_or_default();
    let prepared = match content {
        Value::Null => json!(""),
        Value::Array(parts) if !caps.list_content => Value::String(join_parts(at, &parts)?),
        Value::String(_) | Value::Array(_) => content,
        _ => return Err(at.error("content", "must be a string, a list of parts or null")),
    };
    let is_empty = prepared.as_str().is_some_and(str::is_empty);
    let prepared = match (prepared, caps.empty_content) {
        (_, EmptyContent::Null) if has_calls && is_empty => Value::Null,
        (_, EmptyContent::Missing) if has_calls && is_empty => {
            message.shift_remove("content");
            return Ok(());
        }
        (Value::String(text), _) if !caps.text_content && caps.list_content => {
            json!([{"type": "text", "text": text}])
        }
        (prepared, _) => prepared,
    };
    message.insert("content".to_owned(), prepared);
    Ok(())
}

/// The texts of the parts, a line each.
fn join_parts(at: At, parts: &[Value]) -> Result<String, TemplateError> {
    let mut texts = Vec::with_capacity(parts.len());
    for (number, part) in parts.iter().enumerate() {
        let kind = part.get("type").and_then(Value::as_str).unwrap_or("none");
        let text = part.get("text").and_then(Value::as_str).filter(|_| kind == "text");
        texts.push(text.ok_or_else(|| {
            let reason = format!("this model takes text parts only, not one of type {kind}");
            at.error(format!("content[{number}]"), reason)
        })?);
    }
    Ok(texts.join("\n"))
}

/// Pushes the message, as two where the template refuses content beside thinking and calls.
fn push_split(caps: &TemplateCaps, mut message: Map<String, Value>, prepared: &mut Vec<Value>) {
    let has_text = message.get("content").is_some_and(|content| match content {
        Value::String(text) => !text.is_empty(),
        Value::Array(parts) => !parts.is_empty(),
        _ => false,
    });
    let has_reasoning = caps
        .reasoning_key
        .is_some_and(|key| message.get(key.as_str()).is_some_and(|text| text != ""));
    let has_calls = message.contains_key("tool_calls");
    if has_text && has_reasoning && has_calls && !caps.content_with_reasoning_and_calls {
        let content = message.insert("content".to_owned(), json!(""));
        prepared.push(json!({"role": message.get("role"), "content": content}));
    }
    prepared.push(Value::Object(message));
}
