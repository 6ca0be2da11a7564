//! The pieces of a call as tags.

use serde_json::Value;

use super::Function;
use crate::chat::format::{CallIds, ChatFormat, Envelope, Marker, Member, Piece, Text, ToolSyntax};
use crate::grammar::json_schema::{Dialect, SchemaOptions};
use crate::grammar::structural_tag::SchemaLeaf;
use crate::grammar::{GrammarSource, StructuralTag};

/// Whitespace characters between the members of an object that is written over lines: a newline
/// and what indents two levels, and a few more.
const LINE_GAP_MAX: u32 = 12;

/// What stands for `OneOf`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variant {
    /// Its first text.
    Canonical,
    /// Any of them.
    Any,
}

/// Writes the pieces of calls.
#[derive(Clone, Copy)]
pub(super) struct Pieces<'a> {
    pub(super) format: &'a ChatFormat,
    pub(super) syntax: &'a ToolSyntax,
    pub(super) variant: Variant,
}

impl Pieces<'_> {
    /// The tags of some pieces of a call, in their order, each as small as it can be. Without a
    /// function only texts are there.
    pub(super) fn tags(self, pieces: &[Piece], function: Option<&Function>) -> Vec<StructuralTag> {
        let mut tags = Vec::new();
        for piece in pieces {
            match (piece, function) {
                (Piece::Text(text), _) => tags.push(StructuralTag::text(&**text)),
                (Piece::OneOf(texts), _) => tags.push(self.one_of(texts)),
                (Piece::Id, _) => tags.push(self.id()),
                (Piece::Ordinal, _) => tags.push(pattern("0|[1-9][0-9]{0,3}")),
                (Piece::Name, Some(function)) => tags.push(StructuralTag::text(&*function.name)),
                (Piece::Arguments(syntax), Some(function)) => {
                    tags.push(self.arguments(function, syntax.grammar_dialect()));
                }
                (Piece::Envelope(envelope), Some(function)) => {
                    self.envelope(envelope, function, &mut tags);
                }
                (Piece::Name | Piece::Arguments(_) | Piece::Envelope(_), None) => {}
            }
        }
        tags
    }

    fn one_of(self, texts: &[Text]) -> StructuralTag {
        match (self.variant, texts.first()) {
            (Variant::Canonical, Some(first)) => StructuralTag::text(&**first),
            _ => StructuralTag::AnyOf(
                texts.iter().map(|text| StructuralTag::text(&**text)).collect(),
            ),
        }
    }

    fn id(self) -> StructuralTag {
        match self.format.call_ids {
            CallIds::Alphanumeric(length) => pattern(&format!("[0-9A-Za-z]{{{length}}}")),
            CallIds::Generated | CallIds::Header => pattern("[0-9A-Za-z_-]{1,40}"),
        }
    }

    fn arguments(self, function: &Function, dialect: Dialect) -> StructuralTag {
        let any_order = function.options.any_order || self.syntax.arguments_sorted;
        StructuralTag::Schema(SchemaLeaf {
            schema: function.schema.clone(),
            options: SchemaOptions { any_order, ..function.options },
            dialect,
            place: function.place.clone(),
        })
    }

    /// The object, with a space after colons and commas, as Python writes it and models learnt it.
    fn envelope(self, envelope: &Envelope, function: &Function, tags: &mut Vec<StructuralTag>) {
        let gap = self.gap_max();
        let mut text = |text: &str| tags.push(StructuralTag::text(text));
        match envelope {
            Envelope::NameIsKey => {
                text("{\"");
                text(&json_text(&function.name));
                text("\": ");
                tags.push(self.arguments(function, Dialect::Json));
                tags.push(StructuralTag::text("}"));
            }
            Envelope::Members(members) => {
                text("{");
                for (index, Marker { member, keys }) in members.iter().enumerate() {
                    if index > 0 {
                        tags.push(StructuralTag::text(","));
                    }
                    match gap {
                        0 if index > 0 => tags.push(StructuralTag::text(" ")),
                        0 => {}
                        gap => tags.push(StructuralTag::Space(gap)),
                    }
                    let key = keys.first().map_or("", |key| key);
                    tags.push(StructuralTag::Text(format!("\"{key}\": ")));
                    self.member(*member, function, tags);
                }
                if gap > 0 {
                    tags.push(StructuralTag::Space(gap));
                }
                tags.push(StructuralTag::text("}"));
            }
        }
    }

    fn member(self, member: Member, function: &Function, tags: &mut Vec<StructuralTag>) {
        match member {
            Member::Name => {
                tags.push(StructuralTag::text("\""));
                tags.push(StructuralTag::Text(format!("{}\"", json_text(&function.name))));
            }
            Member::Id => {
                let quote = || StructuralTag::text("\"");
                tags.extend([quote(), self.id(), quote()]);
            }
            Member::Arguments => tags.push(self.arguments(function, Dialect::Json)),
        }
    }

    /// Whitespace between the members of an object: only formats that write their lists over
    /// several lines have room for it.
    fn gap_max(self) -> u32 {
        let texts = self.syntax.open.iter().flat_map(Piece::texts);
        let over_lines =
            texts.map(|text| &**text).any(|text| text.trim_end_matches(' ').ends_with("[\n"));
        if over_lines { LINE_GAP_MAX } else { 0 }
    }
}

/// Whitespace before an object in a list, where the format leaves room for it.
pub(super) fn gap_before_object(pieces: Pieces<'_>) -> Option<StructuralTag> {
    match pieces.gap_max() {
        0 => None,
        gap => Some(StructuralTag::Space(gap)),
    }
}

/// What a short pattern of ours allows.
fn pattern(pattern: &str) -> StructuralTag {
    let source = Box::new(GrammarSource::Regex(pattern.to_owned()));
    StructuralTag::Grammar { source, place: String::new() }
}

/// A text as JSON has it between quotes.
fn json_text(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}
