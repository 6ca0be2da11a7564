//! Exact decimal numbers, as JSON writes them.

use std::cmp::Ordering;
use std::fmt;

use smallvec::SmallVec;

/// A decimal number of any length: `± digits · 10^exponent`. Equal numbers are equal values
/// (`1`, `1.0` and `10e-1` are one), and no exponent makes it large in memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decimal {
    negative: bool,
    /// ASCII, most significant first, no zero at either end. Empty: zero.
    digits: SmallVec<[u8; 16]>,
    /// Power of ten of the last digit; 0 for zero.
    exponent: i64,
}

/// Exponents beyond this, either way, are refused when a number is read.
const EXPONENT_MAX: i64 = i64::MAX / 4;
/// Digits of a divisor up to which remainders are computed in machine words.
const WORD_DIGITS_MAX: usize = 37;

impl Decimal {
    /// Zero.
    pub fn zero() -> Self {
        Self { negative: false, digits: SmallVec::new(), exponent: 0 }
    }

    /// The number that a JSON text writes. `None`: no JSON number, or an exponent of more than 18
    /// digits.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match rest.find(['e', 'E']) {
            Some(at) => (rest.get(..at)?, parse_exponent(rest.get(at + 1..)?)?),
            None => (rest, 0),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !is_digits(whole)
            || (whole.len() > 1 && whole.starts_with('0'))
            || !fraction.is_none_or(is_digits)
        {
            return None;
        }
        let fraction = fraction.unwrap_or("");
        let mut digits: SmallVec<[u8; 16]> = whole.bytes().collect();
        digits.extend(fraction.bytes());
        let exponent = exponent - i64::try_from(fraction.len()).ok()?;
        Some(Self::normalised(negative, digits, exponent))
    }

    fn normalised(negative: bool, mut digits: SmallVec<[u8; 16]>, mut exponent: i64) -> Self {
        while digits.last() == Some(&b'0') {
            digits.pop();
            exponent += 1;
        }
        let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
        digits.drain(..zeros);
        if digits.is_empty() { Self::zero() } else { Self { negative, digits, exponent } }
    }

    /// Whether it is below zero.
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// Significant digits in ASCII, most significant first, no zero at either end; none for zero.
    pub fn digits(&self) -> &[u8] {
        &self.digits
    }

    /// Power of ten of the last of the [`digits`](Self::digits).
    pub fn exponent(&self) -> i64 {
        self.exponent
    }

    /// Whether it has no fraction.
    pub fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    /// The number, if it is an integer from 0 to `u64::MAX`.
    pub fn to_u64(&self) -> Option<u64> {
        if self.negative || !(0..20).contains(&self.exponent) {
            return None;
        }
        let mut number: u64 = 0;
        for &digit in &self.digits {
            number = number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
        }
        number.checked_mul(10_u64.checked_pow(u32::try_from(self.exponent).ok()?)?)
    }

    /// Whether it is `divisor` times an integer. Exact for any size; the cost is the product of
    /// the numbers of digits. Nothing but zero is a multiple of zero.
    pub fn is_multiple_of(&self, divisor: &Self) -> bool {
        if self.is_zero() {
            return true;
        }
        // The digits do not end in 0, so a divisor with a greater power of ten does not divide.
        let Some(zeros) = self.exponent.checked_sub(divisor.exponent).filter(|&zeros| zeros >= 0)
        else {
            return false;
        };
        if divisor.is_zero() {
            return false;
        }
        // 2^n with as many digits has n < 4 · digits: further zeros change nothing.
        let zeros = usize::try_from(zeros).unwrap_or(usize::MAX).min(4 * divisor.digits.len());
        let dividend = self.digits.iter().copied().chain(std::iter::repeat_n(b'0', zeros));
        if divisor.digits.len() <= WORD_DIGITS_MAX {
            word_remainder_is_zero(dividend, &divisor.digits)
        } else {
            long_remainder_is_zero(dividend, &divisor.digits)
        }
    }

    /// Power of ten of the first digit.
    fn magnitude(&self) -> i64 {
        self.exponent.saturating_add(i64::try_from(self.digits.len()).unwrap_or(i64::MAX))
    }

    fn cmp_absolute(&self, other: &Self) -> Ordering {
        match (self.is_zero(), other.is_zero()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => self
                .magnitude()
                .cmp(&other.magnitude())
                .then_with(|| self.digits.as_slice().cmp(other.digits.as_slice())),
        }
    }
}

