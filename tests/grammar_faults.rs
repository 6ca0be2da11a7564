//! Faults that other engines shipped, and what is right instead (those that need no schema).

mod grammar_support;

use grammar_support::{
    accepts, allowed, compile, compile_error, end_token, feed, matcher, token, vocabulary_of,
};
use pleach::TokenId;
use pleach::grammar::explain::{check_text, check_tokens, sample};
use pleach::grammar::json_schema::SchemaOptions;
use pleach::grammar::{GrammarError, GrammarSource, GrammarVocabulary, MatchError};
use pleach::vocab::{Token, TokenKind, Vocabulary};

fn gbnf(text: &str) -> GrammarSource {
    GrammarSource::Gbnf(text.to_owned())
}

fn bytes_allowed(matcher: &mut pleach::grammar::Matcher) -> Vec<u8> {
    allowed(matcher).into_iter().filter_map(|id| u8::try_from(id).ok()).collect()
}

#[test]
fn fault_1_a_character_whose_bytes_are_separate_tokens() {
    let mut matcher = matcher(&gbnf("root ::= \"🙂\""), &[]);
    for byte in "🙂".bytes() {
        assert_eq!(bytes_allowed(&mut matcher), [byte]);
        assert_eq!(matcher.accept(byte.into()), Ok(()));
    }
    assert!(matcher.is_complete());
}

#[test]
fn fault_2_a_partial_character_is_part_of_the_state() {
    let mut matcher = matcher(&GrammarSource::JsonObject, &[]);
    feed(&mut matcher, b"{\"a\":\"");
    let before = allowed(&mut matcher);
    assert_eq!(matcher.accept(0xE4), Ok(()));
    assert_eq!(bytes_allowed(&mut matcher), (0x80..=0xBF).collect::<Vec<u8>>());
    feed(&mut matcher, &[0xB8, 0xAD]);
    assert_eq!(allowed(&mut matcher), before);
}

#[test]
fn fault_3_a_literal_that_no_token_spells() {
    let tokens = vec![Token { bytes: b"a".to_vec(), kind: TokenKind::Text }];
    let vocabulary = GrammarVocabulary::new(&Vocabulary::new(tokens, &[], None));
    let error = compile_error(&gbnf("root ::= \"b\""), &vocabulary);
    assert_eq!(error, GrammarError::Unspellable);
    let grammar = compile(&gbnf("root ::= \"ab\""), &vocabulary);
    let mut matcher = grammar.matcher();
    assert_eq!(matcher.accept(0), Ok(()));
    assert_eq!(matcher.mask().map(|_| ()), Err(MatchError::DeadEnd));
    assert_eq!(matcher.min_tokens_to_finish(), Ok(None));
}

#[test]
fn fault_4_a_grammar_that_does_not_parse() {
    let error = compile_error(&gbnf("root ::= \"a\" |\n  (\"b\""), &vocabulary_of(&[]));
    assert!(matches!(error, GrammarError::Syntax { line: 2, column: 3, .. }), "{error}");
}

#[test]
fn fault_5_optional_repeats_do_not_multiply() {
    let source = gbnf("root ::= (b? b? b? b? b? [0-9])*\nb ::= \"b\"");
    let grammar = compile(&source, &vocabulary_of(&[]));
    assert!(accepts(&grammar, b"1b2b3b4"));
    assert!(!accepts(&grammar, b"1bbbbbb2"));
    assert!(accepts(&grammar, "bbbbb1".repeat(500).as_bytes()));
    assert!(grammar.size().states < 20, "{:?}", grammar.size());
}

#[test]
fn fault_6_long_repetitions_are_counted_and_exact() {
    for length in [2_000, 2_001, 100_000] {
        let source = gbnf(&format!("root ::= \"<\" [a-z]{{0,{length}}} \">\""));
        let grammar = compile(&source, &vocabulary_of(&["abc", "xyzxyz", "a>"]));
        assert!(grammar.size().nodes < 20);
        let text = |count: usize| format!("<{}>", "a".repeat(count));
        assert!(accepts(&grammar, text(length).as_bytes()));
        assert!(!accepts(&grammar, text(length + 1).as_bytes()));
        let masks = grammar.size().masks;
        assert!(masks < 40, "masks do not grow with the length: {masks}");
    }
}

