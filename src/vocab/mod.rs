//! Token bytes and kinds, the tokenizer, UTF-8 assembly.

mod vocabulary;

pub use vocabulary::{Token, TokenKind, Vocabulary};
