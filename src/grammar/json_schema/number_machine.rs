//! The texts of the numbers of a set, character by character.

use std::cmp::Ordering;

use smallvec::SmallVec;

use super::explore::Machine;
use super::number_divisor::{Divisor, Remainder};
use super::number_edge::{Edge, Half};
use super::number_exponent::Exponent;

/// What numbers are allowed, and how they may be written. See [`super::number`] for the rules.
#[derive(Clone, Debug)]
pub(super) struct NumberMachine {
    /// Above zero, below zero.
    pub(super) halves: [Half; 2],
    /// Whether zero is allowed.
    pub(super) zero: bool,
    /// Integers only.
    pub(super) integer: bool,
    /// No integers.
    pub(super) not_integer: bool,
    /// Divisors, asked for or ruled out.
    pub(super) divisors: SmallVec<[Divisor; 1]>,
    /// Most significant digits.
    pub(super) digits_max: u8,
    /// Most zeros between the point and the first significant digit.
    pub(super) zeros_max: u8,
    /// Most digits after the point before an exponent.
    pub(super) exponent_places_max: u8,
    /// Whether a number that is only held against zero may have any mantissa before an exponent.
    pub(super) any_mantissa: bool,
    /// Whether there are exponents at all.
    pub(super) exponents: bool,
}

/// Largest size of an exponent after a mantissa of one whole digit.
const EXPONENT_MAX: i16 = 307;
/// Most zeros after the point of an integer.
const INTEGER_ZEROS_MAX: u8 = 2;

/// What must be known of a number so far.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum State {
    Start,
    /// A minus sign was read.
    Minus,
    Digits(Digits),
    Exponent(Exponent),
}

/// Digits of a number that may go on without an exponent, or with one, or both.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Digits {
    /// Which half it is in: 0 or 1.
    half: u8,
    plain: Option<Plain>,
    mantissa: Option<Mantissa>,
    remainders: SmallVec<[Remainder; 1]>,
}

/// A number in plain notation so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Plain {
    /// Digits, the first not 0, and how they compare to as many of the bounds.
    Whole { digits: u8, low: Ordering, high: Ordering },
    /// `0`.
    Zero,
    /// `0.` and zeros. `open`: other digits may follow.
    ZeroFraction { zeros: u8, open: bool },
    /// After the point, unless all digits are zeros.
    Fraction(Fraction),
    /// An integer that is allowed, the point, and zeros.
    IntegerZeros { zeros: u8 },
}

/// Digits after the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Fraction {
    /// Significant digits that may still come.
    left: u8,
    /// Whether no digit was read.
    fresh: bool,
    /// Whether all digits are those of the lower bound.
    low_tight: bool,
    /// Whether all digits are those of the upper bound.
    high_tight: bool,
    /// Digits read; 0 where no bound is tight.
    at: u8,
    /// Whether it is known to be no integer, where that matters.
    fractional: bool,
}

/// A number of one whole digit, not 0, before an exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Mantissa {
    /// Digits after the point.
    places: u8,
    /// Whether an exponent may not come yet.
    unfinished: bool,
    low: Ordering,
    high: Ordering,
}

/// Integers without point and exponent: `0|-?[1-9][0-9]*`.
pub(super) struct PlainIntegers;

/// Where a text is in a plain integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum PlainState {
    Start,
    Minus,
    Zero,
    Digits,
}

impl Machine for PlainIntegers {
    type State = PlainState;

    fn start(&self) -> PlainState {
        PlainState::Start
    }

    fn accepts(&self, state: &PlainState) -> bool {
        matches!(state, PlainState::Zero | PlainState::Digits)
    }

    fn follow(&self, state: &PlainState, to: &mut dyn FnMut(u32, u32, PlainState)) {
        let [minus, zero, one, nine] = ['-', '0', '1', '9'].map(u32::from);
        if *state == PlainState::Start {
            to(minus, minus, PlainState::Minus);
            to(zero, zero, PlainState::Zero);
        }
        match state {
            PlainState::Start | PlainState::Minus => to(one, nine, PlainState::Digits),
            PlainState::Digits => to(zero, nine, PlainState::Digits),
            PlainState::Zero => {}
        }
    }
}

