//! A schema document, read and resolved.

use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::grammar::regular::{Dfa, RegularError};
use crate::grammar::{Fuel, Whitespace};

use super::atom::{Atom, Types};
use super::conj::{Conj, Literal, NodeId};
use super::error::{Relaxed, SchemaError};
use super::graph::Graph;
use super::json::Json;
use super::keywords;
use super::languages::Languages;
use super::number::{IntegerSpelling, NumberOptions};
use super::shape::Shapes;
use super::shaper::Shaper;
use super::validate::Validator;

/// Whitespace characters in a gap, at most, unless a caller says otherwise.
pub const GAP_CHARACTERS_MAX: u32 = 8;

/// How a schema is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SchemaOptions {
    /// True: what cannot be exact is an error. False: such keywords are dropped and listed by
    /// [`Document::relaxed`].
    pub strict: bool,
    /// Properties may come in any order instead of the declared one.
    pub any_order: bool,
    /// Properties come in alphabetical order, whatever their case, instead of the declared one.
    pub sorted: bool,
    /// What there is between two tokens.
    pub whitespace: Whitespace,
    /// Integers are written without point and exponent, unless all that are allowed are too long for
    /// that, and zero has no sign.
    pub plain_integers: bool,
}

impl Default for SchemaOptions {
    fn default() -> Self {
        Self {
            strict: true,
            any_order: false,
            sorted: false,
            whitespace: Whitespace::Any { characters_max: GAP_CHARACTERS_MAX },
            plain_integers: false,
        }
    }
}

/// A schema document: every schema that the root reaches, with references resolved.
///
/// Siblings of `$ref` count, as they do since 2019-09. References stay within the document. An
/// unknown keyword, and a `format` without a meaning in 2020-12, demand nothing.
#[derive(Debug)]
pub struct Document {
    graph: Graph,
    pub(super) languages: Languages,
    memo: FxHashMap<Conj, Arc<Shapes>>,
    relaxed: Vec<Relaxed>,
    strict: bool,
    integers: IntegerSpelling,
}

impl Document {
    /// Reads a schema.
    pub fn parse(
        text: &str,
        options: &SchemaOptions,
        fuel: &mut Fuel<'_>,
    ) -> Result<Self, SchemaError> {
        let graph = keywords::compile(text, fuel)?;
        let integers = match (graph.plain_integers, options.plain_integers) {
            (true, _) => IntegerSpelling::Plain,
            (false, true) => IntegerSpelling::MostlyPlain,
            (false, false) => IntegerSpelling::Any,
        };
        Ok(Self {
            memo: FxHashMap::with_capacity_and_hasher(graph.len(), FxBuildHasher),
            graph,
            languages: Languages::default(),
            relaxed: Vec::new(),
            strict: options.strict,
            integers,
        })
    }

    /// How numbers may be written.
    pub(super) fn number_options(&self) -> NumberOptions {
        NumberOptions { integers: self.integers, ..NumberOptions::default() }
    }

    /// The types that a conjunction asks for, if it asks for nothing else.
    pub(super) fn plain_types(&self, conj: &Conj) -> Option<Types> {
        match conj.literals() {
            [only] if only.positive => match self.graph.atoms(only.node) {
                [Atom::Type(types)] => Some(*types),
                _ => None,
            },
            _ => None,
        }
    }

    /// What the answer satisfies.
    pub fn root(&self) -> Conj {
        self.graph.conj([Literal::yes(self.graph.root)])
    }

    /// Where a schema stands in the document; the first place, if equal ones are in several.
    pub fn pointer_of(&self, node: NodeId) -> String {
        self.graph.pointer(node)
    }

    /// The normal form of a conjunction. Shapes without anything are an answer too, except at the
    /// root, where they are an error: nothing is valid.
    pub fn shapes(&mut self, conj: &Conj, fuel: &mut Fuel<'_>) -> Result<Arc<Shapes>, SchemaError> {
        let shapes = Shaper {
            graph: &self.graph,
            languages: &mut self.languages,
            fuel,
            memo: &mut self.memo,
            relaxed: &mut self.relaxed,
            strict: self.strict,
            speculation: 0,
        }
        .shapes(conj)?;
        if shapes.is_never() && *conj == self.root() {
            let reason = "its demands contradict each other".to_owned();
            return Err(SchemaError::Unsatisfiable { pointer: "#".to_owned(), reason });
        }
        Ok(shapes)
    }

    /// Whether a value satisfies a conjunction.
    pub fn accepts(
        &mut self,
        conj: &Conj,
        value: &Json,
        fuel: &mut Fuel<'_>,
    ) -> Result<bool, SchemaError> {
        Validator::new(&self.graph, &mut self.languages, fuel).all(conj.literals(), value)
    }

    /// The strings in which an ECMA-262 pattern is found. Made once for the document.
    pub fn pattern(
        &mut self,
        pattern: &Arc<str>,
        fuel: &mut Fuel<'_>,
    ) -> Result<Arc<Dfa>, RegularError> {
        self.languages.pattern(pattern, fuel)
    }

    /// What was dropped because the request does not insist on exactness.
    pub fn relaxed(&self) -> &[Relaxed] {
        &self.relaxed
    }
}
