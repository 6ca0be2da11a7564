//! Calls: the blocks that they stand in, and how they are told from free text.

use super::Function;
use super::pieces::{Pieces, Variant, gap_before_object};
use crate::chat::format::{ChatFormat, Piece, Place, Text, ToolSyntax};
use crate::grammar::StructuralTag;
use crate::grammar::structural_tag::FreePart;

/// The calls of a format.
#[derive(Clone, Copy)]
pub(super) struct Calls<'a> {
    pub(super) format: &'a ChatFormat,
    pub(super) syntax: &'a ToolSyntax,
    pub(super) functions: &'a [Function],
    pub(super) one_call: bool,
}

impl Calls<'_> {
    fn pieces(&self, variant: Variant) -> Pieces<'_> {
        Pieces { format: self.format, syntax: self.syntax, variant }
    }

    /// All calls of an answer.
    pub(super) fn all(&self) -> StructuralTag {
        StructuralTag::Sequence(self.block(&self.syntax.open, Variant::Canonical, false))
    }

    /// A call, or with a frame all of them: `open call (between call)* close`.
    fn block(&self, open: &[Piece], variant: Variant, only_one: bool) -> Vec<StructuralTag> {
        let pieces = self.pieces(variant);
        let mut tags = pieces.tags(open, None);
        let mut call = self.call(variant);
        if let Some(gap) = gap_before_object(pieces) {
            call.insert(0, gap);
        }
        if only_one || self.one_call {
            tags.extend(call);
        } else {
            tags.push(StructuralTag::Separated {
                item: Box::new(StructuralTag::Sequence(call)),
                separator: Box::new(StructuralTag::text(&*self.syntax.between)),
            });
        }
        tags.extend(self.closing(variant));
        tags
    }

    /// What closes a block: the last text may be left to the end of the turn, where it is one.
    fn closing(&self, variant: Variant) -> Vec<StructuralTag> {
        let mut tags = self.pieces(variant).tags(&self.syntax.close, None);
        if let Some(StructuralTag::Text(last)) = tags.last()
            && self.format.extra_stops.iter().any(|stop| **stop == *last.trim())
            && let Some(last) = tags.pop()
        {
            tags.push(last.optional());
        }
        tags
    }

    /// One call of any of the functions: what they share, what is the function's own, and what
    /// they share again.
    pub(super) fn call(&self, variant: Variant) -> Vec<StructuralTag> {
        self.call_of(&self.syntax.call, variant)
    }

    pub(super) fn call_of(&self, call: &[Piece], variant: Variant) -> Vec<StructuralTag> {
        let pieces = self.pieces(variant);
        let each = self.functions.iter().map(|function| pieces.tags(call, Some(function)));
        factored(each.collect())
    }

    /// The parts of free text that are calls.
    pub(super) fn parts(&self) -> Vec<FreePart> {
        let syntax = self.syntax;
        let has_frame = !syntax.open.is_empty();
        let shared = syntax.calls_share_block();
        let first = if has_frame { &syntax.open } else { &syntax.call };
        let mut parts = Vec::new();
        for (variant, rest) in beginnings(first) {
            let tags = if has_frame {
                self.block(&rest, variant, false)
            } else if shared {
                self.calls_after(&rest, variant)
            } else {
                self.call_of(&rest, variant)
            };
            self.add_part(tags, &mut parts);
        }
        parts
    }

    /// Calls without a frame that share a block: the first of them begins with `first`.
    fn calls_after(&self, first: &[Piece], variant: Variant) -> Vec<StructuralTag> {
        let mut tags = self.call_of(first, variant);
        if !self.one_call {
            let next = StructuralTag::Sequence(self.call(Variant::Any));
            let separator = StructuralTag::text(&*self.syntax.between);
            let next = StructuralTag::Sequence(vec![separator, next]);
            tags.push(StructuralTag::Repeat { body: Box::new(next), min: 0, max: None });
        }
        tags
    }

    /// Adds what begins with the first of some tags, by the word that the parser looks for.
    fn add_part(&self, mut tags: Vec<StructuralTag>, parts: &mut Vec<FreePart>) {
        let rest = tags.split_off(tags.len().min(1));
        let goes_on = !self.one_call && !self.ends_with_calls();
        match tags.pop() {
            Some(StructuralTag::Text(text)) => {
                let text = text.trim_start();
                let word = text.split_whitespace().next().unwrap_or_default();
                let tail = StructuralTag::text(text.get(word.len()..).unwrap_or_default());
                let rest = StructuralTag::Sequence([vec![tail], rest].concat());
                let at_start = self.at_start(word);
                parts.push(FreePart { trigger: word.to_owned(), at_start, rest, goes_on });
            }
            Some(StructuralTag::AnyOf(choices)) => {
                for choice in choices {
                    let mut tags = match choice {
                        StructuralTag::Sequence(tags) => tags,
                        tag => vec![tag],
                    };
                    tags.extend(rest.iter().cloned());
                    self.add_part(tags, parts);
                }
            }
            Some(StructuralTag::Sequence(inner)) => {
                self.add_part([inner, rest].concat(), parts);
            }
            Some(StructuralTag::Space(_)) => self.add_part(rest, parts),
            _ => {}
        }
    }

    /// Whether a trigger only counts at the start of an answer, as for the parser.
    fn at_start(&self, word: &str) -> bool {
        let is_text =
            |piece: &Piece| piece.texts().iter().any(|text| text.trim_start().starts_with(word));
        let is_marker =
            word.len() > 2 && self.syntax.open.iter().chain(&self.syntax.call).any(is_text);
        !is_marker && self.syntax.place == Place::Start
    }

    /// Whether no text comes after calls: a list at the start of an answer is all there is.
    fn ends_with_calls(&self) -> bool {
        self.syntax.place == Place::Start && self.syntax.calls_share_block()
    }

    /// The words that begin calls wherever they stand.
    pub(super) fn markers(&self) -> Vec<String> {
        let mut words = Vec::new();
        for pieces in [&self.syntax.open, &self.syntax.call] {
            for piece in pieces {
                for text in piece.texts() {
                    let word = text.split_whitespace().next().unwrap_or_default();
                    if word.len() > 2 && !words.iter().any(|known| known == word) {
                        words.push(word.to_owned());
                    }
                }
                if !piece.is_optional() {
                    break;
                }
            }
        }
        words
    }
}