impl Machine for NumberMachine {
    type State = State;

    fn start(&self) -> State {
        State::Start
    }

    fn accepts(&self, state: &State) -> bool {
        match state {
            State::Start | State::Minus => false,
            State::Exponent(exponent) => exponent.accepts(),
            State::Digits(digits) => self.accepts_digits(digits),
        }
    }

    fn follow(&self, state: &State, to: &mut dyn FnMut(u32, u32, State)) {
        match state {
            State::Start => {
                to('-'.into(), '-'.into(), State::Minus);
                self.each_digit(to, |digit| self.first(0, digit).map(State::Digits));
            }
            State::Minus => {
                let half = u8::from(self.halves[0] != self.halves[1]);
                self.each_digit(to, |digit| self.first(half, digit).map(State::Digits));
            }
            State::Digits(digits) => self.follow_digits(digits, to),
            State::Exponent(exponent) => {
                for (sign, negative) in [('+', false), ('-', true)] {
                    if let Some(next) = exponent.sign(negative) {
                        to(sign.into(), sign.into(), State::Exponent(next));
                    }
                }
                self.each_digit(to, |digit| exponent.digit(digit).map(State::Exponent));
            }
        }
    }
}

impl NumberMachine {
    fn each_digit(
        &self,
        to: &mut dyn FnMut(u32, u32, State),
        mut after: impl FnMut(u8) -> Option<State>,
    ) {
        for digit in 0..10 {
            let character = u32::from(b'0' + digit);
            if let Some(next) = after(digit) {
                to(character, character, next);
            }
        }
    }

    fn half(&self, index: u8) -> &Half {
        &self.halves[usize::from(index.min(1))]
    }

    /// Whether numbers of this half may have any mantissa before an exponent.
    fn any_mantissa(&self, half: u8) -> bool {
        self.any_mantissa && self.exponents && self.half(half).is_unbounded()
    }

    fn first(&self, index: u8, digit: u8) -> Option<Digits> {
        let half = self.half(index);
        if digit == 0 {
            let open = half.possible && !self.integer;
            let remainders = self.divisors.iter().map(Divisor::of_zero).collect();
            let zero = Digits { half: index, plain: Some(Plain::Zero), mantissa: None, remainders };
            return (self.zero || open).then_some(zero);
        }
        if !half.possible {
            return None;
        }
        let low = half.low.as_ref().map_or(Ordering::Greater, |edge| edge.compare(0, digit));
        let high = half.high.as_ref().map_or(Ordering::Less, |edge| edge.compare(0, digit));
        let normal = self.exponents && !self.any_mantissa(index);
        let mantissa = Mantissa { places: 0, unfinished: false, low, high };
        let first = |divisor: &Divisor| divisor.whole_digit(Remainder::default(), digit);
        self.checked(Digits {
            half: index,
            plain: self.whole(half, 1, low, high),
            mantissa: normal.then_some(mantissa),
            remainders: self.divisors.iter().map(first).collect(),
        })
    }

    /// Digits of the whole part, in the form that is the same for all that go on the same.
    fn whole(&self, half: &Half, digits: u8, low: Ordering, high: Ordering) -> Option<Plain> {
        let longer = |edge: &Edge| i64::from(digits) > edge.magnitude();
        let low = if half.low.as_ref().is_some_and(longer) { Ordering::Greater } else { low };
        if let Some(edge) = &half.high
            && (longer(edge) || i64::from(digits) == edge.magnitude() && high.is_gt())
        {
            return None;
        }
        (digits <= self.digits_max).then_some(Plain::Whole { digits, low, high })
    }

