//! Random schemas over all keywords, most of which some value satisfies, and random values of the
//! same small world.
#![allow(dead_code, clippy::unwrap_used)]

use fastrand::Rng;
use serde_json::{Map, Value, json};

const NAMES: [&str; 4] = ["a", "b", "ab", "c"];
const PATTERNS: [&str; 7] = ["^a", "b", "^ab?$", "^c$", "", "^[a-c]{1,3}$", "^(?!b)"];
const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];
const FORMATS: [&str; 20] = [
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "idn-email",
    "hostname",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "iri",
    "iri-reference",
    "uuid",
    "uri-template",
    "json-pointer",
    "relative-json-pointer",
    "regex",
    "no-such-format",
];

/// Schemas and values from a seed.
pub struct Draw(Rng);

type Entries = Map<String, Value>;

impl Draw {
    pub fn new(seed: u64) -> Self {
        Self(Rng::with_seed(seed))
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.0.usize(..bound.max(1))
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn of<'v>(&mut self, list: &[&'v str]) -> &'v str {
        list[self.below(list.len())]
    }

    fn number(&mut self) -> Value {
        let whole = self.below(7) as i64 - 2;
        if self.once_in(3) { json!(whole as f64 + 0.5) } else { json!(whole) }
    }

    fn text(&mut self) -> String {
        (0..self.below(4)).map(|_| self.of(&["a", "b", "c"])).collect()
    }

    /// A value. Keys are sorted: the judge tells objects apart by the order of their keys.
    pub fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 5 } else { 9 }) {
            0 => Value::Null,
            1 => Value::from(self.once_in(2)),
            2 => self.number(),
            3 | 4 => Value::from(self.text()),
            5 | 6 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect(),
            _ => {
                let names = ["a", "ab", "b", "c", "d"];
                let chosen: Vec<&str> = names.into_iter().filter(|_| self.once_in(2)).collect();
                chosen.into_iter().map(|name| (name.to_owned(), self.value(depth - 1))).collect()
            }
        }
    }

    /// A value that is likely to be valid against a schema, by a look at its plainest keywords.
    pub fn value_for(&mut self, schema: &Value, depth: usize) -> Value {
        if let Some(value) = schema.get("const") {
            return value.clone();
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array)
            && !values.is_empty()
        {
            return values[self.below(values.len())].clone();
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(choices) = schema.get(keyword).and_then(Value::as_array)
                && self.once_in(2)
            {
                let choice = self.below(choices.len());
                return self.value_for(&choices[choice], depth);
            }
        }
        let name = match schema.get("type") {
            Some(Value::String(name)) => name.clone(),
            Some(Value::Array(names)) => names[0].as_str().unwrap_or("null").to_owned(),
            _ => return self.value(depth.min(2)),
        };
        match name.as_str() {
            "null" => Value::Null,
            "boolean" => Value::from(self.once_in(2)),
            "integer" => json!(self.below(7) as i64 - 2),
            "number" => self.number(),
            "string" => Value::from(self.text()),
            "array" => {
                let items = schema.get("items").cloned().unwrap_or(Value::Bool(true));
                let prefix = schema.get("prefixItems").and_then(Value::as_array).cloned();
                let prefix = prefix.unwrap_or_default();
                let item = |place: usize| prefix.get(place).unwrap_or(&items);
                (0..self.below(4))
                    .map(|n| self.value_for(item(n), depth.saturating_sub(1)))
                    .collect()
            }
            _ => self.object_for(schema, depth.saturating_sub(1)),
        }
    }

    fn object_for(&mut self, schema: &Value, depth: usize) -> Value {
        let mut entries = Entries::new();
        for name in ["a", "ab", "b", "c", "d"] {
            let property = schema.get("properties").and_then(|all| all.get(name));
            let required = schema.get("required").and_then(Value::as_array);
            let is_required = required.is_some_and(|all| all.contains(&Value::from(name)));
            if is_required || self.once_in(if property.is_some() { 2 } else { 5 }) {
                let value = match property {
                    Some(property) => self.value_for(property, depth),
                    None => self.value(depth.min(1)),
                };
                entries.insert(name.to_owned(), value);
            }
        }
        Value::Object(entries)
    }

    /// A schema document.
    pub fn document(&mut self) -> Value {
        let mut schema = match self.schema(3) {
            Value::Object(entries) => entries,
            other => Entries::from_iter([("allOf".to_owned(), json!([other]))]),
        };
        let definition = match self.below(3) {
            0 => json!({"type": ["string", "object"], "required": ["a"], "minLength": 2}),
            1 => {
                json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d"}}, "additionalProperties": false})
            }
            _ => json!({"$anchor": "here", "type": ["null", "array"], "items": {"$ref": "#here"}}),
        };
        schema.insert("$defs".to_owned(), json!({ "d": definition }));
        Value::Object(schema)
    }

    /// A schema document for the arguments of a call.
    pub fn arguments(&mut self) -> Value {
        let mut schema = self.document();
        if !self.once_in(4)
            && let Value::Object(entries) = &mut schema
        {
            let definitions = entries.remove("$defs").unwrap_or_default();
            entries.clear();
            entries.insert("type".to_owned(), json!("object"));
            entries.insert("$defs".to_owned(), definitions);
            let names = ["a", "b", "ab", "c", "snake_case", "two words", "ünï", "x-1"];
            let (first, count) = (self.below(6), 1 + self.below(4));
            let names = &names[first.saturating_sub(count)..(first + 1).max(count)];
            let properties = self.named(names, 2);
            if self.once_in(2) {
                let required: Vec<&str> = names
                    .iter()
                    .copied()
                    .filter(|name| properties.get(name).is_some() && self.once_in(2))
                    .collect();
                entries.insert("required".to_owned(), json!(required));
            }
            entries.insert("properties".to_owned(), properties);
            if self.once_in(3) {
                self.about_objects(entries, 1);
            }
        }
        ask_for_one_key_at_most(&mut schema);
        schema
    }

    fn schema(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 14 } else { 30 }) {
            0 => Value::Bool(true),
            1 => json!({ "const": self.value(2) }),
            2 => {
                let values: Vec<Value> = (0..1 + self.below(4)).map(|_| self.value(1)).collect();
                json!({ "enum": values })
            }
            3 => json!({"$ref": "#/$defs/d"}),
            4 => json!({"$ref": "#/$defs/d", "minLength": 1}),
            _ => {
                let mut entries = Entries::new();
                self.typed(&mut entries, depth);
                if depth > 0 && self.once_in(3) {
                    self.combined(&mut entries, depth - 1);
                }
                Value::Object(entries)
            }
        }
    }

    fn schemas(&mut self, depth: usize) -> Value {
        (0..1 + self.below(3)).map(|_| self.schema(depth)).collect()
    }

    fn named(&mut self, names: &[&str], depth: usize) -> Value {
        let count = 1 + self.below(3);
        let entries: Entries =
            (0..count).map(|_| (self.of(names).to_owned(), self.schema(depth))).collect();
        Value::Object(entries)
    }

    /// A type and keywords for it, and now and then one of another type.
    fn typed(&mut self, entries: &mut Entries, depth: usize) {
        let mut name = self.of(&TYPES);
        if depth > 0 && self.once_in(2) {
            name = self.of(&["object", "object", "array"]);
        }
        entries.insert(
            "type".to_owned(),
            match self.below(6) {
                0 if name != "null" => json!([name, "null"]),
                _ => json!(name),
            },
        );
        if self.once_in(15) {
            entries.insert("nullable".to_owned(), Value::Bool(false));
        }
        for _ in 0..self.below(4) {
            match name {
                "integer" | "number" => self.about_numbers(entries),
                "string" => self.about_strings(entries),
                "array" => self.about_arrays(entries, depth.saturating_sub(1)),
                "object" => self.about_objects(entries, depth.saturating_sub(1)),
                _ if self.once_in(3) => self.about_strings(entries),
                _ => {}
            }
        }
    }

    fn about_numbers(&mut self, entries: &mut Entries) {
        let (name, value) = match self.below(5) {
            0 => ("minimum", self.number()),
            1 => ("maximum", self.number()),
            2 => ("exclusiveMinimum", self.number()),
            3 => ("exclusiveMaximum", json!(self.below(9) as f64 + 0.5)),
            _ => {
                // The judge divides doubles: exact only where they are small.
                entries.insert("minimum".to_owned(), json!(-1000));
                entries.insert("maximum".to_owned(), json!(1000));
                (
                    "multipleOf",
                    [json!(1), json!(2), json!(3), json!(0.5), json!(1.5)][self.below(5)].clone(),
                )
            }
        };
        entries.insert(name.to_owned(), value);
    }

    fn about_strings(&mut self, entries: &mut Entries) {
        let (name, value) = match self.below(6) {
            0 | 1 => ("pattern", Value::from(self.of(&PATTERNS))),
            2 => ("format", Value::from(self.of(&FORMATS))),
            3 => ("minLength", json!(self.below(3))),
            _ => ("maxLength", json!(1 + self.below(30))),
        };
        entries.insert(name.to_owned(), value);
    }

    fn about_arrays(&mut self, entries: &mut Entries, depth: usize) {
        let (name, value) = match self.below(9) {
            0 | 1 => ("items", self.schema(depth)),
            2 => ("prefixItems", self.schemas(depth)),
            3 => ("minItems", json!(self.below(3))),
            4 => ("maxItems", json!(1 + self.below(4))),
            5 => {
                // The judge applies more complex schemas under `maxContains` to objects, too.
                let item = match self.below(3) {
                    0 => json!({ "const": self.number() }),
                    1 => json!({ "enum": [self.text(), null] }),
                    _ => json!({ "type": self.of(&TYPES) }),
                };
                entries.insert("contains".to_owned(), item);
                if self.once_in(2) {
                    entries.insert("minContains".to_owned(), json!(self.below(3)));
                }
                ("maxContains", json!(2 + self.below(3)))
            }
            6 => {
                let values: Vec<Value> = (0..4).map(|_| self.value(0)).collect();
                entries.insert("items".to_owned(), json!({ "enum": values }));
                ("uniqueItems", Value::Bool(true))
            }
            7 => ("contains", json!({ "type": self.of(&TYPES) })),
            _ => ("unevaluatedItems", self.schema(0)),
        };
        entries.insert(name.to_owned(), value);
    }

    fn about_objects(&mut self, entries: &mut Entries, depth: usize) {
        let list = |draw: &mut Self| {
            let names: std::collections::BTreeSet<&str> =
                (0..1 + draw.below(2)).map(|_| draw.of(&NAMES)).collect();
            json!(names)
        };
        let (name, value) = match self.below(13) {
            0..=3 => ("properties", self.named(&NAMES, depth)),
            4 => ("required", list(self)),
            5 => ("patternProperties", self.named(&PATTERNS, depth)),
            6 => (
                "additionalProperties",
                match self.below(3) {
                    0 => self.schema(depth),
                    _ => Value::Bool(false),
                },
            ),
            7 => (
                "propertyNames",
                match self.below(3) {
                    0 => json!({ "pattern": self.of(&PATTERNS) }),
                    1 => json!({ "enum": NAMES }),
                    _ => json!({ "maxLength": 1 + self.below(3) }),
                },
            ),
            8 => ("minProperties", json!(self.below(3))),
            9 => ("maxProperties", json!(1 + self.below(3))),
            10 => ("dependentRequired", json!({ self.of(&NAMES): list(self) })),
            11 => ("dependentSchemas", json!({ self.of(&NAMES): self.schema(depth.min(1)) })),
            _ => (
                "unevaluatedProperties",
                match self.below(2) {
                    0 => Value::Bool(false),
                    _ => self.schema(0),
                },
            ),
        };
        entries.insert(name.to_owned(), value);
    }

    fn combined(&mut self, entries: &mut Entries, depth: usize) {
        match self.below(6) {
            0 => drop(entries.insert("allOf".to_owned(), self.untyped(depth))),
            1 => drop(entries.insert("anyOf".to_owned(), self.schemas(depth))),
            2 => drop(entries.insert("oneOf".to_owned(), self.schemas(depth))),
            3 => drop(entries.insert("anyOf".to_owned(), self.untyped(depth))),
            4 => drop(entries.insert("not".to_owned(), self.schema(depth.min(1)))),
            _ => {
                entries.insert("if".to_owned(), self.schema(depth.min(1)));
                entries.insert("then".to_owned(), self.untyped(depth)[0].clone());
                entries.insert("else".to_owned(), self.untyped(depth)[0].clone());
            }
        }
    }

    /// Schemas without a type: they rarely contradict what they stand beside.
    fn untyped(&mut self, depth: usize) -> Value {
        let one = |draw: &mut Self| {
            let mut entries = Entries::new();
            match draw.below(4) {
                0 => draw.about_numbers(&mut entries),
                1 => draw.about_strings(&mut entries),
                2 => draw.about_arrays(&mut entries, depth),
                _ => draw.about_objects(&mut entries, depth),
            }
            Value::Object(entries)
        };
        (0..1 + self.below(3)).map(|_| one(self)).collect()
    }
}

/// How many tokens are left is told without looking at keys that were written, so with few left the
/// second of two keys that nobody named may be out of reach.
fn ask_for_one_key_at_most(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(ask_for_one_key_at_most),
        Value::Object(entries) => {
            for (name, value) in entries {
                match (name.as_str(), value.as_u64()) {
                    ("minProperties", Some(2..)) => *value = json!(1),
                    _ => ask_for_one_key_at_most(value),
                }
            }
        }
        _ => {}
    }
}
