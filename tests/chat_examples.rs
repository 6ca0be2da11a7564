//! Every format reads its answer: whole, in two pieces cut anywhere, and letter by letter.

#![allow(clippy::unwrap_used)]

mod chat_support;

use chat_support::{Row, rows, tools};
use pleach::chat::format::{CallIds, ChatFormat};
use pleach::chat::formats;
use pleach::chat::parse::{ChatMessage, ChatStream, Delta, ParseOptions, ToolCall, parse};
use serde_json::{Value, json};

/// What a client puts together from the deltas of a stream.
fn collect(message: &mut ChatMessage, deltas: Vec<Delta>) {
    for delta in deltas {
        match delta {
            Delta::Reasoning(text) => message.reasoning.push_str(&text),
            Delta::Content(text) => message.content.push_str(&text),
            Delta::CallBegin { index, id, name } => {
                assert_eq!(index, message.tool_calls.len());
                let (arguments, complete) = (String::new(), true);
                message.tool_calls.push(ToolCall { id, name, arguments, complete });
            }
            Delta::CallArguments { index, json } => {
                message.tool_calls[index].arguments.push_str(&json);
            }
        }
    }
}

fn streamed(row: &Row, pieces: &[&str]) -> ChatMessage {
    let mut stream = ChatStream::new(&row.format(), row.options());
    let mut message = ChatMessage::default();
    for piece in pieces {
        collect(&mut message, stream.push(piece));
    }
    collect(&mut message, stream.finish());
    message
}

#[test]
fn every_format_has_a_row() {
    let rows = rows();
    for family in formats::families() {
        assert!(rows.iter().any(|row| row.name == family.name), "{}", family.name);
    }
}

#[test]
fn whole() {
    for row in rows() {
        row.check(&parse(&row.format(), &row.raw, false, &row.options()), "whole");
    }
}

#[test]
fn in_two_pieces() {
    for row in rows() {
        for (cut, _) in row.raw.char_indices() {
            let (left, right) = row.raw.split_at(cut);
            row.check(&streamed(&row, &[left, right]), &format!("cut at {cut}"));
        }
    }
}

#[test]
fn letter_by_letter() {
    for row in rows() {
        let letters: Vec<&str> = row.raw.split("").collect();
        row.check(&streamed(&row, &letters), "by letters");
    }
}

#[test]
fn without_tools_the_markup_of_calls_is_content() {
    for row in rows().into_iter().filter(|row| !row.calls.is_empty()) {
        let options = ParseOptions { tools: Default::default(), ..row.options() };
        let message = parse(&row.format(), &row.raw, false, &options);
        assert_eq!(message.tool_calls, [], "{}", row.name);
        assert_eq!(message.reasoning, row.reasoning, "{}", row.name);
        for text in [row.content, "pin", "dye", "ink ]) </x>"] {
            assert!(message.content.contains(text), "{}: {}", row.name, message.content);
        }
    }
}

#[test]
fn functions_that_are_not_on_offer_stay_content() {
    for row in rows().into_iter().filter(|row| !row.calls.is_empty()) {
        let none = tools().only(|name| name == "rest");
        let options = ParseOptions { tools: none.into(), ..row.options() };
        let message = parse(&row.format(), &row.raw, false, &options);
        assert_eq!(message.tool_calls, [], "{}", row.name);
        let one = tools().only(|name| name == "dye");
        let options = ParseOptions { tools: one.into(), ..row.options() };
        let message = parse(&row.format(), &row.raw, false, &options);
        let names: Vec<&str> = message.tool_calls.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(message.reasoning, row.reasoning, "{}", row.name);
        assert!(message.content.contains("pin"), "{}: {message:?}", row.name);
        assert!(message.content.contains("ink ])"), "{}: {message:?}", row.name);
        // Where the answer must start with the call, content before it leaves no place for one.
        let bare = ["glm4_plain", "llama4_json"].contains(&row.name);
        assert_eq!(names, if bare { &[][..] } else { &["dye"] }, "{}: {message:?}", row.name);
    }
}

#[test]
fn ids_have_the_form_of_the_format() {
    for row in rows() {
        let format: ChatFormat = (*row.format()).clone();
        let message = parse(&row.format(), &row.raw, false, &row.options());
        let ids: Vec<&str> = message.tool_calls.iter().map(|call| call.id.as_str()).collect();
        for id in &ids {
            match format.call_ids {
                CallIds::Generated => assert!(id.starts_with("call_") && id.len() == 29, "{id}"),
                CallIds::Alphanumeric(length) => assert_eq!(id.len(), length, "{id}"),
                CallIds::Header => assert!(id.starts_with("functions."), "{id}"),
            }
        }
        if let [one, other] = ids[..] {
            assert_ne!(one, other, "{}", row.name);
        }
        if row.name == "mistral_args_callid" {
            assert_eq!(ids, ["a1b2c3d4e", "f5g6h7i8j"]);
        }
        if row.name == "kimi_k2" {
            assert_eq!(ids, ["functions.pin:4", "functions.dye:5"]);
        }
    }
}

/// Rows that are not letter by letter what their format writes: they have ids of their own, other
/// quotes, spaces or headers, as models do.
const VARIED: [&str; 21] = [
    "apriel",
    "cohere2moe",
    "cohere_action",
    "cohere_md",
    "custom_deepseek_json",
    "functiongemma",
    "functionary_v3_2",
    "glm4_plain",
    "harmony",
    "harmony_llmjp",
    "kimi_k2",
    "kimi_k3",
    "lfm2_pythonic",
    "llama4_json",
    "llama4_pythonic",
    "mistral_json",
    "muse_atem",
    "olmo3_pythonic",
    "pythonic",
    "solar_open",
    "tool_calls_array",
];

/// What is written for a template that does not show calls is what the parser reads.
#[test]
fn written_calls_are_read_again() {
    for row in rows() {
        let format = row.format();
        let calls: Vec<Value> = row
            .calls
            .iter()
            .zip(["a1b2c3d4e", "f5g6h7i8j"])
            .map(|((name, arguments), id)| {
                json!({"id": id, "type": "function",
                    "function": {"name": name, "arguments": arguments.to_string()}})
            })
            .collect();
        let text = format.write_calls(&calls);
        assert_eq!(text.is_empty(), row.calls.is_empty(), "{}", row.name);
        // The header of a message goes on from where the prompt has opened it.
        let is_message = format.channels.as_ref().is_some_and(|it| !it.recipient.is_empty());
        let prefill = if is_message { row.prefill } else { "" }.to_owned();
        let options = ParseOptions { prefill, ..row.options() };
        let message = parse(&format, &text, false, &options);
        assert_eq!((message.content.as_str(), message.reasoning.as_str()), ("", ""), "{text}");
        let read: Vec<(&str, Value)> = message
            .tool_calls
            .iter()
            .map(|call| (call.name.as_str(), serde_json::from_str(&call.arguments).unwrap()))
            .collect();
        assert_eq!(read, row.calls, "{}: {text}", row.name);
        assert!(VARIED.contains(&row.name) || row.raw.contains(&text), "{}: {text}", row.name);
    }
}