    /// Leaves out what cannot go on, and what of it no longer matters.
    fn checked(&self, mut digits: Digits) -> Option<Digits> {
        let lost = digits.remainders.iter().zip(&self.divisors).any(|(r, d)| d.is_lost(*r));
        if lost {
            digits.plain = None;
        }
        if digits.mantissa.is_none() {
            for (remainder, divisor) in digits.remainders.iter_mut().zip(&self.divisors) {
                *remainder = divisor.without_exponent(*remainder);
            }
        }
        (digits.plain.is_some() || digits.mantissa.is_some()).then_some(digits)
    }

    fn accepts_digits(&self, digits: &Digits) -> bool {
        let half = self.half(digits.half);
        match digits.plain {
            None => false,
            Some(Plain::Zero) => self.zero,
            Some(Plain::ZeroFraction { zeros, .. }) => self.zero && zeros > 0,
            Some(Plain::IntegerZeros { zeros }) => zeros > 0,
            Some(Plain::Whole { digits: count, low, high }) => {
                self.accepts_whole(half, count, low, high, &digits.remainders)
            }
            Some(Plain::Fraction(fraction)) => {
                let place = |edge: &Edge| edge.magnitude() + i64::from(fraction.at);
                let above = half.low.as_ref().is_none_or(|edge| {
                    !fraction.low_tight || edge.is_spent(place(edge)) && edge.is_inclusive()
                });
                let below = half.high.as_ref().is_none_or(|edge| {
                    !fraction.high_tight || !edge.is_spent(place(edge)) || edge.is_inclusive()
                });
                let mut divisors = self.divisors.iter().zip(&digits.remainders);
                above
                    && below
                    && !fraction.fresh
                    && fraction.fractional
                    && divisors.all(|(divisor, rest)| divisor.suits_fraction(*rest))
            }
        }
    }

    fn accepts_whole(
        &self,
        half: &Half,
        count: u8,
        low: Ordering,
        high: Ordering,
        remainders: &[Remainder],
    ) -> bool {
        let count = i64::from(count);
        let above = half.low.as_ref().is_none_or(|edge| match edge.compare_whole(count, low) {
            Ordering::Less => false,
            Ordering::Equal => edge.is_spent(count) && edge.is_inclusive(),
            Ordering::Greater => true,
        });
        let below = half.high.as_ref().is_none_or(|edge| match edge.compare_whole(count, high) {
            Ordering::Less => true,
            Ordering::Equal => !edge.is_spent(count) || edge.is_inclusive(),
            Ordering::Greater => false,
        });
        let mut divisors = self.divisors.iter().zip(remainders);
        above
            && below
            && !self.not_integer
            && divisors.all(|(divisor, rest)| divisor.suits_whole(*rest))
    }

    fn follow_digits(&self, digits: &Digits, to: &mut dyn FnMut(u32, u32, State)) {
        if let Some(next) = self.point(digits) {
            to('.'.into(), '.'.into(), State::Digits(next));
        }
        self.each_digit(to, |digit| self.digit(digits, digit).map(State::Digits));
        if let Some(next) = self.exponent(digits) {
            for e in ['E', 'e'] {
                to(e.into(), e.into(), State::Exponent(next));
            }
        }
    }

    fn point(&self, digits: &Digits) -> Option<Digits> {
        let half = self.half(digits.half);
        let plain = match digits.plain {
            Some(Plain::Zero) if self.integer => {
                self.zero.then_some(Plain::IntegerZeros { zeros: 0 })
            }
            Some(Plain::Zero) => self.zero_fraction(half, 0, half.possible),
            Some(Plain::Whole { digits: count, low, high }) if self.integer => self
                .accepts_whole(half, count, low, high, &digits.remainders)
                .then_some(Plain::IntegerZeros { zeros: 0 }),
            Some(Plain::Whole { digits: count, low, high }) => {
                self.point_after(half, count, low, high)
            }
            _ => None,
        };
        let mantissa = digits
            .mantissa
            .filter(|mantissa| mantissa.places == 0 && !mantissa.unfinished)
            .filter(|_| self.exponent_places_max > 0)
            .map(|mantissa| Mantissa { unfinished: true, ..mantissa });
        // Of an integer in plain notation everything is known.
        let integer = self.integer && mantissa.is_none();
        let remainders = match integer {
            true => digits.remainders.iter().map(|_| Remainder::default()).collect(),
            false => {
                let pairs = self.divisors.iter().zip(&digits.remainders);
                pairs.map(|(divisor, rest)| divisor.point(*rest)).collect()
            }
        };
        self.checked(Digits { half: digits.half, plain, mantissa, remainders })
    }

