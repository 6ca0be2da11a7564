//! JSON Schemas as grammars, and what a text is to them.
// Each test file uses some of them; and helpers of tests count as tests.
#![allow(dead_code, clippy::unwrap_used)]

pub mod random;
pub mod texts;
pub mod walk;

use std::sync::{Arc, LazyLock};

use pleach::grammar::explain::check_text;
use pleach::grammar::json_schema::{SchemaError, SchemaOptions};
use pleach::grammar::{
    CompiledGrammar, Fuel, GrammarError, GrammarSource, GrammarVocabulary, Limits, Whitespace,
};
use pleach::vocab::{Vocabulary, byte_vocabulary};

/// The vocabulary of all bytes.
pub fn bytes() -> &'static Arc<GrammarVocabulary> {
    static BYTES: LazyLock<Arc<GrammarVocabulary>> =
        LazyLock::new(|| GrammarVocabulary::new(&byte_vocabulary()));
    &BYTES
}

/// The vocabulary of the model that `PLEACH_MODEL` names.
#[cfg(feature = "ggml")]
pub fn vocabulary_of_model() -> Option<Arc<Vocabulary>> {
    use pleach::device::ggml::gguf::GgufMetadata;
    use pleach::vocab::Tokenizer;

    let path = std::env::var_os("PLEACH_MODEL")?;
    let metadata = GgufMetadata::read(path.as_ref()).unwrap();
    Some(Tokenizer::from_gguf(&metadata).unwrap().vocabulary())
}

/// As above: no model can be read.
#[cfg(not(feature = "ggml"))]
pub fn vocabulary_of_model() -> Option<Arc<Vocabulary>> {
    None
}

/// No whitespace.
pub fn compact() -> SchemaOptions {
    SchemaOptions { whitespace: Whitespace::Compact, ..SchemaOptions::default() }
}

/// A space after each comma and colon.
pub fn spaced() -> SchemaOptions {
    SchemaOptions { whitespace: Whitespace::Spaced, ..SchemaOptions::default() }
}

/// Properties in any order.
pub fn any_order() -> SchemaOptions {
    SchemaOptions { any_order: true, ..SchemaOptions::default() }
}

/// Compiles within the default limits; also the steps that it took.
pub fn compile_counted(
    schema: &str,
    options: SchemaOptions,
    vocabulary: &Arc<GrammarVocabulary>,
) -> (Result<Arc<CompiledGrammar>, GrammarError>, u64) {
    // Texts of any length: what comes behind that limit has to hold by itself.
    let limits = Limits { source_bytes_max: usize::MAX, ..Limits::default() };
    let mut fuel = Fuel::new(limits.compile_steps_max);
    let source = GrammarSource::JsonSchema { schema: schema.to_owned(), options };
    let result = CompiledGrammar::compile(&source, vocabulary, &limits, &mut fuel);
    (result, limits.compile_steps_max - fuel.steps_left())
}

/// Compiles for the vocabulary of all bytes.
pub fn try_schema(
    schema: &str,
    options: SchemaOptions,
) -> Result<Arc<CompiledGrammar>, GrammarError> {
    compile_counted(schema, options, bytes()).0
}

pub fn schema_with(schema: &str, options: SchemaOptions) -> Arc<CompiledGrammar> {
    try_schema(schema, options).unwrap_or_else(|error| panic!("{}: {error}", short(schema)))
}

/// Why a schema is rightly refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It allows nothing.
    Nothing,
    /// It cannot be followed exactly, or costs too much.
    Beyond,
}

/// Why a schema that is well-formed was refused; fails if it was called wrong.
pub fn refused(error: &GrammarError, what: &dyn std::fmt::Display) -> Refused {
    match error {
        GrammarError::MatchesNothing { .. }
        | GrammarError::Schema(SchemaError::Unsatisfiable { .. }) => Refused::Nothing,
        GrammarError::Schema(SchemaError::Inexact { .. } | SchemaError::Limit(_))
        | GrammarError::Limit(_) => Refused::Beyond,
        error => panic!("{what}: {error}"),
    }
}

/// Whether a text can be written as an answer, byte by byte.
pub fn writes(grammar: &Arc<CompiledGrammar>, text: &str) -> bool {
    let mut matcher = grammar.matcher();
    text.bytes().all(|byte| matcher.accept(byte.into()).is_ok()) && matcher.is_complete()
}

/// Whether a text is an answer: as it would be written, and as it would be checked.
pub fn accepts(grammar: &Arc<CompiledGrammar>, text: &str) -> bool {
    let written = writes(grammar, text);
    let checked = check_text(grammar, text.as_bytes()).unwrap();
    assert_eq!(checked.accepted, written, "checked and written: {}", short(text));
    written
}

/// Checks a schema against texts of both kinds.
pub fn check_with(schema: &str, options: SchemaOptions, accepted: &[&str], rejected: &[&str]) {
    let grammar = schema_with(schema, options);
    let cases = accepted.iter().map(|text| (text, true));
    for (text, expected) in cases.chain(rejected.iter().map(|text| (text, false))) {
        assert_eq!(accepts(&grammar, text), expected, "{}\n{}", short(schema), short(text));
    }
}

/// As [`check_with`], with the default options.
pub fn check(schema: &str, accepted: &[&str], rejected: &[&str]) {
    check_with(schema, SchemaOptions::default(), accepted, rejected);
}

/// Why a schema is refused.
pub fn refusal(schema: &str) -> SchemaError {
    match try_schema(schema, SchemaOptions::default()) {
        Err(GrammarError::Schema(error)) => error,
        Err(other) => panic!("{}: {other:?}", short(schema)),
        Ok(_) => panic!("compiles: {}", short(schema)),
    }
}

/// What is refused as inexact: the place and the keyword.
pub fn inexact(schema: &str) -> (String, String) {
    match refusal(schema) {
        SchemaError::Inexact { pointer, keyword, .. } => (pointer, keyword),
        other => panic!("{}: {other:?}", short(schema)),
    }
}

/// Whether a schema is refused because no value is valid.
pub fn is_unsatisfiable(schema: &str) -> bool {
    matches!(refusal(schema), SchemaError::Unsatisfiable { .. })
}

/// A text that fits a message.
pub fn short(text: &str) -> String {
    match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}
