//! Calls that must come, must not, or must follow their schemas: the real binary on the simulated
//! device, which says whatever it likes and would never call anything by itself.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::path::Path;

use serde_json::{Value, json};
use support::Daemon;

const CHAT: &str = "/v1/chat/completions";

/// A template in the way of Hermes; it shows tools unless they are to be hidden.
fn template(shows_tools: bool) -> String {
    let tools = if shows_tools {
        "{% if tools %}<tool_call>{% for t in tools %}{{ t.function.name }} {% endfor %}\
         <think></think>{% endif %}"
    } else {
        ""
    };
    format!(
        "{tools}{{% for m in messages %}}<|user|>{{{{ m.content }}}}\
         {{% for c in m.tool_calls or [] %}}<tool_call>{{{{ c.function | tojson }}}}</tool_call>\
         {{% endfor %}}<|end|>{{% endfor %}}\
         {{% if add_generation_prompt %}}<|assistant|>\
         {{% if enable_thinking %}}<think>\n{{% endif %}}{{% endif %}}"
    )
}

fn daemon(folder: &Path, format: &str, template: &str, script: Option<&str>) -> Daemon {
    let file = folder.join("template.jinja");
    std::fs::write(&file, template).unwrap();
    let mut device = "fixed_us = 0\nper_token_us = 0\nper_sequence_us = 0".to_owned();
    if let Some(script) = script {
        device.push_str(&format!("\nscript = {}", json!(script)));
    }
    let model = format!(
        "[model]\nname = \"simulated\"\nchat_format = \"{format}\"\nchat_template = {}",
        json!(file)
    );
    Daemon::simulated(&device, "", &model)
}

fn lamp() -> Value {
    json!({"type": "object", "properties": {
        "room": {"enum": ["hall", "attic"]},
        "level": {"type": "integer", "minimum": 0, "maximum": 9},
        "on": {"type": "boolean"}}, "required": ["room", "on"], "additionalProperties": false})
}

fn dim() -> Value {
    json!({"type": "object", "properties": {"by": {"type": "integer", "minimum": 1, "maximum": 99}},
        "required": ["by"], "additionalProperties": false})
}

fn tool(name: &str, parameters: Value) -> Value {
    json!({"type": "function", "function": {"name": name, "parameters": parameters}})
}

fn body(extra: &Value) -> Value {
    let mut body = json!({"messages": [{"role": "user", "content": "Light!"}],
        "tools": [tool("lamp", lamp()), tool("dim", dim())],
        "max_tokens": 300, "temperature": 8.0, "seed": 5});
    body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    body
}

/// The choice of a whole answer; the streamed one says the same.
fn ask(daemon: &Daemon, extra: &Value) -> Value {
    let mut body = body(extra);
    let whole = daemon.ask(CHAT, &body);
    body["stream"] = true.into();
    let events = daemon.stream(CHAT, &body);
    let deltas = || events.iter().filter_map(|event| event.pointer("/choices/0/delta"));
    let joined = |pointer: &str| -> String {
        deltas().filter_map(|delta| delta.pointer(pointer)?.as_str()).collect()
    };
    let choice = &whole["choices"][0];
    let message = &choice["message"];
    let said = |name: &str| message[name].as_str().unwrap_or_default().to_owned();
    assert_eq!(joined("/content"), said("content"));
    assert_eq!(joined("/reasoning_content"), said("reasoning_content"));
    let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
    let written = |name: &str| -> String {
        calls.iter().map(|call| call["function"][name].as_str().unwrap()).collect()
    };
    assert_eq!(joined("/tool_calls/0/function/name"), written("name"));
    assert_eq!(joined("/tool_calls/0/function/arguments"), written("arguments"));
    let finish = events.iter().filter_map(|event| event.pointer("/choices/0/finish_reason"));
    assert_eq!(finish.filter(|it| !it.is_null()).collect::<Vec<_>>(), [&choice["finish_reason"]]);
    choice.clone()
}

/// The names that an answer calls, each with valid arguments.
fn calls(choice: &Value) -> Vec<String> {
    let calls = choice["message"]["tool_calls"].as_array().cloned().unwrap_or_default();
    let name = |call: Value| {
        let name = call["function"]["name"].as_str().unwrap().to_owned();
        let schema = if name == "lamp" { lamp() } else { dim() };
        let arguments = call["function"]["arguments"].as_str().unwrap();
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        assert!(jsonschema::is_valid(&schema, &arguments), "{name}: {arguments}");
        name
    };
    calls.into_iter().map(name).collect()
}

#[test]
fn a_call_that_must_come_comes() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = daemon(folder.path(), "hermes_json", &template(true), None);
    for seed in 0..6 {
        let choice = ask(&daemon, &json!({"tool_choice": "required", "seed": seed}));
        assert!(!calls(&choice).is_empty(), "{choice}");
        assert_eq!(choice["message"]["content"], Value::Null, "{choice}");
        for (named, name) in [
            (json!({"type": "function", "function": {"name": "dim"}}), "dim"),
            (json!({"type": "function", "name": "lamp"}), "lamp"),
        ] {
            let one = json!({"tool_choice": named, "seed": seed, "parallel_tool_calls": false});
            let choice = ask(&daemon, &one);
            assert_eq!(calls(&choice), [name], "{choice}");
            assert_eq!(choice["finish_reason"], "tool_calls", "{choice}");
        }
    }
    daemon.all_zero();
}
