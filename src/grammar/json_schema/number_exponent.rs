//! Exponents of an inclusive range, character by character.

/// What must be known of an exponent so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Exponent {
    /// Nothing is read after the `e`; these exponents are allowed.
    Start { low: i16, high: i16 },
    /// A sign was read; the size must be in this range, which is not below zero.
    Size { low: i16, high: i16 },
    /// A zero was read: one more digit may follow.
    Zero { low: i16, high: i16 },
    /// These digits were read, and what may follow depends on them.
    Prefix { digits: i16, low: i16, high: i16 },
    /// Bit `n`: whether any `n` more digits complete it.
    Rest { lengths: u8 },
}

/// Digits of an exponent.
const DIGITS_MAX: u32 = 3;

impl Exponent {
    /// The exponents from `low` to `high`. `None`: there are none.
    pub(super) fn range(low: i64, high: i64, largest: i16) -> Option<Self> {
        let clamp =
            |bound: i64| bound.clamp(-i64::from(largest) - 1, i64::from(largest) + 1) as i16;
        let (low, high) = (clamp(low).max(-largest), clamp(high).min(largest));
        (low <= high).then_some(Self::Start { low, high })
    }

    /// Whether it may end here.
    pub(super) fn accepts(self) -> bool {
        match self {
            Self::Start { .. } | Self::Size { .. } => false,
            Self::Zero { low, .. } => low <= 0,
            Self::Prefix { digits, low, high } => (low..=high).contains(&digits),
            Self::Rest { lengths } => lengths & 1 != 0,
        }
    }

    /// What is known after a plus or minus sign.
    pub(super) fn sign(self, negative: bool) -> Option<Self> {
        let Self::Start { low, high } = self else { return None };
        let (low, high) = if negative { (-high, -low) } else { (low, high) };
        (high >= 0).then_some(Self::Size { low: low.max(0), high })
    }

    /// What is known after a digit.
    pub(super) fn digit(self, digit: u8) -> Option<Self> {
        let digit = i16::from(digit);
        match self {
            Self::Start { .. } => self.sign(false)?.digit(digit as u8),
            Self::Size { low, high } if digit == 0 => Some(Self::Zero { low, high }),
            Self::Size { low, high } => Self::prefix(digit, DIGITS_MAX - 1, low, high),
            Self::Zero { low, high } => Self::prefix(digit, 0, low, high),
            Self::Prefix { digits, low, high } => {
                let left = if digits < 10 { DIGITS_MAX - 2 } else { 0 };
                Self::prefix(10 * digits + digit, left, low, high)
            }
            Self::Rest { lengths } => Self::rest(lengths >> 1),
        }
    }

    fn rest(lengths: u8) -> Option<Self> {
        (lengths != 0).then_some(Self::Rest { lengths })
    }

    /// What `digits` with up to `left` more can become: nothing more than a set of lengths where
    /// the range takes all or none of each length.
    fn prefix(digits: i16, left: u32, low: i16, high: i16) -> Option<Self> {
        let mut lengths = 0;
        for more in 0..=left {
            let span = 10_i16.pow(more);
            let (first, last) = (digits * span, digits * span + span - 1);
            if low <= first && last <= high {
                lengths |= 1 << more;
            } else if low <= last && first <= high {
                return Some(Self::Prefix { digits, low, high });
            }
        }
        Self::rest(lengths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(low: i64, high: i64, text: &str) -> bool {
        let Some(start) = Exponent::range(low, high, 307) else { return false };
        let end = text.bytes().try_fold(start, |state, byte| match byte {
            b'+' => state.sign(false),
            b'-' => state.sign(true),
            _ => state.digit(byte - b'0'),
        });
        end.is_some_and(Exponent::accepts)
    }

    #[test]
    fn ranges_are_exact() {
        let ranges =
            [(-307, 307), (0, 4), (3, 3), (-12, -3), (-5, 17), (99, 101), (5, 9999), (2, 1)];
        for (low, high) in ranges {
            for value in -400_i64..=400 {
                let allowed = (low..=high).contains(&value) && value.abs() <= 307;
                let size = value.abs();
                let mut texts = vec![format!("{size}")];
                texts.extend((size < 10).then(|| format!("0{size}")));
                for text in texts {
                    if value >= 0 {
                        assert_eq!(accepts(low, high, &text), allowed, "{low} {high} {text}");
                        assert_eq!(accepts(low, high, &format!("+{text}")), allowed);
                    }
                    if value <= 0 {
                        assert_eq!(accepts(low, high, &format!("-{text}")), allowed);
                    }
                }
            }
        }
        for text in ["", "+", "-", "000", "007", "012", "1000", "--1"] {
            assert!(!accepts(-307, 307, text), "{text}");
        }
    }
}
