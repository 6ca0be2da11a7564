//! Past calls as the model itself would have written them: for templates that do not show them.

use std::io;

use serde::Serialize;
use serde_json::ser::Formatter;
use serde_json::{Map, Value};

use super::{
    ArgumentSyntax, ChatFormat, Envelope, Marker, Member, Parameters, Piece, ToolSyntax, Typing,
    Wrapping,
};
use crate::chat::arguments::Dialect;

impl ChatFormat {
    /// The text of these calls, which are in the form of a message's `tool_calls`. Empty where the
    /// format has none or none of them names a function.
    pub fn write_calls(&self, calls: &[Value]) -> String {
        let Some(syntax) = &self.tools else { return String::new() };
        let between = match &self.channels {
            Some(channels) if syntax.open.is_empty() => &channels.next,
            _ => &syntax.between,
        };
        let texts: Vec<String> = calls
            .iter()
            .enumerate()
            .filter_map(|(index, call)| Some(write_call(syntax, &Written::of(call, index)?)))
            .collect();
        if texts.is_empty() {
            return String::new();
        }
        let frame = |pieces: &[Piece]| pieces.iter().map(canonical).collect::<String>();
        format!("{}{}{}", frame(&syntax.open), texts.join(between), frame(&syntax.close))
    }
}

/// One call of a message.
struct Written<'a> {
    name: &'a str,
    id: &'a str,
    ordinal: String,
    arguments: Map<String, Value>,
}

impl<'a> Written<'a> {
    fn of(call: &'a Value, index: usize) -> Option<Self> {
        let function = call.get("function").unwrap_or(call);
        let name = function.get("name")?.as_str()?;
        let arguments = match function.get("arguments") {
            Some(Value::Object(arguments)) => arguments.clone(),
            Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
            _ => Map::new(),
        };
        let id = call.get("id").and_then(Value::as_str).unwrap_or_default();
        let ordinal = id.rsplit_once(':').map(|(_, ordinal)| ordinal).filter(|ordinal| {
            !ordinal.is_empty() && ordinal.bytes().all(|byte| byte.is_ascii_digit())
        });
        let ordinal = ordinal.map_or_else(|| index.to_string(), str::to_owned);
        Some(Self { name, id, ordinal, arguments })
    }
}

fn canonical(piece: &Piece) -> &str {
    piece.texts().first().map_or("", |text| text)
}

fn write_call(syntax: &ToolSyntax, call: &Written) -> String {
    let mut arguments = call.arguments.clone();
    if syntax.arguments_sorted {
        arguments.sort_keys();
    }
    let mut out = String::new();
    for piece in &syntax.call {
        match piece {
            Piece::Text(_) | Piece::OneOf(_) => out.push_str(canonical(piece)),
            Piece::Name => out.push_str(call.name),
            Piece::Id => out.push_str(call.id),
            Piece::Ordinal => out.push_str(&call.ordinal),
            Piece::Arguments(syntax) => write_arguments(syntax, &arguments, &mut out),
            Piece::Envelope(envelope) => {
                let value = enveloped(envelope, call, arguments.clone());
                out.push_str(&spaced_json(&value));
            }
        }
    }
    out
}

fn enveloped(envelope: &Envelope, call: &Written, arguments: Map<String, Value>) -> Value {
    let mut object = Map::new();
    match envelope {
        Envelope::NameIsKey => {
            object.insert(call.name.to_owned(), Value::Object(arguments));
        }
        Envelope::Members(members) => {
            for Marker { member, keys } in members {
                let Some(key) = keys.first() else { continue };
                let value = match member {
                    Member::Name => call.name.into(),
                    Member::Id => call.id.into(),
                    Member::Arguments => Value::Object(arguments.clone()),
                };
                object.insert(key.to_string(), value);
            }
        }
    }
    Value::Object(object)
}

