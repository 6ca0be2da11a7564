//! Holding the digits of a number against a bound while they are read.

use std::cmp::Ordering;

use super::decimal::Decimal;

/// A bound of the absolute value, above zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    /// Significant digits, 0 to 9, none at the end is 0.
    digits: Vec<u8>,
    /// Digits before the decimal point; 0 or less for numbers below 1.
    magnitude: i64,
    /// Whether the bound itself is allowed.
    inclusive: bool,
}

impl Edge {
    /// The bound at the absolute value of `value`, which is not zero.
    pub(super) fn new(value: &Decimal, inclusive: bool) -> Self {
        let digits: Vec<u8> = value.digits().iter().map(|digit| digit - b'0').collect();
        let magnitude = value.exponent().saturating_add(digits.len() as i64);
        Self { digits, magnitude, inclusive }
    }

    /// Digits before the decimal point; 0 or less for numbers below 1.
    pub(super) fn magnitude(&self) -> i64 {
        self.magnitude
    }

    /// Significant digits.
    pub(super) fn significant(&self) -> usize {
        self.digits.len()
    }

    /// Whether the bound itself is allowed.
    pub(super) fn is_inclusive(&self) -> bool {
        self.inclusive
    }

    /// Compares a digit with the bound's, `place` digits after its first significant one.
    pub(super) fn compare(&self, place: i64, digit: u8) -> Ordering {
        let own = usize::try_from(place).ok().and_then(|place| self.digits.get(place));
        digit.cmp(own.unwrap_or(&0))
    }

    /// Whether the bound has no digit but zeros from `place` on.
    pub(super) fn is_spent(&self, place: i64) -> bool {
        place >= self.digits.len() as i64
    }

    /// Compares a whole number of `digits` digits, whose first digits compare to the bound's as
    /// `prefix`, with the whole part of the bound.
    pub(super) fn compare_whole(&self, digits: i64, prefix: Ordering) -> Ordering {
        digits.cmp(&self.magnitude).then(prefix)
    }

    /// The ordering after one more digit.
    pub(super) fn advance(&self, prefix: Ordering, place: i64, digit: u8) -> Ordering {
        prefix.then_with(|| self.compare(place, digit))
    }
}

/// The absolute values that numbers of one sign may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Half {
    /// Whether there are any.
    pub(super) possible: bool,
    /// Least.
    pub(super) low: Option<Edge>,
    /// Greatest.
    pub(super) high: Option<Edge>,
}

impl Half {
    /// No number of this sign.
    pub(super) const NONE: Self = Self { possible: false, low: None, high: None };

    /// The bounds.
    pub(super) fn edges(&self) -> impl Iterator<Item = &Edge> {
        self.low.iter().chain(&self.high)
    }

    /// Whether numbers of this sign are not bounded.
    pub(super) fn is_unbounded(&self) -> bool {
        self.possible && self.low.is_none() && self.high.is_none()
    }
}
