//! The arguments that each dialect's grammar allows, and those it does not.

// Helpers of tests count as tests.
#![allow(clippy::unwrap_used)]

mod dialect_support;
mod schema_support;

use std::sync::Arc;

use dialect_support::Dialect;
use pleach::grammar::json_schema::{SchemaError, SchemaOptions};
use pleach::grammar::{CompiledGrammar, GrammarError};
use schema_support::{accepts, bytes};
use serde_json::{Value, json};

/// Checks a dialect's grammar of a schema against texts of both kinds. What is accepted is read as an
/// object that is valid.
fn check_with(
    dialect: &Dialect,
    options: SchemaOptions,
    schema: &Value,
    accepted: &[&str],
    rejected: &[&str],
) {
    let name = &dialect.name;
    let grammar = dialect.try_compile(schema, options, bytes());
    let grammar = grammar.unwrap_or_else(|error| panic!("{name} {schema}: {error}"));
    for text in accepted {
        assert!(accepts(&grammar, text), "{name} {schema}: {text:?} is refused");
        let read = dialect.read(schema, text).unwrap_or_else(|| panic!("{name}: {text:?}"));
        let value: Value = serde_json::from_str(&read).unwrap();
        assert!(jsonschema::is_valid(schema, &value), "{name} {schema}: {text:?} is {value}");
    }
    for text in rejected {
        assert!(!accepts(&grammar, text), "{name} {schema}: {text:?} is accepted");
    }
}

fn check(name: &str, schema: Value, accepted: &[&str], rejected: &[&str]) {
    let dialect = Dialect::of_format(name);
    check_with(&dialect, dialect.options(), &schema, accepted, rejected);
}

/// An object with these properties and no others, the first of which is required.
fn object(properties: Value) -> Value {
    let first = properties.as_object().unwrap().keys().next().unwrap().clone();
    json!({"type": "object", "properties": properties, "required": [first],
        "additionalProperties": false})
}

