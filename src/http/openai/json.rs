//! Bytes to a JSON object, strictly: a key may not come twice, and the number of values is bounded.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::http::error::ApiError;

/// The object in `bytes`. Depth is bounded by serde_json (128 levels).
///
/// # Errors
/// A 400 with line and column for anything that is not one JSON object: broken syntax, bad UTF-8, a
/// lone surrogate, deep nesting, a key given twice, more than `values_max` values.
pub fn parse_object(bytes: &[u8], values_max: usize) -> Result<Map<String, Value>, ApiError> {
    let left = Cell::new(values_max);
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = Strict { left: &left }
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| invalid_json(format!("the body is not valid JSON: {error}")))?;
    match value {
        Value::Object(map) => Ok(map),
        other => {
            let kind = super::fields::kind(&other);
            Err(invalid_json(format!("the body must be a JSON object, got {kind}")))
        }
    }
}

fn invalid_json(message: String) -> ApiError {
    ApiError::Invalid { message, param: None, code: Some("invalid_json") }
}

#[derive(Clone, Copy)]
struct Strict<'a> {
    left: &'a Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self.left.get().checked_sub(1) {
            Some(left) => self.left.set(left),
            None => return Err(D::Error::custom("too many values")),
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = access.next_element_seed(self)? {
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!("duplicate key `{key}`")));
            }
            let value = access.next_value_seed(self)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: &[u8]) -> String {
        parse_object(bytes, 1000).unwrap_err().to_string()
    }

    #[test]
    fn an_object_reads_as_serde_json_reads_it() {
        let text = br#"{"a":[1,-2,3.5,1e3,true,null,"x\u00e4\ud83d\ude00"],"b":{"c":{}},"u":18446744073709551615}"#;
        let expected: Value = serde_json::from_slice(text).unwrap();
        assert_eq!(Value::Object(parse_object(text, 1000).unwrap()), expected);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let deep = [b"{\"a\":".as_slice(), &[b'['; 100_000]].concat();
        let cases: [(&[u8], &str); 12] = [
            (b"", "EOF while parsing a value at line 1 column 0"),
            (b"{\"a\":1,}", "line 1 column 8"),
            (b"{\n \"a\": trux}", "line 2"),
            (b"{} x", "trailing characters at line 1 column 4"),
            (b"{\"a\":\"\xff\"}", "invalid unicode code point at line 1"),
            (b"{\"a\":\"\\udc00\"}", "lone leading surrogate in hex escape at line 1"),
            (&deep, "recursion limit exceeded at line 1"),
            (b"{\"a\":1,\"a\":2}", "duplicate key `a` at line 1"),
            (b"{\"a\":1e999}", "number out of range at line 1"),
            (b"{\"a\":NaN}", "line 1 column"),
            (b"[1]", "must be a JSON object, got a list"),
            (b"null", "must be a JSON object, got null"),
        ];
        for (body, expected) in cases {
            let message = message(body);
            assert!(message.contains(expected), "{message} / {expected}");
        }
    }

    #[test]
    fn values_are_bounded() {
        assert!(parse_object(b"{\"a\":[1,2,3]}", 5).is_ok());
        let error = parse_object(b"{\"a\":[1,2,3]}", 4).unwrap_err().to_string();
        assert!(error.contains("too many values"), "{error}");
    }
}
