//! Streamed answers.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{CHAT, COMPLETIONS, chat_body, completion_body};
use crate::http::HttpSettings;
use crate::http::testing::{
    Act, Reply, ScriptedEngine, hello, post, say, say_tokens, state, state_of, stop,
};
use crate::session::{Fault, Outcome};

async fn stream(engine: &std::sync::Arc<ScriptedEngine>, path: &str, extra: Value) -> Reply {
    let body = if path == CHAT { chat_body(extra) } else { completion_body(extra) };
    let mut body = body;
    body["stream"] = json!(true);
    post(&state(engine), path, body).await
}

#[actix_web::test]
async fn a_chat_stream_event_by_event() {
    let reply = stream(&hello(), CHAT, json!({})).await;
    assert_eq!(reply.header("content-type"), "text/event-stream; charset=utf-8");
    assert_eq!(reply.header("cache-control"), "no-cache");
    assert_eq!(reply.header("x-accel-buffering"), "no");
    let (events, done) = reply.events();
    assert!(done);
    let keys: Vec<_> = events[0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["id", "object", "created", "model", "choices"]);
    for event in &events {
        assert_eq!(event["object"], "chat.completion.chunk");
        assert_eq!((&event["id"], &event["created"]), (&events[0]["id"], &events[0]["created"]));
    }
    let choice = |delta: Value, finish: Value| json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]);
    let choices: Vec<_> = events.iter().map(|event| event["choices"].clone()).collect();
    let expected = [
        choice(json!({"role": "assistant", "content": ""}), Value::Null),
        choice(json!({"content": "Hello"}), Value::Null),
        choice(json!({"content": " \"wörld\"\n"}), Value::Null),
        choice(json!({}), json!("stop")),
    ];
    assert_eq!(choices, expected);
}

#[actix_web::test]
async fn a_completion_stream_event_by_event() {
    let (events, done) = stream(&hello(), COMPLETIONS, json!({})).await.events();
    assert!(done);
    let choice = |text: &str, finish: Value| json!([{"index": 0, "text": text, "logprobs": null, "finish_reason": finish}]);
    let choices: Vec<_> = events.iter().map(|event| event["choices"].clone()).collect();
    let expected = [
        choice("Hello", Value::Null),
        choice(" \"wörld\"\n", Value::Null),
        choice("", json!("stop")),
    ];
    assert_eq!(choices, expected);
    assert!(events.iter().all(|event| event["object"] == "text_completion"));
}

#[actix_web::test]
async fn usage_comes_last_and_only_when_asked_for() {
    for path in [CHAT, COMPLETIONS] {
        let asked = json!({"n": 2, "stream_options": {"include_usage": true}});
        let (events, done) = stream(&hello(), path, asked).await.events();
        assert!(done);
        let (last, others) = events.split_last().unwrap();
        assert!(
            others.iter().all(|event| event["usage"].is_null() && event.get("usage").is_some())
        );
        assert!(others.iter().all(|event| event["choices"].as_array().unwrap().len() == 1));
        assert_eq!(last["choices"], json!([]));
        assert_eq!(last["usage"]["completion_tokens"], 6);
        let (events, _) = stream(&hello(), path, json!({})).await.events();
        assert!(events.iter().all(|event| event.get("usage").is_none()));
    }
}

#[actix_web::test]
async fn each_choice_opens_and_finishes_once() {
    let engine = ScriptedEngine::new(|g| match g.choice {
        0 => vec![say("a"), say("b"), say("c"), Act::End(Outcome::Length)],
        _ => vec![stop()],
    });
    let (events, done) = stream(&engine, CHAT, json!({"n": 2})).await.events();
    assert!(done);
    for index in 0..2 {
        let of_choice = |event: &&Value| event["choices"][0]["index"] == index;
        let own: Vec<_> = events.iter().filter(of_choice).collect();
        assert_eq!(own.first().unwrap()["choices"][0]["delta"]["role"], "assistant");
        let finishes: Vec<_> = own
            .iter()
            .map(|e| &e["choices"][0]["finish_reason"])
            .filter(|f| !f.is_null())
            .collect();
        assert_eq!(finishes, [if index == 0 { "length" } else { "stop" }]);
    }
}

#[actix_web::test]
async fn a_failure_after_the_head_is_an_error_event_and_no_done() {
    let failing = [
        (vec![say("x"), Act::End(Outcome::Fault(Fault::NonFinite))], "non_finite"),
        (vec![say("x"), Act::End(Outcome::Deadline)], "deadline_exceeded"),
        (vec![say("x"), Act::Vanish], "internal_error"),
    ];
    for (acts, code) in failing {
        let engine = ScriptedEngine::new(move |_| acts.clone());
        let (events, done) = stream(&engine, CHAT, json!({})).await.events();
        assert!(!done);
        let (last, others) = events.split_last().unwrap();
        assert_eq!(last["error"]["code"], code);
        assert!(last["error"].get("param").is_some());
        assert_eq!(others.last().unwrap()["choices"][0]["delta"]["content"], "x");
    }
}

