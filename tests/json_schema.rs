//! What each keyword, each format and each pair of them that interacts allows and refuses, through
//! the grammar as a request would get it.

// Helpers of tests count as tests.
#![allow(clippy::unwrap_used)]

mod schema_support;

use pleach::grammar::Whitespace;
use pleach::grammar::json_schema::{SchemaError, SchemaOptions};
use schema_support::{
    accepts, any_order, check, check_with, compact, inexact, is_unsatisfiable, refusal,
    schema_with, short, spaced, try_schema, writes,
};

#[test]
fn types_values_and_booleans() {
    check("true", &["1", "null", "{}", "[[]]", "\"a\""], &["", "x", "{"]);
    check("{}", &["1", "null", "{\"a\":[1]}"], &["nul"]);
    check(
        r#"{"type":"integer"}"#,
        &["1", "-0", "1.0", "-12.00", "9007199254740993", "1e20"],
        &["1.5", "01", "\"1\"", "null", "1.", "+1", "1e-1"],
    );
    check(
        r#"{"type":"number"}"#,
        &["1", "1.5", "-0.25", "1e10", "2.5e-7"],
        &["\"1\"", ".5", "NaN"],
    );
    check(r#"{"type":["null","string"]}"#, &["null", "\"\""], &["0", "[]"]);
    check(r#"{"type":"boolean"}"#, &["true", "false"], &["0", "null"]);
    check(r#"{"type":"null"}"#, &["null"], &["0", "false", "\"null\""]);
    check(r#"{"type":"array"}"#, &["[]", "[1,{}]"], &["{}", "[1,]"]);
    check(r#"{"type":"object"}"#, &["{}", "{\"a\":1}"], &["[]", "{\"a\"}"]);
    check(r#"{"const":false}"#, &["false"], &["true", "0", "null"]);
    check(r#"{"const":1}"#, &["1", "1.0"], &["2", "true", "\"1\""]);
    check(r#"{"const":{"b":[1],"a":null}}"#, &[r#"{"b":[1],"a":null}"#], &[r#"{"b":[1]}"#, "{}"]);
    check(
        r#"{"enum":[1,"a",null,{"b":[2]}]}"#,
        &["1", "\"a\"", "null", "{\"b\":[2]}"],
        &["2", "{}"],
    );
    assert!(is_unsatisfiable("false"));
    assert!(is_unsatisfiable(r#"{"type":"string","enum":[1]}"#));
}

#[test]
fn annotations_demand_nothing() {
    check(
        r#"{"type":"null","title":"t","description":"d","default":1,"examples":[2],"readOnly":true,
            "deprecated":true,"$comment":"c","contentEncoding":"base64","x-mine":{"type":"string"},
            "format":"colour","$schema":"https://json-schema.org/draft/2020-12/schema"}"#,
        &["null"],
        &["1"],
    );
    check(r#"{"type":"string","format":"colour"}"#, &["\"any\""], &["1"]);
    check(r#"{"minimum":3}"#, &["\"a\"", "null", "3"], &["2"]);
    check(
        r#"{"maxLength":1,"maxItems":1,"maxProperties":0}"#,
        &["5", "\"a\"", "[1]", "{}"],
        &["\"ab\"", "[1,2]", "{\"a\":1}"],
    );
}

#[test]
fn numbers() {
    check(r#"{"type":"number","minimum":1.5}"#, &["1.5", "2", "1e1"], &["1.4", "-2", "1.4999"]);
    check(
        r#"{"type":"number","maximum":10}"#,
        &["10", "1e1", "10.0", "-1e20"],
        &["10.1", "1.1e1", "1e2"],
    );
    check(r#"{"type":"number","exclusiveMinimum":1}"#, &["1.01", "2"], &["1", "1.0", "0.99"]);
    check(r#"{"type":"number","exclusiveMaximum":2}"#, &["1.99", "-5"], &["2", "2.0", "2.01"]);
    check(
        r#"{"type":"number","minimum":1,"exclusiveMinimum":true,"maximum":2,"exclusiveMaximum":false}"#,
        &["1.1", "2"],
        &["1", "2.1"],
    );
    check(
        r#"{"type":"integer","minimum":-5,"maximum":1e1}"#,
        &["-5", "0", "10", "1e1", "7.0"],
        &["-6", "11", "2e1", "0.5"],
    );
    check(
        r#"{"type":"integer","multipleOf":3}"#,
        &["0", "3", "-9", "123456789"],
        &["1", "2", "3.5"],
    );
    check(r#"{"type":"number","multipleOf":0.1}"#, &["0.3", "1", "0", "-2.5"], &["0.35", "0.01"]);
    check(
        r#"{"type":"number","multipleOf":2.5,"minimum":3,"maximum":8}"#,
        &["5", "7.5"],
        &["2.5", "10", "6"],
    );
    check(r#"{"type":"number","not":{"multipleOf":1}}"#, &["0.5"], &["1", "2.0"]);
    assert!(is_unsatisfiable(r#"{"type":"integer","minimum":2,"maximum":1}"#));
    assert!(is_unsatisfiable(r#"{"type":"integer","exclusiveMinimum":0.2,"maximum":0.8}"#));
}

#[test]
fn integers_beyond_doubles() {
    check(
        r#"{"type":"integer","minimum":9007199254740993}"#,
        &["9007199254740993", "9007199254740994"],
        &["9007199254740992", "9007199254740991"],
    );
    check(
        r#"{"const":9007199254740993}"#,
        &["9007199254740993"],
        &["9007199254740992", "9007199254740994"],
    );
    check(
        r#"{"type":"integer","minimum":18446744073709551615,"maximum":18446744073709551617}"#,
        &["18446744073709551615", "18446744073709551616", "18446744073709551617"],
        &["18446744073709551614", "18446744073709551618"],
    );
    check(
        r#"{"enum":[123456789012345678901234567890,-36893488147419103232]}"#,
        &["123456789012345678901234567890", "-36893488147419103232"],
        &["123456789012345678901234567891", "-36893488147419103231"],
    );
    check(
        r#"{"type":"integer","multipleOf":2,"minimum":9007199254740993}"#,
        &["9007199254740994"],
        &["9007199254740993", "9007199254740995", "9007199254740992"],
    );
}

#[test]
fn lengths_count_characters() {
    check(
        r#"{"type":"string","minLength":2,"maxLength":3}"#,
        &["\"ab\"", "\"é🙂\"", r#""\ud83d\ude42\n""#, r#""\u0041\t\"""#],
        &["\"a\"", "\"🙂\"", "\"abcd\"", r#""\ud83d\ude42""#, r#""\ud83d\u0041""#, r#""\udc00a""#],
    );
    check(r#"{"type":"string","maxLength":0}"#, &["\"\""], &["\"a\""]);
    check(
        r#"{"type":"string"}"#,
        &[r#""\/\b\f\n\r\t\\\"\u00e9""#],
        &["\"\n\"", r#""\x""#, r#""\ud800""#],
    );
    let grammar = schema_with(r#"{"type":"string","maxLength":100000}"#, compact());
    assert!(writes(&grammar, &format!("\"{}\"", "é".repeat(100_000))));
    assert!(!writes(&grammar, &format!("\"{}\"", "a".repeat(100_001))));
    assert!(grammar.size().nodes < 1_000);
}

#[test]
fn patterns() {
    check(r#"{"type":"string","pattern":"b+"}"#, &["\"abc\"", "\"b\""], &["\"\"", "\"ac\""]);
    check(
        r#"{"type":"string","pattern":"^b+$"}"#,
        &["\"b\"", "\"bb\""],
        &["\"\"", "\"abc\"", "\"b\\n\""],
    );
    check(r#"{"type":"string","pattern":"^(?!ab).*c"}"#, &["\"acb\""], &["\"abc\"", "\"a\""]);
    check(
        r#"{"type":"string","pattern":"(?<=a)b\\b"}"#,
        &["\"ab\"", "\"ab c\""],
        &["\"b\"", "\"abc\""],
    );
    check(
        r#"{"type":"string","pattern":"^\\d{2}\\s\\w$"}"#,
        &["\"12 a\""],
        &["\"1 a\"", "\"12 é\"", "\"١٢ a\""],
    );
    check(
        r#"{"type":"string","pattern":"^\\p{L}.$"}"#,
        &["\"é🙂\"", "\"ab\""],
        &["\"1a\"", "\"a\\n\""],
    );
    check(r#"{"type":"string","pattern":"^[\"\\\\\\n]+$"}"#, &[r#""\"\\\n""#], &["\"a\"", "\"\""]);
    // One spelling only.
    check(r#"{"type":"string","pattern":"^a$"}"#, &["\"a\""], &[r#""\u0061""#]);
    check(
        r#"{"type":"string","pattern":"a|^$","maxLength":2}"#,
        &["\"\"", "\"ba\"", "\"a\""],
        &["\"b\"", "\"baa\""],
    );
    check(
        r#"{"type":"string","pattern":"b$","minLength":3}"#,
        &["\"aab\"", "\"éab\""],
        &["\"ab\"", "\"aaa\""],
    );
    check(
        r#"{"type":"string","pattern":"^[a-f]*$","minLength":2,"maxLength":4}"#,
        &["\"ab\"", "\"abcd\""],
        &["\"a\"", "\"abcde\"", "\"xy\""],
    );
    check(
        r#"{"type":"string","pattern":"^(a{5}|b)$","maxLength":3}"#,
        &["\"b\""],
        &["\"aaaaa\"", "\"aaa"],
    );
    check(
        r#"{"type":"string","pattern":"^(ab)+$","minLength":3,"maxLength":5}"#,
        &["\"abab\""],
        &["\"ab\"", "\"aba\"", "\"ababab\""],
    );
    check(r#"{"type":"string","pattern":"x","maxLength":5000}"#, &["\"x\"", "\"axb\""], &["\"a\""]);
    check(
        r#"{"type":"string","allOf":[{"pattern":"a"},{"pattern":"b"}]}"#,
        &["\"ab\"", "\"b a\""],
        &["\"a\"", "\"b\""],
    );
    check(
        r#"{"type":"string","pattern":"a","not":{"pattern":"b"}}"#,
        &["\"a\"", "\"ca\""],
        &["\"ab\"", "\"c\""],
    );
    check(r#"{"enum":["ab","b",1],"pattern":"^a"}"#, &["\"ab\"", "1"], &["\"b\""]);
    assert_eq!(
        inexact(r#"{"type":"string","pattern":"(a)\\1"}"#),
        ("#".to_owned(), "pattern".to_owned())
    );
    let grammar = schema_with(r#"{"type":"string","pattern":"^[a-z]{0,100000}$"}"#, compact());
    assert!(writes(&grammar, &format!("\"{}\"", "q".repeat(100_000))));
    assert!(!writes(&grammar, &format!("\"{}\"", "q".repeat(100_001))));
}

/// Each format of 2020-12: texts that it allows and that it does not.
const FORMATS: [(&str, &[&str], &[&str]); 19] = [
    (
        "date-time",
        &["2024-02-29T12:00:00Z", "1990-12-31T23:59:60Z", "2024-01-01T00:00:00.5+05:30"],
        &["2023-02-29T12:00:00Z", "2024-01-01", "2024-01-01T24:00:00Z", "2024-01-01T00:00:00"],
    ),
    (
        "date",
        &["2024-02-29", "2000-12-31"],
        &["2023-02-29", "2024-13-01", "2024-1-1", "1900-02-29"],
    ),
    ("time", &["12:00:00Z", "23:59:59.999-08:00"], &["24:00:00Z", "12:00:00", "12:60:00Z"]),
    ("duration", &["P1Y2M3D", "PT1H", "P4W", "P1DT2M"], &["P", "PT", "1D", "P1H", "P1W2D"]),
    (
        "email",
        &["a@example.com", "a.b+c@x.org"],
        &["a", "@example.com", "a@", "a b@example.com", "a..b@x.org"],
    ),
    ("idn-email", &["a@example.com", "é@example.com"], &["a", "@", "é@"]),
    ("hostname", &["example.com", "a-b.c", "x"], &["-a.com", "a-.com", "a..b", "a_b.com", ""]),
    ("idn-hostname", &["example.com", "bücher.example"], &["-a.com", "a..b", "a b"]),
    ("ipv4", &["127.0.0.1", "255.255.255.255"], &["256.0.0.1", "1.2.3", "01.2.3.4", "1.2.3.4.5"]),
    (
        "ipv6",
        &["::1", "2001:db8::1", "1:2:3:4:5:6:7:8", "::ffff:1.2.3.4"],
        &["1::2::3", ":1", "12345::", "1:2:3:4:5:6:7"],
    ),
    ("uri", &["http://example.com/a?b#c", "urn:a:b"], &["//example.com", "a b", "http://[", "/a"]),
    ("uri-reference", &["/a/b", "http://x/", "#f", ""], &["a b", "\\\\x", "%zz"]),
    ("iri", &["http://exämple.com/é"], &["/é", "http://a b", "é"]),
    ("iri-reference", &["/é", "http://x/", ""], &["é é", "<>"]),
    (
        "uuid",
        &["123e4567-e89b-12d3-a456-426614174000", "123E4567-E89B-12D3-A456-426614174000"],
        &["123e4567e89b12d3a456426614174000", "123e4567-e89b-12d3-a456-42661417400"],
    ),
    ("uri-template", &["/a/{b}", "http://x{?q,r}", "{+a:3}"], &["{", "a}", "{a", "{}"]),
    ("json-pointer", &["", "/a/b", "/~0~1"], &["a", "/~2", "/~"]),
    ("relative-json-pointer", &["0", "1/a", "2#"], &["/a", "-1", "01"]),
    ("regex", &["^a+[a-d]$", "", "(?:x|y){2,3}"], &["(", "a{2,1}", "[b-a]", "*"]),
];

#[test]
fn formats() {
    for (format, accepted, rejected) in FORMATS {
        let schema = format!(r#"{{"type":"string","format":"{format}"}}"#);
        let judge = serde_json::from_str(&schema).unwrap();
        let judge = jsonschema::options().should_validate_formats(true).build(&judge).unwrap();
        let grammar = schema_with(&schema, compact());
        for (text, expected) in accepted
            .iter()
            .map(|text| (text, true))
            .chain(rejected.iter().map(|text| (text, false)))
        {
            let value = serde_json::Value::from(*text);
            assert_eq!(accepts(&grammar, &value.to_string()), expected, "{format}: {text}");
            assert!(!expected || judge.is_valid(&value), "the judge of {format}: {text}");
        }
        assert!(!accepts(&grammar, "1"), "{format}");
    }
}

#[test]
fn formats_beside_other_keywords() {
    check(
        r#"{"type":"string","format":"date","pattern":"^2024-"}"#,
        &["\"2024-02-29\""],
        &["\"2023-01-01\"", "\"2024-\""],
    );
    check(
        r#"{"type":"string","format":"ipv4","maxLength":7}"#,
        &["\"1.2.3.4\""],
        &["\"1.2.3.44\"", "\"1.2.3\""],
    );
    check(
        r#"{"type":"string","format":"email","minLength":8}"#,
        &["\"a@bb.com\""],
        &["\"a@b.com\"", "\"aaaaaaaa\""],
    );
    check(
        r#"{"type":"string","not":{"format":"ipv4"},"pattern":"^[0-9.]+$"}"#,
        &["\"1.2.3\""],
        &["\"1.2.3.4\""],
    );
    check(r#"{"type":["string","null"],"format":"uuid"}"#, &["null"], &["\"a\""]);
    check(r#"{"format":"date","enum":["2024-01-01","x"]}"#, &["\"2024-01-01\""], &["\"x\""]);
}

#[test]
fn arrays() {
    let accepted: &[&str] = &["[null]", "[null, null]"];
    check(
        r#"{"type":"array","items":{"type":"null"},"minItems":1,"maxItems":2}"#,
        accepted,
        &["[]", "[1]", "[null,null,null]"],
    );
    check(
        r#"{"type":"array","prefixItems":[{"type":"null"}],"items":{"type":"string"}}"#,
        &["[]", "[null]", "[null,\"\"]"],
        &["[\"\"]", "[null,null]"],
    );
    check(
        r#"{"type":"array","items":[{"type":"null"},{"type":"string"}],"additionalItems":false}"#,
        &["[]", "[null]", "[null,\"\"]"],
        &["[1]", "[null,1]", "[null,\"\",1]"],
    );
    check(
        r#"{"type":"array","items":[{"type":"null"}],"additionalItems":{"type":"boolean"}}"#,
        &["[null,true]"],
        &["[null,1]"],
    );
    check(r#"{"type":"array","items":false}"#, &["[]", "[ ]"], &["[1]"]);
    check(
        r#"{"type":"array","prefixItems":[true,true,{"const":1}],"minItems":2,"maxItems":3,"items":false}"#,
        &["[0,0]", "[0,0,1]"],
        &["[0]", "[0,0,2]", "[0,0,1,1]"],
    );
    check(
        r#"{"type":"array","allOf":[{"prefixItems":[{"type":"integer"}]},{"items":{"minimum":2}}]}"#,
        &["[2,2.5]", "[]"],
        &["[2.5]", "[2,1]"],
    );
    check(
        r#"{"type":"array","contains":{"type":"null"}}"#,
        &["[1,null]", "[null]"],
        &["[]", "[1]"],
    );
    check(
        r#"{"type":"array","contains":{"type":"null"},"minContains":2,"maxContains":3}"#,
        &["[null,null]", "[null,1,null,null,2]"],
        &["[null]", "[null,null,null,null]", "[1,1]"],
    );
    check(
        r#"{"type":"array","contains":{"type":"null"},"minContains":0,"maxContains":1}"#,
        &["[]", "[1]", "[1,null,1]"],
        &["[null,null]"],
    );
    check(
        r#"{"type":"array","contains":{"const":1},"maxItems":2}"#,
        &["[1]", "[0,1]", "[1,0]"],
        &["[0,0]", "[0,0,1]", "[]"],
    );
    check(
        r#"{"type":"array","contains":{"const":1},"minItems":3}"#,
        &["[0,0,1]", "[1,1,1,1]"],
        &["[1,1]", "[0,0,0]"],
    );
    check(
        r#"{"type":"array","items":{"enum":[1,2,3]},"contains":{"const":1}}"#,
        &["[1]", "[3,2,1]"],
        &["[2]", "[1,4]"],
    );
    check(
        r#"{"type":"array","prefixItems":[{"const":0}],"contains":{"const":0},"minContains":2}"#,
        &["[0,0]", "[0,1,0]"],
        &["[0]", "[1,0,0]"],
    );
    check(
        r#"{"type":"array","items":{"enum":["a","b","c"]},"uniqueItems":true}"#,
        &["[]", "[\"b\",\"a\"]", "[\"c\",\"a\",\"b\"]"],
        &["[\"a\",\"a\"]", "[\"a\",\"b\",\"a\"]", "[\"d\"]"],
    );
    check(
        r#"{"type":"array","items":{"type":"boolean"},"uniqueItems":true,"minItems":2}"#,
        &["[true,false]"],
        &["[true,true]", "[true]"],
    );
    check(
        r#"{"type":"array","uniqueItems":true,"maxItems":1}"#,
        &["[]", "[{\"a\":1}]"],
        &["[1,1]", "[1,2]"],
    );
    check(r#"{"type":"array","uniqueItems":false}"#, &["[1,1]"], &["1"]);
    assert_eq!(inexact(r#"{"type":"array","uniqueItems":true}"#).1, "uniqueItems");
    check(r#"{"type":"array","not":{"contains":{"type":"null"}}}"#, &["[]", "[1]"], &["[1,null]"]);
    check(
        r#"{"type":"array","not":{"items":{"type":"null"}}}"#,
        &["[1,null]", "[1]"],
        &["[]", "[null]"],
    );
    check(r#"{"type":"array","not":{"maxItems":1}}"#, &["[1,1]"], &["[]", "[1]"]);
    check(
        r#"{"type":"array","prefixItems":[true],"unevaluatedItems":false}"#,
        &["[]", "[1]"],
        &["[1,2]"],
    );
    check(
        r#"{"type":"array","allOf":[{"prefixItems":[true]}],"unevaluatedItems":{"type":"null"}}"#,
        &["[1,null]"],
        &["[1,2]"],
    );
    let too_few = r#"{"type":"array","items":{"enum":[1,2]},"uniqueItems":true,"minItems":3}"#;
    assert!(try_schema(too_few, SchemaOptions::default()).is_err());
    let grammar =
        schema_with(r#"{"type":"array","items":{"type":"integer"},"maxItems":3000}"#, compact());
    let list = |count: usize| format!("[{}]", vec!["7"; count].join(","));
    assert!(writes(&grammar, &list(3_000)));
    assert!(!writes(&grammar, &list(3_001)));
}

#[test]
fn objects() {
    check(
        r#"{"type":"object","properties":{"a":{"type":"null"}},"required":["a","z"]}"#,
        &[r#"{"a":null,"z":1}"#, r#"{"a":null,"z":1,"b":2}"#],
        &[r#"{"a":null}"#, r#"{"a":1,"z":1}"#, r#"{"z":1}"#],
    );
    check(
        r#"{"type":"object","properties":{"a":{}},"additionalProperties":false}"#,
        &["{}", r#"{"a":[1]}"#],
        &[r#"{"b":1}"#, r#"{"a":1,"b":1}"#],
    );
    check(
        r#"{"type":"object","properties":{"a":{}},"additionalProperties":{"type":"null"}}"#,
        &[r#"{"a":1,"b":null}"#],
        &[r#"{"b":1}"#],
    );
    check(
        r#"{"type":"object","properties":{"a":false,"b":true}}"#,
        &["{}", r#"{"b":1}"#, r#"{"c":1}"#],
        &[r#"{"a":1}"#],
    );
    check(
        r#"{"type":"object","patternProperties":{"^x":{"type":"integer"}},"additionalProperties":false}"#,
        &["{}", r#"{"x1":1,"xy":2}"#],
        &[r#"{"x1":""}"#, r#"{"y":1}"#],
    );
    check(
        r#"{"type":"object","patternProperties":{"^a":{"minimum":1},"b$":{"maximum":2}},"additionalProperties":false}"#,
        &[r#"{"ab":1.5,"a":3,"b":0}"#],
        &[r#"{"ab":3}"#, r#"{"ab":0}"#, r#"{"c":1}"#],
    );
    check(
        r#"{"type":"object","properties":{"ab":{"type":"integer"}},"patternProperties":{"^a":{"minimum":1}}}"#,
        &[r#"{"ab":1}"#, r#"{"ac":1.5,"b":0}"#],
        &[r#"{"ab":1.5}"#, r#"{"ab":0}"#, r#"{"ac":0}"#],
    );
    check(
        r#"{"type":"object","propertyNames":{"maxLength":1},"properties":{"ab":{}}}"#,
        &[r#"{"a":1}"#, r#"{"é":1}"#],
        &[r#"{"ab":1}"#],
    );
    check(
        r#"{"type":"object","propertyNames":{"pattern":"^[a-z]+$"},"patternProperties":{"^a":{"type":"null"}}}"#,
        &[r#"{"b":1,"ab":null}"#],
        &[r#"{"B":1}"#, r#"{"ab":1}"#],
    );
    check(
        r#"{"type":"object","propertyNames":{"enum":["a","b"]},"additionalProperties":{"type":"null"}}"#,
        &["{}", r#"{"a":null,"b":null}"#, r#"{"b":null}"#],
        &[r#"{"c":null}"#, r#"{"a":1}"#],
    );
    check(
        r#"{"type":"object","minProperties":1,"maxProperties":2}"#,
        &[r#"{"a":1}"#, r#"{"b":1,"a":1}"#],
        &["{}", r#"{"a":1,"b":1,"c":1}"#],
    );
    check(
        r#"{"type":"object","properties":{"a":{},"b":{},"c":{}},"additionalProperties":false,"minProperties":2}"#,
        &[r#"{"a":1,"c":1}"#, r#"{"b":1,"c":1}"#],
        &[r#"{"c":1}"#, r#"{"a":1}"#],
    );
    check(
        r#"{"type":"object","properties":{"a":{},"b":{}},"required":["b"],"maxProperties":1}"#,
        &[r#"{"b":1}"#],
        &[r#"{"a":1,"b":1}"#, r#"{"a":1}"#],
    );
    assert!(is_unsatisfiable(r#"{"type":"object","required":["a","b"],"maxProperties":1}"#));
    assert!(is_unsatisfiable(r#"{"type":"object","properties":{"a":false},"required":["a"]}"#));
}

#[test]
fn dependent_keys() {
    check(
        r#"{"type":"object","properties":{"a":{},"b":{},"c":{}},"dependentRequired":{"a":["b"],"c":["a"]}}"#,
        &["{}", r#"{"b":1}"#, r#"{"a":1,"b":1}"#, r#"{"a":1,"b":1,"c":1}"#],
        &[r#"{"a":1}"#, r#"{"b":1,"c":1}"#, r#"{"a":1,"c":1}"#],
    );
    check(
        r#"{"type":"object","properties":{"b":{},"a":{}},"dependentRequired":{"a":["b"]}}"#,
        &["{}", r#"{"b":1}"#, r#"{"b":1,"a":1}"#],
        &[r#"{"a":1}"#],
    );
    check(
        r#"{"type":"object","properties":{"a":{},"b":{},"d":{},"c":{}},"dependencies":{"a":["b"],"c":{"properties":{"d":{"type":"null"}}}}}"#,
        &[r#"{"d":1}"#, r#"{"d":null,"c":1}"#, r#"{"a":1,"b":1}"#],
        &[r#"{"a":1}"#, r#"{"d":1,"c":1}"#],
    );
    check(
        r#"{"type":"object","properties":{"a":{},"b":{}},"dependentSchemas":{"a":{"minProperties":2}}}"#,
        &[r#"{"b":1}"#, r#"{"a":1,"b":1}"#],
        &[r#"{"a":1}"#],
    );
    check(
        r#"{"type":"object","properties":{"a":{},"b":{}},"dependentRequired":{"a":["b"]},"maxProperties":1}"#,
        &["{}", r#"{"b":1}"#],
        &[r#"{"a":1,"b":1}"#, r#"{"a":1}"#],
    );
}

#[test]
fn combinations() {
    check(
        r#"{"anyOf":[{"type":"string"},{"type":"object","required":["a"]}]}"#,
        &["\"\"", r#"{"a":1}"#],
        &["{}", "1"],
    );
    check(
        r#"{"anyOf":[{"minLength":2},{"pattern":"^a"}],"type":"string"}"#,
        &["\"a\"", "\"bb\""],
        &["\"b\"", "\"\""],
    );
    check(r#"{"oneOf":[{"type":"integer"},{"minimum":2}]}"#, &["1", "2.5", "\"a\""], &["2", "1.5"]);
    check(
        r#"{"type":"string","oneOf":[{"pattern":"a"},{"pattern":"b"}]}"#,
        &["\"a\"", "\"b\""],
        &["\"ab\"", "\"c\""],
    );
    check(
        r#"{"type":"object","properties":{"a":{},"b":{}},"oneOf":[{"required":["a"]},{"required":["b"]}]}"#,
        &[r#"{"a":1}"#, r#"{"b":1}"#],
        &["{}", r#"{"a":1,"b":1}"#],
    );
    check(
        r#"{"oneOf":[{"type":"object","properties":{"k":{"const":1},"v":{"type":"null"}},"required":["k"]},{"type":"object","properties":{"k":{"const":2}},"required":["k"]}]}"#,
        &[r#"{"k":1,"v":null}"#, r#"{"k":2,"v":1}"#],
        &[r#"{"k":1,"v":1}"#, r#"{"k":3}"#, "{}"],
    );
    check(
        r#"{"allOf":[{"type":"integer"},{"minimum":2},{"maximum":4}]}"#,
        &["2", "4"],
        &["1", "5", "2.5"],
    );
    check(
        r#"{"type":"object","allOf":[{"properties":{"a":{"minimum":1}}},{"properties":{"a":{"maximum":2}},"additionalProperties":false}]}"#,
        &["{}", r#"{"a":1}"#],
        &[r#"{"a":3}"#, r#"{"a":0}"#, r#"{"b":1}"#],
    );
    check(
        r#"{"type":"object","additionalProperties":{"type":"integer"},"allOf":[{"properties":{"a":{"minimum":1}}},{"required":["a"]}]}"#,
        &[r#"{"a":1}"#, r#"{"a":2,"b":-1}"#],
        &[r#"{"a":1.5}"#, r#"{"a":1,"b":"x"}"#, "{}"],
    );
    check(
        r#"{"type":"string","not":{"enum":["a","bc"]}}"#,
        &["\"b\"", "\"aa\"", "\"\"", "\"bcd\""],
        &["\"a\"", "\"bc\""],
    );
    check(
        r#"{"type":["string","integer"],"not":{"enum":["a",1]}}"#,
        &["\"c\"", "2", "10"],
        &["\"a\"", "1", "1.0"],
    );
    check(r#"{"enum":[1,2,3,"x"],"not":{"enum":[2]}}"#, &["1", "3", "\"x\""], &["2"]);
    check(
        r#"{"type":["null","integer","string"],"not":{"type":"string"}}"#,
        &["null", "1"],
        &["\"\""],
    );
    check(
        r#"{"type":"object","properties":{"a":{},"b":{}},"not":{"required":["a","b"]}}"#,
        &["{}", r#"{"a":1}"#, r#"{"b":1}"#],
        &[r#"{"a":1,"b":1}"#],
    );
    check(
        r#"{"type":"object","not":{"required":["a"]}}"#,
        &["{}", r#"{"b":1}"#],
        &[r#"{"a":1}"#, r#"{"b":1,"a":2}"#],
    );
    check(
        r#"{"type":"object","properties":{"a":{},"b":{},"c":{}},"if":{"properties":{"a":{"const":1}},"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]}}"#,
        &[r#"{"a":1,"b":0}"#, r#"{"a":2,"c":0}"#, r#"{"c":0}"#],
        &["{}", r#"{"a":1}"#, r#"{"a":2,"b":0}"#, r#"{"a":1,"c":0}"#],
    );
    check(r#"{"if":{"type":"string"},"then":{"minLength":1}}"#, &["\"a\"", "1", "null"], &["\"\""]);
    check(r#"{"then":{"minLength":1},"type":"string"}"#, &["\"\""], &["1"]);
    check(
        r#"{"type":["integer","string"],"if":{"minimum":5},"else":{"multipleOf":2}}"#,
        &["5", "7", "4", "\"a\""],
        &["3", "1"],
    );
}

#[test]
fn unevaluated() {
    check(
        r#"{"type":"object","allOf":[{"properties":{"a":true}}],"properties":{"b":true},"unevaluatedProperties":false}"#,
        &["{}", r#"{"a":1}"#, r#"{"b":1}"#],
        &[r#"{"c":1}"#],
    );
    check(
        r#"{"type":"object","allOf":[{"patternProperties":{"^a":true}}],"unevaluatedProperties":{"type":"null"}}"#,
        &[r#"{"ab":1,"b":null}"#],
        &[r#"{"b":1}"#],
    );
    check(
        r##"{"type":"object","$ref":"#/$defs/base","properties":{"b":{}},"unevaluatedProperties":false,"$defs":{"base":{"properties":{"a":{}}}}}"##,
        &["{}", r#"{"b":1}"#, r#"{"a":1}"#],
        &[r#"{"c":1}"#],
    );
    let undecided = r#"{"type":"object","anyOf":[{"properties":{"a":{}}},{"properties":{"b":{}}}],"unevaluatedProperties":false}"#;
    assert_eq!(inexact(undecided), ("#".to_owned(), "unevaluatedProperties".to_owned()));
}

#[test]
fn references() {
    check(
        r##"{"$ref":"#/$defs/a","minimum":2,"$defs":{"a":{"type":"integer"}}}"##,
        &["2"],
        &["1", "2.5"],
    );
    check(
        r##"{"$ref":"#/definitions/a~1b%25","definitions":{"a/b%":{"type":"null"}}}"##,
        &["null"],
        &["1"],
    );
    check(r##"{"$ref":"#x","$defs":{"y":{"$anchor":"x","type":"null"}}}"##, &["null"], &["1"]);
    check(
        r##"{"$id":"http://a/b/c.json","$ref":"d.json#/$defs/e","$defs":{"q":{"$id":"d.json","$defs":{"e":{"type":"null"}}}}}"##,
        &["null"],
        &["1"],
    );
    check(
        r##"{"$dynamicRef":"#n","$defs":{"n":{"$dynamicAnchor":"n","type":"null"}}}"##,
        &["null"],
        &["1"],
    );
    check(r#"{"type":"string","nullable":true}"#, &["null", "\"\""], &["0"]);
    check(r#"{"type":"string","nullable":true,"minLength":1}"#, &["null", "\"a\""], &["\"\"", "0"]);
    check(r#"{"type":"string","nullable":false}"#, &["\"\""], &["null"]);
    check(
        r##"{"type":"object","properties":{"n":{"$ref":"#"}},"additionalProperties":false}"##,
        &["{}", r#"{"n":{"n":{}}}"#],
        &[r#"{"n":{"m":{}}}"#, r#"{"n":1}"#],
    );
    check(r##"{"type":"array","items":{"$ref":"#"}}"##, &["[]", "[[],[[]]]"], &["[1]"]);
    check(
        r##"{"$ref":"#/$defs/even","$defs":{"even":{"anyOf":[{"type":"null"},{"type":"array","items":{"$ref":"#/$defs/odd"},"minItems":1,"maxItems":1}]},"odd":{"type":"array","items":{"$ref":"#/$defs/even"},"minItems":1,"maxItems":1}}}"##,
        &["null", "[[null]]", "[[[[null]]]]"],
        &["[null]", "[[[null]]]", "[]"],
    );
    assert_eq!(inexact(r#"{"$ref":"http://example.com/x"}"#).1, "$ref");
}

#[test]
fn declared_keys_have_one_spelling_and_no_key_comes_twice() {
    let schema =
        r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{}},"required":["a"]}"#;
    for options in [SchemaOptions::default(), any_order()] {
        let grammar = schema_with(schema, options);
        for (text, expected) in [
            (r#"{"a":1,"c":1,"d":2}"#, true),
            (r#"{"\u0061":1}"#, false),
            (r#"{"a":1,"\u0061":"x"}"#, false),
            (r#"{"a":1,"a":2}"#, false),
            (r#"{"a":1,"c":1,"c":2}"#, false),
            (r#"{"a":1,"c":1,"\u0063":2}"#, false),
            (r#"{"a":1,"c":1,"d":1,"c":2}"#, false),
            (r#"{"a":1,"c":{"c":1},"d":{"c":1}}"#, true),
            (r#"{"a":1,"c":{"x":1,"x":1}}"#, false),
            (r#"{"a":1,"c":[{"x":1},{"x":1}]}"#, true),
            (r#"{"a":1,"c":"\"x\":1,\"x\":1"}"#, true),
            (r#"{"a":1,"\"":1,"\"":1}"#, false),
            (r#"{"a":1,"é":1,"é":1}"#, false),
            (r#"{"a":1,"":1,"":1}"#, false),
        ] {
            assert_eq!(writes(&grammar, text), expected, "{options:?} {text}");
        }
    }
    // Keys by patterns and by names.
    for schema in [
        r#"{"type":"object","patternProperties":{"^x":{}},"additionalProperties":false}"#,
        r#"{"type":"object","propertyNames":{"pattern":"^x[0-9]?$"}}"#,
        r#"{"type":"object","propertyNames":{"enum":["x","x1"]}}"#,
    ] {
        let grammar = schema_with(schema, compact());
        assert!(writes(&grammar, r#"{"x":1,"x1":1}"#), "{schema}");
        assert!(!writes(&grammar, r#"{"x":1,"x1":1,"x":1}"#), "{schema}");
        assert!(!writes(&grammar, r#"{"x":1,"x":1}"#), "{schema}");
    }
}

#[test]
fn fault_8_a_name_that_is_over_can_still_become_a_free_one() {
    let grammar = schema_with(r#"{"type":"object","properties":{"a":{},"b":{}}}"#, compact());
    let mut matcher = grammar.matcher();
    for &byte in br#"{"b":1,"a"# {
        matcher.accept(byte.into()).unwrap();
    }
    let mask = matcher.mask().unwrap();
    assert!(!mask.contains(b'"'.into()));
    assert!(mask.contains(b'c'.into()));
    assert!(mask.contains(b'1'.into()));
    assert!(writes(&grammar, r#"{"b":1,"ab":1}"#));
    assert!(!writes(&grammar, r#"{"b":1,"a":1}"#));
    // Where no free keys are, the name is not entered.
    let closed = r#"{"type":"object","properties":{"a":{},"b":{}},"additionalProperties":false}"#;
    let grammar = schema_with(closed, compact());
    let mut matcher = grammar.matcher();
    for &byte in br#"{"b":1"# {
        matcher.accept(byte.into()).unwrap();
    }
    let mask = matcher.mask().unwrap();
    assert!(mask.contains(b'}'.into()) && !mask.contains(b','.into()));
}

#[test]
fn fault_12_a_token_that_closes_several_levels() {
    let tokens = ["}}}", "}}", "}}}}", "}},"].map(|word| word.as_bytes().to_vec());
    let bytes = (0..=u8::MAX).map(|byte| vec![byte]).chain(tokens);
    let tokens =
        bytes.map(|bytes| pleach::vocab::Token { bytes, kind: pleach::vocab::TokenKind::Text });
    let vocabulary = pleach::vocab::Vocabulary::new(tokens.collect(), &[], None);
    let vocabulary = pleach::grammar::GrammarVocabulary::new(&vocabulary);
    let schema =
        r##"{"type":"object","properties":{"c":{"$ref":"#"}},"additionalProperties":false}"##;
    for (schema, follows) in [
        (schema.to_owned(), [true, true, false, false]),
        (schema.replace("false", "true"), [true, true, false, true]),
    ] {
        let grammar = schema_support::compile_counted(&schema, compact(), &vocabulary).0.unwrap();
        let mut matcher = grammar.matcher();
        for &byte in br#"{"c":{"c":{"# {
            matcher.accept(byte.into()).unwrap();
        }
        let mask = matcher.mask().unwrap();
        for (token, expected) in (256..).zip(follows) {
            assert_eq!(mask.contains(token), expected, "{schema} {token}");
            assert_eq!(matcher.fork().accept(token).is_ok(), expected, "{schema} {token}");
        }
    }
}

#[test]
fn order_of_keys() {
    let schema = r#"{"type":"object","properties":{"a":{},"b":{}},"required":["z","b"]}"#;
    let declared: &[&str] = &[r#"{"a":1,"b":1,"z":1}"#, r#"{"b":1,"z":1,"y":1}"#];
    let mixed: &[&str] = &[
        r#"{"b":1,"a":1,"z":1}"#,
        r#"{"z":1,"b":1}"#,
        r#"{"y":1,"b":1,"z":1}"#,
        r#"{"b":1,"y":1,"z":1}"#,
    ];
    let wrong: &[&str] = &["{}", r#"{"a":1}"#, r#"{"b":1}"#, r#"{"z":1}"#];
    check(schema, declared, &[mixed, wrong].concat());
    check_with(schema, any_order(), &[declared, mixed].concat(), wrong);
    check_with(
        r#"{"type":"object","properties":{"a":{},"b":{},"c":{}},"dependentRequired":{"a":["b"]},"minProperties":1,"additionalProperties":false}"#,
        any_order(),
        &[r#"{"b":1,"a":1}"#, r#"{"a":1,"b":1}"#, r#"{"c":1}"#, r#"{"a":1,"c":1,"b":1}"#],
        &[r#"{"a":1}"#, r#"{"a":1,"c":1}"#, "{}", r#"{"c":1,"c":1}"#],
    );
}

#[test]
fn whitespace() {
    let schema = r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"null"}},"b":{"const":[1,2]}}}"#;
    let text = |gap: &str| {
        let parts = [
            "{", "\"a\"", ":", "[", "null", ",", "null", "]", ",", "\"b\"", ":", "[", "1", ",",
            "2", "]", "}",
        ];
        parts.join(gap)
    };
    for gap in ["", " ", "\n\t\r ", "        "] {
        check(schema, &[&text(gap)], &[]);
    }
    check(schema, &[], &[&text("         "), " {}", "{} ", "{\u{a0}}"]);
    check_with(schema, compact(), &[&text("")], &[&text(" "), "{ }"]);
    let with = |whitespace| SchemaOptions { whitespace, ..SchemaOptions::default() };
    let wide = with(Whitespace::Any { characters_max: 20 });
    check_with(schema, wide, &[&text("                    ")], &[&text("                     ")]);
    let usual = with(Whitespace::Usual { characters_max: 8 });
    for gap in ["", " ", "\n\t\t", "\n       ", "\r\n      ", "\n\n      "] {
        check_with(schema, usual, &[&text(gap)], &[]);
    }
    for gap in ["  ", "\t", "\n        ", " \n", "\n \n", "\n\n\n", "\r"] {
        check_with(schema, usual, &[], &[&text(gap)]);
    }
    let line = r#"{"a": [null, null], "b": [1, 2]}"#;
    check_with(schema, spaced(), &[line, "{}", r#"{"a": []}"#], &["{ }", r#"{"a": [ ]}"#]);
    for (from, to) in [(": ", ":"), (", ", ","), (":", " :"), (",", " ,"), ("{", "{ "), ("]", " ]")]
    {
        check_with(schema, spaced(), &[], &[&line.replacen(from, to, 1)]);
        check_with(schema, spaced(), &[], &[&line.replace(from, to)]);
    }
    let unique = r#"{"type":"array","items":{"enum":[1,2]},"uniqueItems":true}"#;
    check_with(unique, spaced(), &["[1, 2]", "[]", "[2]"], &["[1,2]", "[1, ]", "[1 ]"]);
}

#[test]
fn what_never_ends_is_refused_with_its_place() {
    let itself = r##"{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}"##;
    let within = r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"required":["a"],
        "$defs":{"n":{"type":"array","minItems":1,"items":{"$ref":"#/$defs/n"}}}}"##;
    for (schema, place) in [(itself, "#"), (within, "#/$defs/n")] {
        match refusal(schema) {
            SchemaError::Unsatisfiable { pointer, .. } => assert_eq!(pointer, place, "{schema}"),
            other => panic!("{schema}: {other:?}"),
        }
    }
}

#[test]
fn integers_are_plain_where_that_is_wished() {
    let plain = SchemaOptions { plain_integers: true, ..SchemaOptions::default() };
    let schema = r#"{"type":"array","items":{"type":"integer","minimum":-20,"maximum":1000}}"#;
    check(schema, &["[-0]", "[10.0]", "[1e2]", "[7,-20]"], &["[0.5]"]);
    check_with(schema, plain, &["[0,7,-20,1000]"], &["[-0]", "[10.0]", "[1e2]", "[0.5]"]);
    check_with(r#"{"type":"number"}"#, plain, &["1.5", "1e2", "10.0", "-0"], &[]);
    check_with(r#"{"type":"integer","minimum":1e300}"#, plain, &["1e300", "2e301"], &["1e299"]);
}

#[test]
fn large_enums_and_many_levels() {
    let values: Vec<String> = (0..5_000).map(|n| format!("\"value {n}\"")).collect();
    let grammar = schema_with(&format!(r#"{{"enum":[{}]}}"#, values.join(",")), compact());
    for value in &values {
        assert!(writes(&grammar, value), "{value}");
    }
    assert!(!writes(&grammar, "\"value 5000\""));
    assert!(!writes(&grammar, "\"value \""));
    let numbers: Vec<String> = (0..5_000).map(|n| format!("{}", n * 3)).collect();
    let grammar = schema_with(&format!(r#"{{"enum":[{}]}}"#, numbers.join(",")), compact());
    assert!(writes(&grammar, "14997") && !writes(&grammar, "14998"));

    let levels = 200;
    for (open, close, value, end) in [
        (
            r#"{"type":"object","properties":{"a":"#,
            r#"},"required":["a"]}"#,
            (r#"{"a":"#, "}"),
            "1",
        ),
        (r#"{"type":"array","minItems":1,"items":"#, "}", ("[", "]"), "1"),
    ] {
        let schema =
            format!("{}{}{}", open.repeat(levels), r#"{"type":"integer"}"#, close.repeat(levels));
        let grammar = schema_with(&schema, compact());
        let text =
            |levels: usize| format!("{}{end}{}", value.0.repeat(levels), value.1.repeat(levels));
        assert!(accepts(&grammar, &text(levels)), "{}", short(&schema));
        assert!(!accepts(&grammar, &text(levels - 1)));
        assert!(!accepts(&grammar, &text(levels + 1)));
    }
}

/// Every byte that may come leads somewhere.
fn assert_no_dead_end(schema: &str, start: &str) {
    let grammar = schema_with(schema, compact());
    let mut matcher = grammar.matcher();
    for byte in start.bytes() {
        matcher.accept(byte.into()).unwrap();
    }
    let mut open = vec![matcher];
    for _ in 0..4 {
        for mut matcher in std::mem::take(&mut open) {
            let mask = matcher.mask();
            let mask = mask.unwrap_or_else(|error| panic!("{schema} {start}: {error}"));
            for byte in 0..=u8::MAX {
                if mask.contains(byte.into()) && (byte >= 0x80 || b"\\u0".contains(&byte)) {
                    let mut next = matcher.fork();
                    next.accept(byte.into()).unwrap();
                    open.push(next);
                }
            }
            open.truncate(400);
        }
    }
}

#[test]
fn no_character_is_begun_that_there_is_no_room_for() {
    for (schema, start) in [
        (r#"{"type":"string","maxLength":2}"#, "\"ab"),
        (r#"{"type":"string","pattern":"a","maxLength":2}"#, "\"ab"),
        (r#"{"type":"string","pattern":"a$","maxLength":2}"#, "\"b"),
        (r#"{"type":"string","pattern":"^[^b]*$","maxLength":2}"#, "\"aa"),
        (r#"{"type":"string","format":"iri-reference","maxLength":1}"#, "\"a"),
    ] {
        assert_no_dead_end(schema, start);
    }
}

#[test]
fn checking_a_text_sees_keys_that_come_twice() {
    let grammar = schema_with(r#"{"type":"object"}"#, compact());
    assert!(accepts(&grammar, r#"{"c":1,"d":1}"#));
    assert!(!accepts(&grammar, r#"{"c":1,"c":1}"#));
}

/// Finishes an answer from a text in just so many tokens as are needed, and gives it back.
fn finish_shortly(schema: &str, begun: &str) -> String {
    let grammar = schema_with(schema, compact());
    let mut matcher = grammar.matcher();
    begun.bytes().for_each(|byte| matcher.accept(byte.into()).unwrap());
    let mut bits = vec![0; grammar.vocabulary().mask_words()];
    let mut text = begun.as_bytes().to_vec();
    for left in (0..=matcher.min_tokens_to_finish().unwrap().unwrap()).rev() {
        if matcher.is_complete() {
            break;
        }
        matcher.fill_mask_within(left, &mut bits).unwrap();
        let token = (0..256).find(|token| bits[token / 32] >> (token % 32) & 1 == 1);
        let token = token.unwrap_or_else(|| panic!("{schema} has no way on after {text:?}"));
        matcher.accept(token as u32).unwrap();
        text.push(token as u8);
    }
    assert!(matcher.is_complete(), "{schema}: {}", String::from_utf8_lossy(&text));
    String::from_utf8(text).unwrap()
}

#[test]
fn the_shortest_way_to_the_end_repeats_no_key() {
    for (schema, begun) in [
        (r#"{"type":"object","minProperties":3}"#, r#"{"":1,"#),
        (r#"{"type":"object","minProperties":9}"#, r#"{"a":1,"#),
        (r#"{"type":"object","additionalProperties":{"type":"integer"}}"#, r#"{"":0,""#),
        (r#"{"type":"object","properties":{"":{}},"minProperties":2}"#, r#"{"":0,"#),
    ] {
        let text = finish_shortly(schema, begun);
        assert!(accepts(&schema_with(schema, compact()), &text), "{schema}: {text}");
    }
}

#[test]
fn no_key_is_begun_that_cannot_come() {
    let any = any_order();
    let used = schema_with(
        r#"{"properties":{"foo":{"type":"null"}},"patternProperties":{"^x-":{}},"additionalProperties":false}"#,
        any,
    );
    let begins = |text: &str| {
        let mut matcher = used.matcher();
        text.bytes().all(|byte| matcher.accept(byte.into()).is_ok())
    };
    assert!(begins(r#"{"foo":null,"x"#));
    assert!(!begins(r#"{"foo":null,"f"#), "`foo` is there already");
    let accents =
        schema_with(r#"{"properties":{"é":{},"è":{},"b":{}},"additionalProperties":false}"#, any);
    let begun = "{\"é\":1,\"è\":1,\"\u{e9}".as_bytes();
    let mut matcher = accents.matcher();
    for &byte in &begun[..begun.len() - 2] {
        matcher.accept(byte.into()).unwrap();
    }
    let mask = matcher.mask().unwrap();
    assert!(mask.contains(b'b'.into()) && !mask.contains(0xC3), "both accents are there already");
}
