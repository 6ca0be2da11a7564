use serde_json::{Value, json};

use super::super::DeclaredTypes;

fn of(schema: Value) -> DeclaredTypes {
    DeclaredTypes::of_parameter(&schema, "p")
}

/// The same as a list of type names.
fn names(names: &[&str]) -> DeclaredTypes {
    of(json!({"properties": {"p": {"type": names}}}))
}

#[test]
fn keywords_are_followed() {
    let unknown = DeclaredTypes::unknown();
    for (schema, expected) in [
        (json!({"type": "string"}), DeclaredTypes::string()),
        (json!({"type": "integer", "minimum": 1}), names(&["integer"])),
        (json!({"type": ["string", "null"]}), names(&["null", "string"])),
        (json!({"type": "string", "nullable": true}), names(&["string", "null"])),
        (json!({"type": "string", "nullable": false}), names(&["string"])),
        (json!({"enum": ["a", 1, null]}), names(&["string", "integer", "null"])),
        (json!({"enum": ["a", 1.5]}), names(&["string", "number"])),
        (json!({"type": "string", "enum": ["a", null]}), names(&["string"])),
        (json!({"const": [1]}), names(&["array"])),
        (json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), names(&["string", "null"])),
        (json!({"oneOf": [{"const": true}, {"type": "object"}]}), names(&["boolean", "object"])),
        (json!({"anyOf": [{"type": "string"}, {}]}), unknown),
        (json!({"anyOf": [{"type": "string"}, false]}), names(&["string"])),
        (json!({"allOf": [{"type": ["string", "null"]}, {"type": "string"}]}), names(&["string"])),
        (json!({"allOf": [{"$ref": "#/$defs/Level"}], "default": 1}), names(&["integer"])),
        (json!({"$ref": "#/$defs/Level"}), names(&["integer"])),
        (json!({"$ref": "#/$defs/Alias"}), names(&["integer"])),
        (json!({"$ref": "#/$defs/a~1b"}), names(&["boolean"])),
        (json!({"type": "array", "items": {"type": "string"}}), names(&["array"])),
        (json!({"type": ["number", "integer"]}), names(&["number"])),
        (json!({"$ref": "#/$defs/Missing"}), unknown),
        (json!({"$ref": "https://example.org/schema"}), unknown),
        (json!({"type": "str"}), unknown),
        (json!({"type": ["string", "any"]}), unknown),
        (json!({"description": "anything"}), unknown),
        (json!(true), unknown),
        (json!(3), unknown),
    ] {
        let tool = json!({
            "type": "object",
            "properties": {"p": schema.clone()},
            "$defs": {
                "Level": {"type": "integer"},
                "Alias": {"$ref": "#/$defs/Level"},
                "a/b": {"type": "boolean"},
            },
        });
        assert_eq!(of(tool), expected, "{schema}");
    }
}

#[test]
fn a_parameter_is_found_where_schemas_put_it() {
    let string = json!({"properties": {"p": {"type": "string"}}});
    for schema in [
        json!({"$ref": "#/$defs/T", "$defs": {"T": string}}),
        json!({"allOf": [{"properties": {"q": {}}}, string]}),
        json!({"anyOf": [string, {"properties": {"q": {}}}]}),
        json!({"properties": {}, "additionalProperties": {"type": "string"}}),
    ] {
        assert_eq!(of(schema.clone()), DeclaredTypes::string(), "{schema}");
    }
    for schema in [json!(null), json!({}), json!({"properties": []}), json!([{"p": 1}])] {
        assert_eq!(of(schema.clone()), DeclaredTypes::unknown(), "{schema}");
    }
}

#[test]
fn schemas_that_go_round_declare_nothing() {
    let round = json!({"properties": {"p": {"$ref": "#/properties/p"}}});
    assert_eq!(of(round), DeclaredTypes::unknown());
    let doubling = json!({"properties": {"p": {"anyOf": [
        {"$ref": "#/properties/p"}, {"$ref": "#/properties/p"}, {"type": "string"},
    ]}}});
    assert_eq!(of(doubling), DeclaredTypes::unknown());
    assert_eq!(of(json!({"$ref": "#"})), DeclaredTypes::unknown());
}

#[test]
fn declarations_without_a_schema() {
    assert_eq!(DeclaredTypes::named("number"), names(&["number"]));
    assert_eq!(DeclaredTypes::named("string"), DeclaredTypes::string());
    assert_eq!(DeclaredTypes::named("text"), DeclaredTypes::unknown());
    assert!(DeclaredTypes::unknown().allows_string());
    assert!(names(&["null", "string"]).allows_string());
    assert!(!DeclaredTypes::not_string().allows_string());
}
