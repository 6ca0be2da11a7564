//! What is large ends early, with an error and without a panic.

use super::super::super::{Fuel, LimitError};
use super::super::{Dfa, RegularError, STATES_MAX};
use super::{compile, try_compile};

const TOO_LARGE: RegularError = RegularError::TooLarge { states_max: STATES_MAX };

/// Steps that a small multiple of 10 ms allows.
const FEW: u64 = 400_000;

fn with_steps(source: &str, steps: u64) -> Result<Dfa, RegularError> {
    Dfa::pattern(source, &mut Fuel::new(steps))
}

#[test]
fn a_large_count_is_refused_early() {
    for source in [
        "^[a-z]{0,100000}$",
        "^a{4294967295}$",
        "^a{99999999999999999999}$",
        "((a{1000}){1000}){1000}",
        "^(a|b{1,500}){500}$",
    ] {
        assert_eq!(with_steps(source, FEW), Err(TOO_LARGE), "{source}");
    }
}

#[test]
fn a_large_count_of_nothing_is_nothing() {
    assert!(compile("^(){1000000000}$").accepts(""));
    assert!(compile("^(?:(?=a)){1000000000}a$").accepts("a"));
    assert!(compile("^(?:|(?:){5,}){1000000000}$").accepts(""));
}

#[test]
fn what_multiplies_runs_out_of_steps_or_states() {
    let error = with_steps("[ab]*a[ab]{40}c", FEW).err();
    assert_eq!(error, Some(RegularError::Limit(LimitError::Steps)));
    assert_eq!(with_steps("[ab]*a[ab]{40}c", u64::MAX), Err(TOO_LARGE));
    let many: String = (0..40).map(|n| format!("(?=.*{})", char::from(b'A' + n))).collect();
    assert!(with_steps(&many, 3_000_000).is_err());
}

#[test]
fn depth_is_a_limit() {
    for (open, close) in [("(", ")"), ("(?=", ")"), ("(?:a|", ")*"), ("(?<!", ")")] {
        let deep = format!("{}a{}", open.repeat(100_000), close.repeat(100_000));
        let error = try_compile(&deep).err();
        assert!(matches!(error, Some(RegularError::Limit(LimitError::Depth { .. }))), "{error:?}");
    }
    let fits = format!("{}a{}", "(?:".repeat(150), ")*".repeat(150));
    assert!(try_compile(&fits).is_ok());
}

#[test]
fn nested_look_aheads_within_the_depth_compile_or_are_refused() {
    let deep = format!("{}a{}", "(?=b*(?!".repeat(90), "))".repeat(90));
    let _either_is_fine = with_steps(&deep, 3_000_000);
}

#[test]
fn a_long_pattern_is_a_long_chain() {
    let long = "a".repeat(20_000);
    assert!(compile(&format!("^{long}$")).accepts(&long));
    let dfa = Dfa::literal(&"x".repeat(200_000));
    assert_eq!((dfa.min_chars(), dfa.max_chars()), (Some(200_000), Some(200_000)));
    assert_eq!(dfa.finite(1).map(|texts| texts[0].len()), Some(200_000));
}

#[test]
fn operations_keep_to_their_limits() {
    let mut few = Fuel::new(100);
    let large = compile("^[a-z]{1,255}$");
    assert!(large.complement(&mut few).is_err());
    assert!(large.repeat(1, Some(1_000_000), &mut Fuel::new(u64::MAX)) == Err(TOO_LARGE));
    let texts: Vec<String> = (0..5_000).map(|n| format!("value-{:x}", n * 7_919)).collect();
    let list = Dfa::literals(&texts);
    assert_eq!(list.finite(5_000).map(|texts| texts.len()), Some(5_000));
    let other = list.complement(&mut Fuel::new(1_000_000)).unwrap();
    assert!(list.intersect(&other, &mut Fuel::new(1_000_000)).unwrap().is_never());
}
