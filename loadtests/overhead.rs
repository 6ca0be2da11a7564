//! `overhead`: what sessions, scheduler and wire cost.
//!
//! With `--model`: tokens a second of the daemon against the bare device, the same model, settings
//! and batch shapes, in turn, with TTFT and ITL as a client sees them. Without: the daemon on the
//! simulated device at zero cost, with its processor time a token.

#[path = "overhead/grammars.rs"]
mod grammars;
#[path = "support/mod.rs"]
mod support;
#[path = "overhead/tools.rs"]
mod tools;

use std::error::Error;
use std::path::{Path, PathBuf};

use clap::Parser;
use pleach::bench::Request;
use pleach::bench::stats::{median, ms, percentile};
use serde_json::json;

use support::client::{self, Burst};
use support::daemon::Daemon;

/// Measures what the server costs.
#[derive(Parser)]
struct Options {
    /// The model, a GGUF file; without it the simulated device.
    #[arg(long)]
    model: Option<PathBuf>,
    /// Streams at once.
    #[arg(long, value_delimiter = ',')]
    streams: Vec<usize>,
    /// Tokens of an answer.
    #[arg(long, default_value_t = 96)]
    tokens: u32,
    /// Tokens of a prompt.
    #[arg(long, default_value_t = 16)]
    prompt: usize,
    /// Times that each is measured.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Threads that compute; 0: the default.
    #[arg(long, default_value_t = 0)]
    threads: u32,
    /// With --model: what a grammar costs instead, free and constrained answers in turn.
    #[arg(long, requires = "model")]
    grammar: bool,
    /// With --model: what 20 tools cost that an answer may call, but does not.
    #[arg(long, requires = "model", conflicts_with = "grammar")]
    tools: bool,
    /// One JSON object a line.
    #[arg(long)]
    json: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    actix_rt::System::new().block_on(async {
        match &options.model {
            Some(model) if options.grammar => grammars::measure(&options, model).await,
            Some(model) if options.tools => tools::measure(&options, model).await,
            #[cfg(feature = "ggml")]
            Some(model) => against_the_bare_device(&options, model).await,
            #[cfg(not(feature = "ggml"))]
            Some(_) => Err("this build has no ggml device".into()),
            None => on_the_simulated_device(&options).await,
        }
    })
}

/// How many streams are measured, and the most of them.
fn streams(options: &Options, usual: &[usize]) -> (Vec<usize>, usize) {
    let streams = if options.streams.is_empty() { usual.to_vec() } else { options.streams.clone() };
    let most = streams.iter().copied().max().unwrap_or(1);
    (streams, most)
}

/// A daemon for so many streams; `settings` are of its model.
async fn daemon(
    options: &Options,
    model: &Path,
    streams: usize,
    settings: &str,
) -> Result<Daemon, Box<dyn Error>> {
    Daemon::start(&format!(
        "[model]\npath = {:?}\n{settings}\n[device]\nthreads = {}\n\
         repeatable = \"off\"\n[limits]\nmax_sessions = {streams}\n",
        model.display().to_string(),
        options.threads
    ))
    .await
}

fn requests(options: &Options, streams: usize) -> Vec<Request> {
    (0..streams).map(|which| client::request(options.prompt, options.tokens, which)).collect()
}

fn latencies(bursts: &[Burst]) -> (f64, f64, f64) {
    let streams = || bursts.iter().flat_map(|burst| &burst.streams);
    let first: Vec<f64> = streams().map(|stream| ms(stream.first)).collect();
    let gaps: Vec<f64> = streams().flat_map(|stream| &stream.gaps).map(|&gap| ms(gap)).collect();
    (median(&first), median(&gaps), percentile(&gaps, 0.99))
}