    fn point_after(&self, half: &Half, count: u8, low: Ordering, high: Ordering) -> Option<Plain> {
        let tight = |edge: &Option<Edge>, prefix| {
            edge.as_ref().map(|edge| edge.compare_whole(count.into(), prefix))
        };
        let (low, high) = (tight(&half.low, low), tight(&half.high, high));
        let left = self.digits_max - count;
        let dead = low == Some(Ordering::Less) || high == Some(Ordering::Greater) || left == 0;
        (!dead).then_some(Plain::Fraction(Fraction {
            left,
            fresh: true,
            low_tight: low == Some(Ordering::Equal),
            high_tight: high == Some(Ordering::Equal),
            at: 0,
            fractional: !self.not_integer,
        }))
    }

    /// `0.` and zeros, if zero is allowed or other digits may follow.
    fn zero_fraction(&self, half: &Half, zeros: u8, open: bool) -> Option<Plain> {
        // A lower bound with another digit where all is zero is above all that may follow.
        let passed = |edge: &Edge| edge.magnitude() > -i64::from(zeros);
        let open = open && !half.low.as_ref().is_some_and(passed);
        let allowed = zeros <= self.zeros_max && (self.zero || open);
        allowed.then_some(Plain::ZeroFraction { zeros, open })
    }

    fn digit(&self, digits: &Digits, digit: u8) -> Option<Digits> {
        let half = self.half(digits.half);
        let mut after_point = true;
        let plain = match digits.plain {
            Some(Plain::Whole { digits: count, low, high }) => {
                after_point = false;
                let advance = |edge: &Option<Edge>, prefix: Ordering| match edge {
                    Some(edge) => edge.advance(prefix, count.into(), digit),
                    None => prefix,
                };
                self.whole(half, count + 1, advance(&half.low, low), advance(&half.high, high))
            }
            Some(Plain::ZeroFraction { zeros, open }) if digit == 0 => {
                self.zero_fraction(half, zeros + 1, open)
            }
            Some(Plain::ZeroFraction { zeros, open: true }) => self.fraction_digit(
                half,
                Fraction {
                    left: self.digits_max,
                    fresh: false,
                    low_tight: half.low.is_some(),
                    high_tight: (half.high.as_ref())
                        .is_some_and(|edge| edge.magnitude() + i64::from(zeros) <= 0),
                    at: zeros,
                    fractional: true,
                },
                digit,
            ),
            Some(Plain::Fraction(fraction)) => self.fraction_digit(half, fraction, digit),
            Some(Plain::IntegerZeros { zeros }) if digit == 0 && zeros < INTEGER_ZEROS_MAX => {
                Some(Plain::IntegerZeros { zeros: zeros + 1 })
            }
            _ => None,
        };
        let mantissa = match digits.mantissa {
            Some(mantissa) if mantissa.places > 0 || mantissa.unfinished => {
                self.mantissa_digit(half, mantissa, digit)
            }
            _ => None,
        };
        let exact = mantissa.is_some();
        let known = matches!(plain, Some(Plain::IntegerZeros { .. })) && !exact;
        let remainders = self.divisors.iter().zip(&digits.remainders);
        let remainders = remainders.map(|(divisor, rest)| match (known, after_point) {
            (true, _) => Remainder::default(),
            (false, true) => divisor.fraction_digit(*rest, digit, exact),
            (false, false) => divisor.whole_digit(*rest, digit),
        });
        let remainders = remainders.collect();
        self.checked(Digits { half: digits.half, plain, mantissa, remainders })
    }

