//! The `response_template` of a model's `tokenizer_config.json`: a format that the model's own
//! files describe (transformers 5.13 and later).
//!
//! A description by regular expressions says how to take text apart, not how to write it. What is
//! read here is what both ways can be told from: fixed texts, whitespace, names. A
//! template that needs more is [`Unreadable`], which says what; the format is then detected as for
//! models without one.

mod pattern;

use serde_json::{Map, Value};

use super::arguments::Dialect;
use super::format::{
    ArgumentSyntax, ChatFormat, Envelope, Marker, Member, Parameters, Piece, Place, Reasoning,
    ReasoningMode, Text, ToolSyntax, Typing, Wrapping,
};
use pattern::{Part, alternatives, read};

/// What a `response_template` has that cannot be read as a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("response_template: {field}: {reason}")]
pub struct Unreadable {
    /// Path of the key, as in `fields.tool_calls.open_pattern`.
    pub field: String,
    /// What is wrong with it.
    pub reason: String,
}

type Read<T> = Result<T, Unreadable>;

/// Keys under which templates keep the thinking.
const REASONING_FIELDS: [&str; 3] = ["thinking", "reasoning_content", "reasoning"];

/// Reads a `response_template`.
pub fn format_of(template: &Value) -> Read<ChatFormat> {
    let fields = template
        .get("fields")
        .and_then(Value::as_object)
        .ok_or_else(|| unreadable("fields", "must be an object"))?;
    let mut format =
        ChatFormat { kind: Text::Borrowed("response_template"), ..ChatFormat::content_only() };
    for (name, field) in fields {
        let field = Field::new(name, field)?;
        match name.as_str() {
            "content" => read_content(&field, &mut format)?,
            "tool_calls" => format.tools = Some(read_calls(&field)?),
            name if REASONING_FIELDS.contains(&name) => {
                format.reasoning = Some(read_reasoning(&field)?);
            }
            _ => return Err(field.unreadable("", "is no field of a message that is known")),
        }
    }
    let anchor = template.get("start_anchor").and_then(Value::as_str).unwrap_or_default();
    // Where content has a marker of its own, the start of a message is not part of it.
    if !format.content_marks.is_empty() && !anchor.trim().is_empty() {
        format.content_marks.push(Text::Owned(anchor.trim().to_owned()));
    }
    Ok(format)
}

fn unreadable(field: &str, reason: &str) -> Unreadable {
    Unreadable { field: field.to_owned(), reason: reason.to_owned() }
}

/// One field of the template.
struct Field<'a> {
    name: &'a str,
    keys: &'a Map<String, Value>,
}

impl<'a> Field<'a> {
    fn new(name: &'a str, field: &'a Value) -> Read<Self> {
        let keys = field
            .as_object()
            .ok_or_else(|| unreadable(&format!("fields.{name}"), "must be an object"))?;
        Ok(Self { name, keys })
    }

    fn unreadable(&self, key: &str, reason: &str) -> Unreadable {
        let dot = if key.is_empty() { "" } else { "." };
        unreadable(&format!("fields.{}{dot}{key}", self.name), reason)
    }

