//! What every token of a model stands for.

use crate::TokenId;

/// What a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// Ordinary text, or a single byte of it.
    Text,
    /// Added by the model's maker and written as text by the model (`<tool_call>`): visible.
    UserDefined,
    /// Steers the model (`<|im_end|>`, `<s>`): never part of the answer's text.
    Control,
    /// An id with no token behind it: never to be sampled.
    Unused,
}

/// One token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The bytes it stands for in text; for [`TokenKind::Control`] its name, as in `<|im_end|>`.
    /// A token may hold a part of a UTF-8 character. Empty only for unused tokens.
    pub bytes: Vec<u8>,
    /// What it is for.
    pub kind: TokenKind,
}

/// The tokens of a model, immutable and shared.
#[derive(Clone, Debug)]
pub struct Vocabulary {
    tokens: Vec<Token>,
    end_tokens: Vec<TokenId>,
    bos: Option<TokenId>,
}

impl Vocabulary {
    /// A vocabulary of `tokens` (the index is the id), in which each of `end_tokens` ends an
    /// answer. Ids that are out of range are left out.
    pub fn new(tokens: Vec<Token>, end_tokens: &[TokenId], bos: Option<TokenId>) -> Self {
        let known = |id: &TokenId| (*id as usize) < tokens.len();
        let mut end_tokens: Vec<TokenId> = end_tokens.iter().copied().filter(known).collect();
        end_tokens.sort_unstable();
        end_tokens.dedup();
        let bos = bos.filter(known);
        Self { tokens, end_tokens, bos }
    }

    /// Tokens in the vocabulary, unused ids included.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there is no token at all.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The token, or `None` for an id past the end.
    pub fn get(&self, id: TokenId) -> Option<&Token> {
        self.tokens.get(id as usize)
    }

    /// The bytes that the token adds to an answer's text: none for control and unused tokens.
    pub fn text_bytes(&self, id: TokenId) -> &[u8] {
        match self.get(id) {
            Some(Token { bytes, kind: TokenKind::Text | TokenKind::UserDefined }) => bytes,
            Some(Token { kind: TokenKind::Control | TokenKind::Unused, .. }) | None => &[],
        }
    }

    /// The token's bytes whatever its kind; empty past the end.
    pub fn bytes(&self, id: TokenId) -> &[u8] {
        self.get(id).map_or(&[], |token| &token.bytes)
    }

    /// Whether the token ends an answer.
    pub fn is_end(&self, id: TokenId) -> bool {
        self.end_tokens.binary_search(&id).is_ok()
    }

    /// Every token that ends an answer, ascending.
    pub fn end_tokens(&self) -> &[TokenId] {
        &self.end_tokens
    }

    /// The same vocabulary, in which each of `more` ends an answer too.
    pub fn with_end_tokens(&self, more: &[TokenId]) -> Self {
        let end_tokens: Vec<TokenId> = self.end_tokens.iter().chain(more).copied().collect();
        Self::new(self.tokens.clone(), &end_tokens, self.bos)
    }

    /// The added token with this name or text: what steers the model, or is visible on purpose.
    /// Ordinary text never is.
    pub fn added_token(&self, name: &str) -> Option<TokenId> {
        let found = self.tokens.iter().position(|token| {
            let added = matches!(token.kind, TokenKind::Control | TokenKind::UserDefined);
            added && token.bytes == name.as_bytes()
        });
        TokenId::try_from(found?).ok()
    }

    /// The token that starts a text, where the model has one.
    pub fn bos(&self) -> Option<TokenId> {
        self.bos
    }
}
