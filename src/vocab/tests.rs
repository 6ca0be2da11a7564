//! The tokenizer against the model library's own, and against real `tokenizer.json` files.

use std::path::Path;

use tempfile::TempDir;

use super::pretokenize::PreTokenizer;
use super::selftest::{compare, texts};
use super::*;
use crate::TokenId;
use crate::device::ggml::gguf::testing::{
    Edit, LibraryTokenizer, model_path, rewrite, shared_path,
};
use crate::device::ggml::gguf::{GgufMetadata, GgufValue};

/// One name for each way of cutting words.
const PRE_TOKENIZERS: [&str; 25] = [
    "default",
    "llama-bpe",
    "dbrx",
    "glm4",
    "minicpm5",
    "jais-2",
    "qwen2",
    "qwen35",
    "ufakzeka",
    "laguna",
    "gpt-2",
    "starcoder",
    "falcon",
    "bloom",
    "viking",
    "tekken",
    "gpt-4o",
    "granite-embed-multi-97m",
    "deepseek-llm",
    "deepseek-coder",
    "deepseek-v3",
    "spark2_5",
    "bailingmoe",
    "seed-coder",
    "exaone-moe",
];

fn load(path: &Path) -> (Tokenizer, LibraryTokenizer) {
    let metadata = GgufMetadata::read(path).expect("reads");
    let tokenizer = Tokenizer::from_gguf(&metadata).expect("builds");
    (tokenizer, LibraryTokenizer::load(path).expect("the library loads it"))
}

/// How many of the texts differ, and a report on the first few.
fn differences(
    ours: &Tokenizer,
    library: &LibraryTokenizer,
    special: SpecialTokens,
) -> Vec<String> {
    let mut found = Vec::new();
    for text in texts() {
        let device = library.tokenize(&text, special == SpecialTokens::Parse).expect("tokenizes");
        match ours.encode(&text, special) {
            Ok(ids) if ids == device => {}
            Ok(ids) => {
                let pieces = |ids: &[TokenId]| -> Vec<String> {
                    let piece = |id: &TokenId| {
                        String::from_utf8_lossy(&ours.decode_bytes(&[*id])).into_owned()
                    };
                    ids.iter().map(piece).collect()
                };
                let at = ids.iter().zip(&device).take_while(|(a, b)| a == b).count();
                let near = |ids: &[TokenId]| {
                    pieces(&ids[at.saturating_sub(2).min(ids.len())..ids.len().min(at + 6)])
                };
                found.push(format!("{:?} | {:?}", near(&ids), near(&device)));
            }
            Err(VocabError::Unencodable { .. }) => {}
            Err(error) => found.push(error.to_string()),
        }
    }
    found
}

#[test]
fn the_real_model_agrees_with_its_library() {
    let Some(path) = model_path() else { return };
    let (tokenizer, library) = load(&path);
    compare(&tokenizer, |text| library.tokenize(text, true)).expect("agrees");
    assert_eq!(differences(&tokenizer, &library, SpecialTokens::AsText), Vec::<String>::new());
    let skipped =
        texts().iter().filter(|text| tokenizer.encode(text, SpecialTokens::Parse).is_err()).count();
    println!("{} texts, {skipped} cannot be spelled", texts().len());

    let vocabulary = tokenizer.vocabulary();
    assert_eq!(vocabulary.len(), 49_152);
    for id in 0..49_152 {
        assert_eq!(vocabulary.is_end(id), library.is_end(id), "token {id}");
    }
    assert_eq!(vocabulary.bytes(vocabulary.end_tokens()[0]), b"<|endoftext|>");
    assert!(!tokenizer.add_bos());
    assert_eq!(tokenizer.bos(), Some(1));
}

