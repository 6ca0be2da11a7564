//! How the values of one rule are written.

use super::super::{DeclaredTypes, Dialect, SchemaError, types};
use super::Lowering;
use crate::grammar::expr::{ExprId, ExprPool};
use crate::grammar::limits::Fuel;
use crate::grammar::text::Spelling;

/// How the values of one rule are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Style {
    Json,
    Python(Quotes),
    /// Bare keys and delimited strings. With types: who reads a string takes it for a value of one
    /// of these types if it looks like one.
    Bare(Option<DeclaredTypes>),
    /// The text of a parameter: a string as it is, everything else as JSON. Who reads it has these
    /// types to tell what it is.
    Plain(DeclaredTypes, Markup),
}

/// What Python strings stand in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Quotes {
    Either,
    /// Double ones, so that keys that come twice can be told by reading the text as JSON.
    Double,
}

/// What a plain text may hold, beside what could be mistaken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Markup {
    Any,
    /// Nothing that XML would want in a CDATA section.
    None,
    /// Whatever a CDATA section may hold.
    Cdata,
}

/// The words of a style for null, false and true.
pub(super) type Words = [&'static [&'static str]; 3];

impl Style {
    /// How values within arrays and objects are written.
    pub(super) fn inner(self) -> Self {
        match self {
            Self::Json | Self::Plain(..) => Self::Json,
            Self::Python(quotes) => Self::Python(quotes),
            Self::Bare(_) => Self::Bare(None),
        }
    }

    pub(super) fn words(self) -> Words {
        match self {
            Self::Json | Self::Bare(_) => [&["null"], &["false"], &["true"]],
            Self::Python(_) => [&["None"], &["False"], &["True"]],
            // Where types are declared, Python's words are understood, and some models write them.
            Self::Plain(declared, _) => {
                let words: Words = match declared.is_unknown() {
                    false => [&["null", "None"], &["false", "False"], &["true", "True"]],
                    true => [&["null"], &["false"], &["true"]],
                };
                let bits = [types::NULL, types::BOOLEAN, types::BOOLEAN];
                std::array::from_fn(
                    |index| {
                        if declared.allows(bits[index]) { words[index] } else { &[] }
                    },
                )
            }
        }
    }

    /// Whether values of this type can be told for what they are.
    pub(super) fn tells(self, type_bit: u8) -> bool {
        match self {
            Self::Plain(declared, _) => declared.allows(type_bit),
            _ => true,
        }
    }
}

impl Lowering<'_> {
    /// Whether there is whitespace between the parts of a value.
    fn has_gaps(&self, style: Style) -> bool {
        !matches!(style, Style::Bare(_) | Style::Plain(..))
    }

    /// What stands between two values, the whitespace that always follows included.
    pub(super) fn comma(&self, style: Style) -> &'static str {
        if self.has_gaps(style) { self.options.whitespace.comma() } else { "," }
    }

    /// What stands between a key and its value, in the same way.
    pub(super) fn colon(&self, style: Style) -> &'static str {
        if self.has_gaps(style) { self.options.whitespace.colon() } else { ":" }
    }

    /// Whitespace, where it is allowed.
    pub(super) fn gap_of(&mut self, style: Style) -> ExprId {
        if self.has_gaps(style) { self.gap() } else { ExprPool::EMPTY }
    }

    /// Whitespace, where it is allowed, as a rule of its own: for places where a value of its own
    /// rule follows.
    pub(super) fn gap_before_value(&mut self, style: Style) -> ExprId {
        if !self.has_gaps(style) {
            return ExprPool::EMPTY;
        }
        let rule = match self.find_known(|known| known.gap_rule.as_ref()) {
            Some(rule) => rule,
            None => {
                let (gap, rule) = (self.gap(), self.pool.declare("gap"));
                self.pool.define(rule, gap);
                *self.known.gap_rule.insert(rule)
            }
        };
        self.pool.call(rule)
    }

    /// What bare strings stand between; nothing where they are JSON's.
    pub(super) fn delimiter(&self) -> &str {
        match &self.dialect {
            Dialect::BareKeys(delimiter) => delimiter,
            _ => "",
        }
    }

    /// Whether JSON strings are read as such among bare keys.
    pub(super) fn reads_json_strings(&self) -> bool {
        !self.delimiter().starts_with('"')
    }

    /// The texts of one string, of which the first is canonical; none if it cannot be written.
    pub(super) fn string_texts(
        &mut self,
        text: &str,
        style: Style,
        fuel: &mut Fuel<'_>,
    ) -> Result<Vec<String>, SchemaError> {
        let json = |text: &str| format!("\"{}\"", Spelling::Json.spelled(text));
        Ok(match style {
            Style::Json => vec![self.json_without_close(&json(text))],
            Style::Python(Quotes::Double) => vec![json(text)],
            Style::Python(Quotes::Either) => {
                vec![json(text), format!("'{}'", Spelling::SingleQuoted.spelled(text))]
            }
            Style::Bare(_) => {
                let is_clear = self.text_limits(style, fuel)?.is_none_or(|dfa| dfa.accepts(text));
                match self.delimiter() {
                    "" => vec![json(text)],
                    delimiter if is_clear => vec![format!("{delimiter}{text}{delimiter}")],
                    _ if self.reads_json_strings() => vec![json(text)],
                    _ => Vec::new(),
                }
            }
            Style::Plain(..) => {
                let is_clear = self.text_limits(style, fuel)?.is_none_or(|dfa| dfa.accepts(text));
                if is_clear { vec![text.to_owned()] } else { Vec::new() }
            }
        })
    }

    /// A JSON text whose strings do not hold what ends a parameter: its first character is escaped.
    pub(super) fn json_without_close(&self, json: &str) -> String {
        let Some(close) = self.close() else { return json.to_owned() };
        match close.chars().next() {
            Some(first) if json.contains(close) => {
                let mut units = [0; 2];
                let escaped: String = first
                    .encode_utf16(&mut units)
                    .iter()
                    .map(|unit| format!("\\u{unit:04x}"))
                    .collect();
                json.replace(close, &format!("{escaped}{}", &close[first.len_utf8()..]))
            }
            _ => json.to_owned(),
        }
    }
}
