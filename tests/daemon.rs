//! The real binary on the simulated device, over real sockets: answers, streams, refusals, faults,
//! clients that leave, and the end.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Daemon, http};

const CHAT: &str = "/v1/chat/completions";
const COMPLETIONS: &str = "/v1/completions";

fn quick() -> Daemon {
    Daemon::simulated("fixed_us = 0\nper_token_us = 0\nper_sequence_us = 0", "", "")
}

/// Method, path, headers, body; the status and the `param` that must come back.
type Case =
    (&'static str, &'static str, Vec<(&'static str, &'static str)>, String, u16, &'static str);

/// A step takes 3 ms: slow enough to act in the middle of an answer.
fn paced(limits: &str, rest: &str) -> Daemon {
    Daemon::simulated("fixed_us = 3000\nper_token_us = 0\nper_sequence_us = 0", limits, rest)
}

fn chat(text: &str, max_tokens: u32) -> Value {
    json!({"messages": [{"role": "user", "content": text}], "max_tokens": max_tokens})
}

fn with(mut body: Value, more: Value) -> Value {
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    body
}

#[test]
fn whole_and_streamed_answers_are_the_same() {
    let daemon = quick();
    for (path, body) in [
        (CHAT, chat("hello", 40)),
        (COMPLETIONS, json!({"prompt": "hello", "max_tokens": 40})),
        (COMPLETIONS, json!({"prompt": ["hello", "you"], "n": 2, "max_tokens": 9, "echo": true})),
        (CHAT, with(chat("hi", 30), json!({"n": 3, "temperature": 9.0, "seed": 5}))),
        (CHAT, with(chat("hi", 200), json!({"stop": ["e", "ta"]}))),
    ] {
        let whole = daemon.ask(path, &body);
        let events = daemon.stream(path, &with(body, json!({"stream": true})));
        assert_eq!(events.last(), Some(&Value::from("[DONE]")));
        for choice in whole["choices"].as_array().unwrap() {
            let index = choice["index"].as_u64().unwrap();
            let text = choice["text"].as_str().or(choice["message"]["content"].as_str()).unwrap();
            assert_eq!(http::joined(&events, index), text);
            assert!(!text.is_empty());
            let finish = events.iter().filter_map(|event| {
                let one = event["choices"].as_array()?.iter().find(|one| one["index"] == index)?;
                one["finish_reason"].as_str()
            });
            let finish: Vec<&str> = finish.collect();
            assert_eq!(finish, [choice["finish_reason"].as_str().unwrap()]);
        }
    }
    daemon.all_zero();
}

#[test]
fn choices_with_one_seed_differ_and_repeat() {
    let daemon = quick();
    let body = with(chat("hi", 30), json!({"n": 3, "temperature": 9.0, "seed": 5}));
    let texts = |answer: &Value| -> Vec<String> {
        let choices = answer["choices"].as_array().unwrap();
        choices.iter().map(|choice| choice["message"]["content"].to_string()).collect()
    };
    let first = texts(&daemon.ask(CHAT, &body));
    assert!(first[0] != first[1] && first[1] != first[2]);
    assert_eq!(first, texts(&daemon.ask(CHAT, &body)));
}

#[test]
fn usage_counts_every_choice_and_comes_last_in_a_stream() {
    let daemon = quick();
    let body = with(chat("hello", 7), json!({"n": 2}));
    let usage = daemon.ask(CHAT, &body)["usage"].clone();
    assert_eq!(usage["completion_tokens"], 14);
    let options = json!({"stream": true, "stream_options": {"include_usage": true}});
    let events = daemon.stream(CHAT, &with(body, options));
    let [.., last, done] = &events[..] else { panic!("{events:?}") };
    assert_eq!(done, "[DONE]");
    assert_eq!(last["choices"], json!([]));
    assert_eq!(last["usage"]["completion_tokens"], 14);
    assert_eq!(last["usage"]["prompt_tokens"], usage["prompt_tokens"]);
    assert!(events[..events.len() - 2].iter().all(|event| event["usage"].is_null()));
}

#[test]
fn log_probabilities_cover_the_text_in_both_shapes() {
    let daemon = quick();
    let chat = with(chat("hello", 5), json!({"logprobs": true, "top_logprobs": 2}));
    let answer = daemon.ask(CHAT, &chat);
    let choice = &answer["choices"][0];
    let content = choice["logprobs"]["content"].as_array().unwrap();
    let tokens: String = content.iter().map(|entry| entry["token"].as_str().unwrap()).collect();
    assert_eq!(tokens, choice["message"]["content"].as_str().unwrap());
    assert!(content.iter().all(|entry| entry["top_logprobs"].as_array().unwrap().len() == 2));

    let body = json!({"prompt": "né", "max_tokens": 2, "logprobs": 1, "echo": true});
    let answer = daemon.ask(COMPLETIONS, &body);
    let logprobs = &answer["choices"][0]["logprobs"];
    assert_eq!(logprobs["token_logprobs"][0], Value::Null);
    assert_eq!(logprobs["text_offset"], json!([0, 1, 1, 2, 3]));
}

#[test]
fn a_script_stops_with_stop_and_its_text_is_whole() {
    let daemon = Daemon::simulated("script = \"Grüße 🙂!\"\nfixed_us = 0", "", "");
    let answer = daemon.ask(CHAT, &chat("x", 100));
    assert_eq!(answer["choices"][0]["message"]["content"], "Grüße 🙂!");
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    let events = daemon.stream(CHAT, &with(chat("x", 100), json!({"stream": true})));
    assert!(!events.iter().any(|event| event.to_string().contains('\u{FFFD}')));
    let cut = daemon.ask(CHAT, &chat("x", 8));
    assert_eq!(cut["choices"][0]["message"]["content"], "Grüße ");
    assert_eq!(cut["choices"][0]["finish_reason"], "length");
}

#[test]
fn every_bad_request_is_an_error_in_openais_shape() {
    let daemon = Daemon::simulated(
        "fixed_us = 0",
        "max_body_bytes = 20000\nbody_timeout_seconds = 1",
        "[model]\ncontext_tokens = 64\n[[auth.keys]]\nname = \"a\"\n\
         sha256 = \"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"\n",
    );
    let json = ("content-type", "application/json");
    let key = ("authorization", "Bearer abc");
    let body = |value: Value| value.to_string();
    let ok = body(chat("hi", 1));
    let cases: Vec<Case> = vec![
        ("POST", CHAT, vec![json, key], ok.clone(), 200, ""),
        ("POST", CHAT, vec![json], ok.clone(), 401, ""),
        ("POST", CHAT, vec![json, ("authorization", "Bearer abd")], ok.clone(), 401, ""),
        ("POST", "/v1/nothing", vec![json, key], ok.clone(), 404, ""),
        ("GET", CHAT, vec![key], String::new(), 405, ""),
        ("POST", CHAT, vec![("content-type", "text/plain"), key], ok.clone(), 415, ""),
        ("POST", CHAT, vec![json, key], "{\"messages\": [".into(), 400, ""),
        ("POST", CHAT, vec![json, key], body(json!({"messages": "hi"})), 400, "messages"),
        (
            "POST",
            CHAT,
            vec![json, key],
            body(with(chat("hi", 1), json!({"temperature": -1}))),
            400,
            "temperature",
        ),
        (
            "POST",
            CHAT,
            vec![json, key],
            body(with(chat("hi", 1), json!({"stop": ["a", "b", "c", "d", "e"]}))),
            400,
            "stop",
        ),
        (
            "POST",
            CHAT,
            vec![json, key],
            body(with(chat("hi", 1), json!({"model": "other"}))),
            404,
            "model",
        ),
        ("POST", CHAT, vec![json, key], body(chat(&"x".repeat(100), 1)), 400, "messages"),
        ("POST", CHAT, vec![json, key], body(chat(&"x".repeat(30_000), 1)), 413, ""),
        (
            "POST",
            CHAT,
            vec![json, key],
            body(with(chat("hi", 1), json!({"tools": [{"type": "function"}]}))),
            400,
            "tools[0].function",
        ),
        (
            "POST",
            CHAT,
            vec![json, key],
            body(with(chat("hi", 1), json!({"grammar": "root ::= \"open"}))),
            400,
            "grammar",
        ),
    ];
    for (method, path, headers, body, status, param) in cases {
        let answer = http::send(daemon.address, method, path, &headers, body.as_bytes());
        let answer = answer.unwrap().finish().unwrap();
        assert_eq!(answer.status, status, "{method} {path} {body:.80}: {}", answer.text());
        assert!(answer.header("x-request-id").is_some());
        if status == 200 {
            continue;
        }
        let error = &answer.json()["error"];
        let keys: Vec<&String> = error.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["message", "type", "param", "code"], "{body:.80}");
        if !param.is_empty() {
            assert_eq!(error["param"], param, "{body:.80}");
        }
    }
    let key_header = [json, key];
    let long = http::send(
        daemon.address,
        "POST",
        CHAT,
        &key_header,
        chat(&"x".repeat(100), 1).to_string().as_bytes(),
    );
    let error = long.unwrap().finish().unwrap().json()["error"].clone();
    assert_eq!(error["code"], "context_length_exceeded");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("64") && message.contains("10"), "both numbers: {message}");

    let mut slow = http::connect(daemon.address).unwrap();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer abc\r\n\
                content-type: application/json\r\ncontent-length: 100\r\n\r\n{\"mes";
    slow.write_all(head.as_bytes()).unwrap();
    let answer = http::read_head(slow).unwrap().finish().unwrap();
    assert_eq!(answer.status, 408, "{}", answer.text());
    assert!(answer.json()["error"]["message"].is_string());
}

