//! Answers that are read: reasoning and tool calls, whole and streamed.

use std::sync::Arc;

use actix_web::web::Data;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{CHAT, COMPLETIONS, chat_body, completion_body, merge};
use crate::http::HttpState;
use crate::http::testing::{
    Act, BOS, ScriptedEngine, hello, post, say, say_tokens, state, state_with, stop,
};
use crate::session::Outcome;

const LAMP: &str = "<tool_call>\n{\"name\": \"lamp\", \"arguments\": {\"on\": true}}\n</tool_call>";

fn tools() -> Value {
    let tool = |name: &str| {
        json!({"type": "function", "function": {"name": name, "parameters": {
            "type": "object", "properties": {"on": {"type": "boolean"}}}}})
    };
    json!([tool("lamp"), tool("dim")])
}

fn with_tools(extra: Value) -> Value {
    merge(chat_body(json!({"tools": tools()})), extra)
}

/// An engine that says a text in these pieces, and how it ends.
fn says(pieces: &[&str], end: Act) -> Arc<ScriptedEngine> {
    let acts: Vec<Act> = pieces.iter().map(|piece| say(piece)).chain([end]).collect();
    ScriptedEngine::new(move |_| acts.clone())
}

/// Message and finish reason of a whole answer; ids, which differ each time, are checked and left
/// out.
async fn whole(state: &Data<HttpState>, body: &Value) -> (Value, Value) {
    let reply = post(state, CHAT, body.clone()).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let mut choice = reply.json()["choices"][0].take();
    let calls = choice["message"].get_mut("tool_calls").and_then(Value::as_array_mut);
    for call in calls.into_iter().flatten() {
        check_id(&call["id"].take());
    }
    (choice["message"].take(), choice["finish_reason"].take())
}

/// The same, put together from a stream as clients do.
async fn streamed(state: &Data<HttpState>, body: &Value) -> (Value, Value) {
    let body = merge(body.clone(), json!({"stream": true}));
    let (events, done) = post(state, CHAT, body).await.events();
    assert!(done);
    let (mut message, mut calls, mut finish) = (Map::new(), Vec::<Value>::new(), Value::Null);
    for event in &events {
        let choice = &event["choices"][0];
        assert!(finish.is_null(), "the finish comes last");
        finish = choice["finish_reason"].clone();
        for (key, value) in choice["delta"].as_object().unwrap() {
            if key == "tool_calls" {
                value.as_array().unwrap().iter().for_each(|part| add_call(&mut calls, part));
                continue;
            }
            let so_far = message.entry(key).or_insert_with(|| json!(""));
            *so_far = json!(format!("{}{}", so_far.as_str().unwrap(), value.as_str().unwrap()));
        }
    }
    message.insert("refusal".into(), Value::Null);
    if !calls.is_empty() {
        if message["content"] == "" {
            message.insert("content".into(), Value::Null);
        }
        message.insert("tool_calls".into(), calls.into());
    }
    (Value::Object(message), finish)
}

fn add_call(calls: &mut Vec<Value>, part: &Value) {
    let index = part["index"].as_u64().unwrap() as usize;
    if index == calls.len() {
        check_id(&part["id"]);
        assert_eq!(part["function"]["arguments"], "");
        let mut call = part.clone();
        call.as_object_mut().unwrap().shift_remove("index");
        call["id"] = Value::Null;
        calls.push(call);
        return;
    }
    let keys: Vec<_> = part.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["index", "function"], "name and id come once");
    let arguments = calls[index]["function"]["arguments"].as_str().unwrap().to_owned();
    let more = part["function"]["arguments"].as_str().unwrap();
    calls[index]["function"]["arguments"] = json!(arguments + more);
}

fn check_id(id: &Value) {
    let id = id.as_str().unwrap();
    assert!(id.len() == 29 && id.starts_with("call_"), "{id}");
}

fn call(name: &str, arguments: &str) -> Value {
    json!({"id": null, "type": "function", "function": {"name": name, "arguments": arguments}})
}

fn message(content: Value, extra: Value) -> Value {
    merge(json!({"role": "assistant", "content": content, "refusal": null}), extra)
}

