//! The merging tokenizer of SentencePiece ("llama" in GGUF files).
//!
//! Characters are merged pairwise into pieces of the vocabulary, the pair with the best score
//! first and the leftmost of equals, until no pair is a piece (Kudo and Richardson, 2018). What
//! is then not a piece is spelled by byte tokens.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::VocabError;
use crate::TokenId;

/// The pieces of a SentencePiece model with their scores.
#[derive(Clone, Debug)]
pub(super) struct SentencePiece {
    pieces: FxHashMap<Box<str>, (TokenId, f32)>,
    /// The token for each byte, where there is one.
    bytes: Box<[Option<TokenId>; 256]>,
    /// Whether a space is put before each stretch of text.
    pub(super) add_space_prefix: bool,
}

/// A stretch of the text, linked to its neighbours. Merged into its left one: `end == start`.
#[derive(Clone, Copy)]
struct Symbol {
    start: usize,
    end: usize,
    previous: Option<usize>,
    next: Option<usize>,
}

/// Two neighbours that together are a piece.
struct Pair {
    score: f32,
    left: usize,
    right: usize,
    /// Bytes in both when the pair was found: another number means that one was merged since.
    length: usize,
}

impl Ord for Pair {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then_with(|| other.left.cmp(&self.left))
    }
}

impl PartialOrd for Pair {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pair {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Pair {}

impl SentencePiece {
    /// A model of `pieces` (text as the file spells it, score), the index being the id.
    pub(super) fn new<'p>(
        pieces: impl Iterator<Item = (&'p str, f32)>,
        bytes: Box<[Option<TokenId>; 256]>,
        add_space_prefix: bool,
    ) -> Self {
        let pieces = (0..).zip(pieces).map(|(id, (text, score))| (text.into(), (id, score)));
        Self { pieces: pieces.collect(), bytes, add_space_prefix }
    }

    /// Appends the tokens of a stretch of text that holds no special token.
    pub(super) fn encode(&self, text: &str, ids: &mut Vec<TokenId>) -> Result<(), VocabError> {
        let prefix = if self.add_space_prefix && !text.is_empty() { "▁" } else { "" };
        let spelled = format!("{prefix}{}", text.replace(' ', "▁"));
        for symbol in self.merge(&spelled) {
            let Some(piece) = spelled.get(symbol.start..symbol.end) else { continue };
            if let Some((id, _)) = self.pieces.get(piece) {
                ids.push(*id);
                continue;
            }
            for byte in piece.bytes() {
                let id = self.bytes.get(usize::from(byte)).copied().flatten();
                ids.push(id.ok_or_else(|| VocabError::Unencodable { part: piece.to_owned() })?);
            }
        }
        Ok(())
    }

    /// The symbols that are left when nothing can be merged any more.
    fn merge(&self, text: &str) -> Vec<Symbol> {
        let mut symbols = symbols_of(text);
        let mut queue = BinaryHeap::new();
        for right in 1..symbols.len() {
            queue.extend(self.pair(text, &symbols, Some(right - 1), Some(right)));
        }
        while let Some(pair) = queue.pop() {
            let (Some(left), Some(right)) =
                (symbols.get(pair.left).copied(), symbols.get(pair.right).copied())
            else {
                continue;
            };
            let alive = left.start < left.end && right.start < right.end;
            if !alive || left.end != right.start || right.end - left.start != pair.length {
                continue;
            }
            if let Some(symbol) = symbols.get_mut(pair.left) {
                symbol.end = right.end;
                symbol.next = right.next;
            }
            if let Some(symbol) = symbols.get_mut(pair.right) {
                symbol.end = symbol.start;
            }
            if let Some(symbol) = right.next.and_then(|next| symbols.get_mut(next)) {
                symbol.previous = Some(pair.left);
            }
            queue.extend(self.pair(text, &symbols, left.previous, Some(pair.left)));
            queue.extend(self.pair(text, &symbols, Some(pair.left), right.next));
        }
        symbols.retain(|symbol| symbol.start < symbol.end);
        symbols
    }

    /// The pair of two neighbours, where together they are a piece.
    fn pair(
        &self,
        text: &str,
        symbols: &[Symbol],
        left: Option<usize>,
        right: Option<usize>,
    ) -> Option<Pair> {
        let (left, right) = (left?, right?);
        let (start, end) = (symbols.get(left)?.start, symbols.get(right)?.end);
        let (_, score) = self.pieces.get(text.get(start..end)?)?;
        Some(Pair { score: *score, left, right, length: end - start })
    }
}

/// One symbol a character.
fn symbols_of(text: &str) -> Vec<Symbol> {
    let count = text.chars().count();
    let symbol = |(index, (start, c)): (usize, (usize, char))| Symbol {
        start,
        end: start + c.len_utf8(),
        previous: index.checked_sub(1),
        next: Some(index + 1).filter(|next| *next < count),
    };
    text.char_indices().enumerate().map(symbol).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(pieces: &[(&str, f32)], add_space_prefix: bool) -> SentencePiece {
        let mut bytes = Box::new([None; 256]);
        for (byte, slot) in bytes.iter_mut().enumerate().take(128) {
            *slot = TokenId::try_from(1000 + byte).ok();
        }
        SentencePiece::new(pieces.iter().copied(), bytes, add_space_prefix)
    }

    fn encode(model: &SentencePiece, text: &str) -> Result<Vec<TokenId>, VocabError> {
        let mut ids = Vec::new();
        model.encode(text, &mut ids).map(|()| ids)
    }

    #[test]
    fn the_best_score_is_merged_first_and_the_leftmost_of_equals() {
        let pieces = [("a", 0.0), ("b", 0.0), ("ab", -2.0), ("ba", -1.0), ("aa", -3.0)];
        let model = model(&pieces, false);
        assert_eq!(encode(&model, "aba").expect("encodes"), [0, 3]);
        assert_eq!(encode(&model, "aaa").expect("encodes"), [4, 0]);
    }

    #[test]
    fn unknown_characters_are_bytes_or_an_error() {
        let model = model(&[("a", 0.0), ("▁a", -1.0)], true);
        assert_eq!(encode(&model, "a!").expect("encodes"), [1, 1033]);
        assert!(matches!(encode(&model, "é"), Err(VocabError::Unencodable { .. })));
        assert_eq!(encode(&model, "").expect("encodes"), Vec::<TokenId>::new());
    }
}