#[actix_web::test]
async fn one_failed_choice_ends_the_stream_and_cancels_the_others() {
    let engine = ScriptedEngine::new(|g| match g.choice {
        0 => vec![say("a"), Act::End(Outcome::GrammarDeadEnd)],
        _ => vec![say("b"), Act::Hang],
    });
    let (events, done) = stream(&engine, CHAT, json!({"n": 2})).await.events();
    assert!(!done);
    assert_eq!(events.last().unwrap()["error"]["code"], "grammar_dead_end");
    while engine.cancelled.load(std::sync::atomic::Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
}

#[actix_web::test]
async fn a_silent_stream_is_kept_alive_by_comments() {
    let pause = Duration::from_millis(100);
    let engine = ScriptedEngine::new(move |_| vec![Act::Pause(pause), say("x"), stop()]);
    let settings = HttpSettings {
        ping_interval: Duration::from_millis(5),
        stream_head_delay: Duration::from_millis(1),
        ..HttpSettings::default()
    };
    let reply = post(&state_of(&engine, settings), CHAT, chat_body(json!({"stream": true}))).await;
    assert!(reply.text().starts_with(": ping\n\n"), "{}", reply.text());
    let (events, done) = reply.events();
    assert!(done && events.len() == 3);
}

#[actix_web::test]
async fn a_failure_after_a_long_wait_is_an_event_since_the_head_is_out() {
    let pause = Duration::from_millis(50);
    let engine = ScriptedEngine::new(move |_| vec![Act::Pause(pause), Act::End(Outcome::Deadline)]);
    let settings =
        HttpSettings { stream_head_delay: Duration::from_millis(1), ..HttpSettings::default() };
    let reply = post(&state_of(&engine, settings), CHAT, chat_body(json!({"stream": true}))).await;
    let (events, done) = reply.events();
    assert!(!done);
    assert_eq!(events[0]["error"]["code"], "deadline_exceeded");
}

/// Text and logprobs of every choice, from a whole answer and from a stream.
fn whole_choices(answer: &Value) -> Vec<(String, Value, Value)> {
    let parts = |choice: &Value| {
        let text = choice["text"].as_str().or(choice["message"]["content"].as_str()).unwrap();
        (text.to_owned(), choice["logprobs"].clone(), choice["finish_reason"].clone())
    };
    answer["choices"].as_array().unwrap().iter().map(parts).collect()
}

fn joined_choices(events: &[Value], choices: usize) -> Vec<(String, Value, Value)> {
    let mut joined = vec![(String::new(), Value::Null, Value::Null); choices];
    for event in events {
        let choice = &event["choices"][0];
        let (text, logprobs, finish) = &mut joined[choice["index"].as_u64().unwrap() as usize];
        *text += choice["text"].as_str().or(choice["delta"]["content"].as_str()).unwrap_or("");
        for (key, list) in choice["logprobs"].as_object().into_iter().flatten() {
            match (list, &mut logprobs[key]) {
                (Value::Array(more), Value::Array(so_far)) => so_far.extend(more.iter().cloned()),
                (list, slot) => *slot = list.clone(),
            }
        }
        if !choice["finish_reason"].is_null() {
            assert!(finish.is_null());
            *finish = choice["finish_reason"].clone();
        }
    }
    joined
}

fn deltas() -> impl Strategy<Value = Vec<Vec<(String, Vec<u32>)>>> {
    let text = prop_oneof![Just(String::new()), "[a-z\"\\\\\u{0}-\u{1f}é😀\u{2028}]{1,8}"];
    let delta = (text, prop::collection::vec(0u32..258, 0..3));
    prop::collection::vec(prop::collection::vec(delta, 0..6), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn joined_chunks_are_the_whole_answer(choices in deltas(), path in prop_oneof![Just(CHAT), Just(COMPLETIONS)]) {
        let n = choices.len();
        let script = choices.clone();
        let engine = ScriptedEngine::new(move |g| {
            let act = |(text, ids): &(String, Vec<u32>)| {
                let tokens: Vec<_> = ids.iter().map(|id| (*id, Some(-1.0), &[][..], 0)).collect();
                say_tokens(text, &tokens)
            };
            script[g.choice as usize].iter().map(act).chain([stop()]).collect()
        });
        let logprobs = if path == CHAT { json!(true) } else { json!(0) };
        let extra = json!({"n": n, "logprobs": logprobs});
        let body = if path == CHAT { chat_body(extra.clone()) } else { completion_body(extra.clone()) };
        actix_web::rt::System::new().block_on(async {
            let mut whole = whole_choices(&post(&state(&engine), path, body).await.json());
            for ((_, logprobs, _), deltas) in whole.iter_mut().zip(&choices) {
                // A stream with no token has no list to show; a whole answer shows an empty one.
                if deltas.iter().all(|(_, tokens)| tokens.is_empty()) {
                    *logprobs = Value::Null;
                }
            }
            let (events, done) = stream(&engine, path, extra).await.events();
            assert!(done);
            assert_eq!(joined_choices(&events, n), whole);
        });
    }
}
