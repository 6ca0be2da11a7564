//! Answers that cannot leave their grammar: the real binary on the simulated device, which says
//! whatever it likes and would never say anything legal by itself.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use serde_json::{Value, json};
use support::{Daemon, http};

const COMPLETIONS: &str = "/v1/completions";
const CHAT: &str = "/v1/chat/completions";

fn daemon(rest: &str) -> Daemon {
    Daemon::simulated(
        "fixed_us = 0\nper_token_us = 0\nper_sequence_us = 0",
        "max_sessions = 8",
        rest,
    )
}

fn ask(daemon: &Daemon, more: &Value) -> Value {
    let mut body = json!({"prompt": "say", "max_tokens": 60, "temperature": 8.0, "seed": 3});
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    let whole = daemon.ask(COMPLETIONS, &body);
    body["stream"] = true.into();
    let streamed = http::joined(&daemon.stream(COMPLETIONS, &body), 0);
    assert_eq!(streamed, whole["choices"][0]["text"].as_str().unwrap());
    whole
}

fn text(answer: &Value) -> &str {
    answer["choices"][0]["text"].as_str().unwrap()
}

fn refusal(daemon: &Daemon, more: &Value) -> Value {
    let mut body = json!({"prompt": "say", "max_tokens": 60});
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    let answer = daemon.post(COMPLETIONS, &body);
    assert_eq!(answer.status, 400, "{more}: {}", answer.text());
    answer.json()["error"].clone()
}

#[test]
fn every_spelling_constrains() {
    let daemon = daemon("");
    let date = "[0-9]{4}-[01][0-9]-[0-3][0-9]";
    let gbnf = "root ::= \"<\" [a-z]+ \">\" | \"[\" [0-9]{3} \"]\"";
    for (more, legal) in [
        (json!({"guided_regex": date}), date),
        (json!({"structured_outputs": {"regex": date}}), date),
        (json!({"guided_choice": ["alpha", "beta"]}), "alpha|beta"),
        (json!({"structured_outputs": {"choice": ["alpha", "beta"]}}), "alpha|beta"),
        (json!({"grammar": gbnf}), "<[a-z]+>|\\[[0-9]{3}\\]"),
        (json!({"guided_grammar": gbnf}), "<[a-z]+>|\\[[0-9]{3}\\]"),
        (json!({"structured_outputs": {"grammar": gbnf}}), "<[a-z]+>|\\[[0-9]{3}\\]"),
    ] {
        let legal = regex_lite(legal);
        let answer = ask(&daemon, &more);
        assert!(legal(text(&answer)), "{more}: {answer}");
        assert_eq!(answer["choices"][0]["finish_reason"], "stop", "{more}: {answer}");
    }
    for more in [
        json!({"response_format": {"type": "json_object"}}),
        json!({"structured_outputs": {"json_object": true}}),
    ] {
        let answer = ask(&daemon, &more);
        assert!(serde_json::from_str::<Value>(text(&answer)).unwrap().is_object(), "{answer}");
        assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    }
    assert_eq!(
        ask(&daemon, &json!({"response_format": {"type": "text"}}))["choices"][0]["finish_reason"],
        "length"
    );
    daemon.all_zero();
}

#[test]
fn every_spelling_of_a_schema_constrains() {
    let daemon = daemon("");
    let schema = json!({
        "type": "object",
        "properties": {
            "id": {"type": "integer", "minimum": 5, "maximum": 90},
            "tag": {"enum": ["one", "two"]},
            "ok": {"type": "boolean"}
        },
        "required": ["id", "tag"],
        "additionalProperties": false
    });
    let judge = jsonschema::validator_for(&schema).unwrap();
    let named = json!({"name": "answer", "strict": true, "schema": schema});
    for more in [
        json!({"response_format": {"type": "json_schema", "json_schema": named}}),
        json!({"response_format": {"type": "json_object", "schema": schema}}),
        json!({"json_schema": schema}),
        json!({"guided_json": schema}),
        json!({"guided_json": schema.to_string(), "property_order": "any"}),
        json!({"structured_outputs": {"json": schema, "disable_any_whitespace": true}}),
    ] {
        let answer = ask(&daemon, &more);
        let value: Value = serde_json::from_str(text(&answer)).unwrap();
        assert!(judge.is_valid(&value), "{more}: {answer}");
        assert_eq!(answer["choices"][0]["finish_reason"], "stop", "{more}: {answer}");
    }
    daemon.all_zero();
}

