//! Takes typed fields out of a JSON object; every error names the field by its path.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::http::error::ApiError;

/// The fields of an object that were not taken yet. Null reads as missing.
#[derive(Debug)]
pub struct Fields {
    map: Map<String, Value>,
    path: String,
}

/// Bounds of a number.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    min: f64,
    max: f64,
    min_is_legal: bool,
}

impl Bounds {
    /// From `min` to `max`, both legal.
    pub fn closed(min: f64, max: f64) -> Self {
        Self { min, max, min_is_legal: true }
    }

    /// Above `min`, up to and with `max`.
    pub fn above(min: f64, max: f64) -> Self {
        Self { min, max, min_is_legal: false }
    }

    fn contains(&self, value: f64) -> bool {
        let above = if self.min_is_legal { value >= self.min } else { value > self.min };
        above && value <= self.max
    }

    fn in_words(&self) -> String {
        let Self { min, max, min_is_legal } = self;
        let from = if *min_is_legal { "at least" } else { "greater than" };
        format!("{from} {min} and at most {max}")
    }

    /// The value as the sampler's type. What is legal as f64 stays legal: a positive value that f32
    /// cannot hold becomes the smallest one, not the excluded bound.
    fn narrow(&self, value: f64) -> f32 {
        let narrowed = value as f32;
        if !self.min_is_legal && f64::from(narrowed) <= self.min {
            return (self.min as f32).next_up();
        }
        narrowed
    }
}

impl Fields {
    /// The fields of a whole body.
    pub fn root(map: Map<String, Value>) -> Self {
        Self { map, path: String::new() }
    }

    /// The fields of an object inside another; `path` is the object's own.
    pub fn nested(value: Value, path: &str) -> Result<Self, ApiError> {
        match value {
            Value::Object(map) => Ok(Self { map, path: path.to_owned() }),
            other => Err(wrong_type(path, "an object", &other)),
        }
    }

    /// The path of a field of this object.
    pub fn param(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// Any value but null.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.map.remove(name).filter(|value| !value.is_null())
    }

    /// As [`Fields::take`], and a 400 when it is missing.
    pub fn require(&mut self, name: &str) -> Result<Value, ApiError> {
        self.take(name).ok_or_else(|| {
            let param = self.param(name);
            let message = format!("missing required field `{param}`");
            ApiError::invalid(param, message)
        })
    }

    /// true or false.
    pub fn boolean(&mut self, name: &str) -> Result<Option<bool>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(value)),
            Some(other) => Err(wrong_type(&self.param(name), "true or false", &other)),
        }
    }

    /// A string.
    pub fn string(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(value)) => Ok(Some(value)),
            Some(other) => Err(wrong_type(&self.param(name), "a string", &other)),
        }
    }

    /// A list.
    pub fn list(&mut self, name: &str) -> Result<Option<Vec<Value>>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Array(values)) => Ok(Some(values)),
            Some(other) => Err(wrong_type(&self.param(name), "a list", &other)),
        }
    }

    /// An object.
    pub fn object(&mut self, name: &str) -> Result<Option<Map<String, Value>>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(map)),
            Some(other) => Err(wrong_type(&self.param(name), "an object", &other)),
        }
    }

    /// A whole number in `range`.
    pub fn integer(
        &mut self,
        name: &str,
        range: RangeInclusive<i64>,
    ) -> Result<Option<i64>, ApiError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        integer(&value, &self.param(name), range).map(Some)
    }

    /// As [`Fields::integer`], for ranges that lie within u32.
    pub fn unsigned(
        &mut self,
        name: &str,
        range: RangeInclusive<u32>,
    ) -> Result<Option<u32>, ApiError> {
        let range = i64::from(*range.start())..=i64::from(*range.end());
        Ok(self.integer(name, range)?.and_then(|value| u32::try_from(value).ok()))
    }

    /// A number within `bounds`.
    pub fn number(&mut self, name: &str, bounds: Bounds) -> Result<Option<f32>, ApiError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        number(&value, &self.param(name), bounds).map(Some)
    }

    /// What was not taken, by name.
    pub fn left(self) -> Vec<String> {
        self.map.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, _)| name).collect()
    }

    /// The fields that were not taken, as they are.
    pub fn into_map(self) -> Map<String, Value> {
        self.map
    }
}