#[test]
fn more_than_it_may_hold_is_refused_with_a_time_to_come_back() {
    let daemon = paced("max_sessions = 1\nmax_queued = 2", "");
    let body = with(chat("x", 4000), json!({"stream": true}));
    let held: Vec<_> = (0..3).map(|_| http::open(daemon.address, CHAT, &body).unwrap()).collect();
    let answer = daemon.post(CHAT, &body);
    assert_eq!(answer.status, 429);
    assert_eq!(answer.json()["error"]["code"], "queue_full");
    assert!(answer.header("retry-after").unwrap().parse::<u32>().unwrap() >= 1);
    drop(held);
    daemon.all_zero();
    assert_eq!(daemon.post(CHAT, &chat("x", 2)).status, 200);
}

#[test]
fn a_client_that_leaves_frees_its_slot() {
    let daemon = paced("max_sessions = 2", "");
    for stream in [true, false] {
        for how in ["at once", "in the middle"] {
            let body = with(chat("x", 4000), json!({"stream": stream}));
            let mut socket = http::connect(daemon.address).unwrap();
            let text = body.to_string();
            let head = format!(
                "POST {CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
                 content-length: {}\r\n\r\n{text}",
                text.len()
            );
            socket.write_all(head.as_bytes()).unwrap();
            if how == "in the middle" {
                let end = Instant::now() + Duration::from_secs(20);
                while daemon.metric("pleach_live_slots") == 0.0 {
                    assert!(Instant::now() < end, "it never started");
                }
                if stream {
                    socket.read_exact(&mut [0; 400]).unwrap();
                }
            }
            drop(socket);
            daemon.all_zero();
        }
    }
}

