//! The laws that languages obey, on random ones.

use proptest::prelude::*;

use super::super::super::Fuel;
use super::super::{Classifier, Dfa};
use super::{all_texts, pattern, plain_pattern, text, try_compile};

const STEPS: u64 = 50_000_000;

/// A random language; patterns that are refused are the empty one.
fn language() -> impl Strategy<Value = Dfa> {
    let whole = plain_pattern()
        .prop_map(|source| Dfa::whole_pattern(&source, &mut Fuel::new(STEPS)).unwrap());
    let found = pattern().prop_map(|source| try_compile(&source).unwrap_or_else(|_| Dfa::never()));
    prop_oneof![2 => whole, 1 => found]
}

fn not(dfa: &Dfa) -> Dfa {
    dfa.complement(&mut Fuel::new(STEPS)).unwrap()
}

fn and(left: &Dfa, right: &Dfa) -> Dfa {
    left.intersect(right, &mut Fuel::new(STEPS)).unwrap()
}

fn or(left: &Dfa, right: &Dfa) -> Dfa {
    left.union(right, &mut Fuel::new(STEPS)).unwrap()
}

fn minimal(dfa: Dfa) -> Dfa {
    dfa.minimize(&mut Fuel::new(STEPS)).unwrap()
}

/// The promises of the type.
fn check_shape(dfa: &Dfa) -> Result<(), TestCaseError> {
    let count = dfa.states().len() as u32;
    for state in dfa.states() {
        prop_assert!(state.arms.iter().all(|arm| arm.low <= arm.high && arm.next < count));
        prop_assert!(state.arms.windows(2).all(|pair| pair[0].high < pair[1].low));
        prop_assert!(state.accepting || !state.arms.is_empty());
        let no_surrogates = |low: u32, high: u32| high < 0xD800 || low > 0xDFFF;
        prop_assert!(state.arms.iter().all(|arm| no_surrogates(arm.low, arm.high)));
    }
    Ok(())
}

