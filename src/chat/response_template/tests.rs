use std::sync::Arc;

use serde_json::{Value, json};

use super::format_of;
use crate::chat::parse::{ChatMessage, ParseOptions, ToolSet, parse};

fn read(template: &Value, prefill: &str, raw: &str) -> ChatMessage {
    let format = Arc::new(format_of(template).unwrap());
    let tools = json!([{"type": "function", "function": {"name": "pin", "parameters":
        {"type": "object", "properties": {"page": {"type": "string"}, "count": {"type": "integer"}}}}}]);
    let tools = ToolSet::from_request(tools.as_array().unwrap());
    let options =
        ParseOptions { tools: tools.into(), prefill: prefill.to_owned(), ..Default::default() };
    parse(&format, raw, false, &options)
}

fn check(message: &ChatMessage) {
    assert_eq!((message.reasoning.as_str(), message.content.as_str()), ("Hm.", "Yes."));
    let [call] = message.tool_calls.as_slice() else { panic!("{message:?}") };
    assert_eq!(call.name, "pin");
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
    assert_eq!(arguments, json!({"page": "7", "count": 2}));
}

#[test]
fn json_in_tags() {
    let template = json!({"start_anchor": "<|turn|>\n", "fields": {
        "thinking": {"open": "<reason>", "close_pattern": "</reason>\\s*", "content": "text"},
        "tool_calls": {"open": "<do>", "close": "</do>", "repeats": true, "content": "json",
            "transform": {"type": "function", "function": "{content}"}},
        "content": {"close_pattern": "<\\|end\\|>\\s*|$", "content": "text"}}});
    let raw = "<reason>Hm.</reason>\nYes.\n<do>{\"name\": \"pin\", \"arguments\": {\"page\": \"7\", \"count\": 2}}</do>";
    check(&read(&template, "", raw));
    assert_eq!(format_of(&template).unwrap().extra_stops, ["<|end|>"]);
}

#[test]
fn parameters_in_tags_and_thinking_that_the_prompt_opened() {
    let template = json!({"start_anchor_pattern": "x", "fields": {
        "reasoning_content": {"open_pattern": "(?=[\\s\\S]*?</reason>)", "close_pattern": "</reason>\\s*"},
        "tool_calls": {"open_pattern": "<do>\\s*<it=(?P<name>[^\\n>]+)>", "close_pattern": "</do>\\s*",
            "repeats": true, "content": "xml-inline",
            "content_args": {"tag_pattern": "<with=(?P<key>[^>\\n]+)>\\s*(?P<value>.*?)\\s*</with>"},
            "transform": {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}},
        "content": {"close": "<|end|>"}}});
    let raw =
        "Hm.</reason>Yes.<do>\n<it=pin>\n<with=page>\n7\n</with>\n<with=count>\n2\n</with>\n</do>";
    check(&read(&template, "<reason>\n", raw));
}

#[test]
fn a_dict_with_its_own_strings() {
    let template = json!({"start_anchor": "x", "fields": {
        "thinking": {"open": "<|t>hm\n", "close": "<t|>"},
        "tool_calls": {"open_pattern": "<\\|do>do:(?P<name>\\w+)", "close_pattern": "<do\\|>\\s*",
            "repeats": true, "content": "json",
            "content_args": {"string_delims": [["<|q|>", "<|q|>"]], "unquoted_keys": true},
            "transform": {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}},
        "content": {"close_pattern": "(?:<a\\|>|<\\|b>)\\s*|$"}}});
    let raw = "<|t>hm\nHm.<t|>Yes.<|do>do:pin{count:2,page:<|q|>7<|q|>}<do|>";
    check(&read(&template, "", raw));
}

#[test]
fn a_list_with_keys_of_its_own() {
    let template = json!({"start_anchor": "x", "fields": {
        "thinking": {"open": "<T>", "close": "</T>"},
        "tool_calls": {"open": "<A>", "close": "</A>", "content": "json", "transform_each": true,
            "transform": {"type": "function", "function": {"name": "{tool}", "arguments": "{with}"}}},
        "content": {"open": "<R>", "close": "</R>"}}});
    let raw = "<T>Hm.</T><R>Yes.</R><A>[\n {\"tool\": \"pin\", \"with\": {\"page\": \"7\", \"count\": 2}}\n]</A>";
    let message = read(&template, "", &raw.replace("</R>", ""));
    check(&message);
}

#[test]
fn what_cannot_be_read_is_named() {
    let calls = |more: Value| {
        let mut calls = json!({"open": "<do>", "close": "</do>", "content": "json"});
        for (key, value) in more.as_object().unwrap() {
            calls[key] = value.clone();
        }
        json!({"fields": {"tool_calls": calls}})
    };
    for (template, field) in [
        (json!({}), "fields"),
        (json!({"fields": {"mood": {"open": "x"}}}), "fields.mood"),
        (json!({"fields": {"thinking": {"open": "x"}}}), "fields.thinking.close"),
        (calls(json!({"content": "kv-lines"})), "fields.tool_calls.content"),
        (calls(json!({"open_pattern": "a.*"})), "fields.tool_calls.open_pattern"),
        (calls(json!({"transform": {"function": {"name": "x"}}})), "fields.tool_calls.transform"),
    ] {
        assert_eq!(format_of(&template).unwrap_err().field, field, "{template}");
    }
}
