//! The tokenizer of a `tokenizer.json`, and what its neighbouring files say about it.

use std::path::Path;

use serde_json::Value;
use tokenizers::tokenizer::{Model, Normalizer, OffsetReferential, OffsetType, PreTokenizer};
use tokenizers::{AddedVocabulary, NormalizedString, Tokenizer as Library};

use super::bytes::{Spelling, fallback_byte};
use super::ends::settle;
use super::tokenizer::{Built, shortened};
use super::{SpecialTokens, Token, TokenKind, VocabError, Vocabulary};
use crate::TokenId;

/// White space in a row that the patterns of these files can be trusted with: past about a
/// million their engine gives up without saying so, and the rest would be cut wrongly.
const WHITE_SPACE_RUN_MAX: usize = 500_000;

/// Encodes by a `tokenizer.json`.
pub(super) struct JsonEngine {
    library: Library,
    /// The added tokens, of which the control tokens are matched only in the first.
    parse: AddedVocabulary,
    as_text: AddedVocabulary,
    normalizes_unicode: bool,
}

impl JsonEngine {
    /// Loads the file and its neighbours.
    pub(super) fn load(path: &Path) -> Result<Built<Self>, VocabError> {
        let bad = |reason: String| VocabError::BadFile { path: path.to_owned(), reason };
        let json = std::fs::read(path)
            .map_err(|source| VocabError::Io { path: path.to_owned(), source })?;
        let library = Library::from_bytes(&json).map_err(|error| bad(error.to_string()))?;
        drop(json);
        let spelling = spelling(&library).map_err(bad)?;
        let mut tokens = tokens(&library, spelling).map_err(bad)?;
        let neighbours = Neighbours::read(path)?;
        let ends = settle(&mut tokens, &neighbours.ends(&library));
        let prefix = prefix(&library).map_err(bad)?;
        let bos = prefix.or_else(|| neighbours.bos(&library));
        let vocabulary = Vocabulary::new(tokens, &ends, bos);
        let engine = Self::new(library);
        Ok(Built { engine, vocabulary, add_bos: prefix.is_some() })
    }

    fn new(library: Library) -> Self {
        let parse = library.get_added_vocabulary().clone();
        let mut as_text = parse.clone();
        as_text.set_encode_special_tokens(true);
        let kind = part_kinds(library.get_normalizer());
        let normalizes_unicode = !kind.is_empty()
            && kind.iter().all(|kind| matches!(kind.as_str(), "NFC" | "NFKC" | "Sequence"));
        Self { library, parse, as_text, normalizes_unicode }
    }

    /// The tokens of a text.
    pub(super) fn encode(
        &self,
        text: &str,
        special: SpecialTokens,
    ) -> Result<Vec<TokenId>, VocabError> {
        if white_space_run(text) > WHITE_SPACE_RUN_MAX {
            let reason =
                format!("it holds more than {WHITE_SPACE_RUN_MAX} white-space characters in a row");
            return Err(VocabError::Split { reason });
        }
        let failed = |error: tokenizers::Error| VocabError::Split { reason: error.to_string() };
        let added = match special {
            SpecialTokens::Parse => &self.parse,
            SpecialTokens::AsText => &self.as_text,
        };
        let mut pieces = added.extract_and_normalize(self.library.get_normalizer(), text);
        if let Some(pre_tokenizer) = self.library.get_pre_tokenizer() {
            pre_tokenizer.pre_tokenize(&mut pieces).map_err(failed)?;
        }
        let model = self.library.get_model();
        let mut ids = Vec::with_capacity(text.len() / 3 + 8);
        for (piece, _, tokens) in pieces.get_splits(OffsetReferential::Normalized, OffsetType::Byte)
        {
            if let Some(tokens) = tokens {
                ids.extend(tokens.iter().map(|token| token.id));
                continue;
            }
            let tokens = model.tokenize(piece).map_err(failed)?;
            let covered: usize = tokens.iter().map(|token| token.offsets.1 - token.offsets.0).sum();
            if covered != piece.len() {
                return Err(VocabError::Unencodable { part: shortened(piece) });
            }
            ids.extend(tokens.iter().map(|token| token.id));
        }
        Ok(ids)
    }

    /// The text under the file's Unicode normalization, where it asks for one.
    pub(super) fn normalize(&self, text: &str) -> Result<String, VocabError> {
        let mut normalized = NormalizedString::from(text);
        if let Some(normalizer) = self.library.get_normalizer().filter(|_| self.normalizes_unicode)
        {
            normalizer
                .normalize(&mut normalized)
                .map_err(|error| VocabError::Split { reason: error.to_string() })?;
        }
        Ok(normalized.get().to_owned())
    }
}

