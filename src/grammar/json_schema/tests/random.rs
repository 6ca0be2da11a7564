//! Random schemas and values against another validator, and shapes against the validator.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::{Document, Json, SchemaError, SchemaOptions};
use super::membership::Membership;
use crate::grammar::Fuel;

const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];
const NAMES: [&str; 4] = ["a", "b", "ab", "c"];
const PATTERNS: [&str; 5] = ["^a", "b", "^ab?$", "^c$", ""];

fn name() -> impl Strategy<Value = String> + Clone {
    prop::sample::select(&NAMES[..]).prop_map(str::to_owned)
}

fn pattern() -> impl Strategy<Value = String> + Clone {
    prop::sample::select(&PATTERNS[..]).prop_map(str::to_owned)
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![(-2_i64..5).prop_map(Value::from), (-2_i64..5).prop_map(|n| json!(n as f64 + 0.5))]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number(),
        "[abc]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            // Sorted: the judge tells objects apart by the order of their keys.
            prop::collection::btree_map(name(), inner, 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

fn leaf_schema() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => prop::sample::select(&TYPES[..]).prop_map(|name| json!({ "type": name })),
        1 => any::<bool>().prop_map(Value::from),
        2 => value().prop_map(|value| json!({ "const": value })),
        2 => prop::collection::vec(value(), 1..4).prop_map(|values| json!({ "enum": values })),
        1 => Just(json!({"$ref": "#/$defs/d"})),
    ]
}

/// One keyword, or a few that belong together.
fn keywords(
    inner: impl Strategy<Value = Value> + Clone + 'static,
) -> BoxedStrategy<Vec<(String, Value)>> {
    let one = |name: &'static str| move |value: Value| vec![(name.to_owned(), value)];
    let many = prop::collection::vec(inner.clone(), 1..4).prop_map(Value::from);
    let named = prop::collection::vec((name(), inner.clone()), 0..3)
        .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>()));
    let patterned = prop::collection::vec((pattern(), inner.clone()), 0..3)
        .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>()));
    let names = prop::collection::btree_set(name(), 0..3).prop_map(|names| json!(names)).boxed();
    let dependent = prop::collection::vec((name(), names.clone()), 0..3)
        .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>()));
    let count = (0_u32..4).prop_map(Value::from);
    prop_oneof![
        leaf_schema().prop_map(|schema| match schema {
            Value::Object(entries) => entries.into_iter().collect(),
            _ => Vec::new(),
        }),
        number().prop_map(one("minimum")),
        number().prop_map(one("exclusiveMaximum")),
        prop::sample::select(vec![json!(1), json!(1.5), json!(2)]).prop_map(one("multipleOf")),
        count.clone().prop_map(one("minLength")),
        count.clone().prop_map(one("maxLength")),
        pattern().prop_map(Value::from).prop_map(one("pattern")),
        count.clone().prop_map(one("minItems")),
        count.clone().prop_map(one("maxItems")),
        inner.clone().prop_map(one("items")),
        (many.clone(), inner.clone()).prop_map(|(prefix, rest)| {
            vec![("prefixItems".to_owned(), prefix), ("items".to_owned(), rest)]
        }),
        // The judge applies more complex schemas under `maxContains` to objects, too.
        (leaf_schema(), 0_u32..3, 0_u32..4).prop_map(|(item, min, max)| {
            let pairs =
                [("contains", item), ("minContains", min.into()), ("maxContains", max.into())];
            pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
        }),
        inner.clone().prop_map(one("contains")),
        Just(Value::Bool(true)).prop_map(one("uniqueItems")),
        named.clone().prop_map(one("properties")),
        (named.clone(), patterned, inner.clone()).prop_map(|(named, patterned, additional)| {
            vec![
                ("properties".to_owned(), named),
                ("patternProperties".to_owned(), patterned),
                ("additionalProperties".to_owned(), additional),
            ]
        }),
        names.prop_map(one("required")),
        count.clone().prop_map(one("minProperties")),
        count.prop_map(one("maxProperties")),
        inner.clone().prop_map(one("propertyNames")),
        dependent.prop_map(one("dependentRequired")),
        named.prop_map(one("dependentSchemas")),
        many.clone().prop_map(one("allOf")),
        many.clone().prop_map(one("anyOf")),
        many.prop_map(one("oneOf")),
        inner.clone().prop_map(one("not")),
        (inner.clone(), inner.clone(), inner.clone()).prop_map(|(test, then, other)| {
            vec![("if".to_owned(), test), ("then".to_owned(), then), ("else".to_owned(), other)]
        }),
        inner.clone().prop_map(one("unevaluatedProperties")),
        inner.prop_map(one("unevaluatedItems")),
    ]
    .boxed()
}

fn schema() -> impl Strategy<Value = Value> {
    leaf_schema().prop_recursive(3, 24, 4, |inner| {
        prop::collection::vec(keywords(inner), 1..4)
            .prop_map(|groups| Value::Object(groups.into_iter().flatten().collect()))
    })
}

/// A schema without references, for those of the rest.
fn definition() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({"type": ["string", "object"], "required": ["a"], "minLength": 2})),
        Just(json!({"properties": {"a": {"$ref": "#/$defs/d"}}, "minimum": 1})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn validators_and_shapes_agree(
        schema in schema(),
        definition in definition(),
        values in prop::collection::vec(value(), 12),
    ) {
        let mut schema = match schema {
            Value::Object(entries) => entries,
            other => Map::from_iter([("allOf".to_owned(), json!([other]))]),
        };
        schema.insert("$defs".to_owned(), json!({ "d": definition }));
        let schema = Value::Object(schema);
        prop_assume!(!confuses_the_judge(&schema));
        let judge = jsonschema::draft202012::new(&schema).unwrap();
        let mut fuel = Fuel::new(20_000_000);
        let options = SchemaOptions::default();
        let mut document = Document::parse(&schema.to_string(), &options, &mut fuel).unwrap();
        let root = document.root();
        for instance in values {
            let value = Json::parse(&instance.to_string()).unwrap();
            let expected = judge.is_valid(&instance);
            prop_assert_eq!(document.accepts(&root, &value, &mut fuel), Ok(expected), "{}", value_text(&instance));
            let mut membership = Membership { document: &mut document, fuel: Fuel::new(20_000_000) };
            match membership.conj(&root, &value) {
                Ok(member) => prop_assert_eq!(member, expected, "shapes: {}", value_text(&instance)),
                Err(SchemaError::Inexact { .. } | SchemaError::Limit(_)) => {}
                // Found at the root only; then the judge may not accept anything either.
                Err(SchemaError::Unsatisfiable { .. }) => prop_assert!(!expected),
                Err(other) => prop_assert!(false, "{other}"),
            }
        }
    }
}

/// Whether `unevaluatedItems` or the like lies within a `contains` that has both bounds: the judge then takes
/// it for that of the schema around (jsonschema 0.47).
fn confuses_the_judge(schema: &Value) -> bool {
    let has_bounds = |entries: &Map<String, Value>| {
        entries.contains_key("minContains") && entries.contains_key("maxContains")
    };
    match schema {
        Value::Object(entries) => {
            let contains = entries.get("contains").filter(|_| has_bounds(entries));
            contains.is_some_and(|it| it.to_string().contains("unevaluated"))
                || entries.values().any(confuses_the_judge)
        }
        Value::Array(items) => items.iter().any(confuses_the_judge),
        _ => false,
    }
}

fn value_text(value: &Value) -> String {
    value.to_string()
}
