//! Cutting a text at the special tokens that it holds.

use aho_corasick::{AhoCorasick, MatchKind};

use super::{SpecialTokens, VocabError};
use crate::TokenId;

/// A stretch of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part<'t> {
    /// Text without special tokens.
    Text(&'t str),
    /// A special token.
    Token(TokenId),
}

/// A token that is matched in text before anything else is done to it.
#[derive(Clone, Debug)]
pub(super) struct Special {
    /// The text it is matched by.
    pub(super) text: String,
    /// The token.
    pub(super) id: TokenId,
    /// Steers the model, so it is text where special tokens are to be text.
    pub(super) control: bool,
    /// White space after it belongs to it.
    pub(super) strips_right: bool,
}

/// The special tokens of a model, ready to be matched: leftmost first, then the longest.
#[derive(Clone, Debug)]
pub(super) struct Partition {
    all: Matcher,
    visible: Matcher,
}

#[derive(Clone, Debug)]
struct Matcher {
    automaton: AhoCorasick,
    specials: Vec<Special>,
}

impl Partition {
    /// A partition by `specials`; those with an empty text are left out.
    pub(super) fn new(mut specials: Vec<Special>) -> Result<Self, VocabError> {
        specials.retain(|special| !special.text.is_empty());
        let visible = specials.iter().filter(|special| !special.control).cloned().collect();
        Ok(Self { all: Matcher::new(specials)?, visible: Matcher::new(visible)? })
    }

    /// The parts of `text`, in order.
    pub(super) fn parts<'t>(&self, text: &'t str, special: SpecialTokens) -> Vec<Part<'t>> {
        match special {
            SpecialTokens::Parse => self.all.parts(text),
            SpecialTokens::AsText => self.visible.parts(text),
        }
    }
}

impl Matcher {
    fn new(specials: Vec<Special>) -> Result<Self, VocabError> {
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(specials.iter().map(|special| special.text.as_bytes()))
            .map_err(|error| VocabError::Damaged { reason: error.to_string() })?;
        Ok(Self { automaton, specials })
    }

    fn parts<'t>(&self, text: &'t str) -> Vec<Part<'t>> {
        let mut parts = Vec::new();
        let mut done = 0;
        for found in self.automaton.find_iter(text) {
            let Some(special) = self.specials.get(found.pattern().as_usize()) else { continue };
            let gap = text.get(done..found.start()).filter(|gap| !gap.is_empty());
            parts.extend(gap.map(Part::Text));
            parts.push(Part::Token(special.id));
            done = found.end();
            if special.strips_right {
                let rest = text.get(done..).unwrap_or_default();
                let kept = rest.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
                done += rest.len() - kept.len();
            }
        }
        parts.extend(text.get(done..).filter(|rest| !rest.is_empty()).map(Part::Text));
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn special(text: &str, id: TokenId, control: bool, strips_right: bool) -> Special {
        Special { text: text.to_owned(), id, control, strips_right }
    }

    #[test]
    fn text_is_cut_at_the_longest_special_token() {
        let partition = Partition::new(vec![
            special("<a>", 1, true, false),
            special("<a>b", 2, false, false),
            special("<e>", 3, true, true),
            special("", 4, true, false),
        ])
        .expect("builds");
        assert_eq!(
            partition.parts("x<a>b<a><e> \n y", SpecialTokens::Parse),
            [Part::Text("x"), Part::Token(2), Part::Token(1), Part::Token(3), Part::Text("y")]
        );
        assert_eq!(
            partition.parts("<a><a>b", SpecialTokens::AsText),
            [Part::Text("<a>"), Part::Token(2)]
        );
        assert_eq!(partition.parts("", SpecialTokens::Parse), []);
    }
}