fn values() -> Value {
    object(json!({
        "room": {"type": "string", "maxLength": 6},
        "level": {"type": "integer", "minimum": 1, "maximum": 12},
        "mode": {"enum": ["it's", "on", 3, null, true]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        "at": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
    }))
}

#[test]
fn python_calls() {
    check(
        "llama4_pythonic",
        values(),
        &[
            r#"room="attic")"#,
            r#"room='attic', level=12)"#,
            r#"room = "", level=3 ,mode="it's")"#,
            r#"room="a", mode='it\'s')"#,
            r#"room="a", mode=3, tags=["x", 'y'])"#,
            r#"room="a", mode=None)"#,
            r#"room="a", mode=True, at={"x": 2.5})"#,
            r#"room="\"\\\n\u0007")"#,
            r#"room='"\\\'\n')"#,
        ],
        &[
            ")",
            r#"level=3)"#,
            r#"level=3, room="attic")"#,
            r#"room="attic", room="attic")"#,
            r#"room="attic""#,
            r#"room="attic",)"#,
            r#""attic")"#,
            r#"room="attics!")"#,
            r#"room=attic)"#,
            r#"room='a", level=3)"#,
            "room=\"a\nb\")",
            r#"room="a", level=13)"#,
            r#"room="a", level="3")"#,
            r#"room="a", mode="off")"#,
            r#"room="a", mode=true)"#,
            r#"room="a", mode=null)"#,
            r#"room="a", tags=["x", "y", "z"])"#,
            r#"room="a", at={})"#,
            r#"room="a", at={'x': 1})"#,
            r#"room="a", other=1)"#,
            r#"room="\/")"#,
        ],
    );
    check("lfm2_pythonic", json!({"type": "object"}), &[")"], &["a=1)", "{})"]);
    check(
        "lfm2_pythonic",
        object(json!({"env": {"type": "object", "additionalProperties": {"type": "integer"}}})),
        &[r#"env={})"#, r#"env={"a b": 1, "c": 2})"#],
        &[r#"env={"a": 1, "a": 2})"#, r#"env={'a': 1})"#, r#"env={"a": "x"})"#],
    );
}

#[test]
fn bare_keys() {
    check(
        "gemma4",
        values(),
        &[
            r#"{room:<|"|>attic<|"|>}"#,
            r#"{level:12,room:<|"|>a"}<<|"|>}"#,
            r#"{mode:<|"|>it's<|"|>,room:<|"|><|"|>}"#,
            r#"{at:{x:2.5},mode:3,room:<|"|>a<|"|>,tags:[<|"|>x<|"|>,<|"|>y<|"|>]}"#,
            "{mode:null,room:<|\"|>a\nb<|\"|>}",
        ],
        &[
            "{}",
            r#"{room:"attic"}"#,
            r#"{room:attic}"#,
            r#"{room:<|"|>attic<|"|>,level:3}"#,
            r#"{room: <|"|>attic<|"|>}"#,
            r#"{"room":<|"|>attic<|"|>}"#,
            r#"{room:<|"|>attics!<|"|>}"#,
            r#"{room:<|"|>a<|"|>b<|"|>}"#,
            r#"{level:3,room:<|"|>attic<|"|>"#,
            r#"{level:<|"|>3<|"|>,room:<|"|>attic<|"|>}"#,
            r#"{mode:<|"|>off<|"|>,room:<|"|>a<|"|>}"#,
            r#"{at:{},room:<|"|>a<|"|>}"#,
        ],
    );
    // Alphabetical, whatever the case; not so where the format does not ask for it.
    let letters = json!({"b": {"type": "null"}, "C": {"type": "null"}, "a": {"type": "null"}});
    check(
        "gemma4",
        object(letters.clone()),
        &["{a:null,b:null,C:null}"],
        &["{b:null,C:null,a:null}"],
    );
    check("functiongemma", object(letters), &["{b:null,C:null,a:null}"], &["{a:null,b:null}"]);
    // What cannot be a bare key is quoted, and an object whose keys nobody knows is JSON.
    check(
        "gemma4",
        object(json!({"a:b": {"type": "string"}, "env": {"type": "object", "minProperties": 1}})),
        &[r#"{"a:b":"x"}"#, r#"{"a:b":"x\n<|\"|>",env:{"k": [1, "v"], "l": null}}"#],
        &[
            r#"{a:b:<|"|>x<|"|>}"#,
            r#"{"a:b":<|"|>x<|"|>}"#,
            r#"{"a:b":"x",env:{k:1}}"#,
            r#"{"a:b":"x",env:{"k": 1, "k": 2}}"#,
        ],
    );
    // A delimited string that looks like a number is one where a number is declared.
    check(
        "functiongemma",
        object(json!({"v": {"type": ["string", "integer", "null"]}})),
        &["{v:<escape>x<escape>}", "{v:12}", "{v:null}", "{v:<escape>03106<escape>}"],
        &["{v:<escape>12<escape>}", "{v:<escape> null <escape>}"],
    );
}

#[test]
fn parameters_typed_by_the_schema() {
    let block = |name: &str, value: &str| format!("<parameter={name}>\n{value}\n</parameter>\n");
    let [attic, level, both] = [
        block("room", "attic"),
        block("level", "3"),
        block("room", "a\n<b>") + &block("mode", "it's") + &block("tags", "[\"x\", \"</p>\"]"),
    ];
    check(
        "qwen_xml",
        values(),
        &[
            &attic,
            &(attic.clone() + &level),
            &both,
            &block("room", ""),
            &block("room", "</par"),
            &(attic.clone() + &block("mode", "3")),
            &(attic.clone() + &block("mode", "None")),
            &(attic.clone() + &block("mode", "true") + &block("at", "{\"x\": 1, \"y\": \"z\"}")),
        ],
        &[
            "",
            &level,
            &(level.clone() + &attic),
            &(attic.clone() + &attic),
            attic.trim_end(),
            &block("room", "attics!"),
            "<parameter=room>attic</parameter>\n",
            &(attic.clone() + &block("level", "13")),
            &(attic.clone() + &block("level", "")),
            &(attic.clone() + &block("mode", "off")),
            &(attic.clone() + &block("mode", "\"on\"")),
            &(attic.clone() + &block("tags", "[\"</parameter>\"]")),
            &(attic.clone() + &block("at", "{\"x\": 1, \"x\": 2}")),
            &(attic.clone() + &block("other", "1")),
        ],
    );
    // Nothing at all where nothing is required.
    let optional = json!({"properties": {"a": {"type": "boolean"}}, "type": "object"});
    check("qwen_xml", optional, &["", &block("a", "True")], &["\n", &block("b", "1")]);
    check("glm_xml_45", json!({"type": "object"}), &[""], &["\n"]);
    check(
        "glm_xml_45",
        object(json!({"a": {"type": "string"}, "b": {"type": "integer"}})),
        &[
            "<arg_key>a</arg_key>\n<arg_value>x\ny</arg_value>\n<arg_key>b</arg_key>\n<arg_value>1</arg_value>\n",
        ],
        &["<arg_key>a</arg_key><arg_value>x</arg_value>\n"],
    );
}

#[test]
fn plain_text_that_is_no_string() {
    let value = |text: &str| format!("<parameter name=\"v\">{text}</parameter>\n");
    let row = |types: Value, accepted: &[&str], rejected: &[&str]| {
        let texts = |list: &[&str]| list.iter().map(|text| value(text)).collect::<Vec<String>>();
        let (accepted, rejected) = (texts(accepted), texts(rejected));
        check(
            "minimax_m2",
            object(json!({"v": types})),
            &accepted.iter().map(String::as_str).collect::<Vec<_>>(),
            &rejected.iter().map(String::as_str).collect::<Vec<_>>(),
        );
    };
    row(json!({"type": "string"}), &["null", "3", "[1]", " x ", ""], &["</parameter>"]);
    // `null` is null where that is allowed, so the string of that name cannot be written.
    row(json!({"type": ["string", "null"]}), &["null", "None", "nul", "3", "nullx"], &[]);
    row(
        json!({"anyOf": [{"enum": ["null", "x"]}, {"type": "integer"}]}),
        &["null", "x", "3"],
        &["None", "3.5", "y"],
    );
    row(json!({"enum": ["null", "x", null]}), &["null", "None", "x"], &["y"]);
    row(json!({"type": ["string", "integer"], "pattern": "^[0-9]$"}), &["12"], &["x", "1.5"]);
    row(json!({"type": ["string", "array"], "maxLength": 3}), &["(1)", "[1, \"\"]"], &["[1x"]);
    row(json!({"type": "number", "multipleOf": 0.5}), &["1.5", "-2"], &["1.2", "x", ""]);
    row(json!({"format": "date", "type": "string"}), &["2024-02-29"], &["2023-02-29", "x"]);
    // Without a declared type a string is one unless it is JSON.
    row(json!({}), &["x", "True", "true", "{\"a\": 1}"], &["{x", " [", "{'a': 1}"]);
}

#[test]
fn parameters_that_name_their_type() {
    let schema = object(json!({"v": {"type": ["string", "integer", "null"], "maxLength": 4}}));
    let dsml = |flag: &str, text: &str| {
        let end = "</｜DSML｜parameter>\n";
        format!("<｜DSML｜parameter name=\"v\" string=\"{flag}\">{text}{end}")
    };
    check(
        "dsml_v4",
        schema.clone(),
        &[&dsml("true", "null"), &dsml("true", "12"), &dsml("false", "12"), &dsml("false", "null")],
        &[
            &dsml("false", "x"),
            &dsml("true", "12345"),
            &dsml("maybe", "1"),
            &dsml("false", "\"x\""),
        ],
    );
    let kimi = |name: &str, text: &str| {
        format!("<|open|>argument key=\"v\" type=\"{name}\"<|sep|>{text}<|close|>argument<|sep|>")
    };
    check(
        "kimi_k3",
        schema,
        &[&kimi("string", "null"), &kimi("number", "12"), &kimi("null", "null")],
        &[
            &kimi("number", "x"),
            &kimi("null", "12"),
            &kimi("boolean", "true"),
            &kimi("string", "12345"),
        ],
    );
}

#[test]
fn parameters_in_cdata() {
    let block = |text: &str| format!("<param name=\"v\">{text}</param>");
    check(
        "minicpm5",
        object(json!({"v": {"type": "string"}})),
        &[&block("a"), &block("<![CDATA[a<b>\n]]>"), &block("<![CDATA[]]]>"), &block("]]>")],
        &[&block("a<b"), &block("a\n"), &block("<![CDATA[</param>]]>"), &block("<![CDATA[]]>]]>")],
    );
}

#[test]
fn what_no_arguments_can_say_is_refused() {
    let closed = |properties: Value| object(properties);
    let qwen = Dialect::of_format("qwen_xml");
    let python = Dialect::of_format("olmo3_pythonic");
    let rows = [
        (
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            "additionalProperties",
        ),
        (
            json!({"type": "object", "patternProperties": {"^x": {"type": "integer"}}}),
            "patternProperties",
        ),
        (json!({"type": "object", "propertyNames": {"minLength": 2}}), "propertyNames"),
        (json!({"type": "object", "minProperties": 1}), "minProperties"),
    ];
    for (schema, keyword) in rows {
        for dialect in [&qwen, &python] {
            assert_eq!(dialect.inexact(&schema), ("#".to_owned(), keyword.to_owned()), "{schema}");
        }
    }
    let relaxed = SchemaOptions { strict: false, ..SchemaOptions::default() };
    let schema = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    check_with(&qwen, relaxed, &schema, &[""], &["<parameter=a>\n1\n</parameter>\n"]);
    // Keys that are few are declared as good as.
    let few = json!({"type": "object", "patternProperties": {"^[ab]$": {"type": "integer"}},
        "additionalProperties": false});
    check_with(&python, python.options(), &few, &["a=1)", "b=2)", ")"], &["c=1)", "a='x')"]);

    let name = |dialect: &Dialect, name: &str| {
        dialect.inexact(&closed(json!({ name: {"type": "null"} }))).1
    };
    assert_eq!(name(&qwen, "a>b"), "properties");
    assert_eq!(name(&qwen, " a"), "properties");
    assert_eq!(name(&python, "two words"), "properties");
    assert_eq!(name(&Dialect::of_format("dsml_v4"), "a\"b"), "properties");
    // The one value is a text that ends the parameter.
    assert_eq!(qwen.inexact(&closed(json!({"v": {"const": "</parameter>"}}))).1, "properties");

    let no_object = qwen.try_compile(&json!({"type": "string"}), qwen.options(), bytes());
    assert!(matches!(
        no_object.map(drop),
        Err(GrammarError::Schema(SchemaError::Unsatisfiable { .. }))
    ));
}

#[test]
fn whole_objects_may_be_listed() {
    let listed = json!({"enum": [{"v": "x", "n": 1}, {"v": "y", "n": [null, true]}, "none"]});
    check(
        "olmo3_pythonic",
        listed.clone(),
        &[r#"v="x", n=1)"#, r#"v='y', n=[None, True])"#],
        &[r#"v="x", n=[None, True])"#, r#"v="x")"#, r#"n=1, v="x")"#],
    );
    check(
        "gemma4",
        listed,
        &[r#"{v:<|"|>x<|"|>,n:1}"#, r#"{v:<|"|>y<|"|>,n:[null,true]}"#],
        &[r#"{v:<|"|>x<|"|>}"#],
    );
}

#[test]
fn recursion_and_alternatives_are_followed() {
    let schema = json!({
        "$defs": {"tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"}},
            "additionalProperties": false}},
        "type": "object",
        "properties": {"kind": {"enum": ["leaf", "tree"]}, "tree": {"$ref": "#/$defs/tree"}},
        "required": ["kind"],
        "oneOf": [
            {"properties": {"kind": {"const": "leaf"}, "tree": false}},
            {"properties": {"kind": {"const": "tree"}}, "required": ["tree"]},
        ],
    });
    check(
        "lfm2_pythonic",
        schema.clone(),
        &[r#"kind="leaf")"#, r#"kind='tree', tree={"left": {"left": {}}})"#],
        &[r#"kind="tree")"#, r#"kind="leaf", tree={})"#],
    );
    check(
        "gemma4",
        schema,
        &[r#"{kind:<|"|>leaf<|"|>}"#, r#"{kind:<|"|>tree<|"|>,tree:{left:{left:{}}}}"#],
        &[r#"{kind:<|"|>tree<|"|>}"#, r#"{kind:<|"|>leaf<|"|>,tree:{}}"#],
    );
}

/// Whether arguments that the grammar accepts stand in an answer, between these texts.
fn stands_in(raw: &str, before: &str, after: &str, grammar: &Arc<CompiledGrammar>) -> bool {
    let texts = raw.match_indices(before).map(|(at, _)| &raw[at + before.len()..]);
    texts.into_iter().any(|rest| {
        rest.char_indices().map(|(at, _)| rest.split_at(at)).any(|(text, rest)| {
            rest.starts_with(after) && !text.is_empty() && accepts(grammar, text)
        })
    })
}

#[test]
fn real_answers_are_accepted() {
    let Some(shared) = std::env::var_os("PLEACH_SHARED") else {
        eprintln!("skipped: PLEACH_SHARED is not set");
        return;
    };
    let file = std::path::Path::new(&shared).join("data/chat_examples.json");
    let data: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let mut seen = 0;
    for (kind, example) in data["examples"].as_object().unwrap() {
        let all = Dialect::all();
        let Some(dialect) = all.iter().find(|dialect| dialect.name == *kind) else { continue };
        let raw = example["raw"].as_str().unwrap();
        let calls = example["expect"]["calls"].as_array().unwrap();
        for (index, call) in calls.iter().enumerate() {
            let name = call["name"].as_str().unwrap();
            let tools = data["tools"].as_array().unwrap();
            let tool = tools.iter().find(|tool| tool["function"]["name"] == name).unwrap();
            let schema = &tool["function"]["parameters"];
            let (before, after) = dialect.frame(name, index);
            let grammar = dialect.try_compile(schema, dialect.options(), bytes()).unwrap();
            assert!(stands_in(raw, &before, &after, &grammar), "{kind}: {before:?} in {raw:?}");
            seen += 1;
        }
    }
    assert!(seen >= 28, "{seen}");
}
