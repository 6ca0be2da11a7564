//! Which texts a string may be, so that who reads an answer takes all of it and nothing more for the
//! string.

use std::sync::Arc;

use super::super::{DeclaredTypes, Dialect, SchemaError, types};
use super::Lowering;
use super::style::{Markup, Style};
use crate::grammar::expr::CharSet;
use crate::grammar::limits::Fuel;
use crate::grammar::regular::{Dfa, DfaArm, DfaState, RegularError};

/// What Unicode takes for whitespace, which is trimmed before a text is looked at.
const WHITESPACE: &str =
    "[\\t-\\r \\x85\\xA0\\u1680\\u2000-\\u200A\\u2028\\u2029\\u202F\\u205F\\u3000]*";

impl Lowering<'_> {
    /// What ends a parameter, in texts and in the strings of JSON values.
    pub(super) fn close(&self) -> Option<&str> {
        match &self.dialect {
            Dialect::Parameters(blocks) => Some(&blocks.close),
            _ => None,
        }
    }

    /// Whether JSON between two strings can never hold the start of what ends a parameter, nor an
    /// escape any of it: then keeping it out of strings keeps it out of values.
    pub(super) fn json_can_avoid_close(&self) -> bool {
        let Some(close) = self.close() else { return true };
        let is_safe =
            |first: char| !first.is_ascii_alphanumeric() && !"{}[],:+-.\" \t\r\n".contains(first);
        close.chars().next().is_some_and(is_safe)
            && !close.chars().any(|character| matches!(character, '"' | '\\' | '\0'..='\x1F'))
    }

    /// The texts that strings of a style may be; `None`: any.
    pub(super) fn text_limits(
        &mut self,
        style: Style,
        fuel: &mut Fuel<'_>,
    ) -> Result<Option<Arc<Dfa>>, SchemaError> {
        if let Some(known) = self.limits.get(&style) {
            return Ok(known.clone());
        }
        let limits = match style {
            Style::Json => self.close().map(|close| texts_without(close, "", None)),
            Style::Python(_) => None,
            Style::Bare(declared) => match self.delimiter() {
                "" => None,
                delimiter => {
                    let texts = texts_without(delimiter, "", Some(delimiter));
                    Some(match declared {
                        Some(declared) => unmistaken(texts, declared, fuel)?,
                        None => texts,
                    })
                }
            },
            Style::Plain(declared, markup) => Some(self.plain_texts(declared, markup, fuel)?),
        };
        let limits = limits.map(Arc::new);
        self.limits.insert(style, limits.clone());
        Ok(limits)
    }

    fn plain_texts(
        &self,
        declared: DeclaredTypes,
        markup: Markup,
        fuel: &mut Fuel<'_>,
    ) -> Result<Dfa, RegularError> {
        let Dialect::Parameters(blocks) = &self.dialect else { return Ok(Dfa::never()) };
        let (before, after) = match markup {
            Markup::None => ("", ""),
            Markup::Any | Markup::Cdata => blocks.wrapping.marks(),
        };
        let end = format!("{after}{}", blocks.close);
        let mut texts = texts_without(&blocks.close, before, Some(&end));
        match markup {
            Markup::Any => {}
            Markup::None => {
                let refused = CharSet::new(b"<&\n".map(|byte| (byte.into(), byte.into())));
                let plain = Dfa::chars(&refused.complement()).repeat(0, None, fuel)?;
                texts = texts.intersect(&plain, fuel)?;
            }
            Markup::Cdata => {
                texts = texts.intersect(&texts_without(after, "", Some(after)), fuel)?
            }
        }
        unmistaken(texts, declared, fuel)
    }
}

/// The texts that do not hold `pattern` and, with `before` and `after` around them, not even in part:
/// all of it is first met at the very end of `after`. Without `after`, whatever follows.
fn texts_without(pattern: &str, before: &str, after: Option<&str>) -> Dfa {
    let pattern: Vec<char> = pattern.chars().collect();
    let mut characters = pattern.clone();
    characters.sort_unstable();
    characters.dedup();
    // So many of the pattern's characters have been met.
    let step = |met: usize, next: char| -> usize {
        let mut text: Vec<char> = pattern.iter().take(met).copied().collect();
        text.push(next);
        (0..=text.len().min(pattern.len()))
            .rev()
            .find(|&length| text.ends_with(&pattern[..length]))
            .unwrap_or(0)
    };
    let run = |met: usize, text: &str| -> Option<usize> {
        text.chars().try_fold(met, |met, next| (met < pattern.len()).then(|| step(met, next)))
    };
    let ends_well = |met: usize| match after {
        None => true,
        Some(after) => run(met, after) == Some(pattern.len()),
    };
    let Some(start) = run(0, before).filter(|&met| met < pattern.len()) else {
        return Dfa::never();
    };
    let state = |met: usize| {
        let others = CharSet::new(characters.iter().map(|&it| (it.into(), it.into()))).complement();
        let mut arms: Vec<DfaArm> =
            others.ranges().iter().map(|&(low, high)| DfaArm { low, high, next: 0 }).collect();
        for &character in &characters {
            let (code, next) = (u32::from(character), step(met, character));
            if next < pattern.len() {
                arms.push(DfaArm { low: code, high: code, next: next as u32 });
            }
        }
        arms.sort_unstable_by_key(|arm| arm.low);
        DfaState { accepting: ends_well(met), arms: arms.into() }
    };
    Dfa::assemble((0..pattern.len()).map(state).collect(), start as u32)
}

