//! The patterns and formats of a document as languages, made when they are needed.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::grammar::regular::{Dfa, RegularError};
use crate::grammar::{CharSet, Fuel};

use super::format_name::Format;

/// What a pattern means.
#[derive(Clone, Debug)]
enum Language {
    Automaton(Arc<Dfa>),
    /// So many characters of a set, too many for an automaton.
    Repeat(Arc<CharSet>, u32, Option<u32>),
}

/// Languages by pattern; formats keep their own.
#[derive(Debug, Default)]
pub(super) struct Languages {
    patterns: FxHashMap<Arc<str>, Language>,
}

impl Languages {
    fn language(
        &mut self,
        pattern: &Arc<str>,
        fuel: &mut Fuel<'_>,
    ) -> Result<Language, RegularError> {
        if let Some(language) = self.patterns.get(pattern) {
            return Ok(language.clone());
        }
        let language = match Dfa::pattern(pattern, fuel) {
            Ok(dfa) => Language::Automaton(Arc::new(dfa)),
            Err(error @ RegularError::TooLarge { .. }) => {
                match Dfa::pattern_is_simple_repeat(pattern) {
                    Some((set, min, max)) => Language::Repeat(Arc::new(set), min, max),
                    None => return Err(error),
                }
            }
            Err(error) => return Err(error),
        };
        self.patterns.insert(Arc::clone(pattern), language.clone());
        Ok(language)
    }

    /// The strings in which the pattern is found.
    pub(super) fn pattern(
        &mut self,
        pattern: &Arc<str>,
        fuel: &mut Fuel<'_>,
    ) -> Result<Arc<Dfa>, RegularError> {
        match self.language(pattern, fuel)? {
            Language::Automaton(dfa) => Ok(dfa),
            Language::Repeat(..) => {
                Err(RegularError::TooLarge { states_max: crate::grammar::regular::STATES_MAX })
            }
        }
    }

    /// Whether the pattern is found in the text.
    pub(super) fn finds(
        &mut self,
        pattern: &Arc<str>,
        text: &str,
        fuel: &mut Fuel<'_>,
    ) -> Result<bool, RegularError> {
        fuel.spend(1 + text.len() as u32)?;
        Ok(match self.language(pattern, fuel)? {
            Language::Automaton(dfa) => dfa.accepts(text),
            Language::Repeat(set, min, max) => {
                let count = text.chars().count() as u64;
                let in_set =
                    |code: u32| set.ranges().iter().any(|&(low, high)| low <= code && code <= high);
                count >= u64::from(min)
                    && max.is_none_or(|max| count <= u64::from(max))
                    && text.chars().all(|character| in_set(u32::from(character)))
            }
        })
    }

    /// Whether the text has the format.
    pub(super) fn has_format(
        &mut self,
        format: Format,
        text: &str,
        fuel: &mut Fuel<'_>,
    ) -> Result<bool, RegularError> {
        fuel.spend(1 + text.len() as u32)?;
        Ok(format.language(fuel)?.accepts(text))
    }
}
