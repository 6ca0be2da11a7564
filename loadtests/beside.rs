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
use support::daemon::Daemon;

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
    /// Gaps of running streams while a prompt of 2,000 tokens arrives each second.
    Long,
    /// The first token after a shared prompt of 1,000 tokens, with our index and without.
    Prefix,
}

/// Slots on both sides: the clients, and some for those who come meanwhile.
const SPARE_SLOTS: usize = 4;
const CONTEXT_TOKENS: usize = 3_072;

/// A server, what it is called, and its client.
struct Side {
    name: &'static str,
    client: Client,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    actix_rt::System::new().block_on(compare(&options))
}

async fn compare(options: &Options) -> Result<(), Box<dyn Error>> {
    let wants = |part| options.parts.is_empty() || options.parts.contains(&part);
    let ours = daemon(options, true).await?;
    let us = Side { name: "pleach", client: client::client(&ours.url)? };
    if wants(Part::Free) || wants(Part::Schema) || wants(Part::Long) {
        let (usual, no_flash) = peers(options).await?;
        let peers = [
            Side { name: "llama-server", client: client::client(&usual.url)? },
            Side { name: "llama-server -fa off", client: client::client(&no_flash.url)? },
        ];
        for part in [Part::Free, Part::Schema, Part::Long].into_iter().filter(|&part| wants(part)) {
            beside(options, part, &us, &peers).await?;
        }
    }
    if wants(Part::Prefix) {
        let without = daemon(options, false).await?;
        let other = [Side { name: "pleach without index", client: client::client(&without.url)? }];
        beside(options, Part::Prefix, &us, &other).await?;
    }
    Ok(())
}

async fn daemon(options: &Options, has_index: bool) -> Result<Daemon, Box<dyn Error>> {
    let bytes = if has_index { 512 << 20 } else { 0 };
    Daemon::start(&format!(
        "[model]\npath = {:?}\nname = {:?}\ncontext_tokens = {CONTEXT_TOKENS}\n[device]\n\
         threads = {}\n[limits]\nmax_sessions = {}\nprefix_cache_bytes = {bytes}\n",
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
    us: &Side,
    others: &[Side],
) -> Result<(), Box<dyn Error>> {
    let mut rounds: Vec<Vec<Measured>> = Vec::new();
    for round in 0..=options.rounds {
        let mut measured = Vec::new();
        for side in std::iter::once(us).chain(others) {
            let found = parts::measure(part, &side.client, &options.name, options.clients, round);
            let found = found.await.map_err(|error| format!("{}: {error}", side.name))?;
            eprintln!("{part:?}, round {round}, {}: {}", side.name, in_words(&found));
            measured.push(found);
        }
        // The first round warms everyone up.
        if round > 0 {
            rounds.push(measured);
        }
    }
    for (index, other) in others.iter().enumerate() {
        report(options, part, other.name, &rounds, index + 1);
    }
    Ok(())
}

fn in_words(measured: &Measured) -> String {
    let figures = measured.iter().map(|figure| format!("{} {:.1}", figure.name, figure.value));
    figures.collect::<Vec<_>>().join(", ")
}

fn report(options: &Options, part: Part, other: &str, rounds: &[Vec<Measured>], index: usize) {
    let Some(first) = rounds.first() else { return };
    for (at, figure) in first[0].iter().enumerate() {
        let of = |side: usize| -> Vec<f64> {
            rounds.iter().map(|round| round[side][at].value).collect()
        };
        let (ours, theirs) = (of(0), of(index));
        let ratios: Vec<f64> =
            ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs).collect();
        let (ours, theirs, ratio) = (median(&ours), median(&theirs), median(&ratios));
        let verdict = figure.wanted.map(|wanted| (wanted, wanted.holds(ratio)));
        if options.json {
            let wanted = verdict.map(|(wanted, _)| wanted.to_string());
            let line = json!({"part": format!("{part:?}").to_lowercase(), "beside": other,
                "figure": figure.name, "pleach": ours, "other": theirs, "ratio": ratio,
                "wanted": wanted, "holds": verdict.map(|(_, holds)| holds)});
            println!("{line}");
        } else {
            let told = verdict.map_or_else(String::new, |(wanted, holds)| {
                format!("  {wanted}: {}", if holds { "yes" } else { "NO" })
            });
            println!(
                "{part:?} {:24} {ours:9.1} beside {other} {theirs:9.1}: {ratio:.3}{told}",
                figure.name
            );
        }
    }
}