#[actix_web::test]
async fn calls_and_reasoning_have_openais_shape() {
    let engine = says(&["<think>\nHm.\n</think>\n\nSure.\n", LAMP, "\n", LAMP], stop());
    let state = state_with(&engine, "hermes_json");
    let calls = json!([call("lamp", "{\"on\": true}"), call("lamp", "{\"on\": true}")]);
    let expected =
        message(json!("Sure."), json!({"reasoning_content": "Hm.", "tool_calls": calls}));
    let body = with_tools(json!({}));
    assert_eq!(whole(&state, &body).await, (expected.clone(), json!("tool_calls")));
    assert_eq!(streamed(&state, &body).await, (expected, json!("tool_calls")));
    let ids = post(&state, CHAT, body).await.json()["choices"][0]["message"]["tool_calls"].take();
    assert_ne!(ids[0]["id"], ids[1]["id"]);
}

#[actix_web::test]
async fn a_message_that_only_calls_has_no_content() {
    let state = state_with(&says(&[LAMP], stop()), "hermes_json");
    let (message, finish) = whole(&state, &with_tools(json!({}))).await;
    assert_eq!((&message["content"], finish), (&Value::Null, json!("tool_calls")));
}

#[actix_web::test]
async fn an_answer_that_was_cut_ends_with_length() {
    let cut = "<tool_call>\n{\"name\": \"lamp\", \"arguments\": {\"on\": tr";
    for (text, arguments) in [(cut, "{\"on\": "), (LAMP, "{\"on\": true}")] {
        let state = state_with(&says(&[text], Act::End(Outcome::Length)), "hermes_json");
        let body = with_tools(json!({}));
        let (message, finish) = whole(&state, &body).await;
        assert_eq!(finish, "length");
        assert_eq!(message["tool_calls"], json!([call("lamp", arguments)]));
        assert_eq!(streamed(&state, &body).await, (message, finish));
    }
    let broken = format!("{cut}</tool_call>");
    let state = state_with(&says(&[&broken], stop()), "hermes_json");
    assert_eq!(whole(&state, &with_tools(json!({}))).await.1, "stop", "the call is not complete");
}

#[actix_web::test]
async fn markup_is_content_where_nothing_may_be_called() {
    let stranger = LAMP.replace("lamp", "boil");
    let cases = [
        (LAMP, chat_body(json!({}))),
        (LAMP, with_tools(json!({"tool_choice": "none"}))),
        (&stranger, with_tools(json!({"tool_choice": "auto"}))),
    ];
    for (text, body) in cases {
        let engine = says(&[text], stop());
        let state = state_with(&engine, "hermes_json");
        let expected = (message(json!(text), json!({})), json!("stop"));
        assert_eq!(whole(&state, &body).await, expected);
        assert_eq!(streamed(&state, &body).await, expected);
    }
}

#[actix_web::test]
async fn only_tools_that_may_be_called_reach_the_prompt() {
    let prompt_of = |engine: &Arc<ScriptedEngine>| {
        let generation = engine.last_generations().remove(0);
        assert_eq!(generation.prompt[0], BOS);
        let bytes: Vec<u8> = generation.prompt[1..].iter().map(|&id| id as u8).collect();
        (String::from_utf8(bytes).unwrap(), generation.reading)
    };
    let engine = hello();
    let state = state_with(&engine, "hermes_json");
    post(&state, CHAT, with_tools(json!({}))).await;
    let (prompt, reading) = prompt_of(&engine);
    assert_eq!(prompt, "2 tools\nuser: Hi\nassistant:");
    let options = reading.unwrap().options;
    assert_eq!(options.prefill, "assistant:");
    assert!(options.tools.contains("dim") && !options.continues);
    post(&state, CHAT, with_tools(json!({"tool_choice": "none"}))).await;
    let (prompt, reading) = prompt_of(&engine);
    assert_eq!(prompt, "user: Hi\nassistant:");
    assert!(reading.unwrap().options.tools.is_empty());
}