#[cfg(feature = "ggml")]
async fn against_the_bare_device(options: &Options, model: &Path) -> Result<(), Box<dyn Error>> {
    use pleach::device::ggml::{GgmlDevice, GgmlSettings, RepeatableMode};

    let (streams, most) = streams(options, &[1, 8, 16]);
    let context = u32::try_from(options.prompt)? + options.tokens + 16;
    let mut settings = GgmlSettings::new(model);
    settings.context_tokens = context;
    settings.max_sequences = u32::try_from(most)?;
    settings.threads = options.threads;
    settings.repeatable = RepeatableMode::Off;
    eprintln!("loading the bare device");
    let mut device = GgmlDevice::load(&settings, &mut |_| true)?;
    eprintln!("starting the daemon");
    let daemon = daemon(options, model, most, &format!("context_tokens = {context}")).await?;
    let client = client::client(&daemon.url)?;
    for count in streams {
        let (mut bare, mut served, mut bursts) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..=options.rounds {
            let rate = bare_burst(&mut device, options, u32::try_from(count)?)?;
            let burst = client::burst(&client, requests(options, count)).await?;
            eprintln!(
                "{count} streams, round {round}: {rate:.1} bare, {:.1} served",
                burst.tokens_per_second()
            );
            // The first round warms both up.
            if round > 0 {
                bare.push(rate);
                served.push(burst.tokens_per_second());
                bursts.push(burst);
            }
        }
        let ratios: Vec<f64> =
            served.iter().zip(&bare).map(|(served, bare)| served / bare).collect();
        let (first, gap, gap_p99) = latencies(&bursts);
        let (bare, served, ratio) = (median(&bare), median(&served), median(&ratios));
        if options.json {
            println!(
                "{}",
                json!({"streams": count, "bare_tokens_per_second": bare,
                       "served_tokens_per_second": served, "ratio": ratio,
                       "ttft_ms_p50": first, "itl_ms_p50": gap, "itl_ms_p99": gap_p99})
            );
        } else {
            println!(
                "{count:4} streams: bare {bare:7.1} tok/s, served {served:7.1} tok/s, ratio {ratio:.3}; \
                 TTFT p50 {first:.1} ms, ITL p50 {gap:.1} ms, p99 {gap_p99:.1} ms"
            );
        }
    }
    Ok(())
}

/// Tokens a second of the device alone: each prompt, then a step for each further token.
#[cfg(feature = "ggml")]
fn bare_burst(
    device: &mut pleach::device::ggml::GgmlDevice,
    options: &Options,
    count: u32,
) -> Result<f64, Box<dyn Error>> {
    use pleach::device::ggml::shapes::Shapes;

    let start = std::time::Instant::now();
    let mut shapes = Shapes::new(device);
    let prompt = u32::try_from(options.prompt)?;
    // The first request finds the device idle; the others arrive while it runs.
    shapes.step(&[(0, prompt, 1)])?;
    let others: Vec<_> = (1..count).map(|slot| (slot, prompt, 1)).collect();
    for together in others.chunks((512 / options.prompt).max(1)) {
        shapes.step(together)?;
    }
    let slots: Vec<u32> = (0..count).collect();
    for _ in 1..options.tokens {
        shapes.decode(&slots)?;
    }
    let time = start.elapsed();
    shapes.clear();
    Ok(f64::from(count * options.tokens) / time.as_secs_f64())
}

async fn on_the_simulated_device(options: &Options) -> Result<(), Box<dyn Error>> {
    let (streams, most) = streams(options, &[1, 64, 1024]);
    let daemon = Daemon::start(&format!(
        "[device]\nkind = \"simulated\"\nmax_batch_tokens = 16384\n[device.simulated]\n\
         fixed_us = 0\nper_token_us = 0\nper_sequence_us = 0\n\
         [limits]\nmax_sessions = {most}\nmax_queued = 64\n[log]\nlevel = \"warn,pleach::daemon=info\"\n"
    ))
    .await?;
    let client = client::client(&daemon.url)?;
    for count in streams {
        let (mut rates, mut cpu, mut bursts) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..=options.rounds {
            let before = daemon.cpu_time();
            let burst = client::burst(&client, requests(options, count)).await?;
            let used = daemon.cpu_time() - before;
            if round > 0 {
                rates.push(burst.tokens_per_second());
                cpu.push(used.as_secs_f64() * 1e6 / burst.tokens() as f64);
                bursts.push(burst);
            }
        }
        let (first, gap, gap_p99) = latencies(&bursts);
        let (rate, cpu) = (median(&rates), median(&cpu));
        let memory = daemon.resident_kib() / 1024;
        if options.json {
            println!(
                "{}",
                json!({"streams": count, "tokens_per_second": rate, "cpu_us_per_token": cpu,
                       "ttft_ms_p50": first, "itl_ms_p50": gap, "itl_ms_p99": gap_p99,
                       "resident_mib": memory})
            );
        } else {
            println!(
                "{count:5} streams: {rate:9.0} tok/s, {cpu:6.1} us of CPU a token; TTFT p50 \
                 {first:.2} ms, ITL p50 {gap:.2} ms, p99 {gap_p99:.2} ms; {memory} MiB"
            );
        }
    }
    Ok(())
}
