//! Tokens that are spelled with the characters of one loop alone, and the rest.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::charloop::LoopChars;
use super::mask::{has_bit, set_bit};
use super::trie::{NO_TOKEN, Trie};
use crate::TokenId;

/// Rounds up to which masks of short tokens are kept; longer tokens are few.
const ROUNDS_MAX: usize = 48;

/// A vocabulary, as seen by a loop over a set of characters.
#[derive(Debug)]
pub(crate) struct CharSplit {
    chars: LoopChars,
    /// Tokens that spell characters of the set and nothing else; the last character may be
    /// unfinished.
    inside: Arc<[u32]>,
    /// For each node of the tree: whether, and from where on, the tokens below it spell nothing
    /// but characters of the set. See [`is_inside_below`](Self::is_inside_below).
    last_others: Box<[u8]>,
    /// The inner tokens by the number of their characters, ascending.
    by_length: OnceLock<Box<[(u16, TokenId)]>>,
    up_to: Box<[OnceLock<Arc<[u32]>>]>,
    /// All tokens but the inner ones, if they are few enough to be worth a tree.
    pub(crate) rest: Option<Trie>,
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
        let last_others = last_others(chars, trie);
        let mut inside = vec![0u32; words];
        let (mut inner, mut all) = (0usize, 0usize);
        let mut spellings = vec![Place::default(); trie.depth_max() + 1];
        for node in trie.nodes() {
            let depth = usize::from(node.depth);
            let place = spellings[depth].after(chars, node.byte, depth);
            spellings[depth + 1] = place;
            if node.token != NO_TOKEN {
                all += 1;
                if place.last_other == 0 {
                    inner += 1;
                    set_bit(&mut inside, node.token);
                }
            }
        }
        // A tree of the rest takes memory, and saves little if most tokens are in it.
        let is_worth_a_tree = (all - inner) * 3 < all;
        let rest = is_worth_a_tree.then(|| trie.filter(|token| !has_bit(&inside, token)));
        for &(token, twin) in twins {
            if has_bit(&inside, token) {
                set_bit(&mut inside, twin);
            }
        }
        Self {
            chars,
            inside: inside.into(),
            last_others: last_others.into(),
            by_length: OnceLock::new(),
            up_to: (0..ROUNDS_MAX).map(|_| OnceLock::new()).collect(),
            rest,
        }
    }

    /// Whether all tokens below a node of the tree spell, after the first `depth` bytes, nothing
    /// but characters of the set.
    #[inline]
    pub(crate) fn is_inside_below(&self, node: usize, depth: usize) -> bool {
        self.last_others
            .get(node)
            .is_some_and(|&last| usize::from(last) <= depth && last != u8::MAX)
    }

    /// The mask of the inner tokens of up to `rounds` characters.
    pub(crate) fn inside(
        &self,
        rounds: Option<u32>,
        trie: &Trie,
        twins: &[(TokenId, TokenId)],
    ) -> Arc<[u32]> {
        let Some(rounds) = rounds else { return Arc::clone(&self.inside) };
        let by_length = self.by_length.get_or_init(|| self.lengths(trie, twins));
        if by_length.last().is_none_or(|(longest, _)| u32::from(*longest) <= rounds) {
            return Arc::clone(&self.inside);
        }
        let make = || {
            let mut words = vec![0; self.inside.len()];
            for &(length, token) in by_length {
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

    fn lengths(&self, trie: &Trie, twins: &[(TokenId, TokenId)]) -> Box<[(u16, TokenId)]> {
        let mut lengths = Vec::new();
        let mut places = vec![Place::default(); trie.depth_max() + 1];
        let nodes = trie.nodes();
        let mut index = 0;
        while let Some(node) = nodes.get(index) {
            let depth = usize::from(node.depth);
            let place = places[depth].after(self.chars, node.byte, depth);
            places[depth + 1] = place;
            if place.last_other != 0 {
                index = node.skip as usize;
                continue;
            }
            if node.token != NO_TOKEN {
                lengths.push((place.characters, node.token));
            }
            index += 1;
        }
        let twins = twins.iter().filter_map(|&(token, twin)| {
            let length = lengths.iter().find(|(_, known)| *known == token)?.0;
            Some((length, twin))
        });
        let twins: Vec<(u16, TokenId)> = twins.collect();
        lengths.extend(twins);
        lengths.sort_unstable();
        lengths.into()
    }

    fn bytes(&self) -> usize {
        let rest = self.rest.as_ref().map_or(0, Trie::bytes);
        let lengths = self.by_length.get().map_or(0, |lengths| size_of_val(&**lengths));
        rest + self.inside.len() * 4 + self.last_others.len() + lengths
    }
}

/// For each node, over the tokens below it: the greatest number of bytes after which the rest of
/// one spells only characters of the set. [`u8::MAX`] where that many bytes do not fit, or where
/// the node ends in the middle of a character.
fn last_others(chars: LoopChars, trie: &Trie) -> Vec<u8> {
    let nodes = trie.nodes();
    let mut last = vec![0u8; nodes.len()];
    let mut places = vec![Place::default(); trie.depth_max() + 1];
    let mut path: Vec<usize> = Vec::new();
    let close = |last: &mut Vec<u8>, path: &mut Vec<usize>, depth: usize| {
        while path.len() > depth {
            let Some(index) = path.pop() else { return };
            if let Some(&parent) = path.last() {
                last[parent] = last[parent].max(last[index]);
            }
        }
    };
    let mut unfinished: Vec<usize> = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        let depth = usize::from(node.depth);
        close(&mut last, &mut path, depth);
        let place = places[depth].after(chars, node.byte, depth);
        places[depth + 1] = place;
        if place.missing > 0 {
            unfinished.push(index);
        }
        last[index] = u8::try_from(place.last_other).unwrap_or(u8::MAX);
        path.push(index);
    }
    close(&mut last, &mut path, 0);
    for index in unfinished {
        last[index] = u8::MAX;
    }
    last
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
    /// The place after one more byte, the one at `depth`.
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
            (b" ab", 10),
            (b" abc", 11),
        ];
        let mut sorted = texts.clone();
        sorted.sort_unstable();
        let trie = Trie::new(&sorted);
        let twins = [(4, 9)];
        let split = CharSplit::new(chars, &trie, 1, &twins);
        let inside = |rounds| tokens_of(&split.inside(rounds, &trie, &twins)).collect::<Vec<_>>();
        assert_eq!(inside(None), [2, 4, 5, 7, 9]);
        assert_eq!(inside(Some(1)), [2]);
        assert_eq!(inside(Some(2)), [2, 4, 5, 9]);
        assert_eq!(inside(Some(3)), [2, 4, 5, 7, 9]);
        let below = |bytes: &[u8], depth| {
            trie.find(bytes).is_some_and(|node| split.is_inside_below(node as usize, depth))
        };
        assert!(below(b" a", 1) && !below(b" a", 0), "all after the space is inside");
        assert!(!below(b"a", 1), "a quote is below");
        assert!(below(b"z", 0));
        assert!(!below(b"z\xC3", 2), "not in the middle of a character");
    }
}
