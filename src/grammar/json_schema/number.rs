//! How the numbers of a set are written.
//!
//! Every text that is allowed is a JSON number whose exact decimal value is in the set; nothing is
//! rounded. Of the endless many ways to write a value these are allowed:
//!
//! * **Plain**: `-?(0|[1-9]\d*)(\.\d+)?` with at most [`NumberOptions::digits_max`] significant
//!   digits, or as many as the bounds and divisors have, and one more for a fraction between them,
//!   but never more than 64. Zeros at the end of a fraction count. Zeros between the point and the
//!   first other digit do not; there are at most 8 of them, or as many as a bound has. `-0` is
//!   written where 0 is. Of an integer (whether by `type` or because it is a multiple of an
//!   integer) the fraction is one or two zeros, which do not count.
//! * **With an exponent**: `d(\.\d+)?[eE]…`, one digit other than 0 before the point. The exponent
//!   has a sign or none and up to three digits; a leading zero only in front of one other digit
//!   (`e-05`). Its size is at most 307. Where integers or multiples are asked for or ruled out,
//!   the mantissa does not end in a zero after the point, and integers have at most one place
//!   there, unless a bound that is too long to be written out has more. Zero is not written so.
//! * Numbers that are only held against zero, or against nothing, may have any plain mantissa,
//!   and exponents up to 307 less the significant digits. So all values are finite as `f64`, and
//!   none but zero is rounded to zero.
//! * Where a divisor has a factor of more than 128, and is no power of ten times less, there are
//!   no exponents.

use std::sync::Arc;

use smallvec::SmallVec;

use super::decimal::Decimal;
use super::explore::explore;
use super::number_divisor::{Divisor, FACTOR_MAX};
use super::number_edge::{Edge, Half};
use super::number_machine::{NumberMachine, PlainIntegers};
use super::shape::{Bound, NumberSet};
use crate::grammar::regular::{Dfa, RegularError};
use crate::grammar::{Fuel, LimitError};

/// How numbers may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NumberOptions {
    /// Most significant digits, where no bound needs more: 1 to 64.
    pub digits_max: u8,
    /// How integers may be written.
    pub integers: IntegerSpelling,
}

/// How integers may be written. Plain ones have neither a point nor an exponent, and zero has no
/// sign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IntegerSpelling {
    /// As any number.
    #[default]
    Any,
    /// Plainly, unless all that may come are too long for that.
    MostlyPlain,
    /// Plainly: in draft 4 it is the text that makes an integer, and readers take `-0` for another
    /// number.
    Plain,
}

impl Default for NumberOptions {
    fn default() -> Self {
        Self { digits_max: DIGITS_MAX_DEFAULT, integers: IntegerSpelling::Any }
    }
}

const DIGITS_MAX_DEFAULT: u8 = 16;
/// Most significant digits that any bound can make necessary.
const DIGITS_MAX: usize = 64;
const ZEROS_MAX_DEFAULT: usize = 8;
/// Most places of an integer's mantissa, where the bounds can be written out.
const INTEGER_EXPONENT_PLACES_MAX: usize = 1;

/// Why the numbers of a set cannot be written down exactly.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    /// A bound has too many digits.
    #[error("{value} has more than {digits_max} significant digits")]
    Digits {
        /// The bound.
        value: Decimal,
        /// The limit.
        digits_max: usize,
    },
    /// A divisor has too many remainders.
    #[error("multiples of {divisor} would take more than {factor_max} remainders to tell apart")]
    Divisor {
        /// The divisor.
        divisor: Decimal,
        /// The limit.
        factor_max: u64,
    },
    /// The divisors and bounds together take too many states.
    #[error("its bounds and divisors together take more than {states_max} states")]
    States {
        /// The limit.
        states_max: usize,
    },
    /// The steps ran out, or the work was stopped.
    #[error(transparent)]
    Limit(#[from] LimitError),
}