#[test]
fn every_pre_tokenizer_agrees_with_the_library() {
    let Some(path) = model_path() else { return };
    let folder = TempDir::new().expect("temporary folder");
    let target = folder.path().join("vocabulary.gguf");
    let mut wrong = Vec::new();
    for name in PRE_TOKENIZERS {
        assert!(PreTokenizer::by_name(name).is_ok(), "{name} is known");
        rewrite(&path, &target, &[Edit::Text("tokenizer.ggml.pre", name)]);
        let (tokenizer, library) = load(&target);
        let found = differences(&tokenizer, &library, SpecialTokens::Parse);
        if !found.is_empty() {
            wrong.push(format!(
                "{name}: {} {}",
                found.len(),
                found[..found.len().min(6)].join("\n    ")
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What a converter would write for a byte-level `tokenizer.json`.
struct Converted {
    tokens: Vec<String>,
    kinds: Vec<i32>,
    merges: Vec<String>,
}

impl Converted {
    fn of(json: &Path) -> Self {
        let json = std::fs::read(json).expect("reads");
        let json: serde_json::Value = serde_json::from_slice(&json).expect("parses");
        let mut tokens: Vec<(u64, String, i32)> = Vec::new();
        for (text, id) in json["model"]["vocab"].as_object().expect("a vocabulary") {
            tokens.push((id.as_u64().expect("an id"), text.clone(), 1));
        }
        for added in json["added_tokens"].as_array().expect("a list") {
            let kind = if added["special"] == true { 3 } else { 4 };
            let text = added["content"].as_str().expect("text").to_owned();
            tokens.push((added["id"].as_u64().expect("an id"), text, kind));
        }
        tokens.sort();
        assert!(tokens.iter().zip(0..).all(|((id, ..), index)| *id == index), "no holes");
        let merge = |merge: &serde_json::Value| match merge.as_array() {
            Some(halves) => {
                let half = |half: &serde_json::Value| half.as_str().expect("text").to_owned();
                halves.iter().map(half).collect::<Vec<_>>().join(" ")
            }
            None => merge.as_str().expect("text").to_owned(),
        };
        let merges = json["model"]["merges"].as_array().expect("merges").iter().map(merge);
        Self {
            kinds: tokens.iter().map(|(_, _, kind)| *kind).collect(),
            merges: merges.collect(),
            tokens: tokens.into_iter().map(|(_, text, _)| text).collect(),
        }
    }

    fn metadata(&self, pre: &str) -> GgufMetadata {
        let kinds = self.kinds.iter().map(|kind| i128::from(*kind)).collect();
        GgufMetadata::from_values([
            ("tokenizer.ggml.model".to_owned(), GgufValue::String("gpt2".to_owned())),
            ("tokenizer.ggml.pre".to_owned(), GgufValue::String(pre.to_owned())),
            ("tokenizer.ggml.tokens".to_owned(), GgufValue::Strings(self.tokens.clone())),
            ("tokenizer.ggml.token_type".to_owned(), GgufValue::Integers(kinds)),
            ("tokenizer.ggml.merges".to_owned(), GgufValue::Strings(self.merges.clone())),
            ("tokenizer.ggml.bos_token_id".to_owned(), GgufValue::Integer(128_000)),
        ])
    }
}

fn assert_json_equals_gguf(name: &str, pre: &str) -> Option<(Tokenizer, Tokenizer)> {
    let path = shared_path(&format!("data/tokenizers/{name}/tokenizer.json"))?;
    let json = Tokenizer::from_json_file(&path).expect("builds");
    let gguf = Tokenizer::from_gguf(&Converted::of(&path).metadata(pre)).expect("builds");
    for text in texts() {
        let text = json.normalize(&text).expect("normalizes");
        for special in [SpecialTokens::Parse, SpecialTokens::AsText] {
            let ids = json.encode(&text, special).expect("encodes");
            assert_eq!(ids, gguf.encode(&text, special).expect("encodes"), "{text:?}");
            assert_eq!(json.decode_bytes(&ids), text.as_bytes());
        }
    }
    let (ours, theirs) = (json.vocabulary(), gguf.vocabulary());
    assert_eq!(ours.len(), theirs.len());
    assert_eq!(ours.end_tokens(), theirs.end_tokens());
    for id in 0..TokenId::try_from(ours.len()).expect("fits") {
        assert_eq!(ours.get(id), theirs.get(id));
    }
    Some((json, gguf))
}

#[test]
fn llama_3_is_the_same_from_json_and_from_gguf() {
    let Some((json, gguf)) = assert_json_equals_gguf("llama3_1", "llama-bpe") else { return };
    assert!(json.add_bos() && gguf.add_bos());
    assert_eq!((json.bos(), gguf.bos()), (Some(128_000), Some(128_000)));
    let ends = ["<|end_of_text|>", "<|eot_id|>"];
    let vocabulary = json.vocabulary();
    let names = vocabulary.end_tokens().iter().map(|id| vocabulary.bytes(*id));
    assert_eq!(names.collect::<Vec<_>>(), ends.map(str::as_bytes));
}

#[test]
fn qwen_3_is_the_same_from_json_and_from_gguf() {
    let Some((json, _)) = assert_json_equals_gguf("qwen3", "qwen2") else { return };
    assert!(!json.add_bos());
    assert_eq!(json.bos(), None);
    let vocabulary = json.vocabulary();
    assert!(vocabulary.is_end(151_645) && vocabulary.is_end(151_643));
    assert_eq!(vocabulary.get(151_657).map(|token| token.kind), Some(TokenKind::UserDefined));
    assert_eq!(vocabulary.text_bytes(151_657), b"<tool_call>");
    let as_text = json.encode("<|im_end|><think>", SpecialTokens::AsText).expect("encodes");
    assert_eq!(vocabulary.bytes(128_247), b"</s>");
    assert!(!vocabulary.is_end(128_247));
    assert!(!as_text.contains(&151_645) && as_text.contains(&151_667));
    assert_eq!(json.normalize("e\u{301}").expect("normalizes"), "é");
}

#[test]
fn real_multilingual_vocabularies_agree_with_the_library() {
    let Some(path) = model_path() else { return };
    let folder = TempDir::new().expect("temporary folder");
    let target = folder.path().join("vocabulary.gguf");
    for (name, pre) in [("llama3_1", "llama-bpe"), ("llama3_1", "gpt-4o"), ("qwen3", "qwen2")] {
        let Some(json) = shared_path(&format!("data/tokenizers/{name}/tokenizer.json")) else {
            return;
        };
        let Converted { tokens, kinds, merges } = Converted::of(&json);
        let size = u32::try_from(tokens.len()).expect("fits");
        let edits = [
            Edit::Text("tokenizer.ggml.pre", pre),
            Edit::Texts("tokenizer.ggml.tokens", tokens),
            Edit::Ints("tokenizer.ggml.token_type", kinds),
            Edit::Texts("tokenizer.ggml.merges", merges),
            Edit::Number("llama.vocab_size", size),
        ];
        rewrite(&path, &target, &edits);
        let (tokenizer, library) = load(&target);
        compare(&tokenizer, |text| library.tokenize(text, true)).expect("agrees");
        let json = Tokenizer::from_json_file(&json).expect("builds");
        if pre != "gpt-4o" {
            compare(&json, |text| library.tokenize(text, true)).expect("agrees");
        }
    }
}

/// The real model's tokens as text with `▁` for a space, after the special tokens of a
/// SentencePiece model and one token for each byte.
fn sentence_pieces(model: &Path) -> (Vec<String>, Vec<i32>) {
    let vocabulary = Tokenizer::from_gguf(&GgufMetadata::read(model).expect("reads"))
        .expect("builds")
        .vocabulary();
    let mut texts = ["<unk>", "<s>", "</s>", "<|endoftext|>"].map(str::to_owned).to_vec();
    let mut kinds = vec![2, 3, 3, 3];
    texts.extend((0..=255u8).map(|byte| format!("<0x{byte:02X}>")));
    kinds.resize(texts.len(), 6);
    let mut seen: std::collections::HashSet<String> = texts.iter().cloned().collect();
    for id in 0..TokenId::try_from(vocabulary.len()).expect("fits") {
        let Ok(text) = std::str::from_utf8(vocabulary.text_bytes(id)) else { continue };
        let text = text.replace(' ', "▁");
        if !text.is_empty() && !text.contains('\0') && seen.insert(text.clone()) {
            texts.push(text);
            kinds.push(1);
        }
    }
    texts.push("<turn>".to_owned());
    kinds.push(4);
    (texts, kinds)
}

#[test]
fn sentence_piece_agrees_with_the_library() {
    let Some(path) = model_path() else { return };
    let folder = TempDir::new().expect("temporary folder");
    let target = folder.path().join("vocabulary.gguf");
    let (texts, kinds) = sentence_pieces(&path);
    // Scores with ties, as they are where several pieces are equally good.
    let scores = (0..texts.len()).map(|index| -((index / 3) as f32)).collect();
    for name in ["any", "phi-3"] {
        let edits = [
            Edit::Text("general.name", name),
            Edit::Text("tokenizer.ggml.model", "llama"),
            Edit::Texts("tokenizer.ggml.tokens", texts.clone()),
            Edit::Ints("tokenizer.ggml.token_type", kinds.clone()),
            Edit::Floats("tokenizer.ggml.scores", Vec::clone(&scores)),
            Edit::Number("tokenizer.ggml.eos_token_id", 2),
            Edit::Remove("tokenizer.ggml.add_bos_token"),
            Edit::Remove("tokenizer.ggml.add_space_prefix"),
        ];
        rewrite(&path, &target, &edits);
        let (tokenizer, library) = load(&target);
        assert!(tokenizer.add_bos());
        for special in [SpecialTokens::Parse, SpecialTokens::AsText] {
            assert_eq!(differences(&tokenizer, &library, special), [""; 0], "{name} {special:?}");
        }
        for text in ["<turn> a", "x<turn>\n\n y</s> \t<s> z", "<turn>"] {
            let ids = tokenizer.encode(text, SpecialTokens::Parse).expect("encodes");
            assert_eq!(Some(ids), library.tokenize(text, true), "{name}: {text:?}");
        }
        let ids = tokenizer.encode("naïve 漢\u{1f9ff}\n", SpecialTokens::Parse).expect("encodes");
        assert_eq!(tokenizer.decode_bytes(&ids), " naïve 漢\u{1f9ff}\n".as_bytes());
    }
}

#[test]
fn gemma_4_agrees_with_the_library() {
    let Some(path) = model_path() else { return };
    let folder = TempDir::new().expect("temporary folder");
    let target = folder.path().join("vocabulary.gguf");
    let (texts, kinds) = sentence_pieces(&path);
    let known: std::collections::HashSet<&str> = texts.iter().map(String::as_str).collect();
    let mut merges = Vec::new();
    for text in texts.iter().filter(|text| !text.starts_with('<')) {
        let cuts = text.char_indices().skip(1).map(|(at, _)| text.split_at(at));
        let known = |(left, right): &(&str, &str)| known.contains(left) && known.contains(right);
        merges.extend(cuts.filter(known).map(|(left, right)| format!("{left} {right}")));
    }
    let edits = [
        Edit::Text("tokenizer.ggml.model", "gemma4"),
        Edit::Texts("tokenizer.ggml.tokens", texts.clone()),
        Edit::Ints("tokenizer.ggml.token_type", kinds),
        Edit::Texts("tokenizer.ggml.merges", merges),
    ];
    rewrite(&path, &target, &edits);
    let (tokenizer, library) = load(&target);
    assert_eq!(differences(&tokenizer, &library, SpecialTokens::Parse), [""; 0]);
    let text = "a  b\n\n\n\tc 漢字🧿";
    let ids = tokenizer.encode(text, SpecialTokens::Parse).expect("encodes");
    assert_eq!(tokenizer.decode_bytes(&ids), text.as_bytes());
}

fn metadata_with(changes: &[(&str, GgufValue)]) -> GgufMetadata {
    let text = |text: &str| GgufValue::String(text.to_owned());
    let texts =
        |texts: &[&str]| GgufValue::Strings(texts.iter().map(|t| (*t).to_owned()).collect());
    let mut values = std::collections::BTreeMap::from([
        ("tokenizer.ggml.model".to_owned(), text("gpt2")),
        ("tokenizer.ggml.pre".to_owned(), text("gpt-2")),
        ("tokenizer.ggml.tokens".to_owned(), texts(&["a", "b", "ab", "<|im_end|>"])),
        ("tokenizer.ggml.token_type".to_owned(), GgufValue::Integers(vec![1, 1, 1, 3])),
        ("tokenizer.ggml.merges".to_owned(), texts(&["a b"])),
    ]);
    values.extend(changes.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
    GgufMetadata::from_values(values)
}

#[test]
fn a_vocabulary_that_is_not_known_is_refused_by_name() {
    let refused = |changes: &[(&str, GgufValue)]| {
        Tokenizer::from_gguf(&metadata_with(changes)).expect_err("refused").to_string()
    };
    let text = |text: &str| GgufValue::String(text.to_owned());
    let texts =
        |texts: &[&str]| GgufValue::Strings(texts.iter().map(|t| (*t).to_owned()).collect());
    assert!(refused(&[("tokenizer.ggml.pre", text("next-year"))]).contains("`next-year`"));
    assert!(refused(&[("tokenizer.ggml.model", text("rwkv"))]).contains("`rwkv`"));
    assert!(refused(&[("tokenizer.ggml.tokens", texts(&["a", "a"]))]).contains("twice"));
    assert!(
        refused(&[("tokenizer.ggml.token_type", GgufValue::Integers(vec![1]))]).contains("kinds")
    );
    assert!(refused(&[("tokenizer.ggml.merges", texts(&["ab"]))]).contains("halves"));
    assert!(refused(&[("tokenizer.ggml.merges", texts(&["a x"]))]).contains("damaged"));
    assert!(refused(&[("tokenizer.ggml.add_bos_token", GgufValue::Bool(true))]).contains("bos"));
    assert!(refused(&[("tokenizer.ggml.tokens", text("a"))]).contains("array of text"));
    let missing = Tokenizer::from_gguf(&GgufMetadata::from_values([])).expect_err("refused");
    assert!(matches!(missing, VocabError::MissingKey { key: "tokenizer.ggml.model" }));
}

#[test]
fn what_the_vocabulary_cannot_spell_is_an_error_not_silence() {
    let tokenizer = Tokenizer::from_gguf(&metadata_with(&[])).expect("builds");
    let encode = |text| tokenizer.encode(text, SpecialTokens::Parse);
    assert_eq!(encode("abab<|im_end|>").expect("encodes"), [2, 2, 3]);
    let error = encode("abc").expect_err("no token for c");
    assert!(error.to_string().contains("\"abc\""), "{error}");
    assert!(tokenizer.encode("<|im_end|>", SpecialTokens::AsText).is_err());
}

#[test]
fn a_difference_names_the_text_and_both_lists() {
    let Some(path) = shared_path("data/tokenizers/qwen3/tokenizer.json") else { return };
    let tokenizer = Tokenizer::from_json_file(&path).expect("builds");
    let encode = |text: &str| tokenizer.encode(text, SpecialTokens::Parse).ok();
    compare(&tokenizer, encode).expect("agrees with itself");
    let wrong = |text: &str| match text {
        "a" => Some(vec![7, 8]),
        text => encode(text),
    };
    let error = compare(&tokenizer, wrong).expect_err("differs").to_string();
    assert!(
        error.contains("\"a\"") && error.contains("[64]") && error.contains("[7, 8]"),
        "{error}"
    );
    assert!(matches!(compare(&tokenizer, |_| None), Err(VocabError::DeviceFailed { .. })));
}

#[test]
fn a_tokenizer_is_shared_between_threads() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Tokenizer>();
    shared::<VocabError>();
    shared::<TextAssembler>();
}