fn parse_exponent(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let size: i64 = digits.parse().ok().filter(|&size| size <= EXPONENT_MAX)?;
    Some(if negative { -size } else { size })
}

fn word_remainder_is_zero(dividend: impl Iterator<Item = u8>, divisor: &[u8]) -> bool {
    let step = |number: u128, digit: u8| number * 10 + u128::from(digit - b'0');
    let divisor = divisor.iter().fold(0, |number, &digit| step(number, digit));
    dividend.fold(0, |rest, digit| step(rest, digit) % divisor) == 0
}

/// Long division on decimal digits, for divisors too long for a machine word.
fn long_remainder_is_zero(dividend: impl Iterator<Item = u8>, divisor: &[u8]) -> bool {
    let mut rest: Vec<u8> = Vec::with_capacity(divisor.len() + 1);
    for digit in dividend {
        if !rest.is_empty() || digit != b'0' {
            rest.push(digit);
        }
        while rest.len() > divisor.len()
            || (rest.len() == divisor.len() && rest.as_slice() >= divisor)
        {
            subtract(&mut rest, divisor);
        }
    }
    rest.is_empty()
}

/// `rest -= divisor`, both in ASCII digits without leading zeros, `rest >= divisor`.
fn subtract(rest: &mut Vec<u8>, divisor: &[u8]) {
    let mut borrow = 0;
    let padded = divisor.iter().rev().copied().chain(std::iter::repeat(b'0'));
    for (digit, taken) in rest.iter_mut().rev().zip(padded) {
        let taken = taken - b'0' + borrow;
        let have = *digit - b'0';
        borrow = u8::from(have < taken);
        *digit = b'0' + have + 10 * borrow - taken;
    }
    let zeros = rest.iter().take_while(|&&digit| digit == b'0').count();
    rest.drain(..zeros);
}

impl From<u64> for Decimal {
    fn from(number: u64) -> Self {
        Self::normalised(false, number.to_string().into_bytes().into(), 0)
    }
}

impl From<i64> for Decimal {
    fn from(number: i64) -> Self {
        Self::normalised(number < 0, number.unsigned_abs().to_string().into_bytes().into(), 0)
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.cmp_absolute(other),
            (true, true) => other.cmp_absolute(self),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Plain notation up to this many zeros, then with an exponent.
const PLAIN_ZEROS_MAX: i64 = 24;

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0");
        }
        let digits = std::str::from_utf8(&self.digits).map_err(|_| fmt::Error)?;
        if self.negative {
            f.write_str("-")?;
        }
        let before_point = self.magnitude();
        match usize::try_from(before_point) {
            _ if self.exponent > PLAIN_ZEROS_MAX || before_point < -PLAIN_ZEROS_MAX => {
                write!(f, "{digits}e{}", self.exponent)
            }
            Ok(places) if places >= digits.len() => {
                write!(f, "{digits}{}", "0".repeat(places - digits.len()))
            }
            Ok(places) if places > 0 => {
                let (whole, fraction) = digits.split_at(places);
                write!(f, "{whole}.{fraction}")
            }
            _ => {
                let zeros = usize::try_from(before_point.unsigned_abs()).unwrap_or(0);
                write!(f, "0.{}{digits}", "0".repeat(zeros))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text).unwrap()
    }

