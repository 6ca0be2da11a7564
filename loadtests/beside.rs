//! `beside`: Pleach and llama-server in turn, in one run: the same model file, threads, context and
//! slots, the same requests. Prints ratios of what each round measured, and what they should be.
//!
//! `sh loadtests/llama-server.sh` builds the peer.

#[path = "beside/parts.rs"]
mod parts;
#[path = "beside/peer.rs"]
mod peer;
#[path = "support/mod.rs"]
mod support;

use std::error::Error;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use pleach::bench::Client;
use pleach::bench::stats::median;
use serde_json::json;

use parts::Measured;
use peer::LlamaServer;
use support::client;
use support::daemon::{Daemon, cpu_time};

/// Compares Pleach with llama-server.
#[derive(Parser)]
struct Options {
    /// The model, a GGUF file; Q4_0 for throughput.
    #[arg(long)]
    model: PathBuf,
    /// The peer's program [default: where llama-server.sh puts it].
    #[arg(long)]
    llama_server: Option<PathBuf>,
    /// Threads that compute, on both sides.
    #[arg(long, default_value_t = 2)]
    threads: u32,
    /// Clients at once.
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// Times that each is measured, after one that warms up.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// What is measured [default: all].
    #[arg(long, value_enum, value_delimiter = ',')]
    parts: Vec<Part>,
    /// The model's way of writing tool calls and the like is not needed: only its name is sent.
    #[arg(long, default_value = "model")]
    name: String,
    /// One JSON object a line.
    #[arg(long)]
    json: bool,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Free answers: tokens a second, gaps.
    Free,
    /// Answers held to a schema: valid ones a minute.
    Schema,
    /// The same, asking for JSON without whitespace: a field that llama-server does not know and
    /// passes over.
    Compact,
    /// Gaps of running streams while a prompt of 2,000 tokens arrives each second.
    Long,
    /// The first token after a shared prompt of 1,000 tokens, with our index and without.
    Prefix,
}

/// Slots on both sides: the clients, and some for those who come meanwhile.
const SPARE_SLOTS: usize = 4;
const CONTEXT_TOKENS: usize = 3_072;

/// A server, what it is called, its client, and its process.
#[derive(Clone)]
struct Side {
    name: &'static str,
    client: Client,
    process: u32,
}

