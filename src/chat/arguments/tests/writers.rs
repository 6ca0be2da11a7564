//! Writes JSON values in each dialect, as models do.

use serde_json::Value;

use super::super::write_string;

pub(super) fn python(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("None"),
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::String(text) => python_string(text, out),
        Value::Array(items) => {
            // A list and a tuple in turn.
            let (open, close) = if items.len() % 2 == 0 { ("[", "]") } else { ("(", ",)") };
            out.push_str(open);
            separated(items, ", ", out, python);
            out.push_str(close);
        }
        Value::Object(members) => {
            out.push('{');
            separated(members, ", ", out, |(name, value), out| {
                python_string(name, out);
                out.push_str(": ");
                python(value, out);
            });
            out.push('}');
        }
    }
}

pub(super) fn call(arguments: &[(String, Value)], out: &mut String) {
    separated(arguments, ", ", out, |(name, value), out| {
        out.push_str(name);
        out.push('=');
        python(value, out);
    });
    out.push(')');
}

/// As Python's `repr` does, with escapes of every width.
fn python_string(text: &str, out: &mut String) {
    let quote = if text.contains('\'') { '"' } else { '\'' };
    out.push(quote);
    for character in text.chars() {
        match character {
            '\\' => out.push_str(r"\\"),
            '\n' => out.push_str(r"\n"),
            c if c == quote => out.extend(['\\', c]),
            c if c < ' ' => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if ('\u{80}'..'\u{c0}').contains(&c) => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c if c > '\u{ffff}' => out.push_str(&format!("\\U{:08x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push(quote);
}

pub(super) fn bare_keys(value: &Value, quote: &str, out: &mut String) {
    match value {
        Value::String(text) => {
            for piece in [quote, text, quote] {
                out.push_str(piece);
            }
        }
        Value::Array(items) => {
            out.push('[');
            separated(items, ",", out, |item, out| bare_keys(item, quote, out));
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            separated(members, ",", out, |(name, value), out| {
                out.push_str(name);
                out.push(':');
                bare_keys(value, quote, out);
            });
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
}

/// A value as templates print it between the tags of XML-like formats.
pub(super) fn xml_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Null => {
            let mut out = String::new();
            python(value, &mut out);
            out
        }
        other => other.to_string(),
    }
}

/// JSON in which every character outside ASCII is an escape.
pub(super) fn ascii_json(value: &Value) -> String {
    let mut out = String::new();
    for character in value.to_string().chars() {
        if character.is_ascii() {
            out.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
}

/// An object as a string that holds its JSON.
pub(super) fn nested_json(value: &Value) -> String {
    let mut out = String::new();
    write_string(&value.to_string(), &mut out);
    out
}

fn separated<T>(
    items: impl IntoIterator<Item = T>,
    separator: &str,
    out: &mut String,
    mut write: impl FnMut(T, &mut String),
) {
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push_str(separator);
        }
        write(item, out);
    }
}
