//! Many schemas against the real binary with the real small model: answers and the arguments of calls
//! are judged by a validator that knows nothing of the grammar. Skipped, with a line that says so,
//! where the machine has no model, no Python with `openai`, or no sample of schemas.
//!
//! `PLEACH_TEST_REQUESTS=200` sends so many requests; by default they are few, since each takes
//! seconds.

#![cfg(feature = "ggml")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};
use support::Daemon;

const CHAT: &str = "/v1/chat/completions";
const MAX_TOKENS: usize = 256;
const CLIENTS: usize = 8;

/// With a chat template of ours, if any. A build for debugging compiles slowly: the limit in steps
/// decides, not the clock.
fn daemon(model: &Path, template: Option<&Path>) -> Daemon {
    let template =
        template.map_or(String::new(), |path| format!("chat_template = {}\n", json!(path)));
    Daemon::start(&format!(
        "[model]\npath = {}\n{template}context_tokens = 2048\n\
         [device]\nrepeatable = \"on\"\nthreads = 1\n\
         [grammar]\ncompile_deadline_ms = 120000\n",
        json!(model)
    ))
}

fn judge(schema: &Value) -> Result<jsonschema::Validator, String> {
    let options = jsonschema::options().should_validate_formats(true);
    options.build(schema).map_err(|error| error.to_string())
}

/// Why a text is no answer to a schema.
fn fault(judge: &jsonschema::Validator, text: &str) -> Option<String> {
    match serde_json::from_str(text) {
        Ok(value) => judge.validate(&value).err().map(|error| error.to_string()),
        Err(error) => Some(error.to_string()),
    }
}

#[test]
fn calls_of_many_schemas_by_the_openai_client() {
    let Some(model) = support::model() else { return };
    let Some(python) = support::python() else { return };
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let daemon = daemon(&model, Some(&tests.join("support/hermes.jinja")));
    assert!(daemon.log_text().contains("chat format: hermes_json"), "{}", daemon.log_text());
    let output = Command::new(python)
        .arg(tests.join("python/openai_tool_schemas.py"))
        .arg(format!("http://{}/v1", daemon.address))
        .arg(support::requests(12).to_string())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}\nthe daemon's log:\n{}", daemon.log_text());
    let calls: Vec<Value> =
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let faults: Vec<String> = calls
        .iter()
        .filter_map(|call| {
            let judge = judge(&call["schema"]).unwrap();
            let fault = fault(&judge, call["arguments"].as_str().unwrap())?;
            Some(format!("{fault}: {call}"))
        })
        .collect();
    println!("{}{} calls, {} not valid", said, calls.len(), faults.len());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(calls.len() >= support::requests(12));
    daemon.all_zero();
}

/// How the answer to one schema ended.
enum End {
    Valid,
    /// No complete answer fits in the tokens.
    TooLong,
    /// The schema was refused: why.
    Refused(String),
    Fault(String),
}

fn fill_in(daemon: &Daemon, index: usize, schema: &Value) -> End {
    let body = json!({
        "messages": [{"role": "user", "content": "fill this in"}],
        "max_tokens": MAX_TOKENS, "temperature": index % 2, "seed": index,
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}},
    });
    let answer = daemon.post(CHAT, &body);
    let json = answer.json();
    if answer.status == 200 {
        let text = json.pointer("/choices/0/message/content").and_then(Value::as_str);
        let Some(text) = text else { return End::Fault(json.to_string()) };
        return match judge(schema) {
            Ok(judge) => match fault(&judge, text) {
                Some(fault) => End::Fault(format!("{fault}: {json}")),
                None => End::Valid,
            },
            Err(error) => End::Fault(format!("the judge refuses what Pleach takes: {error}")),
        };
    }
    let error = &json["error"];
    match (answer.status, error["code"].as_str()) {
        (400, Some("max_tokens_too_small")) => End::TooLong,
        (400, Some("invalid_json_schema" | "grammar_too_complex" | "invalid_grammar")) => {
            End::Refused(error["message"].as_str().unwrap().to_owned())
        }
        _ => End::Fault(format!("{}: {json}", answer.status)),
    }
}

/// Names and schemas, spread over the sample.
fn sample(count: usize) -> Option<Vec<(String, Value)>> {
    let Some(shared) = std::env::var_os("PLEACH_SHARED") else {
        eprintln!("skipped: no sample of schemas (set PLEACH_SHARED)");
        return None;
    };
    let lines = PathBuf::from(shared).join("data/maskbench/sample_1200.jsonl");
    let lines = std::fs::read_to_string(lines).unwrap();
    let lines: Vec<&str> = lines.lines().collect();
    let read = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let schema = serde_json::from_str(line["schema"].as_str().unwrap()).unwrap();
        (line["id"].as_str().unwrap().to_owned(), schema)
    };
    Some((0..count).map(|index| read(lines[index * lines.len() / count])).collect())
}

#[test]
fn answers_to_schemas_of_the_sample() {
    let Some(model) = support::model() else { return };
    let Some(sample) = sample(support::requests(16)) else { return };
    let daemon = daemon(&model, None);
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut ends = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some((name, schema)) = sample.get(index) else { return ends };
            ends.push((name, fill_in(&daemon, index, schema)));
        }
    };
    let ends: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let (mut valid, mut too_long, mut refused, mut faults) = (0, 0, 0, Vec::new());
    for (name, end) in ends {
        match end {
            End::Valid => valid += 1,
            End::TooLong => too_long += 1,
            End::Refused(why) => {
                println!("refused {name}: {why}");
                refused += 1;
            }
            End::Fault(fault) => faults.push(format!("{name}: {fault}")),
        }
    }
    println!(
        "{} schemas: {valid} valid, {too_long} do not fit in {MAX_TOKENS} tokens, {refused} refused, \
         {} faults",
        sample.len(),
        faults.len()
    );
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(2 * valid > sample.len(), "most schemas of the sample fit");
    daemon.all_zero();
}
