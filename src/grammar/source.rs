//! The kinds of grammar that a request can bring.

use super::error::GrammarError;
use super::expr::{ExprPool, RuleId};
use super::limits::Fuel;
use super::vocabulary::GrammarVocabulary;
use super::json_schema::{self, Relaxed, SchemaOptions};
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
}

impl GrammarSource {
    /// Bytes of text in it.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Gbnf(text) | Self::Regex(text) => text.len(),
            Self::Choice(texts) => texts.iter().map(String::len).sum(),
            Self::JsonSchema { schema, .. } => schema.len(),
            Self::JsonObject => 0,
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
    fuel.spend(u32::try_from(source.bytes()).unwrap_or(u32::MAX))?;
    let (pool, root) = match source {
        GrammarSource::Gbnf(text) => {
            let by_name = |name: &str| vocabulary.token_by_name(name.as_bytes());
            gbnf::parse(text, &by_name, vocabulary.len())?
        }
        GrammarSource::Regex(pattern) => regex::parse(pattern)?,
        GrammarSource::JsonObject => json_object::rules(),
        GrammarSource::Choice(texts) => choice(texts)?,
        GrammarSource::JsonSchema { schema, options } => {
            let (pool, root, relaxed) = json_schema::rules(schema, options, fuel)?;
            return Ok(Parsed { pool, root, relaxed });
        }
    };
    Ok(Parsed { pool, root, relaxed: Vec::new() })
}

fn choice(texts: &[String]) -> Result<(ExprPool, RuleId), GrammarError> {
    if texts.is_empty() {
        return Err(GrammarError::NoChoices);
    }
    let mut pool = ExprPool::new();
    let body = pool.literals(texts);
    let root = pool.declare("root");
    pool.define(root, body);
    Ok((pool, root))
}
