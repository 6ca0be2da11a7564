//! The `tojson` filter as `transformers` defines it: Python's `json.dumps` with
//! `ensure_ascii=False`, insertion order, and no HTML escapes.

use std::fmt::Write;

use minijinja::value::{Kwargs, Serde, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};

use super::python_text::{self, NESTING_MAX, as_float};

/// `tojson(value, ensure_ascii=false, indent=none, separators=none, sort_keys=false)`.
pub(super) fn tojson(
    state: &State,
    value: &Value,
    ensure_ascii: Option<Value>,
    indent: Option<Value>,
    rest: Kwargs,
) -> Result<Value, Error> {
    let ensure_ascii = or_kwarg(ensure_ascii, &rest, "ensure_ascii")?;
    let indent = or_kwarg(indent, &rest, "indent")?;
    let separators: Option<Value> = rest.get("separators")?;
    let sort_keys: Option<Value> = rest.get("sort_keys")?;
    rest.assert_all_used()?;
    let layout = Layout::new(ensure_ascii, indent, separators, sort_keys)?;
    let mut out = String::new();
    layout.write(&mut out, value, 0)?;
    // Serialising is slower than copying: a quarter step for each byte, as the engine charges its own.
    state.consume_fuel(out.len() as u64 / 4)?;
    Ok(Value::from(out))
}

/// `json.dumps(value, ensure_ascii=False)` outside of a template.
pub(super) fn dumps(value: &serde_json::Value) -> String {
    let mut out = String::new();
    let layout = Layout {
        ascii: false,
        indent: None,
        item_separator: ", ".to_owned(),
        key_separator: ": ".to_owned(),
        sort_keys: false,
    };
    match layout.write(&mut out, &Value::from(Serde(value)), 0) {
        Ok(()) => out,
        // Deeper than we follow: compact JSON means the same.
        Err(_) => value.to_string(),
    }
}

fn or_kwarg(given: Option<Value>, rest: &Kwargs, name: &str) -> Result<Option<Value>, Error> {
    match given {
        Some(value) => Ok(Some(value)),
        None => rest.get(name),
    }
}

struct Layout {
    ascii: bool,
    /// Text of one indentation step; none writes everything on one line.
    indent: Option<String>,
    item_separator: String,
    key_separator: String,
    sort_keys: bool,
}

impl Layout {
    fn new(
        ascii: Option<Value>,
        indent: Option<Value>,
        separators: Option<Value>,
        sort_keys: Option<Value>,
    ) -> Result<Self, Error> {
        let indent = match indent.filter(|indent| !indent.is_none()) {
            None => None,
            Some(indent) => Some(indent_text(&indent)?),
        };
        let mut item_separator = if indent.is_some() { "," } else { ", " }.to_owned();
        let mut key_separator = ": ".to_owned();
        if let Some(pair) = separators.filter(|pair| !pair.is_none()) {
            let pair: Vec<Value> = pair.try_iter()?.collect();
            let [item, key] = pair.as_slice() else {
                return Err(invalid("separators must be a pair of strings"));
            };
            item_separator = python_text::to_str(item)?;
            key_separator = python_text::to_str(key)?;
        }
        Ok(Self {
            ascii: ascii.is_some_and(|flag| flag.is_true()),
            indent,
            item_separator,
            key_separator,
            sort_keys: sort_keys.is_some_and(|flag| flag.is_true()),
        })
    }

    fn write(&self, out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > NESTING_MAX {
            return Err(python_text::too_deep());
        }
        if let Some(text) = value.as_str() {
            self.write_string(out, text);
            return Ok(());
        }
        match value.kind() {
            ValueKind::None => out.push_str("null"),
            ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => write_number(out, value),
            ValueKind::Map => self.write_object(out, value, depth)?,
            ValueKind::Seq | ValueKind::Iterable => self.write_array(out, value, depth)?,
            kind => return Err(invalid(format!("value of type {kind} is not JSON serializable"))),
        }
        Ok(())
    }

    fn write_array(&self, out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
        out.push('[');
        let mut empty = true;
        for item in value.try_iter()? {
            self.begin_item(out, empty, depth + 1);
            empty = false;
            self.write(out, &item, depth + 1)?;
        }
        self.end_items(out, empty, depth);
        out.push(']');
        Ok(())
    }

    fn write_object(&self, out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
        let mut keys: Vec<Value> = value.try_iter()?.collect();
        if self.sort_keys {
            keys.sort();
        }
        out.push('{');
        for (index, key) in keys.iter().enumerate() {
            self.begin_item(out, index == 0, depth + 1);
            self.write_key(out, key)?;
            out.push_str(&self.key_separator);
            self.write(out, &value.get_item(key)?, depth + 1)?;
        }
        self.end_items(out, keys.is_empty(), depth);
        out.push('}');
        Ok(())
    }

    fn write_key(&self, out: &mut String, key: &Value) -> Result<(), Error> {
        match key.kind() {
            ValueKind::String => self.write(out, key, NESTING_MAX),
            ValueKind::None | ValueKind::Bool | ValueKind::Number => {
                out.push('"');
                self.write(out, key, NESTING_MAX)?;
                out.push('"');
                Ok(())
            }
            kind => Err(invalid(format!("keys must be strings or numbers, not {kind}"))),
        }
    }

    fn begin_item(&self, out: &mut String, first: bool, depth: usize) {
        if !first {
            out.push_str(&self.item_separator);
        }
        self.new_line(out, depth);
    }

    fn end_items(&self, out: &mut String, empty: bool, depth: usize) {
        if !empty {
            self.new_line(out, depth);
        }
    }

    fn new_line(&self, out: &mut String, depth: usize) {
        if let Some(indent) = &self.indent {
            out.push('\n');
            for _ in 0..depth {
                out.push_str(indent);
            }
        }
    }

    fn write_string(&self, out: &mut String, text: &str) {
        out.push('"');
        for ch in text.chars() {
            match ch {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\x08' => out.push_str("\\b"),
                '\x0c' => out.push_str("\\f"),
                '\0'..='\x1f' => write_escape(out, ch),
                '\x7f'.. if self.ascii => write_escape(out, ch),
                _ => out.push(ch),
            }
        }
        out.push('"');
    }
}

/// `\uXXXX`, as a surrogate pair above the basic plane.
fn write_escape(out: &mut String, ch: char) {
    let mut units = [0u16; 2];
    for unit in ch.encode_utf16(&mut units) {
        let _ = write!(out, "\\u{unit:04x}");
    }
}

fn write_number(out: &mut String, value: &Value) {
    match as_float(value) {
        Some(number) if number.is_nan() => out.push_str("NaN"),
        Some(number) if number.is_infinite() => {
            out.push_str(if number > 0.0 { "Infinity" } else { "-Infinity" });
        }
        _ => python_text::write_number(out, value),
    }
}

/// One indentation step: a number of spaces, or the text itself.
fn indent_text(indent: &Value) -> Result<String, Error> {
    const SPACES_MAX: i64 = 64;
    if let Some(text) = indent.as_str() {
        return Ok(text.to_owned());
    }
    let spaces = i64::try_from(indent.clone())?;
    if spaces > SPACES_MAX {
        return Err(invalid(format!("indent of {spaces} is more than {SPACES_MAX}")));
    }
    Ok(" ".repeat(usize::try_from(spaces).unwrap_or(0)))
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}