#[test]
fn a_schema_keeps_every_digit_it_was_sent_with() {
    let daemon = daemon("");
    let body = r#"{"prompt":"say","max_tokens":60,"temperature":0.0,
        "guided_json":{"const":340282366920938463463374607431768211457}}"#;
    let headers = [("content-type", "application/json")];
    let open = http::send(daemon.address, "POST", COMPLETIONS, &headers, body.as_bytes()).unwrap();
    let answer = open.finish().unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    // However it is spelled: `3.4…e+38` is the same number.
    let written = answer.json()["choices"][0]["text"].as_str().unwrap().replace('.', "");
    assert!(written.starts_with("340282366920938463463374607431768211457"), "{written}");
}

#[test]
fn what_a_request_gives_up_of_its_schema_is_said() {
    let daemon = daemon("");
    let schema = json!({"type": "array", "items": {"type": "integer"}, "uniqueItems": true,
        "maxItems": 3});
    let of = |strict: bool| {
        json!({"prompt": "say", "max_tokens": 60, "response_format": {"type": "json_schema",
            "json_schema": {"name": "n", "strict": strict, "schema": schema}}})
    };
    assert_eq!(daemon.post(COMPLETIONS, &of(true)).status, 400);
    let relaxed = daemon.post(COMPLETIONS, &of(false));
    assert_eq!(relaxed.status, 200, "{}", relaxed.text());
    assert_eq!(relaxed.header("x-pleach-schema-relaxed"), Some("uniqueItems at #"));
}

#[test]
fn the_configuration_says_whether_schemas_are_strict_that_do_not() {
    let daemon = daemon("[grammar]\nstrict = false\n");
    let schema = json!({"type": "array", "items": {"type": "integer"}, "uniqueItems": true,
        "maxItems": 3});
    let format = |more: Value| {
        let mut named = json!({"name": "n", "schema": schema});
        named.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"prompt": "say", "max_tokens": 60,
               "response_format": {"type": "json_schema", "json_schema": named}})
    };
    let bare = json!({"prompt": "say", "max_tokens": 60, "guided_json": schema});
    for body in [format(json!({})), format(json!({"strict": null})), bare] {
        let answer = daemon.post(COMPLETIONS, &body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.header("x-pleach-schema-relaxed"), Some("uniqueItems at #"));
    }
    assert_eq!(daemon.post(COMPLETIONS, &format(json!({"strict": true}))).status, 400);
}

/// Whether a run of whitespace is a space, or one or two line breaks and then spaces and tabs.
fn is_usual(gap: &str) -> bool {
    let line = |text: &'_ str| -> Option<usize> {
        ["\n", "\r\n"].iter().find(|it| text.starts_with(**it)).map(|it| it.len())
    };
    let Some(first) = line(gap) else { return gap == " " };
    let rest = &gap[first..];
    let rest = &rest[line(rest).unwrap_or(0)..];
    gap.len() <= 8 && rest.chars().all(|letter| letter == ' ' || letter == '\t')
}

