//! Whitespace between two parts of a JSON text.

use super::expr::{CharSet, ExprId, ExprPool};

/// How much whitespace there is between the parts of a JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Whitespace {
    /// None.
    Compact,
    /// A space after each comma and each colon, and none elsewhere: what Python's `json.dumps` and
    /// the `tojson` of chat templates write, so what models have seen their calls written as.
    Spaced,
    /// In each gap none, a space, or one or two line breaks and then spaces and tabs.
    Usual {
        /// Characters in a gap, at most.
        characters_max: u32,
    },
    /// Of any kind.
    Any {
        /// Characters in a gap, at most.
        characters_max: u32,
    },
}

impl Whitespace {
    /// What may be in each place where whitespace is free.
    pub(super) fn gap(self, pool: &mut ExprPool) -> ExprId {
        match self {
            Self::Compact | Self::Spaced => ExprPool::EMPTY,
            Self::Usual { characters_max } => usual(pool, characters_max),
            Self::Any { characters_max } => any(pool, characters_max),
        }
    }

    /// A comma, with the whitespace that always comes after it.
    pub(super) fn comma(self) -> &'static str {
        if self == Self::Spaced { ", " } else { "," }
    }

    /// A colon, with the whitespace that always comes after it.
    pub(super) fn colon(self) -> &'static str {
        if self == Self::Spaced { ": " } else { ":" }
    }
}

/// Whitespace of any kind, at most so many characters.
pub(crate) fn any(pool: &mut ExprPool, characters_max: u32) -> ExprId {
    let white = pool.chars(CharSet::new([(0x20, 0x20), (0x9, 0xA), (0xD, 0xD)]));
    at_most(pool, white, characters_max)
}

/// Whitespace as it is usually written, at most so many characters. A model that does not like what
/// has to come next would rather write more and more whitespace, if it may: what comes after that is
/// worse, and later.
fn usual(pool: &mut ExprPool, characters_max: u32) -> ExprId {
    if characters_max == 0 {
        return ExprPool::EMPTY;
    }
    let mut choices = vec![ExprPool::EMPTY, pool.literal(b" ")];
    for (line_break, left) in line_breaks(characters_max) {
        let line_break = pool.literal(line_break);
        let mut starts = vec![blanks(pool, left)];
        for (another, left) in line_breaks(left) {
            let (another, rest) = (pool.literal(another), blanks(pool, left));
            starts.push(pool.seq(&[another, rest]));
        }
        let start = pool.alt(&starts);
        choices.push(pool.seq(&[line_break, start]));
    }
    pool.alt(&choices)
}

/// The line breaks that fit, and how many characters may follow each.
fn line_breaks(characters_max: u32) -> impl Iterator<Item = (&'static [u8], u32)> {
    let all: [(&[u8], u32); 2] = [(b"\n", 1), (b"\r\n", 2)];
    all.into_iter()
        .filter_map(move |(text, length)| Some((text, characters_max.checked_sub(length)?)))
}

/// Spaces and tabs.
fn blanks(pool: &mut ExprPool, characters_max: u32) -> ExprId {
    let blank = pool.chars(CharSet::new([(0x20, 0x20), (0x9, 0x9)]));
    at_most(pool, blank, characters_max)
}

/// A character at most so many times. That many are written out, and more one by one: never counted,
/// since a state would have to carry the count along.
fn at_most(pool: &mut ExprPool, character: ExprId, max: u32) -> ExprId {
    const TOGETHER: u32 = 8;
    let together = pool.repeat(character, 0, Some(max.min(TOGETHER)));
    (TOGETHER..max).fold(together, |fewer, _| {
        let more = pool.seq(&[character, fewer]);
        pool.optional(more)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::grammar::explain::check_text;
    use crate::grammar::{CompiledGrammar, Fuel, GrammarVocabulary, Limits};
    use crate::vocab::byte_vocabulary;

    fn between(gap: impl Fn(&mut ExprPool) -> ExprId) -> Arc<CompiledGrammar> {
        let mut pool = ExprPool::new();
        let (open, close) = (pool.literal(b"["), pool.literal(b"]"));
        let gap = gap(&mut pool);
        let body = pool.seq(&[open, gap, close]);
        let root = pool.declare("root");
        pool.define(root, body);
        let vocabulary = GrammarVocabulary::new(&byte_vocabulary());
        let mut fuel = Fuel::new(1_000_000);
        CompiledGrammar::from_rules(pool, root, &vocabulary, &Limits::default(), &mut fuel).unwrap()
    }

    fn takes(grammar: &Arc<CompiledGrammar>, gap: &str) -> bool {
        check_text(grammar, format!("[{gap}]").as_bytes()).unwrap().accepted
    }

    #[test]
    fn usual_whitespace_is_what_writers_of_json_make() {
        let grammar = between(|pool| usual(pool, 8));
        for gap in ["", " ", "\n", "\n       ", "\r\n      ", "\n\n      ", "\n \t "] {
            assert!(takes(&grammar, gap), "{gap:?}");
        }
        for gap in ["  ", "\t", "\n        ", "\r\n       ", "\r", " \n", "\n \n", "\n\n\n"] {
            assert!(!takes(&grammar, gap), "{gap:?}");
        }
    }

    #[test]
    fn no_gap_is_longer_than_it_may_be() {
        let all = ["", " ", "\n", "\r\n", "\n ", "\n\n", "\r\n\t", "\n\r\n", "\r\n\r\n", "\n\n  "];
        for max in 0..6 {
            let grammars = [between(|pool| usual(pool, max)), between(|pool| any(pool, max))];
            for gap in all {
                let found = grammars.each_ref().map(|grammar| takes(grammar, gap));
                assert_eq!(found, [gap.len() <= max as usize; 2], "{gap:?} of {max}");
            }
        }
    }
}
