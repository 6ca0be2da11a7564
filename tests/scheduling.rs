//! What the scheduler promises, by the real binary: the same request and seed give the same text
//! alone, after a prefix hit, among others, and after having made way for somebody else.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Daemon, http};

const COMPLETIONS: &str = "/v1/completions";

/// Two clients, who are known by their keys.
fn settings(sessions: usize, rest: &str) -> String {
    let key = |name: &str, sha256: &str| {
        format!("[[auth.keys]]\nname = \"{name}\"\nsha256 = \"{sha256}\"\n")
    };
    format!(
        "[server]\npublic_metrics = true\n[limits]\nmax_sessions = {sessions}\n{}{}{rest}",
        key("ann", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        key("bob", "a52d159f262b2c6ddb724a61840befc36eb30c88877a4030b65cbe86298449c9"),
    )
}

const ANN: &str = "Bearer abc";
const BOB: &str = "Bearer abd";

fn open(daemon: &Daemon, key: &str, body: &Value) -> http::Open {
    let headers = [("content-type", "application/json"), ("authorization", key)];
    let body = body.to_string();
    http::send(daemon.address, "POST", COMPLETIONS, &headers, body.as_bytes()).unwrap()
}

fn whole(daemon: &Daemon, key: &str, body: &Value) -> Value {
    let answer = open(daemon, key, body).finish().unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

fn ask(daemon: &Daemon, key: &str, body: &Value) -> String {
    whole(daemon, key, body)["choices"][0]["text"].as_str().unwrap().to_owned()
}

/// Tokens of the prompt, and those of them that were computed before.
fn cached(answer: &Value) -> (u64, u64) {
    let usage = &answer["usage"];
    let cached = &usage["prompt_tokens_details"]["cached_tokens"];
    (usage["prompt_tokens"].as_u64().unwrap(), cached.as_u64().unwrap())
}

/// Metrics are published ten times a second.
fn wait_for(daemon: &Daemon, metric: &str, least: f64) {
    let end = Instant::now() + Duration::from_secs(20);
    while daemon.metric(metric) < least {
        let found = daemon.metric(metric);
        assert!(Instant::now() < end, "{metric} is {found}: {}", daemon.log_text());
        std::thread::sleep(Duration::from_millis(20));
    }
}

const SYSTEM: &str = "You are a helpful assistant who answers in short and plain words. ";

/// Much text without a choice, and some with.
const FORM: &str = r#"root ::= line{3}
line ::= "{\"kind\": \"measurement\", \"value\": " [0-9]{2} ", \"colour\": \"" [a-z]{3,8} "\"}\n""#;

fn request(question: &str, tokens: u32, seed: u32) -> Value {
    json!({"prompt": format!("{}{question}", SYSTEM.repeat(8)), "max_tokens": tokens, "seed": seed,
           "temperature": 0.9, "top_p": 0.95, "ignore_eos": true})
}

/// One whose answer is free, one that says things again, and one held to a grammar.
fn requests() -> [Value; 3] {
    let mut again = request("Say it again: the cat sat on the mat, the cat sat on", 30, 5);
    again["temperature"] = 0.3.into();
    let mut held = request("Tell me about cats.", 200, 3);
    held["grammar"] = FORM.into();
    held["ignore_eos"] = false.into();
    [request("Tell me about cats.", 30, 11), again, held]
}

/// Streams that take every other slot.
fn others(daemon: &Daemon, sessions: usize) -> Vec<http::Open> {
    (1..sessions).map(|seed| long(daemon, seed)).collect()
}

fn long(daemon: &Daemon, seed: usize) -> http::Open {
    let mut body = request("Write about the sea. ", 400, u32::try_from(seed).unwrap());
    body["prompt"] = format!("{seed} {}", body["prompt"].as_str().unwrap()).into();
    body["stream"] = true.into();
    open(daemon, ANN, &body)
}

/// What a request is answered with, which has to be the same each time.
fn the_text_is_the_same_whatever_happens(
    daemon: &Daemon,
    sessions: usize,
    asked: &Value,
) -> String {
    const HITS: &str = "pleach_prefix_cache_hits_total";
    let alone = ask(daemon, ANN, asked);
    assert_eq!(ask(daemon, ANN, asked), alone, "after a prefix hit");
    wait_for(daemon, HITS, 64.0);
    let (prompt, cached) = cached(&whole(daemon, ANN, asked));
    assert!((64..prompt).contains(&cached), "{cached} of {prompt} tokens");
    ask(daemon, BOB, &request("Tell me about dogs.", 2, 1));
    assert_eq!(ask(daemon, ANN, asked), alone, "after a hit of the system prompt alone");

    let beside = others(daemon, sessions);
    assert_eq!(ask(daemon, ANN, asked), alone, "among {} others", sessions - 1);
    drop(beside);
    assert_eq!(made_way(daemon, sessions, asked), alone, "after it made way and went on");
    daemon.all_zero();
    alone
}

/// The text of one that is the youngest among others when somebody else comes.
fn made_way(daemon: &Daemon, sessions: usize, asked: &Value) -> String {
    const PREEMPTIONS: &str = "pleach_num_preemptions_total";
    let before = daemon.metric(PREEMPTIONS);
    let beside = others(daemon, sessions);
    let mut streamed = asked.clone();
    streamed["stream"] = true.into();
    let mut youngest = open(daemon, ANN, &streamed);
    let mut said = youngest.chunk().unwrap().expect("it has begun");
    std::thread::scope(|scope| {
        // They keep every slot taken, also once the youngest is done.
        let later = [100, 101, 102].map(|seed| scope.spawn(move || long(daemon, seed)));
        for seed in 0..4 {
            ask(daemon, BOB, &request("Tell me about dogs.", 2, seed));
        }
        wait_for(daemon, PREEMPTIONS, before + 1.0);
        drop(later.map(|one| one.join().unwrap()));
    });
    while let Some(chunk) = youngest.chunk().unwrap() {
        said.extend(chunk);
    }
    drop(beside);
    http::joined(&http::events(&String::from_utf8(said).unwrap()), 0)
}

const SIMULATED: &str = "[device.simulated]\nfixed_us = 3000\nper_token_us = 10\n\
                         per_sequence_us = 0\n";

#[test]
fn the_simulated_device_says_the_same_whatever_happens() {
    for drafts in [0, 6] {
        let device =
            format!("[device]\nkind = \"simulated\"\ndraft_tokens = {drafts}\n{SIMULATED}");
        let daemon = Daemon::start(&settings(16, &device));
        for asked in requests() {
            the_text_is_the_same_whatever_happens(&daemon, 16, &asked);
        }
    }
}

/// Alone, after a prefix hit, among 15 others, having made way, all with forced runs: the same, and
/// the same once more where drafts are computed.
#[cfg(feature = "ggml")]
#[test]
fn the_small_model_says_the_same_whatever_happens() {
    let Some(model) = support::model() else { return };
    let start = |sessions, device: &str| {
        let model = format!(
            "[model]\npath = {:?}\ncontext_tokens = 768\n[device]\nrepeatable = \"on\"\n\
             threads = 1\n{device}\n",
            model.display().to_string()
        );
        Daemon::start(&settings(sessions, &model))
    };
    let daemon = start(16, "");
    let said = requests().map(|asked| the_text_is_the_same_whatever_happens(&daemon, 16, &asked));
    assert!(daemon.metric("pleach_grammar_forced_tokens_total") > 50.0);
    drop(daemon);

    let drafting = start(3, "draft_tokens = 8");
    for others in 0..2 {
        let beside: Vec<_> = (0..others).map(|seed| long(&drafting, seed)).collect();
        let texts = requests().map(|asked| ask(&drafting, ANN, &asked));
        assert_eq!(texts, said, "with drafts, beside {}", beside.len());
    }
    wait_for(&drafting, "pleach_spec_decode_num_accepted_tokens_total", 1.0);
}
