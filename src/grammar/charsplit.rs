//! Tokens that are spelled with the characters of one loop alone, and the rest.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::charloop::LoopChars;
use super::mask::set_bit;
use super::trie::{NO_TOKEN, Trie};
use crate::TokenId;

/// Rounds up to which masks of short tokens are kept; longer tokens are few.
const ROUNDS_MAX: usize = 48;

/// A vocabulary, split by a set of characters.
#[derive(Debug)]
pub(crate) struct CharSplit {
    /// Tokens that spell characters of the set and nothing else; the last character may be
    /// unfinished.
    inside: Arc<[u32]>,
    /// The same tokens by the number of their characters, ascending.
    by_length: Box<[(u16, TokenId)]>,
    up_to: Box<[OnceLock<Arc<[u32]>>]>,
    /// All other tokens.
    pub(crate) rest: Trie,
}

impl CharSplit {
    /// Splits the tokens of `trie`, which has `words` words in a mask. `twins` are further
    /// tokens with the bytes of one in the trie.
    pub(crate) fn new(
        chars: LoopChars,
        trie: &Trie,
        words: usize,
        twins: &[(TokenId, TokenId)],
    ) -> Self {
        let mut by_length: Vec<(u16, TokenId)> = Vec::new();
        let mut is_inside = vec![0u32; words];
        let mut spellings: Vec<Option<Spelling>> = vec![None; trie.depth_max() + 1];
        spellings[0] = Some(Spelling::default());
        let nodes = trie.nodes();
        let mut index = 0;
        while let Some(node) = nodes.get(index) {
            let depth = usize::from(node.depth);
            let spelling = spellings[depth].and_then(|before| before.with(chars, node.byte));
            spellings[depth + 1] = spelling;
            let Some(spelling) = spelling else {
                index = node.skip as usize;
                continue;
            };
            if node.token != NO_TOKEN {
                by_length.push((spelling.characters, node.token));
                set_bit(&mut is_inside, node.token);
            }
            index += 1;
        }
        let rest = trie.filter(|token| !super::mask::has_bit(&is_inside, token));
        for &(token, twin) in twins {
            if let Some(&(length, _)) = by_length.iter().find(|(_, known)| *known == token) {
                by_length.push((length, twin));
                set_bit(&mut is_inside, twin);
            }
        }
        by_length.sort_unstable();
        Self {
            inside: is_inside.into(),
            by_length: by_length.into(),
            up_to: (0..ROUNDS_MAX).map(|_| OnceLock::new()).collect(),
            rest,
        }
    }

    /// The mask of the inner tokens of up to `rounds` characters.
    pub(crate) fn inside(&self, rounds: Option<u32>) -> Arc<[u32]> {
        let longest = self.by_length.last().map_or(0, |(length, _)| u32::from(*length));
        let Some(rounds) = rounds.filter(|&rounds| rounds < longest) else {
            return Arc::clone(&self.inside);
        };
        let make = || {
            let mut words = vec![0; self.inside.len()];
            for &(length, token) in &self.by_length {
                if u32::from(length) > rounds {
                    break;
                }
                set_bit(&mut words, token);
            }
            words.into()
        };
        match self.up_to.get(rounds as usize) {
            Some(known) => Arc::clone(known.get_or_init(make)),
            None => make(),
        }
    }

    fn bytes(&self) -> usize {
        self.rest.bytes() + self.inside.len() * 4 + size_of_val(&*self.by_length)
    }
}

/// How far into a sequence of characters some bytes have come.
#[derive(Clone, Copy, Debug, Default)]
struct Spelling {
    characters: u16,
    /// Bytes that the last character still needs.
    missing: u8,
    /// Bounds of the next byte, if any are missing.
    low: u8,
    high: u8,
}

impl Spelling {
    fn with(self, chars: LoopChars, byte: u8) -> Option<Self> {
        if self.missing > 0 {
            let fits = self.low <= byte && byte <= self.high;
            return fits.then_some(Self {
                missing: self.missing - 1,
                low: 0x80,
                high: 0xBF,
                ..self
            });
        }
        if !chars.may_start(byte) {
            return None;
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
            _ => return None,
        };
        Some(Self { characters: self.characters + 1, missing, low, high })
    }
}

/// The splits of one vocabulary, by set of characters: those of strings and other wide sets are
/// the same in most grammars. The oldest go when there are too many.
#[derive(Debug, Default)]
pub(crate) struct CharSplits {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    splits: VecDeque<(LoopChars, Arc<CharSplit>)>,
    /// Sets that were asked for once: a split takes as long as a walk, so it is made when it is
    /// asked for again.
    asked: VecDeque<LoopChars>,
    bytes: usize,
}

impl CharSplits {
    /// Bytes from which on old splits go.
    const BYTES_MAX: usize = 24 << 20;
    const ASKED_MAX: usize = 256;
    /// Sets of at least so many ASCII characters, and all others, are split at once.
    const WIDE_ASCII: u32 = 64;

    /// The split by `chars`, if it is there or worth making now by `make`.
    pub(crate) fn get(
        &self,
        chars: LoopChars,
        make: impl FnOnce() -> CharSplit,
    ) -> Option<Arc<CharSplit>> {
        {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, split)) = known.splits.iter().find(|(key, _)| *key == chars) {
                return Some(Arc::clone(split));
            }
            let is_wide = chars.wide && chars.ascii.count_ones() >= Self::WIDE_ASCII;
            if !is_wide && !known.asked.contains(&chars) {
                known.asked.push_back(chars);
                if known.asked.len() > Self::ASKED_MAX {
                    known.asked.pop_front();
                }
                return None;
            }
        }
        // Made without the lock, so that others are not held up; twice at worst.
        let split = Arc::new(make());
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.bytes += split.bytes();
        known.splits.push_back((chars, Arc::clone(&split)));
        while known.bytes > Self::BYTES_MAX && known.splits.len() > 1 {
            if let Some((_, oldest)) = known.splits.pop_front() {
                known.bytes -= oldest.bytes();
            }
        }
        Some(split)
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).bytes
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
        ];
        let mut sorted = texts.clone();
        sorted.sort_unstable();
        let trie = Trie::new(&sorted);
        let split = CharSplit::new(chars, &trie, 1, &[(4, 9)]);
        assert_eq!(tokens_of(&split.inside(None)).collect::<Vec<_>>(), [2, 4, 5, 7, 9]);
        assert_eq!(tokens_of(&split.inside(Some(1))).collect::<Vec<_>>(), [2]);
        assert_eq!(tokens_of(&split.inside(Some(2))).collect::<Vec<_>>(), [2, 4, 5, 9]);
        let rest: Vec<TokenId> =
            split.rest.nodes().iter().map(|n| n.token).filter(|t| *t != NO_TOKEN).collect();
        assert_eq!(rest, [0, 3, 6, 1, 8]);
    }
}
