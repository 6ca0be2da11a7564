//! The tokenizer that a GGUF file describes (`tokenizer.ggml.*`).

use std::collections::HashMap;

use rustc_hash::FxHashSet;
use tokenizers::Model;
use tokenizers::models::bpe::BPE;

use super::bytes::{Spelling, char_of_byte, fallback_byte};
use super::ends::settle;
use super::partition::{Part, Partition, Special};
use super::pretokenize::{Pattern, PreTokenizer, Splitter};
use super::sentencepiece::SentencePiece;
use super::tokenizer::{Built, shortened};
use super::{SpecialTokens, Token, TokenKind, VocabError, Vocabulary};
use crate::TokenId;
use crate::device::ggml::gguf::GgufMetadata;

const MODEL: &str = "tokenizer.ggml.model";
const PRE: &str = "tokenizer.ggml.pre";
const TOKENS: &str = "tokenizer.ggml.tokens";
const KINDS: &str = "tokenizer.ggml.token_type";
const SCORES: &str = "tokenizer.ggml.scores";
const MERGES: &str = "tokenizer.ggml.merges";
const ADD_BOS: &str = "tokenizer.ggml.add_bos_token";
const ADD_SPACE_PREFIX: &str = "tokenizer.ggml.add_space_prefix";
const BOS: &str = "tokenizer.ggml.bos_token_id";
const EOS: &str = "tokenizer.ggml.eos_token_id";
/// The keys that name a token at which an answer ends. The last three mark the borders of files in
/// code models, past which a model writes what nobody asked for.
const ENDS: [&str; 6] = [
    EOS,
    "tokenizer.ggml.eot_token_id",
    "tokenizer.ggml.eom_token_id",
    "tokenizer.ggml.fim_pad_token_id",
    "tokenizer.ggml.fim_rep_token_id",
    "tokenizer.ggml.fim_sep_token_id",
];

/// Encodes by the rules of a GGUF file.
pub(super) struct GgufEngine {
    partition: Partition,
    words: Words,
}

/// What is done to text between special tokens.
enum Words {
    /// Words are cut by patterns, spelled in the byte-level alphabet, and merged.
    ByteLevel { splitter: Splitter, merges: BPE },
    /// Lines are merged as they are, with `▁` for a space and tokens for single bytes.
    RawMerges { splitter: Splitter, merges: BPE },
    /// SentencePiece's merging by score.
    SentencePiece(SentencePiece),
}

/// The kinds of `tokenizer.ggml.token_type`, by their number in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileKind {
    Normal,
    Unknown,
    Control,
    UserDefined,
    Unused,
    Byte,
}

/// The vocabulary as the file spells it.
struct Entries<'m> {
    texts: &'m [String],
    kinds: Vec<FileKind>,
}

impl GgufEngine {
    /// Builds engine and vocabulary.
    pub(super) fn load(metadata: &GgufMetadata) -> Result<Built<Self>, VocabError> {
        let model = metadata.string(MODEL)?.ok_or(VocabError::MissingKey { key: MODEL })?;
        let entries = Entries::read(metadata)?;
        let (words, spelling, add_bos) = match model {
            "gpt2" => byte_level(metadata, &entries)?,
            "gemma4" => raw_merges(metadata, &entries)?,
            "llama" => sentence_piece(metadata, &entries)?,
            kind => return Err(VocabError::UnknownModel { kind: kind.to_owned() }),
        };
        let mut tokens = entries.tokens(spelling)?;
        let ends = settle(&mut tokens, &entries.named(metadata, model, &ENDS)?);
        let bos = entries.named(metadata, model, &[BOS])?.first().copied();
        let add_bos =
            metadata.boolean(ADD_BOS)?.unwrap_or(add_bos && bos.is_some()) || model == "gemma4";
        if add_bos && bos.is_none() {
            let reason = format!("`{ADD_BOS}` is set, but `{BOS}` names no token");
            return Err(VocabError::Damaged { reason });
        }
        let partition = Partition::new(specials(metadata, &entries, &tokens)?)?;
        let vocabulary = Vocabulary::new(tokens, &ends, bos);
        Ok(Built { engine: Self { partition, words }, vocabulary, add_bos })
    }

    /// The tokens of a text.
    pub(super) fn encode(
        &self,
        text: &str,
        special: SpecialTokens,
    ) -> Result<Vec<TokenId>, VocabError> {
        let mut ids = Vec::with_capacity(text.len() / 3 + 8);
        for part in self.partition.parts(text, special) {
            match part {
                Part::Token(id) => ids.push(id),
                Part::Text(text) => self.words.encode(text, &mut ids)?,
            }
        }
        Ok(ids)
    }
}