fn write_arguments(syntax: &ArgumentSyntax, arguments: &Map<String, Value>, out: &mut String) {
    match syntax {
        ArgumentSyntax::Object(Dialect::Json) => {
            out.push_str(&spaced_json(&Value::Object(arguments.clone())));
        }
        ArgumentSyntax::Object(Dialect::Python) => write_python_object(arguments, out),
        ArgumentSyntax::Object(dialect) => {
            write_delimited(&Value::Object(arguments.clone()), delimiter(dialect), out);
        }
        ArgumentSyntax::PythonCall => {
            for (index, (key, value)) in arguments.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                out.push_str(key);
                out.push('=');
                write_python(value, out);
            }
            out.push(')');
        }
        ArgumentSyntax::Parameters(parameters) => write_parameters(parameters, arguments, out),
    }
}

pub(super) fn delimiter(dialect: &Dialect) -> &str {
    match dialect {
        Dialect::Gemma4 => "<|\"|>",
        Dialect::FunctionGemma => "<escape>",
        Dialect::Delimited(delimiter) => delimiter,
        Dialect::Json | Dialect::Python => "\"",
    }
}

fn write_parameters(shape: &Parameters, arguments: &Map<String, Value>, out: &mut String) {
    for (index, (key, value)) in arguments.iter().enumerate() {
        if index > 0 {
            out.push_str(&shape.between);
        }
        out.push_str(&shape.open);
        out.push_str(key);
        out.push_str(&shape.name_end);
        match &shape.typing {
            Typing::Schema => {}
            Typing::StringFlag(end) => {
                out.push_str(if value.is_string() { "true" } else { "false" });
                out.push_str(end);
            }
            Typing::TypeName(end) => {
                out.push_str(type_name(value));
                out.push_str(end);
            }
        }
        let text = match value {
            Value::String(text) => text.clone(),
            other => spaced_json(other),
        };
        let needs_cdata = text.contains(['<', '&', '\n']);
        let (before, after) = match shape.wrapping {
            Wrapping::Newlines => ("\n", "\n"),
            Wrapping::Cdata if needs_cdata => ("<![CDATA[", "]]>"),
            Wrapping::Cdata | Wrapping::None => ("", ""),
        };
        for part in [before, text.as_str(), after, shape.close.as_ref()] {
            out.push_str(part);
        }
    }
    if !arguments.is_empty() {
        out.push_str(&shape.after);
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn write_python(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("None"),
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        // What JSON escapes, Python escapes in the same way.
        Value::Number(_) | Value::String(_) => out.push_str(&value.to_string()),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                write_python(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => write_python_object(members, out),
    }
}

fn write_python_object(members: &Map<String, Value>, out: &mut String) {
    out.push('{');
    for (index, (key, member)) in members.iter().enumerate() {
        out.push_str(if index == 0 { "" } else { ", " });
        out.push_str(&Value::from(key.as_str()).to_string());
        out.push_str(": ");
        write_python(member, out);
    }
    out.push('}');
}

/// `{key:value}` with bare keys and strings between delimiters.
fn write_delimited(value: &Value, delimiter: &str, out: &mut String) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
        Value::String(_) if delimiter.is_empty() => out.push_str(&value.to_string()),
        Value::String(text) => {
            for part in [delimiter, text.as_str(), delimiter] {
                out.push_str(part);
            }
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                write_delimited(item, delimiter, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (index, (key, member)) in members.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                out.push_str(key);
                out.push(':');
                write_delimited(member, delimiter, out);
            }
            out.push('}');
        }
    }
}

/// JSON with a space after commas and colons, as Python writes it and models learnt it.
fn spaced_json(value: &Value) -> String {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, Spaced);
    // Writing JSON to memory cannot fail; the text of an empty answer would be seen at once.
    let written = value.serialize(&mut serializer);
    debug_assert!(written.is_ok());
    String::from_utf8(bytes).unwrap_or_default()
}

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}