#[test]
fn fault_7_deep_nesting_and_rules_that_never_end() {
    let source = gbnf("root ::= value\nvalue ::= \"[\" (value (\",\" value)*)? \"]\"");
    let grammar = compile(&source, &vocabulary_of(&["[[", "]]", "],["]));
    let depth = 10_000;
    assert!(accepts(&grammar, ("[".repeat(depth) + &"]".repeat(depth)).as_bytes()));
    assert!(grammar.size().masks < 30, "{:?}", grammar.size());
    let too_deep = "[".repeat(100_001);
    let mut matcher = grammar.matcher();
    let failed = too_deep.bytes().find_map(|byte| matcher.accept(byte.into()).err());
    assert!(matches!(failed, Some(MatchError::Limit(_))), "{failed:?}");

    let chain: String = (0..10_000).map(|i| format!("r{i} ::= \"a\" r{} \"b\"\n", i + 1)).collect();
    let source = gbnf(&format!("root ::= r0\n{chain}r10000 ::= \"x\""));
    let grammar = compile(&source, &vocabulary_of(&[]));
    assert!(accepts(&grammar, ("a".repeat(depth) + "x" + &"b".repeat(depth)).as_bytes()));

    let never = |text: &str| compile_error(&gbnf(text), &vocabulary_of(&[]));
    let error = never("root ::= a\na ::= \"(\" b \")\"\nb ::= \"[\" a \"]\"");
    assert!(matches!(error, GrammarError::MatchesNothing { .. }), "{error}");
    let error = never("root ::= root");
    assert!(matches!(error, GrammarError::MatchesNothing { .. }), "{error}");
    let error = never("root ::= a\na ::= b | \"x\"\nb ::= a \"y\" | \"z\"");
    let GrammarError::LeftRecursion { rule, path } = error else { panic!("{error}") };
    assert!(["a", "b"].contains(&&*rule));
    assert!(path.contains(" -> "), "{path}");
}

#[test]
fn fault_9_end_tokens_that_are_text_or_owned() {
    let tokens = vec![
        Token { bytes: b"\"".to_vec(), kind: TokenKind::Text },
        Token { bytes: b"end".to_vec(), kind: TokenKind::Text },
        Token { bytes: b"<stop>".to_vec(), kind: TokenKind::Control },
        Token { bytes: b"e".to_vec(), kind: TokenKind::Text },
    ];
    let vocabulary = GrammarVocabulary::new(&Vocabulary::new(tokens, &[1, 2], None));
    let grammar = compile(&gbnf("root ::= \"\\\"\" [a-z]* \"\\\"\""), &vocabulary);
    let mut matcher = grammar.matcher();
    assert_eq!(matcher.accept(0), Ok(()));
    assert_eq!(allowed(&mut matcher), [0, 3], "inside the string no end token is text");
    assert_eq!(matcher.accept(0), Ok(()));
    assert_eq!(allowed(&mut matcher), [1, 2]);

    let grammar = compile(&gbnf("root ::= \"e\" <stop> \"e\""), &vocabulary);
    let mut matcher = grammar.matcher();
    assert_eq!(matcher.accept(3), Ok(()));
    assert_eq!(allowed(&mut matcher), [2], "the grammar owns it");
    assert_eq!(matcher.accept(2), Ok(()));
    assert!(!matcher.is_complete());
    assert_eq!(matcher.accept(3), Ok(()));
    assert_eq!(allowed(&mut matcher), [1], "and then it does not end the answer");
}

