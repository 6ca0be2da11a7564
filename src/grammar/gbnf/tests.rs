use super::*;
use crate::grammar::expr::Expr;

fn error(text: &str) -> String {
    let tokens = |name: &str| (name == "<think>").then_some(7);
    match parse(&mut ExprPool::new(), text, &tokens, 100) {
        Ok(_) => panic!("{text:?} parses"),
        Err(error) => error.to_string(),
    }
}

fn root(text: &str) -> Expr {
    let tokens = |name: &str| (name == "<think>").then_some(7);
    let mut pool = ExprPool::new();
    let root = parse(&mut pool, text, &tokens, 100).unwrap();
    pool.get(pool.rule(root).body).clone()
}

fn literal(text: &str) -> Expr {
    Expr::Literal(text.as_bytes().into())
}

#[test]
fn errors_name_the_place_and_what_was_expected() {
    assert_eq!(error("root ::= \"abc"), "unterminated literal at line 1, column 10");
    assert_eq!(error("root ::= [a-z"), "unterminated character class at line 1, column 10");
    assert_eq!(error("root ::= (\"a\"\n  \"b\""), "unterminated group at line 1, column 10");
    assert_eq!(error("root = \"a\""), "expected `::=`, found `=` at line 1, column 6");
    assert_eq!(
        error("root ::= \"a\"\nb ::= \"é\" )"),
        "expected an element, `|` or the end of the line, found `)` at line 2, column 11"
    );
    assert_eq!(error("root ::= x"), "rule `x` is used but not defined at line 1, column 10");
    assert_eq!(
        error("a ::= \"x\"").split(" at ").next(),
        Some("expected a rule named `root`, found none")
    );
    assert_eq!(error("root ::= \"a\"{x}"), "expected a number, found `x` at line 1, column 14");
    assert!(error("root ::= \"a\"{3,2}").contains("below its least"));
    assert!(error("root ::= \"\\q\"").contains("unknown escape `\\q`"));
    assert!(error("root ::= \"\\u12\"").contains("4 hexadecimal digits"));
    assert!(error("root ::= \"\\uD800\"").contains("no character"));
    assert!(error("root ::= [z-a]").contains("backwards"));
    assert!(error("root ::= []").contains("empty"));
    assert!(error("root ::= \"a\"\nroot ::= \"b\"").contains("second time at line 2"));
    assert!(error("root ::= <nothere>").contains("no token `<nothere>`"));
    assert!(error("root ::= <[100]>").contains("last token is 99"));
    assert!(error(&format!("root ::= {}", "(".repeat(1_000_000))).contains("nested"));
}

#[test]
fn rules_may_span_lines_and_carry_comments() {
    let text = "# a comment\nroot ::= # another\n  \"a\" | # and\n  \"bb\"\n  | (\"c\"\n \"c\" # in a group\n )\n\nx ::= \"y\"";
    let bb: Box<[u8]> = b"bb".as_slice().into();
    let cc: Box<[u8]> = b"cc".as_slice().into();
    let expected = Expr::Literals([b"a".as_slice().into(), bb, cc].into());
    assert_eq!(root(text), expected);
}

#[test]
fn escapes_are_characters() {
    assert_eq!(
        root(r#"root ::= "\x41\u00e9\U0001F642\n\t\r\\\"\[\]""#),
        literal("Aé🙂\n\t\r\\\"[]")
    );
    assert_eq!(root("root ::= \"é🙂\""), literal("é🙂"));
    assert_eq!(root(r"root ::= [\]\[a-]"), root("root ::= \"]\" | \"[\" | \"a\" | \"-\""));
}

#[test]
fn tokens_are_named_or_numbered() {
    assert_eq!(root("root ::= <think>"), Expr::Token(TokenSet::only(7)));
    assert_eq!(root("root ::= <[12]>"), Expr::Token(TokenSet::only(12)));
    assert_eq!(root("root ::= !<think>"), Expr::Token(TokenSet::any_text_but(&[7])));
}

#[test]
fn quantifiers_bind_to_the_element_before() {
    let Expr::Repeat { min, max, .. } = root("root ::= \"ab\"{2,}") else { panic!() };
    assert_eq!((min, max), (2, None));
    let Expr::Repeat { min, max, .. } = root("root ::= [a-z]{ 3 , 5 }") else { panic!() };
    assert_eq!((min, max), (3, Some(5)));
    assert_eq!(root("root ::= \"ab\"{1}"), literal("ab"));
    assert_eq!(root("root ::= \"ab\"{0}"), Expr::Empty);
    assert_eq!(root("root ::= \"\""), Expr::Empty);
}

use crate::grammar::expr::TokenSet;
