use serde_json::{Value, json};

use super::super::{DeclaredTypes, Members, TypedText};

/// The text whole, by characters, and in every two pieces, which must agree.
fn read(typed: &TypedText, text: &str) -> String {
    let whole = read_pieces(typed, [text]);
    let characters = text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]);
    assert_eq!(read_pieces(typed, characters), whole, "by characters: {text}");
    for (at, _) in text.char_indices() {
        let (left, right) = text.split_at(at);
        assert_eq!(read_pieces(typed, [left, right]), whole, "cut at {at}: {text}");
        let mut part = String::new();
        typed.clone().push(left, &mut part);
        assert!(whole.starts_with(&part), "prefix {at} of {text}: {part}");
    }
    serde_json::from_str::<Value>(&whole).unwrap_or_else(|e| panic!("{whole}: {e}"));
    whole
}

fn read_pieces<'a>(typed: &TypedText, pieces: impl IntoIterator<Item = &'a str>) -> String {
    let (mut typed, mut out) = (typed.clone(), String::new());
    for piece in pieces {
        typed.push(piece, &mut out);
    }
    typed.finish(&mut out);
    out
}

fn declared(schema: Value) -> DeclaredTypes {
    DeclaredTypes::of_parameter(&json!({"properties": {"p": schema}}), "p")
}

fn table(schema: Value, rows: &[(&str, &str)]) {
    let typed = TypedText::new(declared(schema.clone()));
    for (text, json) in rows {
        assert_eq!(read(&typed, text), *json, "{text} as {schema}");
    }
}

