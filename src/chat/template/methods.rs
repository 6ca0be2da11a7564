//! Python's methods of `str`, `dict` and `list`: those whose engine version is missing or differs.
//! All others are the engine's own.

use minijinja::value::{Kwargs, Tuple, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State, Value};
use minijinja_contrib::pycompat;

use super::{filters, python_text};

/// Calls `value.method(args)` where the value itself has no such method.
pub(super) fn call(
    state: &mut State,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    let own = match value.kind() {
        ValueKind::String => {
            value.as_str().map_or(Ok(None), |text| string_method(state, text, method, args))?
        }
        ValueKind::Map => dict_method(value, method, args)?,
        ValueKind::Seq | ValueKind::Iterable => list_method(value, method, args)?,
        _ => None,
    };
    match own {
        Some(result) => Ok(result),
        None => pycompat::unknown_method_callback(state, value, method, args),
    }
}

fn string_method(
    state: &State,
    text: &str,
    method: &str,
    args: &[Value],
) -> Result<Option<Value>, Error> {
    Ok(Some(match method {
        "strip" => Value::from(strip(text, args, true, true)?),
        "lstrip" => Value::from(strip(text, args, true, false)?),
        "rstrip" => Value::from(strip(text, args, false, true)?),
        "split" => split(state, text, args, Side::Left)?,
        "rsplit" => split(state, text, args, Side::Right)?,
        "splitlines" => split_lines(text, args)?,
        "partition" => partition(text, args, Side::Left)?,
        "rpartition" => partition(text, args, Side::Right)?,
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(args)?;
            Value::from(text.strip_prefix(prefix).unwrap_or(text))
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(args)?;
            Value::from(text.strip_suffix(suffix).unwrap_or(text))
        }
        "index" | "rindex" => {
            let at = find(text, method == "rindex", args)?;
            Value::from(at.ok_or_else(|| invalid("substring not found"))?)
        }
        "find" | "rfind" => match find(text, method == "rfind", args)? {
            Some(at) => Value::from(at),
            None => Value::from(-1),
        },
        "isspace" => {
            let () = from_args(args)?;
            Value::from(!text.is_empty() && text.chars().all(python_text::is_space))
        }
        "join" => join(state, text, args)?,
        _ => return Ok(None),
    }))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

fn strip<'a>(text: &'a str, args: &[Value], left: bool, right: bool) -> Result<&'a str, Error> {
    let (chars,): (Option<&str>,) = from_args(args)?;
    let strips = |ch: char| match chars {
        Some(chars) => chars.contains(ch),
        None => python_text::is_space(ch),
    };
    let text = if left { text.trim_start_matches(strips) } else { text };
    Ok(if right { text.trim_end_matches(strips) } else { text })
}

/// `split(sep=None, maxsplit=-1)` and `rsplit`.
fn split(state: &State, text: &str, args: &[Value], side: Side) -> Result<Value, Error> {
    let (separator, splits_max, rest): (Option<Value>, Option<i64>, Kwargs) = from_args(args)?;
    let separator = match separator {
        Some(separator) => Some(separator),
        None => rest.get::<Option<Value>>("sep")?,
    };
    let splits_max = match splits_max {
        Some(splits_max) => Some(splits_max),
        None => rest.get::<Option<i64>>("maxsplit")?,
    };
    rest.assert_all_used()?;
    let limit = splits_max.and_then(|limit| usize::try_from(limit).ok());
    let parts = match separator.filter(|separator| !separator.is_none()) {
        None => split_space(text, limit.unwrap_or(usize::MAX), side),
        Some(separator) => {
            let separator = separator.as_str().ok_or_else(|| invalid("must be str or None"))?;
            if separator.is_empty() {
                return Err(invalid("empty separator"));
            }
            split_by(
                text,
                separator,
                limit.map_or(usize::MAX, |limit| limit.saturating_add(1)),
                side,
            )
        }
    };
    state.consume_fuel(parts.len() as u64)?;
    Ok(parts.into_iter().map(Value::from).collect())
}

fn split_by<'a>(text: &'a str, separator: &str, parts_max: usize, side: Side) -> Vec<&'a str> {
    match side {
        Side::Left => text.splitn(parts_max, separator).collect(),
        Side::Right => {
            let mut parts: Vec<_> = text.rsplitn(parts_max, separator).collect();
            parts.reverse();
            parts
        }
    }
}

