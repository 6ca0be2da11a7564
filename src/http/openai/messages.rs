//! Checks a conversation's messages and gives them one form.

use serde_json::{Map, Value};

use super::fields::{Fields, wrong_type};
use super::unsupported::not_yet;
use crate::http::error::ApiError;

const ROLES: [&str; 5] = ["system", "developer", "user", "assistant", "tool"];

/// The messages in `value`: roles known, `content` a string or (for an assistant) null, text parts
/// joined by newlines, `reasoning` under its other name `reasoning_content`. Fields that are not
/// OpenAI's stay as they are: a template may read them.
pub fn check(value: Value) -> Result<Vec<Value>, ApiError> {
    let Value::Array(list) = value else {
        return Err(wrong_type("messages", "a list", &value));
    };
    if list.is_empty() {
        return Err(ApiError::invalid("messages", "`messages` must not be empty"));
    }
    list.into_iter().enumerate().map(|(i, value)| message(value, i)).collect()
}

fn message(value: Value, index: usize) -> Result<Value, ApiError> {
    let path = format!("messages[{index}]");
    let mut f = Fields::nested(value, &path)?;
    let role = role(&mut f)?;
    let mut message = Map::new();
    let content = content(&mut f, &role)?;
    for name in ["name", "tool_call_id", "refusal"] {
        if let Some(text) = f.string(name)? {
            message.insert(name.to_owned(), Value::String(text));
        }
    }
    if let Some(text) = reasoning(&mut f)? {
        message.insert("reasoning_content".into(), Value::String(text));
    }
    if let Some(calls) = f.take("tool_calls") {
        let param = f.param("tool_calls");
        message.insert("tool_calls".into(), tool_calls(calls, &param)?);
    }
    for name in ["function_call", "audio"] {
        if f.take(name).is_some() {
            return Err(not_yet(&f.param(name), ""));
        }
    }
    let mut whole = Map::new();
    whole.insert("role".into(), Value::String(role));
    whole.insert("content".into(), content);
    whole.extend(message);
    whole.extend(f.into_map().into_iter().filter(|(_, value)| !value.is_null()));
    Ok(Value::Object(whole))
}

fn role(f: &mut Fields) -> Result<String, ApiError> {
    let param = f.param("role");
    match f.require("role")? {
        Value::String(role) if ROLES.contains(&role.as_str()) => Ok(role),
        Value::String(role) => {
            let message = format!("`{param}` is `{role}`; legal roles are {}", ROLES.join(", "));
            Err(ApiError::invalid(param, message))
        }
        other => Err(wrong_type(&param, "a string", &other)),
    }
}

/// An assistant may say nothing: it called a tool, or was cut off while it reasoned.
fn content(f: &mut Fields, role: &str) -> Result<Value, ApiError> {
    let param = f.param("content");
    let value = if role == "assistant" { f.take("content") } else { Some(f.require("content")?) };
    match value {
        None => Ok(Value::Null),
        Some(Value::String(text)) => Ok(Value::String(text)),
        Some(Value::Array(parts)) => text_of_parts(parts, &param).map(Value::String),
        Some(other) => Err(wrong_type(&param, "a string or a list of parts", &other)),
    }
}

fn text_of_parts(parts: Vec<Value>, param: &str) -> Result<String, ApiError> {
    let mut texts = Vec::with_capacity(parts.len());
    for (i, part) in parts.into_iter().enumerate() {
        let mut part = Fields::nested(part, &format!("{param}[{i}]"))?;
        let kind_param = part.param("type");
        match part.string("type")?.as_deref() {
            Some("text") => {}
            Some(other) => return Err(not_yet(&kind_param, &format!(" = \"{other}\""))),
            None => {
                let message = format!("missing required field `{kind_param}`");
                return Err(ApiError::invalid(kind_param, message));
            }
        }
        let text_param = part.param("text");
        match part.require("text")? {
            Value::String(text) => texts.push(text),
            other => return Err(wrong_type(&text_param, "a string", &other)),
        }
    }
    Ok(texts.join("\n"))
}

