//! Words without quotes: numbers as Python writes them, `True`, and text that stands for itself.

use super::write::write_string;

/// What a number such as `007` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeadingZeros {
    /// No number: somebody's code, to be kept as it is.
    Refused,
    /// The number without them.
    Dropped,
}

/// Appends the JSON value of a word: `true`, `false` or `null` in JSON's or Python's spelling, a
/// number, else a string.
pub(super) fn write_word(word: &str, out: &mut String) {
    match constant(word) {
        Some(constant) => out.push_str(constant),
        None => match number(word, LeadingZeros::Refused) {
            Some(number) => out.push_str(&number),
            None => write_string(word, out),
        },
    }
}

/// Appends a word as the name of a member, which is a string whatever the word is. It is spelled as
/// Python's `json.dumps` spells such keys: `True` is `"true"`, `0x10` is `"16"`.
pub(super) fn write_key(word: &str, out: &mut String) {
    match constant(word) {
        Some(constant) => write_string(constant, out),
        None => write_string(number(word, LeadingZeros::Refused).as_deref().unwrap_or(word), out),
    }
}

fn constant(word: &str) -> Option<&'static str> {
    match word {
        "True" | "true" => Some("true"),
        "False" | "false" => Some("false"),
        "None" | "null" => Some("null"),
        _ => None,
    }
}

/// The JSON spelling of a Python number. `None` for what is none, for complex numbers, and for
/// hexadecimal, octal and binary ones of more than 128 bits.
pub(super) fn number(word: &str, zeros: LeadingZeros) -> Option<String> {
    let (sign, unsigned) = match word.as_bytes().first()? {
        b'-' => ("-", word.get(1..)?),
        b'+' => ("", word.get(1..)?),
        _ => ("", word),
    };
    let digits = match unsigned.get(..2) {
        Some("0x" | "0X") => with_radix(unsigned, 16)?,
        Some("0o" | "0O") => with_radix(unsigned, 8)?,
        Some("0b" | "0B") => with_radix(unsigned, 2)?,
        _ => decimal(unsigned, zeros)?,
    };
    Some(format!("{sign}{digits}"))
}

fn with_radix(unsigned: &str, radix: u32) -> Option<String> {
    let digits = unsigned.get(2..)?;
    let digits = plain_digits(digits.strip_prefix('_').unwrap_or(digits), |c| c.is_digit(radix))?;
    u128::from_str_radix(&digits, radix).ok().map(|value| value.to_string())
}

fn decimal(unsigned: &str, zeros: LeadingZeros) -> Option<String> {
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    if whole.is_empty() && fraction.is_none_or(str::is_empty) {
        return None;
    }
    let is_float = fraction.is_some() || exponent.is_some();
    let mut json = whole_part(whole, if is_float { LeadingZeros::Dropped } else { zeros })?;
    if let Some(fraction) = fraction {
        json.push('.');
        json.push_str(&optional_digits(fraction)?);
    }
    if let Some(exponent) = exponent {
        let (sign, digits) = match exponent.as_bytes().first()? {
            b'-' => ("e-", exponent.get(1..)?),
            b'+' => ("e+", exponent.get(1..)?),
            _ => ("e", exponent),
        };
        json.push_str(sign);
        json.push_str(&plain_digits(digits, |c| c.is_ascii_digit())?);
    }
    Some(json)
}

fn whole_part(text: &str, zeros: LeadingZeros) -> Option<String> {
    let digits = optional_digits(text)?;
    let significant = digits.trim_start_matches('0');
    match (significant.is_empty(), zeros) {
        (true, _) => Some("0".to_owned()),
        (false, LeadingZeros::Refused) if significant.len() < digits.len() => None,
        (false, _) => Some(significant.to_owned()),
    }
}

/// Digits, or `0` where Python lets them be left out.
fn optional_digits(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("0".to_owned());
    }
    plain_digits(text, |c| c.is_ascii_digit())
}

/// At least one digit, without the single underscores that may stand between two of them.
fn plain_digits(text: &str, is_digit: impl Fn(char) -> bool) -> Option<String> {
    let groups_are_digits =
        text.split('_').all(|group| !group.is_empty() && group.chars().all(&is_digit));
    groups_are_digits.then(|| text.replace('_', ""))
}
