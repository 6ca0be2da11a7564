//! Random schemas: arguments that are written along the masks of a dialect's grammar are read by the
//! parser as an object that is valid for another validator, and can be written in canonical form.

// Helpers of tests count as tests.
#![allow(clippy::unwrap_used)]

mod dialect_support;
mod schema_support;

use std::sync::Arc;

use dialect_support::Dialect;
use pleach::grammar::explain::check_text;
use pleach::grammar::json_schema::SchemaOptions;
use pleach::grammar::{CompiledGrammar, GrammarVocabulary, Whitespace};
use pleach::vocab::{Vocabulary, byte_vocabulary};
use schema_support::random::Draw;
use schema_support::texts::{Strict, is_plain, sorted};
use schema_support::walk::Walk;
use schema_support::{Refused, refused, vocabulary_of_model};
use serde_json::Value;

/// Schemas tried, unless `PLEACH_DIALECT_CASES` says how many: with all bytes, with a model's tokens.
const CASES: [u64; 2] = [400, 25];
/// Answers written for each.
const WALKS: usize = 4;

#[derive(Debug, Default)]
struct Seen {
    compiled: usize,
    refused: usize,
    nothing: usize,
    answers: usize,
    too_long: usize,
    canonical: usize,
    not_canonical: usize,
}

/// The tokens that are written.
struct Tokens {
    vocabulary: Arc<Vocabulary>,
    grammar: Arc<GrammarVocabulary>,
}

fn check(seed: u64, dialect: &Dialect, tokens: &Tokens, seen: &mut Seen) {
    let mut draw = Draw::new(seed);
    let schema = draw.arguments();
    let judge = jsonschema::draft202012::options().should_validate_formats(true).build(&schema);
    let judge = judge.unwrap_or_else(|error| panic!("{schema}: {error}"));
    let what = format!("seed {seed}, {}, {schema}", dialect.name);
    let whitespace = match draw.below(4) {
        0 => Whitespace::Compact,
        1 => Whitespace::Spaced,
        _ => dialect.options().whitespace,
    };
    let options = SchemaOptions { any_order: draw.once_in(4), whitespace, ..dialect.options() };
    let grammar = match dialect.try_compile(&schema, options, &tokens.grammar) {
        Ok(grammar) => grammar,
        Err(error) => {
            match refused(&error, &what) {
                Refused::Nothing => seen.nothing += 1,
                Refused::Beyond => seen.refused += 1,
            }
            return;
        }
    };
    seen.compiled += 1;
    let walk = Walk { what: &what, vocabulary: &tokens.vocabulary };
    for _ in 0..WALKS {
        // A model's tokens are longer than a byte.
        let tokens_max = match tokens.vocabulary.len() {
            ..1_000 => 40 + draw.below(300) as u32,
            _ => 20 + draw.below(40) as u32,
        };
        let Some(text) = walk.answer(&grammar, tokens_max, &mut draw) else {
            seen.too_long += 1;
            continue;
        };
        let text = String::from_utf8(text).unwrap();
        let report = check_text(&grammar, text.as_bytes()).unwrap();
        assert!(report.accepted, "{what}: written and not accepted: {text:?}");
        let read = dialect.read(&schema, &text);
        let read = read.unwrap_or_else(|| panic!("{what}: no call: {text:?}"));
        let Strict(value) = match serde_json::from_str(&read) {
            Ok(value) => value,
            Err(error) if error.to_string().contains("recursion limit") => continue,
            Err(error) => panic!("{what}: {error} in {read} of {text:?}"),
        };
        assert!(value.is_object(), "{what}: {text:?} is read as {read}");
        let verdict = judge.validate(&sorted(&value)).map_err(|error| error.to_string());
        assert_eq!(verdict, Ok(()), "{what}: {text:?} is read as {read}");
        seen.answers += 1;
        if whitespace == dialect.options().whitespace {
            check_canonical(dialect, &schema, &value, &grammar, seen);
        }
    }
}

/// Of what can be written, most can be written as the format does.
fn check_canonical(
    dialect: &Dialect,
    schema: &Value,
    value: &Value,
    grammar: &Arc<CompiledGrammar>,
    seen: &mut Seen,
) {
    let text = dialect.written(value);
    if !is_plain(value) || text.contains("-0.0") {
        return;
    }
    let is_read = dialect.read(schema, &text).and_then(|read| serde_json::from_str(&read).ok());
    if is_read.as_ref() != Some(value) {
        return;
    }
    match check_text(grammar, text.as_bytes()).unwrap().accepted {
        true => seen.canonical += 1,
        false => {
            if std::env::var_os("PLEACH_DIALECT_SHOW").is_some() {
                println!("not canonical: {} {schema}: {text:?}", dialect.name);
            }
            seen.not_canonical += 1;
        }
    }
}

/// `PLEACH_DIALECT_CASES=20000` for the long run; with `PLEACH_MODEL` the vocabulary of a model.
#[test]
fn arguments_are_read_as_valid_objects() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let first: u64 = number("PLEACH_DIALECT_SEED").unwrap_or(0);
    let of_model = vocabulary_of_model();
    let enough = CASES[usize::from(of_model.is_some())];
    let cases: u64 = number("PLEACH_DIALECT_CASES").unwrap_or(enough);
    let vocabulary = of_model.unwrap_or_else(byte_vocabulary);
    let tokens = Tokens { grammar: GrammarVocabulary::new(&vocabulary), vocabulary };
    let dialects = Dialect::all();
    let mut seen: Vec<Seen> = dialects.iter().map(|_| Seen::default()).collect();
    for seed in first..first + cases {
        let which = seed as usize % dialects.len();
        check(seed, &dialects[which], &tokens, &mut seen[which]);
    }
    for (dialect, seen) in dialects.iter().zip(&seen) {
        println!("{}: {seen:?}", dialect.name);
        if cases >= CASES[0] {
            assert!(seen.compiled * 4 > cases as usize / dialects.len(), "{}", dialect.name);
            assert!(seen.answers > 0, "{}", dialect.name);
        }
    }
    let canonical: usize = seen.iter().map(|seen| seen.canonical).sum();
    let not_canonical: usize = seen.iter().map(|seen| seen.not_canonical).sum();
    assert!(cases < enough || canonical > 3 * not_canonical, "{canonical}, not {not_canonical}");
}
