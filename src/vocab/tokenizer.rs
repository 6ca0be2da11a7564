//! From text to tokens and from tokens to bytes.

use std::path::Path;
use std::sync::Arc;

#[cfg(feature = "ggml")]
use super::gguf::GgufEngine;
use super::json::JsonEngine;
use super::{VocabError, Vocabulary};
use crate::TokenId;
#[cfg(feature = "ggml")]
use crate::device::ggml::gguf::GgufMetadata;

/// What becomes of the text of a control token, such as `<|im_end|>`, in a text to encode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecialTokens {
    /// It becomes the token: for what a chat template wrote.
    Parse,
    /// It stays text: for what a user wrote and must not be able to steer with. Tokens that the
    /// model's maker added as visible text (`<tool_call>`) are tokens all the same.
    AsText,
}

/// A model's tokenizer and vocabulary. Immutable; encoding from many threads at once is fine.
pub struct Tokenizer {
    engine: Engine,
    vocabulary: Arc<Vocabulary>,
    add_bos: bool,
}

enum Engine {
    Json(Box<JsonEngine>),
    #[cfg(feature = "ggml")]
    Gguf(Box<GgufEngine>),
}

/// What building a tokenizer yields, whatever the source.
pub(super) struct Built<E> {
    pub(super) engine: E,
    pub(super) vocabulary: Vocabulary,
    pub(super) add_bos: bool,
}

impl Tokenizer {
    /// The tokenizer of a `tokenizer.json`. End tokens and BOS are also taken from the files
    /// `generation_config.json`, `tokenizer_config.json` and `special_tokens_map.json` beside it,
    /// where they are there.
    pub fn from_json_file(path: &Path) -> Result<Self, VocabError> {
        let Built { engine, vocabulary, add_bos } = JsonEngine::load(path)?;
        super::memory::give_back();
        let engine = Engine::Json(Box::new(engine));
        Ok(Self { engine, vocabulary: Arc::new(vocabulary), add_bos })
    }

    /// The tokenizer that a GGUF file describes. A kind or a pre-tokeniser that is not known is
    /// an error that names it.
    #[cfg(feature = "ggml")]
    pub fn from_gguf(metadata: &GgufMetadata) -> Result<Self, VocabError> {
        let Built { engine, vocabulary, add_bos } = GgufEngine::load(metadata)?;
        super::memory::give_back();
        let engine = Engine::Gguf(Box::new(engine));
        Ok(Self { engine, vocabulary: Arc::new(vocabulary), add_bos })
    }

    /// The tokens of a text. BOS is never added: see [`Tokenizer::add_bos`].
    ///
    /// A text that the vocabulary cannot spell is [`VocabError::Unencodable`]; other tokenizers
    /// drop such characters in silence.
    pub fn encode(&self, text: &str, special: SpecialTokens) -> Result<Vec<TokenId>, VocabError> {
        match &self.engine {
            Engine::Json(engine) => engine.encode(text, special),
            #[cfg(feature = "ggml")]
            Engine::Gguf(engine) => engine.encode(text, special),
        }
    }

    /// Whether the model expects its BOS token before a text. A chat template may have written it
    /// already: then it must not be added again.
    pub fn add_bos(&self) -> bool {
        self.add_bos
    }

    /// The token that starts a text, where the model has one.
    pub fn bos(&self) -> Option<TokenId> {
        self.vocabulary.bos()
    }

    /// The tokens themselves.
    pub fn vocabulary(&self) -> Arc<Vocabulary> {
        Arc::clone(&self.vocabulary)
    }

    /// The bytes that tokens stand for, control tokens by their name. Ids past the end add nothing.
    pub fn decode_bytes(&self, ids: &[TokenId]) -> Vec<u8> {
        ids.iter().flat_map(|id| self.vocabulary.bytes(*id)).copied().collect()
    }

    /// The text as the model is meant to see it, where that differs only by Unicode normalization
    /// (some `tokenizer.json` files ask for NFC; no GGUF does).
    pub fn normalize(&self, text: &str) -> Result<String, VocabError> {
        match &self.engine {
            Engine::Json(engine) => engine.normalize(text),
            #[cfg(feature = "ggml")]
            Engine::Gguf(_) => Ok(text.to_owned()),
        }
    }
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let source = match &self.engine {
            Engine::Json(_) => "tokenizer.json",
            #[cfg(feature = "ggml")]
            Engine::Gguf(_) => "gguf",
        };
        f.debug_struct("Tokenizer")
            .field("source", &source)
            .field("tokens", &self.vocabulary.len())
            .field("add_bos", &self.add_bos)
            .finish_non_exhaustive()
    }
}

/// A piece of text for an error message, short enough to read.
pub(super) fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}
