//! The characters of Python literals and of dictionaries with bare keys.

use super::delimited::Delimiter;
use super::quoted::{Escapes, Quoted};

/// What a literal is written in.
#[derive(Clone, Debug)]
pub(super) enum Syntax {
    Python,
    /// Words run up to the next comma, colon or bracket; strings stand between delimiters.
    BareKeys(Delimiter),
}

/// What the first character of a string starts.
pub(super) enum StringStart {
    /// A quote, which is the whole of it.
    Quote(Quoted),
    /// A delimiter, of which it may be a part.
    Delimiter,
}

impl Syntax {
    pub(super) fn string(&self, character: char) -> Option<StringStart> {
        match self {
            Self::Python => python_string(character, Escapes::Python).map(StringStart::Quote),
            Self::BareKeys(delimiter) if delimiter.starts_with(character) => {
                Some(StringStart::Delimiter)
            }
            Self::BareKeys(_) => (character == '"').then(|| StringStart::Quote(Quoted::json())),
        }
    }

    /// Whether adjacent strings are one.
    pub(super) fn joins_strings(&self) -> bool {
        matches!(self, Self::Python)
    }

    pub(super) fn opens_bracket(&self, character: char) -> bool {
        match self {
            Self::Python => matches!(character, '[' | '{' | '('),
            Self::BareKeys(_) => matches!(character, '[' | '{'),
        }
    }

    pub(super) fn starts_word(&self, character: char) -> bool {
        match self {
            Self::Python => is_python_word(character),
            Self::BareKeys(delimiter) => {
                !matches!(character, ',' | ':' | '{' | '}' | '[' | ']' | ')' | '"')
                    && !delimiter.starts_with(character)
            }
        }
    }

    pub(super) fn continues_key(&self, character: char) -> bool {
        match self {
            Self::Python => is_python_word(character),
            Self::BareKeys(delimiter) => {
                !matches!(character, ':' | ',' | '{' | '}') && !delimiter.starts_with(character)
            }
        }
    }

    pub(super) fn continues_value(&self, character: char) -> bool {
        match self {
            Self::Python => is_python_word(character),
            Self::BareKeys(delimiter) => {
                !matches!(character, ',' | '{' | '}' | '[' | ']')
                    && !delimiter.starts_with(character)
            }
        }
    }
}

/// The string that a quote starts.
pub(super) fn python_string(quote: char, escapes: Escapes) -> Option<Quoted> {
    matches!(quote, '"' | '\'').then(|| Quoted::python(quote, escapes))
}

/// What a backslash does in a string with this prefix. Bytes and formatted strings are read as the
/// text they are written with.
pub(super) fn string_prefix(word: &str) -> Option<Escapes> {
    match word.to_ascii_lowercase().as_str() {
        "b" | "f" | "u" => Some(Escapes::Python),
        "r" | "rb" | "br" | "rf" | "fr" => Some(Escapes::Raw),
        _ => None,
    }
}

pub(super) fn is_whitespace(character: char) -> bool {
    matches!(character, ' ' | '\n' | '\r' | '\t')
}

/// Of numbers, names, dotted names and dates.
fn is_python_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '.' | '+' | '-')
}
