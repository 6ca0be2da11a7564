//! The grammar of a chat format against its parser: what is written along the grammar is read as
//! what was asked for.

// Helpers of tests count as tests.
#![allow(clippy::unwrap_used)]

mod tag_support;

use pleach::chat::constraint::Wish;
use pleach::chat::format::ChatFormat;
use pleach::chat::formats::{families, named};
use pleach::chat::parse::ChatMessage;
use pleach::grammar::StructuralTag;
use pleach::grammar::json_schema::{Dialect, SchemaOptions};
use pleach::grammar::structural_tag::SchemaLeaf;
use serde_json::{Value, json};
use tag_support::{Case, Markers, functions, tools};

/// What a request may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    Auto,
    AutoOne,
    Required,
    Named,
    None,
    Schema,
    SchemaOrCalls,
}

const ASKS: [Ask; 7] = [
    Ask::Auto,
    Ask::AutoOne,
    Ask::Required,
    Ask::Named,
    Ask::None,
    Ask::Schema,
    Ask::SchemaOrCalls,
];

/// Answers written for each case, unless `PLEACH_TAG_WALKS` says how many.
const WALKS: usize = 3;

fn answer_schema() -> Value {
    json!({"type": "object", "properties": {"c": {"type": "string"}, "n": {"type": "integer"}},
           "required": ["c"], "additionalProperties": false})
}

fn wish(ask: Ask) -> Wish {
    let content = StructuralTag::Schema(SchemaLeaf {
        schema: answer_schema().to_string(),
        options: SchemaOptions::default(),
        dialect: Dialect::Json,
        place: String::new(),
    });
    let functions = functions(&tools());
    match ask {
        Ask::Auto => Wish { functions, ..Wish::default() },
        Ask::AutoOne => Wish { functions, one_call: true, ..Wish::default() },
        Ask::Required => Wish { functions, must_call: true, ..Wish::default() },
        Ask::Named => Wish {
            functions: functions.into_iter().filter(|it| it.name == "dye").collect(),
            must_call: true,
            one_call: true,
            ..Wish::default()
        },
        Ask::None => Wish { no_calls: true, ..Wish::default() },
        Ask::Schema => Wish { content: Some(content), ..Wish::default() },
        Ask::SchemaOrCalls => Wish { functions, content: Some(content), ..Wish::default() },
    }
}

/// What is wrong with an answer.
fn judge(ask: Ask, message: &ChatMessage) -> Result<(), String> {
    let schema = |name: &str| {
        let tool = tools().into_iter().find(|tool| tool["function"]["name"] == name).unwrap();
        tool["function"]["parameters"].clone()
    };
    for call in &message.tool_calls {
        let Ok(arguments) = serde_json::from_str::<Value>(&call.arguments) else {
            return Err(format!("no JSON: {}", call.arguments));
        };
        if !call.complete {
            return Err(format!("a broken call of {}", call.name));
        }
        if !jsonschema::is_valid(&schema(&call.name), &arguments) {
            return Err(format!("invalid arguments of {}: {arguments}", call.name));
        }
    }
    let calls = message.tool_calls.len();
    let content = || serde_json::from_str::<Value>(&message.content).ok();
    let is_valid = || content().is_some_and(|it| jsonschema::is_valid(&answer_schema(), &it));
    match ask {
        Ask::Auto => Ok(()),
        Ask::AutoOne if calls > 1 => Err(format!("{calls} calls")),
        Ask::AutoOne => Ok(()),
        Ask::Required if calls == 0 => Err("no call".to_owned()),
        Ask::Named if calls != 1 || message.tool_calls[0].name != "dye" => {
            Err(format!("{calls} calls, or of another"))
        }
        Ask::Required | Ask::Named if !message.content.is_empty() => Err("content".to_owned()),
        Ask::Required | Ask::Named => Ok(()),
        Ask::None if calls > 0 => Err("a call".to_owned()),
        Ask::None => Ok(()),
        Ask::Schema | Ask::SchemaOrCalls if calls == 0 && !is_valid() => {
            Err(format!("content {:?}", message.content))
        }
        Ask::Schema if calls > 0 => Err("a call".to_owned()),
        Ask::SchemaOrCalls if calls > 0 && !message.content.is_empty() => Err("both".to_owned()),
        Ask::Schema | Ask::SchemaOrCalls => Ok(()),
    }
}

