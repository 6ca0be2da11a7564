use proptest::prelude::*;

use super::super::decimal::Decimal;
use super::*;

fn decimal(text: &str) -> Decimal {
    Decimal::parse(text).unwrap()
}

fn bound(text: &str) -> Option<Bound> {
    let (text, exclusive) = match text.strip_prefix('x') {
        Some(text) => (text, true),
        None => (text, false),
    };
    (!text.is_empty()).then(|| Bound { value: decimal(text), exclusive })
}

/// `x` in front of a bound: it is excluded. Empty: there is none.
fn numbers(min: &str, max: &str) -> NumberSet {
    NumberSet { min: bound(min), max: bound(max), ..NumberSet::default() }
}

fn integers(min: &str, max: &str) -> NumberSet {
    NumberSet { integer: true, ..numbers(min, max) }
}

fn multiples(of: &str, set: NumberSet) -> NumberSet {
    NumberSet { multiples_of: vec![decimal(of)], ..set }
}

fn language(set: &NumberSet) -> Arc<Dfa> {
    set.language(&NumberOptions::default(), &mut Fuel::new(100_000_000)).unwrap()
}

fn contains(set: &NumberSet, value: &Decimal) -> bool {
    set.is_between(value)
        && (value.is_integer() || !set.integer)
        && !(set.not_integer && value.is_integer())
        && set.multiples_of.iter().all(|divisor| value.is_multiple_of(divisor))
        && !set.not_multiples_of.iter().any(|divisor| value.is_multiple_of(divisor))
        && !set.excluded.contains(value)
}

/// The rules of the module's description, from the text as a whole.
fn is_spelled(set: &NumberSet, text: &str) -> bool {
    let Some(machine) = set.machine(&NumberOptions::default()).unwrap() else { return false };
    let Some(value) = Decimal::parse(text) else { return false };
    let unsigned = text.trim_start_matches('-');
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    // The zeros after the point of an integer do not count.
    let counted = if machine.integer && exponent.is_none() { "" } else { fraction };
    let digits = format!("{whole}{counted}");
    let significant = digits.trim_start_matches('0').len();
    let zeros = match whole {
        "0" => fraction.len() - fraction.trim_start_matches('0').len(),
        _ => 0,
    };
    let short =
        significant <= usize::from(machine.digits_max) && zeros <= usize::from(machine.zeros_max);
    let only_zeros = fraction.bytes().all(|digit| digit == b'0');
    let Some(exponent) = exponent else {
        return short && !(machine.integer && !(only_zeros && fraction.len() <= 2));
    };
    let size = exponent.trim_start_matches(['+', '-']);
    let padded = size.len() > 1 && size.starts_with('0') && size.len() != 2;
    let size: i64 = size.parse().unwrap();
    let half = &machine.halves[usize::from(text.starts_with('-'))];
    if !machine.exponents || padded {
        return false;
    }
    if machine.any_mantissa && half.is_unbounded() {
        return short && size <= 307 - i64::from(machine.digits_max.max(machine.zeros_max));
    }
    let strict = machine.integer || machine.not_integer || !machine.divisors.is_empty();
    !value.is_zero()
        && whole.len() == 1
        && whole != "0"
        && size <= 307
        && fraction.len() <= usize::from(machine.exponent_places_max)
        && !(strict && fraction.ends_with('0'))
}

fn check(set: &NumberSet, language: &Dfa, text: &str) {
    let expected = is_spelled(set, text) && contains(set, &decimal(text));
    assert_eq!(language.accepts(text), expected, "{text} in {set:?}");
}

/// A text of the language, and the text without its last character.
fn walk(language: &Dfa, random: &mut fastrand::Rng) -> Option<String> {
    let mut text = String::new();
    let mut state = language.states().first()?;
    loop {
        if state.accepting && (state.arms.is_empty() || random.u8(0..6) == 0) {
            return Some(text);
        }
        let arm = state.arms.get(random.usize(0..state.arms.len()))?;
        text.push(char::from_u32(random.u32(arm.low..=arm.high))?);
        state = language.states().get(arm.next as usize)?;
    }
}

const NUMBERS: [&str; 34] = [
    "0",
    "1",
    "2",
    "5",
    "9",
    "10",
    "11",
    "99",
    "100",
    "255",
    "1000",
    "65535",
    "0.5",
    "0.05",
    "0.1",
    "2.5",
    "9.99",
    "12.34",
    "1e-7",
    "0.00123",
    "1e-12",
    "1e6",
    "1.5e9",
    "1e20",
    "1e30",
    "123456789",
    "9007199254740993",
    "18446744073709551616",
    "0.30000000000000004",
    "1e100",
    "3.5e200",
    "1e-100",
    "7",
    "42",
];