impl NumberError {
    /// The keyword to name; `None` where a limit of the whole compilation was hit.
    pub fn keyword(&self) -> Option<&'static str> {
        match self {
            Self::Digits { .. } => Some("minimum"),
            Self::Divisor { .. } | Self::States { .. } => Some("multipleOf"),
            Self::Limit(_) => None,
        }
    }
}

impl From<RegularError> for NumberError {
    fn from(error: RegularError) -> Self {
        match error {
            RegularError::Limit(limit) => Self::Limit(limit),
            RegularError::TooLarge { states_max } => Self::States { states_max },
            // Nothing here reads patterns.
            RegularError::Syntax { .. } | RegularError::Unsupported { .. } => {
                Self::Limit(LimitError::Steps)
            }
        }
    }
}

impl NumberSet {
    /// The texts of the numbers of the set, as the module describes them. It is empty if the set
    /// is, or if all its numbers are larger than `f64` has them.
    ///
    /// An integer range takes some tens of states and some tens of µs. A divisor takes states in
    /// proportion to its factor: for 1,000 of them 11,000.
    pub fn language(
        &self,
        options: &NumberOptions,
        fuel: &mut Fuel<'_>,
    ) -> Result<Arc<Dfa>, NumberError> {
        Ok(Arc::new(self.make(options, fuel)?))
    }

    fn make(&self, options: &NumberOptions, fuel: &mut Fuel<'_>) -> Result<Dfa, NumberError> {
        let Some(machine) = self.machine(options)? else { return Ok(Dfa::never()) };
        let mut language = explore(&machine, fuel)?;
        for value in &self.excluded {
            if self.is_between(value) && !value.is_zero() {
                let only = explore(&just(&machine, value), fuel)?;
                language = language.difference(&only, fuel)?;
            }
        }
        let plain = self.integer && options.integers != IntegerSpelling::Any;
        if plain {
            let plainly = language.intersect(&explore(&PlainIntegers, fuel)?, fuel)?;
            if options.integers == IntegerSpelling::Plain || !plainly.is_never() {
                language = plainly;
            }
        }
        if machine.divisors.is_empty() && self.excluded.is_empty() && !plain {
            return Ok(language);
        }
        Ok(language.minimize(fuel)?)
    }

    /// `None`: the set is empty.
    fn machine(&self, options: &NumberOptions) -> Result<Option<NumberMachine>, NumberError> {
        let mut divisors: SmallVec<[Divisor; 1]> = SmallVec::new();
        let wanted = self.multiples_of.iter().map(|value| (value, true));
        for (value, wanted) in
            wanted.chain(self.not_multiples_of.iter().map(|value| (value, false)))
        {
            let divisor = Divisor::new(value, wanted).ok_or_else(|| NumberError::Divisor {
                divisor: value.clone(),
                factor_max: FACTOR_MAX,
            })?;
            divisors.push(divisor);
        }
        let integer = self.integer || divisors.iter().any(|d| d.is_wanted() && d.is_integer());
        let mut not_integer = self.not_integer;
        if integer {
            divisors.iter_mut().for_each(|divisor| *divisor = divisor.among_integers());
        }
        not_integer |= divisors.iter().any(|d| !d.is_wanted() && d.divides_integers() && integer);
        divisors.retain(|divisor| !(integer && divisor.divides_integers()));
        let below = |a: &Bound, b: &Bound| {
            a.value > b.value || a.value == b.value && (a.exclusive || b.exclusive)
        };
        let crossed = matches!((&self.min, &self.max), (Some(min), Some(max)) if below(min, max));
        if crossed || integer && not_integer {
            return Ok(None);
        }
        let halves = [self.half(false), self.half(true)];
        let digits_max = digits_max(&halves, &divisors, integer, options);
        self.check_digits()?;
        let zero = Decimal::zero();
        Ok(Some(NumberMachine {
            zero: self.is_between(&zero)
                && !not_integer
                && self.not_multiples_of.is_empty()
                && !self.excluded.contains(&zero),
            integer,
            not_integer,
            digits_max: digits_max as u8,
            zeros_max: zeros_max(&halves) as u8,
            exponent_places_max: match integer {
                true => integer_exponent_places_max(&halves) as u8,
                false => digits_max as u8 - 1,
            },
            any_mantissa: !integer
                && !not_integer
                && divisors.is_empty()
                && self.excluded.is_empty(),
            exponents: divisors.iter().all(Divisor::allows_exponents),
            halves,
            divisors,
        }))
    }