impl Words {
    fn encode(&self, text: &str, ids: &mut Vec<TokenId>) -> Result<(), VocabError> {
        match self {
            Self::ByteLevel { splitter, merges } => {
                let mut spelled = String::new();
                for word in splitter.split(text)? {
                    spelled.clear();
                    spelled.extend(word.bytes().map(char_of_byte));
                    merge(merges, &spelled, word, ids)?;
                }
                Ok(())
            }
            Self::RawMerges { splitter, merges } => {
                let spelled = text.replace(' ', "▁");
                for line in splitter.split(&spelled)? {
                    let newlines = line.starts_with('\n');
                    match merges.token_to_id(line).filter(|_| newlines) {
                        Some(id) => ids.push(id),
                        None => merge(merges, line, line, ids)?,
                    }
                }
                Ok(())
            }
            Self::SentencePiece(pieces) => pieces.encode(text, ids),
        }
    }
}

/// Merges one word. A character without a token would be left out by the merger, so the tokens'
/// lengths are held against the word's.
fn merge(
    merges: &BPE,
    spelled: &str,
    word: &str,
    ids: &mut Vec<TokenId>,
) -> Result<(), VocabError> {
    let tokens = merges
        .tokenize(spelled)
        .map_err(|error| VocabError::Split { reason: error.to_string() })?;
    let covered: usize = tokens.iter().map(|token| token.offsets.1 - token.offsets.0).sum();
    if covered != spelled.len() {
        return Err(VocabError::Unencodable { part: shortened(word) });
    }
    ids.extend(tokens.iter().map(|token| token.id));
    Ok(())
}

impl<'m> Entries<'m> {
    fn read(metadata: &'m GgufMetadata) -> Result<Self, VocabError> {
        let texts = metadata.strings(TOKENS)?.ok_or(VocabError::MissingKey { key: TOKENS })?;
        let kinds = match metadata.integers(KINDS)? {
            Some(numbers) if numbers.len() < texts.len() => {
                let reason = format!("{} tokens but {} kinds", texts.len(), numbers.len());
                return Err(VocabError::Damaged { reason });
            }
            Some(numbers) => numbers.iter().map(|number| FileKind::of(*number)).collect(),
            None => vec![FileKind::Normal; texts.len()],
        };
        let mut seen = FxHashSet::default();
        if let Some(twice) = texts.iter().find(|text| !seen.insert(text.as_str())) {
            return Err(VocabError::Damaged {
                reason: format!("the token {twice:?} is there twice"),
            });
        }
        Ok(Self { texts, kinds })
    }

    fn iter(&self) -> impl Iterator<Item = (&'m String, FileKind)> {
        self.texts.iter().zip(self.kinds.iter().copied())
    }

    /// Ids by text, for the merger.
    fn ids(&self) -> HashMap<String, TokenId> {
        self.texts.iter().cloned().zip(0..).collect()
    }

    /// The ids that the file names under `keys`; ids past the end are left out, as they are where
    /// a vocabulary was cut down.
    fn named(
        &self,
        metadata: &GgufMetadata,
        model: &str,
        keys: &[&str],
    ) -> Result<Vec<TokenId>, VocabError> {
        let mut ids = Vec::new();
        for key in keys {
            let default = match (model, *key) {
                ("llama", BOS) => Some(1),
                ("llama", EOS) => Some(2),
                _ => None,
            };
            ids.extend(metadata.integer::<TokenId>(key)?.or(default));
        }
        ids.retain(|id| (*id as usize) < self.texts.len());
        Ok(ids)
    }

    fn tokens(&self, spelling: Spelling) -> Result<Vec<Token>, VocabError> {
        let token = |(text, kind): (&String, FileKind)| {
            let raw = || text.as_bytes().to_vec();
            let (bytes, kind) = match kind {
                FileKind::Normal => (spelling.bytes(text), TokenKind::Text),
                FileKind::Unknown | FileKind::Control => (raw(), TokenKind::Control),
                FileKind::UserDefined => (raw(), TokenKind::UserDefined),
                FileKind::Unused => (raw(), TokenKind::Unused),
                FileKind::Byte => {
                    let byte = fallback_byte(text).ok_or_else(|| VocabError::Damaged {
                        reason: format!("the token {text:?} is marked as a byte but names none"),
                    })?;
                    (vec![byte], TokenKind::Text)
                }
            };
            Ok(Token { bytes, kind })
        };
        self.iter().map(token).collect()
    }
}

impl FileKind {
    fn of(number: i128) -> Self {
        match number {
            2 => Self::Unknown,
            3 => Self::Control,
            4 => Self::UserDefined,
            5 => Self::Unused,
            6 => Self::Byte,
            _ => Self::Normal,
        }
    }
}

