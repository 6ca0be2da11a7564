//! Hostile schemas: each ends with a grammar or a refusal within the default limits, on a small
//! stack, whatever it asks for.

// Helpers of tests count as tests.
#![allow(clippy::unwrap_used)]

mod schema_support;

use pleach::grammar::json_schema::SchemaOptions;
use pleach::grammar::{GrammarError, Limits};
use schema_support::{bytes, compile_counted, short};

/// Bytes of memory that the rules and states of a hostile schema may take once it is compiled.
const GRAMMAR_BYTES_MAX: usize = 256 << 20;
/// Bytes of a thread's stack.
const STACK_BYTES: usize = 2 << 20;

/// How a compilation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It must compile.
    Compiled,
    /// It must be refused.
    Refused,
    /// Either is right.
    Either,
}

/// Compiles on a thread with a small stack and checks how it ends.
fn compile(name: &str, schema: String, expected: End) {
    let limits = Limits::default();
    let worker = move || {
        let start = std::time::Instant::now();
        let (result, steps) = compile_counted(&schema, SchemaOptions::default(), bytes());
        if let Ok(grammar) = &result {
            assert!(grammar.size().bytes < GRAMMAR_BYTES_MAX, "{:?}", grammar.size());
        }
        let end = result.map(|grammar| grammar.size().bytes);
        (end, steps, start.elapsed(), short(&schema))
    };
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(worker).unwrap();
    let (result, steps, took, schema) = thread.join().unwrap();
    let words = match &result {
        Ok(bytes) => format!("compiled, {bytes} bytes"),
        Err(error) => short(&error.to_string()),
    };
    // For who reads along; nothing is asserted about time.
    println!("{name}: {steps} steps, {took:.1?}: {words}");
    assert!(steps <= limits.compile_steps_max);
    match expected {
        End::Compiled => assert!(result.is_ok(), "{name} {schema}: {words}"),
        End::Refused => assert!(result.is_err(), "{name} {schema}: {words}"),
        End::Either => {}
    }
    // Never the client's fault in a way that says nothing about the schema.
    if let Err(error) = result {
        let is_named = matches!(
            error,
            GrammarError::Schema(_) | GrammarError::Limit(_) | GrammarError::MatchesNothing { .. }
        );
        assert!(is_named, "{name} {schema}: {words}");
    }
}

fn list(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(",")
}

fn nested(open: &str, close: &str, inner: &str, depth: usize) -> String {
    format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
}