#[actix_web::test]
async fn what_need_not_be_read_is_not() {
    let engine = hello();
    for body in [with_tools(json!({})), chat_body(json!({}))] {
        assert_eq!(post(&state(&engine), CHAT, body).await.status, 200);
        assert!(engine.last_generations()[0].reading.is_none());
    }
    let body = chat_body(json!({"guided_choice": ["a"]}));
    for body in [chat_body(json!({})), body.clone()] {
        let reply = post(&state_with(&engine, "llama3_json"), CHAT, body).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert!(engine.last_generations()[0].reading.is_none());
    }
    let state = state_with(&engine, "hermes_json");
    post(&state, CHAT, body).await;
    let reading = engine.last_generations()[0].reading.clone();
    assert!(reading.unwrap().options.whole_content, "what is held may come after thinking");
    assert_eq!(post(&state, COMPLETIONS, completion_body(json!({}))).await.status, 200);
    assert!(engine.last_generations()[0].reading.is_none());
}

#[actix_web::test]
async fn reasoning_can_be_left_in_the_content() {
    let text = "<think>Hm.</think>Hi";
    let state = state_with(&says(&[text], stop()), "hermes_json");
    for (format, content, reasoning) in
        [("none", text, None), ("auto", "Hi", Some("Hm.")), ("deepseek", "Hi", Some("Hm."))]
    {
        let (message, _) = whole(&state, &chat_body(json!({"reasoning_format": format}))).await;
        assert_eq!(message["content"], content);
        assert_eq!(message.get("reasoning_content").and_then(Value::as_str), reasoning);
    }
}