/// A whole number; 3.0 is one.
pub fn integer(value: &Value, param: &str, range: RangeInclusive<i64>) -> Result<i64, ApiError> {
    const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53
    let Value::Number(number) = value else {
        return Err(wrong_type(param, "an integer", value));
    };
    let whole = match (number.as_i64(), number.as_f64()) {
        (Some(whole), _) => Some(whole),
        (None, Some(float)) if float.fract() != 0.0 => {
            return Err(wrong_type(param, "an integer", value));
        }
        (None, Some(float)) if float.abs() <= EXACT => Some(float as i64),
        (None, _) => None,
    };
    whole.filter(|whole| range.contains(whole)).ok_or_else(|| {
        let (start, end) = (range.start(), range.end());
        let legal = match (*start, *end) {
            (start, i64::MAX) => format!("at least {start} and below 2^63"),
            (start, end) => format!("between {start} and {end}"),
        };
        ApiError::invalid(param, format!("`{param}` must be {legal}, got {number}"))
    })
}

/// A number within `bounds`.
pub fn number(value: &Value, param: &str, bounds: Bounds) -> Result<f32, ApiError> {
    let Some(float) = value.as_f64() else {
        return Err(wrong_type(param, "a number", value));
    };
    if !bounds.contains(float) {
        let legal = bounds.in_words();
        return Err(ApiError::invalid(param, format!("`{param}` must be {legal}, got {value}")));
    }
    Ok(bounds.narrow(float))
}

/// The 400 for a value of a wrong type.
pub fn wrong_type(param: &str, expected: &str, got: &Value) -> ApiError {
    ApiError::invalid(param, format!("`{param}` must be {expected}, got {}", kind(got)))
}

/// A value's type in words.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a number with a fraction or exponent",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fields(value: Value) -> Fields {
        Fields::nested(value, "").unwrap()
    }

    #[test]
    fn null_reads_as_missing_and_is_not_left_over() {
        let mut f = fields(json!({"a": null, "b": null, "c": 1}));
        assert_eq!(f.boolean("a").unwrap(), None);
        assert_eq!(f.left(), ["c"]);
    }

    #[test]
    fn whole_floats_are_integers_and_others_are_not() {
        let int = |value: Value| integer(&value, "n", 0..=i64::MAX);
        assert_eq!(int(json!(16.0)), Ok(16));
        assert_eq!(int(json!(i64::MAX)), Ok(i64::MAX));
        for bad in [json!(1.5), json!("1"), json!(u64::MAX), json!(1e300), json!(-1), json!(true)] {
            let error = int(bad.clone()).unwrap_err();
            assert_eq!(error.param(), Some("n"), "{bad}");
        }
    }

    #[test]
    fn numbers_keep_their_bounds_when_narrowed() {
        let top_p = Bounds::above(0.0, 1.0);
        let tiny = number(&json!(1e-300), "top_p", top_p).unwrap();
        assert!(tiny > 0.0);
        for bad in [json!(0), json!(1.0000001), json!(-1), json!("1")] {
            assert!(number(&bad, "top_p", top_p).is_err(), "{bad}");
        }
        assert_eq!(number(&json!(0), "t", Bounds::closed(0.0, 2.0)), Ok(0.0));
    }

    #[test]
    fn nested_fields_are_named_by_path() {
        let mut f = Fields::nested(json!({"name": 1}), "messages[2]").unwrap();
        assert_eq!(f.string("name").unwrap_err().param(), Some("messages[2].name"));
        assert_eq!(f.require("role").unwrap_err().param(), Some("messages[2].role"));
    }
}