#[test]
fn sigterm_lets_streams_finish_and_ends_well() {
    let mut daemon = paced("max_sessions = 12", "[shutdown]\nlame_duck_seconds = 0\n");
    let body = with(chat("x", 150), json!({"stream": true}));
    let mut open: Vec<_> =
        (0..12).map(|_| http::open(daemon.address, CHAT, &body).unwrap()).collect();
    for stream in &mut open {
        assert!(stream.chunk().unwrap().is_some());
    }
    daemon.signal("TERM");
    for stream in open {
        let answer = stream.finish().expect("not cut");
        let events = http::events(&answer.text());
        assert_eq!(events.last(), Some(&Value::from("[DONE]")));
        assert_eq!(events[events.len() - 2]["choices"][0]["finish_reason"], "length");
    }
    let status = daemon.wait(Duration::from_secs(10)).expect("it ends");
    assert_eq!(status.code(), Some(0), "{}", daemon.log_text());
}

#[test]
fn a_drain_that_lasts_too_long_ends_streams_with_an_error_event() {
    let mut daemon =
        paced("max_sessions = 2", "[shutdown]\nlame_duck_seconds = 0\ndrain_seconds = 0\n");
    let body = with(chat("x", 100_000), json!({"stream": true, "max_tokens": 3000}));
    let mut stream = http::open(daemon.address, CHAT, &body).unwrap();
    stream.chunk().unwrap().unwrap();
    daemon.signal("INT");
    let events = http::events(&stream.finish().unwrap().text());
    let last = events.last().unwrap();
    assert!(last["error"]["message"].is_string(), "{last}");
    assert_eq!(daemon.wait(Duration::from_secs(10)).unwrap().code(), Some(0));
}