    fn text(&self, key: &str) -> &'a str {
        self.keys.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// The literal texts of `open` or `close`: one or several.
    fn literals(&self, key: &str) -> Vec<Text> {
        let owned = |text: &str| Text::Owned(text.to_owned());
        match self.keys.get(key) {
            Some(Value::String(text)) => vec![owned(text)],
            Some(Value::Array(texts)) => {
                texts.iter().filter_map(Value::as_str).map(owned).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The texts of `open` or `close`, be they literal or a pattern of nothing but texts.
    fn texts(&self, key: &str) -> Read<Vec<Text>> {
        let pattern_key = format!("{key}_pattern");
        let pattern = self.text(&pattern_key);
        if pattern.is_empty() {
            return Ok(self.literals(key));
        }
        let texts = alternatives(pattern).map_err(|why| self.unreadable(&pattern_key, &why))?;
        Ok(texts.into_iter().map(Text::Owned).collect())
    }

    /// `open` or `close` as pieces of a call.
    fn pieces(&self, key: &str) -> Read<Vec<Piece>> {
        let pattern_key = format!("{key}_pattern");
        let pattern = self.text(&pattern_key);
        if pattern.is_empty() {
            let texts = self.literals(key);
            return Ok(if texts.is_empty() { Vec::new() } else { vec![Piece::OneOf(texts)] });
        }
        let parts = read(pattern).map_err(|why| self.unreadable(&pattern_key, &why))?;
        parts
            .into_iter()
            .map(|part| match part {
                Part::Text(text) => Ok(Piece::Text(Text::Owned(text))),
                Part::Choice(texts) => {
                    Ok(Piece::OneOf(texts.into_iter().map(Text::Owned).collect()))
                }
                Part::Group(name) if name == "name" => Ok(Piece::Name),
                Part::Group(name) if name == "id" => Ok(Piece::Id),
                Part::Group(name) => {
                    let reason = format!("what the group {name} is for is not known");
                    Err(self.unreadable(&pattern_key, &reason))
                }
            })
            .collect()
    }
}

fn read_reasoning(field: &Field) -> Read<Reasoning> {
    let mut closes = field.texts("close")?.into_iter();
    let close = closes.next().ok_or_else(|| field.unreadable("close", "is missing"))?;
    // A look ahead for the end says that the prompt has opened the thinking.
    let open = match field.texts("open") {
        Ok(texts) => texts.into_iter().next(),
        Err(_) => close.strip_prefix("</").map(|name| Text::Owned(format!("<{name}"))),
    };
    let open = open.ok_or_else(|| field.unreadable("open", "is missing"))?;
    let (marker, gap) = (open.trim_end().to_owned(), open.len() - open.trim_end().len());
    let gap_after_open = open.get(open.len() - gap..).unwrap_or_default().to_owned();
    Ok(Reasoning {
        mode: ReasoningMode::Tags,
        place: if marker.starts_with("<|") { Place::Anywhere } else { Place::Start },
        open: Text::Owned(marker),
        gap_after_open: Text::Owned(gap_after_open),
        gap_before_close: Text::Borrowed(""),
        close: Text::Owned(close.trim().to_owned()),
        gap_after: Text::Borrowed(""),
    })
}

fn read_content(field: &Field, format: &mut ChatFormat) -> Read<()> {
    let is_marked = field.keys.contains_key("open") || field.keys.contains_key("open_pattern");
    if is_marked {
        format.content_marks.extend(field.texts("open")?);
    }
    format.extra_stops.extend(field.texts("close")?);
    Ok(())
}

fn read_calls(field: &Field) -> Read<ToolSyntax> {
    let mut open = field.pieces("open")?;
    let mut close = field.pieces("close")?;
    if open.is_empty() {
        return Err(field.unreadable("open", "is missing"));
    }
    let function = field.keys.get("transform").and_then(|shape| shape.get("function"));
    let shape = function.unwrap_or(&Value::Null);
    let has_name = open.contains(&Piece::Name);
    let (mut call, mut between) = (Vec::new(), "");
    match field.text("content") {
        "json" if field.keys.get("transform_each") == Some(&Value::Bool(true)) => {
            open.push(Piece::text("["));
            close.insert(0, Piece::text("]"));
            call.push(Piece::Envelope(Envelope::Members(members(field, shape)?)));
            between = ", ";
        }
        "json" if has_name => {
            call.append(&mut open);
            call.push(Piece::Arguments(ArgumentSyntax::Object(dialect(field)?)));
            call.append(&mut close);
        }
        "json" => {
            call.append(&mut open);
            let default = shape.as_str() == Some("{content}") || shape.is_null();
            let members = if default { name_and_arguments() } else { members(field, shape)? };
            call.push(Piece::Envelope(Envelope::Members(members)));
            call.append(&mut close);
        }
        "xml-inline" if has_name => {
            call.append(&mut open);
            call.push(Piece::Arguments(ArgumentSyntax::Parameters(parameters(field)?)));
            call.append(&mut close);
        }
        other => {
            let reason = format!("how calls are written as {other} is not known");
            return Err(field.unreadable("content", &reason));
        }
    }
    Ok(ToolSyntax {
        open,
        call,
        between: Text::Borrowed(between),
        close,
        place: Place::Anywhere,
        arguments_sorted: false,
    })
}

fn name_and_arguments() -> Vec<Marker> {
    let texts = |keys: &[&'static str]| keys.iter().copied().map(Text::Borrowed).collect();
    vec![
        Marker { member: Member::Name, keys: texts(&["name"]) },
        Marker { member: Member::Arguments, keys: texts(&["arguments", "parameters"]) },
    ]
}

/// The keys that a transform takes name and arguments from: `"{tool_name}"`.
fn members(field: &Field, shape: &Value) -> Read<Vec<Marker>> {
    let key = |of: &str, member: Member| {
        let placeholder = shape.get(of).and_then(Value::as_str).unwrap_or_default();
        let key = placeholder.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        key.map(|key| Marker { member, keys: vec![Text::Owned(key.to_owned())] })
            .ok_or_else(|| field.unreadable("transform", "names no key for name and arguments"))
    };
    Ok(vec![key("name", Member::Name)?, key("arguments", Member::Arguments)?])
}

fn dialect(field: &Field) -> Read<Dialect> {
    let arguments = field.keys.get("content_args");
    let delimiters = arguments.and_then(|it| it.get("string_delims")).and_then(Value::as_array);
    let bare_keys = arguments.and_then(|it| it.get("unquoted_keys")) == Some(&Value::Bool(true));
    match delimiters.map(Vec::as_slice) {
        None | Some([]) if bare_keys => Ok(Dialect::Delimited("".into())),
        None | Some([]) => Ok(Dialect::Json),
        Some([Value::Array(pair)]) => match pair.as_slice() {
            [Value::String(open), Value::String(close)] if open == close => {
                Ok(Dialect::Delimited(open.as_str().into()))
            }
            _ => Err(field.unreadable("content_args", "strings open and close differently")),
        },
        Some(_) => Err(field.unreadable("content_args", "there is more than one string delimiter")),
    }
}

/// A pattern of `text KEY text VALUE text`.
fn parameters(field: &Field) -> Read<Parameters> {
    let tag = field.keys.get("content_args").and_then(|it| it.get("tag_pattern"));
    let tag = tag.and_then(Value::as_str).unwrap_or_default();
    let wrong = |why: &str| field.unreadable("content_args.tag_pattern", why);
    let parts = read(tag).map_err(|why| wrong(&why))?;
    let [
        Part::Text(open),
        Part::Group(key),
        Part::Text(name_end),
        Part::Group(value),
        Part::Text(close),
    ] = parts.as_slice()
    else {
        return Err(wrong("is no text, key, text, value and text"));
    };
    if key != "key" || value != "value" {
        return Err(wrong("has no key before the value"));
    }
    // Whitespace next to the value is what the pattern strips of it: a newline, as models write it.
    let newlines =
        name_end.ends_with(char::is_whitespace) && close.starts_with(char::is_whitespace);
    Ok(Parameters {
        open: Text::Owned(open.clone()),
        name_end: Text::Owned(name_end.trim_end().to_owned()),
        typing: Typing::Schema,
        wrapping: if newlines { Wrapping::Newlines } else { Wrapping::None },
        close: Text::Owned(close.trim().to_owned()),
        between: Text::Borrowed("\n"),
        after: Text::Borrowed("\n"),
    })
}

#[cfg(test)]
mod tests;
