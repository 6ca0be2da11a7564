//! The pieces that a call is written in.

use super::Text;
use super::write::delimiter;
use crate::chat::arguments::Dialect;
use crate::grammar::json_schema;

pub use crate::grammar::json_schema::{Parameters, Typing, Wrapping};

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

impl ArgumentSyntax {
    /// What a grammar of these arguments is made for.
    pub fn grammar_dialect(&self) -> json_schema::Dialect {
        match self {
            Self::Object(Dialect::Json) => json_schema::Dialect::Json,
            Self::Object(Dialect::Python) => json_schema::Dialect::Python,
            Self::Object(dialect) => json_schema::Dialect::BareKeys(delimiter(dialect).into()),
            Self::PythonCall => json_schema::Dialect::PythonCall,
            Self::Parameters(parameters) => json_schema::Dialect::Parameters(parameters.clone()),
        }
    }
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