#[test]
fn a_daemon_that_drains_says_so() {
    let mut daemon = paced("max_sessions = 2", "[shutdown]\nlame_duck_seconds = 2\n");
    let body = with(chat("x", 300), json!({"stream": true}));
    let mut stream = http::open(daemon.address, CHAT, &body).unwrap();
    stream.chunk().unwrap().unwrap();
    daemon.signal("TERM");
    let end = Instant::now() + Duration::from_secs(5);
    while http::get(daemon.address, "/readyz").unwrap().status == 200 {
        assert!(Instant::now() < end);
    }
    assert_eq!(daemon.post(CHAT, &chat("x", 2)).status, 503);
    assert_eq!(http::get(daemon.address, "/livez").unwrap().status, 200);
    assert!(stream.finish().unwrap().text().contains("[DONE]"));
    assert_eq!(daemon.wait(Duration::from_secs(10)).unwrap().code(), Some(0));
}

#[test]
fn a_device_fault_fails_its_requests_and_the_next_is_answered() {
    for (fault, status) in
        [("panic", 500), ("error", 500), ("short_row", 500), ("nan", 500), ("hang", 504)]
    {
        let daemon = Daemon::simulated(
            &format!("fault = \"{fault}\"\nfault_at_step = 5\nhang_seconds = 3\nfixed_us = 1000"),
            "",
            "",
        );
        let daemon = if fault == "hang" {
            drop(daemon);
            Daemon::start(
                "[device]\nkind = \"simulated\"\nstep_deadline_seconds = 1\n[device.simulated]\n\
                 fault = \"hang\"\nfault_at_step = 5\nhang_seconds = 3\nfixed_us = 1000\n",
            )
        } else {
            daemon
        };
        let answer = daemon.post(CHAT, &chat("x", 50));
        assert_eq!(answer.status, status, "{fault}: {}", answer.text());
        assert!(answer.json()["error"]["message"].is_string());
        let end = Instant::now() + Duration::from_secs(20);
        while daemon.post(CHAT, &chat("x", 50)).status != 200 {
            assert!(Instant::now() < end, "{fault}: it never recovers");
        }
        daemon.all_zero();
    }
}

#[test]
fn a_device_that_keeps_failing_ends_the_process_for_systemd_to_restart() {
    let mut daemon = Daemon::start(
        "[device]\nkind = \"simulated\"\n[device.simulated]\nfault = \"panic\"\nfault_steps = 3\n",
    );
    for _ in 0..3 {
        let _ = http::post(daemon.address, CHAT, &chat("x", 5));
    }
    let status = daemon.wait(Duration::from_secs(10)).expect("it ends");
    assert_eq!(status.code(), Some(70), "{}", daemon.log_text());
}

