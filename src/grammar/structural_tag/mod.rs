//! Answers with a structure: free text, tags that it opens, and what stands in them.
//!
//! A [`StructuralTag`] is data, so it can be compared, hashed and cached, and does not know of any
//! vocabulary. It is lowered into one pool of rules. Its texts may name control tokens: such a
//! token is taken as well as the letters of its name.

mod lower;
mod read;

use super::json_schema::{Dialect, SchemaOptions};
use super::source::GrammarSource;

pub(super) use lower::rules_into;
pub use read::ReadError;

/// What an answer, or a part of one, looks like.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StructuralTag {
    /// Just this text.
    Text(String),
    /// Whitespace characters, at most so many.
    Space(u32),
    /// One after the other.
    Sequence(Vec<StructuralTag>),
    /// Any one of them.
    AnyOf(Vec<StructuralTag>),
    /// The same several times.
    Repeat {
        /// What is repeated.
        body: Box<StructuralTag>,
        /// Least number of times.
        min: u32,
        /// Greatest number of times; `None`: any.
        max: Option<u32>,
    },
    /// The same at least once, with something between.
    Separated {
        /// What is repeated.
        item: Box<StructuralTag>,
        /// What stands between two of them.
        separator: Box<StructuralTag>,
    },
    /// A value of a JSON Schema.
    Schema(SchemaLeaf),
    /// What another kind of grammar allows.
    Grammar {
        /// The grammar.
        source: Box<GrammarSource>,
        /// Where it comes from, for errors.
        place: String,
    },
    /// Free text and what may come in it.
    FreeText(FreeTextTag),
}

/// A value of a JSON Schema.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SchemaLeaf {
    /// The schema, as JSON text.
    pub schema: String,
    /// How it is followed.
    pub options: SchemaOptions,
    /// How the value is written.
    pub dialect: Dialect,
    /// Where the schema comes from, for errors.
    pub place: String,
}

/// Any text, up to the beginnings of its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FreeTextTag {
    /// What may come in it.
    pub parts: Vec<FreePart>,
    /// Texts that may not come in it.
    pub excluded: Vec<String>,
    /// Texts that may: what control tokens they name are text here.
    pub marks: Vec<String>,
    /// Where it may end.
    pub end: FreeEnd,
}

/// Where free text may end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FreeEnd {
    /// Anywhere.
    #[default]
    Anywhere,
    /// After a part, or in the text behind one.
    AfterFirst,
    /// Only with a part after which no text comes.
    WithPart,
}

/// What free text may turn into. Text that begins with the trigger can be nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FreePart {
    /// What tells it from text; not empty.
    pub trigger: String,
    /// The trigger only counts where nothing but whitespace comes before it.
    pub at_start: bool,
    /// What follows the trigger.
    pub rest: StructuralTag,
    /// Whether free text goes on after it.
    pub goes_on: bool,
}

impl StructuralTag {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// What may be left out.
    pub fn optional(self) -> Self {
        Self::Repeat { body: Box::new(self), min: 0, max: Some(1) }
    }

    /// Nothing at all.
    pub fn nothing() -> Self {
        Self::Sequence(Vec::new())
    }

    /// Bytes of text in it.
    pub fn bytes(&self) -> usize {
        /// What a node counts for, however short its texts are.
        const NODE_BYTES: usize = 64;
        let inner: usize = match self {
            Self::Text(text) => text.len(),
            Self::Space(_) => 0,
            Self::Sequence(tags) | Self::AnyOf(tags) => tags.iter().map(Self::bytes).sum(),
            Self::Repeat { body, .. } => body.bytes(),
            Self::Separated { item, separator } => item.bytes() + separator.bytes(),
            Self::Schema(leaf) => leaf.schema.len() + leaf.place.len(),
            Self::Grammar { source, place } => source.bytes() + place.len(),
            Self::FreeText(text) => {
                let parts = text.parts.iter().map(|part| part.trigger.len() + part.rest.bytes());
                let texts = text.excluded.iter().chain(&text.marks).map(String::len);
                parts.chain(texts).sum()
            }
        };
        NODE_BYTES + inner
    }
}
