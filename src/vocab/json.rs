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
        check_declared_ids(&json, &library).map_err(bad)?;
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

/// The library numbers added tokens by itself and passes over the numbers in the file, so a file
/// with holes before them would give wrong ids without a sign of it.
fn check_declared_ids(json: &[u8], library: &Library) -> Result<(), String> {
    #[derive(serde::Deserialize)]
    struct Declared {
        added_tokens: Vec<Added>,
    }
    #[derive(serde::Deserialize)]
    struct Added {
        id: TokenId,
        content: String,
    }
    let declared: Declared = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    for Added { id, content } in declared.added_tokens {
        let numbered = library.token_to_id(&content);
        if numbered != Some(id) {
            return Err(format!(
                "its added token {content:?} has the id {id}, but would get {numbered:?}"
            ));
        }
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tempfile::TempDir;

    use super::super::Tokenizer;
    use super::*;

    fn added(id: u32, content: &str, special: bool) -> Value {
        json!({
            "id": id, "content": content, "special": special,
            "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
        })
    }

    /// A byte-level tokenizer of a few tokens, with holes at ids 3, 7 and 8.
    fn byte_level() -> Value {
        json!({
            "version": "1.0",
            "added_tokens": [added(4, "<tool>", false), added(5, "<|eot_id|>", true), added(6, "<b>", true)],
            "pre_tokenizer": { "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true },
            "decoder": { "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true },
            "model": { "type": "BPE", "vocab": { "a": 0, "Ġ": 1, "Ġa": 2, "Ã": 9 }, "merges": ["Ġ a"] },
        })
    }

    /// A SentencePiece model as converted to merges.
    fn sentence_piece() -> Value {
        json!({
            "version": "1.0",
            "added_tokens": [added(0, "<unk>", true), added(1, "<s>", true), added(6, "▁▁", false)],
            "normalizer": { "type": "Replace", "pattern": { "String": " " }, "content": "▁" },
            "post_processor": {
                "type": "TemplateProcessing",
                "single": [{ "SpecialToken": { "id": "<s>", "type_id": 0 } }, { "Sequence": { "id": "A", "type_id": 0 } }],
                "pair": [{ "Sequence": { "id": "A", "type_id": 0 } }, { "Sequence": { "id": "B", "type_id": 1 } }],
                "special_tokens": { "<s>": { "id": "<s>", "ids": [1], "tokens": ["<s>"] } },
            },
            "decoder": { "type": "Sequence", "decoders": [
                { "type": "Replace", "pattern": { "String": "▁" }, "content": " " },
                { "type": "ByteFallback" },
                { "type": "Fuse" },
            ] },
            "model": {
                "type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true,
                "vocab": { "<unk>": 0, "<s>": 1, "<0x0A>": 2, "a": 3, "▁": 4, "▁a": 5, "▁▁": 6 },
                "merges": ["▁ a"],
            },
        })
    }

    fn load(tokenizer: &Value, neighbours: &[(&str, Value)]) -> Result<Tokenizer, VocabError> {
        let folder = TempDir::new().expect("temporary folder");
        let path = folder.path().join("tokenizer.json");
        std::fs::write(&path, tokenizer.to_string()).expect("writes");
        for (name, content) in neighbours {
            std::fs::write(folder.path().join(name), content.to_string()).expect("writes");
        }
        Tokenizer::from_json_file(&path)
    }

    #[test]
    fn kinds_bytes_and_holes_are_read() {
        let tokenizer = load(&byte_level(), &[]).expect("loads");
        let vocabulary = tokenizer.vocabulary();
        assert_eq!(vocabulary.len(), 10);
        assert_eq!(vocabulary.text_bytes(2), b" a");
        assert_eq!(vocabulary.text_bytes(9), [0xc3]);
        let kinds = [4, 7, 5].map(|id| vocabulary.get(id).expect("there").kind);
        assert_eq!(kinds, [TokenKind::UserDefined, TokenKind::Unused, TokenKind::Control]);
        assert_eq!(vocabulary.end_tokens(), [5]);
        assert_eq!((tokenizer.bos(), tokenizer.add_bos()), (None, false));
        let encode = |special| tokenizer.encode("a a<tool><b>", special);
        assert_eq!(encode(SpecialTokens::Parse).expect("encodes"), [0, 2, 4, 6]);
        assert!(matches!(encode(SpecialTokens::AsText), Err(VocabError::Unencodable { .. })));
        assert_eq!(tokenizer.encode("", SpecialTokens::Parse).expect("encodes"), [0; 0]);
    }

    #[test]
    fn sentence_pieces_are_read() {
        let tokenizer = load(&sentence_piece(), &[]).expect("loads");
        assert_eq!((tokenizer.bos(), tokenizer.add_bos()), (Some(1), true));
        let ids = tokenizer.encode(" a\n", SpecialTokens::Parse).expect("encodes");
        assert_eq!(ids, [5, 2]);
        assert_eq!(tokenizer.decode_bytes(&ids), b" a\n");
        assert_eq!(tokenizer.vocabulary().text_bytes(6), b"  ");
    }

    #[test]
    fn neighbouring_files_name_ends_and_bos() {
        let neighbours = [
            ("generation_config.json", json!({ "eos_token_id": [0, 99], "bos_token_id": 1 })),
            ("tokenizer_config.json", json!({ "eos_token": { "content": "<b>" } })),
            ("special_tokens_map.json", json!({ "eos_token": "<tool>", "bos_token": "<b>" })),
        ];
        let tokenizer = load(&byte_level(), &neighbours).expect("loads");
        assert_eq!(tokenizer.vocabulary().end_tokens(), [0, 4, 5, 6]);
        assert_eq!((tokenizer.bos(), tokenizer.add_bos()), (Some(6), false));
        let broken = [("generation_config.json", Value::Null)];
        assert!(load(&byte_level(), &broken).is_ok(), "an empty neighbour says nothing");
        let folder = TempDir::new().expect("temporary folder");
        let path = folder.path().join("tokenizer.json");
        std::fs::write(&path, byte_level().to_string()).expect("writes");
        std::fs::write(folder.path().join("tokenizer_config.json"), "{").expect("writes");
        let error = Tokenizer::from_json_file(&path).expect_err("refused");
        assert!(error.to_string().contains("tokenizer_config.json"), "{error}");
    }

    #[test]
    fn what_is_not_usable_is_refused() {
        let mut word_piece = byte_level();
        word_piece["decoder"] = json!({ "type": "WordPiece", "prefix": "##", "cleanup": true });
        let error = load(&word_piece, &[]).expect_err("refused");
        assert!(error.to_string().contains("WordPiece"), "{error}");
        let mut shifted = byte_level();
        shifted["added_tokens"][2]["id"] = json!(7);
        let error = load(&shifted, &[]).expect_err("refused");
        assert!(error.to_string().contains("\"<b>\" has the id 7"), "{error}");
        let mut far = byte_level();
        far["model"]["vocab"]["z"] = json!(4_000_000_000u32);
        assert!(matches!(load(&far, &[]), Err(VocabError::BadFile { .. })));
        assert!(matches!(load(&json!([]), &[]), Err(VocabError::BadFile { .. })));
        let missing = Tokenizer::from_json_file(Path::new("/no/such/tokenizer.json"));
        assert!(matches!(missing, Err(VocabError::Io { .. })));
    }

    #[test]
    fn an_endless_run_of_white_space_is_refused_before_it_is_cut_wrongly() {
        let tokenizer = load(&byte_level(), &[]).expect("loads");
        let run = |length| format!("{}a", " ".repeat(length));
        let ids = tokenizer.encode(&run(3), SpecialTokens::Parse).expect("encodes");
        assert_eq!(ids, [1, 1, 2]);
        let error = tokenizer.encode(&run(WHITE_SPACE_RUN_MAX + 1), SpecialTokens::Parse);
        assert!(matches!(error, Err(VocabError::Split { .. })));
    }
}
