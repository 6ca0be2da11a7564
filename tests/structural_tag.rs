//! Free text with triggers: what is allowed, what a mask costs, and how answers end in time.

// Helpers of tests count as tests.
#![allow(clippy::unwrap_used)]

mod grammar_support;

use std::path::PathBuf;
use std::sync::Arc;

use grammar_support::{
    allowed, compile, end_token, try_compile, vocabulary_of, vocabulary_without,
};
use pleach::TokenId;
use pleach::grammar::json_schema::SchemaOptions;
use pleach::grammar::structural_tag::{FreeEnd, FreePart, FreeTextTag};
use pleach::grammar::{
    CompiledGrammar, Fuel, GrammarError, GrammarSource, GrammarVocabulary, StructuralTag,
};
use pleach::vocab::Tokenizer;

fn source(tag: StructuralTag) -> GrammarSource {
    GrammarSource::StructuralTag(Arc::new(tag))
}

fn part(trigger: &str, rest: &str, at_start: bool, goes_on: bool) -> FreePart {
    let rest = StructuralTag::text(rest);
    FreePart { trigger: trigger.to_owned(), at_start, rest, goes_on }
}

fn free(parts: Vec<FreePart>, excluded: &[&str], end: FreeEnd) -> StructuralTag {
    let excluded = excluded.iter().map(|text| (*text).to_owned()).collect();
    StructuralTag::FreeText(FreeTextTag { parts, excluded, marks: Vec::new(), end })
}

fn accepts(grammar: &Arc<CompiledGrammar>, text: &[u8]) -> bool {
    let mut matcher = grammar.matcher();
    text.iter().all(|&byte| matcher.accept(byte.into()).is_ok()) && matcher.is_complete()
}

/// The same by its definition: the first trigger that is complete decides.
fn is_free_text(mut text: &[u8], excluded: &[&str], trigger: &str, rest: &str) -> bool {
    loop {
        let first = (0..=text.len()).find_map(|end| {
            let ends = |it: &&&str| text[..end].ends_with(it.as_bytes());
            let banned = excluded.iter().any(|it| ends(&it));
            (banned || ends(&&trigger)).then_some((end, banned && !ends(&&trigger)))
        });
        match first {
            None => return true,
            Some((_, true)) => return false,
            Some((end, false)) => match text[end..].strip_prefix(rest.as_bytes()) {
                Some(after) => text = after,
                None => return false,
            },
        }
    }
}

#[test]
fn free_text_is_what_its_definition_says() {
    let vocabulary = vocabulary_of(&["<t>", "t>", "<<t", "x<", "</", "ab", "<t>a"]);
    let (excluded, trigger, rest) = (["</", "t<<"], "<t>", "ab");
    let tag = free(vec![part(trigger, rest, false, true)], &excluded, FreeEnd::Anywhere);
    let grammar = compile(&source(tag), &vocabulary);
    let mut rng = fastrand::Rng::with_seed(7);
    let mut accepted = 0;
    for _ in 0..3_000 {
        let letters = b"<t>/ab<t\xFF";
        let text: Vec<u8> = (0..rng.usize(..9)).map(|_| letters[rng.usize(..8)]).collect();
        let expected = is_free_text(&text, &excluded, trigger, rest);
        assert_eq!(accepts(&grammar, &text), expected, "{:?}", String::from_utf8_lossy(&text));
        accepted += usize::from(expected);
        // Masks and tokens agree wherever the text may go on.
        let mut matcher = grammar.matcher();
        if text.iter().all(|&byte| matcher.accept(byte.into()).is_ok()) {
            let mask = allowed(&mut matcher);
            for token in 0..vocabulary.len() as TokenId {
                let taken = matcher.fork().accept(token).is_ok();
                assert_eq!(mask.contains(&token), taken, "{token} after {text:?}");
            }
        }
    }
    assert!(accepted > 500);
}

