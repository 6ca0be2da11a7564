//! Tokens that are spelled with the characters of one loop alone, and the rest.

use std::sync::{Arc, OnceLock};

use super::charloop::LoopChars;
use super::mask::{clear_bit, has_bit, set_bit};
use super::trie::Trie;
use crate::TokenId;

/// Rounds up to which masks of short tokens are kept; hardly a token is longer.
const ROUNDS_MAX: usize = 132;

/// A vocabulary, as seen by a loop over a set of characters.
#[derive(Debug)]
pub(crate) struct CharSplit {
    pub(crate) chars: LoopChars,
    /// Tokens that spell characters of the set and nothing else; the last character may be
    /// unfinished.
    inside: Arc<[u32]>,
    /// The inner tokens by the number of their characters, ascending.
    by_length: Box<[(u16, TokenId)]>,
    up_to: Box<[OnceLock<Arc<[u32]>>]>,
    /// All tokens but the inner ones.
    pub(crate) rest: Trie,
    pub(crate) tails: Tails,
}

/// The tokens that are not inside, by what comes after their first characters of the set: where
/// these lead back to the same state, only that makes a difference.
#[derive(Debug)]
pub(crate) struct Tails {
    /// The tails. A node's token is the number of the tail.
    pub(crate) trie: Trie,
    first: Box<[u32]>,
    tokens: Box<[TokenId]>,
}

impl Tails {
    /// The tokens by their tails, given with them.
    fn new(mut tails: Vec<(&[u8], TokenId)>) -> Self {
        tails.sort_unstable();
        let mut distinct: Vec<(&[u8], TokenId)> = Vec::new();
        let mut first = Vec::new();
        for (index, (bytes, _)) in tails.iter().enumerate() {
            if distinct.last().is_none_or(|(last, _)| last != bytes) {
                distinct.push((bytes, distinct.len() as TokenId));
                first.push(index as u32);
            }
        }
        first.push(tails.len() as u32);
        let tokens = tails.iter().map(|(_, token)| *token).collect();
        Self { trie: Trie::new(&distinct), first: first.into(), tokens }
    }

    /// The tokens that have a tail.
    pub(crate) fn tokens(&self, tail: TokenId) -> &[TokenId] {
        let bounds = self.first.get(tail as usize..tail as usize + 2);
        let range = bounds.map_or(0..0, |bounds| bounds[0] as usize..bounds[1] as usize);
        self.tokens.get(range).unwrap_or(&[])
    }
}

impl CharSplit {
    /// Splits `texts`, the tokens of `trie`, for masks of `words` words. `twins` are further
    /// tokens with the bytes of one of these: (that one, the other).
    pub(crate) fn new(
        chars: LoopChars,
        texts: &[(&[u8], TokenId)],
        trie: &Trie,
        words: usize,
        twins: &[(TokenId, TokenId)],
    ) -> Self {
        let mut inside = vec![0u32; words];
        let mut by_length = Vec::with_capacity(texts.len());
        let mut tails = Vec::new();
        let mut twins = twins.to_vec();
        twins.sort_unstable();
        for &(bytes, token) in texts {
            match Place::of(chars, bytes) {
                Ok(characters) => {
                    let first = twins.partition_point(|&(of, _)| of < token);
                    let others = twins[first..].iter().take_while(|&&(of, _)| of == token);
                    for same in std::iter::once(token).chain(others.map(|&(_, twin)| twin)) {
                        set_bit(&mut inside, same);
                        by_length.push((characters, same));
                    }
                }
                Err(start) => tails.push((&bytes[start..], token)),
            }
        }
        by_length.sort_unstable();
        Self {
            chars,
            by_length: by_length.into(),
            up_to: (0..ROUNDS_MAX).map(|_| OnceLock::new()).collect(),
            rest: trie.filter(|token| !has_bit(&inside, token)),
            tails: Tails::new(tails),
            inside: inside.into(),
        }
    }

