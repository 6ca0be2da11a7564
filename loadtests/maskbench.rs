//! Times the grammar engine on real grammars and texts, beside llguidance in the same run.
//!
//! ```sh
//! cargo run --release --features peers --bin maskbench -- --builtin --tokenizer tokenizer.json
//! cargo run --release --features peers --bin maskbench -- \
//!     --data sample.jsonl --tokenizer tokenizer.json --peer llguidance
//! ```
//!
//! Each grammar is compiled, and each of its texts followed token by token: mask, is the token in
//! it, accept. A text is accepted if all its tokens are and the answer is complete after them.
//! Times are thread CPU time in microseconds: `tbm` is one mask, `accept` one token, `step` the
//! two together, `ttfm` compiling up to the first mask.

#[path = "maskbench/data.rs"]
mod data;
#[path = "maskbench/ours.rs"]
mod ours;
#[path = "maskbench/peer.rs"]
mod peer;
#[path = "maskbench/report.rs"]
mod report;
#[path = "maskbench/samples.rs"]
mod samples;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, ValueEnum};
use pleach::TokenId;
use pleach::grammar::Whitespace;
use pleach::grammar::json_schema::{GAP_CHARACTERS_MAX, SchemaOptions};
use pleach::vocab::{SpecialTokens, Tokenizer, Vocabulary};

use data::{Case, Instance};
use report::{Report, Tally};

/// Engines to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Peer {
    /// The llguidance crate.
    Llguidance,
    /// None: our figures alone.
    None,
}

/// Time the grammar engine, beside a peer in the same run.
#[derive(Debug, Parser)]
struct Arguments {
    /// Lines of `{"id", "schema" or "gbnf", "lark", "tests": [{"valid", "text"}]}`.
    #[arg(long, required_unless_present = "builtin")]
    data: Option<PathBuf>,
    /// Run the grammars that come with the bench instead.
    #[arg(long)]
    builtin: bool,
    /// Where those grammars are.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/loadtests/grammars"))]
    grammars: PathBuf,
    /// The vocabulary: a `tokenizer.json`.
    #[arg(long)]
    tokenizer: PathBuf,
    /// Engine to compare with.
    #[arg(long, value_enum, default_value_t = Peer::Llguidance)]
    peer: Peer,
    /// Grammars to run, at most.
    #[arg(long)]
    limit: Option<usize>,
    /// Throw all that was learnt of a grammar away before each text.
    #[arg(long)]
    cold: bool,
    /// Hold properties to the order in which a schema declares them, as the daemon does unless a
    /// request asks for another. The texts were written by others: some have another order.
    #[arg(long)]
    declared_order: bool,
    /// No whitespace between JSON tokens.
    #[arg(long)]
    compact: bool,
    /// One JSON object instead of a table.
    #[arg(long)]
    json: bool,
    /// Also print the figures of each grammar.
    #[arg(long)]
    each: bool,
}

/// One engine under test, with one grammar compiled.
trait Follower {
    /// The tokens that may come next; false if there is no mask.
    fn mask(&mut self) -> bool;
    /// Whether the last mask has the token.
    fn allows(&self, token: TokenId) -> bool;
    /// Takes the token; false if it is refused.
    fn accept(&mut self, token: TokenId) -> bool;
    /// Whether the text is complete.
    fn is_complete(&mut self) -> bool;
}