#[test]
fn free_text_ends_where_it_says() {
    let words = ["<t>"];
    let vocabulary = vocabulary_of(&words);
    let ends = |tag: StructuralTag, texts: &[(&str, bool)]| {
        let grammar = compile(&source(tag), &vocabulary);
        for (text, complete) in texts {
            assert_eq!(accepts(&grammar, text.as_bytes()), *complete, "{text}");
        }
    };
    let again = || vec![part("<t>", "a", false, true)];
    ends(free(again(), &[], FreeEnd::AfterFirst), &[("", false), ("x<t>a", true), ("<t>ay", true)]);
    let once = || vec![part("<t>", "a", false, false)];
    ends(free(once(), &[], FreeEnd::WithPart), &[("x", false), ("x<t>a", true), ("<t>ay", false)]);
    let start = vec![part("[", "a]", true, true), part("<t>", "", false, true)];
    ends(
        free(start, &[], FreeEnd::Anywhere),
        &[("[b", false), (" \n[a]", true), ("x [b", true), ("[a] [b", false), ("<t> [b", false)],
    );
    let repeated = free(again(), &[], FreeEnd::Anywhere);
    let twice = StructuralTag::Repeat { body: Box::new(repeated), min: 2, max: Some(40) };
    ends(twice, &[("", true), ("x", true), ("x<t>a", true)]);
}

/// A control token that is a marker is taken as the token and as its letters.
#[test]
fn markers_are_tokens_or_letters() {
    let words = ["ab"];
    let vocabulary = vocabulary_of(&words);
    let extra = vocabulary.token_by_name(b"<extra>").unwrap();
    let tag = free(vec![part("<extra>", "ab<extra>", false, false)], &[], FreeEnd::WithPart);
    let grammar = compile(&source(tag), &vocabulary);
    let mut by_token = grammar.matcher();
    for token in [u32::from(b'x'), extra, 256, extra] {
        assert!(allowed(&mut by_token).contains(&token));
        by_token.accept(token).unwrap();
    }
    assert!(by_token.is_complete());
    assert!(accepts(&grammar, b"x<extra>ab<extra>"));
    let mut halves = grammar.matcher();
    for token in [u32::from(b'<'), u32::from(b'e'), extra] {
        halves.accept(token).unwrap();
    }
    assert_eq!(allowed(&mut halves), [u32::from(b'a'), 256], "a marker counts wherever it stands");
    // Where it is no marker, it is no text either.
    let plain = compile(&source(free(Vec::new(), &[], FreeEnd::Anywhere)), &vocabulary);
    assert!(!allowed(&mut plain.matcher()).contains(&extra));
    assert!(allowed(&mut plain.matcher()).contains(&end_token(&words)));
}

#[test]
fn what_is_wrong_in_a_part_says_where_it_comes_from() {
    let vocabulary = vocabulary_of(&[]);
    let text = r#"{"format": {"type": "sequence", "elements": [{"type": "const_string", "value": "a"},
        {"type": "json_schema", "json_schema": {"type": "array", "uniqueItems": true}}]}}"#;
    let tag = StructuralTag::read(text, "r", SchemaOptions::default()).unwrap();
    let Err(GrammarError::Within { place, error }) = try_compile(&source(tag), &vocabulary) else {
        panic!("a schema that cannot be followed compiles");
    };
    assert_eq!(place, "r.format.elements[1].json_schema");
    assert!(error.to_string().contains("uniqueItems"), "{error}");
}

/// Near the end of a budget only what can still be finished is begun, and text may go on.
#[test]
fn a_part_is_only_begun_while_there_is_room_for_it() {
    let words = ["<t>", "<t>abcdefgh"];
    let vocabulary = vocabulary_of(&words);
    let tag = free(vec![part("<t>", "abcdefgh", false, true)], &[], FreeEnd::Anywhere);
    let grammar = compile(&source(tag), &vocabulary);
    let mut bits = vec![0; vocabulary.mask_words()];
    let mut may = |left: u32, token: TokenId| {
        grammar.matcher().fill_mask_within(left, &mut bits).unwrap();
        bits[token as usize / 32] >> (token % 32) & 1 == 1
    };
    assert!(
        may(1, b'x'.into()) && may(1, 257) && may(9, 256) && !may(8, 256) && may(8, b'<'.into())
    );
    assert!(may(0, end_token(&words)));
    assert!(!may(0, b'x'.into()) && !may(0, 257));
}

