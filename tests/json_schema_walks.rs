//! Random schemas: whatever is written along their masks is valid for another validator, and what
//! that finds valid can be written.

// Helpers of tests count as tests.
#![allow(clippy::unwrap_used)]

mod schema_support;

use std::sync::Arc;

use pleach::grammar::explain::check_text;
use pleach::grammar::json_schema::SchemaOptions;
use pleach::grammar::{CompiledGrammar, GrammarVocabulary, Whitespace};
use pleach::vocab::{Vocabulary, byte_vocabulary};
use schema_support::random::Draw;
use schema_support::texts::{Strict, is_plain, orders, sorted, spaced_text};
use schema_support::walk::Walk;
use schema_support::{
    Refused, any_order, compact, compile_counted, refused, spaced, vocabulary_of_model,
};
use serde_json::Value;

/// Schemas tried, unless `PLEACH_SCHEMA_CASES` says how many: with all bytes, with a model's tokens.
const CASES: [u64; 2] = [300, 30];
/// Answers written for each.
const WALKS: usize = 4;
/// Values tried for each.
const VALUES: usize = 24;
/// Ways to order the keys of a value, at most.
const ORDERS_MAX: usize = 400;

/// What was seen over all schemas.
#[derive(Debug, Default)]
struct Seen {
    compiled: usize,
    refused: usize,
    nothing: usize,
    answers: usize,
    too_long: usize,
    values: usize,
}

/// One schema with its grammar and the judge.
struct Case<'v> {
    seed: u64,
    schema: Value,
    judge: jsonschema::Validator,
    vocabulary: &'v Vocabulary,
    is_spaced: bool,
}

impl Case<'_> {
    /// An answer along the masks; `None` if it cannot end within the tokens at all.
    fn walk(&self, grammar: &Arc<CompiledGrammar>, draw: &mut Draw) -> Option<Vec<u8>> {
        let tokens_max = 20 + draw.below(100) as u32;
        Walk { what: self, vocabulary: self.vocabulary }.answer(grammar, tokens_max, draw)
    }

    /// Checks an answer; the value, keys in their order.
    fn judge_answer(&self, text: &[u8]) -> Option<Value> {
        let text = std::str::from_utf8(text).unwrap_or_else(|error| panic!("{self}: {error}"));
        let value = match serde_json::from_str(text) {
            Ok(Strict(value)) => value,
            Err(error) if error.to_string().contains("recursion limit") => return None,
            Err(error) => panic!("{self}: {error} in {text}"),
        };
        let verdict = self.judge.validate(&sorted(&value)).map_err(|error| error.to_string());
        assert_eq!(verdict, Ok(()), "{self}: {text}");
        if self.is_spaced {
            assert_eq!(text, spaced_text(text), "{self}");
        }
        Some(value)
    }

    /// Whether a value can be written, with its keys in the order that the schema declares.
    fn is_written(&self, grammar: &Arc<CompiledGrammar>, value: &Value) -> bool {
        let Some(texts) = orders(value, ORDERS_MAX) else { return true };
        texts.iter().any(|text| {
            let text = if self.is_spaced { spaced_text(text) } else { text.clone() };
            check_text(grammar, text.as_bytes()).unwrap().accepted
        })
    }
}

impl std::fmt::Display for Case<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "seed {}, {}", self.seed, self.schema)
    }
}

/// The value without one of its parts.
fn without_a_part(value: &Value, draw: &mut Draw) -> Value {
    let mut value = value.clone();
    match &mut value {
        Value::Array(items) if !items.is_empty() => {
            let place = draw.below(items.len());
            if draw.once_in(2) {
                items.remove(place);
            } else {
                items[place] = without_a_part(&items[place], draw);
            }
        }
        Value::Object(entries) if !entries.is_empty() => {
            let key = entries.keys().nth(draw.below(entries.len())).cloned().unwrap_or_default();
            if draw.once_in(2) {
                entries.shift_remove(&key);
            } else if let Some(inner) = entries.get_mut(&key) {
                *inner = without_a_part(inner, draw);
            }
        }
        _ => {}
    }
    value
}

fn options(seed: u64) -> SchemaOptions {
    match seed % 4 {
        0 => SchemaOptions::default(),
        1 => compact(),
        2 => spaced(),
        _ => any_order(),
    }
}

fn check(
    seed: u64,
    grammar_vocabulary: &Arc<GrammarVocabulary>,
    vocabulary: &Vocabulary,
    seen: &mut Seen,
) {
    let mut draw = Draw::new(seed);
    let schema = draw.document();
    let judge = jsonschema::draft202012::options().should_validate_formats(true).build(&schema);
    let judge = judge.unwrap_or_else(|error| panic!("{schema}: {error}"));
    let options = options(seed);
    let is_spaced = options.whitespace == Whitespace::Spaced;
    let case = Case { seed, schema, judge, vocabulary, is_spaced };
    let mut values: Vec<Value> = (0..VALUES).map(|_| draw.value_for(&case.schema, 3)).collect();
    values.retain(|value| case.judge.is_valid(&sorted(value)));
    let grammar = match compile_counted(&case.schema.to_string(), options, grammar_vocabulary).0 {
        Ok(grammar) => grammar,
        Err(error) => {
            match refused(&error, &case) {
                Refused::Nothing => {
                    assert_eq!(values, [] as [Value; 0], "{case}: there are valid values");
                    seen.nothing += 1;
                }
                Refused::Beyond => seen.refused += 1,
            }
            return;
        }
    };
    seen.compiled += 1;
    for _ in 0..WALKS {
        let Some(text) = case.walk(&grammar, &mut draw) else {
            seen.too_long += 1;
            continue;
        };
        let Some(value) = case.judge_answer(&text) else { continue };
        seen.answers += 1;
        let less = without_a_part(&value, &mut draw);
        if is_plain(&less) && case.judge.is_valid(&sorted(&less)) {
            values.push(less);
        }
    }
    for value in values {
        seen.values += 1;
        assert!(case.is_written(&grammar, &value), "{case}: {value} is valid");
    }
}

/// `PLEACH_SCHEMA_CASES=100000` for the long run; with `PLEACH_MODEL` the vocabulary of a model.
#[test]
fn answers_are_valid_and_valid_values_are_answers() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let first: u64 = number("PLEACH_SCHEMA_SEED").unwrap_or(0);
    let of_model = vocabulary_of_model();
    let enough = CASES[usize::from(of_model.is_some())];
    let cases: u64 = number("PLEACH_SCHEMA_CASES").unwrap_or(enough);
    let vocabulary = of_model.unwrap_or_else(byte_vocabulary);
    let grammar_vocabulary = GrammarVocabulary::new(&vocabulary);
    let mut seen = Seen::default();
    for seed in first..first + cases {
        check(seed, &grammar_vocabulary, &vocabulary, &mut seen);
    }
    println!("{seen:?}");
    if cases >= enough {
        let cases = cases as usize;
        assert!(seen.compiled > cases / 2, "{seen:?}");
        assert!(seen.answers > cases && seen.values > cases, "{seen:?}");
    }
}
