//! Control tokens in texts: a marker may be one token, or be spelled.

use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, MatchKind};
use smallvec::SmallVec;

use crate::TokenId;
use crate::vocab::{TokenKind, Vocabulary};

/// A piece of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Segment<'t> {
    /// Bytes that are no token of their own.
    Bytes(&'t [u8]),
    /// The name of a control token.
    Marker(TokenId, &'t [u8]),
}

/// The names of a vocabulary's control tokens, those apart that end an answer: these are never
/// part of it.
#[derive(Debug)]
pub(crate) struct Markers {
    names: Box<[(Box<[u8]>, TokenId)]>,
    /// Bytes of the shortest name.
    least: usize,
    finder: OnceLock<Option<AhoCorasick>>,
}

impl Markers {
    pub(super) fn new(vocabulary: &Vocabulary) -> Self {
        let names = (0..vocabulary.len() as TokenId).filter_map(|id| {
            let token = vocabulary.get(id).filter(|token| token.kind == TokenKind::Control)?;
            let is_name = token.bytes.len() > 1 && !vocabulary.is_end(id);
            is_name.then(|| (token.bytes.as_slice().into(), id))
        });
        let names: Box<[(Box<[u8]>, TokenId)]> = names.collect();
        let least = names.iter().map(|(name, _)| name.len()).min().unwrap_or(usize::MAX);
        Self { names, least, finder: OnceLock::new() }
    }

    /// The text in pieces; of several names at one place the longest is meant.
    pub(crate) fn split<'t>(&self, text: &'t [u8]) -> SmallVec<[Segment<'t>; 1]> {
        if (1..self.least).contains(&text.len()) {
            return [Segment::Bytes(text)].into();
        }
        let finder = self.finder.get_or_init(|| {
            let names = self.names.iter().map(|(name, _)| name);
            AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(names).ok()
        });
        let mut segments = SmallVec::new();
        let mut from = 0;
        for found in finder.iter().flat_map(|finder| finder.find_iter(text)) {
            if from < found.start() {
                segments.push(Segment::Bytes(&text[from..found.start()]));
            }
            let (_, token) = self.names[found.pattern().as_usize()];
            segments.push(Segment::Marker(token, &text[found.range()]));
            from = found.end();
        }
        if from < text.len() {
            segments.push(Segment::Bytes(&text[from..]));
        }
        segments
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::Token;

    #[test]
    fn names_are_told_from_text() {
        let token = |name: &str, kind| Token { bytes: name.into(), kind };
        let tokens = [
            token("<t>", TokenKind::Control),
            token("<t>x", TokenKind::Control),
            token("<u>", TokenKind::UserDefined),
            token("<end>", TokenKind::Control),
        ];
        let markers = Markers::new(&Vocabulary::new(tokens.to_vec(), &[3], None));
        assert_eq!(markers.split(b"{").as_slice(), [Segment::Bytes(b"{")]);
        assert_eq!(
            markers.split(b"a<t><t>x <u><end>").as_slice(),
            [
                Segment::Bytes(b"a"),
                Segment::Marker(0, b"<t>"),
                Segment::Marker(1, b"<t>x"),
                Segment::Bytes(b" <u><end>")
            ]
        );
    }
}
