//! Masks against the plain truth: every token tried by itself, with a vocabulary of the kinds of
//! tokens that walks treat alike or skip: words, capitals, numbers, whole and cut characters.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use pleach::TokenId;
use pleach::grammar::{CompiledGrammar, Fuel, GrammarSource, GrammarVocabulary, Limits, Matcher};
use pleach::vocab::{Token, TokenKind, Vocabulary};

/// Numbers that look random and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) as usize % bound
    }
}

/// A part of a token: a run of like characters, or something that is none.
fn part(numbers: &mut Numbers) -> Vec<u8> {
    let kinds: [&[&str]; 5] = [
        &["a", "e", "f", "h", "i", "n", "s", "t", "z"],
        &["A", "B", "F", "Z"],
        &["0", "1", "7", "9"],
        &["é", "ж", "漢", "🙂"],
        &["_", "-", ".", ",", "=", "(", ")", ";", "\"", "'", "\\", " ", "\n", "/"],
    ];
    let kind = numbers.below(kinds.len() + 1);
    let Some(kind) = kinds.get(kind) else {
        let cut: [&[u8]; 5] = [b"\xC3", b"\xE6\xBC", b"\xBC", b"\xF0\x9F", b"\xFF"];
        return cut[numbers.below(cut.len())].to_vec();
    };
    let longest = [2, 3, 4, 18][numbers.below(4)];
    let length = 1 + numbers.below(longest);
    (0..length).flat_map(|_| kind[numbers.below(kind.len())].bytes()).collect()
}

fn texts() -> Vec<Vec<u8>> {
    let mut numbers = Numbers(7);
    let mut texts: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    for word in ["if", " if", "in", "int", "tags=", "in=", " AND", "SELECT", "true", ",true\n"] {
        texts.push(word.as_bytes().to_vec());
    }
    for _ in 0..2_500 {
        let parts = 1 + numbers.below(3);
        let mut text: Vec<u8> = if numbers.below(3) == 0 { vec![b' '] } else { Vec::new() };
        (0..parts).for_each(|_| text.extend(part(&mut numbers)));
        texts.push(text);
    }
    texts
}

fn vocabulary(texts: &[Vec<u8>]) -> Arc<GrammarVocabulary> {
    let mut tokens: Vec<Token> =
        texts.iter().map(|text| Token { bytes: text.clone(), kind: TokenKind::Text }).collect();
    let end = tokens.len() as TokenId;
    tokens.push(Token { bytes: b"<|end|>".to_vec(), kind: TokenKind::Control });
    GrammarVocabulary::new(&Vocabulary::new(tokens, &[end], None))
}

fn matcher(gbnf: &str, vocabulary: &Arc<GrammarVocabulary>) -> Matcher {
    let limits = Limits::default();
    let source = GrammarSource::Gbnf(gbnf.to_owned());
    let mut fuel = Fuel::new(limits.compile_steps_max);
    CompiledGrammar::compile(&source, vocabulary, &limits, &mut fuel).unwrap().matcher()
}

/// The tokens that can be accepted; fails if the mask says otherwise.
fn check(matcher: &mut Matcher, texts: &[Vec<u8>], gbnf: &str, done: &[u8]) -> Vec<TokenId> {
    let is_complete = matcher.is_complete();
    let mask = matcher.mask().unwrap();
    let mut alive = Vec::new();
    for token in 0..texts.len() as TokenId {
        let is_alive = matcher.fork().accept(token).is_ok();
        assert_eq!(
            mask.contains(token),
            is_alive,
            "{:?} after {:?} in {gbnf}",
            String::from_utf8_lossy(&texts[token as usize]),
            String::from_utf8_lossy(done)
        );
        if is_alive {
            alive.push(token);
        }
    }
    assert_eq!(mask.count(), alive.len() + usize::from(is_complete));
    assert_eq!(matcher.goes_on(), Some(!alive.is_empty()));
    alive
}

