//! The kinds of grammar that a request can bring.

use std::sync::Arc;

use super::error::GrammarError;
use super::expr::{ExprId, ExprPool, RuleId};
use super::json_schema::{self, Dialect, Relaxed, SchemaError, SchemaOptions};
use super::limits::Fuel;
use super::structural_tag::{self, StructuralTag};
use super::vocabulary::GrammarVocabulary;
use super::{gbnf, json_object, regex};

/// A grammar as it comes in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum GrammarSource {
    /// A grammar in llama.cpp's GBNF, whose rule `root` is the answer.
    Gbnf(String),
    /// A regular expression that all of the answer matches.
    Regex(String),
    /// Any JSON object, with a little whitespace.
    JsonObject,
    /// Exactly one of these texts.
    Choice(Vec<String>),
    /// Any JSON value that is valid against a JSON Schema.
    JsonSchema {
        /// The schema, as JSON text.
        schema: String,
        /// How it is followed.
        options: SchemaOptions,
    },
    /// Free text with tags, and whatever else has parts.
    StructuralTag(Arc<StructuralTag>),
}

impl GrammarSource {
    /// Bytes of text in it.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Gbnf(text) | Self::Regex(text) => text.len(),
            Self::Choice(texts) => texts.iter().map(String::len).sum(),
            Self::JsonSchema { schema, .. } => schema.len(),
            Self::JsonObject => 0,
            Self::StructuralTag(tag) => tag.bytes(),
        }
    }

    /// An error of its rules, told of what they come from: a schema's are named by its pointers.
    pub(super) fn told_of_its_parts(&self, error: GrammarError) -> GrammarError {
        match (self, error) {
            (Self::JsonSchema { .. }, GrammarError::MatchesNothing { rule }) => {
                let pointer = rule.unwrap_or_else(|| "#".to_owned());
                let reason = "its demands contradict each other, or lead back to it without end";
                SchemaError::Unsatisfiable { pointer, reason: reason.to_owned() }.into()
            }
            (_, error) => error,
        }
    }
}

/// The rules of a source.
pub(crate) struct Parsed {
    pub(crate) pool: ExprPool,
    /// The rule that is the answer.
    pub(crate) root: RuleId,
    /// What is not followed, because the source's options allow that.
    pub(crate) relaxed: Vec<Relaxed>,
}

/// Reads a source into rules.
pub(crate) fn parse(
    source: &GrammarSource,
    vocabulary: &GrammarVocabulary,
    fuel: &mut Fuel<'_>,
) -> Result<Parsed, GrammarError> {
    let mut pool = ExprPool::new();
    pool.set_markers(vocabulary.markers());
    let (root, relaxed) = rules_into(&mut pool, source, vocabulary, fuel)?;
    Ok(Parsed { pool, root, relaxed })
}

/// Adds the rules of a source to a pool: the one that is the answer, and what is not followed.
pub(super) fn rules_into(
    pool: &mut ExprPool,
    source: &GrammarSource,
    vocabulary: &GrammarVocabulary,
    fuel: &mut Fuel<'_>,
) -> Result<(RuleId, Vec<Relaxed>), GrammarError> {
    fuel.spend(u32::try_from(source.bytes()).unwrap_or(u32::MAX))?;
    let root = match source {
        GrammarSource::Gbnf(text) => {
            let by_name = |name: &str| vocabulary.token_by_name(name.as_bytes());
            gbnf::parse(pool, text, &by_name, vocabulary.len())?
        }
        GrammarSource::Regex(pattern) => {
            let body = regex::lower(pool, pattern)?;
            root_of(pool, body)
        }
        GrammarSource::JsonObject => json_object::rules(pool),
        GrammarSource::Choice(texts) if texts.is_empty() => return Err(GrammarError::NoChoices),
        GrammarSource::Choice(texts) => {
            let body = pool.literals(texts);
            root_of(pool, body)
        }
        GrammarSource::JsonSchema { schema, options } => {
            return Ok(json_schema::rules_into(pool, schema, options, &Dialect::Json, fuel)?);
        }
        GrammarSource::StructuralTag(tag) => {
            return structural_tag::rules_into(pool, tag, vocabulary, fuel);
        }
    };
    Ok((root, Vec::new()))
}

fn root_of(pool: &mut ExprPool, body: ExprId) -> RuleId {
    let root = pool.declare("root");
    pool.define(root, body);
    root
}