#[actix_web::test]
async fn history_with_calls_is_taken_in_every_form() {
    let engine = hello();
    let state = state_with(&engine, "hermes_json");
    let call = |arguments: Value| json!({"id": "c1", "type": "function", "function": {"name": "lamp", "arguments": arguments}});
    let text_parts = json!([{"type": "text", "text": "lit"}]);
    for (arguments, result) in [
        (json!("{\"on\": true}"), json!("lit")),
        (json!({"on": true}), text_parts),
        (Value::Null, json!("")),
    ] {
        let body = json!({"tools": tools(), "messages": [
            {"role": "user", "content": "Light!"},
            {"role": "assistant", "content": null, "reasoning": "Hm.",
             "tool_calls": [call(arguments)]},
            {"role": "tool", "content": result, "tool_call_id": "c1"},
        ]});
        let reply = post(&state, CHAT, body).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
}

#[actix_web::test]
async fn calls_are_held_to_a_grammar_and_plain_answers_are_not() {
    let schema = json!({"type": "object", "properties": {"on": {"type": "boolean"}}});
    let format = |value: Value| json!({"response_format": value});
    let tag = json!({"type": "structural_tag", "format": {"type": "any_text"}});
    for (body, is_held) in [
        (chat_body(json!({})), false),
        (chat_body(json!({"tool_choice": "none"})), false),
        (with_tools(json!({})), true),
        (with_tools(json!({"tool_choice": "none"})), true),
        (with_tools(json!({"tool_choice": "required"})), true),
        (with_tools(json!({"tool_choice": {"type": "function", "name": "lamp"}})), true),
        (with_tools(format(json!({"type": "json_object"}))), true),
        (with_tools(format(json!({"type": "json_object", "schema": schema}))), true),
        (with_tools(format(tag)), true),
        (chat_body(json!({"guided_choice": ["a"]})), true),
    ] {
        let engine = ScriptedEngine::new(move |generation| {
            assert_eq!(generation.constraint.is_some(), is_held);
            vec![say("Hello"), stop()]
        });
        let reply = post(&state_with(&engine, "hermes_json"), CHAT, body.clone()).await;
        assert_eq!(reply.status, 200, "{body}: {}", reply.text());
    }
}

#[actix_web::test]
async fn what_cannot_be_held_is_refused_by_name() {
    let odd =
        json!({"type": "object", "properties": {"n": {"type": "array", "uniqueItems": true}}});
    let tool = |parameters: &Value, strict: Value| {
        json!({"tools": [{"type": "function", "function":
            {"name": "odd", "parameters": parameters, "strict": strict}}]})
    };
    let place = "tools[0].function.parameters";
    for (extra, param, word) in [
        (json!({"structural_tag": {"a": 1}}), "structural_tag", "not supported yet"),
        (
            json!({"response_format": {"type": "structural_tag"}}),
            "response_format.structures",
            "missing",
        ),
        (tool(&odd, json!(true)), place, "#/properties/n: `uniqueItems`"),
        (tool(&odd, Value::Null), place, "#/properties/n: `uniqueItems`"),
        (tool(&json!({"type": "string"}), Value::Null), place, ""),
        (json!({"tool_choice": "required", "max_tokens": 3}), "max_tokens", "the shortest takes"),
    ] {
        let body = with_tools(extra.clone());
        let reply = post(&state_with(&hello(), "hermes_json"), CHAT, body).await;
        assert_eq!(reply.status, 400, "{extra}: {}", reply.text());
        let error = reply.error();
        assert_eq!(error["param"], param, "{error}");
        assert!(error["message"].as_str().unwrap().contains(word), "{error}");
    }
    let lax = with_tools(tool(&odd, json!(false)));
    let reply = post(&state_with(&hello(), "hermes_json"), CHAT, lax).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let relaxed = "uniqueItems at tools[0].function.parameters#/properties/n";
    assert_eq!(reply.header("x-pleach-schema-relaxed"), relaxed);
    let required = with_tools(json!({"tool_choice": "required"}));
    let reply = post(&state_with(&hello(), "content_only"), CHAT, required).await;
    assert_eq!((reply.status, &reply.error()["param"]), (400, &json!("tool_choice")));
    let state = state(&hello());
    let reply = post(&state, COMPLETIONS, completion_body(json!({"tools": tools()}))).await;
    assert_eq!(reply.error()["param"], "tools");
}

#[actix_web::test]
async fn tokens_come_with_the_first_field_that_grew() {
    let token = |id: u32| (id, Some(-0.5), &[][..], 0);
    let acts = vec![
        say_tokens("<think>a", &[token(97)]),
        say_tokens("</think>", &[token(98), token(99)]),
        say_tokens("b", &[token(100)]),
        stop(),
    ];
    let engine = ScriptedEngine::new(move |_| acts.clone());
    let body = chat_body(json!({"stream": true, "logprobs": true}));
    let (events, _) = post(&state_with(&engine, "hermes_json"), CHAT, body).await.events();
    let told = |event: &Value| {
        let choice = &event["choices"][0];
        let content = choice["logprobs"]["content"].as_array();
        (choice["delta"].clone(), content.map_or(0, Vec::len))
    };
    let told: Vec<_> = events.iter().map(told).collect();
    let expected = [
        (json!({"role": "assistant", "content": ""}), 0),
        (json!({"reasoning_content": "a"}), 1),
        (json!({"content": ""}), 2),
        (json!({"content": "b"}), 1),
        (json!({}), 0),
    ];
    assert_eq!(told, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_stream_is_the_whole_answer_for_every_chunking(
        cuts in prop::collection::vec(0usize..400, 0..30),
        parallel in any::<bool>(),
    ) {
        let text = format!("<think>\nHm é <b.\n</think>\n\nSo: {LAMP}\n{LAMP} <tool_call> done");
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.retain(|cut| text.is_char_boundary(*cut));
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&str> = cuts.windows(2).map(|two| &text[two[0]..two[1]]).collect();
        let body = with_tools(json!({"parallel_tool_calls": parallel}));
        actix_web::rt::System::new().block_on(async {
            let one_piece = state_with(&says(&[&text], stop()), "hermes_json");
            let expected = whole(&one_piece, &body).await;
            let state = state_with(&says(&pieces, stop()), "hermes_json");
            if parallel {
                assert_eq!(expected.0["tool_calls"].as_array().unwrap().len(), 2);
                assert_eq!(whole(&state, &body).await, expected);
            }
            assert_eq!(streamed(&state, &body).await, whole(&state, &body).await);
        });
    }
}
