//! What a tool's schema says of one parameter, as far as its types go.
//!
//! In formats that write a string as plain text, this decides what a text is: who reads an answer and
//! who makes the grammar of it must be of one mind, so both ask here. It looks at the plain keywords
//! alone, and may thus be wider or narrower than the schema.

use serde_json::{Map, Value};

/// Schemas looked at for one parameter; a schema that needs more declares nothing.
const MAX_SCHEMAS: usize = 1_000;

/// The JSON types that a parameter's schema allows. Nothing declared is not the same as everything
/// allowed: where nothing is, a text is a string unless it is JSON of another type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeclaredTypes {
    bits: u8,
}

/// Types that a value can have, as bits of [`DeclaredTypes`]. Every integer is a number.
pub(crate) mod types {
    pub(crate) const NULL: u8 = 1;
    pub(crate) const BOOLEAN: u8 = 2;
    pub(crate) const INTEGER: u8 = 4;
    pub(crate) const NUMBER: u8 = 8 | INTEGER;
    pub(crate) const STRING: u8 = 16;
    pub(crate) const ARRAY: u8 = 32;
    pub(crate) const OBJECT: u8 = 64;
    pub(crate) const ALL: u8 = 127;
}

impl DeclaredTypes {
    /// Types of the parameter `name` by the `parameters` schema of a tool. Local `$ref`, `anyOf`,
    /// `oneOf`, `allOf`, `enum`, `const`, lists of types, `nullable` and `additionalProperties` are
    /// followed. A parameter the schema does not
    /// speak of declares nothing, and neither does one whose schema cannot be followed.
    pub fn of_parameter(tool_parameters: &Value, name: &str) -> Self {
        let mut reader = Reader { root: tool_parameters, schemas_left: MAX_SCHEMAS };
        let bits = reader.parameter(tool_parameters, name);
        if reader.schemas_left == 0 { Self::unknown() } else { Self { bits: bits.unwrap_or(0) } }
    }

    /// Nothing is declared.
    pub fn unknown() -> Self {
        Self { bits: 0 }
    }

    /// A string and nothing else (DSML's `string="true"`).
    pub fn string() -> Self {
        Self { bits: types::STRING }
    }

    /// Every type but string (DSML's `string="false"`).
    pub fn not_string() -> Self {
        Self { bits: types::ALL & !types::STRING }
    }

    /// The type of this JSON Schema name (Kimi K3's `type="…"`); other names declare nothing.
    pub fn named(name: &str) -> Self {
        Self { bits: bit(name).unwrap_or(0) }
    }

    /// Whether nothing is declared.
    pub fn is_unknown(self) -> bool {
        self.bits == 0
    }

    /// Whether a string fits, as it does where nothing is declared.
    pub fn allows_string(self) -> bool {
        self.allows(types::STRING)
    }

    /// Whether a value of this type fits.
    pub(crate) fn allows(self, type_bit: u8) -> bool {
        self.is_unknown() || self.bits & type_bit == type_bit
    }
}

fn bit(name: &str) -> Option<u8> {
    Some(match name {
        "null" => types::NULL,
        "boolean" => types::BOOLEAN,
        "integer" => types::INTEGER,
        "number" => types::NUMBER,
        "string" => types::STRING,
        "array" => types::ARRAY,
        "object" => types::OBJECT,
        _ => return None,
    })
}

fn bit_of(value: &Value) -> u8 {
    match value {
        Value::Null => types::NULL,
        Value::Bool(_) => types::BOOLEAN,
        Value::Number(number) if number.is_f64() => types::NUMBER,
        Value::Number(_) => types::INTEGER,
        Value::String(_) => types::STRING,
        Value::Array(_) => types::ARRAY,
        Value::Object(_) => types::OBJECT,
    }
}

/// Follows a schema. Answers are bits; `None` where a schema says nothing of types.
struct Reader<'a> {
    root: &'a Value,
    schemas_left: usize,
}

impl<'a> Reader<'a> {
    /// Types of a member of the object that `schema` describes.
    fn parameter(&mut self, schema: &'a Value, name: &str) -> Option<u8> {
        let schema = self.enter(schema)?;
        let declared = schema.get("properties").and_then(|properties| properties.get(name));
        if let Some(declared) = declared {
            return self.types(declared);
        }
        if let Some(found) = self.target(schema).and_then(|target| self.parameter(target, name)) {
            return Some(found);
        }
        let mut found = None;
        for branch in branches(schema, &["allOf", "anyOf", "oneOf"]) {
            found = union(found, self.parameter(branch, name));
        }
        match schema.get("additionalProperties") {
            Some(others) if found.is_none() => self.types(others),
            _ => found,
        }
    }

    fn types(&mut self, schema: &'a Value) -> Option<u8> {
        let schema = self.enter(schema)?;
        let mut allowed = own_types(schema);
        if let Some(target) = self.target(schema) {
            allowed = intersection(allowed, self.types(target));
        }
        for branch in branches(schema, &["allOf"]) {
            allowed = intersection(allowed, self.types(branch));
        }
        for keyword in ["anyOf", "oneOf"] {
            let choices = self.choices(schema, keyword);
            allowed = intersection(allowed, choices);
        }
        match schema.get("nullable") {
            Some(Value::Bool(true)) => allowed.map(|bits| bits | types::NULL),
            _ => allowed,
        }
    }

    /// What one of several schemas allows: nothing is declared if one of them declares nothing.
    fn choices(&mut self, schema: &'a Map<String, Value>, keyword: &str) -> Option<u8> {
        let mut bits = 0;
        for branch in branches(schema, &[keyword]) {
            // `false` allows nothing.
            if branch != &Value::Bool(false) {
                bits |= self.types(branch)?;
            }
        }
        (bits != 0).then_some(bits)
    }

    fn enter(&mut self, schema: &'a Value) -> Option<&'a Map<String, Value>> {
        self.schemas_left = self.schemas_left.saturating_sub(1);
        if self.schemas_left == 0 { None } else { schema.as_object() }
    }

    /// What a `$ref` within the schema points to.
    fn target(&self, schema: &'a Map<String, Value>) -> Option<&'a Value> {
        let pointer = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
        self.root.pointer(pointer)
    }
}

fn own_types(schema: &Map<String, Value>) -> Option<u8> {
    let named = match schema.get("type") {
        Some(Value::String(name)) => bit(name),
        Some(Value::Array(names)) => names
            .iter()
            .map(|name| name.as_str().and_then(bit))
            .try_fold(0, |all, one| one.map(|one| all | one)),
        _ => None,
    };
    let listed = schema
        .get("enum")
        .and_then(Value::as_array)
        .map(|values| values.iter().map(bit_of).fold(0, |all, one| all | one));
    let constant = schema.get("const").map(bit_of);
    intersection(intersection(named, listed), constant)
}

fn branches<'a>(
    schema: &'a Map<String, Value>,
    keywords: &[&str],
) -> impl Iterator<Item = &'a Value> {
    let lists: Vec<_> =
        keywords.iter().filter_map(|keyword| schema.get(*keyword)?.as_array()).collect();
    lists.into_iter().flatten()
}

fn union(left: Option<u8>, right: Option<u8>) -> Option<u8> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left | right),
        (one, None) | (None, one) => one,
    }
}

/// What two declarations leave. Where they contradict each other, what the first one says.
fn intersection(left: Option<u8>, right: Option<u8>) -> Option<u8> {
    match (left, right) {
        (Some(left), Some(right)) if left & right != 0 => Some(left & right),
        (Some(left), Some(_)) => Some(left),
        (one, None) | (None, one) => one,
    }
}