    fn fraction_digit(&self, half: &Half, fraction: Fraction, digit: u8) -> Option<Plain> {
        let left = fraction.left.checked_sub(1)?;
        let tight = |edge: &Option<Edge>, tight: bool| {
            let edge = edge.as_ref().filter(|_| tight)?;
            Some(edge.compare(edge.magnitude() + i64::from(fraction.at), digit))
        };
        let low = tight(&half.low, fraction.low_tight);
        let high = tight(&half.high, fraction.high_tight);
        if low == Some(Ordering::Less) || high == Some(Ordering::Greater) {
            return None;
        }
        let (low_tight, high_tight) = (low == Some(Ordering::Equal), high == Some(Ordering::Equal));
        Some(Plain::Fraction(Fraction {
            left,
            fresh: false,
            low_tight,
            high_tight,
            at: if low_tight || high_tight { fraction.at + 1 } else { 0 },
            fractional: fraction.fractional || digit != 0,
        }))
    }

    fn mantissa_digit(&self, half: &Half, mantissa: Mantissa, digit: u8) -> Option<Mantissa> {
        let places = mantissa.places + 1;
        // The number has at least `places` places before an exponent makes them whole.
        let highest = half.high.as_ref().map_or(i64::MAX, |edge| edge.magnitude() - 1);
        let too_long = self.integer && i64::from(places) > highest;
        if places > self.exponent_places_max || too_long {
            return None;
        }
        let advance = |edge: &Option<Edge>, prefix: Ordering| match edge {
            Some(edge) => edge.advance(prefix, places.into(), digit),
            None => prefix,
        };
        Some(Mantissa {
            places,
            unfinished: digit == 0 && self.is_normal(),
            low: advance(&half.low, mantissa.low),
            high: advance(&half.high, mantissa.high),
        })
    }

    /// Whether a mantissa may not end in a zero after the point.
    fn is_normal(&self) -> bool {
        self.integer || self.not_integer || !self.divisors.is_empty()
    }

    fn exponent(&self, digits: &Digits) -> Option<Exponent> {
        if self.any_mantissa(digits.half) {
            let largest = EXPONENT_MAX - i16::from(self.digits_max.max(self.zeros_max));
            let complete = match digits.plain? {
                Plain::Whole { .. } => true,
                Plain::Zero => self.zero,
                Plain::ZeroFraction { zeros, .. } => self.zero && zeros > 0,
                Plain::Fraction(fraction) => !fraction.fresh,
                Plain::IntegerZeros { .. } => false,
            };
            return Exponent::range(i64::MIN / 2, i64::MAX / 2, largest).filter(|_| complete);
        }
        let mantissa = digits.mantissa.filter(|mantissa| !mantissa.unfinished)?;
        let half = self.half(digits.half);
        let mut range = (i64::MIN / 2, i64::MAX / 2);
        let places = i64::from(mantissa.places);
        if let Some(edge) = &half.low {
            let equal = mantissa.low.is_eq() && edge.is_spent(places + 1) && edge.is_inclusive();
            range.0 = edge.magnitude() - i64::from(mantissa.low.is_gt() || equal);
        }
        if let Some(edge) = &half.high {
            let equal =
                mantissa.high.is_eq() && (!edge.is_spent(places + 1) || edge.is_inclusive());
            range.1 = edge.magnitude() - 1 - i64::from(!(mantissa.high.is_lt() || equal));
        }
        if self.integer {
            range.0 = range.0.max(places);
        }
        if self.not_integer {
            range.1 = range.1.min(places - 1);
        }
        for (divisor, remainder) in self.divisors.iter().zip(&digits.remainders) {
            divisor.narrow(*remainder, mantissa.places, &mut range);
        }
        Exponent::range(range.0, range.1, EXPONENT_MAX)
    }
}