#[test]
fn answers_have_the_whitespace_that_was_asked_for() {
    let daemon = daemon("");
    let schema = json!({"type": "object", "required": ["n"], "additionalProperties": false,
        "properties": {"n": {"type": "integer", "minimum": -900, "maximum": 900}}});
    let mut unusual = 0;
    for seed in 0..40 {
        for whitespace in ["", "spaced", "usual", "bounded", "compact"] {
            let mut body = json!({"prompt": "say", "max_tokens": 60, "temperature": 5,
                                  "seed": seed, "guided_json": schema});
            if !whitespace.is_empty() {
                body["json_whitespace"] = whitespace.into();
            }
            let answer = daemon.post(COMPLETIONS, &body).json();
            let value: Value = serde_json::from_str(text(&answer)).unwrap();
            assert!(value["n"].is_i64(), "no point and no exponent: {answer}");
            let gaps = text(&answer).split(|letter: char| !letter.is_whitespace());
            let gaps: Vec<&str> = gaps.filter(|gap| !gap.is_empty()).collect();
            match whitespace {
                "usual" => assert!(gaps.iter().all(|gap| is_usual(gap)), "{answer}"),
                "compact" => assert_eq!(gaps.len(), 0, "{answer}"),
                "" | "spaced" => {
                    assert_eq!(text(&answer), format!(r#"{{"n": {}}}"#, value["n"]));
                }
                _ => unusual += gaps.iter().filter(|gap| !is_usual(gap)).count(),
            }
        }
    }
    assert!(unusual > 0, "what is bounded may be of any kind");
    let wrong = json!({"prompt": "say", "guided_json": schema, "json_whitespace": "none"});
    let refused = daemon.post(COMPLETIONS, &wrong);
    assert_eq!(refused.status, 400);
    let words = "must be \"spaced\" or \"compact\" or \"usual\" or \"bounded\"";
    assert!(refused.json()["error"]["message"].as_str().unwrap().contains(words));
}

#[test]
fn a_message_is_continued_with_the_whitespace_that_it_has() {
    let daemon = daemon("");
    let begun = "{\n  \"n\":";
    let mut body = json!({"max_tokens": 60, "seed": 3, "continue_final_message": true,
        "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": begun}],
        "guided_json": {"type": "object", "required": ["n"], "additionalProperties": false,
                        "properties": {"n": {"type": "boolean"}}}});
    let answer = daemon.post(CHAT, &body).json();
    let rest = answer["choices"][0]["message"]["content"].as_str().unwrap();
    let whole: Value = serde_json::from_str(&format!("{begun}{rest}")).unwrap();
    assert!(whole["n"].is_boolean(), "{answer}");
    body["json_whitespace"] = "spaced".into();
    let refused = daemon.post(CHAT, &body);
    assert_eq!(refused.status, 400, "{}", refused.text());
}

/// The few patterns of this file, matched by the engine itself at a place of its own.
fn regex_lite(pattern: &str) -> impl Fn(&str) -> bool {
    use pleach::grammar::{CompiledGrammar, Fuel, GrammarSource, GrammarVocabulary, Limits};
    let vocabulary = GrammarVocabulary::new(&pleach::vocab::byte_vocabulary());
    let (source, limits) = (GrammarSource::Regex(pattern.to_owned()), Limits::default());
    let mut fuel = Fuel::new(limits.compile_steps_max);
    let grammar = CompiledGrammar::compile(&source, &vocabulary, &limits, &mut fuel).unwrap();
    move |text| {
        let mut matcher = grammar.matcher();
        text.bytes().all(|byte| matcher.accept(byte.into()).is_ok()) && matcher.is_complete()
    }
}

#[test]
fn what_cannot_be_held_is_refused_by_name() {
    let daemon = daemon("[grammar]\ncompile_steps_max = 20000\n");
    for (more, param, code, words) in [
        (json!({"grammar": "root ::= \"open"}), "grammar", json!("invalid_grammar"), "line 1"),
        (json!({"grammar": "root ::= other"}), "grammar", json!("invalid_grammar"), "other"),
        (json!({"guided_regex": "(a"}), "guided_regex", json!("invalid_grammar"), "parse"),
        (json!({"guided_regex": "(?=a)b"}), "guided_regex", json!("invalid_grammar"), ""),
        (
            json!({"structured_outputs": {"regex": "("}}),
            "structured_outputs.regex",
            json!("invalid_grammar"),
            "",
        ),
        (
            json!({"structured_outputs": {"regex": "a", "choice": ["b"]}}),
            "structured_outputs.choice",
            Value::Null,
            "both",
        ),
        (
            json!({"grammar": "root ::= \"a\"", "guided_regex": "a"}),
            "guided_regex",
            Value::Null,
            "both",
        ),
        (json!({"structured_outputs": {}}), "structured_outputs", Value::Null, "one of"),
        (
            json!({"structured_outputs": {"rex": "a"}}),
            "structured_outputs.rex",
            Value::Null,
            "unknown",
        ),
        (json!({"guided_choice": ["a", 1]}), "guided_choice[1]", Value::Null, "string"),
        (json!({"grammar": {"type": "lark"}}), "grammar", Value::Null, "GBNF"),
        (
            json!({"response_format": {"type": "json_schema"}}),
            "response_format.json_schema",
            Value::Null,
            "missing",
        ),
        (
            json!({"response_format": {"type": "structural_tag"}}),
            "response_format.structures",
            Value::Null,
            "missing",
        ),
        (
            json!({"guided_json": {"type": "array", "uniqueItems": true}}),
            "guided_json",
            json!("invalid_json_schema"),
            "uniqueItems",
        ),
        (
            json!({"guided_json": {"type": "array", "minItems": 2, "maxItems": 1}}),
            "guided_json",
            json!("invalid_json_schema"),
            "no value",
        ),
        (json!({"property_order": "any"}), "property_order", Value::Null, "JSON Schema"),
        (json!({"allow_truncation": true}), "allow_truncation", Value::Null, "constrains"),
        (
            json!({"guided_regex": "[a-z]{40}", "max_tokens": 39}),
            "max_tokens",
            json!("max_tokens_too_small"),
            "40",
        ),
        (
            json!({"guided_choice": (0..3000).map(|n| format!("choice {n}")).collect::<Vec<_>>()}),
            "guided_choice",
            json!("grammar_too_complex"),
            "",
        ),
    ] {
        let error = refusal(&daemon, &more);
        assert_eq!(error["param"], param, "{more:.100}: {error}");
        assert_eq!(error["code"], code, "{more:.100}: {error}");
        assert!(error["message"].as_str().unwrap().contains(words), "{more:.100}: {error}");
    }
    let cut = json!({"guided_regex": "[a-z]{40}", "max_tokens": 39, "allow_truncation": true});
    assert_eq!(ask(&daemon, &cut)["choices"][0]["finish_reason"], "length");
    daemon.all_zero();
}

