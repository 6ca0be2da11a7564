//! Whole answers.

use serde_json::{Value, json};

use super::{CHAT, COMPLETIONS, chat_body, completion_body};
use crate::http::testing::{
    Act, BOS, EOS, ScriptedEngine, hello, post, say, say_tokens, state, stop,
};
use crate::session::Outcome;

#[actix_web::test]
async fn a_chat_answer_has_openais_shape() {
    let reply = post(&state(&hello()), CHAT, chat_body(json!({}))).await;
    let mut answer = reply.json();
    assert_eq!(reply.header("content-type"), "application/json");
    let id = answer["id"].take();
    assert!(id.as_str().unwrap().starts_with("chatcmpl-"));
    assert!(answer["created"].take().as_u64().unwrap() > 1_600_000_000);
    let prompt = "user: Hi\nassistant:".len() as u64 + 1;
    let expected = json!({
        "id": null, "object": "chat.completion", "created": null, "model": "org/tiny",
        "choices": [{
            "index": 0,
            "message": {"role": "assistant", "content": "Hello \"wörld\"\n", "refusal": null},
            "logprobs": null, "finish_reason": "stop",
        }],
        "usage": {
            "prompt_tokens": prompt, "completion_tokens": 3, "total_tokens": prompt + 3,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    });
    assert_eq!(answer, expected);
}

#[actix_web::test]
async fn a_completion_has_its_choices_in_order_and_its_prompts_counted_once() {
    let engine = ScriptedEngine::new(|generation| {
        let text = format!("{}/{}", generation.choice, generation.prompt.len());
        let end = if generation.choice == 3 { Act::End(Outcome::Length) } else { stop() };
        vec![say(&text), end]
    });
    let body = json!({"prompt": ["a", "bcd"], "n": 2});
    let answer = post(&state(&engine), COMPLETIONS, body).await.json();
    assert_eq!(answer["object"], "text_completion");
    assert!(answer["id"].as_str().unwrap().starts_with("cmpl-"));
    let choice = |index: u32, text: &str, finish: &str| json!({"index": index, "text": text, "logprobs": null, "finish_reason": finish});
    let expected = json!([
        choice(0, "0/2", "stop"),
        choice(1, "1/2", "stop"),
        choice(2, "2/4", "stop"),
        choice(3, "3/4", "length"),
    ]);
    assert_eq!(answer["choices"], expected);
    assert_eq!(answer["usage"]["prompt_tokens"], 6);
    assert_eq!(answer["usage"]["completion_tokens"], 12);
}

/// Half of "é" at a time, then an end token.
fn with_tokens() -> std::sync::Arc<ScriptedEngine> {
    ScriptedEngine::new(|_| {
        vec![
            say_tokens("a", &[(97, Some(-0.5), &[(97, -0.5), (98, -1.5)], 0)]),
            say_tokens("é", &[(195, Some(-0.25), &[], 1), (169, Some(f32::NEG_INFINITY), &[], 1)]),
            say_tokens("", &[(EOS, Some(-2.0), &[(BOS, -0.125)], 2)]),
            stop(),
        ]
    })
}

#[actix_web::test]
async fn chat_logprobs_name_tokens_and_bytes() {
    let body = chat_body(json!({"logprobs": true, "top_logprobs": 2}));
    let answer = post(&state(&with_tokens()), CHAT, body).await.json();
    let token = |text: &str, logprob: f64, bytes: &[u8]| json!({"token": text, "logprob": logprob, "bytes": bytes});
    let entry = |mut token: Value, top: Vec<Value>| {
        token["top_logprobs"] = json!(top);
        token
    };
    let expected = json!({"content": [
        entry(token("a", -0.5, b"a"), vec![token("a", -0.5, b"a"), token("b", -1.5, b"b")]),
        entry(token("\u{fffd}", -0.25, &[195]), vec![]),
        entry(token("\u{fffd}", -9999.0, &[169]), vec![]),
        entry(token("</s>", -2.0, b"</s>"), vec![token("<s>", -0.125, b"<s>")]),
    ], "refusal": null});
    assert_eq!(answer["choices"][0]["logprobs"], expected);
    assert_eq!(answer["choices"][0]["message"]["content"], "aé");
}

#[actix_web::test]
async fn completion_logprobs_are_parallel_lists() {
    let answer =
        post(&state(&with_tokens()), COMPLETIONS, completion_body(json!({"logprobs": 2}))).await;
    let expected = json!({
        "tokens": ["a", "\u{fffd}", "\u{fffd}", "</s>"],
        "token_logprobs": [-0.5, -0.25, -9999.0, -2.0],
        "top_logprobs": [
            {"a": -0.5, "b": -1.5}, {"\u{fffd}": -0.25}, {"\u{fffd}": -9999.0},
            {"<s>": -0.125, "</s>": -2.0},
        ],
        "text_offset": [0, 1, 1, 2],
    });
    assert_eq!(answer.json()["choices"][0]["logprobs"], expected);
}

#[actix_web::test]
async fn the_first_token_of_an_echo_has_no_logprob() {
    let engine = ScriptedEngine::new(|_| {
        vec![say_tokens("Hi", &[(72, None, &[], 0), (105, Some(-1.0), &[(105, -1.0)], 1)]), stop()]
    });
    let body = completion_body(json!({"echo": true, "logprobs": 1, "max_tokens": 0}));
    let answer = post(&state(&engine), COMPLETIONS, body).await.json();
    assert!(engine.last_generations()[0].echo);
    let logprobs = &answer["choices"][0]["logprobs"];
    assert_eq!(logprobs["token_logprobs"], json!([null, -1.0]));
    assert_eq!(logprobs["top_logprobs"], json!([null, {"i": -1.0}]));
    assert_eq!(answer["choices"][0]["text"], "Hi");
}
