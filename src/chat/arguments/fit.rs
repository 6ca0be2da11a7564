//! A whole text as a value of a declared type.

use super::converter::{Converter, Dialect, Progress};
use super::number::is_number;
use super::word::{LeadingZeros, number};
use crate::grammar::json_schema::{DeclaredTypes, types};

/// The JSON of a text that spells a value of a declared type other than string; `None` where it
/// is to be a string.
pub(super) fn fit(text: &str, declared: DeclaredTypes) -> Option<String> {
    let text = text.trim();
    if declared == DeclaredTypes::string() {
        return None;
    }
    constant(text, declared)
        .or_else(|| number_that_fits(text, declared))
        .or_else(|| bracketed(text, declared))
}

fn constant(text: &str, declared: DeclaredTypes) -> Option<String> {
    // Where nothing is declared, only JSON is more than a string.
    let text = match text {
        "True" | "False" | "None" if declared.is_unknown() => return None,
        "None" => "null".to_owned(),
        "True" | "False" => text.to_ascii_lowercase(),
        _ if declared.allows_string() => text.to_owned(),
        _ => text.to_ascii_lowercase(),
    };
    let type_bit = match text.as_str() {
        "true" | "false" => types::BOOLEAN,
        "null" => types::NULL,
        _ => return None,
    };
    declared.allows(type_bit).then_some(text)
}

fn number_that_fits(text: &str, declared: DeclaredTypes) -> Option<String> {
    let json = match declared.allows_string() {
        true => is_number(text).then(|| text.to_owned()),
        false if is_number(text) => Some(text.to_owned()),
        false => number(text, LeadingZeros::Dropped),
    }?;
    let value: f64 = json.parse().ok()?;
    let type_bit = if value.fract() == 0.0 { types::INTEGER } else { types::NUMBER };
    (value.is_finite() && declared.allows(type_bit)).then_some(json)
}

/// An array or object. Where the type is declared Python's spelling is read too.
fn bracketed(text: &str, declared: DeclaredTypes) -> Option<String> {
    // A text that may be a string is one from its first character if that is a parenthesis.
    if !text.starts_with(['[', '{']) && declared.allows_string() {
        return None;
    }
    let dialects = match declared.is_unknown() {
        true => &[Dialect::Json] as &[Dialect],
        false => &[Dialect::Json, Dialect::Python],
    };
    dialects.iter().find_map(|dialect| {
        let json = convert(text, dialect.clone())?;
        let type_bit = match json.as_bytes().first()? {
            b'[' => types::ARRAY,
            b'{' => types::OBJECT,
            _ => return None,
        };
        declared.allows(type_bit).then_some(json)
    })
}

/// The JSON of a text that is one value and nothing else.
fn convert(text: &str, dialect: Dialect) -> Option<String> {
    let mut json = String::new();
    let progress = Converter::new(dialect).push(text, &mut json);
    (progress == Progress::Complete { consumed: text.len() }).then_some(json)
}
