//! What the engine promises beyond exact masks: whole answers, forced runs, sharing, sources.

mod grammar_support;

use std::sync::Arc;

use grammar_support::{
    accepts, allowed, compile, compile_error, feed, matcher, token, try_compile, vocabulary_of,
};
use pleach::TokenId;
use pleach::grammar::{
    CompiledGrammar, Fuel, GrammarError, GrammarSource, GrammarVocabulary, LimitError, Limits,
    MatchError,
};
use pleach::vocab::{Token, TokenKind, Vocabulary};

fn gbnf(text: &str) -> GrammarSource {
    GrammarSource::Gbnf(text.to_owned())
}

fn regex(pattern: &str) -> GrammarSource {
    GrammarSource::Regex(pattern.to_owned())
}

#[test]
fn regexes_match_the_whole_answer() {
    let vocabulary = vocabulary_of(&[]);
    let cases: [(&str, &[&str], &[&str]); 12] = [
        ("ab|c", &["ab", "c"], &["a", "abc", ""]),
        ("^a$", &["a"], &["", "aa"]),
        ("(^a|b)c", &["ac", "bc"], &["c"]),
        ("x?^y", &["y"], &["xy"]),
        ("a$b", &[], &["ab", "a"]),
        ("a$|^b", &["a", "b"], &["ab"]),
        ("[a-c]{2,3}", &["ab", "abc"], &["a", "abca", "ad"]),
        (r"\p{Lu}\p{Ll}*", &["Éa", "Ω"], &["é", "É1"]),
        (".{3}", &["é🙂x"], &["ab", "a\nb", "abcd"]),
        ("(?i)ok", &["OK", "oK"], &["o"]),
        ("", &[""], &["a"]),
        (r"[^\x00-\x7F]+", &["éü"], &["e"]),
    ];
    for (pattern, good, bad) in cases {
        if good.is_empty() {
            let error = compile_error(&regex(pattern), &vocabulary);
            assert!(matches!(error, GrammarError::MatchesNothing { .. }), "{pattern}: {error}");
            continue;
        }
        let grammar = compile(&regex(pattern), &vocabulary);
        good.iter()
            .for_each(|text| assert!(accepts(&grammar, text.as_bytes()), "{pattern} {text}"));
        bad.iter()
            .for_each(|text| assert!(!accepts(&grammar, text.as_bytes()), "{pattern} {text}"));
    }
}

#[test]
fn choices_are_exact() {
    let words = ["yes", "no", "yes, but"];
    let choice = |texts: &[&str]| {
        GrammarSource::Choice(texts.iter().map(|text| (*text).to_owned()).collect())
    };
    let vocabulary = vocabulary_of(&words);
    let grammar = compile(&choice(&words), &vocabulary);
    assert!(words.iter().all(|word| accepts(&grammar, word.as_bytes())));
    assert!(!accepts(&grammar, b"yes,"));
    assert_eq!(compile_error(&choice(&[]), &vocabulary), GrammarError::NoChoices);
    let many: Vec<String> = (0..5_000).map(|i| format!("value-{i}-{}", i * 7919)).collect();
    let grammar = compile(&GrammarSource::Choice(many.clone()), &vocabulary);
    assert!(many.iter().step_by(97).all(|text| accepts(&grammar, text.as_bytes())));
    assert!(!accepts(&grammar, b"value-5000-0"));
}

#[test]
fn direct_left_recursion_works() {
    let source = gbnf("root ::= root \"+\" [0-9] | root \"-\" [0-9] | [0-9]");
    let grammar = compile(&source, &vocabulary_of(&[]));
    assert!(accepts(&grammar, b"1+2-3+4"));
    assert!(!accepts(&grammar, b"+1"));
    assert!(!accepts(&grammar, b"1+"));
}

#[test]
fn counted_bodies_may_be_empty() {
    let source = gbnf("root ::= (\"a\"? \"b\"? \"c\"? \"d\"? \"e\"? \"f\"?){30,40} \"!\"");
    let grammar = compile(&source, &vocabulary_of(&[]));
    assert!(accepts(&grammar, b"!"));
    assert!(accepts(&grammar, ("ba".repeat(20) + "!").as_bytes()));
    assert!(accepts(&grammar, ("a".repeat(40) + "!").as_bytes()));
    assert!(!accepts(&grammar, ("a".repeat(41) + "!").as_bytes()));
}

