//! Jinja's filters where the engine's own differ from Python's.

use minijinja::value::{Kwargs, Tuple, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, Value};

use super::python_text::{self, as_float};

pub(super) fn add_to(env: &mut Environment) {
    env.add_filter("int", int);
    env.add_filter("float", float);
    env.add_filter("string", string);
    env.add_filter("indent", indent);
    env.add_filter("trim", trim);
    env.add_filter("join", join);
    env.add_filter("items", items);
    env.add_filter("upper", upper);
    env.add_filter("lower", lower);
    env.add_filter("dictsort", dictsort);
    env.add_filter("escape", escape);
    env.add_filter("e", escape);
}

/// `int(value, default=0, base=10)`: what is no number is the default.
fn int(
    value: &Value,
    default: Option<Value>,
    base: Option<u32>,
    rest: Kwargs,
) -> Result<Value, Error> {
    let default = match default {
        Some(default) => default,
        None => rest.get::<Option<Value>>("default")?.unwrap_or_else(|| Value::from(0)),
    };
    let base = match base {
        Some(base) => base,
        None => rest.get::<Option<u32>>("base")?.unwrap_or(10),
    };
    rest.assert_all_used()?;
    if let Some(text) = value.as_str() {
        return Ok(parse_int(text, base).unwrap_or(default));
    }
    Ok(match value.kind() {
        ValueKind::Bool => Value::from(i64::from(value.is_true())),
        ValueKind::Number => match as_float(value) {
            Some(number) => float_to_int(number).unwrap_or(default),
            None => value.clone(),
        },
        _ => default,
    })
}

/// Python's `int(text, base)`, else the truncated `float(text)`.
fn parse_int(text: &str, base: u32) -> Option<Value> {
    let trimmed = trim_space(text);
    let (negative, digits) = match trimmed.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, trimmed.strip_prefix('+').unwrap_or(trimmed)),
    };
    let (base, digits) = strip_base_prefix(base, digits);
    if (2..=36).contains(&base) {
        let digits = without_underscores(digits)?;
        let unsigned = !digits.starts_with(['-', '+']);
        if let Some(number) = i128::from_str_radix(&digits, base).ok().filter(|_| unsigned) {
            return Some(Value::from(if negative { -number } else { number }));
        }
    }
    parse_float(text).and_then(float_to_int)
}

/// Base 0 and the matching base take a `0x`, `0o` or `0b` prefix.
fn strip_base_prefix(base: u32, digits: &str) -> (u32, &str) {
    for (prefix, of) in [("0x", 16), ("0X", 16), ("0o", 8), ("0O", 8), ("0b", 2), ("0B", 2)] {
        if let Some(rest) = digits.strip_prefix(prefix).filter(|_| base == 0 || base == of) {
            return (of, rest);
        }
    }
    (if base == 0 { 10 } else { base }, digits)
}

/// The digits without single underscores between them.
fn without_underscores(digits: &str) -> Option<String> {
    let misplaced = digits.starts_with('_') || digits.ends_with('_') || digits.contains("__");
    (!misplaced).then(|| digits.replace('_', ""))
}

fn float_to_int(number: f64) -> Option<Value> {
    let truncated = number.trunc();
    (truncated.is_finite() && truncated.abs() < 1e38).then(|| Value::from(truncated as i128))
}

/// `float(value, default=0.0)`: what is no number is the default.
fn float(value: &Value, default: Option<Value>, rest: Kwargs) -> Result<Value, Error> {
    let default = match default {
        Some(default) => default,
        None => rest.get::<Option<Value>>("default")?.unwrap_or_else(|| Value::from(0.0)),
    };
    rest.assert_all_used()?;
    if let Some(text) = value.as_str() {
        return Ok(parse_float(text).map_or(default, Value::from));
    }
    Ok(match value.kind() {
        ValueKind::Bool => Value::from(f64::from(u8::from(value.is_true()))),
        ValueKind::Number => f64::try_from(value.clone()).map_or(default, Value::from),
        _ => default,
    })
}

fn parse_float(text: &str) -> Option<f64> {
    without_underscores(trim_space(text))?.parse().ok()
}

/// `str(value)`.
fn string(state: &State, value: &Value) -> Result<Value, Error> {
    if value.as_str().is_some() {
        return Ok(value.clone());
    }
    let text = python_text::to_str(value)?;
    state.consume_fuel(text.len() as u64 / 4)?;
    Ok(Value::from(text))
}

/// `indent(text, width=4, first=false, blank=false)`; a trailing newline stays.
fn indent(
    state: &State,
    value: &Value,
    width: Option<Value>,
    first: Option<bool>,
    rest: Kwargs,
) -> Result<Value, Error> {
    let width = match width {
        Some(width) => Some(width),
        None => rest.get::<Option<Value>>("width")?,
    };
    let first = match first {
        Some(first) => first,
        None => rest.get::<Option<bool>>("first")?.unwrap_or(false),
    };
    let blank = rest.get::<Option<bool>>("blank")?.unwrap_or(false);
    rest.assert_all_used()?;
    let prefix = indent_prefix(width)?;
    let text = python_text::to_str(value)?;
    let lines = text.split('\n').count();
    state.consume_fuel(lines.saturating_mul(prefix.len()) as u64 / 64)?;
    let mut out = String::with_capacity(text.len());
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            out.push('\n');
        }
        let wanted = if index == 0 { first } else { blank || !line.is_empty() };
        if wanted {
            out.push_str(&prefix);
        }
        out.push_str(line);
    }
    Ok(Value::from(out))
}

