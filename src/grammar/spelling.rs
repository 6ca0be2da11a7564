//! Which bytes a vocabulary can write by themselves, and whether these are enough for a grammar.
//!
//! Where they are, a number of bytes is a number of tokens: an answer that takes so many bytes to
//! finish can be finished in so many tokens. Few vocabularies have all 256 bytes: bytes that no text
//! holds are often left out, and some control characters.

use super::program::{NO_WAY, Node, Program, Role, Span};
use super::vocabulary::GrammarVocabulary;

/// How a vocabulary spells a grammar's texts byte by byte.
#[derive(Debug)]
pub(crate) struct Spelling {
    /// For each class of bytes one that is a token, if there is one.
    by_class: Box<[Option<u8>]>,
    is_enough: bool,
}

impl Spelling {
    pub(crate) fn new(program: &Program, vocabulary: &GrammarVocabulary) -> Self {
        let mut by_class = vec![None; program.classes.len()];
        let singles = vocabulary.single_bytes();
        for byte in (0..=255).filter(|&byte| has_byte(singles, byte)) {
            by_class[program.classes.of(byte)].get_or_insert(byte);
        }
        let mut spelling = Self { by_class: by_class.into(), is_enough: true };
        spelling.is_enough = (0..program.nodes.len()).all(|node| spelling.leads_on(program, node));
        spelling
    }

    /// Whether from every place some shortest text to the end is written in single bytes.
    pub(crate) fn is_enough(&self) -> bool {
        self.is_enough
    }

    /// A byte of a class that is a token by itself.
    pub(crate) fn byte_of(&self, class: usize) -> Option<u8> {
        self.by_class.get(class).copied().flatten()
    }

    /// Whether a shortest way on from a node can be written. What a register rules out is not known
    /// here: where there is one, every way must be.
    fn leads_on(&self, program: &Program, node: usize) -> bool {
        let Node::Switch(span) = program.nodes[node] else { return true };
        let is_plain = program.role(node as u32) == Role::Plain;
        let cost = program.costs[node];
        cost == NO_WAY
            || if is_plain {
                self.has_short(program, span, cost)
            } else {
                self.has_all(program, span)
            }
    }

    fn has_short(&self, program: &Program, span: Span, cost: u32) -> bool {
        let mut arms = program.arms(span).iter();
        arms.any(|arm| {
            program.costs[arm.next as usize].saturating_add(1) <= cost
                && self.has_one(program, arm.low, arm.high)
        })
    }

    fn has_all(&self, program: &Program, span: Span) -> bool {
        program.arms(span).iter().all(|arm| self.has_one(program, arm.low, arm.high))
    }

    /// Whether a byte of a range is a token. Each range is made up of whole classes.
    fn has_one(&self, program: &Program, low: u8, high: u8) -> bool {
        let classes = program.classes.of(low)..=program.classes.of(high);
        classes.into_iter().any(|class| self.by_class[class].is_some())
    }
}

/// Whether a set of bytes has this one.
pub(crate) fn has_byte(set: &[u64; 4], byte: u8) -> bool {
    set[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
}
