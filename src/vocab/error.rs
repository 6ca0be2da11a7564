//! What can go wrong with a vocabulary or a text.

use std::path::PathBuf;

use crate::TokenId;

/// Why a tokenizer could not be built, or a text not be encoded.
#[derive(Debug, thiserror::Error)]
pub enum VocabError {
    /// A file could not be read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },

    /// A JSON file does not hold what it should.
    #[error("{path} is not usable: {reason}; take the file from the model's own repository")]
    BadFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// The GGUF file cannot be read or holds a value of the wrong type.
    #[cfg(feature = "ggml")]
    #[error(transparent)]
    Gguf(#[from] crate::device::ggml::gguf::GgufError),

    /// A key that a tokenizer needs is missing from the GGUF file.
    #[error(
        "the model file has no `{key}`, so its tokenizer is unknown; put the model's \
         tokenizer.json beside it or convert the model again"
    )]
    MissingKey {
        /// The metadata key.
        key: &'static str,
    },

    /// A kind of tokenizer that is not supported.
    #[error(
        "the tokenizer kind `{kind}` is not supported; put the model's tokenizer.json beside it \
         if it has one"
    )]
    UnknownModel {
        /// As the file names it.
        kind: String,
    },

    /// A pre-tokeniser that is not known. Guessing would give wrong tokens without a sign of it.
    #[error(
        "the pre-tokeniser `{name}` is not known, and guessing would give wrong tokens; put the \
         model's tokenizer.json beside the model file"
    )]
    UnknownPreTokenizer {
        /// `tokenizer.ggml.pre`.
        name: String,
    },

    /// The vocabulary contradicts itself.
    #[error("the vocabulary is damaged: {reason}; fetch or convert the model again")]
    Damaged {
        /// What is wrong.
        reason: String,
    },

    /// The text holds a character for which the model has no token and no bytes.
    #[error("the model has no token for a part of the text: {part:?}; leave it out")]
    Unencodable {
        /// The piece of text that could not be encoded whole, shortened.
        part: String,
    },

    /// The tokenizer gave up on a text.
    #[error("the text cannot be split into tokens: {reason}")]
    Split {
        /// What it said.
        reason: String,
    },

    /// Our tokenizer and the device's disagree.
    #[error(
        "the tokenizer and the model library disagree on {text:?}: {ours:?} here, {device:?} \
         there; check that tokenizer.json and the model file belong to the same model"
    )]
    Mismatch {
        /// The text.
        text: String,
        /// Ids of this tokenizer.
        ours: Vec<TokenId>,
        /// Ids of the device's.
        device: Vec<TokenId>,
    },

    /// The device's tokenizer failed on a text.
    #[error("the model library could not split {text:?} into tokens")]
    DeviceFailed {
        /// The text.
        text: String,
    },
}
