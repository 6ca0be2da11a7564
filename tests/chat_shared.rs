//! Real templates and answers, where they are at hand: `PLEACH_SHARED` names their folder.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pleach::chat::detect::{ModelFiles, detect};
use pleach::chat::formats;
use pleach::chat::parse::{ChatMessage, ChatStream, ParseOptions, ToolSet, parse};
use pleach::chat::template::ChatTemplate;
use pleach::vocab::{SpecialTokens, TextAssembler, Tokenizer};
use serde_json::{Value, json};

fn shared() -> Option<PathBuf> {
    let folder = std::env::var_os("PLEACH_SHARED").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("skipped: PLEACH_SHARED is not set");
    }
    folder
}

/// Labels of reasoning that are neither yes nor no: what the template does is no sign of the model.
const EITHER: [&str; 2] = ["template strips </think> only", "template-only"];

#[test]
fn templates_are_told_as_they_are_labelled() {
    let Some(shared) = shared() else { return };
    let folder = shared.join("data/templates");
    let table = std::fs::read_to_string(folder.join("MANIFEST.tsv")).unwrap();
    let mut lines = table.lines();
    let columns: Vec<&str> = lines.next().unwrap().split('\t').collect();
    let column = |name: &str| columns.iter().position(|column| *column == name).unwrap();
    let (file, kind, reasoning) =
        (column("file"), column("expected_kind"), column("expected_reasoning"));
    let (mut all, mut misses, mut wrong) = (0, Vec::new(), Vec::new());
    for line in lines {
        let cells: Vec<&str> = line.split('\t').collect();
        let source = std::fs::read_to_string(folder.join(cells[file])).unwrap();
        let template = ChatTemplate::compile(&source).unwrap();
        let files = ModelFiles {
            source: &source,
            template: &template,
            vocabulary: None,
            response_template: None,
        };
        let format = detect(&files).format;
        all += 1;
        if format.kind != cells[kind] {
            misses.push(format!("{}: {}, not {}", cells[file], format.kind, cells[kind]));
        }
        let is_sure = !EITHER.iter().any(|label| cells[reasoning].starts_with(label));
        if is_sure && cells[reasoning].starts_with("yes") != format.reasoning.is_some() {
            wrong.push(format!("{}: {}", cells[file], cells[reasoning]));
        }
    }
    assert!(misses.len() * 50 <= all, "{} of {all}: {misses:#?}", misses.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

struct Example {
    name: String,
    prefill: String,
    raw: String,
    expected: Value,
}

fn examples(shared: &Path) -> (Arc<ToolSet>, Vec<Example>) {
    let text = std::fs::read_to_string(shared.join("data/chat_examples.json")).unwrap();
    let data: Value = serde_json::from_str(&text).unwrap();
    let tools = ToolSet::from_request(data["tools"].as_array().unwrap());
    let example = |(name, example): (&String, &Value)| Example {
        name: name.clone(),
        prefill: example["prefill"].as_str().unwrap().to_owned(),
        raw: example["raw"].as_str().unwrap().to_owned(),
        expected: example["expect"].clone(),
    };
    (Arc::new(tools), data["examples"].as_object().unwrap().iter().map(example).collect())
}

fn check(example: &Example, message: &ChatMessage, how: &str) {
    let calls: Vec<Value> = message
        .tool_calls
        .iter()
        .map(|call| {
            let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
            json!({"name": call.name, "arguments": arguments})
        })
        .collect();
    let read = json!({"reasoning": message.reasoning, "content": message.content, "calls": calls});
    assert_eq!(read, example.expected, "{} {how}", example.name);
}

#[test]
fn every_example_is_read_however_it_comes() {
    let Some(shared) = shared() else { return };
    let (tools, examples) = examples(&shared);
    assert_eq!(examples.len(), 34);
    for example in &examples {
        let format = Arc::new(formats::named(&example.name).unwrap());
        let options = ParseOptions {
            tools: Arc::clone(&tools),
            prefill: example.prefill.clone(),
            ..Default::default()
        };
        check(example, &parse(&format, &example.raw, false, &options), "whole");
        let streamed = |pieces: &[&str]| {
            let mut stream = ChatStream::new(&format, options.clone());
            pieces.iter().for_each(|piece| drop(stream.push(piece)));
            stream.finish();
            stream.message()
        };
        check(example, &streamed(&example.raw.split("").collect::<Vec<_>>()), "by letters");
        for (cut, _) in example.raw.char_indices() {
            let (left, right) = example.raw.split_at(cut);
            check(example, &streamed(&[left, right]), &format!("cut at {cut}"));
        }
    }
}

/// What a grammar is read from is written as the models write, letter by letter.
#[test]
fn written_calls_are_those_of_the_examples() {
    let Some(shared) = shared() else { return };
    // `True`, quotes, ids, numbers and indents that are the model's own.
    let varied = ["qwen_xml", "lfm2_pythonic", "cohere_action", "kimi_k3", "cohere_md"];
    for example in examples(&shared).1 {
        let format = formats::named(&example.name).unwrap();
        let ids = ["a1b2c3d4e", "f5g6h7i8j"];
        let calls: Vec<Value> = example.expected["calls"]
            .as_array()
            .unwrap()
            .iter()
            .zip(ids)
            .map(|(call, id)| json!({"id": id, "type": "function", "function": call}))
            .collect();
        let written = format.write_calls(&calls);
        let is_varied = varied.contains(&example.name.as_str());
        assert!(is_varied || example.raw.contains(&written), "{}: {written}", example.name);
    }
}

#[test]
fn every_example_is_read_token_by_token() {
    let Some(shared) = shared() else { return };
    let (tools, examples) = examples(&shared);
    for folder in ["qwen3", "llama3_1"] {
        let file = shared.join("data/tokenizers").join(folder).join("tokenizer.json");
        let tokenizer = Tokenizer::from_json_file(&file).unwrap();
        for example in &examples {
            let format = Arc::new(formats::named(&example.name).unwrap());
            let options = ParseOptions {
                tools: Arc::clone(&tools),
                prefill: example.prefill.clone(),
                ..Default::default()
            };
            let mut stream = ChatStream::new(&format, options);
            let mut text = TextAssembler::new();
            for token in tokenizer.encode(&example.raw, SpecialTokens::Parse).unwrap() {
                stream.push(&text.push(&tokenizer.decode_bytes(&[token])));
            }
            stream.push(&text.finish());
            stream.finish();
            check(example, &stream.message(), folder);
        }
    }
}
