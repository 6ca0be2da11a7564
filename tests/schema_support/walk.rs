//! Answers at random, along the masks.
#![allow(dead_code, clippy::unwrap_used)]

use std::fmt::Display;
use std::sync::Arc;

use pleach::TokenId;
use pleach::grammar::{CompiledGrammar, MatchError};
use pleach::vocab::Vocabulary;

use super::random::Draw;

/// Tokens tried at each step of an answer against the mask.
const TRIED_TOKENS: usize = 12;

/// Writes answers.
pub struct Walk<'v> {
    /// What is written, for messages.
    pub what: &'v dyn Display,
    pub vocabulary: &'v Vocabulary,
}

impl Walk<'_> {
    /// An answer along the masks; `None` if it cannot end within the tokens at all.
    pub fn answer(
        &self,
        grammar: &Arc<CompiledGrammar>,
        tokens_max: u32,
        draw: &mut Draw,
    ) -> Option<Vec<u8>> {
        let what = self.what;
        let mut matcher = grammar.matcher();
        let mut bits = vec![0; grammar.vocabulary().mask_words()];
        let mut text = Vec::new();
        for left in (0..=tokens_max).rev() {
            match matcher.fill_mask_within(left, &mut bits) {
                Ok(()) => {}
                Err(MatchError::BudgetTooSmall { .. }) if left == tokens_max => return None,
                Err(error) => panic!("{what}: {error} with {left} left after {}", lossy(&text)),
            }
            let mask = matcher.mask().unwrap();
            for _ in 0..TRIED_TOKENS {
                let token = self.token_to_try(draw);
                let accepted = matcher.fork().accept(token).is_ok();
                let name = lossy(self.vocabulary.bytes(token));
                assert_eq!(
                    mask.contains(token),
                    accepted,
                    "{what}: {name:?} after {}",
                    lossy(&text)
                );
            }
            let Some(token) = self.choose(&bits, draw) else {
                panic!("{what}: nothing may follow {} with {left} left", lossy(&text));
            };
            assert!(mask.contains(token), "{what}");
            let accepted = matcher.accept(token);
            assert!(accepted.is_ok(), "{what}: {accepted:?} after {}", lossy(&text));
            if self.vocabulary.is_end(token) {
                return Some(text);
            }
            text.extend_from_slice(self.vocabulary.text_bytes(token));
        }
        assert!(matcher.is_complete(), "{what}: cut at {}", lossy(&text));
        Some(text)
    }

    /// Punctuation as often as any token.
    fn token_to_try(&self, draw: &mut Draw) -> TokenId {
        let any = draw.below(self.vocabulary.len()) as TokenId;
        if draw.once_in(2) {
            return any;
        }
        let close = (any..self.vocabulary.len() as TokenId).take(500);
        let is_mark = |token: &TokenId| {
            self.vocabulary.text_bytes(*token).first().is_some_and(u8::is_ascii_punctuation)
        };
        close.clone().find(is_mark).unwrap_or(any)
    }

    /// Short plain words and marks more often than the rest, so that answers get somewhere.
    fn choose(&self, bits: &[u32], draw: &mut Draw) -> Option<TokenId> {
        for _ in 0..draw.below(40) {
            let token = self.next_of(bits, draw)?;
            let bytes = self.vocabulary.text_bytes(token);
            let is_plain = |byte: &u8| byte.is_ascii_graphic() && *byte != b'\\';
            let opens = bytes == b"[" || bytes == b"{";
            if bytes.len() <= 3 && bytes.iter().all(is_plain) && (!opens || draw.once_in(3)) {
                return Some(token);
            }
        }
        self.next_of(bits, draw)
    }

    /// The first token that is set from somewhere on.
    fn next_of(&self, bits: &[u32], draw: &mut Draw) -> Option<TokenId> {
        let from = draw.below(self.vocabulary.len());
        let first = bits[from / 32] & (u32::MAX << (from % 32));
        if first != 0 {
            return Some((from as u32 & !31) + first.trailing_zeros());
        }
        let words = bits.len();
        (from / 32 + 1..).take(words).map(|word| word % words).find_map(|word| {
            (bits[word] != 0).then(|| word as u32 * 32 + bits[word].trailing_zeros())
        })
    }
}

fn lossy(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.escape_ascii().to_string(),
    }
}