/// The tokens that are matched in text before anything else, with the kinds as settled.
fn specials(
    metadata: &GgufMetadata,
    entries: &Entries<'_>,
    tokens: &[Token],
) -> Result<Vec<Special>, VocabError> {
    // Phi 3 was trained with the white space after a marker taken away; the file does not say so.
    let name = metadata.string("general.name")?.unwrap_or_default().to_ascii_lowercase();
    let strips = name.contains("phi-3") || name.contains("phi3");
    let special = |((text, token), id): ((&String, &Token), TokenId)| {
        let control = token.kind == TokenKind::Control;
        let strips_right = strips && !matches!(text.as_str(), "<unk>" | "<s>" | "<|endoftext|>");
        let special = Special { text: text.clone(), id, control, strips_right };
        (control || token.kind == TokenKind::UserDefined).then_some(special)
    };
    Ok(entries.texts.iter().zip(tokens).zip(0..).filter_map(special).collect())
}

type Parts = (Words, Spelling, bool);

fn byte_level(metadata: &GgufMetadata, entries: &Entries<'_>) -> Result<Parts, VocabError> {
    let name = metadata.string(PRE)?.ok_or(VocabError::MissingKey { key: PRE })?;
    let pre = PreTokenizer::by_name(name)?;
    let splitter = Splitter::new(pre.patterns)?;
    let merges = bpe(metadata, entries, |builder| builder.ignore_merges(pre.ignore_merges))?;
    Ok((Words::ByteLevel { splitter, merges }, Spelling::ByteLevel, pre.add_bos))
}

fn raw_merges(metadata: &GgufMetadata, entries: &Entries<'_>) -> Result<Parts, VocabError> {
    let splitter = Splitter::new(&[Pattern::Plain(r"[^\n]+|\n+")])?;
    let merges = bpe(metadata, entries, |builder| builder.byte_fallback(true))?;
    Ok((Words::RawMerges { splitter, merges }, Spelling::SentencePiece, true))
}

fn bpe(
    metadata: &GgufMetadata,
    entries: &Entries<'_>,
    options: impl FnOnce(tokenizers::models::bpe::BpeBuilder) -> tokenizers::models::bpe::BpeBuilder,
) -> Result<BPE, VocabError> {
    let lines = metadata.strings(MERGES)?.ok_or(VocabError::MissingKey { key: MERGES })?;
    let merges = lines.iter().map(|line| pair(line)).collect::<Result<Vec<_>, _>>()?;
    let vocab: tokenizers::models::bpe::Vocab = entries.ids().into_iter().collect();
    options(BPE::builder().vocab_and_merges(vocab, merges))
        .build()
        .map_err(|error| VocabError::Damaged { reason: error.to_string() })
}

/// The two halves of a merge: the space between them is the first one after the first character.
fn pair(line: &str) -> Result<(String, String), VocabError> {
    let first = line.chars().next().map_or(0, char::len_utf8);
    let space = line.get(first..).and_then(|rest| rest.find(' ')).map(|at| first + at);
    let halves = space.and_then(|at| Some((line.get(..at)?, line.get(at + 1..)?)));
    let halves = halves.filter(|(_, right)| !right.is_empty());
    halves.map(|(left, right)| (left.to_owned(), right.to_owned())).ok_or_else(|| {
        VocabError::Damaged { reason: format!("the merge {line:?} has no two halves") }
    })
}

fn sentence_piece(metadata: &GgufMetadata, entries: &Entries<'_>) -> Result<Parts, VocabError> {
    let scores = metadata.floats(SCORES)?.ok_or(VocabError::MissingKey { key: SCORES })?;
    if scores.len() < entries.texts.len() {
        let reason = format!("{} tokens but {} scores", entries.texts.len(), scores.len());
        return Err(VocabError::Damaged { reason });
    }
    let mut bytes = Box::new([None; 256]);
    for (id, (text, kind)) in (0..).zip(entries.iter()) {
        let byte = fallback_byte(text).filter(|_| kind == FileKind::Byte);
        if let Some(slot) = byte.and_then(|byte| bytes.get_mut(usize::from(byte))) {
            *slot = Some(id);
        }
    }
    let pieces = entries.texts.iter().map(String::as_str).zip(scores.iter().map(|s| *s as f32));
    let prefix = metadata.boolean(ADD_SPACE_PREFIX)?.unwrap_or(true);
    let pieces = SentencePiece::new(pieces, bytes, prefix);
    Ok((Words::SentencePiece(pieces), Spelling::SentencePiece, true))
}