/// Splits at runs of white space, dropping empty parts.
fn split_space(text: &str, splits_max: usize, side: Side) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = match side {
        Side::Left => text.trim_start_matches(python_text::is_space),
        Side::Right => text.trim_end_matches(python_text::is_space),
    };
    while !rest.is_empty() {
        let cut = match side {
            _ if parts.len() == splits_max => None,
            Side::Left => rest.split_once(python_text::is_space),
            Side::Right => {
                rest.rsplit_once(python_text::is_space).map(|(left, right)| (right, left))
            }
        };
        let (part, remaining) = cut.unwrap_or((rest, ""));
        parts.push(part);
        rest = match side {
            Side::Left => remaining.trim_start_matches(python_text::is_space),
            Side::Right => remaining.trim_end_matches(python_text::is_space),
        };
    }
    if side == Side::Right {
        parts.reverse();
    }
    parts
}

/// `splitlines(keepends=False)` at all of Python's line ends.
fn split_lines(text: &str, args: &[Value]) -> Result<Value, Error> {
    let (keep_ends, rest): (Option<bool>, Kwargs) = from_args(args)?;
    let keep_ends = match keep_ends {
        Some(keep_ends) => keep_ends,
        None => rest.get::<Option<bool>>("keepends")?.unwrap_or(false),
    };
    rest.assert_all_used()?;
    let is_end =
        |ch: char| matches!(ch, '\n'..='\r' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let mut lines = Vec::new();
    let mut remaining = text;
    while !remaining.is_empty() {
        let end = remaining.find(is_end).unwrap_or(remaining.len());
        let (line, after) = remaining.split_at(end);
        let length = if after.starts_with("\r\n") {
            2
        } else {
            after.chars().next().map_or(0, char::len_utf8)
        };
        let with_end = remaining.get(..end + length).unwrap_or(remaining);
        lines.push(Value::from(if keep_ends { with_end } else { line }));
        remaining = after.get(length..).unwrap_or_default();
    }
    Ok(Value::from(lines))
}

fn partition(text: &str, args: &[Value], side: Side) -> Result<Value, Error> {
    let (separator,): (&str,) = from_args(args)?;
    if separator.is_empty() {
        return Err(invalid("empty separator"));
    }
    let parts = match side {
        Side::Left => text.split_once(separator).map(|(a, b)| [a, separator, b]),
        Side::Right => text.rsplit_once(separator).map(|(a, b)| [a, separator, b]),
    };
    let parts = parts.unwrap_or(match side {
        Side::Left => [text, "", ""],
        Side::Right => ["", "", text],
    });
    Ok(Value::from(Tuple::from(parts.map(Value::from))))
}

/// Position of a substring in characters, looked for from the optional start on.
fn find(text: &str, from_right: bool, args: &[Value]) -> Result<Option<usize>, Error> {
    let (what, start): (&str, Option<usize>) = from_args(args)?;
    let start = start.unwrap_or(0);
    let skipped: usize = text.chars().take(start).map(char::len_utf8).sum();
    let Some(rest) = text.get(skipped..).filter(|_| start <= text.chars().count()) else {
        return Ok(None);
    };
    let found = if from_right { rest.rfind(what) } else { rest.find(what) };
    Ok(found.map(|at| start + rest.get(..at).unwrap_or_default().chars().count()))
}

/// `separator.join(strings)`; anything but strings is an error.
fn join(state: &State, separator: &str, args: &[Value]) -> Result<Value, Error> {
    let (values,): (&Value,) = from_args(args)?;
    let mut out = String::new();
    for (position, item) in values.try_iter()?.enumerate() {
        if position > 0 {
            out.push_str(separator);
        }
        let text = item.as_str().ok_or_else(|| {
            invalid(format!(
                "sequence item {position}: expected str instance, {} found",
                item.kind()
            ))
        })?;
        out.push_str(text);
        state.consume_fuel(1 + (separator.len() + text.len()) as u64 / 64)?;
    }
    Ok(Value::from(out))
}

fn dict_method(value: &Value, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    Ok(Some(match method {
        "items" => {
            let () = from_args(args)?;
            filters::pairs(value)?
        }
        "copy" => {
            let () = from_args(args)?;
            value.clone()
        }
        _ => return Ok(None),
    }))
}

fn list_method(value: &Value, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    Ok(Some(match method {
        "index" => {
            let (what,): (&Value,) = from_args(args)?;
            let at = value.try_iter()?.position(|item| item == *what);
            Value::from(at.ok_or_else(|| invalid(format!("{what} is not in list")))?)
        }
        "count" => {
            let (what,): (&Value,) = from_args(args)?;
            Value::from(value.try_iter()?.filter(|item| item == what).count())
        }
        "copy" => {
            let () = from_args(args)?;
            value.clone()
        }
        _ => return Ok(None),
    }))
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}
