//! Small vocabularies, and shorthands.
// Each test file uses some of them; and helpers of tests count as tests.
#![allow(dead_code, clippy::unwrap_used)]

use std::sync::Arc;

use pleach::TokenId;
use pleach::grammar::{
    CompiledGrammar, Fuel, GrammarError, GrammarSource, GrammarVocabulary, Limits, Matcher,
};
use pleach::vocab::{Token, TokenKind, Vocabulary};

/// Every byte as the token of its number, then `words`, then a control token `<extra>`, then the
/// end token.
pub fn vocabulary_of(words: &[&str]) -> Arc<GrammarVocabulary> {
    vocabulary_without(&[], words)
}

/// The same, where the tokens of some bytes are never written.
pub fn vocabulary_without(missing: &[u8], words: &[&str]) -> Arc<GrammarVocabulary> {
    let bytes = (0..=255u8).map(|byte| vec![byte]);
    let words = words.iter().map(|word| word.as_bytes().to_vec());
    let mut tokens: Vec<Token> =
        bytes.chain(words).map(|bytes| Token { bytes, kind: TokenKind::Text }).collect();
    for name in ["<extra>", "<end>"] {
        tokens.push(Token { bytes: name.into(), kind: TokenKind::Control });
    }
    for &byte in missing {
        tokens[usize::from(byte)] = Token { bytes: Vec::new(), kind: TokenKind::Unused };
    }
    let end = tokens.len() as TokenId - 1;
    GrammarVocabulary::new(&Vocabulary::new(tokens, &[end], None))
}

/// The token of a word of [`vocabulary_of`].
pub fn token(word: TokenId) -> TokenId {
    256 + word
}

/// The end token of [`vocabulary_of`].
pub fn end_token(words: &[&str]) -> TokenId {
    256 + words.len() as TokenId + 1
}

pub fn try_compile(
    source: &GrammarSource,
    vocabulary: &Arc<GrammarVocabulary>,
) -> Result<Arc<CompiledGrammar>, GrammarError> {
    let limits = Limits::default();
    let mut fuel = Fuel::new(limits.compile_steps_max);
    CompiledGrammar::compile(source, vocabulary, &limits, &mut fuel)
}

pub fn compile(
    source: &GrammarSource,
    vocabulary: &Arc<GrammarVocabulary>,
) -> Arc<CompiledGrammar> {
    try_compile(source, vocabulary).unwrap()
}

pub fn compile_error(source: &GrammarSource, vocabulary: &Arc<GrammarVocabulary>) -> GrammarError {
    try_compile(source, vocabulary).unwrap_err()
}

pub fn matcher(source: &GrammarSource, words: &[&str]) -> Matcher {
    compile(source, &vocabulary_of(words)).matcher()
}

/// Feeds a text byte by byte, masks asked for on the way.
pub fn feed(matcher: &mut Matcher, text: &[u8]) {
    for &byte in text {
        assert!(allowed(matcher).contains(&byte.into()), "{byte:02X} is in the mask");
        matcher.accept(byte.into()).unwrap();
    }
}

/// The tokens in the mask.
pub fn allowed(matcher: &mut Matcher) -> Vec<TokenId> {
    let vocabulary = matcher.grammar().vocabulary().clone();
    let mut bits = vec![0; vocabulary.mask_words()];
    matcher.fill_mask(&mut bits).unwrap();
    (0..vocabulary.len() as TokenId)
        .filter(|id| bits[*id as usize / 32] >> (id % 32) & 1 == 1)
        .collect()
}

/// Whether a text is accepted, byte by byte, with the mask asked for at each.
pub fn accepts(grammar: &Arc<CompiledGrammar>, text: &[u8]) -> bool {
    let mut matcher = grammar.matcher();
    for &byte in text {
        let Ok(mask) = matcher.mask() else { return false };
        let accepted = matcher.accept(byte.into()).is_ok();
        assert_eq!(mask.contains(byte.into()), accepted);
        if !accepted {
            return false;
        }
    }
    matcher.is_complete()
}