#[test]
fn many_clients_that_come_and_go_leave_nothing_behind() {
    let daemon = paced("max_sessions = 8\nmax_queued = 64", "");
    let expected = daemon.ask(CHAT, &chat("the same", 20))["choices"][0]["message"].clone();
    let before = (daemon.resident_kib(), daemon.open_files());
    let mut random = fastrand::Rng::with_seed(7);
    let seeds: Vec<u64> = (0..16).map(|_| random.u64(..)).collect();
    std::thread::scope(|scope| {
        for seed in seeds {
            let (daemon, expected) = (&daemon, &expected);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                for _ in 0..32 {
                    client(daemon, expected, &mut random);
                }
            });
        }
    });
    daemon.all_zero();
    let after = (daemon.resident_kib(), daemon.open_files());
    assert!(after.0 < before.0 + 40_000, "memory grew: {before:?} to {after:?}");
    assert!(after.1 <= before.1 + 4, "files stay open: {before:?} to {after:?}");
    assert_eq!(daemon.ask(CHAT, &chat("the same", 20))["choices"][0]["message"], expected);
}

/// One request: streamed or whole, read to its end or left at a random moment.
fn client(daemon: &Daemon, expected: &Value, random: &mut fastrand::Rng) {
    let stream = random.bool();
    let body = with(chat("the same", 20), json!({"stream": stream}));
    let mut open = http::open(daemon.address, CHAT, &body).unwrap();
    assert_eq!(open.status, 200);
    if random.u8(..3) == 0 {
        if stream {
            for _ in 0..random.usize(..10) {
                open.chunk().unwrap();
            }
        }
        return;
    }
    let answer = open.finish().unwrap();
    let text = if stream {
        http::joined(&http::events(&answer.text()), 0)
    } else {
        answer.json()["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
    };
    assert_eq!(text, expected["content"].as_str().unwrap());
}

#[test]
fn who_watches_may_have_an_address_of_its_own() {
    let daemon =
        Daemon::start("[server]\nprobe_listen = \"127.0.0.1:0\"\n[device]\nkind = \"simulated\"\n");
    let log = daemon.log_text();
    let line = log.lines().find(|line| line.contains("listening for probes")).expect(&log);
    let line: Value = serde_json::from_str(line).unwrap();
    let probes = line["address"].as_str().unwrap().parse().unwrap();
    assert_ne!(probes, daemon.address);
    for path in ["/livez", "/readyz", "/health", "/metrics"] {
        for address in [probes, daemon.address] {
            assert_eq!(http::get(address, path).unwrap().status, 200, "{path}");
        }
    }
    assert_eq!(http::get(daemon.address, "/v1/models").unwrap().status, 200);
    assert_eq!(http::get(probes, "/v1/models").unwrap().status, 404);
    assert_eq!(http::post(probes, "/v1/chat/completions", &chat("hello", 4)).unwrap().status, 404);
}

#[test]
fn the_other_endpoints_answer() {
    let daemon = quick();
    let models = http::get(daemon.address, "/v1/models").unwrap().json();
    assert_eq!(models["object"], "list");
    let id = models["data"][0]["id"].as_str().unwrap().to_owned();
    let one = http::get(daemon.address, &format!("/v1/models/{id}")).unwrap();
    assert_eq!(one.json()["id"], models["data"][0]["id"]);
    assert_eq!(http::get(daemon.address, "/v1/models/a/b").unwrap().status, 404);
    let tokens = daemon.ask("/tokenize", &json!({"content": "hé"}))["tokens"].clone();
    assert_eq!(tokens, json!([104, 195, 169]));
    assert_eq!(daemon.ask("/detokenize", &json!({"tokens": tokens}))["content"], "hé");
    let prompt =
        daemon.ask("/apply-template", &json!({"messages": [{"role": "user", "content": "q"}]}));
    assert_eq!(prompt["prompt"], "<|user|>q<|end|><|assistant|>");
    for path in ["/livez", "/readyz", "/health"] {
        assert_eq!(http::get(daemon.address, path).unwrap().status, 200);
    }
    daemon.ask(CHAT, &chat("x", 3));
    let metrics = http::get(daemon.address, "/metrics").unwrap().text();
    for name in [
        "pleach_time_to_first_token_seconds_bucket",
        "pleach_inter_token_latency_seconds_bucket",
        "pleach_sessions_finished_total{outcome=\"length\"} 1",
        "pleach_generation_tokens_total 3",
        "pleach_device_step_seconds_bucket",
        "pleach_build_info",
    ] {
        assert!(metrics.contains(name), "{name} in\n{metrics}");
    }
}
