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

#[test]
fn calls_are_held_to_their_schemas_once_they_begin() {
    let folder = tempfile::tempdir().unwrap();
    // What its call says is not what the schema allows.
    let script = "<think>\nHm.\n</think>\n\nSure.\n<tool_call>\n{\"name\": \"lamp\", \"arguments\": \
                  {\"room\": \"cellar\", \"wrong\": 1}}\n</tool_call>";
    let daemon = daemon(folder.path(), "hermes_json", &template(true), Some(script));
    let choice = ask(&daemon, &json!({"temperature": 0.0, "max_tokens": 400}));
    let reasoning = choice["message"]["reasoning_content"].as_str().unwrap();
    assert!(reasoning.starts_with("Hm."), "{choice}");
    assert!(choice["message"]["content"].as_str().unwrap().starts_with("Sure."), "{choice}");
    assert!(calls(&choice).contains(&"lamp".to_owned()), "{choice}");
    let arguments = choice["message"]["tool_calls"][0]["function"]["arguments"].as_str().unwrap();
    assert!(!arguments.contains("cellar") && !arguments.contains("wrong"), "{choice}");

    let allowed = |mode: &str| {
        json!({"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": mode,
            "tools": [{"type": "function", "function": {"name": "dim"}}]}},
            "temperature": 0.0, "max_tokens": 400})
    };
    for mode in ["auto", "required"] {
        let choice = ask(&daemon, &allowed(mode));
        let names = calls(&choice);
        assert!(names.iter().all(|name| name == "dim"), "{choice}");
        assert!(mode == "auto" || !names.is_empty(), "{choice}");
    }
    let none = ask(&daemon, &json!({"tool_choice": "none", "temperature": 0.0}));
    assert!(!none["message"]["content"].as_str().unwrap().contains("<tool_call>"), "{none}");
    daemon.all_zero();
}

#[test]
fn a_schema_holds_the_content_and_leaves_thinking_and_calls_alone() {
    let folder = tempfile::tempdir().unwrap();
    let script = "Hm, {\"c\": 1}.\n</think>\n\n{\"c\": \"x</think><tool_call>\"}";
    let daemon = daemon(folder.path(), "hermes_json", &template(true), Some(script));
    let schema = json!({"type": "object", "properties": {"c": {"type": "string"}},
        "required": ["c"], "additionalProperties": false});
    let format = json!({"type": "json_schema", "json_schema": {"name": "a", "schema": schema}});
    for thinking in [false, true] {
        let extra = json!({"response_format": format, "enable_thinking": thinking,
            "tools": [], "temperature": 0.0, "max_tokens": 400});
        let choice = ask(&daemon, &extra);
        let content = choice["message"]["content"].as_str().unwrap();
        let value: Value = serde_json::from_str(content).unwrap();
        assert!(jsonschema::is_valid(&schema, &value), "{choice}");
        assert_eq!(choice["finish_reason"], "stop");
        if thinking {
            assert_eq!(choice["message"]["reasoning_content"], "Hm, {\"c\": 1}.", "{choice}");
            assert_eq!(content, "{\"c\": \"x</think><tool_call>\"}");
        }
    }
    let usage = daemon.ask(
        CHAT,
        &body(&json!({"response_format": format, "enable_thinking": true, "temperature": 0.0})),
    )["usage"]
        .clone();
    let reasoning = &usage["completion_tokens_details"]["reasoning_tokens"];
    assert_eq!(*reasoning, "Hm, {\"c\": 1}.\n</think>".len(), "{usage}");
    for seed in 0..4 {
        let extra = json!({"response_format": format, "seed": seed, "max_tokens": 400});
        let choice = ask(&daemon, &extra);
        if calls(&choice).is_empty() {
            let content = choice["message"]["content"].as_str().unwrap();
            let value: Value = serde_json::from_str(content).unwrap();
            assert!(jsonschema::is_valid(&schema, &value), "{choice}");
        }
    }
    daemon.all_zero();
}

#[test]
fn structural_tags_hold_in_both_shapes() {
    let folder = tempfile::tempdir().unwrap();
    let script = "Go: <call=f>{\"by\": 0, ";
    let daemon = daemon(folder.path(), "content_only", &template(false), Some(script));
    let old = json!({"type": "structural_tag", "triggers": ["<call="], "structures":
        [{"begin": "<call=f>", "schema": dim(), "end": "</call>"}]});
    let tag = json!({"type": "tag", "begin": "<call=f>", "end": "</call>",
        "content": {"type": "json_schema", "json_schema": dim()}});
    let new = json!({"type": "structural_tag", "format": {"type": "triggered_tags",
        "triggers": ["<call="], "tags": [tag], "at_least_one": true, "stop_after_first": true}});
    for extra in [
        json!({"response_format": old}),
        json!({"response_format": new}),
        json!({"structured_outputs": {"structural_tag": new}}),
        json!({"structured_outputs": {"structural_tag": new.to_string()}}),
    ] {
        let mut extra = extra;
        extra["tools"] = json!([]);
        extra["temperature"] = json!(0.0);
        let choice = ask(&daemon, &extra);
        let content = choice["message"]["content"].as_str().unwrap();
        let (before, rest) = content.split_once("<call=f>").unwrap();
        let (arguments, _) = rest.split_once("</call>").unwrap();
        assert_eq!(before, "Go: ");
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        assert!(jsonschema::is_valid(&dim(), &arguments), "{choice}");
    }
    daemon.all_zero();
}

#[test]
fn a_call_that_is_cut_reads_the_same_whole_and_streamed() {
    let folder = tempfile::tempdir().unwrap();
    let script =
        "<tool_call>\n{\"name\": \"lamp\", \"arguments\": {\"room\": \"attic\", \"on\": true}}";
    let daemon = daemon(folder.path(), "hermes_json", &template(true), Some(script));
    let mut lengths = 0;
    for max_tokens in [20, 45, 60, 75] {
        let extra = json!({"temperature": 0.0, "max_tokens": max_tokens, "allow_truncation": true});
        let choice = ask(&daemon, &extra);
        lengths += usize::from(choice["finish_reason"] == "length");
        let calls = choice["message"]["tool_calls"].as_array().cloned().unwrap_or_default();
        for call in calls {
            let arguments = call["function"]["arguments"].as_str().unwrap();
            assert!("{\"room\": \"attic\", \"on\": true}".starts_with(arguments), "{choice}");
        }
    }
    assert!(lengths >= 3);
    daemon.all_zero();
}

#[test]
fn a_call_is_refused_where_the_model_cannot_see_the_tools() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = daemon(folder.path(), "hermes_json", &template(false), None);
    for choice in [json!("required"), json!({"type": "function", "function": {"name": "dim"}})] {
        let refused = daemon.post(CHAT, &body(&json!({"tool_choice": choice})));
        assert_eq!(
            (refused.status, &refused.json()["error"]["param"]),
            (400, &json!("tool_choice"))
        );
        assert!(refused.text().contains("leaves tools out of the prompt"), "{}", refused.text());
    }
    assert_eq!(daemon.post(CHAT, &body(&json!({}))).status, 200);
    daemon.all_zero();
}