#[test]
fn fault_10_rolling_the_end_back() {
    let mut matcher = matcher(&GrammarSource::JsonObject, &["{}"]);
    feed(&mut matcher, b"{");
    assert_eq!(matcher.accept(b'}'.into()), Ok(()));
    let before = allowed(&mut matcher);
    assert_eq!(before, [end_token(&["{}"])]);
    assert_eq!(matcher.accept(before[0]), Ok(()));
    assert_eq!(matcher.accept(before[0]), Err(MatchError::Ended));
    assert_eq!(matcher.rollback(1), Ok(()));
    assert_eq!(allowed(&mut matcher), before);
    assert_eq!(matcher.rollback(3), Err(MatchError::RollbackTooFar { asked: 3, accepted: 2 }));
    assert_eq!(matcher.rollback(2), Ok(()));
    assert_eq!(allowed(&mut matcher), [TokenId::from(b'{'), token(0)]);
}

#[test]
fn fault_11_whitespace_is_bounded() {
    let grammar = compile(&GrammarSource::JsonObject, &vocabulary_of(&[]));
    let report = check_text(&grammar, format!("{{\"a\":[{}", " ".repeat(60)).as_bytes());
    let report = report.unwrap();
    assert_eq!((report.at_byte, report.complete), (6 + 20, false));
    assert!(report.expected.iter().any(|word| word == "`]`"), "{:?}", report.expected);
}

#[test]
fn fault_12_tokens_that_close_several_levels() {
    let text = "root ::= \"{\" (\"\\\"c\\\":\" root)? \"}\"";
    let words = ["}}}", "}}}}", "{\"c\":{"];
    let mut matcher = matcher(&gbnf(text), &words);
    feed(&mut matcher, b"{\"c\":{\"c\":{");
    let set = allowed(&mut matcher);
    assert!(set.contains(&token(0)) && !set.contains(&token(1)), "{set:?}");
    for id in 0..end_token(&words) {
        let accepted = matcher.fork().accept(id).is_ok();
        assert_eq!(accepted, set.contains(&id), "mask and accept agree on token {id}");
    }
}

#[test]
fn explanations_say_where_and_what() {
    let grammar = compile(&gbnf("root ::= \"a\\nb\" [0-9]+ | \"c\" <extra>"), &vocabulary_of(&[]));
    let report = check_text(&grammar, b"a\nbx").unwrap();
    assert_eq!((report.accepted, report.at_byte, report.line), (false, 3, 2));
    assert_eq!(report.expected, ["`0` to `9`"]);
    let report = check_text(&grammar, b"a\nb12").unwrap();
    assert!(report.accepted && report.complete);
    assert!(report.expected.contains(&"the end".to_owned()));
    let report = check_tokens(&grammar, &[b'a'.into(), b'\n'.into(), b'b'.into(), b'7'.into()]);
    let report = report.unwrap();
    assert_eq!((report.accepted_tokens, report.complete), (4, true));
    assert!(report.disagreements.is_empty());
}

/// Numbers below what is asked, the same ones each time.
fn random() -> impl FnMut(usize) -> usize {
    let mut seed = 1u64;
    move |below: usize| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as usize % below
    }
}

#[test]
fn samples_repeat_no_key() {
    let schema = r#"{"type":"object","minProperties":3,"additionalProperties":{"type":"null"}}"#;
    let source =
        GrammarSource::JsonSchema { schema: schema.to_owned(), options: SchemaOptions::default() };
    let grammar = compile(&source, &vocabulary_of(&[]));
    let mut random = random();
    for bytes_max in [0, 10, 60] {
        for _ in 0..100 {
            let text = sample(&grammar, bytes_max, &mut random).unwrap();
            assert!(check_text(&grammar, &text).unwrap().accepted, "{text:?}");
            let value: serde_json::Value = serde_json::from_slice(&text).unwrap();
            assert!(value.as_object().unwrap().len() >= 3, "{value}");
        }
    }
}

#[test]
fn samples_are_accepted() {
    let mut random = random();
    let grammar = compile(&GrammarSource::JsonObject, &vocabulary_of(&[]));
    for _ in 0..200 {
        let text = sample(&grammar, 60, &mut random).unwrap();
        assert!(check_text(&grammar, &text).unwrap().accepted);
        // JSON's numbers have no bounds; the parser's do.
        if let Err(error) = serde_json::from_slice::<serde_json::Value>(&text) {
            assert!(error.to_string().contains("out of range"), "{error}: {text:?}");
        }
    }
}