/// An engine under test.
trait Engine {
    /// Drops the grammar compiled last, so that this does not count for the next.
    fn forget(&mut self);
    /// Compiles a grammar, up to and with the first mask. The error says why it is refused.
    fn compile(&mut self, case: &Case) -> Result<(), String>;
    /// Starts a text, with what is known of the grammar thrown away if `cold`.
    fn start(&mut self, cold: bool) -> Result<Box<dyn Follower + '_>, String>;
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("maskbench: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let (vocabulary, tokens) = read(arguments)?;
    let schemas = SchemaOptions {
        any_order: !arguments.declared_order,
        whitespace: match arguments.compact {
            true => Whitespace::Compact,
            false => Whitespace::Any { characters_max: GAP_CHARACTERS_MAX },
        },
        ..SchemaOptions::default()
    };
    let mut ours = ours::Ours::new(&vocabulary, schemas);
    let mut peer = match arguments.peer {
        Peer::None => None,
        Peer::Llguidance => Some(peer::Llguidance::new(&vocabulary)?),
    };
    let mut report = Report::default();
    for (index, (case, tokens)) in cases(arguments)?.zip(tokens).enumerate() {
        let case = &case?;
        if !arguments.json {
            eprint!("\r{} {:40.40}", index + 1, case.id);
        }
        if !case.is_known() {
            report.skipped += 1;
            continue;
        }
        let tally = measure(&mut ours, case, &tokens, arguments.cold);
        let other = peer.as_mut().map(|peer| measure(peer, case, &tokens, arguments.cold));
        if arguments.each {
            eprintln!("\r{}", report::line(&case.id, &tally, other.as_ref())?);
        }
        report.ours.add(tally)?;
        report.peer = match (report.peer.take(), other) {
            (Some(mut sum), Some(other)) => {
                sum.add(other)?;
                Some(sum)
            }
            (sum, other) => sum.or(other),
        };
    }
    if arguments.json {
        println!("{}", report.to_json()?);
    } else {
        eprint!("\r{:50}\r", "");
        print!("{}", report.to_text()?);
    }
    Ok(())
}

fn cases(
    arguments: &Arguments,
) -> Result<Box<dyn Iterator<Item = Result<Case, String>> + '_>, String> {
    let cases: Box<dyn Iterator<Item = _>> = match &arguments.data {
        Some(file) => Box::new(data::read_lines(file)?),
        None => Box::new(data::read_builtin(Path::new(&arguments.grammars))?.into_iter().map(Ok)),
    };
    Ok(Box::new(cases.take(arguments.limit.unwrap_or(usize::MAX))))
}

/// The tokens of each text of a case.
type CaseTokens = Vec<Box<[TokenId]>>;

/// The vocabulary, and the tokens of all texts. The tokenizer is gone afterwards: it takes more
/// memory than an engine, and none of an engine's work.
fn read(arguments: &Arguments) -> Result<(Arc<Vocabulary>, Vec<CaseTokens>), String> {
    let tokenizer =
        Tokenizer::from_json_file(&arguments.tokenizer).map_err(|error| error.to_string())?;
    let tokens = cases(arguments)?.map(|case| encode(&tokenizer, &case?));
    let tokens = tokens.collect::<Result<_, String>>()?;
    Ok((tokenizer.vocabulary(), tokens))
}

fn encode(tokenizer: &Tokenizer, case: &Case) -> Result<CaseTokens, String> {
    let encode = |instance: &Instance| {
        let tokens = tokenizer.encode(&instance.text, SpecialTokens::AsText);
        tokens.map(Vec::into_boxed_slice).map_err(|error| format!("{}: {error}", case.id))
    };
    case.tests.iter().map(encode).collect()
}

fn measure(engine: &mut dyn Engine, case: &Case, tokens: &[Box<[TokenId]>], cold: bool) -> Tally {
    let mut tally = Tally::of_one();
    engine.forget();
    let (compiled, micros) = report::timed(|| engine.compile(case));
    if let Err(reason) = compiled {
        tally.refuse(&case.id, reason);
        return tally;
    }
    tally.ttfm.push(micros);
    for (instance, tokens) in case.tests.iter().zip(tokens) {
        match engine.start(cold) {
            Ok(mut follower) => {
                let is_accepted = follow(&mut *follower, tokens, &mut tally);
                tally.judge(&case.id, instance.valid, is_accepted);
            }
            Err(reason) => tally.refuse(&case.id, reason),
        }
    }
    tally
}

fn follow(follower: &mut dyn Follower, tokens: &[TokenId], tally: &mut Tally) -> bool {
    for &token in tokens {
        let (has_mask, mask_micros) = report::timed(|| follower.mask());
        if !has_mask || !follower.allows(token) {
            tally.step(mask_micros, None);
            return false;
        }
        let (is_accepted, accept_micros) = report::timed(|| follower.accept(token));
        tally.step(mask_micros, Some(accept_micros));
        if !is_accepted {
            return false;
        }
    }
    follower.is_complete()
}