#[test]
fn an_answer_is_whole_within_its_budget() {
    let words = ["\"}", "}]", "\":\""];
    let source = GrammarSource::JsonObject;
    for budget in 2..40 {
        let mut matcher = matcher(&source, &words);
        let mut bits = vec![0; matcher.grammar().vocabulary().mask_words()];
        let mut last = 0;
        for left in (1..=budget).rev() {
            matcher.fill_mask_within(left, &mut bits).unwrap();
            // Always the highest token, which opens more and more.
            let ids = (0..bits.len() * 32).rev().map(|id| id as TokenId);
            let mut ids = ids.filter(|id| bits[*id as usize / 32] >> (id % 32) & 1 == 1);
            let Some(id) = ids.next() else { break };
            matcher.accept(id).unwrap();
            last = left;
            if matcher.has_ended() {
                break;
            }
        }
        assert!(matcher.is_complete(), "with {budget} tokens, {last} left");
    }
    let mut matcher = matcher(&gbnf("root ::= \"abcdefghij\""), &["abc", "defghi", "j"]);
    assert_eq!(matcher.min_tokens_to_finish(), Ok(Some(3)));
    let mut bits = vec![0; matcher.grammar().vocabulary().mask_words()];
    let refused = matcher.fill_mask_within(2, &mut bits);
    assert_eq!(refused, Err(MatchError::BudgetTooSmall { needed: 3, left: 2 }));
    assert_eq!(matcher.fill_mask_within(3, &mut bits), Ok(()));
    assert_eq!(bits[256 / 32] & 1, 1, "only the long token is left");
    assert_eq!(bits.iter().map(|word| word.count_ones()).sum::<u32>(), 1);
}

#[test]
fn bits_of_another_size_are_refused_also_where_the_mask_is_known() {
    let mut matcher = matcher(&regex("[a-z]*"), &[]);
    let mut bits = vec![0; matcher.grammar().vocabulary().mask_words()];
    for _ in 0..2 {
        matcher.fill_mask_within(100, &mut bits).unwrap();
        let refused = matcher.fill_mask_within(100, &mut bits[1..]);
        assert!(matches!(refused, Err(MatchError::MaskSize { .. })), "{refused:?}");
    }
}

#[test]
fn forced_text_stops_where_a_token_could_go_on() {
    let words = ["{\"", "name", "\":", "\":\"", "\"A", "age"];
    let tokenizer = |text: &str| -> Vec<TokenId> {
        // The longest word first, as a tokenizer of this vocabulary would.
        let mut tokens = Vec::new();
        let mut rest = text;
        while let Some(first) = rest.as_bytes().first() {
            let word = words.iter().enumerate().filter(|(_, word)| rest.starts_with(**word));
            let (id, length) = word
                .map(|(index, word)| (token(index as TokenId), word.len()))
                .max_by_key(|(_, length)| *length)
                .unwrap_or((TokenId::from(*first), 1));
            tokens.push(id);
            rest = &rest[length..];
        }
        tokens
    };
    let open = gbnf("root ::= \"{\\\"name\\\":\\\"\" [A-Z]+ \"\\\"}\"");
    let mut matcher = matcher(&open, &words);
    assert_eq!(matcher.forced_bytes().unwrap(), b"{\"name\":\"");
    // `":"` is forced, but its last quote could be the first of `"A`.
    assert_eq!(matcher.forced(&tokenizer).unwrap(), [token(0), token(1)]);
    for id in matcher.forced(&tokenizer).unwrap() {
        matcher.accept_forced(id).unwrap();
    }
    assert!(matcher.forced(&tokenizer).unwrap().is_empty());
    feed(&mut matcher, b"\":\"A");
    assert!(matcher.forced(&tokenizer).unwrap().is_empty(), "there is a choice");

    let closed = gbnf("root ::= \"{\\\"name\\\":\\\"\" [0-9] \"\\\"}\"");
    let mut matcher = grammar_support::matcher(&closed, &words);
    assert_eq!(matcher.forced(&tokenizer).unwrap(), [token(0), token(1), token(3)]);

    let special = gbnf("root ::= <extra> \"a\"");
    let mut matcher = grammar_support::matcher(&special, &words);
    assert_eq!(matcher.forced(&tokenizer).unwrap(), [token(words.len() as TokenId)]);
}

#[test]
fn a_fork_goes_its_own_way() {
    let mut one = matcher(&GrammarSource::JsonObject, &[]);
    feed(&mut one, b"{\"a\"");
    let mut other = one.fork();
    feed(&mut one, b":1}");
    feed(&mut other, b":[");
    assert!(one.is_complete() && !other.is_complete());
}

#[test]
fn forgetting_changes_nothing() {
    let grammar = compile(&GrammarSource::JsonObject, &vocabulary_of(&["\":", "[["]));
    let mut kept = grammar.matcher();
    let mut moved = grammar.matcher();
    for &byte in b"{\"a\":[[1,{\"b\":[]}],\"x" {
        grammar.forget();
        assert_eq!(allowed(&mut kept), allowed(&mut moved));
        kept.accept(byte.into()).unwrap();
        moved.accept(byte.into()).unwrap();
        grammar.forget();
        moved.rollback(1).unwrap();
        assert!(allowed(&mut moved).contains(&byte.into()));
        moved.accept(byte.into()).unwrap();
    }
}