/// The ways in which some pieces may begin, each with what they then are.
fn beginnings(pieces: &[Piece]) -> Vec<(Variant, Vec<Piece>)> {
    let Some((Piece::OneOf(texts), rest)) = pieces.split_first() else {
        return vec![(Variant::Canonical, pieces.to_vec())];
    };
    let begin = |(index, text): (usize, &Text)| {
        let variant = if index == 0 { Variant::Canonical } else { Variant::Any };
        let first = (!text.is_empty()).then(|| Piece::Text(text.clone()));
        (variant, first.into_iter().chain(rest.iter().cloned()).collect())
    };
    texts.iter().enumerate().map(begin).collect()
}

/// Alternatives, with what they have in common at both ends taken out.
fn factored(mut choices: Vec<Vec<StructuralTag>>) -> Vec<StructuralTag> {
    if choices.len() < 2 {
        return choices.pop().unwrap_or_default();
    }
    let shared = |choices: &[Vec<StructuralTag>],
                  at: fn(&[StructuralTag]) -> Option<&StructuralTag>| {
        let first = choices.first().and_then(|tags| at(tags))?;
        choices.iter().all(|tags| at(tags) == Some(first)).then(|| first.clone())
    };
    let (mut before, mut after) = (Vec::new(), Vec::new());
    while let Some(tag) = shared(&choices, |tags| tags.first()) {
        before.push(tag);
        choices.iter_mut().for_each(|tags| drop(tags.remove(0)));
    }
    while let Some(tag) = shared(&choices, |tags| tags.last()) {
        after.push(tag);
        choices.iter_mut().for_each(|tags| drop(tags.pop()));
    }
    after.reverse();
    let choices = choices.into_iter().map(StructuralTag::Sequence).collect();
    [before, vec![StructuralTag::AnyOf(choices)], after].concat()
}