#[test]
fn a_string_is_the_text() {
    table(
        json!({"type": "string"}),
        &[
            ("", r#""""#),
            ("03106", r#""03106""#),
            ("true", r#""true""#),
            ("null", r#""null""#),
            ("\"a\" \\n", r#""\"a\" \\n""#),
            ("\n a\n\n  b \n", r#""\n a\n\n  b \n""#),
            ("[\"a\"]", r#""[\"a\"]""#),
        ],
    );
}

#[test]
fn other_types_are_spelled_in_json_or_python() {
    table(
        json!({"type": "integer"}),
        &[
            ("3", "3"),
            (" -3\n", "-3"),
            ("3.0", "3.0"),
            ("+3", "3"),
            ("007", "7"),
            ("1_000", "1000"),
            ("2026-01-15", r#""2026-01-15""#),
            ("3.5", r#""3.5""#),
            ("", r#""""#),
            ("1e999", r#""1e999""#),
            ("true", r#""true""#),
            (" x ", r#"" x ""#),
        ],
    );
    table(
        json!({"type": "number"}),
        &[("3", "3"), ("1.50", "1.50"), (".5", "0.5"), ("1,5", r#""1,5""#), ("nan", r#""nan""#)],
    );
    table(
        json!({"type": "boolean"}),
        &[
            ("true", "true"),
            ("False", "false"),
            ("TRUE", "true"),
            ("1", r#""1""#),
            ("yes", r#""yes""#),
        ],
    );
    table(json!({"type": "null"}), &[("null", "null"), ("None", "null"), ("x", r#""x""#)]);
    table(
        json!({"type": "array"}),
        &[
            (r#"["a", "b"]"#, r#"["a", "b"]"#),
            ("[ 1,\n 2 ]\n", "[ 1,\n 2 ]"),
            ("['a', True]", r#"["a",true]"#),
            ("('a', 'b')", r#"["a","b"]"#),
            ("('a')", r#""('a')""#),
            ("{}", r#""{}""#),
            ("[1", r#""[1""#),
            ("[1] [2]", r#""[1] [2]""#),
            ("a, b", r#""a, b""#),
        ],
    );
    table(
        json!({"type": "object"}),
        &[(r#"{"a": 1}"#, r#"{"a": 1}"#), ("{'a': None}", r#"{"a":null}"#), ("[1]", r#""[1]""#)],
    );
    table(
        json!({"type": ["integer", "null"]}),
        &[("3", "3"), ("None", "null"), ("none", r#""none""#), ("x", r#""x""#)],
    );
}

#[test]
fn where_a_string_is_allowed_only_exact_spellings_are_more() {
    table(
        json!({"type": ["string", "null"]}),
        &[
            ("null", "null"),
            ("None", "null"),
            (" null\n", "null"),
            ("none", r#""none""#),
            ("nullable", r#""nullable""#),
            ("nul", r#""nul""#),
            ("null x", r#""null x""#),
            ("3", r#""3""#),
            ("", r#""""#),
            ("  ", r#""  ""#),
        ],
    );
    table(
        json!({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "boolean"}]}),
        &[
            ("03106", r#""03106""#),
            ("3", "3"),
            ("3.5", r#""3.5""#),
            ("+3", r#""+3""#),
            ("3 rooms", r#""3 rooms""#),
            ("True", "true"),
            ("TRUE", r#""TRUE""#),
            ("2026-01-15", r#""2026-01-15""#),
            ("null", r#""null""#),
        ],
    );
    table(
        json!({"type": ["string", "array"]}),
        &[
            ("[\"a\"]", "[\"a\"]"),
            ("['a']", "[\"a\"]"),
            ("[a] b", r#""[a] b""#),
            ("{}", r#""{}""#),
            ("('a', 1)", r#""('a', 1)""#),
        ],
    );
    table(json!({"enum": ["1", "2"]}), &[("1", r#""1""#)]);
    table(json!({"enum": ["auto", 1, 2]}), &[("1", "1"), ("auto", r#""auto""#)]);
}

#[test]
fn without_a_declaration_only_json_is_more_than_a_string() {
    table(
        json!({}),
        &[
            ("3", "3"),
            ("true", "true"),
            ("True", r#""True""#),
            ("None", r#""None""#),
            ("null", "null"),
            ("03106", r#""03106""#),
            ("[1, 2]", "[1, 2]"),
            ("['a']", r#""['a']""#),
            ("\"a\"", r#""\"a\"""#),
            ("attic", r#""attic""#),
        ],
    );
}

#[test]
fn strings_stream_and_others_wait() {
    for (schema, text, written) in [
        (json!({"type": "string"}), "null", "\"null"),
        (json!({"type": ["string", "null"]}), "nul", ""),
        (json!({"type": ["string", "null"]}), "nu-", "\"nu-"),
        (json!({"type": ["string", "null"]}), "[", "\"["),
        (json!({"type": ["string", "integer"]}), "12", ""),
        (json!({"type": ["string", "integer"]}), "12 r", "\"12 r"),
        (json!({"type": "integer"}), "x", ""),
        (json!({}), "at", "\"at"),
    ] {
        let mut out = String::new();
        TypedText::new(declared(schema.clone())).push(text, &mut out);
        assert_eq!(out, written, "{text} as {schema}");
    }
}

#[test]
fn one_newline_at_each_end_is_stripped() {
    let typed = TypedText::between_newlines(DeclaredTypes::string());
    for (text, json) in [
        ("\nattic\n", r#""attic""#),
        ("attic", r#""attic""#),
        ("attic\n", r#""attic""#),
        ("\n\n  a\n\nb\n\n", r#""\n  a\n\nb\n""#),
        ("\n</parameter\n", r#""</parameter""#),
        ("\n\n", r#""""#),
        ("\n", r#""""#),
        ("", r#""""#),
        ("a\r\n", r#""a\r""#),
    ] {
        assert_eq!(read(&typed, text), json, "{text:?}");
    }
    let typed = TypedText::between_newlines(declared(json!({"type": "boolean"})));
    assert_eq!(read(&typed, "\nTrue\n"), "true");
}

#[test]
fn cdata_is_unwrapped() {
    let typed = TypedText::cdata(DeclaredTypes::string());
    for (text, json) in [
        ("<![CDATA[hall <2>]]>", r#""hall <2>""#),
        ("attic", r#""attic""#),
        ("<![CDATA[]]>", r#""""#),
        ("<![CDATA[a]]>b]]]>", r#""a]]>b]""#),
        ("<![CDATA[a]", r#""a]""#),
        ("<![CDAT", r#""<![CDAT""#),
        ("a]]>", r#""a]]>""#),
        ("<![CDATA[é]]]]>", r#""é]]""#),
    ] {
        assert_eq!(read(&typed, text), json, "{text}");
    }
    let typed = TypedText::cdata(declared(json!({"type": "array"})));
    assert_eq!(read(&typed, "<![CDATA[[1]]]>"), "[1]");
}

#[test]
fn members_make_an_object() {
    let mut out = String::new();
    Members::new().end(&mut out);
    assert_eq!(out, "{}");
    out.clear();
    let mut members = Members::new();
    for name in ["room", "a\"b"] {
        members.name(name, &mut out);
        TypedText::new(DeclaredTypes::string()).finish(&mut out);
    }
    members.end(&mut out);
    assert_eq!(out, r#"{"room":"","a\"b":""}"#);
}