/// The longest run of white space, in characters.
fn white_space_run(text: &str) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c.is_whitespace() { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// The `type` of a part of the pipeline and of every part inside of it.
fn part_kinds(part: Option<&impl serde::Serialize>) -> Vec<String> {
    fn collect(value: &Value, kinds: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                kinds.extend(fields.get("type").and_then(Value::as_str).map(str::to_owned));
                fields.values().for_each(|field| collect(field, kinds));
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, kinds)),
            _ => {}
        }
    }
    let mut kinds = Vec::new();
    if let Some(Ok(value)) = part.map(serde_json::to_value) {
        collect(&value, &mut kinds);
    }
    kinds
}

/// How the file's ordinary tokens are spelled, by its decoder.
fn spelling(library: &Library) -> Result<Spelling, String> {
    let kinds = part_kinds(library.get_decoder());
    let has = |kind: &str| kinds.iter().any(|known| known == kind);
    if has("ByteLevel") {
        Ok(Spelling::ByteLevel)
    } else if has("Metaspace") || has("ByteFallback") {
        Ok(Spelling::SentencePiece)
    } else {
        Err(format!("its decoder {kinds:?} is not supported"))
    }
}

/// Every token up to the highest id; ids that the file leaves out are unused.
fn tokens(library: &Library, spelling: Spelling) -> Result<Vec<Token>, String> {
    let vocab = library.get_vocab(true);
    let length = vocab.values().max().map_or(0, |last| *last as usize + 1);
    if length > vocab.len().saturating_mul(4).saturating_add(65_536) {
        return Err(format!("it has {} tokens but ids up to {length}", vocab.len()));
    }
    let added = library.get_added_vocabulary().get_added_tokens_decoder();
    let byte_fallback = part_kinds(library.get_decoder()).iter().any(|kind| kind == "ByteFallback");
    let mut tokens = vec![Token { bytes: Vec::new(), kind: TokenKind::Unused }; length];
    for (text, id) in &vocab {
        let Some(slot) = tokens.get_mut(*id as usize) else { continue };
        let byte = fallback_byte(text).filter(|_| byte_fallback);
        *slot = match (added.get(id), byte) {
            (Some(token), _) => Token {
                bytes: token.content.as_bytes().to_vec(),
                kind: if token.special { TokenKind::Control } else { TokenKind::UserDefined },
            },
            (None, Some(byte)) => Token { bytes: vec![byte], kind: TokenKind::Text },
            (None, None) => Token { bytes: spelling.bytes(text), kind: TokenKind::Text },
        };
        if slot.kind == TokenKind::UserDefined && spelling == Spelling::SentencePiece {
            slot.bytes = spelling.bytes(text);
        }
    }
    Ok(tokens)
}

/// The token that the file's post-processor puts before every text.
fn prefix(library: &Library) -> Result<Option<TokenId>, String> {
    let ids = |special| {
        let encoding = library.encode("a", special).map_err(|error| error.to_string())?;
        Ok::<_, String>(encoding.get_ids().to_vec())
    };
    let (bare, framed) = (ids(false)?, ids(true)?);
    Ok(framed
        .first()
        .copied()
        .filter(|first| framed.len() > bare.len() && bare.first() != Some(first)))
}

/// The optional files beside a `tokenizer.json`.
struct Neighbours {
    generation: Value,
    tokenizer: Value,
    specials: Value,
}

impl Neighbours {
    fn read(path: &Path) -> Result<Self, VocabError> {
        let read = |name: &str| {
            let path = path.with_file_name(name);
            let json = match std::fs::read(&path) {
                Ok(json) => json,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    return Ok(Value::Null);
                }
                Err(source) => return Err(VocabError::Io { path, source }),
            };
            serde_json::from_slice(&json)
                .map_err(|error| VocabError::BadFile { path, reason: error.to_string() })
        };
        Ok(Self {
            generation: read("generation_config.json")?,
            tokenizer: read("tokenizer_config.json")?,
            specials: read("special_tokens_map.json")?,
        })
    }

    fn ends(&self, library: &Library) -> Vec<TokenId> {
        let mut ends = ids_in(self.generation.get("eos_token_id"));
        ends.extend(self.by_text("eos_token", library));
        ends
    }

    fn bos(&self, library: &Library) -> Option<TokenId> {
        let named = self.by_text("bos_token", library).first().copied();
        named.or_else(|| ids_in(self.generation.get("bos_token_id")).first().copied())
    }

    /// The ids of a token that is named by its text, bare or as an object with `content`.
    fn by_text(&self, key: &str, library: &Library) -> Vec<TokenId> {
        let text = |file: &Value| {
            let value = file.get(key)?;
            let text = value.as_str().or_else(|| value.get("content")?.as_str())?;
            library.token_to_id(text)
        };
        [&self.tokenizer, &self.specials].into_iter().filter_map(text).collect()
    }
}

/// One id or a list of them.
fn ids_in(value: Option<&Value>) -> Vec<TokenId> {
    let id = |value: &Value| value.as_u64().and_then(|id| TokenId::try_from(id).ok());
    match value {
        Some(Value::Array(items)) => items.iter().filter_map(id).collect(),
        Some(value) => id(value).into_iter().collect(),
        None => Vec::new(),
    }
}
