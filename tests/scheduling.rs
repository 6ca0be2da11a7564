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

fn ask(daemon: &Daemon, key: &str, body: &Value) -> String {
    let answer = open(daemon, key, body).finish().unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["choices"][0]["text"].as_str().unwrap().to_owned()
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

fn the_text_is_the_same_whatever_happens(daemon: &Daemon, sessions: usize) {
    const HITS: &str = "pleach_prefix_cache_hits_total";
    let system = "You are a helpful assistant who answers in short and plain words. ".repeat(8);
    let request = |question: &str, tokens: u32, seed: u32| {
        json!({"prompt": format!("{system}{question}"), "max_tokens": tokens, "seed": seed,
               "temperature": 0.9, "top_p": 0.95, "ignore_eos": true})
    };
    let asked = request("Tell me about cats.", 30, 11);
    let mut streamed = asked.clone();
    streamed["stream"] = true.into();

    let alone = ask(daemon, ANN, &asked);
    assert_eq!(ask(daemon, ANN, &asked), alone, "after a prefix hit");
    wait_for(daemon, HITS, 64.0);
    ask(daemon, BOB, &request("Tell me about dogs.", 2, 1));
    assert_eq!(ask(daemon, ANN, &asked), alone, "after a hit of the system prompt alone");

    let long = &|seed: usize| {
        let mut body = request("Write about the sea. ", 400, u32::try_from(seed).unwrap());
        body["prompt"] = format!("{seed} {}", body["prompt"].as_str().unwrap()).into();
        body["stream"] = true.into();
        open(daemon, ANN, &body)
    };
    let others: Vec<http::Open> = (1..sessions).map(long).collect();
    assert_eq!(ask(daemon, ANN, &asked), alone, "among {} others", sessions - 1);
    drop(others);

    let before = daemon.metric("pleach_num_preemptions_total");
    let others: Vec<http::Open> = (1..sessions).map(long).collect();
    let mut youngest = open(daemon, ANN, &streamed);
    let mut said = youngest.chunk().unwrap().expect("it has begun");
    std::thread::scope(|scope| {
        // They keep every slot taken, also once the youngest is done.
        let later = [100, 101, 102].map(|seed| scope.spawn(move || long(seed)));
        for seed in 0..4 {
            ask(daemon, BOB, &request("Tell me about dogs.", 2, seed));
        }
        wait_for(daemon, "pleach_num_preemptions_total", before + 1.0);
        drop(later.map(|one| one.join().unwrap()));
    });
    while let Some(chunk) = youngest.chunk().unwrap() {
        said.extend(chunk);
    }
    let events = http::events(&String::from_utf8(said).unwrap());
    assert_eq!(http::joined(&events, 0), alone, "after it made way and went on");
    drop(others);
    daemon.all_zero();
}

#[test]
fn the_simulated_device_says_the_same_whatever_happens() {
    let device = "[device]\nkind = \"simulated\"\n[device.simulated]\nfixed_us = 3000\n\
                  per_token_us = 10\nper_sequence_us = 0\n";
    the_text_is_the_same_whatever_happens(&Daemon::start(&settings(16, device)), 16);
}

#[cfg(feature = "ggml")]
#[test]
fn the_small_model_says_the_same_whatever_happens() {
    let Some(model) = support::model() else { return };
    let model = format!(
        "[model]\npath = {:?}\ncontext_tokens = 1024\n[device]\nrepeatable = \"on\"\nthreads = 1\n",
        model.display().to_string()
    );
    the_text_is_the_same_whatever_happens(&Daemon::start(&settings(6, &model)), 6);
}
