//! `pleach chat`: its output and errors.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

const TEMPLATE: &str = "{% if tools %}<tool_call>{% for t in tools %}{{ t.function.name }} {% endfor %}\n\
    {% endif %}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}\
    {% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% if enable_thinking == false %}\
    \n</think>\n\n{% endif %}{% endif %}";
const ANSWER: &str = "Dark.\n</think>\n\nOn.\n<tool_call>\n{\"name\": \"lamp\", \"arguments\": \
                      {\"room\": \"höll\"}}\n</tool_call>";

fn pleach(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pleach"))
        .arg("chat")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that fails early may have gone before it read its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn answer(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let mut answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    if let Some(calls) = answer["tool_calls"].as_array_mut() {
        for call in calls {
            let id = call.as_object_mut().unwrap().shift_remove("id").unwrap();
            assert!(id.as_str().unwrap().starts_with("call_"), "{id}");
        }
    }
    answer
}

/// A folder with a template and a request, and their paths.
fn files() -> (tempfile::TempDir, [String; 3]) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let paths = [path("template.jinja"), path("request.json"), path("tools.json")];
    let tools = json!([{"type": "function", "function": {"name": "lamp", "parameters":
        {"type": "object", "properties": {"room": {"type": "string"}}}}}]);
    let request = json!({"model": "m", "temperature": 0.5, "tools": tools,
        "messages": [{"role": "user", "content": "Light!"}]});
    std::fs::write(&paths[0], TEMPLATE).unwrap();
    std::fs::write(&paths[1], request.to_string()).unwrap();
    std::fs::write(&paths[2], tools.to_string()).unwrap();
    (folder, paths)
}

#[test]
fn detect_prints_a_line_a_template() {
    let (folder, [template, ..]) = files();
    let config = folder.path().join("tokenizer_config.json");
    let response = json!({"fields": {"content": {}, "tool_calls":
        {"open": "<do>", "close": "</do>", "content": "json"}}});
    let both = json!({"chat_template": TEMPLATE, "response_template": response});
    std::fs::write(&config, both.to_string()).unwrap();
    let output = pleach(&["detect", &template, config.to_str().unwrap()], "");
    let lines: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let expected = json!({"file": template, "kind": "hermes_json", "reasoning": "tags",
        "prefill": "<|im_start|>assistant\n<think>\n", "extra_stops": ["<|im_end|>"]});
    assert_eq!(lines[0], expected);
    assert_eq!(lines[1]["kind"], "response_template");
    assert_eq!(lines.len(), 2);
}

#[test]
fn render_prints_the_prompt() {
    let (_folder, [template, request, _]) = files();
    let output = pleach(&["render", "--template", &template, &request], "");
    let prompt =
        "<tool_call>lamp <|im_start|>user\nLight!<|im_end|>\n<|im_start|>assistant\n<think>\n";
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), prompt));
}

#[test]
fn parse_prints_what_an_answer_says_however_it_is_asked() {
    let (_folder, [template, request, tools]) = files();
    let expected = json!({"reasoning": "Dark.", "content": "On.", "tool_calls": [
        {"type": "function", "function": {"name": "lamp", "arguments": "{\"room\": \"höll\"}"}}]});
    for arguments in [
        vec!["--template", &template, "--request", &request],
        vec!["--template", &template, "--request", &request, "--chunk", "1"],
        vec!["--template", &template, "--tools", &tools, "--chunk", "7"],
        vec!["--format", "hermes_json", "--tools", &tools, "--prefill", "<think>"],
    ] {
        let output = pleach(&[&["parse"], &arguments[..]].concat(), ANSWER);
        assert_eq!(answer(&output), expected, "{arguments:?}");
    }
    let (start, _) = ANSWER.split_once("öll").unwrap();
    for chunk in ["1", "1000"] {
        let arguments = ["parse", "--template", &template, "--request", &request, "--partial"];
        let output = pleach(&[&arguments[..], &["--chunk", chunk]].concat(), start);
        let partial = answer(&output);
        assert_eq!(partial["tool_calls"][0]["function"]["arguments"], "{\"room\": \"h");
    }
}

#[test]
fn a_request_says_which_functions_may_be_called() {
    let (folder, [template, request, _]) = files();
    let with_choice = |choice: Value| {
        let mut body: Value =
            serde_json::from_str(&std::fs::read_to_string(&request).unwrap()).unwrap();
        body["tool_choice"] = choice;
        body["chat_template_kwargs"] = json!({"enable_thinking": false});
        let file = folder.path().join("choice.json");
        std::fs::write(&file, body.to_string()).unwrap();
        let answered = ANSWER.split_once("\n\n").unwrap().1;
        let file = file.to_str().unwrap();
        answer(&pleach(&["parse", "--template", &template, "--request", file], answered))
    };
    let none = with_choice(json!("none"));
    assert_eq!(none["tool_calls"], json!([]));
    assert!(none["content"].as_str().unwrap().ends_with("</tool_call>"), "{none}");
    let named = with_choice(json!({"type": "function", "function": {"name": "lamp"}}));
    assert_eq!((&named["content"], &named["reasoning"]), (&json!("On."), &json!("")));
    assert_eq!(named["tool_calls"].as_array().unwrap().len(), 1);
}

#[test]
fn mistakes_are_usage_errors_that_say_what_to_do() {
    let (folder, [template, request, _]) = files();
    let broken = folder.path().join("broken.jinja");
    std::fs::write(&broken, "{% if %}").unwrap();
    let broken = broken.to_str().unwrap();
    for (arguments, part) in [
        (vec!["parse", "--format", "nothing"], "known are"),
        (vec!["parse"], "--template"),
        (vec!["parse", "--format", "hermes_json", "--template", &template], "cannot be used with"),
        (vec!["parse", "--format", "hermes_json", "--chunk", "0"], "--chunk"),
        (vec!["detect", broken], "broken.jinja"),
        (vec!["detect", "no/such.jinja"], "no/such.jinja"),
        (vec!["render", "--template", &template, &template], "template.jinja"),
        (vec!["parse", "--template", &template, "--tools", "no.json"], "no.json"),
        (vec!["render", "--template", "no.jinja", &request], "no.jinja"),
    ] {
        let output = pleach(&arguments, "");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(part), "{arguments:?}: {}", text(&output.stderr));
    }
    assert!(Path::new(&request).exists());
}
