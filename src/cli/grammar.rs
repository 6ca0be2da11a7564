//! `pleach grammar`: what a grammar says about a text, and what it is.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;

use super::args::{GrammarArgs, GrammarCheckArgs, GrammarShowArgs, GrammarSourceArgs};
use super::{CliError, print};
use crate::grammar::json_schema::{GAP_CHARACTERS_MAX, SchemaOptions};
use crate::grammar::{
    CompiledGrammar, Fuel, GrammarSource, GrammarVocabulary, Limits, MatchError, Whitespace,
    explain,
};
use crate::vocab::{SpecialTokens, Tokenizer, Vocabulary, byte_vocabulary};

/// Derivations that `show` prints.
const SAMPLES: usize = 5;
/// Length at which a derivation takes the nearest way to its end.
const SAMPLE_BYTES: usize = 60;

pub(super) fn run(args: &GrammarArgs) -> Result<(), CliError> {
    match args {
        GrammarArgs::Check(args) => check(args),
        GrammarArgs::Show(args) => show(args),
    }
}

/// A grammar with the tokenizer it was compiled for, if there is one.
struct Loaded {
    grammar: Arc<CompiledGrammar>,
    tokenizer: Option<Tokenizer>,
}

fn load(source: &GrammarSourceArgs) -> Result<Loaded, CliError> {
    let tokenizer = source.tokenizer.as_deref().map(read_tokenizer).transpose()?;
    let vocabulary: Arc<Vocabulary> =
        tokenizer.as_ref().map_or_else(byte_vocabulary, Tokenizer::vocabulary);
    let limits = Limits::default();
    let mut fuel = Fuel::new(limits.compile_steps_max);
    let vocabulary = GrammarVocabulary::new(&vocabulary);
    let (name, source) = read_source(source)?;
    let grammar = CompiledGrammar::compile(&source, &vocabulary, &limits, &mut fuel)
        .map_err(|error| CliError::Usage(format!("{name}: {error}")))?;
    for relaxed in grammar.relaxed() {
        eprintln!("{name}: `{}` at {} is not followed", relaxed.keyword, relaxed.pointer);
    }
    Ok(Loaded { grammar, tokenizer })
}

/// The grammar, and what to call it in an error.
fn read_source(args: &GrammarSourceArgs) -> Result<(String, GrammarSource), CliError> {
    if let Some(file) = &args.gbnf {
        return Ok((file.display().to_string(), GrammarSource::Gbnf(read_text(file)?)));
    }
    if let Some(file) = &args.json_schema {
        let options = SchemaOptions {
            strict: !args.relaxed,
            any_order: args.any_order,
            whitespace: match (args.compact, args.served) {
                (true, _) => Whitespace::Compact,
                (false, true) => Whitespace::Spaced,
                (false, false) => Whitespace::Any { characters_max: GAP_CHARACTERS_MAX },
            },
            plain_integers: args.served,
            ..SchemaOptions::default()
        };
        let source = GrammarSource::JsonSchema { schema: read_text(file)?, options };
        return Ok((file.display().to_string(), source));
    }
    Ok(match &args.regex {
        Some(pattern) => ("--regex".to_owned(), GrammarSource::Regex(pattern.clone())),
        None => ("--json-object".to_owned(), GrammarSource::JsonObject),
    })
}

pub(super) fn read_text(file: &Path) -> Result<String, CliError> {
    std::fs::read_to_string(file)
        .map_err(|error| CliError::Usage(format!("cannot read {}: {error}", file.display())))
}

#[cfg(feature = "ggml")]
pub(super) fn read_tokenizer(file: &Path) -> Result<Tokenizer, CliError> {
    use crate::device::ggml::gguf::GgufMetadata;

    let failed = |error: &dyn std::fmt::Display| {
        CliError::Usage(format!("tokenizer {}: {error}", file.display()))
    };
    if file.extension().is_some_and(|ending| ending == "json") {
        return Tokenizer::from_json_file(file).map_err(|error| failed(&error));
    }
    let metadata = GgufMetadata::read(file).map_err(|error| failed(&error))?;
    Tokenizer::from_gguf(&metadata).map_err(|error| failed(&error))
}

