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
    tails: OnceLock<Tails>,
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
    fn new(
        chars: LoopChars,
        outside: impl Iterator<Item = TokenId>,
        bytes: &TokenBytes<'_>,
    ) -> Self {
        let mut tails: Vec<(&[u8], TokenId)> =
            outside.map(|token| (tail(chars, bytes(token)), token)).collect();
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

/// The bytes of a token.
pub(crate) type TokenBytes<'v> = dyn Fn(TokenId) -> &'v [u8] + 'v;

/// What comes after the first characters of the set.
fn tail(chars: LoopChars, bytes: &[u8]) -> &[u8] {
    let mut place = Place::default();
    let mut start = 0;
    for (depth, &byte) in bytes.iter().enumerate() {
        place = place.after(chars, byte, depth);
        if place.last_other > 0 {
            break;
        }
        if place.missing == 0 {
            start = depth + 1;
        }
    }
    &bytes[start..]
}

impl CharSplit {
    /// The other tokens by their tails.
    pub(crate) fn tails<'v>(&self, trie: &Trie, bytes: &TokenBytes<'v>) -> &Tails {
        self.tails.get_or_init(|| {
            let tokens = trie.nodes().iter().map(|node| node.token);
            let outside =
                tokens.filter(|&token| token != NO_TOKEN && !has_bit(&self.inside, token));
            Tails::new(self.chars, outside, bytes)
        })
    }

    /// Splits the tokens of `trie`, which has `words` words in a mask. `twins` are further
    /// tokens with the bytes of one in the trie.
    pub(crate) fn new(
        chars: LoopChars,
        trie: &Trie,
        words: usize,
        twins: &[(TokenId, TokenId)],
    ) -> Self {
        let mut inside = vec![0u32; words];
        let (mut inner, mut all) = (0usize, 0usize);
        let last_others = last_others(chars, trie, |token, is_inside| {
            all += 1;
            if is_inside {
                inner += 1;
                set_bit(&mut inside, token);
            }
        });
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
            tails: OnceLock::new(),
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
        let tails = self.tails.get().map_or(0, |tails| tails.trie.bytes() + tails.tokens.len() * 8);
        rest + self.inside.len() * 4 + self.last_others.len() + lengths + tails
    }
}

/// For each node, over the tokens below it: the greatest number of bytes after which the rest of
/// one spells only characters of the set. [`u8::MAX`] where that many bytes do not fit, or where
/// the node ends in the middle of a character.
///
/// Calls `visit` with each token, and with whether it spells nothing but such characters.
fn last_others(chars: LoopChars, trie: &Trie, mut visit: impl FnMut(TokenId, bool)) -> Vec<u8> {
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
        if node.token != NO_TOKEN {
            visit(node.token, place.last_other == 0);
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

/// The splits of one vocabulary, by set of characters: those of strings and other wide sets are
/// the same in most grammars. The oldest go when there are too many.
#[derive(Debug, Default)]
pub(crate) struct CharSplits {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    splits: VecDeque<(LoopChars, Arc<CharSplit>)>,
    /// Sets that were asked for, and how often: a split takes as long as several walks, so it is
    /// made when it has been missed that often.
    asked: VecDeque<(LoopChars, u32)>,
    bytes: usize,
}

impl Known {
    /// Counts that a split is missed; true when it has been missed `enough` times.
    fn is_missed_enough(&mut self, chars: LoopChars, enough: u32) -> bool {
        if let Some((_, times)) = self.asked.iter_mut().find(|(key, _)| *key == chars) {
            *times += 1;
            return *times >= enough;
        }
        self.asked.push_back((chars, 1));
        if self.asked.len() > CharSplits::ASKED_MAX {
            self.asked.pop_front();
        }
        false
    }
}

impl CharSplits {
    /// Bytes from which on old splits go.
    const BYTES_MAX: usize = 24 << 20;
    const ASKED_MAX: usize = 64;
    /// States that ask for a split before it is made: sooner if it spares nearly all of a walk.
    const ASKED_BEFORE_MADE: u32 = 12;
    const ASKED_BEFORE_MADE_WIDE: u32 = 4;
    /// Sets of at least so many ASCII characters, and all others, are in most tokens.
    const WIDE_ASCII: u32 = 64;

    /// Makes a split before anyone asks.
    pub(crate) fn prepare(
        &self,
        chars: LoopChars,
        make: impl FnOnce() -> CharSplit,
    ) -> Arc<CharSplit> {
        let split = Arc::new(make());
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.bytes += split.bytes();
        known.splits.push_back((chars, Arc::clone(&split)));
        while known.bytes > Self::BYTES_MAX && known.splits.len() > 1 {
            if let Some((_, oldest)) = known.splits.pop_front() {
                known.bytes = known.bytes.saturating_sub(oldest.bytes());
            }
        }
        split
    }

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
            let enough =
                if is_wide { Self::ASKED_BEFORE_MADE_WIDE } else { Self::ASKED_BEFORE_MADE };
            if !known.is_missed_enough(chars, enough) {
                return None;
            }
        }
        // Made without the lock, so that others are not held up; twice at worst.
        Some(self.prepare(chars, make))
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
        let tails = split.tails(&trie, &|token| {
            texts.iter().find(|(_, id)| *id == token).map_or(&[], |(bytes, _)| bytes)
        });
        let tail = |bytes| tails.trie.find(bytes).and_then(|node| tails.trie.token_at(node));
        assert_eq!(tail(b"\"").map(|tail| tails.tokens(tail)), Some([0, 3].as_slice()));
        assert_eq!(tail(b"\xE4\"").map(|tail| tails.tokens(tail)), Some([6].as_slice()));
        assert_eq!(tail(b"ab"), None, "inner tokens have no tail");
        assert!(below(b" a", 1) && !below(b" a", 0), "all after the space is inside");
        assert!(!below(b"a", 1), "a quote is below");
        assert!(below(b"z", 0));
        assert!(!below(b"z\xC3", 2), "not in the middle of a character");
    }
}
