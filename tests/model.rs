//! The real binary with the real small model, over real sockets. Skipped, with a line that says so,
//! where the machine has no model.

#![cfg(feature = "ggml")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use serde_json::{Value, json};
use support::{Daemon, http};

const COMPLETIONS: &str = "/v1/completions";
const CHAT: &str = "/v1/chat/completions";

fn daemon() -> Option<Daemon> {
    let model = support::model()?;
    Some(Daemon::start(&format!(
        "[model]\npath = {:?}\ncontext_tokens = 1024\n[device]\nrepeatable = \"on\"\nthreads = 1\n\
         [limits]\nmax_sessions = 9\n",
        model.display().to_string()
    )))
}

fn text(answer: &Value) -> String {
    let choice = &answer["choices"][0];
    choice["text"].as_str().or(choice["message"]["content"].as_str()).unwrap().to_owned()
}

#[test]
fn the_small_model_answers_in_every_way() {
    let Some(daemon) = daemon() else { return };
    greedy_continuations(&daemon);
    streams_equal_whole_answers(&daemon);
    stops_across_tokens(&daemon);
    log_probabilities(&daemon);
    the_same_seed_gives_the_same_text_alone_and_among_others(&daemon);
    constrained_answers_stay_inside(&daemon);
    daemon.all_zero();
}

fn greedy_continuations(daemon: &Daemon) {
    let continued = |prompt: &str, max_tokens: u32| {
        let body = json!({"prompt": prompt, "max_tokens": max_tokens, "temperature": 0});
        text(&daemon.ask(COMPLETIONS, &body))
    };
    assert!(continued("The capital city of France is called", 8).starts_with(" Paris."));
    assert!(continued("1, 2, 3, 4, 5,", 12).starts_with(" 6, 7, 8, 9,"));
}

fn streams_equal_whole_answers(daemon: &Daemon) {
    let question = json!([{"role": "user", "content": "Name three colours, with an emoji each."}]);
    for body in [
        json!({"messages": question, "max_tokens": 40}),
        json!({"messages": question, "max_tokens": 40, "temperature": 0.8, "seed": 3, "n": 3}),
    ] {
        let whole = daemon.ask(CHAT, &body);
        let mut streamed = body.clone();
        streamed["stream"] = true.into();
        let events = daemon.stream(CHAT, &streamed);
        assert_eq!(events.last(), Some(&Value::from("[DONE]")));
        for choice in whole["choices"].as_array().unwrap() {
            let index = choice["index"].as_u64().unwrap();
            assert_eq!(
                http::joined(&events, index),
                choice["message"]["content"].as_str().unwrap()
            );
        }
    }
}

fn stops_across_tokens(daemon: &Daemon) {
    let body = json!({"prompt": "1, 2, 3, 4, 5,", "max_tokens": 30, "stop": ", 8"});
    let answer = daemon.ask(COMPLETIONS, &body);
    assert_eq!(text(&answer), " 6, 7");
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
}

fn log_probabilities(daemon: &Daemon) {
    let body = json!({"prompt": "1, 2, 3, 4, 5,", "max_tokens": 4, "logprobs": 3, "echo": true});
    let answer = daemon.ask(COMPLETIONS, &body);
    let logprobs = &answer["choices"][0]["logprobs"];
    let tokens: String = logprobs["tokens"]
        .as_array()
        .unwrap()
        .iter()
        .map(|token| token.as_str().unwrap())
        .collect();
    assert_eq!(tokens, text(&answer));
    let values = logprobs["token_logprobs"].as_array().unwrap();
    assert!(values[0].is_null());
    assert!(values[1..].iter().all(|value| value.as_f64().unwrap() <= 0.0));
    assert!(values.last().unwrap().as_f64().unwrap() > -1.0, "counting on is easy");
}

fn the_same_seed_gives_the_same_text_alone_and_among_others(daemon: &Daemon) {
    let body = json!({
        "messages": [{"role": "user", "content": "Tell me a short story about a cat."}],
        "max_tokens": 60, "temperature": 0.9, "top_p": 0.95, "seed": 11,
    });
    let alone = text(&daemon.ask(CHAT, &body));
    let others: Vec<_> = (0..8)
        .map(|seed| {
            let other = json!({
                "messages": [{"role": "user", "content": "Write about the sea. ".repeat(seed + 1)}],
                "max_tokens": 400, "temperature": 1.0, "seed": seed, "stream": true,
            });
            http::open(daemon.address, CHAT, &other).unwrap()
        })
        .collect();
    let among = text(&daemon.ask(CHAT, &body));
    drop(others);
    assert_eq!(alone, among);
}

fn constrained_answers_stay_inside(daemon: &Daemon) {
    let question = json!([{"role": "user", "content": "Describe a cat as JSON."}]);
    for temperature in [0.0, 1.0] {
        let body = json!({"messages": question, "max_tokens": 40, "temperature": temperature,
                          "seed": 4, "response_format": {"type": "json_object"}});
        let answer = daemon.ask(CHAT, &body);
        let value: Value = serde_json::from_str(&text(&answer)).expect("complete within 40 tokens");
        assert!(value.is_object());
        assert_eq!(answer["choices"][0]["finish_reason"], "stop", "{answer}");
    }

    let date = json!({"prompt": "The moon landing was on ", "max_tokens": 20,
                      "guided_regex": "(19|20)[0-9]{2}-[01][0-9]-[0-3][0-9]"});
    let said = text(&daemon.ask(COMPLETIONS, &date));
    assert!(said.len() == 10 && said.is_char_boundary(4) && &said[4..5] == "-", "{said}");
    let choice = json!({"prompt": "Is the sky blue? Answer: ", "max_tokens": 8,
                        "guided_choice": ["yes 🙂", "no 🙁"]});
    assert!(["yes 🙂", "no 🙁"].contains(&text(&daemon.ask(COMPLETIONS, &choice)).as_str()));

    let list = "root ::= \"[\" word (\", \" word){2} \"]\"\nword ::= [a-z]{2,12}";
    let streams: Vec<_> = (0..8)
        .map(|seed| {
            let body = json!({"prompt": "Three animals: ", "max_tokens": 40, "temperature": 1.0,
                              "seed": seed, "grammar": list, "stream": true});
            http::open(daemon.address, COMPLETIONS, &body).unwrap()
        })
        .collect();
    for stream in streams {
        let said = http::joined(&http::events(&stream.finish().unwrap().text()), 0);
        let inner = said.strip_prefix('[').and_then(|said| said.strip_suffix(']')).expect(&said);
        let words: Vec<&str> = inner.split(", ").collect();
        let legal = |word: &&str| {
            (2..=12).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_lowercase())
        };
        assert!(words.len() == 3 && words.iter().all(legal), "{said}");
    }
}
