//! The commands that need no model: their output, errors and exit codes.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn pleach(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pleach"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn check_tells_what_a_good_file_comes_to() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    std::fs::write(&file, "device.kind = \"simulated\"\nserver.listen = \"0.0.0.0:0\"\n").unwrap();
    let output = pleach(&["check", file.to_str().unwrap()], "");
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).starts_with("ok\nlisten    0.0.0.0:0\n"));
    assert!(text(&output.stderr).starts_with("warning: server.listen is 0.0.0.0:0"));
}

#[test]
fn check_names_file_line_and_key_of_a_bad_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    std::fs::write(&file, "device.kind = \"simulated\"\n[limits]\nmax_sessions = 0\n").unwrap();
    let output = pleach(&["check", file.to_str().unwrap()], "");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stdout), "");
    let expected =
        format!("pleach: {}:3:1: limits.max_sessions must be 1 to 16384, not 0\n", file.display());
    assert_eq!(text(&output.stderr), expected);
}

#[test]
fn hash_key_prints_the_hash_alone() {
    let output = pleach(&["hash-key"], "abc\n");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        text(&output.stdout),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\n"
    );
    let nothing = pleach(&["hash-key"], "");
    assert_eq!(nothing.status.code(), Some(2));
}

#[test]
fn a_missing_model_says_what_to_do() {
    let output = pleach(&["serve"], "");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        text(&output.stderr),
        "pleach: model.path is not set: give --model FILE or set it in [model]\n"
    );
    let output = pleach(&["serve", "--model", "no/such.gguf"], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).starts_with("pleach: --model: model.path names no/such.gguf, which"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn inspect_refuses_what_is_no_model() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("text.gguf");
    std::fs::write(&file, "this is no model").unwrap();
    for path in [file.to_str().unwrap(), "no/such.gguf"] {
        let output = pleach(&["inspect", path], "");
        assert_eq!(output.status.code(), Some(1), "{path}");
        let error = text(&output.stderr);
        assert!(error.starts_with("pleach: ") && error.contains(path), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn usage_errors_exit_with_2() {
    for arguments in [&[][..], &["swim"], &["serve", "--listen", "here"]] {
        assert_eq!(pleach(arguments, "").status.code(), Some(2), "{arguments:?}");
    }
    assert_eq!(pleach(&["--version"], "").status.code(), Some(0));
}

#[test]
fn inspect_tells_what_the_small_model_is() {
    let Ok(model) = std::env::var("PLEACH_MODEL") else {
        eprintln!("skipped: PLEACH_MODEL is not set");
        return;
    };
    let output = pleach(&["inspect", &model, "--json"], "");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let facts: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(facts["architecture"].is_string() && facts["parameters"].as_u64() > Some(0));
    if model.contains("smollm2-135m-q4_1") {
        assert_eq!(facts["architecture"], "llama");
        assert_eq!(facts["file_type"], "Q4_1");
        assert_eq!(facts["parameters"], 134_515_008);
        assert_eq!(facts["kv_bytes_per_token"], 23_040);
        assert_eq!(facts["tokenizer"]["pre"], "smollm");
        assert_eq!(facts["tokenizer"]["tokens"], 49_152);
        let ends = facts["tokenizer"]["end_tokens"].as_array().unwrap();
        assert!(ends.iter().any(|end| end["text"] == "<|im_end|>"), "{ends:?}");
        assert!(facts["chat_template"]["first_line"].as_str().unwrap().starts_with("{% for"));
    }
    let shown = pleach(&["inspect", &model], "");
    assert_eq!(shown.status.code(), Some(0));
    assert!(text(&shown.stdout).contains("\nend tokens     "), "{}", text(&shown.stdout));
}
