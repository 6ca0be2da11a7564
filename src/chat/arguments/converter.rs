//! One self-delimiting value, in any of the dialects.

use std::sync::Arc;

use serde_json::Value;

use super::delimited::Delimiter;
use super::json::Json;
use super::literal::Literal;
use super::nested::Arguments;
use super::syntax::Syntax;

/// Brackets that may be open at once. More is [`Progress::Broken`]: no client's JSON library reads
/// deeper text by default (Python's stops near 1,000, serde_json at 128).
pub const MAX_DEPTH: usize = 500;

/// How a value is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// JSON, passed through byte for byte. Only strings are mended where models write them wrongly:
    /// a raw control character is escaped, a backslash that escapes nothing is doubled (`\'` is an
    /// apostrophe), a lone surrogate becomes U+FFFD.
    Json,
    /// Python literals: strings of every kind (adjacent ones join), numbers, `True`, `False`,
    /// `None` and JSON's words, lists, tuples, dictionaries. A bare name and a word that is no
    /// number (`Color.RED`, `2026-01-15`, `03106`, `inf`, `nan`) is a string.
    Python,
    /// `{k:v}` with bare keys and strings in `<|"|>`, as Gemma 4 writes.
    Gemma4,
    /// `{k:v}` with bare keys and strings in `<escape>`, as FunctionGemma writes.
    FunctionGemma,
    /// `{k:v}` with bare keys and strings between two of this delimiter, as a template's own
    /// description may ask for. Empty: only double-quoted strings.
    Delimited(Arc<str>),
}

impl Dialect {
    /// The syntax of those that are not JSON.
    fn syntax(&self) -> Option<Syntax> {
        let delimiter = match self {
            Self::Json => return None,
            Self::Python => return Some(Syntax::Python),
            Self::Gemma4 => "<|\"|>",
            Self::FunctionGemma => "<escape>",
            Self::Delimited(delimiter) => delimiter,
        };
        Some(Syntax::BareKeys(Delimiter::new(delimiter)))
    }
}

/// Where a value stands after a push. Positions are bytes of the text of that push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More text is needed.
    Open,
    /// The value ended after this many bytes; what follows is not part of it.
    Complete {
        /// Bytes of the pushed text that belong to the value.
        consumed: usize,
    },
    /// The byte after these cannot be part of the value. What was written stays as it is.
    Broken {
        /// Bytes of the pushed text that could still be part of a value.
        consumed: usize,
    },
}

/// Converts one self-delimiting value to JSON text as its text arrives.
///
/// Whitespace before the value is skipped. Strings stream; numbers and words wait for their end.
/// After [`Progress::Complete`] or [`Progress::Broken`] every push answers the same with
/// `consumed: 0` and writes nothing.
#[derive(Clone, Debug)]
pub struct Converter {
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Json(Json),
    Literal(Literal),
    Arguments(Arguments),
}

impl Converter {
    /// One value of any type.
    pub fn new(dialect: Dialect) -> Self {
        let kind = match dialect.syntax() {
            None => Kind::Json(Json::new()),
            Some(syntax) => Kind::Literal(Literal::new(syntax)),
        };
        Self { kind }
    }

    /// An object of arguments for a tool with these `parameters`. In the dialects with bare keys
    /// the delimited string of an argument is read as [`super::TypedText`] reads a parameter of a
    /// declared type, since some templates (FunctionGemma's) put every value between delimiters.
    /// Strings within lists and objects are strings, and the other dialects say of each value what
    /// type it has.
    pub fn typed(dialect: Dialect, tool_parameters: Arc<Value>) -> Self {
        let kind = match dialect.syntax() {
            None => Kind::Json(Json::new()),
            Some(syntax) => Kind::Literal(Literal::typed(syntax, tool_parameters)),
        };
        Self { kind }
    }

    /// The arguments of a Python call whose `name(` has been read: everything up to and with the
    /// matching `)` becomes one JSON object. Positional arguments take the names of `parameters`
    /// in order; one more than there are names is [`Progress::Broken`].
    pub fn call_arguments<I>(parameters: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        let parameters = parameters.into_iter().map(Into::into).collect();
        Self { kind: Kind::Literal(Literal::call(parameters)) }
    }

    /// The `arguments` (or `parameters`) of a JSON call, which must be an object. Some models
    /// write the object as a string of JSON, which is unwrapped, or `null`, which is `{}`.
    pub fn json_arguments() -> Self {
        Self { kind: Kind::Arguments(Arguments::new()) }
    }

    /// Takes the next piece of text and appends to `out` the JSON that has become certain.
    pub fn push(&mut self, text: &str, out: &mut String) -> Progress {
        match &mut self.kind {
            Kind::Json(json) => json.push(text, out),
            Kind::Literal(literal) => literal.push(text, out),
            Kind::Arguments(arguments) => arguments.push(text, out),
        }
    }

    /// No more text will come. A value that only waited for its end (a number on its own) is
    /// written and complete. Within brackets nothing is added: what waits there might have gone on.
    pub fn cut(&mut self, out: &mut String) -> Progress {
        match &mut self.kind {
            Kind::Json(json) => json.cut(out),
            Kind::Literal(literal) => literal.cut(out),
            Kind::Arguments(arguments) => arguments.cut(out),
        }
    }
}
