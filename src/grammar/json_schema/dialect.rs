//! How a value is written in an answer: as JSON, or as the arguments of a call.
//!
//! Who reads an answer and who makes its grammar share these descriptions.

use std::borrow::Cow;
use std::sync::Arc;

/// How a value is written in an answer. All but JSON are for arguments, which are an object.
///
/// Only what reads back as a valid object is written. That may be less than what the schema allows:
/// where an object declares keys and says nothing of others, only those are written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// As JSON.
    #[default]
    Json,
    /// As a Python dictionary: `{"a": True, "b": 'x'}`.
    Python,
    /// As what follows `name(` in a Python call, and its end: `a=True, b='x')`.
    PythonCall,
    /// `{a:true,b:<|"|>x<|"|>}`: bare keys, no whitespace, and strings between two of this
    /// delimiter, as they are. Empty: strings as in JSON.
    BareKeys(Arc<str>),
    /// A block a parameter.
    Parameters(Parameters),
}

/// One block a parameter: `open NAME name_end [TYPE type_end] VALUE close`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Parameters {
    /// Before a parameter's name.
    pub open: Cow<'static, str>,
    /// Between the name and the value, or the type.
    pub name_end: Cow<'static, str>,
    /// Who says of which type a value is.
    pub typing: Typing,
    /// What stands around the value's text.
    pub wrapping: Wrapping,
    /// After the value.
    pub close: Cow<'static, str>,
    /// Canonical whitespace between two parameters.
    pub between: Cow<'static, str>,
    /// Canonical whitespace after the last parameter.
    pub after: Cow<'static, str>,
}

/// Who says of which type a parameter's value is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Typing {
    /// The tool's schema.
    Schema,
    /// The word `true` (a string) or `false` (JSON) before this text.
    StringFlag(Cow<'static, str>),
    /// The name of a JSON type before this text.
    TypeName(Cow<'static, str>),
}

/// What stands around a value's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wrapping {
    /// Nothing.
    None,
    /// A newline on either side.
    Newlines,
    /// `<![CDATA[` and `]]>`, where the text has characters that need it.
    Cdata,
}

impl Wrapping {
    /// What stands before a value and after it, where it is wrapped.
    pub fn marks(self) -> (&'static str, &'static str) {
        match self {
            Self::None => ("", ""),
            Self::Newlines => ("\n", "\n"),
            Self::Cdata => ("<![CDATA[", "]]>"),
        }
    }
}