/// Those of the texts that are taken for a string where these types are declared. Some more are left
/// out: all that start like an array or object where one is declared.
fn unmistaken(
    texts: Dfa,
    declared: DeclaredTypes,
    fuel: &mut Fuel<'_>,
) -> Result<Dfa, RegularError> {
    if declared == DeclaredTypes::string() {
        return Ok(texts);
    }
    let mut others: Vec<&str> = Vec::new();
    let has_python = !declared.is_unknown();
    let choices = [
        (types::NULL, "null", "None"),
        (types::BOOLEAN, "true|false", "True|False"),
        (types::INTEGER, r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+\-]?[0-9]+)?", ""),
        (types::ARRAY, r"\[[\s\S]*", ""),
        (types::OBJECT, r"\{[\s\S]*", ""),
    ];
    for (type_bit, json, python) in choices {
        if declared.allows(type_bit) {
            others.push(json);
            others.extend(Some(python).filter(|python| has_python && !python.is_empty()));
        }
    }
    if others.is_empty() {
        return Ok(texts);
    }
    let pattern = format!("^{WHITESPACE}(?:{}){WHITESPACE}$", others.join("|"));
    texts.difference(&Dfa::pattern(&pattern, fuel)?, fuel)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unmistaken_of(declared: &str) -> Dfa {
        let schema = format!(r#"{{"properties": {{"p": {declared}}}}}"#);
        let schema = serde_json::from_str(&schema).unwrap();
        let declared = DeclaredTypes::of_parameter(&schema, "p");
        unmistaken(Dfa::any(), declared, &mut Fuel::new(1_000_000)).unwrap()
    }

    #[test]
    fn a_text_is_without_its_end() {
        for (before, after, good, bad) in [
            ("", Some("</a>"), &["", "a", "<", "</", "<</a", "/a>"][..], &["</a>", "x</a>y"][..]),
            ("<", Some("</a>"), &["", "a>", "/b>", "</"], &["/a>", "/a>x"]),
            ("", None, &["", "</a", "<</a"], &["</a>", "<</a>"]),
        ] {
            let texts = texts_without("</a>", before, after);
            for text in good {
                assert!(texts.accepts(text), "{before:?} {after:?}: {text:?}");
            }
            for text in bad {
                assert!(!texts.accepts(text), "{before:?} {after:?}: {text:?}");
            }
        }
    }

    #[test]
    fn an_end_that_begins_early_is_seen() {
        // Whoever reads `x'` and `''` finds the end one character too early.
        let texts = texts_without("''", "", Some("''"));
        assert!(texts.accepts("x") && texts.accepts("'x"));
        assert!(!texts.accepts("x'") && !texts.accepts("'"));
        // A text that the end does not follow has none at all.
        assert!(texts_without("''", "", Some("'x")).is_never());
        assert!(texts_without("", "", None).is_never());
        assert!(texts_without("ab", "xab", Some("ab")).is_never());
    }

    #[test]
    fn texts_of_other_types_are_no_strings() {
        let string_or = |other: &str| unmistaken_of(&format!(r#"{{"type": ["string", {other}]}}"#));
        for (texts, good, bad) in [
            (string_or(r#""string""#), &["null", "1", "[", " true "][..], &[][..]),
            (
                string_or(r#""null""#),
                &["NULL", "nul", "1", "{}"],
                &["null", "None", "\u{85}null\n"],
            ),
            (string_or(r#""boolean""#), &["TRUE", "null"], &["true", " False"]),
            (
                string_or(r#""integer""#),
                &["03106", "1.", "+1", "1 2", "-", "1_0"],
                &["0", "-12", " 1e5 ", "1.5"],
            ),
            (string_or(r#""array""#), &["(1)", "x[", "{}"], &["[", " [1]"]),
            (unmistaken_of("{}"), &["True", "None", "x"], &["true", "null", "7", "{x", "[]"]),
        ] {
            for text in good {
                assert!(texts.accepts(text), "{text:?}");
            }
            for text in bad {
                assert!(!texts.accepts(text), "{text:?}");
            }
        }
    }
}
