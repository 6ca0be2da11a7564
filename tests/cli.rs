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
    let settings = "device.kind = \"simulated\"\nserver.probe_listen = \"127.0.0.1:9090\"\n";
    std::fs::write(&file, settings).unwrap();
    let output = pleach(&["check", file.to_str().unwrap()], "");
    let expected = "ok\nlisten    127.0.0.1:8080, probes at 127.0.0.1:9090\n";
    assert!(text(&output.stdout).starts_with(expected), "{}", text(&output.stdout));
    std::fs::write(&file, settings.replace("9090", "8080")).unwrap();
    let output = pleach(&["check", file.to_str().unwrap()], "");
    assert_eq!(output.status.code(), Some(2), "one address for both");
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

#[test]
fn grammar_check_says_where_a_text_leaves_the_grammar() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("list.gbnf");
    std::fs::write(&file, "root ::= item (\",\\n\" item)*\nitem ::= [a-z]+ | [0-9]{2}\n").unwrap();
    let file = file.to_str().unwrap();
    let check = |more: &[&str], input: &str| {
        pleach(&[&["grammar", "check", "--gbnf", file], more].concat(), input)
    };
    let good = check(&[], "ab,\n12,\nc");
    assert_eq!((good.status.code(), text(&good.stdout)), (Some(0), "accepted\n"));

    let bad = check(&["--json"], "ab,\n1x");
    assert_eq!(bad.status.code(), Some(1));
    assert_eq!(text(&bad.stderr), "");
    let report: serde_json::Value = serde_json::from_str(text(&bad.stdout)).unwrap();
    assert_eq!(report["accepted"], false);
    assert_eq!((&report["at_byte"], &report["line"]), (&5.into(), &2.into()));
    assert_eq!(report["complete"], false);
    assert!(report["expected"].to_string().contains('9'), "{report}");

    let open = check(&["--json"], "ab,\n");
    let report: serde_json::Value = serde_json::from_str(text(&open.stdout)).unwrap();
    assert_eq!((open.status.code(), &report["at_byte"]), (Some(1), &4.into()));
}

#[test]
fn a_wrong_grammar_is_a_usage_error_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.gbnf");
    std::fs::write(&file, "root ::= \"a\"\nb ::= \"open\n").unwrap();
    let output = pleach(&["grammar", "check", "--gbnf", file.to_str().unwrap()], "a");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("line 2"), "{}", text(&output.stderr));
    assert_eq!(pleach(&["grammar", "check"], "a").status.code(), Some(2));
    let two = ["grammar", "check", "--regex", "a", "--json-object"];
    assert_eq!(pleach(&two, "a").status.code(), Some(2));
}

#[test]
fn grammar_show_prints_texts_that_check_accepts() {
    let shown = pleach(&["grammar", "show", "--json-object", "--json"], "");
    assert_eq!(shown.status.code(), Some(0));
    let shown: serde_json::Value = serde_json::from_str(text(&shown.stdout)).unwrap();
    let samples = shown["samples"].as_array().unwrap();
    assert!(samples.len() > 2 && shown["nodes"].as_u64().unwrap() > 10);
    for sample in samples {
        let sample = sample.as_str().unwrap();
        assert!(serde_json::from_str::<serde_json::Value>(sample).unwrap().is_object());
        let output = pleach(&["grammar", "check", "--json-object"], sample);
        assert_eq!(output.status.code(), Some(0), "{sample}");
    }
}
