use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::{Converter, DeclaredTypes, Dialect, TypedText};
use super::{End, Outcome, run, writers};

fn text() -> impl Strategy<Value = String> {
    let character = prop_oneof![
        4 => proptest::char::range(' ', '~'),
        2 => proptest::sample::select(vec!['"', '\'', '\\', '\n', '<', '|', '>', '\0', ']', '}', ')', ',']),
        1 => any::<char>(),
    ];
    proptest::collection::vec(character, 0..12).prop_map(String::from_iter)
}

fn name() -> impl Strategy<Value = String> {
    "[a-zé_][a-z0-9_]{0,5}"
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((name(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Map<String, Value>> {
    proptest::collection::vec((name(), value()), 0..4)
        .prop_map(|members| members.into_iter().collect())
}

/// Text that looks like a value in any of the dialects, and mostly is none.
fn garbage() -> impl Strategy<Value = String> {
    let words = vec![
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        ",",
        ":",
        "=",
        "\"",
        "'",
        "\\",
        "\"\"\"",
        "'''",
        "<|\"|>",
        "<|\"",
        "<escape>",
        "<esc",
        "\\u",
        "d83e",
        "\\ud83e",
        "\\udd80",
        "\\x4",
        "\\U0001F980",
        "\\N",
        "true",
        "True",
        "nul",
        "None",
        "0x",
        "1",
        "03",
        "-",
        ".",
        "e",
        "+",
        "_",
        "r",
        "b",
        "é",
        "🦀",
        " ",
        "\n",
        "\t",
        "\0",
        "a",
        "\u{a0}",
        "<![CDATA[",
        "]]>",
        "null",
        "false",
    ];
    let word = proptest::sample::select(words).prop_map(str::to_owned);
    proptest::collection::vec(prop_oneof![8 => word, 1 => text()], 0..24)
        .prop_map(|words| words.concat())
}

/// Cuts a text at these fractions of it.
fn pieces<'a>(text: &'a str, cuts: &[f64]) -> Vec<&'a str> {
    let mut positions: Vec<usize> = cuts
        .iter()
        .map(|cut| (cut * text.len() as f64) as usize)
        .map(|at| (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap())
        .collect();
    positions.sort_unstable();
    let mut pieces = Vec::new();
    let mut from = 0;
    for to in positions {
        pieces.push(&text[from..to]);
        from = to;
    }
    pieces.push(&text[from..]);
    pieces
}

fn cuts() -> impl Strategy<Value = Vec<f64>> {
    proptest::collection::vec(0.0..1.0, 0..6)
}

fn converters() -> Vec<Converter> {
    vec![
        Converter::new(Dialect::Json),
        Converter::new(Dialect::Python),
        Converter::new(Dialect::Gemma4),
        Converter::new(Dialect::FunctionGemma),
        Converter::new(Dialect::Delimited("''".into())),
        Converter::typed(
            Dialect::Gemma4,
            json!({"properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}).into(),
        ),
        Converter::call_arguments(["a", "b"]),
        Converter::json_arguments(),
    ]
}

fn typed_texts() -> Vec<TypedText> {
    let declared =
        |schema: Value| DeclaredTypes::of_parameter(&json!({"properties": {"p": schema}}), "p");
    let mut all = Vec::new();
    for types in [
        DeclaredTypes::unknown(),
        DeclaredTypes::string(),
        DeclaredTypes::not_string(),
        declared(json!({"type": ["string", "null"]})),
        declared(json!({"type": ["string", "array", "integer"]})),
        declared(json!({"type": ["array", "object"]})),
        declared(json!({"type": "number"})),
        declared(json!({"type": ["string", "boolean", "object"]})),
    ] {
        all.extend([
            TypedText::new(types),
            TypedText::between_newlines(types),
            TypedText::cdata(types),
        ]);
    }
    all
}

/// Brackets that `json` leaves open, or a complaint if it is not the start of JSON.
fn reparse(json: &str) -> Outcome {
    run(Converter::new(Dialect::Json), [json])
}

fn check_converter(converter: &Converter, text: &str, cuts: &[f64]) {
    let whole = run(converter.clone(), [text]);
    assert_eq!(run(converter.clone(), pieces(text, cuts)), whole, "{text:?}");
    for piece in pieces(text, cuts) {
        let end = piece.as_ptr() as usize - text.as_ptr() as usize;
        let part = run(converter.clone(), [&text[..end]]);
        assert!(whole.json.starts_with(&part.json), "{text:?}: {part:?} of {whole:?}");
    }
    let written = reparse(&whole.json);
    assert!(!matches!(written.end, End::Broken(_)), "{text:?} gave {whole:?}");
    if let End::Complete(_) = whole.end
        && written.end != End::Open
    {
        assert_eq!(written.end, End::Complete(whole.json.len()), "{text:?} gave {whole:?}");
    }
    let mut cut = converter.clone();
    let mut out = String::new();
    for piece in pieces(text, cuts) {
        cut.push(piece, &mut out);
    }
    assert_eq!(out, whole.json);
    cut.cut(&mut out);
    assert!(out.starts_with(&whole.json));
}

fn check_typed(typed: &TypedText, text: &str, cuts: &[f64]) {
    let read = |pieces: &[&str]| {
        let (mut typed, mut out) = (typed.clone(), String::new());
        for piece in pieces {
            typed.push(piece, &mut out);
        }
        let written = out.clone();
        typed.finish(&mut out);
        assert!(out.starts_with(&written));
        (written, out)
    };
    let (_, whole) = read(&[text]);
    let cut = pieces(text, cuts);
    assert_eq!(read(&cut).1, whole, "{text:?}");
    for count in 0..cut.len() {
        let (written, _) = read(&cut[..count]);
        assert!(whole.starts_with(&written), "{text:?}: {written} of {whole}");
    }
    serde_json::from_str::<Value>(&whole).unwrap_or_else(|e| panic!("{text:?}: {whole}: {e}"));
}

fn assert_converts(converter: Converter, text: &str, cuts: &[f64], value: &Value) {
    let outcome = run(converter.clone(), pieces(text, cuts));
    assert_eq!(outcome.end, End::Complete(text.len()), "{text}: {}", outcome.json);
    let back: Value = serde_json::from_str(&outcome.json).unwrap();
    assert_eq!(&back, value, "{text}");
    check_converter(&converter, text, cuts);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..Default::default() })]

    #[test]
    fn objects_come_back_from_every_dialect(members in object(), cuts in cuts()) {
        let value = Value::Object(members.clone());
        let mut text = String::new();
        writers::python(&value, &mut text);
        assert_converts(Converter::new(Dialect::Python), &text, &cuts, &value);

        text.clear();
        writers::call(&members.into_iter().collect::<Vec<_>>(), &mut text);
        assert_converts(Converter::call_arguments([""; 0]), &text, &cuts, &value);

        for text in [value.to_string(), format!("{value:#}"), writers::ascii_json(&value)] {
            assert_converts(Converter::new(Dialect::Json), &text, &cuts, &value);
            assert_converts(Converter::json_arguments(), &text, &cuts, &value);
        }
        assert_converts(Converter::json_arguments(), &writers::nested_json(&value), &cuts, &value);

        for (dialect, quote) in [
            (Dialect::Gemma4, "<|\"|>"),
            (Dialect::FunctionGemma, "<escape>"),
            (Dialect::Delimited("##".into()), "##"),
        ] {
            text.clear();
            writers::bare_keys(&value, quote, &mut text);
            // A string that ends like a delimiter begins, or holds one, cannot be written.
            if !text.contains("###") && !value.to_string().contains("##") {
                assert_converts(Converter::new(dialect), &text, &cuts, &value);
            }
        }
    }

    #[test]
    fn json_that_passes_is_not_changed(value in value(), cuts in cuts()) {
        for text in [value.to_string(), writers::ascii_json(&value)] {
            let mut converter = Converter::new(Dialect::Json);
            let mut out = String::new();
            for piece in pieces(&text, &cuts) {
                converter.push(piece, &mut out);
            }
            converter.cut(&mut out);
            prop_assert_eq!(out, text);
        }
    }

    #[test]
    fn parameters_come_back_from_their_text(value in value(), cuts in cuts()) {
        let schema = json!({"properties": {"p": match &value {
            Value::Null => json!({"type": "null"}),
            Value::Bool(_) => json!({"type": "boolean"}),
            Value::Number(n) if n.is_i64() => json!({"type": "integer"}),
            Value::Number(_) => json!({"type": "number"}),
            Value::String(_) => json!({"type": "string"}),
            Value::Array(_) => json!({"type": "array"}),
            Value::Object(_) => json!({"type": "object"}),
        }}});
        let types = DeclaredTypes::of_parameter(&schema, "p");
        let text = writers::xml_text(&value);
        for (typed, text) in [
            (TypedText::new(types), text.clone()),
            (TypedText::between_newlines(types), format!("\n{text}\n")),
            (TypedText::cdata(types), format!("<![CDATA[{text}]]>")),
        ] {
            check_typed(&typed, &text, &cuts);
            let (mut typed, mut out) = (typed, String::new());
            typed.push(&text, &mut out);
            typed.finish(&mut out);
            prop_assert_eq!(serde_json::from_str::<Value>(&out).unwrap(), value.clone());
        }
    }

    #[test]
    fn garbage_is_read_the_same_in_pieces(text in garbage(), cuts in cuts()) {
        for converter in converters() {
            check_converter(&converter, &text, &cuts);
        }
        for typed in typed_texts() {
            check_typed(&typed, &text, &cuts);
        }
    }

    #[test]
    fn garbage_in_brackets_is_read_the_same_in_pieces(text in garbage(), cuts in cuts()) {
        for start in ["{\"a\": ", "{a:", "[\"", "['", "(", "a=(", "{a:[<|\"|>", "\"{\\\"a\\\":"] {
            for converter in converters() {
                check_converter(&converter, &format!("{start}{text}"), &cuts);
            }
        }
    }
}