/// Grammars in which runs are told apart by their characters, their lengths, or both.
const GRAMMARS: [&str; 16] = [
    r#"root ::= ("if" | "int" | [a-z]+) (" " [a-z]+)* "." root?"#,
    r#"root ::= [A-Z] [a-z]{1,20} ("in=" | "tags=" | "-" [A-Z] [a-z]{1,30})* root?"#,
    r#"root ::= [A-Z] [a-z]{2,} " "? root?"#,
    r#"root ::= ([a-z_] [a-z0-9_]{0,40} [ .=(])+ "#,
    r#"root ::= "\"" [^"]{0,40} "\"" root?"#,
    r#"root ::= "\"" [^",\n]{3,30} "\"" root?"#,
    r#"root ::= ([а-яé]+ | [漢-龥]+ | "🙂") root?"#,
    r#"root ::= [^\x00-\x7F]{2,9} " " root?"#,
    r#"root ::= [0-9a-f]{4,30} ("-" [0-9a-f]{4})? " "? root?"#,
    r#"root ::= ([a-z]{3} [A-Z]{2}){1,40}"#,
    r#"root ::= ([a-z]{3}){1,40} "." root?"#,
    r#"root ::= (([a-z] | [A-Z] [0-9]){5,25} " ")+"#,
    r#"root ::= [0-9]{1,3} ([,. ] [0-9]{3})* ("." [0-9]{17,})? "\n" root?"#,
    r#"root ::= "(" (root | [a-zA-Z0-9]+ | [a-z]* "e")? ")" "=" ?"#,
    r#"root ::= ([^"\\] | "\\" ["\\ntaf])* "\"" root?"#,
    r#"root ::= ([aefhi]+ | [nstz]{1,6} | "hint" [A-Z]?)* "_" root?"#,
];

#[test]
fn masks_are_what_can_be_accepted() {
    let texts = texts();
    let vocabulary = vocabulary(&texts);
    let mut numbers = Numbers(11);
    for gbnf in GRAMMARS {
        for _ in 0..4 {
            let mut matcher = matcher(gbnf, &vocabulary);
            let mut done: Vec<u8> = Vec::new();
            for _ in 0..12 {
                let alive = check(&mut matcher, &texts, gbnf, &done);
                if alive.is_empty() {
                    break;
                }
                let token = alive[numbers.below(alive.len())];
                matcher.accept(token).unwrap();
                done.extend(&texts[token as usize]);
            }
        }
    }
}

#[test]
fn masks_of_whole_languages_are_what_can_be_accepted() {
    let texts = texts();
    let vocabulary = vocabulary(&texts);
    let languages = [
        (
            include_str!("../loadtests/grammars/clike.gbnf"),
            include_str!("../loadtests/grammars/clike.jsonl"),
        ),
        (
            include_str!("../loadtests/grammars/sql.gbnf"),
            include_str!("../loadtests/grammars/sql.jsonl"),
        ),
        (
            include_str!("../loadtests/grammars/csv.gbnf"),
            include_str!("../loadtests/grammars/csv.jsonl"),
        ),
        (
            include_str!("../loadtests/grammars/optional.gbnf"),
            include_str!("../loadtests/grammars/optional.jsonl"),
        ),
        (
            include_str!("../loadtests/grammars/json.gbnf"),
            include_str!("../loadtests/grammars/json.jsonl"),
        ),
        (
            include_str!("../loadtests/grammars/chess.gbnf"),
            include_str!("../loadtests/grammars/chess.jsonl"),
        ),
    ];
    for (gbnf, lines) in languages {
        for line in lines.lines().skip(2).take(3) {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let text = line["text"].as_str().unwrap();
            let mut matcher = matcher(gbnf, &vocabulary);
            for (index, &byte) in text.as_bytes().iter().take(240).enumerate() {
                if index % 3 == 0 {
                    check(&mut matcher, &texts, gbnf, &text.as_bytes()[..index]);
                }
                if matcher.accept(TokenId::from(byte)).is_err() {
                    break;
                }
            }
        }
    }
}
