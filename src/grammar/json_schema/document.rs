//! A schema document, read and resolved.

use std::sync::Arc;

use crate::grammar::Fuel;

use super::conj::{Conj, NodeId};
use super::error::{Relaxed, SchemaError};
use super::json::Json;
use super::shape::Shapes;

/// How a schema is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SchemaOptions {
    /// True: what cannot be exact is an error. False: such keywords are dropped and listed by
    /// [`Document::relaxed`].
    pub strict: bool,
    /// Properties may come in any order instead of the declared one.
    pub any_order: bool,
    /// No whitespace between tokens.
    pub compact: bool,
    /// Greatest number of whitespace characters between two tokens.
    pub gap_characters_max: u32,
}

impl Default for SchemaOptions {
    fn default() -> Self {
        Self { strict: true, any_order: false, compact: false, gap_characters_max: 8 }
    }
}

/// A schema document: every schema that the root reaches, with references resolved.
pub struct Document {}

impl Document {
    /// Reads a schema.
    pub fn parse(
        _text: &str,
        _options: &SchemaOptions,
        _fuel: &mut Fuel<'_>,
    ) -> Result<Self, SchemaError> {
        todo!()
    }

    /// What the answer satisfies.
    pub fn root(&self) -> Conj {
        todo!()
    }

    /// Where a schema stands in the document; the first place, if equal ones are in several.
    pub fn pointer_of(&self, _node: NodeId) -> String {
        todo!()
    }

    /// The normal form of a conjunction. Shapes without anything are an answer too: the
    /// conjunction matches nothing.
    pub fn shapes(
        &mut self,
        _conj: &Conj,
        _fuel: &mut Fuel<'_>,
    ) -> Result<Arc<Shapes>, SchemaError> {
        todo!()
    }

    /// Whether a value satisfies a conjunction.
    pub fn accepts(
        &mut self,
        _conj: &Conj,
        _value: &Json,
        _fuel: &mut Fuel<'_>,
    ) -> Result<bool, SchemaError> {
        todo!()
    }

    /// What was dropped because the request does not insist on exactness.
    pub fn relaxed(&self) -> &[Relaxed] {
        todo!()
    }
}
