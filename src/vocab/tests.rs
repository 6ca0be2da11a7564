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
fn differences(ours: &Tokenizer, library: &LibraryTokenizer, special: SpecialTokens) -> Vec<String> {
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
    let skipped = texts()
        .iter()
        .filter(|text| tokenizer.encode(text, SpecialTokens::Parse).is_err())
        .count();
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
            wrong.push(format!("{name}: {} {}", found.len(), found[..found.len().min(6)].join("\n    ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
