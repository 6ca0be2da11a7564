//! Every keyword, with values that it accepts and values that it rejects: the validator and the
//! shapes must both say so.

use super::super::{Document, Json, SchemaOptions};
use super::membership::Membership;
use crate::grammar::Fuel;

fn check(schema: &str, accepted: &[&str], rejected: &[&str]) {
    let mut fuel = Fuel::new(1_000_000);
    let mut document = Document::parse(schema, &SchemaOptions::default(), &mut fuel)
        .unwrap_or_else(|error| panic!("{schema}: {error}"));
    let root = document.root();
    let cases =
        accepted.iter().map(|text| (text, true)).chain(rejected.iter().map(|text| (text, false)));
    for (text, expected) in cases {
        let value = Json::parse(text).unwrap();
        let validator = document.accepts(&root, &value, &mut fuel);
        assert_eq!(validator, Ok(expected), "validator: {schema} {text}");
        let fuel = Fuel::new(1_000_000);
        let member = Membership { document: &mut document, fuel }.conj(&root, &value);
        assert_eq!(member, Ok(expected), "shapes: {schema} {text}");
    }
}

#[test]
fn types_and_values() {
    check("true", &["1", "null", "{}"], &[]);
    check("{}", &["1", "null", "[[]]"], &[]);
    check(
        r#"{"type":"integer"}"#,
        &["1", "1.0", "-0", "1e400", "9007199254740993"],
        &["1.5", "\"1\"", "null"],
    );
    check(r#"{"type":["null","string"]}"#, &["null", "\"\""], &["0", "[]"]);
    check(r#"{"type":"string","nullable":true}"#, &["null", "\"\""], &["0"]);
    check(r#"{"type":"boolean"}"#, &["true", "false"], &["0", "null"]);
    check(
        r#"{"enum":[1,"a",null,{"b":[2]}]}"#,
        &["1.0", "\"a\"", "null", "{\"b\":[2]}"],
        &["2", "{\"b\":[2,2]}", "true"],
    );
    check(r#"{"const":false}"#, &["false"], &["true", "0", "null"]);
    check(r#"{"enum":[1,2,3,"x"],"minimum":2,"type":"number"}"#, &["2", "3"], &["1", "\"x\""]);
    check(
        r#"{"not":{"enum":["a","b",1]},"type":["string","integer"]}"#,
        &["\"c\"", "2"],
        &["\"a\"", "1", "1.0"],
    );
    check(
        r#"{"not":{"const":{"a":1,"b":[2]}},"type":"object"}"#,
        &["{}", "{\"a\":1}", "{\"a\":1,\"b\":[3]}", "{\"a\":1,\"b\":[2],\"c\":0}"],
        &["{\"b\":[2],\"a\":1.0}", "1"],
    );
    check(
        r#"{"not":{"const":[1,2]},"type":"array"}"#,
        &["[]", "[1]", "[1,3]", "[1,2,3]"],
        &["[1,2]", "1"],
    );
}

#[test]
fn numbers() {
    check(
        r#"{"type":"number","minimum":1.5,"exclusiveMaximum":2}"#,
        &["1.5", "1.99"],
        &["1.4", "2", "2.0"],
    );
    check(
        r#"{"type":"number","minimum":1,"exclusiveMinimum":true,"maximum":2,"exclusiveMaximum":false}"#,
        &["1.1", "2"],
        &["1", "2.1"],
    );
    check(
        r#"{"type":"integer","minimum":9007199254740993}"#,
        &["9007199254740993"],
        &["9007199254740992"],
    );
    check(r#"{"type":"number","maximum":1e1}"#, &["10", "1e1"], &["10.1"]);
    check(r#"{"type":"number","multipleOf":0.1}"#, &["0.3", "1", "0"], &["0.35"]);
    check(
        r#"{"type":"number","not":{"multipleOf":2,"minimum":4}}"#,
        &["2", "5", "3.5"],
        &["4", "6"],
    );
    check(r#"{"type":"number","not":{"minimum":4}}"#, &["3.9"], &["4", "5"]);
    check(r#"{"type":"number","not":{"type":"integer"}}"#, &["3.9"], &["4", "5.0"]);
}

#[test]
fn strings() {
    check(
        r#"{"type":"string","minLength":2,"maxLength":3}"#,
        &["\"ab\"", "\"é🙂\"", "\"\\ud83d\\ude42\\n\""],
        &["\"a\"", "\"🙂\"", "\"abcd\""],
    );
    check(r#"{"type":"string","pattern":"b+"}"#, &["\"abc\"", "\"b\""], &["\"\"", "\"ac\""]);
    check(
        r#"{"type":"string","pattern":"^a","maxLength":2,"not":{"pattern":"c$"}}"#,
        &["\"a\"", "\"ab\""],
        &["\"ac\"", "\"abb\"", "\"b\""],
    );
    check(r#"{"type":"string","not":{"minLength":2}}"#, &["\"\"", "\"a\""], &["\"ab\""]);
    check(r#"{"type":"string","format":"colour"}"#, &["\"any\""], &["1"]);
    check(
        r#"{"type":"string","anyOf":[{"const":"q"},{"pattern":"^x"}],"minLength":1}"#,
        &["\"q\"", "\"x1\""],
        &["\"\"", "\"qx\""],
    );
    check(r#"{"pattern":"^.{0,100000}$","enum":["a",1]}"#, &["\"a\"", "1"], &["\"b\""]);
}

#[test]
fn arrays() {
    check(
        r#"{"type":"array","items":{"type":"null"},"minItems":1,"maxItems":2}"#,
        &["[null]", "[null,null]"],
        &["[]", "[1]", "[null,null,null]"],
    );
    check(
        r#"{"type":"array","items":[{"type":"null"},{"type":"string"}],"additionalItems":false}"#,
        &["[]", "[null]", "[null,\"\"]"],
        &["[1]", "[null,1]", "[null,\"\",1]"],
    );
    check(
        r#"{"type":"array","prefixItems":[{"type":"null"}],"items":{"type":"string"}}"#,
        &["[]", "[null,\"\"]"],
        &["[\"\"]", "[null,null]"],
    );
    check(
        r#"{"type":"array","allOf":[{"prefixItems":[{"type":"integer"}]},{"items":{"minimum":2}}]}"#,
        &["[2,2.5]", "[]"],
        &["[2.5]", "[2,1]"],
    );
    check(r#"{"type":"array","contains":{"type":"null"}}"#, &["[1,null]"], &["[]", "[1]"]);
    check(
        r#"{"type":"array","contains":{"type":"null"},"minContains":2,"maxContains":3}"#,
        &["[null,null]", "[null,1,null,null]"],
        &["[null]", "[null,null,null,null]"],
    );
    check(r#"{"anyOf":[{"type":"null"},{"contains":true,"maxContains":0}]}"#, &["null", "1"], &["[]", "[1]"]);
    check(r#"{"type":"array","contains":{"type":"null"},"minContains":0}"#, &["[]", "[1]"], &["1"]);
    check(r#"{"type":"array","not":{"contains":{"type":"null"}}}"#, &["[]", "[1]"], &["[1,null]"]);
    check(r#"{"type":"array","not":{"items":{"type":"null"}}}"#, &["[1,null]"], &["[]", "[null]"]);
    check(
        r#"{"type":"array","not":{"prefixItems":[{"type":"null"},{"type":"null"}],"items":false}}"#,
        &["[1]", "[null,1]", "[null,null,null]"],
        &["[]", "[null]", "[null,null]"],
    );
    check(
        r#"{"type":"array","uniqueItems":true}"#,
        &["[1,2]", "[{\"a\":1},{\"a\":2}]"],
        &["[1,1.0]", "[{\"a\":1,\"b\":2},{\"b\":2,\"a\":1}]"],
    );
    check(r#"{"type":"array","not":{"maxItems":1}}"#, &["[1,1]"], &["[]", "[1]"]);
    check(
        r#"{"type":"array","prefixItems":[true],"unevaluatedItems":false}"#,
        &["[]", "[1]"],
        &["[1,2]"],
    );
}

#[test]
fn objects() {
    check(
        r#"{"type":"object","properties":{"a":{"type":"null"}},"required":["a","z"]}"#,
        &["{\"a\":null,\"z\":1}"],
        &["{\"a\":null}", "{\"a\":1,\"z\":1}"],
    );
    check(
        r#"{"type":"object","properties":{"a":{}},"additionalProperties":false}"#,
        &["{}", "{\"\\u0061\":1}"],
        &["{\"b\":1}"],
    );
    check(
        r#"{"type":"object","properties":{"a":{}},"additionalProperties":{"type":"null"}}"#,
        &["{\"a\":1,\"b\":null}"],
        &["{\"b\":1}"],
    );
    check(
        r#"{"type":"object","patternProperties":{"^a":{"minimum":1},"b$":{"maximum":2}},"additionalProperties":false}"#,
        &["{\"ab\":1.5,\"a\":3,\"b\":0}"],
        &["{\"ab\":3}", "{\"ab\":0}", "{\"c\":1}"],
    );
    check(
        r#"{"type":"object","properties":{"ab":{"type":"integer"}},"patternProperties":{"^a":{"minimum":1}}}"#,
        &["{\"ab\":1}"],
        &["{\"ab\":1.5}", "{\"ab\":0}", "{\"ac\":0}"],
    );
    check(
        r#"{"type":"object","propertyNames":{"maxLength":1},"properties":{"ab":{}}}"#,
        &["{\"a\":1}"],
        &["{\"ab\":1}"],
    );
    check(
        r#"{"type":"object","minProperties":1,"maxProperties":2}"#,
        &["{\"a\":1}"],
        &["{}", "{\"a\":1,\"b\":1,\"c\":1}"],
    );
    check(
        r#"{"type":"object","dependentRequired":{"a":["b"],"c":["a"]}}"#,
        &["{}", "{\"a\":1,\"b\":1}", "{\"c\":1,\"a\":1,\"b\":1}"],
        &["{\"a\":1}", "{\"c\":1,\"a\":1}"],
    );
    check(
        r#"{"type":"object","dependencies":{"a":["b"],"c":{"properties":{"d":{"type":"null"}}}}}"#,
        &["{\"d\":1}", "{\"c\":1,\"d\":null}"],
        &["{\"a\":1}", "{\"c\":1,\"d\":1}"],
    );
    check(
        r#"{"type":"object","dependentSchemas":{"a":{"minProperties":2}}}"#,
        &["{\"b\":1}", "{\"a\":1,\"b\":1}"],
        &["{\"a\":1}"],
    );
    check(
        r#"{"type":"object","allOf":[{"properties":{"a":{"minimum":1}}},{"properties":{"a":{"maximum":2}},"additionalProperties":false}]}"#,
        &["{\"a\":1}"],
        &["{\"a\":3}", "{\"a\":0}", "{\"b\":1}"],
    );
    check(r#"{"type":"object","properties":{"a":false}}"#, &["{}", "{\"b\":1}"], &["{\"a\":1}"]);
    check(
        r#"{"type":"object","allOf":[{"properties":{"a":true}}],"unevaluatedProperties":false}"#,
        &["{\"a\":1}"],
        &["{\"b\":1}"],
    );
}

#[test]
fn negated_objects() {
    check(
        r#"{"type":"object","not":{"required":["a","b"]}}"#,
        &["{}", "{\"a\":1}"],
        &["{\"a\":1,\"b\":1}"],
    );
    check(
        r#"{"type":"object","not":{"properties":{"a":{"type":"null"}}}}"#,
        &["{\"a\":1}"],
        &["{}", "{\"a\":null}"],
    );
    check(
        r#"{"type":"object","not":{"anyOf":[{"required":["a"]},{"required":["b"]}]}}"#,
        &["{\"c\":1}"],
        &["{\"a\":1}", "{\"b\":1}"],
    );
    check(
        r#"{"type":"object","not":{"minProperties":2}}"#,
        &["{}", "{\"a\":1}"],
        &["{\"a\":1,\"b\":1}"],
    );
    check(
        r#"{"type":"object","not":{"propertyNames":{"not":{"const":"0"}}}}"#,
        &["{\"0\":1,\"a\":2}"],
        &["{}", "{\"a\":1}"],
    );
    check(
        r#"{"type":"object","not":{"patternProperties":{"^k$":{"type":"null"}}}}"#,
        &["{\"k\":1}"],
        &["{}", "{\"k\":null}", "{\"j\":1}"],
    );
    check(
        r#"{"type":"object","not":{"dependentRequired":{"a":["b"]}}}"#,
        &["{\"a\":1}"],
        &["{}", "{\"a\":1,\"b\":1}"],
    );
    check(
        r#"{"type":"object","properties":{"a":{},"b":{}},"additionalProperties":false,"not":{"additionalProperties":false,"properties":{"a":{}}}}"#,
        &["{\"b\":1}"],
        &["{}", "{\"a\":1}", "{\"c\":1}"],
    );
}

#[test]
fn combinations() {
    check(
        r#"{"anyOf":[{"type":"string"},{"type":"object","required":["a"]}]}"#,
        &["\"\"", "{\"a\":1}"],
        &["{}", "1"],
    );
    check(r#"{"oneOf":[{"type":"integer"},{"minimum":2}]}"#, &["1", "2.5", "\"a\""], &["2", "1.5"]);
    check(
        r#"{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}]}"#,
        &["{\"a\":1}", "{\"b\":1}"],
        &["{}", "{\"a\":1,\"b\":1}"],
    );
    check(
        r#"{"oneOf":[{"type":"object","properties":{"k":{"const":1},"v":{"type":"null"}},"required":["k"]},{"type":"object","properties":{"k":{"const":2}},"required":["k"]}]}"#,
        &["{\"k\":1,\"v\":null}", "{\"k\":2,\"v\":1}"],
        &["{\"k\":1,\"v\":1}", "{\"k\":3}", "{}"],
    );
    check(
        r#"{"type":"object","if":{"properties":{"a":{"const":1}}},"then":{"required":["b"]},"else":{"required":["c"]}}"#,
        &["{\"b\":0}", "{\"a\":1,\"b\":0}", "{\"a\":2,\"c\":0}"],
        &["{}", "{\"a\":1}", "{\"a\":2,\"b\":0}"],
    );
    check(
        r#"{"not":{"oneOf":[{"type":"integer"},{"minimum":2}]},"type":"number"}"#,
        &["2", "1.5"],
        &["1", "2.5"],
    );
    check(
        r#"{"not":{"if":{"type":"string"},"then":{"minLength":1},"else":{"type":"null"}}}"#,
        &["\"\"", "1"],
        &["\"a\"", "null"],
    );
    check(
        r##"{"$ref":"#/$defs/a","minimum":2,"$defs":{"a":{"type":"integer"}}}"##,
        &["2"],
        &["1", "2.5"],
    );
    check(
        r##"{"type":"object","properties":{"n":{"$ref":"#"}},"additionalProperties":false}"##,
        &["{\"n\":{\"n\":{}}}"],
        &["{\"n\":{\"m\":{}}}", "{\"n\":1}"],
    );
}

#[test]
fn references() {
    check(
        r##"{"$ref":"#/definitions/a~1b%25","definitions":{"a/b%":{"type":"null"}}}"##,
        &["null"],
        &["1"],
    );
    check(r##"{"$ref":"#x","$defs":{"y":{"$anchor":"x","type":"null"}}}"##, &["null"], &["1"]);
    check(
        r##"{"$schema":"http://json-schema.org/draft-04/schema#","$ref":"#x","definitions":{"y":{"id":"#x","type":"null"}}}"##,
        &["null"],
        &["1"],
    );
    check(
        r##"{"$id":"http://a/b/c.json","$ref":"d.json#/$defs/e","$defs":{"q":{"$id":"d.json","$defs":{"e":{"type":"null"}}}}}"##,
        &["null"],
        &["1"],
    );
    check(
        r##"{"$ref":"#/$defs/q","$defs":{"q":{"$id":"d.json","$ref":"#/$defs/e","$defs":{"e":{"type":"null"}}},"e":{"type":"string"}}}"##,
        &["null"],
        &["1", "\"\""],
    );
    check(r##"{"$ref":"#/x/0/y","x":[{"y":{"type":"null"}}]}"##, &["null"], &["1"]);
    check(
        r##"{"$dynamicRef":"#n","$defs":{"n":{"$dynamicAnchor":"n","type":"null"}}}"##,
        &["null"],
        &["1"],
    );
    check(
        r##"{"type":"array","items":{"$recursiveRef":"#"},"$recursiveAnchor":true}"##,
        &["[]", "[[[]]]"],
        &["1", "[1]"],
    );
    check(
        r##"{"properties":{"default":{"$ref":"#/$defs/a"},"$ref":{"type":"null"}},"type":"object","$defs":{"a":{"type":"null"}}}"##,
        &["{\"default\":null,\"$ref\":null}"],
        &["{\"default\":1}", "{\"$ref\":1}"],
    );
}
