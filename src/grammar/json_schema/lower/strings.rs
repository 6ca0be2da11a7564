//! Strings, by the languages of their contents.

use std::sync::Arc;

use super::super::{DeclaredTypes, Format, SchemaError, StringSet};
use super::Lowering;
use super::style::{Quotes, Style};
use super::values::NEVER;
use crate::grammar::expr::{CharSet, ExprId};
use crate::grammar::limits::Fuel;
use crate::grammar::regular::{Dfa, RegularError};
use crate::grammar::text::{Spelling, TextMachine};

/// Greatest least length that is put into an automaton.
const MIN_CHARS_MAX: u32 = 4_096;
/// States up to which a greatest length is put into the automaton of a key.
const COUNTED_STATES_MAX: u32 = 20_000;

impl Lowering<'_> {
    /// A string of the set.
    pub(super) fn string(
        &mut self,
        set: &StringSet,
        style: Style,
        fuel: &mut Fuel<'_>,
    ) -> Result<ExprId, SchemaError> {
        let key = (set.clone(), style);
        if let Some(known) = self.find_known(|known| known.strings.get(&key)) {
            return Ok(known);
        }
        let string = match style {
            Style::Json | Style::Python(Quotes::Double) => {
                self.quoted(set, style, ("\"", Spelling::Json), fuel)?
            }
            Style::Python(Quotes::Either) => {
                let double = self.string(set, Style::Python(Quotes::Double), fuel)?;
                let single = self.quoted(set, style, ("'", Spelling::SingleQuoted), fuel)?;
                self.pool.alt(&[double, single])
            }
            Style::Bare(declared) => {
                let delimiter = self.delimiter().to_owned();
                let is_read = declared.is_none_or(DeclaredTypes::allows_string);
                match &*delimiter {
                    "" => self.string(set, Style::Json, fuel)?,
                    _ if is_read => self.quoted(set, style, (&delimiter, Spelling::Plain), fuel)?,
                    _ if self.reads_json_strings() => self.string(set, Style::Json, fuel)?,
                    _ => NEVER,
                }
            }
            Style::Plain(declared, _) if declared.allows_string() => {
                self.quoted(set, style, ("", Spelling::Plain), fuel)?
            }
            Style::Plain(..) => NEVER,
        };
        self.known.strings.insert(key, string);
        Ok(string)
    }

    /// A string of the set between two of a quote.
    fn quoted(
        &mut self,
        set: &StringSet,
        style: Style,
        (quote, spelling): (&str, Spelling),
        fuel: &mut Fuel<'_>,
    ) -> Result<ExprId, SchemaError> {
        let limits = self.text_limits(style, fuel)?;
        let has_language =
            !set.patterns.is_empty() || !set.formats.is_empty() || !set.excluded.is_empty();
        if !has_language && limits.is_none() && style == Style::Json {
            return Ok(self.string_of_length(set.min_chars, set.max_chars));
        }
        let text = match self.repeated_characters(set, limits.as_deref(), spelling, fuel)? {
            Some(text) => text,
            None => self.text(set, limits.as_deref(), spelling, fuel)?,
        };
        let quote = self.pool.literal(quote.as_bytes());
        let string = self.pool.seq(&[quote, text, quote]);
        if has_language || (set.min_chars, set.max_chars) != (0, None) {
            return Ok(string);
        }
        Ok(self.one_place(string))
    }

    /// The contents of strings of a set, within the limits of their style.
    fn text(
        &mut self,
        set: &StringSet,
        limits: Option<&Dfa>,
        spelling: Spelling,
        fuel: &mut Fuel<'_>,
    ) -> Result<ExprId, SchemaError> {
        let mut language = self.language(set, fuel)?;
        if let Some(limits) = limits {
            language = Arc::new(language.intersect(limits, fuel)?);
        }
        if language.is_never() {
            return Ok(NEVER);
        }
        let mut machine = TextMachine::of_language(&language, spelling);
        if let Some(max) = set.max_chars
            && language.max_chars().is_none_or(|longest| longest > max)
        {
            machine.max_chars = Some(max);
        } else {
            machine.shared = Format::number_of(&language);
        }
        Ok(self.pool.text(Arc::new(machine)))
    }

    /// A rule of its own, so that it is one place however often it is used.
    fn one_place(&mut self, string: ExprId) -> ExprId {
        let rule = self.pool.declare("string");
        self.pool.define(rule, string);
        self.pool.call(rule)
    }

    /// A string of any characters, as JSON writes them: all escapes are allowed.
    fn string_of_length(&mut self, min: u32, max: Option<u32>) -> ExprId {
        if (min, max) == (0, None)
            && let Some(known) = self.find_known(|known| known.any_string.as_ref())
        {
            return known;
        }
        let character = self.any_character();
        let body = self.pool.repeat(character, min, max);
        let quote = self.pool.literal(b"\"");
        let string = self.pool.seq(&[quote, body, quote]);
        if (min, max) == (0, None) {
            let string = self.one_place(string);
            return *self.known.any_string.insert(string);
        }
        string
    }

    /// One character of a string: itself, or an escape. A pair of surrogates is one character, and
    /// a surrogate alone is none.
    fn any_character(&mut self) -> ExprId {
        let pool = &mut *self.pool;
        let plain = pool.chars(CharSet::new([(0, 0x1F), (0x22, 0x22), (0x5C, 0x5C)]).complement());
        let short = pool.chars(CharSet::new(b"\"\\/bfnrt".map(|c| (u32::from(c), u32::from(c)))));
        let hex = pool.chars(CharSet::new([(0x30, 0x39), (0x41, 0x46), (0x61, 0x66)]));
        let d = pool.chars(CharSet::new([(0x44, 0x44), (0x64, 0x64)]));
        let not_d = pool.chars(CharSet::new([
            (0x30, 0x39),
            (0x41, 0x43),
            (0x45, 0x46),
            (0x61, 0x63),
            (0x65, 0x66),
        ]));
        let to_7 = pool.chars(CharSet::new([(0x30, 0x37)]));
        let high = pool.chars(CharSet::new([(0x38, 0x39), (0x41, 0x42), (0x61, 0x62)]));
        let low = pool.chars(CharSet::new([(0x43, 0x46), (0x63, 0x66)]));
        let usual = pool.seq(&[not_d, hex, hex, hex]);
        let before_surrogates = pool.seq(&[d, to_7, hex, hex]);
        let u = pool.literal(b"\\u");
        let pair = pool.seq(&[d, high, hex, hex, u, d, low, hex, hex]);
        let long = pool.alt(&[usual, before_surrogates, pair]);
        let letter = pool.literal(b"u");
        let long = pool.seq(&[letter, long]);
        let escape = pool.alt(&[short, long]);
        let backslash = pool.literal(b"\\");
        let escape = pool.seq(&[backslash, escape]);
        pool.alt(&[plain, escape])
    }

    /// `^[…]{m,n}$` needs no automaton, and n may be as large as it likes.
    fn repeated_characters(
        &mut self,
        set: &StringSet,
        limits: Option<&Dfa>,
        spelling: Spelling,
        fuel: &mut Fuel<'_>,
    ) -> Result<Option<ExprId>, SchemaError> {
        let [(pattern, true)] = &*set.patterns else { return Ok(None) };
        if !set.formats.is_empty() || !set.excluded.is_empty() {
            return Ok(None);
        }
        let Some((chars, min, max)) = Dfa::pattern_is_simple_repeat(pattern) else {
            return Ok(None);
        };
        let one = Dfa::chars(&chars);
        if let Some(limits) = limits {
            // The limits must not matter to such texts at all.
            let outside = one.repeat(0, None, fuel)?.difference(limits, fuel)?;
            if !outside.is_never() {
                return Ok(None);
            }
        }
        let min = min.max(set.min_chars);
        let max = match (max, set.max_chars) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let character = self.pool.text(Arc::new(TextMachine::of_language(&one, spelling)));
        Ok(Some(self.pool.repeat(character, min, max)))
    }

    /// The contents of strings of a set, but for the greatest length.
    fn language(&mut self, set: &StringSet, fuel: &mut Fuel<'_>) -> Result<Arc<Dfa>, SchemaError> {
        let mut parts: Vec<Arc<Dfa>> = Vec::new();
        for (pattern, positive) in &set.patterns {
            let found = self.document.pattern(pattern, fuel)?;
            parts.push(if *positive { found } else { Arc::new(found.complement(fuel)?) });
        }
        for &(format, positive) in &set.formats {
            let language = format.language(fuel)?;
            parts.push(if positive { language } else { Arc::new(language.complement(fuel)?) });
        }
        if !set.excluded.is_empty() {
            parts.push(Arc::new(Dfa::literals(&set.excluded).complement(fuel)?));
        }
        let mut parts = parts.into_iter();
        let mut language = parts.next().unwrap_or_else(|| Arc::new(Dfa::any()));
        for part in parts {
            language = Arc::new(language.intersect(&part, fuel)?);
        }
        if language.min_chars().is_some_and(|shortest| shortest < set.min_chars) {
            if set.min_chars > MIN_CHARS_MAX {
                return Err(RegularError::TooLarge { states_max: MIN_CHARS_MAX as usize }.into());
            }
            let long = Dfa::length(set.min_chars, None);
            language = Arc::new(language.intersect(&long, fuel)?);
        }
        Ok(language)
    }

    /// The contents of strings of a set, the greatest length included.
    pub(super) fn whole_language(
        &mut self,
        set: &StringSet,
        fuel: &mut Fuel<'_>,
    ) -> Result<Arc<Dfa>, SchemaError> {
        let language = self.language(set, fuel)?;
        let Some(max) = set.max_chars else { return Ok(language) };
        if language.max_chars().is_some_and(|longest| longest <= max) {
            return Ok(language);
        }
        let states = u32::try_from(language.states().len()).unwrap_or(u32::MAX);
        if states.saturating_mul(max) > COUNTED_STATES_MAX {
            return Err(RegularError::TooLarge { states_max: COUNTED_STATES_MAX as usize }.into());
        }
        Ok(Arc::new(language.intersect(&Dfa::length(0, Some(max)), fuel)?))
    }
}
