//! `settings`: what a setting brings or costs, by two daemons that differ in it alone, asked the
//! same in turn.

#[path = "support/mod.rs"]
mod support;

use std::error::Error;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use pleach::bench::stats::median;
use pleach::bench::{Client, Endpoint, Load, Report, Request, Shape, Workload, run};
use serde_json::json;

use support::client;
use support::daemon::Daemon;

/// Compares settings.
#[derive(Parser)]
struct Options {
    /// The model, a GGUF file.
    #[arg(long)]
    model: PathBuf,
    /// Which setting [default: all].
    #[arg(long, value_enum, value_delimiter = ',')]
    setting: Vec<Setting>,
    /// Threads that compute; 0: the default.
    #[arg(long, default_value_t = 0)]
    threads: u32,
    /// Streams at once.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8])]
    streams: Vec<usize>,
    /// Times that each is measured, after one that warms up.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

/// A setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Setting {
    /// `device.repeatable`: on beside off.
    Repeatable,
    /// `device.draft_tokens`: 8 beside 0.
    Drafts,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    actix_rt::System::new().block_on(async {
        for setting in [Setting::Repeatable, Setting::Drafts] {
            if options.setting.is_empty() || options.setting.contains(&setting) {
                compare(&options, setting).await?;
            }
        }
        Ok(())
    })
}

async fn compare(options: &Options, setting: Setting) -> Result<(), Box<dyn Error>> {
    let [with, without] = match setting {
        Setting::Repeatable => ["repeatable = \"on\"", "repeatable = \"off\""],
        Setting::Drafts => ["draft_tokens = 8", "draft_tokens = 0"],
    };
    let (with, without) = (daemon(options, with).await?, daemon(options, without).await?);
    let clients = [client::client(&with.url)?, client::client(&without.url)?];
    for &streams in &options.streams {
        for task in [Task::Free, Task::Again, Task::Schema, Task::Prompts] {
            let mut ratios = Vec::new();
            let mut rates = [Vec::new(), Vec::new()];
            for round in 0..=options.rounds {
                let [with, without] = [
                    task.rate(&clients[0], streams, round).await?,
                    task.rate(&clients[1], streams, round).await?,
                ];
                // The first round warms both up.
                if round > 0 {
                    ratios.push(with / without);
                    rates[0].push(with);
                    rates[1].push(without);
                }
            }
            let [with, without] = rates.map(|rates| median(&rates));
            println!(
                "{setting:?}, {streams} streams, {task:?}: {with:.1} beside {without:.1} tok/s: {:.3}",
                median(&ratios)
            );
        }
    }
    Ok(())
}

async fn daemon(options: &Options, setting: &str) -> Result<Daemon, Box<dyn Error>> {
    let most = options.streams.iter().copied().max().unwrap_or(1);
    Daemon::start(&format!(
        "[model]\npath = {:?}\ncontext_tokens = 2048\n[device]\nthreads = {}\n{setting}\n\
         [limits]\nmax_sessions = {most}\nprefix_cache_bytes = 0\n",
        options.model.display().to_string(),
        options.threads,
    ))
    .await
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
enum Task {
    /// Free answers; tokens of answers a second.
    Free,
    /// Answers that say again what stands in the prompt.
    Again,
    /// Answers held to a schema.
    Schema,
    /// Long prompts; their tokens a second.
    Prompts,
}

impl Task {
    async fn rate(
        self,
        client: &Client,
        streams: usize,
        round: usize,
    ) -> Result<f64, Box<dyn Error>> {
        match self {
            Self::Free => {
                let report = load(client, Workload::Chat, streams, 96, round).await?;
                Ok(report.tokens_per_second)
            }
            Self::Schema => {
                let report = load(client, Workload::Schema, streams, 256, round).await?;
                Ok(report.tokens_per_second)
            }
            Self::Prompts => {
                let report = load(client, Workload::LongPrefix, streams, 1, round).await?;
                Ok(report.prompt_tokens as f64 / report.seconds)
            }
            Self::Again => {
                let requests = (0..streams).map(|which| again(which, round)).collect();
                Ok(client::burst(client, requests).await?.tokens_per_second())
            }
        }
    }
}

fn again(which: usize, round: usize) -> Request {
    let list: String = (0..12)
        .map(|line| {
            format!(
                "{{\"id\": {}, \"name\": \"item {line}\", \"price\": {}}}\n",
                line + 10,
                (line * 7 + which + round) % 90 + 10
            )
        })
        .collect();
    let prompt = format!(
        "Here is a list:\n{list}\nHere is the same list once more:\n{list}\nAnd once more:\n"
    );
    let body = json!({"prompt": prompt, "max_tokens": 128, "temperature": 0, "ignore_eos": true});
    Request::new(Endpoint::Completions, body)
}

async fn load(
    client: &Client,
    workload: Workload,
    clients: usize,
    max_tokens: u32,
    round: usize,
) -> Result<Report, Box<dyn Error>> {
    let shape = Shape {
        workload,
        model: client.first_model().await?,
        max_tokens: Some(max_tokens),
        prefix_words: 820,
        extra: match workload {
            Workload::Schema => json!({}),
            _ => json!({"ignore_eos": true}),
        },
        first: round * 1_000,
    };
    let report = run(client, &Load { clients, requests: clients, warmup: 0, shape }, |_| {}).await;
    match report.errors.keys().next() {
        Some(error) => Err(error.clone().into()),
        None => Ok(report),
    }
}