#[cfg(not(feature = "ggml"))]
pub(super) fn read_tokenizer(file: &Path) -> Result<Tokenizer, CliError> {
    Tokenizer::from_json_file(file)
        .map_err(|error| CliError::Usage(format!("tokenizer {}: {error}", file.display())))
}

fn check(args: &GrammarCheckArgs) -> Result<(), CliError> {
    let Loaded { grammar, tokenizer } = load(&args.source)?;
    let text = read_input(args.text.as_ref())?;
    let too_expensive = |error: MatchError| CliError::Usage(error.to_string());
    let report = explain::check_text(&grammar, &text).map_err(too_expensive)?;
    if args.json {
        let object = json!({
            "accepted": report.accepted, "at_byte": report.at_byte, "line": report.line,
            "expected": report.expected, "complete": report.complete,
        });
        print(&format!("{object}\n"))?;
    } else {
        print(&in_words(&report))?;
    }
    if let Some(tokenizer) = tokenizer {
        check_tokens(&grammar, &tokenizer, &text)?;
    }
    if report.accepted { Ok(()) } else { Err(CliError::No) }
}

fn in_words(report: &explain::TextReport) -> String {
    if report.accepted {
        return "accepted\n".to_owned();
    }
    let place = format!("byte {}, line {}", report.at_byte, report.line);
    let expected = report.expected.join(", ");
    let complete = if report.complete { "; up to there it is complete" } else { "" };
    format!("not accepted: at {place} expected {expected}{complete}\n")
}

/// Walks the text token by token: mask and `accept` must agree.
fn check_tokens(
    grammar: &Arc<CompiledGrammar>,
    tokenizer: &Tokenizer,
    text: &[u8],
) -> Result<(), CliError> {
    let text = String::from_utf8_lossy(text);
    let tokens = tokenizer
        .encode(&text, SpecialTokens::AsText)
        .map_err(|error| CliError::Failure(error.to_string()))?;
    let report = explain::check_tokens(grammar, &tokens)
        .map_err(|error| CliError::Failure(error.to_string()))?;
    match report.disagreements.first() {
        None => Ok(()),
        Some(at) => Err(CliError::Failure(format!(
            "mask and accept disagree at token {at}: this is a bug of Pleach, please report the \
             grammar and the text"
        ))),
    }
}

/// The text to check, byte for byte: a file or standard input.
pub(super) fn read_input(file: Option<&PathBuf>) -> Result<Vec<u8>, CliError> {
    let mut text = Vec::new();
    let read = match file {
        Some(file) => std::fs::File::open(file).and_then(|mut file| file.read_to_end(&mut text)),
        None => io::stdin().lock().read_to_end(&mut text),
    };
    read.map_err(|error| {
        let name = file.map_or("standard input".to_owned(), |file| file.display().to_string());
        CliError::Usage(format!("cannot read {name}: {error}"))
    })?;
    Ok(text)
}

fn show(args: &GrammarShowArgs) -> Result<(), CliError> {
    let Loaded { grammar, .. } = load(&args.source)?;
    let mut random = fastrand::Rng::with_seed(args.seed);
    let mut below = |bound: usize| random.usize(..bound.max(1));
    let samples: Vec<String> = (0..SAMPLES)
        .filter_map(|_| explain::sample(&grammar, SAMPLE_BYTES, &mut below))
        .map(|text| String::from_utf8_lossy(&text).into_owned())
        .collect();
    let size = grammar.size();
    let least = grammar.matcher().min_tokens_to_finish().ok().flatten();
    if args.json {
        let object = json!({
            "nodes": size.nodes, "byte_classes": size.byte_classes, "states": size.states,
            "masks": size.masks, "bytes": size.bytes, "min_tokens": least, "samples": samples,
        });
        return print(&format!("{object}\n"));
    }
    let least = least.map_or("not known".to_owned(), |tokens| tokens.to_string());
    let mut out = format!(
        "nodes         {}\nbyte classes  {}\nstates met    {}\nmemory        {} bytes\n\
         least tokens  {least}\n",
        size.nodes, size.byte_classes, size.states, size.bytes
    );
    for sample in samples {
        out.push_str(&format!("sample        {sample:?}\n"));
    }
    print(&out)
}
