//! The real binary on the simulated device: how it finds the chat format, and answers that reason and
//! call tools, whole, streamed and through the official Python client.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::Daemon;

const CHAT: &str = "/v1/chat/completions";

const TEMPLATE: &str = "{% if tools %}<tool_call>{% for t in tools %}{{ t.function.name }} {% endfor %}\
    <think></think>{% endif %}{% for m in messages %}<|user|>{{ m.content }}\
    {% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}<|end|>\
    {% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}";

/// What the simulated model says to everything.
const ANSWER: &str = "<think>\nHm.\n</think>\n\nSure.\n\
    <tool_call>\n{\"name\": \"lamp\", \"arguments\": {\"on\": true, \"room\": \"\u{e9}t\u{e9}\"}}\n</tool_call>\n\
    <tool_call>\n{\"name\": \"dim\", \"arguments\": {}}\n</tool_call>";

fn daemon(folder: &Path) -> Daemon {
    let template = folder.join("template.jinja");
    std::fs::write(&template, TEMPLATE).unwrap();
    let device =
        format!("fixed_us = 0\nper_token_us = 0\nper_sequence_us = 0\nscript = {}", json!(ANSWER));
    let model = format!(
        "[model]\nname = \"simulated\"\nchat_format = \"hermes_json\"\nchat_template = {}",
        json!(template)
    );
    Daemon::simulated(&device, "", &model)
}

fn body(extra: Value) -> Value {
    let tool = |name: &str| {
        json!({"type": "function", "function": {"name": name, "parameters": {"type": "object",
            "properties": {"on": {"type": "boolean"}, "room": {"type": "string"}}}}})
    };
    let mut body = json!({"messages": [{"role": "user", "content": "Light!"}],
        "tools": [tool("lamp"), tool("dim")]});
    body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    body
}

#[test]
fn tools_are_called_whole_and_streamed() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = daemon(folder.path());
    assert!(daemon.log_text().contains("chat format: hermes_json with reasoning"));

    let whole = daemon.ask(CHAT, &body(json!({})));
    let choice = &whole["choices"][0];
    let message = &choice["message"];
    assert_eq!(choice["finish_reason"], "tool_calls", "{whole}");
    assert_eq!(
        (&message["reasoning_content"], &message["content"]),
        (&json!("Hm."), &json!("Sure."))
    );
    let arguments = |index: usize| message["tool_calls"][index]["function"]["arguments"].clone();
    assert_eq!(arguments(0), "{\"on\": true, \"room\": \"été\"}");
    assert_eq!(arguments(1), "{}");

    let events = daemon.stream(CHAT, &body(json!({"stream": true})));
    assert_eq!(events.last(), Some(&json!("[DONE]")));
    let deltas = || events.iter().filter_map(|event| event.pointer("/choices/0/delta"));
    let joined = |pointer: &str| -> String {
        deltas().filter_map(|delta| delta.pointer(pointer)?.as_str()).collect()
    };
    assert_eq!((joined("/reasoning_content"), joined("/content")), ("Hm.".into(), "Sure.".into()));
    assert_eq!(joined("/tool_calls/0/function/name"), "lampdim");
    let streamed = joined("/tool_calls/0/function/arguments");
    assert_eq!(streamed, "{\"on\": true, \"room\": \"été\"}{}");
    let finishes: Vec<_> = events
        .iter()
        .filter_map(|event| event.pointer("/choices/0/finish_reason")?.as_str())
        .collect();
    assert_eq!(finishes, ["tool_calls"]);
    daemon.all_zero();
}

#[test]
fn no_call_is_read_where_none_may_be_made_and_one_where_one_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = daemon(folder.path());
    let none = daemon.ask(CHAT, &body(json!({"tool_choice": "none"})));
    let choice = &none["choices"][0];
    assert!(choice["message"].get("tool_calls").is_none());
    let content = choice["message"]["content"].as_str().unwrap();
    assert!(!content.contains("<tool_call>"), "what opens a call does not come: {content}");

    let one = daemon.ask(CHAT, &body(json!({"parallel_tool_calls": false})));
    let choice = &one["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    assert_eq!(choice["message"]["tool_calls"].as_array().unwrap().len(), 1);

    daemon.all_zero();
}

#[test]
fn the_openai_client_puts_a_streamed_call_together() {
    let Some(python) = support::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let daemon = daemon(folder.path());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/openai_tools.py");
    let output = Command::new(python)
        .arg(script)
        .arg(format!("http://{}/v1", daemon.address))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    daemon.all_zero();
}

#[test]
fn an_unknown_chat_format_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("pleach.toml");
    let settings = "[model]\nchat_format = \"klingon\"\n[device]\nkind = \"simulated\"\n";
    std::fs::write(&config, settings).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_pleach"))
        .args(["serve", "--listen", "127.0.0.1:0", "--config"])
        .arg(&config)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains("model.chat_format") && said.contains("hermes_json"), "{said}");
}
