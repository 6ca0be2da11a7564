//! Random schemas: arguments that are written along the masks of a dialect's grammar are read by the
//! parser as an object that is valid for another validator, and can be written in canonical form.

// Helpers of tests count as tests.
#![allow(clippy::unwrap_used)]

mod dialect_support;
mod schema_support;

use dialect_support::Dialect;
use pleach::grammar::GrammarError;
use pleach::grammar::explain::check_text;
use pleach::grammar::json_schema::{SchemaError, SchemaOptions};
use pleach::vocab::byte_vocabulary;
use schema_support::bytes;
use schema_support::random::Draw;
use schema_support::texts::{Strict, is_plain, sorted};
use schema_support::walk::Walk;
use serde_json::Value;

/// Schemas tried, unless `PLEACH_DIALECT_CASES` says how many.
const CASES: u64 = 400;
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

fn check(seed: u64, dialect: &Dialect, seen: &mut Seen) {
    let mut draw = Draw::new(seed);
    let schema = draw.arguments();
    let judge = jsonschema::draft202012::options().should_validate_formats(true).build(&schema);
    let judge = judge.unwrap_or_else(|error| panic!("{schema}: {error}"));
    let what = format!("seed {seed}, {}, {schema}", dialect.name);
    let options =
        SchemaOptions { any_order: draw.once_in(4), compact: draw.once_in(4), ..dialect.options() };
    let grammar = match dialect.try_compile(&schema, options, bytes()) {
        Ok(grammar) => grammar,
        Err(
            GrammarError::MatchesNothing { .. }
            | GrammarError::Schema(SchemaError::Unsatisfiable { .. }),
        ) => {
            seen.nothing += 1;
            return;
        }
        Err(
            GrammarError::Schema(SchemaError::Inexact { .. } | SchemaError::Limit(_))
            | GrammarError::Limit(_),
        ) => {
            seen.refused += 1;
            return;
        }
        Err(error) => panic!("{what}: {error}"),
    };
    seen.compiled += 1;
    let vocabulary = byte_vocabulary();
    let walk = Walk { what: &what, vocabulary: &vocabulary };
    for _ in 0..WALKS {
        let tokens_max = 40 + draw.below(300) as u32;
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
        if !options.compact {
            check_canonical(dialect, &schema, &value, &grammar, seen);
        }
    }
}

/// Of what can be written, most can be written as the format does.
fn check_canonical(
    dialect: &Dialect,
    schema: &Value,
    value: &Value,
    grammar: &std::sync::Arc<pleach::grammar::CompiledGrammar>,
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

/// `PLEACH_DIALECT_CASES=20000` for the long run.
#[test]
fn arguments_are_read_as_valid_objects() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let first: u64 = number("PLEACH_DIALECT_SEED").unwrap_or(0);
    let cases: u64 = number("PLEACH_DIALECT_CASES").unwrap_or(CASES);
    let dialects = Dialect::all();
    let mut seen: Vec<Seen> = dialects.iter().map(|_| Seen::default()).collect();
    for seed in first..first + cases {
        let which = seed as usize % dialects.len();
        check(seed, &dialects[which], &mut seen[which]);
    }
    for (dialect, seen) in dialects.iter().zip(&seen) {
        println!("{}: {seen:?}", dialect.name);
        if cases >= CASES {
            assert!(seen.compiled * 4 > cases as usize / dialects.len(), "{}", dialect.name);
            assert!(seen.answers > 0, "{}", dialect.name);
        }
    }
    let canonical: usize = seen.iter().map(|seen| seen.canonical).sum();
    let not_canonical: usize = seen.iter().map(|seen| seen.not_canonical).sum();
    assert!(cases < CASES || canonical > 3 * not_canonical, "{canonical}, not {not_canonical}");
}