/// Ways to write the value, allowed ones and others, and values close to it.
fn texts_near(value: &str, random: &mut fastrand::Rng) -> Vec<String> {
    let mut texts = vec![value.to_owned()];
    let exact = decimal(value);
    let digits = String::from_utf8(exact.digits().to_vec()).unwrap();
    if !exact.is_zero() {
        for nudge in ["", "0", "00", "1", "5", "9"] {
            let digits = format!("{digits}{nudge}");
            let (first, rest) = digits.split_at(1);
            let point = if rest.is_empty() { "" } else { "." };
            let power = exact.exponent() + (digits.len() - nudge.len()) as i64 - 1;
            for power in [power - 1, power, power + 1] {
                texts.push(format!("{first}{point}{rest}e{power}"));
                texts.push(format!("{first}{point}{rest}E{power:+03}"));
            }
            texts.push(format!("{digits}e{}", exact.exponent() - nudge.len() as i64));
            let power = exact.exponent();
            if (0..40).contains(&power) {
                let zeros = "0".repeat(power as usize);
                texts.push(format!("{digits}{zeros}"));
                texts.push(format!("{digits}{zeros}.0"));
                texts.push(format!("{digits}{zeros}.00"));
                texts.push(format!("{digits}{zeros}.000"));
                texts.push(format!("{digits}{zeros}.001"));
            }
            if (-40..0).contains(&power) {
                let places = power.unsigned_abs() as usize + nudge.len();
                let width = places + 1;
                let padded = format!("{digits:0>width$}");
                let (whole, fraction) = padded.split_at(padded.len() - places);
                texts.push(format!("{whole}.{fraction}"));
            }
        }
    }
    for text in texts.clone() {
        let mut changed: Vec<char> = text.chars().collect();
        let at = random.usize(0..changed.len());
        if changed[at].is_ascii_digit() {
            changed[at] = random.char('0'..='9');
        }
        texts.push(changed.into_iter().collect());
    }
    let negated: Vec<String> = texts.iter().map(|text| format!("-{text}")).collect();
    texts.extend(negated);
    texts.retain(|text| Decimal::parse(text).is_some());
    texts
}

fn random_set(random: &mut fastrand::Rng) -> NumberSet {
    let pick = |random: &mut fastrand::Rng| {
        let sign = if random.u8(0..3) == 0 { "-" } else { "" };
        format!("{sign}{}", NUMBERS[random.usize(0..NUMBERS.len())])
    };
    let end = |random: &mut fastrand::Rng| {
        random.bool().then(|| Bound { value: decimal(&pick(random)), exclusive: random.bool() })
    };
    let (mut min, mut max) = (end(random), end(random));
    if let (Some(low), Some(high)) = (&min, &max)
        && low.value > high.value
        && random.u8(0..10) > 0
    {
        std::mem::swap(&mut min, &mut max);
    }
    let kind = random.u8(0..6);
    let divisors = [
        "1", "2", "3", "5", "7", "10", "12", "25", "60", "100", "0.1", "0.01", "0.25", "2.5",
        "1e-7", "1e3", "300", "0.3",
    ];
    let divisor = |random: &mut fastrand::Rng, odds: u8| {
        let count = if random.u8(0..odds) == 0 { random.usize(1..=2) } else { 0 };
        (0..count).map(|_| decimal(divisors[random.usize(0..divisors.len())])).collect()
    };
    let excluded = if random.u8(0..4) == 0 { random.usize(1..=3) } else { 0 };
    NumberSet {
        integer: kind < 2,
        not_integer: kind == 2,
        min,
        max,
        multiples_of: divisor(random, 3),
        not_multiples_of: divisor(random, 6),
        excluded: (0..excluded).map(|_| decimal(&pick(random))).collect(),
    }
}

