//! Values as Python writes them: `str(x)` and `repr(x)`.
//!
//! Templates are written against Python. Where a value is printed, its text must be Python's:
//! `1e+20` and not `100000000000000000000.0`, `'a\u2028b'` inside a printed dict.

use std::fmt::Write;

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

/// Containers nested deeper than this are refused by everything here that recurses.
pub(super) const NESTING_MAX: usize = 128;

/// The error of a value nested deeper than [`NESTING_MAX`].
pub(super) fn too_deep() -> Error {
    Error::new(ErrorKind::InvalidOperation, "value is nested too deeply")
}

/// Appends `str(value)`; an undefined value is the empty text, as Jinja has it.
pub(super) fn write_str(out: &mut String, value: &Value) -> Result<(), Error> {
    if let Some(text) = value.as_str() {
        out.push_str(text);
        return Ok(());
    }
    match value.kind() {
        ValueKind::Undefined => Ok(()),
        _ => write_repr(out, value, 0),
    }
}

/// `str(value)`.
pub(super) fn to_str(value: &Value) -> Result<String, Error> {
    let mut out = String::new();
    write_str(&mut out, value)?;
    Ok(out)
}

/// Appends `repr(value)` of a value `depth` containers deep.
fn write_repr(out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
    if depth > NESTING_MAX {
        return Err(too_deep());
    }
    if let Some(text) = value.as_str() {
        write_quoted(out, text);
        return Ok(());
    }
    match value.kind() {
        ValueKind::Undefined => out.push_str("Undefined"),
        ValueKind::None => out.push_str("None"),
        ValueKind::Number => write_number(out, value),
        ValueKind::Map => write_dict(out, value, depth)?,
        ValueKind::Seq | ValueKind::Iterable if value.len().is_some() => {
            write_list(out, value, depth)?;
        }
        _ => {
            // Booleans already read `True` and `False`; macros and the like have no text to match.
            let _ = write!(out, "{value}");
        }
    }
    Ok(())
}

fn write_dict(out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
    out.push('{');
    for (index, key) in value.try_iter()?.enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        write_repr(out, &key, depth + 1)?;
        out.push_str(": ");
        write_repr(out, &value.get_item(&key)?, depth + 1)?;
    }
    out.push('}');
    Ok(())
}

fn write_list(out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
    let (open, close) = if value.is_tuple() { ('(', ')') } else { ('[', ']') };
    out.push(open);
    for (index, item) in value.try_iter()?.enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        write_repr(out, &item, depth + 1)?;
    }
    if value.is_tuple() && value.len() == Some(1) {
        out.push(',');
    }
    out.push(close);
    Ok(())
}

/// Appends a number: integers as they are, floats as [`write_float`] has them.
pub(super) fn write_number(out: &mut String, value: &Value) {
    match as_float(value) {
        Some(number) => write_float(out, number),
        None => {
            let _ = write!(out, "{value}");
        }
    }
}

/// The number when the value is a float and not an integer.
pub(super) fn as_float(value: &Value) -> Option<f64> {
    if value.kind() == ValueKind::Number && !value.is_integer() {
        f64::try_from(value.clone()).ok()
    } else {
        None
    }
}

/// Appends `repr(float)`: the shortest digits that read back the same, with an exponent from 1e16 up
/// and below 1e-4.
pub(super) fn write_float(out: &mut String, number: f64) {
    if number.is_nan() {
        out.push_str("nan");
        return;
    }
    if number.is_infinite() {
        out.push_str(if number > 0.0 { "inf" } else { "-inf" });
        return;
    }
    let scientific = format!("{number:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = number.to_string();
        out.push_str(&plain);
        if !plain.contains('.') {
            out.push_str(".0");
        }
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "{mantissa}e{sign}{:02}", exponent.unsigned_abs());
    }
}

/// Appends `repr(str)`.
fn write_quoted(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for ch in text.chars() {
        match ch {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if ch == quote => {
                out.push('\\');
                out.push(ch);
            }
            _ if is_printable(ch) => out.push(ch),
            _ => write_escape(out, ch),
        }
    }
    out.push(quote);
}

fn write_escape(out: &mut String, ch: char) {
    let code = u32::from(ch);
    let _ = match code {
        0..=0xff => write!(out, "\\x{code:02x}"),
        0x100..=0xffff => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
}

/// Python's `str.isprintable` for one character, but for unassigned code points, which need tables
/// that change with every Unicode version.
fn is_printable(ch: char) -> bool {
    if ch == ' ' {
        return true;
    }
    !(ch.is_control() || ch.is_whitespace() || is_format_or_private(ch))
}

/// Categories Cf and Co of Unicode.
fn is_format_or_private(ch: char) -> bool {
    matches!(ch,
        '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}'
        | '\u{8e2}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0001}' | '\u{e0020}'..='\u{e007f}'
        | '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{ffffd}' | '\u{100000}'..='\u{10fffd}')
}

/// Python's `str.isspace` for one character: Unicode white space and the four ASCII separators.
pub(super) fn is_space(ch: char) -> bool {
    ch.is_whitespace() || ('\x1c'..='\x1f').contains(&ch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_read_as_python_writes_them() {
        let cases = [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1.25e-7, "1.25e-07"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "nan"),
        ];
        for (number, expected) in cases {
            let mut out = String::new();
            write_float(&mut out, number);
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn containers_read_as_python_writes_them() {
        let value = Value::from(minijinja::value::Serde(serde_json::json!(
            {"a": [1, 2.0, null, true], "it's": "x\u{2028}\u{a0}\"'\\", "b": {}}
        )));
        assert_eq!(
            to_str(&value).unwrap(),
            r#"{'a': [1, 2.0, None, True], "it's": 'x\u2028\xa0"\'\\', 'b': {}}"#
        );
    }

    #[test]
    fn a_value_nested_without_end_is_an_error() {
        let mut value = Value::from(1);
        for _ in 0..200 {
            value = Value::from(vec![value]);
        }
        assert!(to_str(&value).is_err());
    }
}
