//! Hostile schemas in requests, beside streams: the real binary on the simulated device refuses each,
//! and no stream fails or loses a token.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Daemon, http};

const COMPLETIONS: &str = "/v1/completions";
const STREAMS: usize = 8;
/// Tokens of each stream; a token is a byte of the script.
const TOKENS: usize = 1200;

fn list(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(",")
}

fn nested(open: &str, close: &str, inner: &str, depth: usize) -> String {
    format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
}

fn choices(depth: usize) -> String {
    let inner = if depth == 0 { r#"{"type":"string"}"#.to_owned() } else { choices(depth - 1) };
    let others = list(49, |n| {
        format!(r#"{{"properties":{{"p{depth}q{n}":{{"minimum":{n}}}}},"required":["r{n}"]}}"#)
    });
    format!(r#"{{"oneOf":[{others},{inner}]}}"#)
}

fn pattern(pattern: &str) -> String {
    json!({"type": "string", "pattern": pattern}).to_string()
}

/// Each must be refused.
fn hostile() -> Vec<(&'static str, String)> {
    vec![
        (
            "1 MB of properties",
            format!(
                r#"{{"type":"object","properties":{{{}}}}}"#,
                list(28_000, |n| format!(r#""property {n}":{{"type":"string"}}"#))
            ),
        ),
        (
            "1 MB of patterns",
            format!(
                r#"{{"type":"object","properties":{{{}}}}}"#,
                list(20_000, |n| format!(r#""p{n}":{{"pattern":"^(a{n}|b{{1,400}}){{5}}$"}}"#))
            ),
        ),
        ("10,000 levels of arrays", nested(r#"{"items":"#, "}", "{}", 10_000)),
        ("10,000 levels of objects", nested(r#"{"properties":{"a":"#, "}}", "{}", 10_000)),
        ("10,000 levels of not", nested(r#"{"not":"#, "}", "{}", 10_000)),
        ("a reference to itself", r##"{"$ref":"#"}"##.to_owned()),
        (
            "a ring of 3,000 references",
            format!(
                r##"{{"$ref":"#/$defs/d0","$defs":{{{}}}}}"##,
                list(3_000, |n| {
                    let next = (n + 1) % 3_000;
                    format!(r##""d{n}":{{"allOf":[{{"$ref":"#/$defs/d{next}"}}]}}"##)
                })
            ),
        ),
        (
            "an object that never ends",
            r##"{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}"##.to_owned(),
        ),
        ("50 nested oneOfs of 50", choices(49)),
        ("repetitions of repetitions", pattern("^((a{1,100}){1,100}){1,100}$")),
        ("a pattern that looks 24 back", pattern("^.*a.{24}$")),
        ("50,000 groups", pattern(&nested("(", ")", "a", 50_000))),
        ("a million characters", pattern("^(a|b|cd){1000000}$")),
    ]
}

/// Sends one; how long it took to be refused.
fn refused(daemon: &Daemon, name: &str, schema: &str) -> Duration {
    let body = format!(r#"{{"prompt":"x","max_tokens":16,"guided_json":{schema}}}"#);
    let headers = [("content-type", "application/json")];
    let start = Instant::now();
    let open = http::send(daemon.address, "POST", COMPLETIONS, &headers, body.as_bytes()).unwrap();
    let answer = open.finish().unwrap();
    let took = start.elapsed();
    assert_eq!(answer.status, 400, "{name}: {}", answer.text());
    let error = &answer.json()["error"];
    assert!(error["message"].as_str().is_some_and(|it| !it.is_empty()), "{name}: {error}");
    println!("{name}: {took:.1?}: {}", error["message"].as_str().unwrap());
    took
}

/// Reads one stream whole; the times between its pieces.
fn gaps_of_stream(daemon: &Daemon, script: &str) -> Vec<Duration> {
    let body = json!({"prompt": "x", "max_tokens": TOKENS, "stream": true});
    let mut open = http::open(daemon.address, COMPLETIONS, &body).unwrap();
    assert_eq!(open.status, 200);
    let (mut text, mut gaps, mut last) = (Vec::new(), Vec::new(), None);
    while let Some(chunk) = open.chunk().unwrap() {
        let now = Instant::now();
        gaps.extend(last.map(|last| now - last));
        last = Some(now);
        text.extend(chunk);
    }
    let events = http::events(std::str::from_utf8(&text).unwrap());
    assert_eq!(http::joined(&events, 0), script[..TOKENS]);
    assert!(events.iter().all(|event| event.get("error").is_none()));
    assert_eq!(events.last(), Some(&Value::from("[DONE]")));
    gaps
}

/// All streams at once; says how the times between their pieces are spread.
fn streams(daemon: &Daemon, script: &str, when: &str) {
    let mut gaps: Vec<Duration> = thread::scope(|scope| {
        let streams: Vec<_> =
            (0..STREAMS).map(|_| scope.spawn(|| gaps_of_stream(daemon, script))).collect();
        streams.into_iter().flat_map(|stream| stream.join().unwrap()).collect()
    });
    gaps.sort_unstable();
    let at = |share: usize| gaps[(gaps.len() - 1) * share / 1000];
    println!(
        "{STREAMS} streams {when}: a piece after {:.1?} (median), {:.1?} (p99), {:.1?} (longest)",
        at(500),
        at(990),
        at(1000)
    );
}

#[test]
fn hostile_schemas_are_refused_beside_streams() {
    let script: String = (0..TOKENS).map(|n| format!("{n} ")).collect();
    let device = format!(
        "fixed_us = 5000\nper_token_us = 0\nper_sequence_us = 0\nscript = {}",
        json!(script)
    );
    let daemon =
        Daemon::simulated(&device, "max_sessions = 16", "[model]\ncontext_tokens = 4096\n");
    let hostile = hostile();
    streams(&daemon, &script, "alone");
    let streaming = AtomicBool::new(true);
    // Every one at least once, and again while the streams last.
    let rounds = || {
        let mut longest = Duration::ZERO;
        loop {
            for (name, schema) in &hostile {
                longest = longest.max(refused(&daemon, name, schema));
            }
            if !streaming.load(Ordering::Relaxed) {
                return longest;
            }
        }
    };
    let longest = thread::scope(|scope| {
        let rounds = scope.spawn(rounds);
        streams(&daemon, &script, "beside hostile schemas");
        streaming.store(false, Ordering::Relaxed);
        rounds.join().unwrap()
    });
    println!("the slowest refusal took {longest:.1?}");
    daemon.all_zero();
}