    #[test]
    fn only_json_numbers_are_numbers() {
        for text in
            ["", "-", "01", "+1", "1.", ".5", "1e", "1e+", "0x1", "1e5.0", " 1", "1_0", "NaN"]
        {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
        assert_eq!(Decimal::parse("1e9999999999999999999"), None);
    }

    #[test]
    fn equal_numbers_are_equal_values() {
        for group in [
            ["1", "1.0", "10e-1", "0.1E+1"],
            ["0", "-0", "0.000", "0e999999999"],
            ["1200", "12e2", "1.2e3", "1200.00"],
            ["-0.05", "-5e-2", "-0.050", "-50E-3"],
        ] {
            for text in group {
                assert_eq!(decimal(text), decimal(group[0]), "{text}");
            }
        }
    }

    #[test]
    fn order_is_exact() {
        let ascending = [
            "-1e999999999",
            "-10",
            "-9.5",
            "-1",
            "-0.1",
            "-1e-999999999",
            "0",
            "1e-999999999",
            "0.1",
            "0.11",
            "0.2",
            "1",
            "9",
            "10",
            "9007199254740992",
            "9007199254740993",
            "1e999999999",
        ];
        for pair in ascending.windows(2) {
            assert!(decimal(pair[0]) < decimal(pair[1]), "{pair:?}");
        }
    }

    #[test]
    fn multiples_are_exact() {
        for (number, divisor, multiple) in [
            ("0.3", "0.1", true),
            ("0.35", "0.1", false),
            ("1e999999999", "7", false),
            ("1e999999999", "1024", true),
            ("1e-999999999", "1", false),
            ("9007199254740993", "3", true),
            ("9007199254740992", "3", false),
            ("0", "5", true),
            ("-6", "4", false),
            ("-8", "4", true),
            ("7.5", "2.5", true),
            ("100", "1e2", true),
            ("150", "1e2", false),
            (
                "12345678901234567890123456789012345678901234567890",
                "1234567890123456789012345678901234567890123456789",
                true,
            ),
            (
                "12345678901234567890123456789012345678901234567891",
                "1234567890123456789012345678901234567890123456789",
                false,
            ),
        ] {
            assert_eq!(
                decimal(number).is_multiple_of(&decimal(divisor)),
                multiple,
                "{number} {divisor}"
            );
        }
    }

    #[test]
    fn it_is_written_as_it_is_read() {
        for text in [
            "0",
            "1",
            "-1.5",
            "1200",
            "0.05",
            "-0.0001",
            "1e25",
            "5e-100",
            "1000000000000000000000",
        ] {
            assert_eq!(decimal(text).to_string(), text);
        }
    }

    #[test]
    fn small_integers_convert() {
        assert_eq!(decimal("1.2e1").to_u64(), Some(12));
        assert_eq!(decimal("18446744073709551615").to_u64(), Some(u64::MAX));
        assert_eq!(decimal("18446744073709551616").to_u64(), None);
        assert_eq!(decimal("0.5").to_u64(), None);
        assert_eq!(decimal("-1").to_u64(), None);
    }

    proptest! {
        #[test]
        fn it_agrees_with_wide_integers(a in -1_000_000_i64..1_000_000, b in 1_i64..2_000, x in 0_u32..6, y in 0_u32..6) {
            let (left, right) = (decimal(&format!("{a}e-{x}")), decimal(&format!("{b}e-{y}")));
            let scale = |n: i64, places: u32| i128::from(n) * 10_i128.pow(6 - places);
            prop_assert_eq!(left.cmp(&right), scale(a, x).cmp(&scale(b, y)));
            prop_assert_eq!(left.is_multiple_of(&right), scale(a, x) % scale(b, y) == 0);
            prop_assert_eq!(decimal(&left.to_string()), left.clone());
            prop_assert_eq!(left.is_integer(), scale(a, x) % 1_000_000 == 0);
        }

        #[test]
        fn long_division_agrees_with_words(a in 0_u64.., b in 1_u64..1_000_000) {
            let digits = |n: u64| n.to_string().into_bytes();
            prop_assert_eq!(long_remainder_is_zero(digits(a).into_iter(), &digits(b)), a % b == 0);
        }
    }
}