    /// The absolute values of the numbers above zero, or of those below.
    fn half(&self, negative: bool) -> Half {
        let (near, far) = if negative { (&self.max, &self.min) } else { (&self.min, &self.max) };
        let is_outside = |bound: &Bound| bound.value.is_negative() == negative;
        let edge = |bound: &Bound| Edge::new(&bound.value, !bound.exclusive);
        let high = match far {
            Some(far) if far.value.is_zero() || !is_outside(far) => return Half::NONE,
            far => far.as_ref().map(edge),
        };
        let low = near.as_ref().filter(|near| !near.value.is_zero() && is_outside(near)).map(edge);
        Half { possible: true, low, high }
    }

    fn is_between(&self, value: &Decimal) -> bool {
        let above = |min: &Bound| *value > min.value || *value == min.value && !min.exclusive;
        let below = |max: &Bound| *value < max.value || *value == max.value && !max.exclusive;
        self.min.as_ref().is_none_or(above) && self.max.as_ref().is_none_or(below)
    }

    fn check_digits(&self) -> Result<(), NumberError> {
        let bounds = self.min.iter().chain(&self.max).map(|bound| &bound.value);
        match bounds.into_iter().find(|value| value.digits().len() >= DIGITS_MAX) {
            None => Ok(()),
            Some(value) => {
                Err(NumberError::Digits { value: value.clone(), digits_max: DIGITS_MAX - 1 })
            }
        }
    }
}

/// The same machine for one value, which is not zero.
fn just(machine: &NumberMachine, value: &Decimal) -> NumberMachine {
    let edge = Some(Edge::new(value, true));
    let only = Half { possible: true, low: edge.clone(), high: edge };
    let halves = match value.is_negative() {
        true => [Half::NONE, only],
        false => [only, Half::NONE],
    };
    NumberMachine { halves, zero: false, ..machine.clone() }
}

fn digits_max(
    halves: &[Half; 2],
    divisors: &[Divisor],
    integer: bool,
    options: &NumberOptions,
) -> usize {
    let edges = halves.iter().flat_map(Half::edges).map(|edge| {
        let whole = usize::try_from(edge.magnitude()).unwrap_or(0);
        let written = if whole <= DIGITS_MAX { edge.significant().max(whole) } else { 0 };
        written.max(edge.significant()) + usize::from(!integer)
    });
    let divisors = divisors.iter().map(|divisor| divisor.whole_digits() + 1);
    let needed = edges.chain(divisors).max().unwrap_or(0);
    needed.max(usize::from(options.digits_max)).clamp(1, DIGITS_MAX)
}

fn zeros_max(halves: &[Half; 2]) -> usize {
    let edges = halves.iter().flat_map(Half::edges);
    let zeros = edges.map(|edge| usize::try_from(-edge.magnitude()).unwrap_or(0));
    zeros.filter(|&zeros| zeros <= DIGITS_MAX).max().unwrap_or(0).max(ZEROS_MAX_DEFAULT)
}

fn integer_exponent_places_max(halves: &[Half; 2]) -> usize {
    let edges = halves.iter().flat_map(Half::edges);
    let long = edges.filter(|edge| edge.magnitude() > DIGITS_MAX as i64);
    long.map(Edge::significant).max().unwrap_or(0).max(INTEGER_EXPONENT_PLACES_MAX)
}

#[cfg(test)]
#[path = "number_tests.rs"]
mod tests;
