use super::super::{Converter, Dialect, MAX_DEPTH, Progress};
use super::{End, assert_broken_at, convert, run, run_all_ways, table};

#[test]
fn valid_json_passes_byte_for_byte() {
    for text in [
        r#"{"room": "attic", "level": 3}"#,
        "{\n  \"a\" : [ 1 , -0.5e+3 , true,false , null ] ,\t\"b\":{}\r\n}",
        r#"["\u0041\"\\\/\b\f\n\r\t", "é 🦀", "\ud83e\udd80"]"#,
        "[]",
        "{}",
        r#""text""#,
        r#"{"":[[],[{}]]}"#,
        r#"{"o":{"k":1}}"#,
        r#"{"a":"</tool_call> ]} , \" "}"#,
    ] {
        assert_eq!(convert(&Converter::new(Dialect::Json), text), text);
    }
}

#[test]
fn strings_are_mended() {
    table(
        &Dialect::Json,
        &[
            ("\"a\nb\tc\u{1}\"", r#""a\nb\tc\u0001""#),
            (r#""it\'s \d \x41 C:\users""#, r#""it's \\d \\x41 C:\\users""#),
            ("\"\\\n\"", r#""\\\n""#),
            (r#""\u12""#, r#""\\u12""#),
            (r#""\ud83e""#, "\"\u{fffd}\""),
            (r#""\ud83e\ud83e\udd80""#, "\"\u{fffd}\\ud83e\\udd80\""),
            (r#""\udd80x""#, "\"\u{fffd}x\""),
            (r#""\ud83e\n""#, "\"\u{fffd}\\n\""),
            (r#""\ud83e\u0041""#, "\"\u{fffd}\\u0041\""),
            (r#""\ud83e\uzz""#, "\"\u{fffd}\\\\uzz\""),
            (r#""\ud83e\q""#, "\"\u{fffd}\\\\q\""),
            (r#"{"\ud83e": 1}"#, "{\"\u{fffd}\": 1}"),
        ],
    );
}

#[test]
fn the_first_byte_that_cannot_be_breaks() {
    let json = Converter::new(Dialect::Json);
    for (text, at) in [
        ("{'a': 1}", 1),
        ("{\"a\" 1}", 5),
        ("{\"a\": True}", 6),
        ("[1,]", 3),
        ("[,1]", 1),
        ("[1 2]", 3),
        ("{\"a\":1,}", 7),
        ("{1: 2}", 1),
        ("[03106]", 2),
        ("[1.]", 3),
        ("[-]", 2),
        ("[1e]", 3),
        ("[truex]", 5),
        ("[trux]", 4),
        ("[nul]", 4),
        ("[1}", 2),
        ("{\"a\":1]", 6),
        ("}", 0),
        ("  é", 2),
        ("{\"a\": é}", 6),
        ("NaN", 0),
    ] {
        assert_broken_at(&json, text, at);
    }
}

#[test]
fn a_value_ends_by_itself() {
    let json = Converter::new(Dialect::Json);
    for (text, value, at) in [
        ("{\"a\": 1}</tool_call>", "{\"a\": 1}", 8),
        ("  [1] ", "[1]", 5),
        ("{\"o\":{\"k\":1}}}\n</tool_call>", "{\"o\":{\"k\":1}}", 13),
        ("12<", "12", 2),
        ("true, 3", "true", 4),
        ("\"a\" \"b\"", "\"a\"", 3),
    ] {
        let outcome = run_all_ways(&json, text);
        assert_eq!((outcome.json.as_str(), outcome.end), (value, End::Complete(at)));
    }
}

#[test]
fn what_waits_is_not_written() {
    let json = Converter::new(Dialect::Json);
    for (text, written) in [
        ("{\"level\": 3", "{\"level\": "),
        ("{\"on\": tru", "{\"on\": "),
        ("{\"room\":\"at", "{\"room\":\"at"),
        ("[\"a\\", "[\"a"),
        ("[\"a\\u00", "[\"a"),
        ("[\"a\\ud83e\\", "[\"a"),
    ] {
        let mut converter = json.clone();
        let mut out = String::new();
        assert_eq!(converter.push(text, &mut out), Progress::Open);
        assert_eq!(out, written);
        assert_eq!(converter.cut(&mut out), Progress::Open);
        assert_eq!(out, written, "cut");
    }
}

#[test]
fn a_cut_ends_a_number_or_word_on_its_own() {
    for (text, written, progress) in [
        ("12", "12", Progress::Complete { consumed: 0 }),
        ("null", "null", Progress::Complete { consumed: 0 }),
        ("-", "", Progress::Open),
        ("nul", "", Progress::Open),
        ("1e", "", Progress::Open),
    ] {
        let mut converter = Converter::new(Dialect::Json);
        let mut out = String::new();
        converter.push(text, &mut out);
        assert_eq!(converter.cut(&mut out), progress, "{text}");
        assert_eq!(out, written);
    }
}

#[test]
fn depth_is_limited() {
    for dialect in [Dialect::Json, Dialect::Python, Dialect::Gemma4] {
        let converter = Converter::new(dialect);
        let (open, close) = ("[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
        let deep = format!("{open}{close}");
        assert_eq!(run(converter.clone(), [deep.as_str()]).json, deep);
        let deeper = "[".repeat(100_000);
        assert_eq!(run(converter, [deeper.as_str()]).end, End::Broken(MAX_DEPTH));
    }
    let parentheses = "(".repeat(100_000);
    let outcome = run(Converter::new(Dialect::Python), [parentheses.as_str()]);
    assert_eq!(outcome.end, End::Broken(MAX_DEPTH));
}

#[test]
fn arguments_may_be_a_string_of_json() {
    let arguments = Converter::json_arguments();
    for (text, json) in [
        (r#"{"a": "x"}"#, r#"{"a": "x"}"#),
        (r#""{\"a\": \"x\\ny\", \"b\": 3}""#, r#"{"a": "x\ny", "b": 3}"#),
        (r#"  "\n{} ""#, "{}"),
        (r#""""#, "{}"),
        (r#""{\"c\":\"\ud83e\udd80\"}""#, r#"{"c":"🦀"}"#),
    ] {
        assert_eq!(convert(&arguments, text), json, "{text}");
    }
    let outcome = run_all_ways(&arguments, "null}");
    assert_eq!((outcome.json.as_str(), outcome.end), ("{}", End::Complete(4)));
    for (text, at) in [
        ("[1]", 0),
        ("3", 0),
        (r#""[1]""#, 1),
        (r#""{\"a\": 1""#, 10),
        (r#""{} x""#, 4),
        (r#"" \n{\"a\":\u005b\ud83e]}""#, 23),
        (r#""{\"a\" 1}""#, 8),
        ("nul}", 3),
    ] {
        assert_broken_at(&arguments, text, at);
    }
}