#[test]
fn forced_runs_save_steps_and_change_no_text() {
    let (with, without) = (daemon(""), daemon("[grammar]\nforced_runs = false\n"));
    let gbnf = "root ::= \"the answer to this question is \" [a-z]{3} \", and that is all\"";
    let body = json!({"grammar": gbnf});
    let (forced, drawn) = (ask(&with, &body), ask(&without, &body));
    assert_eq!(text(&forced), text(&drawn));
    assert_eq!(forced["usage"], drawn["usage"]);
    assert!(with.metric("pleach_grammar_forced_tokens_total") > 80.0);
    assert_eq!(without.metric("pleach_grammar_forced_tokens_total"), 0.0);
    let steps = |daemon: &Daemon| daemon.metric("pleach_device_batch_size_count");
    assert!(steps(&with) * 5.0 < steps(&without));
}

#[test]
fn a_grammar_is_compiled_once() {
    let daemon = daemon("");
    for _ in 0..5 {
        ask(&daemon, &json!({"guided_regex": "[ab]{4}"}));
    }
    assert_eq!(daemon.metric("pleach_grammar_compile_seconds_count"), 1.0);
    assert_eq!(daemon.metric("pleach_grammar_cache_hits_total"), 9.0);
}

/// A thousand requests over a hundred grammars, a third of them left midway: the others get what
/// they would get alone.
#[test]
fn no_state_crosses_from_one_request_to_another() {
    let daemon = Daemon::simulated(
        "fixed_us = 300\nper_token_us = 0\nper_sequence_us = 0",
        "max_sessions = 16\nmax_queued = 100",
        "",
    );
    let body = |which: usize| {
        let letter = char::from(b'a' + (which % 26) as u8);
        let gbnf = format!(
            "root ::= \"{which}:\" item{{2,6}} \".\"\nitem ::= \"{letter}\" [0-9]{{1,3}} | [x-z]+ \";\""
        );
        json!({"prompt": format!("say {which}"), "max_tokens": 60, "temperature": 8.0,
               "seed": which, "grammar": gbnf, "stream": true})
    };
    let alone: Vec<String> =
        (0..100).map(|which| http::joined(&daemon.stream(COMPLETIONS, &body(which)), 0)).collect();
    std::thread::scope(|scope| {
        for client in 0..10 {
            let (daemon, alone, body) = (&daemon, &alone, &body);
            scope.spawn(move || {
                for turn in 0..100 {
                    let which = (client * 37 + turn * 13) % 100;
                    let mut open = http::open(daemon.address, COMPLETIONS, &body(which)).unwrap();
                    if turn % 3 == 0 {
                        open.chunk().unwrap();
                        continue;
                    }
                    let answer = open.finish().unwrap();
                    assert_eq!(http::joined(&http::events(&answer.text()), 0), alone[which]);
                }
            });
        }
    });
    daemon.all_zero();
}