#[test]
fn memory_stays_within_its_budget() {
    let limits = Limits { states_bytes_max: 200_000, ..Limits::default() };
    let vocabulary = vocabulary_of(&[]);
    let source = gbnf("root ::= ([a-z]{0,3000} \"-\"){1,3000}");
    let mut fuel = Fuel::new(limits.compile_steps_max);
    let grammar = CompiledGrammar::compile(&source, &vocabulary, &limits, &mut fuel).unwrap();
    let mut matcher = grammar.matcher();
    for round in 0..5_000u32 {
        matcher.mask().unwrap();
        let byte = if round % 100 == 99 { b'-' } else { b'a' };
        matcher.accept(byte.into()).unwrap();
    }
    assert_eq!(matcher.len(), 5_000);

    let tokens: Vec<Token> = (0..4_096u32)
        .map(|id| Token { bytes: format!("{:03x}", id).into_bytes(), kind: TokenKind::Text })
        .collect();
    let budget = 20_000;
    let vocabulary = GrammarVocabulary::with_budget(&Vocabulary::new(tokens, &[], None), budget);
    let grammars: Vec<Arc<CompiledGrammar>> = (0..200)
        .map(|i| compile(&gbnf(&format!("root ::= [0-9a-f]{{{i}}} [0-9]* [a-f]*")), &vocabulary))
        .collect();
    for grammar in &grammars {
        grammar.matcher().mask().unwrap();
    }
    assert!(vocabulary.mask_bytes() <= budget * 2, "{}", vocabulary.mask_bytes());
}

#[test]
fn work_ends_when_it_is_stopped_or_out_of_fuel() {
    let vocabulary = vocabulary_of(&[]);
    let source = regex(r"(\w{1,300}\d{0,200}){1,500}");
    let limits = Limits::default();
    let few = CompiledGrammar::compile(&source, &vocabulary, &limits, &mut Fuel::new(100));
    assert_eq!(few.unwrap_err(), GrammarError::Limit(LimitError::Steps));
    let small = Limits { nodes_max: 5, ..limits };
    let small = CompiledGrammar::compile(&source, &vocabulary, &small, &mut Fuel::new(1 << 30));
    assert_eq!(small.unwrap_err(), GrammarError::Limit(LimitError::Nodes { max: 5 }));
    let stop = || true;
    let long: Vec<String> = (0..20_000).map(|i| format!("{i} and more")).collect();
    let mut fuel = Fuel::with_stop(1 << 40, &stop);
    let source = GrammarSource::Choice(long);
    let stopped = CompiledGrammar::compile(&source, &vocabulary, &limits, &mut fuel);
    assert_eq!(stopped.unwrap_err(), GrammarError::Limit(LimitError::Stopped));
}

#[test]
fn ambiguity_without_bound_is_an_error_and_nothing_else() {
    // Every way to split the text into words is a parse of its own.
    let rules: String =
        (0..12).map(|i| format!("r{} ::= r{i}? r{i}? r{i}? \"{i}\"? r{i}?\n", i + 1)).collect();
    let source =
        gbnf(&format!("root ::= r12 \"!\"\nr0 ::= \"a\" \"b\"? | \"(\" root \")\"\n{rules}"));
    let Ok(grammar) = try_compile(&source, &vocabulary_of(&[])) else { return };
    let mut matcher = grammar.matcher();
    for _ in 0..50 {
        match matcher.mask() {
            Ok(_) => {}
            Err(error) => return assert!(matches!(error, MatchError::Limit(_)), "{error}"),
        }
        if matcher.accept(b'a'.into()).is_err() {
            return;
        }
    }
}

#[test]
fn many_threads_share_one_grammar() {
    let grammar = compile(&GrammarSource::JsonObject, &vocabulary_of(&["\":", "{\"", "\","]));
    let text = br#"{"a":[1,2,{"b":"c\u00e9"}],"d":{"e":null}}"#;
    let masks = |grammar: &Arc<CompiledGrammar>| {
        let mut matcher = grammar.matcher();
        text.iter()
            .map(|&byte| {
                let mask = allowed(&mut matcher);
                matcher.accept(byte.into()).unwrap();
                mask
            })
            .collect::<Vec<_>>()
    };
    let alone = masks(&compile(&GrammarSource::JsonObject, grammar.vocabulary()));
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|index| {
                let grammar = &grammar;
                scope.spawn(move || {
                    if index % 4 == 0 {
                        grammar.forget();
                    }
                    masks(grammar)
                })
            })
            .collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), alone);
        }
    });
}
