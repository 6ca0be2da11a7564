//! Token bytes and kinds, the tokenizer, UTF-8 assembly.

mod byte_tokens;
mod bytes;
mod ends;
mod error;
#[cfg(feature = "ggml")]
mod gguf;
mod json;
mod memory;
#[cfg(feature = "ggml")]
mod partition;
#[cfg(feature = "ggml")]
mod pretokenize;
pub mod selftest;
#[cfg(feature = "ggml")]
mod sentencepiece;
mod tokenizer;
mod utf8;
mod vocabulary;

#[cfg(test)]
#[cfg(feature = "ggml")]
mod tests;

pub use byte_tokens::{byte_vocabulary, encode_bytes};
pub use error::VocabError;
pub use tokenizer::{SpecialTokens, Tokenizer};
pub use utf8::TextAssembler;
pub use vocabulary::{Token, TokenKind, Vocabulary};