    /// The mask of the inner tokens of up to `rounds` characters.
    pub(crate) fn inside(&self, rounds: Option<u32>) -> Arc<[u32]> {
        let Some(rounds) = rounds else { return Arc::clone(&self.inside) };
        if self.by_length.last().is_none_or(|(longest, _)| u32::from(*longest) <= rounds) {
            return Arc::clone(&self.inside);
        }
        let make = || {
            let end = self.by_length.partition_point(|&(length, _)| u32::from(length) <= rounds);
            let (shorter, longer) = self.by_length.split_at(end);
            if shorter.len() < longer.len() {
                let mut words = vec![0; self.inside.len()];
                shorter.iter().for_each(|&(_, token)| set_bit(&mut words, token));
                return words.into();
            }
            let mut words = self.inside.to_vec();
            longer.iter().for_each(|&(_, token)| clear_bit(&mut words, token));
            words.into()
        };
        match self.up_to.get(rounds as usize) {
            Some(known) => Arc::clone(known.get_or_init(make)),
            None => make(),
        }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        let masks = 1 + self.up_to.iter().filter(|mask| mask.get().is_some()).count();
        self.rest.bytes()
            + masks * size_of_val(&*self.inside)
            + size_of_val(&*self.by_length)
            + self.tails.trie.bytes()
            + size_of_val(&*self.tails.tokens)
            + size_of_val(&*self.tails.first)
    }
}

/// Where the bytes of a token stand among the characters of a set.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// Bytes up to and with the last one that is no part of a character of the set.
    last_other: u16,
    /// Characters, as far as there are no others.
    characters: u16,
    /// Bytes that the last character still needs.
    missing: u8,
    /// Bounds of the next byte, if any are missing.
    low: u8,
    high: u8,
}

impl Place {
    /// How many characters `bytes` are, if they spell nothing but characters of the set; else how
    /// many bytes come before the first thing that is none.
    fn of(chars: LoopChars, bytes: &[u8]) -> Result<u16, usize> {
        let mut place = Self::default();
        let mut start = 0;
        for (depth, &byte) in bytes.iter().enumerate() {
            place = place.after(chars, byte, depth);
            if place.last_other > 0 {
                return Err(start);
            }
            if place.missing == 0 {
                start = depth + 1;
            }
        }
        Ok(place.characters)
    }

    /// The place after one more byte, the one at `depth`.
    #[inline]
    fn after(self, chars: LoopChars, byte: u8, depth: usize) -> Self {
        if self.missing > 0 && self.low <= byte && byte <= self.high {
            return Self { missing: self.missing - 1, low: 0x80, high: 0xBF, ..self };
        }
        // A character that is broken off was none.
        let before = if self.missing > 0 { depth as u16 } else { self.last_other };
        let other = Self { last_other: depth as u16 + 1, missing: 0, ..self };
        if !chars.may_start(byte) {
            return other;
        }
        let (missing, low, high) = match byte {
            0..=0x7F => (0, 0, 0),
            0xC2..=0xDF => (1, 0x80, 0xBF),
            0xE0 => (2, 0xA0, 0xBF),
            0xED => (2, 0x80, 0x9F),
            0xE1..=0xEF => (2, 0x80, 0xBF),
            0xF0 => (3, 0x90, 0xBF),
            0xF1..=0xF3 => (3, 0x80, 0xBF),
            0xF4 => (3, 0x80, 0x8F),
            _ => return other,
        };
        Self { last_other: before, characters: self.characters + 1, missing, low, high }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::mask::tokens_of;

    #[test]
    fn a_split_parts_the_tokens_by_their_characters() {
        let lower = (b'a'..=b'z').fold(0u128, |set, byte| set | 1 << byte);
        let chars = LoopChars { ascii: lower, wide: true };
        let texts: Vec<(&[u8], TokenId)> = vec![
            (b"\"", 0),
            (b"\x82", 1),
            (b"a", 2),
            (b"a\"", 3),
            (b"ab", 4),
            (b"a\xE4", 5),
            (b"a\xE4\"", 6),
            (b"z\xC3\xA4z", 7),
            (b"\xE0\x80", 8),
            (b" ab", 10),
            (b" abc", 11),
        ];
        let mut sorted = texts.clone();
        sorted.sort_unstable();
        let trie = Trie::new(&sorted);
        let twins = [(4, 9)];
        let split = CharSplit::new(chars, &sorted, &trie, 1, &twins);
        let inside = |rounds| tokens_of(&split.inside(rounds)).collect::<Vec<_>>();
        assert_eq!(inside(None), [2, 4, 5, 7, 9]);
        assert_eq!(inside(Some(1)), [2]);
        assert_eq!(inside(Some(2)), [2, 4, 5, 9]);
        assert_eq!(inside(Some(3)), [2, 4, 5, 7, 9]);
        let tails = &split.tails;
        let tail = |bytes| tails.trie.find(bytes).and_then(|node| tails.trie.token_at(node));
        assert_eq!(tail(b"\"").map(|tail| tails.tokens(tail)), Some([0, 3].as_slice()));
        assert_eq!(tail(b"\xE4\"").map(|tail| tails.tokens(tail)), Some([6].as_slice()));
        assert_eq!(tail(b"ab"), None, "inner tokens have no tail");
    }
}