/// Both names of the field are in use; sent together they must agree.
fn reasoning(f: &mut Fields) -> Result<Option<String>, ApiError> {
    let long = f.string("reasoning_content")?;
    let short = f.string("reasoning")?;
    if let (Some(long), Some(short)) = (&long, &short)
        && long != short
    {
        let param = f.param("reasoning");
        return Err(ApiError::invalid(
            param,
            "`reasoning` and `reasoning_content` differ; send one of them",
        ));
    }
    Ok(long.or(short))
}

/// Calls of earlier turns: arguments as a string of JSON or as an object.
fn tool_calls(value: Value, param: &str) -> Result<Value, ApiError> {
    let Value::Array(calls) = value else {
        return Err(wrong_type(param, "a list", &value));
    };
    for (i, call) in calls.iter().enumerate() {
        let mut call = Fields::nested(call.clone(), &format!("{param}[{i}]"))?;
        call.string("id")?;
        let kind_param = call.param("type");
        if let Some(kind) = call.string("type")?
            && kind != "function"
        {
            return Err(not_yet(&kind_param, &format!(" = \"{kind}\"")));
        }
        let function_param = call.param("function");
        let mut function = Fields::nested(call.require("function")?, &function_param)?;
        let name_param = function.param("name");
        match function.require("name")? {
            Value::String(_) => {}
            other => return Err(wrong_type(&name_param, "a string", &other)),
        }
        let arguments_param = function.param("arguments");
        match function.take("arguments") {
            None | Some(Value::String(_) | Value::Object(_)) => {}
            Some(other) => {
                return Err(wrong_type(&arguments_param, "a string or an object", &other));
            }
        }
    }
    Ok(Value::Array(calls))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn legal_messages_get_one_form() {
        let messages = check(json!([
            {"role": "system", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": null, "reasoning": "r", "custom": 1, "audio": null,
             "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "content": "x", "tool_call_id": "c"},
        ]))
        .unwrap();
        assert_eq!(messages[0], json!({"role": "system", "content": "a\nb"}));
        assert_eq!(messages[1]["content"], Value::Null);
        assert_eq!(messages[1]["reasoning_content"], "r");
        assert_eq!(messages[1]["custom"], 1);
        assert!(messages[1].get("reasoning").is_none() && messages[1].get("audio").is_none());
        assert_eq!(messages[2]["tool_call_id"], "c");
    }

    #[test]
    fn what_is_wrong_is_named_by_path() {
        let cases = [
            (json!("x"), "messages"),
            (json!([]), "messages"),
            (json!(["x"]), "messages[0]"),
            (json!([{"content": "x"}]), "messages[0].role"),
            (json!([{"role": "bot", "content": "x"}]), "messages[0].role"),
            (json!([{"role": 1, "content": "x"}]), "messages[0].role"),
            (json!([{"role": "user", "content": "x"}, {"role": "user"}]), "messages[1].content"),
            (json!([{"role": "user", "content": 5}]), "messages[0].content"),
            (json!([{"role": "user", "content": ["x"]}]), "messages[0].content[0]"),
            (json!([{"role": "user", "content": [{"text": "x"}]}]), "messages[0].content[0].type"),
            (
                json!([{"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "image_url"}]}]),
                "messages[0].content[1].type",
            ),
            (
                json!([{"role": "user", "content": [{"type": "text", "text": 1}]}]),
                "messages[0].content[0].text",
            ),
            (json!([{"role": "user", "content": "x", "name": 1}]), "messages[0].name"),
            (json!([{"role": "assistant", "tool_calls": 1}]), "messages[0].tool_calls"),
            (
                json!([{"role": "assistant", "tool_calls": [{}]}]),
                "messages[0].tool_calls[0].function",
            ),
            (
                json!([{"role": "assistant", "tool_calls": [{"function": {}}]}]),
                "messages[0].tool_calls[0].function.name",
            ),
            (
                json!([{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": 1}}]}]),
                "messages[0].tool_calls[0].function.arguments",
            ),
            (json!([{"role": "assistant", "function_call": {}}]), "messages[0].function_call"),
            (
                json!([{"role": "assistant", "reasoning": "a", "reasoning_content": "b"}]),
                "messages[0].reasoning",
            ),
        ];
        for (messages, param) in cases {
            let error = check(messages.clone()).unwrap_err();
            assert_eq!(error.param(), Some(param), "{messages}");
        }
    }
}
