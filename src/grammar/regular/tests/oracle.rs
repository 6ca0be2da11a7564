//! Patterns against two other ways to match: a backtracking engine of another author, and the
//! definition, followed literally.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::super::Fuel;
use super::super::RegularError;
use super::super::ecma::{Ast, Pattern};
use super::{all_texts, compile, pattern, text, try_compile};

/// Where a match of `ast` that starts at `at` can end: the definition, word for word.
fn ends(pattern: &Pattern, ast: &Ast, text: &[char], at: usize) -> BTreeSet<usize> {
    let here = |holds: bool| if holds { BTreeSet::from([at]) } else { BTreeSet::new() };
    let takes = |found: Option<bool>| match found {
        Some(true) => BTreeSet::from([at + 1]),
        _ => BTreeSet::new(),
    };
    let is_word = |index: Option<usize>| {
        index.and_then(|i| text.get(i)).is_some_and(|c| c.is_ascii_alphanumeric() || *c == '_')
    };
    match ast {
        Ast::Empty => here(true),
        Ast::Char(wanted) => takes(text.get(at).map(|found| found == wanted)),
        Ast::Set(set) => takes(text.get(at).map(|found| {
            set.ranges().iter().any(|range| (range.0..=range.1).contains(&u32::from(*found)))
        })),
        Ast::Concat(parts) => parts.iter().fold(here(true), |starts, part| {
            starts.into_iter().flat_map(|start| ends(pattern, part, text, start)).collect()
        }),
        Ast::Alt(choices) => {
            choices.iter().flat_map(|choice| ends(pattern, choice, text, at)).collect()
        }
        Ast::Repeat { body, min, max } => {
            let mut all = BTreeSet::new();
            let mut now = here(true);
            // After as many times as there are places, more times lead nowhere new.
            for times in 0..=max.unwrap_or(min + text.len() as u32 + 1) {
                if times >= *min {
                    all.extend(now.iter().copied());
                }
                now = now.iter().flat_map(|&start| ends(pattern, body, text, start)).collect();
            }
            all
        }
        Ast::Start => here(at == 0),
        Ast::End => here(at == text.len()),
        Ast::Word { negated } => {
            here((is_word(at.checked_sub(1)) != is_word(Some(at))) != *negated)
        }
        Ast::Look(index) => {
            let look = &pattern.looks[*index as usize];
            let found = match look.behind {
                false => !ends(pattern, &look.body, text, at).is_empty(),
                true => (0..=at).any(|from| ends(pattern, &look.body, text, from).contains(&at)),
            };
            here(found != look.negated)
        }
    }
}

fn finds(pattern: &Pattern, text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    (0..=text.len()).any(|at| !ends(pattern, &pattern.root, &text, at).is_empty())
}

proptest! {
    #[test]
    fn a_pattern_means_what_its_definition_says(
        source in pattern(),
        texts in proptest::collection::vec(text(), 24),
    ) {
        let dfa = match try_compile(&source) {
            Ok(dfa) => dfa,
            Err(RegularError::Unsupported { .. }) => return Ok(()),
            Err(error) => return Err(TestCaseError::fail(format!("{source:?}: {error}"))),
        };
        let parsed = Pattern::parse(&source, &mut Fuel::new(100_000)).unwrap();
        for text in texts.iter().chain(&all_texts(2)) {
            prop_assert_eq!(dfa.accepts(text), finds(&parsed, text), "{:?} on {:?}", source, text);
        }
    }

    #[test]
    fn a_pattern_means_what_another_engine_says(
        source in pattern(),
        texts in proptest::collection::vec(text(), 24),
    ) {
        let (Ok(dfa), Ok(other)) = (try_compile(&source), fancy_regex::Regex::new(&source)) else {
            return Ok(());
        };
        for text in texts.iter().chain(&all_texts(2)) {
            if let Ok(expected) = other.is_match(text) {
                prop_assert_eq!(dfa.accepts(text), expected, "{:?} on {:?}", source, text);
            }
        }
    }
}

#[test]
fn what_schemas_do_with_look_around_is_what_another_engine_does() {
    let sources = [
        "^(?!.*ab)c",
        r"(?=.*\d)(?=.*[a-c]).{3,}",
        "^(?!-)[a-c0-]{1,4}(?<!-)$",
        "(?<!a)$",
        "a(?=b.*c)b",
        "^(?:(?!ab).)*$",
        r"\bab\b|\B0\B",
        "(?<=a|bc)-",
        "^(?=(?!aa)a.)..",
        "^(?:(?=a)[ab]|(?!a)[bc])+$",
        "(?:^a|b$)+",
        "(?<=^a)b",
        "a(?!$)",
        "^((?!a$)(?!b$)).*$",
    ];
    for source in sources {
        let dfa = compile(source);
        let other = fancy_regex::Regex::new(source).unwrap();
        for text in all_texts(4) {
            assert_eq!(dfa.accepts(&text), other.is_match(&text).unwrap(), "{source} on {text:?}");
        }
    }
}
