//! `pleach bench` against the real binary.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::process::{Command, Output};

use serde_json::Value;
use support::Daemon;

fn bench(url: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pleach"))
        .args(["bench", "--url", url])
        .args(arguments)
        .env_remove("OPENAI_API_KEY")
        .output()
        .unwrap()
}

fn report(url: &str, arguments: &[&str]) -> Value {
    let output = bench(url, &[arguments, &["--json"]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn daemon() -> Daemon {
    Daemon::simulated(
        "fixed_us = 200\nper_token_us = 1\nper_sequence_us = 1",
        "max_sessions = 8",
        "",
    )
}

#[test]
fn every_answer_is_counted_and_constrained_ones_are_judged() {
    let daemon = daemon();
    let url = format!("http://{}", daemon.address);
    for (workload, most) in [("chat", 40), ("long-prefix", 8), ("schema", 400)] {
        let most = most.to_string();
        // The simulated tokens are bytes.
        let sizes =
            ["--clients", "4", "--requests", "12", "--max-tokens", &most, "--prefix-words", "300"];
        let report = report(&url, &[&sizes[..], &["--workload", workload]].concat());
        assert_eq!((&report["workload"], &report["answers"]), (&workload.into(), &12.into()));
        assert_eq!(report["errors"], serde_json::json!({}));
        assert!(report["completion_tokens"].as_u64().unwrap() >= 12);
        assert!(report["tokens_per_second"].as_f64().unwrap() > 0.0);
        assert!(report["ttft_ms"]["p50"].as_f64().unwrap() > 0.0);
        let valid = if workload == "schema" { 12 } else { 0 };
        assert_eq!(report["constrained"]["valid"], valid, "{report}");
    }
    daemon.all_zero();
}

#[test]
fn a_report_for_people_has_a_line_for_each_figure() {
    let daemon = daemon();
    let url = format!("http://{}/v1", daemon.address);
    let output = bench(&url, &["--requests", "3", "--extra", "{\"max_tokens\": 5}"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("chat: 3 answers for 8 clients in "), "{text}");
    for part in ["  tokens       15 of answers", "tokens/s", "TTFT, ms", "ITL, ms", "3 length"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn what_cannot_be_measured_is_said_and_told_by_the_exit_code() {
    let daemon = daemon();
    let url = format!("http://{}", daemon.address);
    let cases: [(&str, &[&str], i32, &str); 5] = [
        ("https://127.0.0.1:1", &[], 2, "it is encrypted"),
        ("http://127.0.0.1:1", &[], 1, "is the server running?"),
        (&url, &["--model", "other"], 1, "the server answered 404: "),
        (&url, &["--extra", "[]"], 2, "--extra: it is not a JSON object"),
        (&url, &["--extra", "{\"max_tokens\": -1}"], 1, "the server answered 400: "),
    ];
    for (url, arguments, code, said) in cases {
        let output = bench(url, arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{error}");
        assert!(error.starts_with("pleach: ") && error.contains(said), "{error}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_key_is_taken_from_the_environment() {
    let keys = "[[auth.keys]]\nname = \"ann\"\nsha256 = \
                \"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"\n";
    let daemon = Daemon::simulated("fixed_us = 200", "", keys);
    let url = format!("http://{}", daemon.address);
    let error = String::from_utf8(bench(&url, &[]).stderr).unwrap();
    assert!(error.contains("401") && error.contains("(set OPENAI_API_KEY)"), "{error}");
    let output = Command::new(env!("CARGO_BIN_EXE_pleach"))
        .args(["bench", "--url", &url, "--requests", "2", "--max-tokens", "3"])
        .env("OPENAI_API_KEY", "abc")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}
