//! What a text that may be a string could be instead, from its first characters.

use crate::grammar::json_schema::{DeclaredTypes, types};

/// What a text could be apart from a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Candidate {
    /// Nothing but whitespace so far.
    Blank,
    /// So many bytes of this word.
    Word(&'static str, usize),
    /// Characters that numbers are made of.
    Number,
    Array,
    Object,
    /// A word or number and whitespace after it.
    Ended(u8),
    String,
}

impl Candidate {
    /// What it could be after one more character.
    pub(super) fn next(self, character: char) -> Self {
        match self {
            Self::Blank => Self::first(character),
            Self::Word(word, read) => match word.get(read..) {
                Some("") if character.is_whitespace() => Self::Ended(type_of(word)),
                Some(missing) if missing.starts_with(character) => Self::Word(word, read + 1),
                _ => Self::String,
            },
            Self::Number => match character {
                '0'..='9' | '+' | '-' | '.' | 'e' | 'E' => Self::Number,
                _ if character.is_whitespace() => Self::Ended(types::INTEGER),
                _ => Self::String,
            },
            Self::Ended(_) if character.is_whitespace() => self,
            Self::Ended(_) | Self::String => Self::String,
            Self::Array | Self::Object => self,
        }
    }

    fn first(character: char) -> Self {
        match character {
            't' => Self::Word("true", 1),
            'T' => Self::Word("True", 1),
            'f' => Self::Word("false", 1),
            'F' => Self::Word("False", 1),
            'n' => Self::Word("null", 1),
            'N' => Self::Word("None", 1),
            '-' | '0'..='9' => Self::Number,
            '[' => Self::Array,
            '{' => Self::Object,
            _ if character.is_whitespace() => Self::Blank,
            _ => Self::String,
        }
    }

    /// Whether the text could be of a declared type that is not string.
    pub(super) fn is_possible(self, declared: DeclaredTypes) -> bool {
        match self {
            Self::Blank => declared != DeclaredTypes::string(),
            Self::Word(word, _) => declared.allows(type_of(word)),
            Self::Ended(type_bit) => declared.allows(type_bit),
            // Numbers that are no integers have the same characters.
            Self::Number => declared.allows(types::INTEGER),
            Self::Array => declared.allows(types::ARRAY),
            Self::Object => declared.allows(types::OBJECT),
            Self::String => false,
        }
    }
}

fn type_of(word: &str) -> u8 {
    if word.starts_with(['n', 'N']) { types::NULL } else { types::BOOLEAN }
}