#[test]
fn large_schemas() {
    let properties = |count: usize, value: &str| {
        format!(
            r#"{{"type":"object","properties":{{{}}}}}"#,
            list(count, |n| format!(r#""property {n}":{value}"#))
        )
    };
    compile("1 MB of strings", properties(28_000, r#"{"type":"string"}"#), End::Either);
    compile("1 MB of bounds", properties(18_000, r#"{"type":"integer","minimum":3}"#), End::Either);
    compile("100,000 properties", properties(100_000, "{}"), End::Either);
    let required =
        format!(r#"{{"type":"object","required":[{}]}}"#, list(100_000, |n| format!("\"k{n}\"")));
    compile("100,000 required", required, End::Either);
    let values = format!(r#"{{"enum":[{}]}}"#, list(60_000, |n| format!("\"value number {n}\"")));
    compile("1 MB of enum", values, End::Either);
    let numbers = format!(r#"{{"enum":[{}]}}"#, list(100_000, |n| format!("{n}.5")));
    compile("100,000 numbers", numbers, End::Either);
    let objects = format!(r#"{{"enum":[{}]}}"#, list(30_000, |n| format!(r#"{{"a":[{n}]}}"#)));
    compile("30,000 objects", objects, End::Either);
    let text = format!(r#"{{"const":"{}"}}"#, "x".repeat(1 << 20));
    compile("1 MB of const", text, End::Either);
    let described = format!(r#"{{"type":"null","description":"{}"}}"#, "x".repeat(1 << 20));
    compile("1 MB of description", described, End::Compiled);
    compile("no JSON", "[".repeat(1 << 20), End::Refused);
    compile("half a JSON", r#"{"a":"#.repeat(200_000), End::Refused);
}

#[test]
fn deep_schemas() {
    for depth in [200, 10_000] {
        for (open, close) in [
            (r#"{"properties":{"a":"#, "}}"),
            (r#"{"type":"object","additionalProperties":"#, "}"),
            (r#"{"type":"array","items":"#, "}"),
            (r#"{"not":"#, "}"),
            (r#"{"allOf":["#, "]}"),
            (r#"{"anyOf":[{"type":"null"},"#, "]}"),
            (r#"{"oneOf":[{"type":"null"},"#, "]}"),
            (r#"{"if":{"type":"null"},"then":"#, "}"),
            (r#"{"contains":"#, "}"),
            (r#"{"propertyNames":"#, "}"),
            (r#"{"unevaluatedProperties":"#, "}"),
            (r#"{"patternProperties":{"a":"#, "}}"),
            (r#"{"$defs":{"a":"#, "}}"),
            (r#"{"dependentSchemas":{"a":"#, "}}"),
        ] {
            let schema = nested(open, close, r#"{"type":"string"}"#, depth);
            let expected = if depth == 10_000 && open != r#"{"$defs":{"a":"# {
                End::Refused
            } else {
                End::Either
            };
            compile(&format!("{depth} of {open}"), schema, expected);
        }
        let value = format!(r#"{{"const":{}}}"#, nested("[", "]", "1", depth));
        compile(&format!("const of {depth} levels"), value, End::Either);
        let value = format!(r#"{{"enum":[1,{}]}}"#, nested(r#"{"a":"#, "}", "1", depth));
        compile(&format!("enum of {depth} levels"), value, End::Either);
    }
    let chain = format!(
        r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d5000":{{"type":"null"}}}}}}"##,
        list(5_000, |n| format!(r##""d{n}":{{"$ref":"#/$defs/d{}"}}"##, n + 1))
    );
    compile("5,000 references in a row", chain, End::Either);
    let chain = format!(
        r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d5000":{{"type":"null"}}}}}}"##,
        list(5_000, |n| format!(
            r##""d{n}":{{"type":"array","items":{{"$ref":"#/$defs/d{}"}},"minItems":1}}"##,
            n + 1
        ))
    );
    compile("5,000 arrays by references", chain, End::Either);
}

#[test]
fn circular_references() {
    compile("to itself", r##"{"$ref":"#"}"##.to_owned(), End::Refused);
    let two =
        r##"{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##;
    compile("two to each other", two.to_owned(), End::Refused);
    let ring = format!(
        r##"{{"$ref":"#/$defs/d0","$defs":{{{}}}}}"##,
        list(3_000, |n| format!(
            r##""d{n}":{{"allOf":[{{"$ref":"#/$defs/d{}"}}]}}"##,
            (n + 1) % 3_000
        ))
    );
    compile("a ring of 3,000", ring, End::Refused);
    for schema in [
        r##"{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}"##,
        r##"{"type":"array","items":{"$ref":"#"},"minItems":1}"##,
        r##"{"anyOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"type":"array","items":{"$ref":"#"},"minItems":2}}}"##,
    ] {
        compile("never ends", schema.to_owned(), End::Refused);
    }
    let wide = format!(
        r##"{{"type":"object","properties":{{{}}}}}"##,
        list(300, |n| format!(r##""p{n}":{{"allOf":[{{"$ref":"#"}},{{"minProperties":{n}}}]}}"##))
    );
    compile("each property narrows the root", wide, End::Either);
    let growing = r##"{"type":"object","properties":{"a":{"allOf":[{"$ref":"#"},{"properties":{"b":{"$ref":"#"}}}]},"b":{"allOf":[{"$ref":"#"},{"properties":{"a":{"$ref":"#/properties/a"}}}]}}}"##;
    compile("conjunctions that grow", growing.to_owned(), End::Either);
    let negated = r##"{"type":"object","properties":{"a":{"not":{"$ref":"#"}}}}"##;
    compile("the opposite of the root", negated.to_owned(), End::Either);
}

#[test]
fn choices_that_multiply() {
    fn choices(depth: usize, width: usize) -> String {
        let inner =
            if depth == 0 { r#"{"type":"string"}"#.to_owned() } else { choices(depth - 1, width) };
        let others = list(width - 1, |n| {
            format!(r#"{{"properties":{{"p{depth}q{n}":{{"minimum":{n}}}}},"required":["r{n}"]}}"#)
        });
        format!(r#"{{"oneOf":[{others},{inner}]}}"#)
    }
    compile("50 nested oneOfs of 50", choices(49, 50), End::Refused);
    for keyword in ["anyOf", "oneOf"] {
        let choice = |n: usize| {
            let choices = list(50, |m| {
                format!(r#"{{"properties":{{"p{m}":{{"minimum":{n}}}}},"required":["q{m}"]}}"#)
            });
            format!(r#"{{"{keyword}":[{choices}]}}"#)
        };
        let schema = format!(r#"{{"type":"object","allOf":[{}]}}"#, list(50, choice));
        compile(&format!("50 {keyword}s of 50 at once"), schema, End::Refused);
    }
    let pairs = format!(
        r#"{{"type":"object","allOf":[{}]}}"#,
        list(64, |n| format!(r#"{{"anyOf":[{{"required":["a{n}"]}},{{"required":["b{n}"]}}]}}"#))
    );
    compile("64 pairs of keys", pairs, End::Either);
    let conditions = format!(
        r#"{{"type":"object","allOf":[{}]}}"#,
        list(64, |n| format!(
            r#"{{"if":{{"properties":{{"a{n}":{{"const":1}}}}}},"then":{{"required":["b{n}"]}},"else":{{"required":["c{n}"]}}}}"#
        ))
    );
    compile("64 conditions", conditions, End::Either);
    let depends = format!(
        r#"{{"type":"object","dependentRequired":{{{}}}}}"#,
        list(300, |n| format!(r#""k{n}":["k{}","k{}"]"#, (n * 7 + 1) % 300, (n * 11 + 5) % 300))
    );
    compile("300 dependent keys", depends, End::Either);
    // Each refers to the next one twice: 2^100 ways.
    for keyword in ["anyOf", "allOf", "oneOf"] {
        let twice = format!(
            r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d100":{{"properties":{{"a":{{"type":"null"}}}}}}}}}}"##,
            list(100, |n| format!(
                r##""d{n}":{{"{keyword}":[{{"$ref":"#/$defs/d{m}"}},{{"minProperties":{n},"$ref":"#/$defs/d{m}"}}]}}"##,
                m = n + 1
            ))
        );
        compile(&format!("{keyword} that doubles 100 times"), twice, End::Either);
    }
    let all =
        nested(r#"{"allOf":[{"minLength":1},{"maxLength":9},{"pattern":"a"},"#, "]}", "{}", 60);
    compile("nested allOf", all, End::Either);
    let many = format!(r#"{{"allOf":[{}]}}"#, list(20_000, |n| format!(r#"{{"minLength":{n}}}"#)));
    compile("20,000 in allOf", many, End::Either);
    let many = format!(
        r#"{{"anyOf":[{}]}}"#,
        list(5_000, |n| format!(
            r#"{{"type":"object","properties":{{"k{n}":{{}}}},"required":["k{n}"],"additionalProperties":false}}"#
        ))
    );
    compile("5,000 in anyOf", many, End::Either);
    let patterns = format!(
        r#"{{"type":"object","patternProperties":{{{}}}}}"#,
        list(200, |n| format!(r#""a{n}.*b{n}":{{"minimum":{n}}}"#))
    );
    compile("200 overlapping patterns of keys", patterns, End::Either);
    let found = format!(
        r#"{{"type":"string","allOf":[{}]}}"#,
        list(60, |n| format!(r#"{{"pattern":"a{n}.*b{n}"}}"#))
    );
    compile("60 patterns at once", found, End::Either);
    let contained = format!(
        r#"{{"type":"array","allOf":[{}]}}"#,
        list(30, |n| format!(r#"{{"contains":{{"const":{n}}},"minContains":9}}"#))
    );
    compile("30 things contained", contained, End::Either);
}

#[test]
fn regular_expressions() {
    for pattern in [
        "^(a|aa)+$",
        "(a*)*b",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
        "^((a{1,100}){1,100}){1,100}$",
        "(.*a){30}",
        "^.*a.{20}$",
        "^.*a.{14}$",
        "a{100000}",
        "^.{0,1000000000}$",
        "(?=.*a)(?=.*b)(?=.*c)(?=.*d)(?=.*e)(?=.*f)(?=.*g)",
        "^(?!.*(ab|cd).{9}$).*$",
        "[\\\\p{L}\\\\p{N}]{1,5000}",
        "\\\\p{L}{64}\\\\b\\\\p{N}{64}",
        "(x+x+)+y",
        "((((((((((a{2}){2}){2}){2}){2}){2}){2}){2}){2}){2}){20}",
    ] {
        for schema in [
            format!(r#"{{"type":"string","pattern":"{pattern}"}}"#),
            format!(
                r#"{{"type":"string","pattern":"{pattern}","minLength":3000,"maxLength":100000}}"#
            ),
            format!(r#"{{"type":"string","not":{{"pattern":"{pattern}"}}}}"#),
            format!(r#"{{"type":"object","patternProperties":{{"{pattern}":{{"type":"null"}}}}}}"#),
        ] {
            compile(&short(&schema), schema.clone(), End::Either);
        }
    }
    let deep = nested("(", ")", "a", 50_000);
    compile("50,000 groups", format!(r#"{{"type":"string","pattern":"{deep}"}}"#), End::Refused);
    let wide = list(20_000, |n| format!("w{n}x")).replace(',', "|");
    compile("20,000 words", format!(r#"{{"type":"string","pattern":"{wide}"}}"#), End::Either);
    let formats = r#"{"type":"string","allOf":[{"format":"uri"},{"format":"email"},{"format":"iri-reference"},{"not":{"format":"hostname"}},{"not":{"format":"idn-hostname"}}]}"#;
    compile("formats at once", formats.to_owned(), End::Either);
    let inverse = r#"{"type":"string","not":{"anyOf":[{"format":"regex"},{"format":"uri-template"},{"format":"ipv6"},{"format":"idn-email"}]}}"#;
    compile("no format", inverse.to_owned(), End::Either);
}

#[test]
fn large_counts_and_numbers() {
    for (schema, expected) in [
        (r#"{"type":"object","minProperties":1000000000}"#, End::Either),
        (r#"{"type":"object","minProperties":1000000000,"maxProperties":1000000001}"#, End::Either),
        (
            r#"{"type":"object","properties":{"a":{}},"additionalProperties":false,"minProperties":1000000000}"#,
            End::Refused,
        ),
        (r#"{"type":"array","minItems":4294967295}"#, End::Either),
        (r#"{"type":"array","minItems":99999999999999999999}"#, End::Either),
        (r#"{"type":"array","maxItems":99999999999999999999}"#, End::Either),
        (
            r#"{"type":"array","minItems":1e9,"contains":{"type":"null"},"minContains":1e9}"#,
            End::Either,
        ),
        (
            r#"{"type":"array","items":{"enum":[1,2,3]},"uniqueItems":true,"minItems":1000000000}"#,
            End::Refused,
        ),
        (r#"{"type":"array","contains":{"type":"null"},"maxContains":1000000000}"#, End::Either),
        (r#"{"type":"string","minLength":4294967295}"#, End::Either),
        (r#"{"type":"string","maxLength":18446744073709551616}"#, End::Either),
        (r#"{"type":"string","minLength":4294967295,"pattern":"a"}"#, End::Either),
        (r#"{"type":"string","maxLength":4294967295,"pattern":"a","format":"uri"}"#, End::Either),
        (r#"{"type":"number","multipleOf":1e-300}"#, End::Either),
        (r#"{"type":"number","multipleOf":1e300}"#, End::Either),
        (r#"{"type":"number","multipleOf":1e-999999999999}"#, End::Either),
        (r#"{"type":"integer","multipleOf":99999999977}"#, End::Either),
        (r#"{"type":"integer","multipleOf":19997}"#, End::Either),
        (
            r#"{"type":"integer","allOf":[{"multipleOf":9973},{"multipleOf":9967},{"multipleOf":7919}]}"#,
            End::Either,
        ),
        (
            r#"{"type":"integer","not":{"anyOf":[{"multipleOf":97},{"multipleOf":89},{"multipleOf":83}]}}"#,
            End::Either,
        ),
        (r#"{"type":"number","minimum":1e999999999999999999999}"#, End::Either),
        (r#"{"type":"number","minimum":1e400,"maximum":1e401}"#, End::Either),
        (r#"{"type":"number","minimum":-1e-400,"maximum":1e-400}"#, End::Either),
        (
            r#"{"type":"integer","minimum":-9007199254740993,"maximum":99999999999999999999999999999999}"#,
            End::Compiled,
        ),
        (r#"{"const":1e999999999}"#, End::Either),
        (r#"{"enum":[1e-999999999,1e5000]}"#, End::Either),
    ] {
        compile(schema, schema.to_owned(), expected);
    }
    let digits = "9".repeat(100_000);
    compile("100,000 digits", format!(r#"{{"type":"integer","minimum":{digits}}}"#), End::Either);
    compile(
        "a divisor of 100,000 digits",
        format!(r#"{{"type":"integer","multipleOf":{digits}}}"#),
        End::Either,
    );
    let excluded = format!(
        r#"{{"type":"integer","not":{{"enum":[{}]}}}}"#,
        list(5_000, |n| (n * 7919).to_string())
    );
    compile("5,000 integers excluded", excluded, End::Either);
    let excluded = format!(
        r#"{{"type":"string","not":{{"enum":[{}]}}}}"#,
        list(20_000, |n| format!("\"word {n}\""))
    );
    compile("20,000 strings excluded", excluded, End::Either);
}