impl Side {
    fn new(name: &'static str, url: &str, process: u32) -> Result<Self, Box<dyn Error>> {
        Ok(Self { name, client: client::client(url)?, process })
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    actix_rt::System::new().block_on(compare(&options))
}

async fn compare(options: &Options) -> Result<(), Box<dyn Error>> {
    let wants = |part| options.parts.is_empty() || options.parts.contains(&part);
    let ours = daemon(options, true, "auto").await?;
    let us = Side::new("pleach", &ours.url, ours.id())?;
    let with_peers = [Part::Free, Part::Schema, Part::Compact, Part::Long];
    let with_peers: Vec<Part> = with_peers.into_iter().filter(|&part| wants(part)).collect();
    if !with_peers.is_empty() {
        let proven = daemon(options, true, "on").await?;
        let ours = [us.clone(), Side::new("pleach, repeatable", &proven.url, proven.id())?];
        let (usual, no_flash) = peers(options).await?;
        let peers = [
            Side::new("llama-server", &usual.url, usual.id())?,
            Side::new("llama-server -fa off", &no_flash.url, no_flash.id())?,
        ];
        for part in with_peers {
            beside(options, part, &ours, &peers).await?;
        }
    }
    if wants(Part::Prefix) {
        let without = daemon(options, false, "auto").await?;
        let other = [Side::new("pleach without index", &without.url, without.id())?];
        beside(options, Part::Prefix, &[us], &other).await?;
    }
    Ok(())
}

async fn daemon(
    options: &Options,
    has_index: bool,
    repeatable: &str,
) -> Result<Daemon, Box<dyn Error>> {
    let bytes = if has_index { 512 << 20 } else { 0 };
    Daemon::start(&format!(
        "[model]\npath = {:?}\nname = {:?}\ncontext_tokens = {CONTEXT_TOKENS}\n[device]\n\
         threads = {}\nrepeatable = {repeatable:?}\n[limits]\nmax_sessions = {}\nprefix_cache_bytes = {bytes}\n",
        options.model.display().to_string(),
        options.name,
        options.threads,
        options.clients + SPARE_SLOTS,
    ))
    .await
}

async fn peers(options: &Options) -> Result<(LlamaServer, LlamaServer), Box<dyn Error>> {
    let slots = options.clients + SPARE_SLOTS;
    let program = options.llama_server.clone().map_or_else(peer::built, Ok)?;
    let start = |further| {
        LlamaServer::start(
            &program,
            &options.model,
            options.threads,
            slots,
            CONTEXT_TOKENS,
            further,
        )
    };
    Ok((start(&[]).await?, start(&["-fa", "off"]).await?))
}

/// One part on all sides in turn; prints the medians of each, and of the rounds' ratios.
async fn beside(
    options: &Options,
    part: Part,
    ours: &[Side],
    others: &[Side],
) -> Result<(), Box<dyn Error>> {
    let mut rounds: Vec<Vec<Measured>> = Vec::new();
    for round in 0..=options.rounds {
        let mut measured = Vec::new();
        for side in ours.iter().chain(others) {
            let before = cpu_time(side.process);
            let found = parts::measure(part, &side.client, &options.name, options.clients, round);
            let mut found = found.await.map_err(|error| format!("{}: {error}", side.name))?;
            let spent = cpu_time(side.process).saturating_sub(before);
            found.push(parts::figure("CPU seconds", spent.as_secs_f64(), None));
            eprintln!("{part:?}, round {round}, {}: {}", side.name, in_words(&found));
            measured.push(found);
        }
        // The first round warms everyone up.
        if round > 0 {
            rounds.push(measured);
        }
    }
    for (us, own) in ours.iter().enumerate() {
        for (index, other) in others.iter().enumerate() {
            let columns = Columns { names: [own.name, other.name], at: [us, ours.len() + index] };
            report(options, part, &columns, &rounds);
        }
    }
    Ok(())
}

fn in_words(measured: &Measured) -> String {
    let figures = measured.iter().map(|figure| format!("{} {:.1}", figure.name, figure.value));
    figures.collect::<Vec<_>>().join(", ")
}

/// Two sides that are compared: their names, and where they are in a round.
struct Columns {
    names: [&'static str; 2],
    at: [usize; 2],
}

fn report(options: &Options, part: Part, columns: &Columns, rounds: &[Vec<Measured>]) {
    let Some(first) = rounds.first() else { return };
    let [own, other] = columns.names;
    for (at, figure) in first[0].iter().enumerate() {
        let of = |side: usize| -> Vec<f64> {
            rounds.iter().map(|round| round[side][at].value).collect()
        };
        let (ours, theirs) = (of(columns.at[0]), of(columns.at[1]));
        let ratios: Vec<f64> =
            ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs).collect();
        let (ours, theirs, ratio) = (median(&ours), median(&theirs), median(&ratios));
        let verdict = figure.wanted.map(|wanted| (wanted, wanted.holds(ratio)));
        if options.json {
            let wanted = verdict.map(|(wanted, _)| wanted.to_string());
            let line = json!({"part": format!("{part:?}").to_lowercase(), "of": own, "beside": other,
                "figure": figure.name, "pleach": ours, "other": theirs, "ratio": ratio,
                "wanted": wanted, "holds": verdict.map(|(_, holds)| holds)});
            println!("{line}");
        } else {
            let told = verdict.map_or_else(String::new, |(wanted, holds)| {
                format!("  {wanted}: {}", if holds { "yes" } else { "NO" })
            });
            println!(
                "{part:?} {:24} {own} {ours:9.1} beside {other} {theirs:9.1}: {ratio:.3}{told}",
                figure.name
            );
        }
    }
}
