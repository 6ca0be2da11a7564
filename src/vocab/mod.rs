//! Token bytes and kinds, the tokenizer, UTF-8 assembly.

mod bytes;
mod utf8;
mod vocabulary;

pub use bytes::{byte_vocabulary, encode_bytes};
pub use utf8::TextAssembler;
pub use vocabulary::{Token, TokenKind, Vocabulary};