/// Vocabularies often lack bytes that no text holds: near and far from the end of a budget a mask of
/// free text then costs no more than where every byte is a token, and is the same.
#[test]
fn bytes_that_are_no_tokens_do_not_make_free_text_dear() {
    let words: Vec<String> = (0..4_000).map(|word| format!("w{word:x}")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).chain(["<t>", "<t>ab"]).collect();
    let missing = [0x04, 0x16, 0xC0, 0xC1, 0xF1, 0xF2, 0xFF];
    let tag = || {
        let rest = r#"{"a": 1, "b": 2}"#.repeat(4);
        source(free(vec![part("<t>", &rest, false, true)], &[], FreeEnd::Anywhere))
    };
    let (lacking, full) = (vocabulary_without(&missing, &words), vocabulary_of(&words));
    let (held, other) = (compile(&tag(), &lacking), compile(&tag(), &full));
    let (mut bits, mut others) = (vec![0; lacking.mask_words()], vec![0; full.mask_words()]);
    for left in [2_000, 200, 60, 30, 5] {
        let mut fuel = Fuel::new(1_000_000);
        held.matcher().fill_mask_within_with(left, &mut bits, &mut fuel).unwrap();
        let before = fuel.steps_left();
        held.matcher().fill_mask_within_with(left, &mut bits, &mut fuel).unwrap();
        assert!(before - fuel.steps_left() < 200, "{left}: {}", before - fuel.steps_left());
        other.matcher().fill_mask_within(left, &mut others).unwrap();
        for byte in missing {
            others[usize::from(byte) / 32] &= !(1 << (byte % 32));
        }
        assert_eq!(bits, others, "{left} left");
    }
}

/// A text that needs such a byte is still finished in time, by the tokens that hold it.
#[test]
fn what_needs_a_byte_that_is_no_token_is_finished_by_longer_tokens() {
    let words = ["x\u{4}", "\u{4}y"];
    let vocabulary = vocabulary_without(&[4], &words);
    let tag = free(vec![part("<t>", "ax\u{4}b", false, true)], &[], FreeEnd::Anywhere);
    let grammar = compile(&source(tag), &vocabulary);
    let mut bits = vec![0; vocabulary.mask_words()];
    let mut matcher = grammar.matcher_after(b"<t").unwrap();
    let mut may = |matcher: &mut pleach::grammar::Matcher, left: u32, token: u32| {
        matcher.fill_mask_within(left, &mut bits).unwrap();
        bits[token as usize / 32] >> (token % 32) & 1 == 1
    };
    assert!(may(&mut matcher, 4, u32::from(b'>')) && !may(&mut matcher, 3, u32::from(b'>')));
    for token in [u32::from(b'>'), u32::from(b'a'), 256, u32::from(b'b')] {
        assert!(may(&mut matcher, 9, token));
        matcher.accept(token).unwrap();
    }
    assert!(matcher.is_complete());
}

fn shared() -> Option<PathBuf> {
    let shared = std::env::var_os("PLEACH_SHARED").map(PathBuf::from);
    if shared.is_none() {
        eprintln!("skipped: PLEACH_SHARED names no folder with tokenizers");
    }
    shared
}

/// A mask of free text looks at a few tokens, not at the vocabulary.
#[test]
fn masks_of_free_text_cost_next_to_nothing() {
    let Some(shared) = shared() else { return };
    let file = shared.join("data/tokenizers/qwen3/tokenizer.json");
    let tokenizer = Tokenizer::from_json_file(&file).unwrap();
    let vocabulary = GrammarVocabulary::new(&tokenizer.vocabulary());
    let parts = vec![part("<tool_call>", "\n{}\n</tool_call>", false, true)];
    let grammar = compile(&source(free(parts, &["</think>"], FreeEnd::Anywhere)), &vocabulary);
    let mut fuel = Fuel::new(20_000);
    for text in ["Sure", " <", "<tool", "<tool_cal", "</thin", "é\u{FFFD}", "<<tool_call"] {
        let mut matcher = grammar.matcher_after(text.as_bytes()).unwrap();
        let before = fuel.steps_left();
        let mask = matcher.mask_with(&mut fuel).unwrap();
        assert!(before - fuel.steps_left() < 2_000, "{text}: {}", before - fuel.steps_left());
        assert!(mask.count() > vocabulary.len() * 9 / 10, "{text}: {}", mask.count());
        for token in (0..vocabulary.len() as TokenId).step_by(97) {
            assert_eq!(mask.contains(token), matcher.fork().accept(token).is_ok(), "{token}");
        }
    }
}
