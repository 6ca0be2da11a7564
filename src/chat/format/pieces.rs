//! The pieces that a call is written in.

use super::Text;
use crate::chat::arguments::Dialect;

/// One piece of a call or of the frame around calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A fixed text.
    Text(Text),
    /// The first text; models also write the others. An empty one among them: or nothing.
    OneOf(Vec<Text>),
    /// The function's name.
    Name,
    /// The call's id.
    Id,
    /// The call's number in the conversation.
    Ordinal,
    /// The arguments.
    Arguments(ArgumentSyntax),
    /// A JSON object with name and arguments.
    Envelope(Envelope),
}

/// How arguments are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentSyntax {
    /// One object in a dialect, brackets included.
    Object(Dialect),
    /// `a=1, b="x"` and the `)` that ends them; the `(` is the text before.
    PythonCall,
    /// A block a parameter.
    Parameters(Parameters),
}

/// A JSON object around a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Envelope {
    /// `{"name": …, "arguments": …}`: the members in canonical order.
    Members(Vec<Marker>),
    /// `{"the_name": {…}}`.
    NameIsKey,
}

/// A member of an [`Envelope`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// What the member holds.
    pub member: Member,
    /// Its key, and then keys that are understood as well.
    pub keys: Vec<Text>,
}

/// What a member of an [`Envelope`] holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    /// The function's name.
    Name,
    /// The arguments, an object (or a text that holds one).
    Arguments,
    /// The call's id.
    Id,
}

/// One block a parameter: `open NAME name_end [TYPE type_end] VALUE close`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Before a parameter's name.
    pub open: Text,
    /// Between the name and the value, or the type.
    pub name_end: Text,
    /// Who says of which type a value is.
    pub typing: Typing,
    /// What stands around the value's text.
    pub wrapping: Wrapping,
    /// After the value.
    pub close: Text,
    /// Canonical whitespace between two parameters.
    pub between: Text,
    /// Canonical whitespace after the last parameter.
    pub after: Text,
}

/// Who says of which type a parameter's value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typing {
    /// The tool's schema.
    Schema,
    /// The word `true` (a string) or `false` (JSON) before this text.
    StringFlag(Text),
    /// The name of a JSON type before this text.
    TypeName(Text),
}

/// What stands around a value's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrapping {
    /// Nothing.
    None,
    /// A newline on either side.
    Newlines,
    /// `<![CDATA[` and `]]>`, where the text has characters that need it.
    Cdata,
}

impl Piece {
    /// A fixed text.
    pub const fn text(text: &'static str) -> Self {
        Self::Text(Text::Borrowed(text))
    }

    /// Texts of which the first is canonical.
    pub fn one_of(texts: &[&'static str]) -> Self {
        Self::OneOf(texts.iter().copied().map(Text::Borrowed).collect())
    }

    /// A JSON object as arguments.
    pub const fn json() -> Self {
        Self::Arguments(ArgumentSyntax::Object(Dialect::Json))
    }

    /// A JSON object with these members, each with its keys.
    pub fn envelope(members: &[(Member, &[&'static str])]) -> Self {
        let marker = |(member, keys): &(Member, &[&'static str])| Marker {
            member: *member,
            keys: keys.iter().copied().map(Text::Borrowed).collect(),
        };
        Self::Envelope(Envelope::Members(members.iter().map(marker).collect()))
    }

    /// The texts of a piece that is text.
    pub fn texts(&self) -> &[Text] {
        match self {
            Self::Text(text) => std::slice::from_ref(text),
            Self::OneOf(texts) => texts,
            _ => &[],
        }
    }

    /// Whether nothing may stand for this piece.
    pub fn is_optional(&self) -> bool {
        self.texts().iter().any(|text| text.is_empty())
    }
}
