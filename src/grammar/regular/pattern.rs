//! ECMA-262 patterns as automata.

use super::super::{CharSet, Fuel};
use super::{Dfa, RegularError};

impl Dfa {
    /// Texts in which the ECMA-262 pattern (flag `u`) finds a match.
    pub fn pattern(_source: &str, _fuel: &mut Fuel<'_>) -> Result<Self, RegularError> {
        Err(RegularError::Unsupported { feature: "any pattern so far" })
    }

    /// Texts that all of the ECMA-262 pattern (flag `u`) matches.
    pub fn whole_pattern(_source: &str, _fuel: &mut Fuel<'_>) -> Result<Self, RegularError> {
        Err(RegularError::Unsupported { feature: "any pattern so far" })
    }

    /// For `^[class]{m,n}$` and the like: the class, the least and the greatest number.
    pub fn pattern_is_simple_repeat(_source: &str) -> Option<(CharSet, u32, Option<u32>)> {
        None
    }
}
