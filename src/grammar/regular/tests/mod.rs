mod algebra;
mod bounds;
mod oracle;
mod syntax;

use proptest::prelude::*;

use super::super::Fuel;
use super::{Dfa, RegularError};

/// Stands for every class of characters that the patterns of [`pattern`] tell apart.
const ALPHABET: [char; 7] = ['a', 'b', 'c', '0', '-', '\n', '🙂'];

fn try_compile(source: &str) -> Result<Dfa, RegularError> {
    Dfa::pattern(source, &mut Fuel::new(20_000_000))
}

fn compile(source: &str) -> Dfa {
    try_compile(source).unwrap_or_else(|error| panic!("{source:?}: {error}"))
}

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(&ALPHABET[..]), 0..8)
        .prop_map(|characters| characters.into_iter().collect())
}

/// All texts of the alphabet with at most `length` characters, the shortest first.
fn all_texts(length: usize) -> Vec<String> {
    let mut texts = vec![String::new()];
    let mut from = 0;
    for _ in 0..length {
        let to = texts.len();
        for index in from..to {
            let longer = ALPHABET.map(|character| format!("{}{character}", texts[index]));
            texts.extend(longer);
        }
        from = to;
    }
    texts
}

/// A pattern without look-around.
fn plain_pattern() -> impl Strategy<Value = String> {
    let leaf = proptest::sample::select(vec![
        "a", "b", "ab", "-", ".", "[ab]", "[^a]", r"\d", r"\w", r"\W", "", "a{2,3}", "b*", "[a-c]?",
    ]);
    nested(leaf.prop_map(String::from).boxed(), &["(?:X)"])
}

/// A pattern with everything in it.
fn pattern() -> impl Strategy<Value = String> {
    let leaf = proptest::sample::select(vec![
        "a", "b", "ab", "-", ".", "[ab]", "[^a]", r"\d", r"\w", r"\W", "", "a{1,2}", "b*", "^",
        "$", r"\b", r"\B",
    ]);
    nested(leaf.prop_map(String::from).boxed(), &["(?:X)", "(?=X)", "(?!X)", "(?<=X)", "(?<!X)"])
}

/// Grows patterns from `leaf`; `X` in the wrappers stands for what is wrapped.
fn nested(
    leaf: BoxedStrategy<String>,
    wrappers: &'static [&'static str],
) -> impl Strategy<Value = String> {
    leaf.prop_recursive(5, 24, 3, move |inner| {
        let parts = proptest::collection::vec(inner.clone(), 1..4);
        let repeat =
            proptest::sample::select(vec!["*", "+", "?", "{2}", "{1,2}", "{0,2}?", "{2,}"]);
        prop_oneof![
            3 => parts.clone().prop_map(|parts| parts.concat()),
            1 => parts.prop_map(|parts| format!("(?:{})", parts.join("|"))),
            1 => (inner.clone(), repeat).prop_map(|(body, count)| format!("(?:{body}){count}")),
            2 => (inner, proptest::sample::select(wrappers))
                .prop_map(|(body, wrapper)| wrapper.replace('X', &body)),
        ]
    })
}