#[test]
fn random_sets_are_exact() {
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..400 {
        let set = random_set(&mut random);
        let language = language(&set);
        let mut near: Vec<String> = NUMBERS.iter().map(|text| (*text).to_owned()).collect();
        let bounds = set.min.iter().chain(&set.max).map(|bound| &bound.value);
        for value in bounds.chain(&set.excluded).chain(&set.multiples_of) {
            let value = value.to_string();
            near.push(value.trim_start_matches('-').to_owned());
        }
        for value in near {
            for text in texts_near(&value, &mut random) {
                check(&set, &language, &text);
            }
        }
        for _ in 0..60 {
            let Some(text) = walk(&language, &mut random) else { break };
            assert!(is_spelled(&set, &text), "{text} is no spelling, {set:?}");
            assert!(contains(&set, &decimal(&text)), "{text} in {set:?}");
            for edit in 0..text.len() {
                let mut text = text.clone();
                text.replace_range(
                    edit..=edit,
                    ["0", "1", "5", "9", ".", "e", "-", ""][random.usize(0..8)],
                );
                if Decimal::parse(&text).is_some() {
                    check(&set, &language, &text);
                } else {
                    assert!(!language.accepts(&text), "{text} is no number, {set:?}");
                }
            }
        }
    }
}

#[test]
fn small_integers_are_exact() {
    for (min, max, of) in [
        ("0", "65535", "1"),
        ("-12", "x100", "1"),
        ("x3", "1000", "7"),
        ("", "500", "12"),
        ("-100", "", "50"),
    ] {
        let set = multiples(of, integers(min, max));
        let language = language(&set);
        for value in -1200..1200 {
            for text in [
                format!("{value}"),
                format!("{value}.0"),
                format!("{value}e0"),
                format!("{value}e1"),
                format!("{value}.5"),
                format!("{value}.5e1"),
            ] {
                check(&set, &language, &text);
            }
        }
    }
}

#[test]
fn what_is_written_how() {
    let any = numbers("", "");
    let cases: [(NumberSet, &[&str], &[&str]); 16] = [
        (
            any.clone(),
            &[
                "0",
                "-0",
                "-0.0",
                "1",
                "1.50",
                "12e3",
                "0.5E-05",
                "1e291",
                "1234567890123456",
                "0.00000000123",
            ],
            &[
                "",
                "-",
                "01",
                "1.",
                ".5",
                "+1",
                "1e",
                "1e+",
                "1e400",
                "1e292",
                "12345678901234567",
                "0.0000000001",
                "1e007",
                "1e5.0",
            ],
        ),
        (
            integers("", ""),
            &["0", "-0", "7", "1.0", "1.00", "1e3", "1.5e1", "-1e20"],
            &["1.5", "1.000", "1.5e0", "10e1", "1e-1", "0e1"],
        ),
        (integers("0", ""), &["0", "-0", "5", "1e3"], &["-1", "-1e3"]),
        (
            integers("0", "65535"),
            &["65535", "6.5e4", "0", "1e4"],
            &["65536", "6.6e4", "1e5", "100000", "-1"],
        ),
        (
            integers("x9007199254740992", ""),
            &["9007199254740993", "9007199254740993.0"],
            &["9007199254740992"],
        ),
        (
            integers("", "18446744073709551616"),
            &["18446744073709551616"],
            &["18446744073709551617"],
        ),
        (
            numbers("0.30000000000000004", "0.3000000000000001"),
            &["0.30000000000000004", "0.30000000000000005", "3.0000000000000005e-1"],
            &["0.30000000000000003", "0.3"],
        ),
        (numbers("x0", ""), &["0.1", "1e-5", "1e5"], &["0", "-0", "0.0", "-1", "0e1"]),
        (
            numbers("0", "1"),
            &["0", "1", "1.0", "0.5", "5e-1", "1e0", "5e-10"],
            &["1.1", "1e1", "50e-2"],
        ),
        (
            numbers("1e-7", "1e30"),
            &["1e-7", "0.0000001", "1e30", "9e29", "1000000000000000000000000000000"],
            &["9e-8", "1.1e30"],
        ),
        (numbers("1", "1"), &["1", "1.0", "1e0"], &["1.01", "0.9", "1e1"]),
        (numbers("1e100", "1e100"), &["1e100", "1.0e100"], &["1e99", "1e101"]),
        (
            multiples("0.01", any.clone()),
            &["0.01", "1.10", "-3", "1e-2", "1.25e0"],
            &["0.001", "1.255", "1e-3"],
        ),
        (
            multiples("1000", any.clone()),
            &["0", "0.0", "1000", "1000.0", "21000", "1e3", "1.5e4"],
            &["100", "1500", "1.5e3", "1e2"],
        ),
        (
            NumberSet { excluded: vec![decimal("5")], ..any.clone() },
            &["5.1", "4", "5e1", "-5"],
            &["5", "5.0", "5e0", "5.000"],
        ),
        (
            NumberSet { not_integer: true, ..any },
            &["0.5", "1.25", "1.5e0", "1.25e1"],
            &["1", "1.0", "1.5e1", "0"],
        ),
    ];
    for (set, accepted, rejected) in cases {
        let language = language(&set);
        for text in accepted {
            assert!(language.accepts(text), "{text} in {set:?}");
        }
        for text in rejected {
            assert!(!language.accepts(text), "{text} not in {set:?}");
        }
    }
}