proptest! {
    #[test]
    fn boolean_operations_are_those_of_sets(
        left in language(),
        right in language(),
        texts in proptest::collection::vec(text(), 20),
    ) {
        let (both, either) = (and(&left, &right), or(&left, &right));
        let rest = left.difference(&right, &mut Fuel::new(STEPS)).unwrap();
        let others = not(&left);
        for dfa in [&both, &either, &rest, &others] {
            check_shape(dfa)?;
        }
        for text in texts.iter().chain(&all_texts(2)) {
            let (in_left, in_right) = (left.accepts(text), right.accepts(text));
            prop_assert_eq!(both.accepts(text), in_left && in_right);
            prop_assert_eq!(either.accepts(text), in_left || in_right);
            prop_assert_eq!(rest.accepts(text), in_left && !in_right);
            prop_assert_eq!(others.accepts(text), !in_left);
        }
    }

    #[test]
    fn equal_languages_have_equal_minimal_automata(left in language(), right in language()) {
        prop_assert_eq!(minimal(not(&not(&left))), minimal(left.clone()));
        let sides = (not(&and(&left, &right)), or(&not(&left), &not(&right)));
        prop_assert_eq!(minimal(sides.0), minimal(sides.1));
        prop_assert!(and(&left, &not(&left)).is_never());
        prop_assert!(minimal(or(&left, &not(&left))).is_any());
        prop_assert!(or(&left, &not(&left)).is_any());
        let rest = left.difference(&right, &mut Fuel::new(STEPS)).unwrap();
        prop_assert_eq!(minimal(rest), minimal(and(&left, &not(&right))));
    }

    #[test]
    fn a_minimal_automaton_has_the_same_language(
        left in language(),
        right in language(),
        texts in proptest::collection::vec(text(), 20),
    ) {
        let large = or(&left, &right);
        let small = minimal(large.clone());
        check_shape(&small)?;
        prop_assert!(small.states().len() <= large.states().len());
        for text in &texts {
            prop_assert_eq!(small.accepts(text), large.accepts(text));
        }
        prop_assert_eq!(minimal(small.clone()), small);
    }

    #[test]
    fn concatenation_and_repetition_are_splits(
        left in language(),
        right in language(),
        min in 0_u32..3,
        more in proptest::option::of(0_u32..3),
        texts in proptest::collection::vec(text(), 20),
    ) {
        let joined = left.concat(&right, &mut Fuel::new(STEPS)).unwrap();
        let max = more.map(|more| min + more);
        let repeated = left.repeat(min, max, &mut Fuel::new(STEPS)).unwrap();
        check_shape(&joined)?;
        check_shape(&repeated)?;
        for text in texts.iter().chain(&all_texts(2)) {
            let places: Vec<usize> =
                (0..=text.len()).filter(|&place| text.is_char_boundary(place)).collect();
            let splits = places.iter().any(|&p| left.accepts(&text[..p]) && right.accepts(&text[p..]));
            prop_assert_eq!(joined.accepts(text), splits, "{:?}", text);
            // Which places can be reached by each number of times.
            let mut now = vec![0];
            let mut expected = false;
            for times in 0..=max.unwrap_or(min + 10) {
                expected |= times >= min && now.contains(&text.len());
                now = places
                    .iter()
                    .copied()
                    .filter(|&to| now.iter().any(|&from| from <= to && left.accepts(&text[from..to])))
                    .collect();
            }
            prop_assert_eq!(repeated.accepts(text), expected, "{:?} {:?}", text, (min, max));
        }
    }

    #[test]
    fn a_classifier_knows_each_language(
        languages in proptest::collection::vec(language(), 0..4),
        texts in proptest::collection::vec(text(), 20),
    ) {
        let all: Vec<&Dfa> = languages.iter().collect();
        let classifier = Classifier::new(&all, &mut Fuel::new(STEPS)).unwrap();
        prop_assert!(!classifier.label(Classifier::NONE).contains(&true));
        for text in texts.iter().chain(&all_texts(2)) {
            let expected: Vec<bool> = all.iter().map(|dfa| dfa.accepts(text)).collect();
            prop_assert_eq!(classifier.classify(text), &expected[..]);
        }
    }

    #[test]
    fn lengths_are_those_of_the_shortest_and_the_longest_text(dfa in language()) {
        let lengths: Vec<u32> = all_texts(4)
            .iter()
            .filter(|text| dfa.accepts(text))
            .map(|text| text.chars().count() as u32)
            .collect();
        if let Some(&shortest) = lengths.first() {
            prop_assert_eq!(dfa.min_chars(), Some(shortest));
        } else {
            prop_assert!(dfa.min_chars().is_none_or(|shortest| shortest > 4));
        }
        prop_assert_eq!(dfa.min_chars().is_none(), dfa.is_never());
        match (dfa.max_chars(), lengths.last()) {
            (Some(longest), Some(&last)) if longest <= 4 => prop_assert_eq!(longest, last),
            (Some(longest), _) => prop_assert!(longest > 4 || dfa.is_never()),
            (None, _) => prop_assert!(!dfa.is_never()),
        }
    }

    #[test]
    fn a_length_is_an_intersection_away(dfa in language(), min in 0_u32..3, more in 0_u32..3) {
        let within = and(&dfa, &Dfa::length(min, Some(min + more)));
        let at_least = and(&dfa, &Dfa::length(min, None));
        prop_assert!(within.max_chars().is_some_and(|longest| longest <= min + more));
        for text in all_texts(3) {
            let length = text.chars().count() as u32;
            prop_assert_eq!(at_least.accepts(&text), dfa.accepts(&text) && length >= min);
            let fits = length >= min && length <= min + more;
            prop_assert_eq!(within.accepts(&text), dfa.accepts(&text) && fits);
        }
    }

    #[test]
    fn a_list_of_texts_is_its_own_enumeration(
        texts in proptest::collection::vec(text(), 0..12),
        others in proptest::collection::vec(text(), 12),
    ) {
        let dfa = Dfa::literals(&texts);
        check_shape(&dfa)?;
        let mut sorted = texts.clone();
        sorted.sort();
        sorted.dedup();
        prop_assert_eq!(dfa.finite(sorted.len()), Some(sorted.clone()));
        if let Some(fewer) = sorted.len().checked_sub(1) {
            prop_assert_eq!(dfa.finite(fewer), None);
        }
        prop_assert_eq!(minimal(dfa.clone()), dfa.clone());
        for text in &others {
            prop_assert_eq!(dfa.accepts(text), texts.contains(text));
        }
    }
}

#[test]
fn the_simplest_languages_are_what_they_say() {
    assert!(Dfa::never().is_never() && !Dfa::any().is_never());
    assert!(Dfa::any().is_any() && !Dfa::never().is_any());
    assert!(!Dfa::length(0, Some(3)).is_any() && Dfa::length(0, None).is_any());
    assert!(Dfa::length(3, Some(2)).is_never());
    assert!(not(&Dfa::never()).is_any() && not(&Dfa::any()).is_never());
    assert!(Dfa::literals::<&str>(&[]).is_never());
    assert_eq!(Dfa::literal("").finite(1), Some(vec![String::new()]));
    assert_eq!((Dfa::never().min_chars(), Dfa::never().max_chars()), (None, Some(0)));
    assert_eq!(Dfa::never().finite(0), Some(Vec::new()));
    assert_eq!(Dfa::any().finite(1_000), None);
    let digits = Dfa::chars(&crate::grammar::CharSet::new([(0x30, 0x32)]));
    let twice = digits.repeat(2, Some(2), &mut Fuel::new(STEPS)).unwrap();
    let texts = ["00", "01", "02", "10", "11", "12", "20", "21", "22"];
    assert_eq!(twice.finite(9), Some(texts.map(String::from).to_vec()));
    assert!(Dfa::chars(&crate::grammar::CharSet::default()).is_never());
}

#[test]
fn a_surrogate_pair_is_one_character_and_half_of_it_none() {
    assert!(Dfa::length(1, Some(1)).accepts("🙂"));
    let around = Dfa::chars(&crate::grammar::CharSet::new([(0xD7FF, 0xE000)]));
    assert_eq!(around.finite(9), Some(vec!["\u{D7FF}".into(), "\u{E000}".into()]));
}
