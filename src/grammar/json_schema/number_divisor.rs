//! Remainders of a number by a divisor while its digits are read.

use super::decimal::Decimal;

/// A positive divisor: `factor · 10^-places`, the factor not a multiple of ten.
#[derive(Clone, Debug)]
pub(super) struct Divisor {
    factor: u64,
    /// Below zero: the divisor ends in so many zeros.
    places: i16,
    /// Whether multiples are asked for; otherwise what is no multiple.
    wanted: bool,
}

/// What is known of the digits so far, as to one divisor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Remainder {
    /// All digits, without the zeros held back, modulo the factor.
    rest: u32,
    /// Zeros at the end of the whole part that the divisor's own zeros may use up.
    zeros: u8,
    /// Digits after the point, as far as they matter.
    places: u8,
    /// Whether the number is no multiple, whatever follows, unless there is an exponent.
    broken: bool,
}

/// Largest factor of a divisor: there is a state for each remainder.
pub(super) const FACTOR_MAX: u64 = 20_000;
/// Largest factor with which numbers may have an exponent: there are about 30 states for each
/// remainder then.
pub(super) const EXPONENT_FACTOR_MAX: u64 = 128;
/// Most decimal places, or zeros at the end, of a divisor.
const PLACES_MAX: i64 = 64;

impl Divisor {
    /// A divisor. `None`: not above zero, or its remainders are too many.
    pub(super) fn new(value: &Decimal, wanted: bool) -> Option<Self> {
        if value.is_negative() || value.is_zero() || value.exponent().abs() > PLACES_MAX {
            return None;
        }
        let digits = std::str::from_utf8(value.digits()).ok()?;
        let factor: u64 = digits.parse().ok().filter(|&factor| factor <= FACTOR_MAX)?;
        let places = i16::try_from(-value.exponent()).ok()?;
        Some(Self { factor, places, wanted })
    }

    /// The divisor that means the same for integers.
    pub(super) fn among_integers(&self) -> Self {
        let Ok(places @ 1..) = u32::try_from(self.places) else { return self.clone() };
        // No factor has more than 17 twos or fives.
        let common = greatest_common_divisor(self.factor, 10_u64.pow(places.min(17)));
        Self { factor: self.factor / common, places: 0, wanted: self.wanted }
    }

    /// Whether every integer is a multiple.
    pub(super) fn divides_integers(&self) -> bool {
        self.factor == 1 && self.places >= 0
    }

    /// Whether multiples are asked for.
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// Whether all multiples are integers.
    pub(super) fn is_integer(&self) -> bool {
        self.places <= 0
    }

    /// Digits it takes to write the divisor without a fraction.
    pub(super) fn whole_digits(&self) -> usize {
        self.factor.to_string().len() + usize::try_from(-self.places).unwrap_or(0)
    }

    /// What is known of the number `0`.
    pub(super) fn of_zero(&self) -> Remainder {
        Remainder { zeros: u8::try_from(-self.places).unwrap_or(0), ..Remainder::default() }
    }

    /// Whether numbers with this divisor may have an exponent.
    pub(super) fn allows_exponents(&self) -> bool {
        self.factor <= EXPONENT_FACTOR_MAX
    }

    /// Whether a number that is a multiple, or is none, is what is asked for.
    fn suits(&self, is_multiple: bool) -> bool {
        is_multiple == self.wanted
    }

    /// One more digit of the whole part.
    pub(super) fn whole_digit(&self, mut so_far: Remainder, digit: u8) -> Remainder {
        let zeros_max = u8::try_from(-self.places).unwrap_or(0);
        if digit == 0 && so_far.zeros < zeros_max {
            so_far.zeros += 1;
            return so_far;
        }
        // Of more zeros than the divisor has, the first one belongs to the other digits.
        let absorbed = if digit == 0 { 1 } else { so_far.zeros + 1 };
        so_far.rest = self.shifted(so_far.rest, absorbed.into());
        if digit != 0 {
            so_far.rest = ((u64::from(so_far.rest) + u64::from(digit)) % self.factor) as u32;
            so_far.zeros = 0;
        }
        so_far
    }

    /// The decimal point.
    pub(super) fn point(&self, mut so_far: Remainder) -> Remainder {
        so_far.broken = self.places <= 0 && !self.is_whole_multiple(so_far);
        so_far
    }

    /// One more digit after the point. `exact`: an exponent may come, so the remainder of all
    /// digits matters.
    pub(super) fn fraction_digit(
        &self,
        mut so_far: Remainder,
        digit: u8,
        exact: bool,
    ) -> Remainder {
        let places_max = self.places.max(0) as u8;
        let within = so_far.places < places_max;
        if so_far.places == places_max && places_max > 0 && so_far.rest != 0 {
            so_far.broken = true;
        }
        so_far.places = (so_far.places + 1).min(places_max + 1);
        so_far.broken |= !within && digit != 0;
        if within || exact {
            let shifted = u64::from(self.shifted(so_far.rest, 1));
            so_far.rest = ((shifted + u64::from(digit)) % self.factor) as u32;
        }
        if !exact && so_far.places > places_max {
            so_far.rest = 0;
        }
        so_far
    }

    /// What is left to know once there can be no exponent.
    pub(super) fn without_exponent(&self, mut so_far: Remainder) -> Remainder {
        if so_far.places > self.places.max(0) as u8 {
            so_far.rest = 0;
        }
        so_far
    }

    /// Whether a number without a fraction is what is asked for.
    pub(super) fn suits_whole(&self, so_far: Remainder) -> bool {
        self.suits(self.is_whole_multiple(so_far))
    }

    /// Whether a number with a fraction and without an exponent is what is asked for.
    pub(super) fn suits_fraction(&self, so_far: Remainder) -> bool {
        let left = i32::from(self.places) - i32::from(so_far.places);
        let divides =
            left < 0 || self.places <= 0 || { self.shifted(so_far.rest, left.unsigned_abs()) == 0 };
        self.suits(divides && !so_far.broken)
    }

    /// Whether nothing that follows, but an exponent, makes it what is asked for.
    pub(super) fn is_lost(&self, so_far: Remainder) -> bool {
        self.wanted && so_far.broken
    }

    /// Narrows a range of exponents, for a number of one whole digit and `places` digits after
    /// the point, the last of which is not 0.
    pub(super) fn narrow(&self, so_far: Remainder, places: u8, range: &mut (i64, i64)) {
        // Multiplying by tens long enough leaves only factors other than 2 and 5; 2^17 is above
        // every factor.
        let shift = (0..=17).find(|&shift| self.shifted(so_far.rest, shift) == 0);
        let least = shift.map_or(i64::MAX / 2, |shift| {
            i64::from(places) - i64::from(self.places) + i64::from(shift)
        });
        if self.wanted {
            range.0 = range.0.max(least);
        } else {
            range.1 = range.1.min(least - 1);
        }
    }

    fn is_whole_multiple(&self, so_far: Remainder) -> bool {
        match u32::try_from(self.places) {
            Ok(places) => self.shifted(so_far.rest, places) == 0,
            Err(_) => so_far.rest == 0 && i16::from(so_far.zeros) == -self.places,
        }
    }

    /// `rest · 10^by` modulo the factor.
    fn shifted(&self, rest: u32, by: u32) -> u32 {
        (0..by).fold(u64::from(rest), |rest, _| rest * 10 % self.factor) as u32
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
