//! The language of each `format`: decoded texts that have it.
//!
//! Nothing in a language is invalid by the RFC of the format. What the RFC allows and a language
//! leaves out, so that it stays regular and small:
//!
//! * `time`, `date-time`: a leap second only where the offset is `Z` or whole hours.
//! * `hostname`, `email`: a name has at most three labels of at most 63 characters, or at most
//!   seven of at most 35, so that 253 in all are kept without counting. No label has hyphens in
//!   third and fourth place (`xn--` labels are only valid if they decode). Local parts have at most
//!   64 bytes; addresses instead of names are IPv4 and IPv6.
//! * `idn-hostname`, `idn-email`: of other scripts only lower-case letters of Latin, Greek and
//!   Cyrillic, Hiragana, Katakana, Han and Hangul, without combining marks or contextual rules;
//!   labels with them have at most 11 characters, and a name with them three labels.
//! * `uri-template`: not the operators that the RFC only reserves.
//! * `regex`: at most three levels of groups, no named groups, back-references, property classes or
//!   `\0`; ranges of classes only from `0`, `1`, `A` or `a` on; counts of up to three digits.
//!
//! Each language is made once for the process.

use std::sync::{Arc, OnceLock};

use super::format_host as host;
use super::format_name::Format;
use super::format_regex as regex;
use super::format_time as time;
use super::format_uri as uri;
use crate::grammar::Fuel;
use crate::grammar::regular::{Dfa, RegularError};

/// Steps for one language. They are not the request's: what one makes, all others use.
const SHARED_STEPS: u64 = 50_000_000;

/// The languages, made when they are first asked for.
static SHARED: [OnceLock<Arc<Dfa>>; Format::ALL.len()] =
    [const { OnceLock::new() }; Format::ALL.len()];

impl Format {
    /// The number of the format whose shared language this very one is.
    pub(super) fn number_of(language: &Arc<Dfa>) -> Option<u32> {
        let is_it =
            |made: &OnceLock<Arc<Dfa>>| made.get().is_some_and(|it| Arc::ptr_eq(it, language));
        SHARED.iter().position(is_it).map(|index| index as u32)
    }

    /// The texts of the format. `fuel` pays for the use, not for making what all share.
    pub fn language(self, fuel: &mut Fuel<'_>) -> Result<Arc<Dfa>, RegularError> {
        fuel.spend(1)?;
        let index = Self::ALL.iter().position(|format| *format == self).unwrap_or(0);
        let shared = SHARED.get(index);
        if let Some(made) = shared.and_then(OnceLock::get) {
            return Ok(Arc::clone(made));
        }
        let made = Arc::new(self.make(&mut Fuel::new(SHARED_STEPS))?);
        Ok(shared.map_or_else(
            || Arc::clone(&made),
            |shared| Arc::clone(shared.get_or_init(|| Arc::clone(&made))),
        ))
    }

    fn make(self, fuel: &mut Fuel<'_>) -> Result<Dfa, RegularError> {
        match self {
            Self::DateTime => {
                let separator = Dfa::literals(&["T", "t"]);
                let date = time::date(fuel)?.concat(&separator, fuel)?;
                date.concat(&time::time(fuel)?, fuel)
            }
            Self::Date => time::date(fuel),
            Self::Time => time::time(fuel),
            Self::Duration => Dfa::whole_pattern(&time::duration(), fuel),
            Self::Email => host::email(false, &host::hostname(fuel)?, fuel),
            Self::IdnEmail => host::email(true, &host::idn_hostname(fuel)?, fuel),
            Self::Hostname => host::hostname(fuel),
            Self::IdnHostname => host::idn_hostname(fuel),
            Self::Ipv4 => Dfa::whole_pattern(&host::ipv4(), fuel),
            Self::Ipv6 => Dfa::whole_pattern(&host::ipv6(), fuel),
            Self::Uri => Dfa::whole_pattern(&uri::absolute(uri::URI), fuel),
            Self::UriReference => Dfa::whole_pattern(&uri::reference(uri::URI), fuel),
            Self::Iri => Dfa::whole_pattern(&uri::absolute(uri::IRI), fuel),
            Self::IriReference => Dfa::whole_pattern(&uri::reference(uri::IRI), fuel),
            Self::Uuid => {
                Dfa::whole_pattern("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", fuel)
            }
            Self::UriTemplate => Dfa::whole_pattern(&uri::template(), fuel),
            Self::JsonPointer => Dfa::whole_pattern(JSON_POINTER, fuel),
            Self::RelativeJsonPointer => {
                Dfa::whole_pattern(&format!("(0|[1-9][0-9]*)(#|{JSON_POINTER})"), fuel)
            }
            Self::Regex => regex::regex(fuel),
        }
    }
}

/// RFC 6901, section 3.
const JSON_POINTER: &str = "(/([^/~]|~[01])*)*";

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
