//! What the tokens of a vocabulary hold beyond the end of a key, and of the beginning of one.

use std::sync::OnceLock;

use rustc_hash::{FxHashMap, FxHashSet};

use super::trie::Trie;
use super::vocabulary::GrammarVocabulary;
use crate::TokenId;

/// Number of a text that tokens go on with after the quote that ends a key.
pub(crate) type RestId = u32;

/// The tokens of a vocabulary with quotes, as the keys of an object see them.
#[derive(Debug, Default)]
pub(crate) struct KeyEnds {
    /// What comes after the first quote that is not escaped; a node's token is the number.
    pub(crate) rests: Trie,
    /// How many there are; the number 0 is the empty text, which the tree does not hold.
    pub(crate) count: usize,
    rest_of: FxHashMap<TokenId, RestId>,
    /// By number: the token that is a quote and this text, if there is one.
    quote_and: Box<[Option<TokenId>]>,
    /// A bit for each node of the vocabulary's tree at or below which a token has a quote that is
    /// not escaped.
    quoted_nodes: Box<[u64]>,
    /// What tokens hold of a key that begins within them.
    pub(crate) beginnings: Box<[Box<[u8]>]>,
}

impl KeyEnds {
    /// Finds them.
    fn new<'v>(tokens: impl Iterator<Item = (TokenId, &'v [u8])>, trie: &Trie) -> Self {
        let mut quoted_nodes = vec![0u64; trie.nodes().len().div_ceil(64)];
        let mut rests: Vec<(&[u8], TokenId)> = Vec::new();
        let mut beginnings: FxHashSet<&[u8]> = FxHashSet::default();
        for (token, bytes) in tokens {
            if let Some(quote) = first_quote(bytes) {
                rests.push((&bytes[quote + 1..], token));
                for end in 1..=quote + 1 {
                    let Some(node) = trie.find(&bytes[..end]) else { break };
                    quoted_nodes[node as usize / 64] |= 1 << (node % 64);
                }
            }
            beginnings.extend(begun_keys(bytes));
        }
        rests.sort_unstable();
        let mut distinct: Vec<(&[u8], RestId)> = vec![(b"", 0)];
        let mut rest_of = FxHashMap::default();
        for &(rest, token) in &rests {
            if distinct.last().is_none_or(|(last, _)| *last != rest) {
                distinct.push((rest, distinct.len() as RestId));
            }
            rest_of.insert(token, distinct.len() as RestId - 1);
        }
        let quote_and = distinct.iter().map(|(rest, _)| {
            let node = trie.find(&[b"\"", *rest].concat());
            node.and_then(|node| trie.token_at(node))
        });
        let quote_and = quote_and.collect();
        let mut beginnings: Vec<&[u8]> = beginnings.into_iter().collect();
        beginnings.sort_unstable();
        Self {
            rests: Trie::new(&distinct[1..]),
            count: distinct.len(),
            rest_of,
            quote_and,
            quoted_nodes: quoted_nodes.into(),
            beginnings: beginnings.into_iter().map(Into::into).collect(),
        }
    }

    /// Whether a token at or below a node of the vocabulary's tree has a quote from there on.
    pub(crate) fn has_quote_below(&self, node: u32) -> bool {
        self.quoted_nodes.get(node as usize / 64).is_some_and(|word| word >> (node % 64) & 1 == 1)
    }

    /// The token that is a quote and a text.
    pub(crate) fn quote_and(&self, rest: RestId) -> Option<TokenId> {
        self.quote_and.get(rest as usize).copied().flatten()
    }

    /// What a token goes on with after its first quote, if it has one that is not escaped.
    pub(crate) fn rest_of(&self, token: TokenId) -> Option<RestId> {
        self.rest_of.get(&token).copied()
    }
}

fn first_quote(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return Some(at),
            _ => at += 1,
        }
    }
    None
}

/// What follows the quotes of a token that may open a key after another member.
pub(crate) fn begun_keys(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_white = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let opens = move |quote: usize| {
        bytes[quote] == b'"'
            && bytes[..quote].iter().rev().find(|byte| !is_white(byte)) == Some(&b',')
    };
    (0..bytes.len()).filter(move |&at| opens(at)).map(|quote| &bytes[quote + 1..])
}

/// The index of a vocabulary, made when it is first asked for.
#[derive(Debug, Default)]
pub(crate) struct LazyKeyEnds(OnceLock<KeyEnds>);

impl LazyKeyEnds {
    /// The index.
    pub(crate) fn get(&self, vocabulary: &GrammarVocabulary) -> &KeyEnds {
        self.0.get_or_init(|| {
            let tokens = (0..vocabulary.len() as TokenId)
                .map(|token| (token, vocabulary.token_bytes(token)));
            KeyEnds::new(tokens, vocabulary.trie())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_part_tokens() {
        let tokens: [&[u8]; 6] = [b"a\":", b"\"", b"x\\\"y\" :", b"\":", b"\",\"b", b"\\\" , \"c"];
        let tokens = || tokens.into_iter().enumerate().map(|(i, b)| (i as TokenId, b));
        let mut sorted: Vec<(&[u8], TokenId)> = tokens().map(|(i, b)| (b, i)).collect();
        sorted.sort_unstable();
        let trie = Trie::new(&sorted);
        let ends = KeyEnds::new(tokens(), &trie);
        let below = |text: &[u8]| trie.find(text).map(|node| ends.has_quote_below(node));
        let found = [b"a".as_slice(), b"x\\", b"a\":"].map(below);
        assert_eq!(found, [Some(true), Some(true), Some(false)]);
        assert_eq!(ends.rest_of(0), ends.rest_of(3));
        assert_eq!(ends.rest_of(1), Some(0));
        assert!(ends.rest_of(2).is_some() && ends.rest_of(2) != ends.rest_of(0));
        let rest = ends.rests.find(b" :").and_then(|node| ends.rests.token_at(node));
        assert_eq!(rest, ends.rest_of(2));
        assert_eq!(&*ends.beginnings, [b"b".as_slice().into(), b"c".as_slice().into()]);
    }
}