fn indent_prefix(width: Option<Value>) -> Result<String, Error> {
    const WIDTH_MAX: i64 = 1024;
    let Some(width) = width else { return Ok(" ".repeat(4)) };
    if let Some(text) = width.as_str() {
        return Ok(text.to_owned());
    }
    let width = i64::try_from(width)?;
    if width > WIDTH_MAX {
        return Err(invalid(format!("indent width {width} is more than {WIDTH_MAX}")));
    }
    Ok(" ".repeat(usize::try_from(width).unwrap_or(0)))
}

/// `str(value).strip(chars)`.
fn trim(value: &Value, chars: Option<&str>) -> Result<Value, Error> {
    let text = python_text::to_str(value)?;
    Ok(Value::from(match chars {
        Some(chars) => text.trim_matches(|ch| chars.contains(ch)),
        None => trim_space(&text),
    }))
}

/// The text without Python's white space at both ends.
fn trim_space(text: &str) -> &str {
    text.trim_matches(python_text::is_space)
}

/// `join(values, d="", attribute=none)`.
fn join(
    state: &State,
    values: &Value,
    separator: Option<Value>,
    attribute: Option<Value>,
    rest: Kwargs,
) -> Result<Value, Error> {
    let separator = match separator {
        Some(separator) => Some(separator),
        None => rest.get::<Option<Value>>("d")?,
    };
    let attribute = match attribute {
        Some(attribute) => Some(attribute),
        None => rest.get::<Option<Value>>("attribute")?,
    };
    rest.assert_all_used()?;
    let separator =
        separator.map(|text| python_text::to_str(&text)).transpose()?.unwrap_or_default();
    let mut out = String::new();
    for (index, item) in values.try_iter()?.enumerate() {
        if index > 0 {
            out.push_str(&separator);
        }
        let before = out.len();
        match &attribute {
            Some(path) => python_text::write_str(&mut out, &follow(item, path)?)?,
            None => python_text::write_str(&mut out, &item)?,
        }
        state.consume_fuel(1 + (separator.len() + out.len() - before) as u64 / 64)?;
    }
    Ok(Value::from(out))
}

/// The attribute named by an integer or a dotted path.
fn follow(item: Value, path: &Value) -> Result<Value, Error> {
    let Some(path) = path.as_str() else { return item.get_item(path) };
    path.split('.').try_fold(item, |value, part| match part.parse::<usize>() {
        Ok(index) => value.get_item_by_index(index),
        Err(_) => value.get_attr(part),
    })
}

/// The pairs of a mapping; none of an undefined value.
fn items(state: &State, value: &Value) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::Undefined => Ok(Value::from(Vec::<Value>::new())),
        ValueKind::Map => {
            state.consume_fuel(value.len().unwrap_or(0) as u64)?;
            pairs(value)
        }
        kind => Err(invalid(format!("can only get item pairs from a mapping, not from {kind}"))),
    }
}

/// The pairs of a mapping as a list of tuples.
pub(super) fn pairs(value: &Value) -> Result<Value, Error> {
    let mut pairs = Vec::new();
    for key in value.try_iter()? {
        let item = value.get_item(&key)?;
        pairs.push(Value::from(Tuple::from([key, item])));
    }
    Ok(Value::from(pairs))
}

/// `dictsort(value, case_sensitive=false, by="key", reverse=false)`.
fn dictsort(
    state: &State,
    value: &Value,
    case_sensitive: Option<bool>,
    by: Option<String>,
    rest: Kwargs,
) -> Result<Value, Error> {
    let case_sensitive = match case_sensitive {
        Some(flag) => flag,
        None => rest.get::<Option<bool>>("case_sensitive")?.unwrap_or(false),
    };
    let by = match by {
        Some(by) => by,
        None => rest.get::<Option<String>>("by")?.unwrap_or_else(|| "key".to_owned()),
    };
    let reverse = rest.get::<Option<bool>>("reverse")?.unwrap_or(false);
    rest.assert_all_used()?;
    state.consume_fuel(value.len().unwrap_or(0) as u64)?;
    let named = Kwargs::from_iter([
        ("case_sensitive", Value::from(case_sensitive)),
        ("by", Value::from(by)),
        ("reverse", Value::from(reverse)),
    ]);
    minijinja::filters::dictsort(value, named)
}

/// HTML escapes, spelled as markupsafe spells them.
fn escape(value: &Value) -> Result<Value, Error> {
    let text = python_text::to_str(value)?;
    if value.is_safe() {
        return Ok(value.clone());
    }
    let mut out = String::with_capacity(text.len());
    for ch in text.chars() {
        match ch {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(ch),
        }
    }
    Ok(Value::from_safe_string(out))
}

fn upper(value: &Value) -> Result<Value, Error> {
    Ok(Value::from(python_text::to_str(value)?.to_uppercase()))
}

fn lower(value: &Value) -> Result<Value, Error> {
    Ok(Value::from(python_text::to_str(value)?.to_lowercase()))
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}