/// What the prompt may have opened: nothing, the thinking, or thinking that is over.
fn prefills(format: &ChatFormat) -> Vec<String> {
    if let Some(channels) = &format.channels {
        return vec![format!("<|end|>{}", channels.next)];
    }
    let mut prefills = vec!["<|head|>assistant\n".to_owned()];
    if let Some(reasoning) = &format.reasoning {
        let (open, close) = (&reasoning.open, &reasoning.close);
        prefills.push(format!("<|head|>{open}{}", reasoning.gap_after_open));
        prefills.push(format!("<|head|>{open}\n\n{close}\n\n"));
    }
    if format.kind == "functionary_v3_2" {
        prefills.push("<|head|>\n\n>>>".to_owned());
    }
    prefills
}

#[test]
fn what_is_written_along_the_grammar_is_read_as_asked_for() {
    let walks = std::env::var("PLEACH_TAG_WALKS").ok().and_then(|it| it.parse().ok());
    let only = std::env::var("PLEACH_TAG_FORMAT").ok();
    let (mut wrong, mut answers, mut called, mut turn) = (Vec::new(), 0, 0, 0);
    for family in families() {
        if only.as_ref().is_some_and(|only| family.name != only) {
            continue;
        }
        let format = named(family.name).unwrap();
        for ask in ASKS {
            let wants_calls = !matches!(ask, Ask::Schema | Ask::None);
            if format.tools.is_none() && wants_calls {
                continue;
            }
            for prefill in prefills(&format) {
                turn += 1;
                // All of them where walks are asked for, else one after the other.
                let kinds = [Markers::Spelled, Markers::UserDefined, Markers::Control];
                let kinds = kinds.into_iter().enumerate();
                let kinds = kinds.filter(|(kind, _)| walks.is_some() || turn % 3 == *kind);
                for (_, markers) in kinds {
                    let what = format!("{} {ask:?} {prefill:?} {markers:?}", family.name);
                    let case = match Case::new(&format, wish(ask), &prefill, markers) {
                        Ok(Some(case)) => case,
                        Ok(None) => continue,
                        Err(error) => {
                            wrong.push(format!("{what}: {error}"));
                            continue;
                        }
                    };
                    for seed in 0..walks.unwrap_or(WALKS) {
                        let mut rng = fastrand::Rng::with_seed(seed as u64);
                        let tokens_max = 400 + rng.u32(..200);
                        let text = match case.walk(&mut rng, tokens_max) {
                            Ok(text) => text,
                            Err(error) => {
                                wrong.push(format!("{what}: {error}"));
                                break;
                            }
                        };
                        let message = case.read(&text);
                        answers += 1;
                        called += message.tool_calls.len();
                        if let Err(error) = judge(ask, &message) {
                            wrong.push(format!("{what}: {error}\n    {text:?}"));
                            break;
                        }
                    }
                }
            }
        }
    }
    let shown: Vec<&String> = wrong.iter().take(40).collect();
    assert!(wrong.is_empty(), "{} of {answers} are wrong: {shown:#?}", wrong.len());
    assert!(only.is_some() || (called > 200 && answers > 1000), "{called} calls in {answers}");
}

/// The folder with what is only at hand on some machines.
fn shared() -> Option<std::path::PathBuf> {
    let shared = std::env::var_os("PLEACH_SHARED").map(std::path::PathBuf::from);
    if shared.is_none() {
        eprintln!("skipped: PLEACH_SHARED names no folder with examples");
    }
    shared
}

#[test]
fn every_example_is_an_answer_of_its_own_grammar() {
    let Some(shared) = shared() else { return };
    let text = std::fs::read_to_string(shared.join("data/chat_examples.json")).unwrap();
    let data: Value = serde_json::from_str(&text).unwrap();
    let functions = functions(data["tools"].as_array().unwrap());
    let mut wrong = Vec::new();
    for (name, example) in data["examples"].as_object().unwrap() {
        let format = named(name).unwrap();
        let (prefill, raw) =
            (example["prefill"].as_str().unwrap(), example["raw"].as_str().unwrap());
        for markers in [Markers::Spelled, Markers::UserDefined, Markers::Control] {
            let wish = Wish { functions: functions.clone(), ..Wish::default() };
            let case = Case::new(&format, wish, prefill, markers).unwrap().unwrap();
            if let Err(error) = case.follow(raw) {
                wrong.push(format!("{name} {markers:?}: {error}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}: {wrong:#?}", wrong.len());
}
