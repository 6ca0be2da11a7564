//! Schemas that are refused: with which error, at which place.

use super::super::{Conj, Document, SchemaError, SchemaOptions};
use crate::grammar::{Fuel, LimitError};

fn shapes_error(schema: &str, options: &SchemaOptions) -> Option<SchemaError> {
    let mut fuel = Fuel::new(2_000_000);
    let mut document = match Document::parse(schema, options, &mut fuel) {
        Ok(document) => document,
        Err(error) => return Some(error),
    };
    let root = document.root();
    document.shapes(&root, &mut fuel).err()
}

fn error(schema: &str) -> SchemaError {
    shapes_error(schema, &SchemaOptions::default()).unwrap_or_else(|| panic!("accepted: {schema}"))
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    for (schema, place, name) in [
        (r#"{"type":"strin"}"#, "#", "type"),
        (r#"{"type":[1]}"#, "#", "type"),
        (r#"{"properties":{"a":{"minimum":"1"}}}"#, "#/properties/a", "minimum"),
        (r#"{"properties":[]}"#, "#", "properties"),
        (r#"{"required":"a"}"#, "#", "required"),
        (r#"{"required":[1]}"#, "#", "required"),
        (r#"{"properties":{"a":{"required":true}}}"#, "#/properties/a", "required"),
        (r#"{"minLength":-1}"#, "#", "minLength"),
        (r#"{"maxItems":1.5}"#, "#", "maxItems"),
        (r#"{"multipleOf":0}"#, "#", "multipleOf"),
        (r#"{"anyOf":[]}"#, "#", "anyOf"),
        (r#"{"allOf":{}}"#, "#", "allOf"),
        (r#"{"not":1}"#, "#/not", ""),
        (r#"{"items":3}"#, "#/items", ""),
        (r#"{"uniqueItems":1}"#, "#", "uniqueItems"),
        (r#"{"pattern":1}"#, "#", "pattern"),
        (r#"{"format":null}"#, "#", "format"),
        (r#"{"nullable":1,"type":"null"}"#, "#", "nullable"),
        (r#"{"$ref":1}"#, "#", "$ref"),
        (r##"{"$ref":"#/a"}"##, "#", "$ref"),
        (r##"{"$ref":"#a"}"##, "#", "$ref"),
        (r##"{"$ref":"#"}"##, "#", "$ref"),
        (r##"{"allOf":[{"$ref":"#"}]}"##, "#/allOf/0", "$ref"),
        (r##"{"not":{"$ref":"#"}}"##, "#/not", "$ref"),
        (
            r##"{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##,
            "#/$defs/b",
            "$ref",
        ),
        (r#"{"dependentRequired":{"a":1}}"#, "#", "dependentRequired"),
        (r#"{"prefixItems":[{}],"items":[{}]}"#, "#", "items"),
    ] {
        match error(schema) {
            SchemaError::Invalid { pointer, keyword, .. } => {
                assert_eq!((pointer.as_str(), keyword.as_str()), (place, name), "{schema}");
            }
            other => panic!("{schema}: {other:?}"),
        }
    }
}

#[test]
fn what_cannot_be_exact_is_named_with_its_place() {
    for (schema, place, name) in [
        (r#"{"$ref":"http://example.com/x"}"#, "#", "$ref"),
        (r#"{"type":"array","not":{"uniqueItems":true}}"#, "#/not", "uniqueItems"),
        (
            r#"{"type":"object","not":{"additionalProperties":false}}"#,
            "#/not",
            "additionalProperties",
        ),
        (
            r#"{"type":"object","not":{"patternProperties":{"a":false}}}"#,
            "#/not",
            "patternProperties",
        ),
        (
            r#"{"type":"object","anyOf":[{"properties":{"a":{}}},{"properties":{"b":{}}}],"unevaluatedProperties":false}"#,
            "#",
            "unevaluatedProperties",
        ),
        (
            r#"{"type":"array","not":{"prefixItems":[{}],"items":{"type":"null"}}}"#,
            "#/not",
            "items",
        ),
        (r#"{"enum":["a"],"pattern":"(a)\\1"}"#, "#", "pattern"),
    ] {
        match error(schema) {
            SchemaError::Inexact { pointer, keyword, .. } => {
                assert_eq!((pointer.as_str(), keyword.as_str()), (place, name), "{schema}");
            }
            other => panic!("{schema}: {other:?}"),
        }
    }
}

#[test]
fn what_nothing_satisfies_is_an_error_at_the_root() {
    for schema in [
        "false",
        r#"{"enum":[]}"#,
        r#"{"type":"string","enum":[1]}"#,
        r#"{"type":"integer","minimum":2,"maximum":1}"#,
        r#"{"type":"integer","exclusiveMinimum":0.2,"maximum":0.8}"#,
        r#"{"type":"string","minLength":2,"maxLength":1}"#,
        r#"{"allOf":[{"type":"string"},{"type":"array"}]}"#,
        r#"{"type":"object","properties":{"a":false},"required":["a"]}"#,
        r#"{"type":"object","required":["a","b"],"maxProperties":1}"#,
        r#"{"type":"object","additionalProperties":false,"minProperties":1}"#,
        r#"{"type":"object","properties":{"a":{"allOf":[{"const":1},{"const":2}]}},"required":["a"],"not":{"required":["b"]},"allOf":[{"required":["b"]}]}"#,
        r#"{"type":"array","prefixItems":[false],"minItems":1}"#,
        r#"{"not":{}}"#,
    ] {
        assert!(matches!(error(schema), SchemaError::Unsatisfiable { .. }), "{schema}");
    }
}

#[test]
fn relaxing_drops_the_named_keyword_and_says_so() {
    let schema = r#"{"type":"array","not":{"uniqueItems":true}}"#;
    let options = SchemaOptions { strict: false, ..SchemaOptions::default() };
    let mut fuel = Fuel::new(10_000);
    let mut document = Document::parse(schema, &options, &mut fuel).unwrap();
    let root: Conj = document.root();
    let shapes = document.shapes(&root, &mut fuel).unwrap();
    assert_eq!(shapes.arrays.len(), 1);
    let relaxed = &document.relaxed()[0];
    assert_eq!((relaxed.pointer.as_str(), relaxed.keyword.as_str()), ("#/not", "uniqueItems"));
}

#[test]
fn hostile_schemas_end_with_an_answer_or_an_error() {
    let nested = |open: &str, close: &str, depth: usize| {
        format!("{}{{}}{}", open.repeat(depth), close.repeat(depth))
    };
    for (open, close) in [
        (r#"{"properties":{"a":"#, "}}"),
        (r#"{"items":"#, "}"),
        (r#"{"not":"#, "}"),
        (r#"{"allOf":["#, "]}"),
        (r#"{"anyOf":[{"type":"null"},"#, "]}"),
    ] {
        assert_eq!(
            shapes_error(&nested(open, close, 60), &SchemaOptions::default()),
            None,
            "{open}"
        );
        let deep = error(&nested(open, close, 10_000));
        assert!(matches!(deep, SchemaError::Limit(LimitError::Depth { .. })), "{open}: {deep:?}");
    }
    let deep_in_place = error(&nested(r#"{"minimum":1,"allOf":["#, "]}", 400));
    assert!(matches!(deep_in_place, SchemaError::Limit(LimitError::Depth { .. })));
    // Each refers to the next one twice: 2^100 ways.
    let defs: Vec<String> = (0..100)
        .map(|n| format!(r##""d{n}":{{"anyOf":[{{"$ref":"#/$defs/d{m}"}},{{"minProperties":{n},"$ref":"#/$defs/d{m}"}}]}}"##, m = n + 1))
        .collect();
    let schema = format!(
        r##"{{"type":"object","$ref":"#/$defs/d0","$defs":{{{},"d100":{{"properties":{{"a":{{"type":"null"}}}}}}}}}}"##,
        defs.join(",")
    );
    assert!(shapes_error(&schema, &SchemaOptions::default()).is_some());
    // Fifty times one of fifty that overlap.
    let choice = |n: usize| {
        let choices: Vec<String> = (0..50)
            .map(|m| {
                format!(r#"{{"properties":{{"p{m}":{{"minimum":{n}}}}},"required":["q{m}"]}}"#)
            })
            .collect();
        format!(r#"{{"oneOf":[{}]}}"#, choices.join(","))
    };
    let schema = format!(
        r#"{{"type":"object","allOf":[{}]}}"#,
        (0..50).map(choice).collect::<Vec<_>>().join(",")
    );
    assert!(shapes_error(&schema, &SchemaOptions::default()).is_some());
}