#[test]
fn empty_sets_are_empty() {
    let never = [
        numbers("2", "1"),
        numbers("x1", "1"),
        numbers("1", "x1"),
        integers("x1", "x2"),
        integers("0.2", "0.8"),
        multiples("7", integers("8", "13")),
        NumberSet { not_integer: true, ..integers("", "") },
        NumberSet { excluded: vec![decimal("3")], ..integers("3", "3") },
        NumberSet { not_multiples_of: vec![decimal("0.5")], ..integers("", "") },
        numbers("1e400", ""),
    ];
    for set in never {
        assert!(language(&set).is_never(), "{set:?}");
    }
}

#[test]
fn what_is_too_large_is_refused() {
    let refusal = |set: NumberSet| {
        set.language(&NumberOptions::default(), &mut Fuel::new(100_000_000)).unwrap_err()
    };
    let divisor = refusal(multiples("1234567", numbers("", "")));
    assert_eq!(divisor.keyword(), Some("multipleOf"));
    let digits = refusal(numbers(&"7".repeat(70), ""));
    assert!(matches!(digits, NumberError::Digits { .. }));
    let set = integers("1", "50");
    let limit = set.language(&NumberOptions::default(), &mut Fuel::new(100)).unwrap_err();
    assert_eq!(limit, NumberError::Limit(LimitError::Steps));
}

#[test]
fn longer_numbers_are_an_option() {
    let longer = NumberOptions { digits_max: 20, ..NumberOptions::default() };
    let longer = integers("", "").language(&longer, &mut Fuel::new(1_000_000)).unwrap();
    assert!(longer.accepts("12345678901234567890"));
    assert!(!language(&integers("", "")).accepts("12345678901234567"));
}

#[test]
fn integers_of_draft_4_are_plain() {
    let options = |integers| NumberOptions { integers, ..NumberOptions::default() };
    let spelled = |set: NumberSet, integers| {
        set.language(&options(integers), &mut Fuel::new(1_000_000)).unwrap()
    };
    let language = |set: NumberSet| spelled(set, IntegerSpelling::Plain);
    let all = language(integers("", ""));
    assert!(["0", "7", "-7", "10", "-120"].iter().all(|text| all.accepts(text)));
    assert!(["-0", "1.0", "0.0", "1e1", "-", "", "01"].iter().all(|text| !all.accepts(text)));
    let some = language(integers("-3", "12"));
    assert!(["-3", "0", "12"].iter().all(|text| some.accepts(text)));
    assert!(["-4", "13", "12.0"].iter().all(|text| !some.accepts(text)));
    assert!(language(numbers("", "")).accepts("-0.0"));
    let huge = || integers("1e300", "");
    assert!(language(huge()).is_never());
    assert!(spelled(huge(), IntegerSpelling::MostlyPlain).accepts("1e300"));
    let mostly = spelled(integers("", ""), IntegerSpelling::MostlyPlain);
    assert!(mostly.accepts("12") && !mostly.accepts("12.0") && !mostly.accepts("1e1"));
}

#[test]
fn automata_stay_small() {
    for (set, states_max) in [
        (numbers("", ""), 80),
        (integers("", ""), 80),
        (integers("0", "65535"), 60),
        (integers("1", "100"), 40),
        (numbers("0", "1"), 120),
        (multiples("0.01", numbers("0", "")), 200),
        (multiples("5", integers("0", "100")), 80),
    ] {
        let count = language(&set).states().len();
        assert!(count <= states_max, "{count} states for {set:?}");
    }
}

proptest! {
    #[test]
    fn integers_in_a_range(min in any::<i64>(), span in any::<u16>(), at in any::<u32>()) {
        let max = min.saturating_add(span.into());
        let set = integers(&min.to_string(), &max.to_string());
        let language = language(&set);
        let value = i128::from(min) + i128::from(at % (2 * u32::from(span) + 2)) - i128::from(span) / 2;
        let inside = (i128::from(min)..=i128::from(max)).contains(&value);
        prop_assert_eq!(language.accepts(&value.to_string()), inside);
    }
}
