//! `strftime_now(format)`: the time of the request in C's `strftime` format, C locale.

use std::fmt::Write;

use minijinja::{Error, ErrorKind};
use time::OffsetDateTime;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Writes `now` by `format`; a directive that C does not define is an error.
pub(super) fn strftime(format: &str, now: OffsetDateTime) -> Result<String, Error> {
    let mut out = String::with_capacity(format.len() * 2);
    let mut chars = format.chars();
    while let Some(ch) = chars.next() {
        if ch != '%' {
            out.push(ch);
            continue;
        }
        let mut directive = chars.next();
        let padding = match directive {
            Some('-') => Padding::None,
            Some('_') => Padding::Space,
            Some('0') => Padding::Zero,
            _ => Padding::Default,
        };
        if padding != Padding::Default {
            directive = chars.next();
        }
        let known = directive.is_some_and(|letter| write_directive(&mut out, letter, padding, now));
        if !known {
            let letter = directive.map(String::from).unwrap_or_default();
            return Err(Error::new(
                ErrorKind::InvalidOperation,
                format!("strftime_now does not know the directive %{letter}"),
            ));
        }
    }
    Ok(out)
}

/// How a number shorter than its field is filled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Padding {
    Default,
    None,
    Space,
    Zero,
}

impl Padding {
    /// The number in a field of `width`, filled as asked, with zeros by default.
    fn zero(self, out: &mut String, number: i64, width: usize) {
        let _ = match self {
            Self::None => write!(out, "{number}"),
            Self::Space => write!(out, "{number:>width$}"),
            Self::Default | Self::Zero => write!(out, "{number:0>width$}"),
        };
    }

    /// The number in a field of `width`, filled as asked, with blanks by default.
    fn space(self, out: &mut String, number: i64, width: usize) {
        let chosen = if self == Self::Default { Self::Space } else { self };
        chosen.zero(out, number, width);
    }
}

/// Appends one directive; false when there is none of that letter.
fn write_directive(out: &mut String, letter: char, padding: Padding, now: OffsetDateTime) -> bool {
    let hour = i64::from(now.hour());
    let hour_12 = (hour + 11) % 12 + 1;
    let year = i64::from(now.year());
    match letter {
        'a' => out.push_str(day_name(now).get(..3).unwrap_or_default()),
        'A' => out.push_str(day_name(now)),
        'b' | 'h' => out.push_str(month_name(now).get(..3).unwrap_or_default()),
        'B' => out.push_str(month_name(now)),
        'd' => padding.zero(out, i64::from(now.day()), 2),
        'e' => padding.space(out, i64::from(now.day()), 2),
        'm' => padding.zero(out, i64::from(u8::from(now.month())), 2),
        'y' => padding.zero(out, year.rem_euclid(100), 2),
        'Y' => padding.zero(out, year, 1),
        'C' => padding.zero(out, year.div_euclid(100), 2),
        'j' => padding.zero(out, i64::from(now.ordinal()), 3),
        'H' => padding.zero(out, hour, 2),
        'I' => padding.zero(out, hour_12, 2),
        'k' => padding.space(out, hour, 2),
        'l' => padding.space(out, hour_12, 2),
        'M' => padding.zero(out, i64::from(now.minute()), 2),
        'S' => padding.zero(out, i64::from(now.second()), 2),
        'f' => padding.zero(out, i64::from(now.microsecond()), 6),
        'p' => out.push_str(if hour < 12 { "AM" } else { "PM" }),
        'P' => out.push_str(if hour < 12 { "am" } else { "pm" }),
        'u' => padding.zero(out, i64::from(now.weekday().number_from_monday()), 1),
        'w' => padding.zero(out, i64::from(now.weekday().number_days_from_sunday()), 1),
        'U' => padding.zero(out, i64::from(now.sunday_based_week()), 2),
        'W' => padding.zero(out, i64::from(now.monday_based_week()), 2),
        'V' => padding.zero(out, i64::from(now.iso_week()), 2),
        'G' => padding.zero(out, i64::from(now.to_iso_week_date().0), 1),
        's' => padding.zero(out, now.unix_timestamp(), 1),
        'n' => out.push('\n'),
        't' => out.push('\t'),
        '%' => out.push('%'),
        // A naive local time has neither, as in Python.
        'z' | 'Z' => {}
        _ => return write_compound(out, letter, now),
    }
    true
}

/// The directives that stand for several others.
fn write_compound(out: &mut String, letter: char, now: OffsetDateTime) -> bool {
    let format = match letter {
        'c' => "%a %b %e %H:%M:%S %Y",
        'D' | 'x' => "%m/%d/%y",
        'F' => "%Y-%m-%d",
        'r' => "%I:%M:%S %p",
        'R' => "%H:%M",
        'T' | 'X' => "%H:%M:%S",
        _ => return false,
    };
    match strftime(format, now) {
        Ok(text) => {
            out.push_str(&text);
            true
        }
        Err(_) => false,
    }
}

fn month_name(now: OffsetDateTime) -> &'static str {
    MONTHS.get(usize::from(u8::from(now.month())) - 1).copied().unwrap_or_default()
}

fn day_name(now: OffsetDateTime) -> &'static str {
    DAYS.get(usize::from(now.weekday().number_days_from_sunday())).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    #[test]
    fn directives_read_as_c_has_them() {
        let now = datetime!(2026-02-03 00:07:09.000123 UTC);
        let cases = [
            ("%d %b %Y", "03 Feb 2026"),
            ("%Y-%m-%d", "2026-02-03"),
            ("%B %-d, %Y", "February 3, 2026"),
            ("%A %a %e|%_H|%k", "Tuesday Tue  3| 0| 0"),
            ("%I:%M:%S %p %P", "12:07:09 AM am"),
            ("%j %y %C %u %w %U %W %V %G", "034 26 20 2 2 05 05 06 2026"),
            ("%F %T %D %R %r", "2026-02-03 00:07:09 02/03/26 00:07 12:07:09 AM"),
            ("%c", "Tue Feb  3 00:07:09 2026"),
            ("%f%%%n%t%Z%z", "000123%\n\t"),
            ("é", "é"),
        ];
        for (format, expected) in cases {
            assert_eq!(strftime(format, now).unwrap(), expected, "{format}");
        }
    }

    #[test]
    fn an_unknown_directive_is_named() {
        let now = datetime!(2026-02-03 00:00 UTC);
        for format in ["%Q", "%", "%-"] {
            assert!(
                strftime(format, now).unwrap_err().to_string().contains("directive"),
                "{format}"
            );
        }
    }
}
