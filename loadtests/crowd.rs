//! `crowd`: a thousand streams at once on the simulated device, and ten thousand requests in the
//! queue behind them. Prints what was found and whether it is what it should be.
//!
//! A few streams are read token by token; all others are read a few times a second, so that the
//! figures are the daemon's and not those of the clients that share its machine.

#[path = "crowd/bare.rs"]
mod bare;
#[path = "crowd/drain.rs"]
mod drain;
#[path = "crowd/flood.rs"]
mod flood;
#[path = "crowd/raw.rs"]
mod raw;
#[path = "crowd/streams.rs"]
mod streams;
#[path = "support/mod.rs"]
mod support;

use std::error::Error;
use std::fmt::Display;
use std::time::{Duration, Instant};

use clap::Parser;
use pleach::bench::Percentiles;
use pleach::bench::stats::ms;

use streams::Crowd;
use support::daemon::Daemon;
use support::metrics::Page;

/// Streams on a simulated device, and a queue behind them.
#[derive(Parser)]
struct Options {
    /// Streams at once.
    #[arg(long, default_value_t = 1_024)]
    streams: usize,
    /// How long they are measured, in seconds.
    #[arg(long, default_value_t = 120)]
    seconds: u64,
    /// Microseconds of a step.
    #[arg(long, default_value_t = 5_000)]
    step_us: u64,
    /// Tokens of an answer on average: each has from half as many to half as many more.
    #[arg(long, default_value_t = 400)]
    tokens: u32,
    /// Of a hundred streams, how many leave before their end.
    #[arg(long, default_value_t = 5)]
    leaving: u8,
    /// Requests that wait in the queue; 0: that part is left out.
    #[arg(long, default_value_t = 10_000)]
    queue: usize,
    /// HTTP workers of the daemon.
    #[arg(long, default_value_t = 2)]
    workers: u32,
}

/// Clients beyond the streams, so that somebody waits whenever a place is free.
const IN_LINE: usize = 64;
/// Tokens of a stream that does not end while it is needed.
const ENDLESS: u32 = 120_000;
/// Before anything is measured.
const WARM_UP: Duration = Duration::from_secs(5);
const SAMPLE_EVERY: Duration = Duration::from_secs(1);

fn main() -> Result<(), Box<dyn Error>> {
    raw::raise_file_limit();
    let options = Options::parse();
    actix_rt::System::new().block_on(run(&options))
}

async fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let write = bare::write_time(options.streams)?.as_secs_f64() * 1e6;
    println!(
        "bare writes: {write:.2} us each, {:.2} ms a step",
        write * options.streams as f64 / 1e3
    );
    let daemon = Daemon::start(&format!(
        "[server]\nmax_connections = 65536\nprobe_listen = \"127.0.0.1:0\"\nworkers = {}\n[model]\ncontext_tokens = 131072\n[device]\nkind = \"simulated\"\n\
         max_batch_tokens = 16384\n[device.simulated]\n\
         fixed_us = {}\nper_token_us = 0\nper_sequence_us = 0\n[limits]\nmax_sessions = {}\n\
         max_queued = {}\nqueue_deadline_seconds = 3600\nrequest_deadline_seconds = 3600\n\
         [log]\nlevel = \"warn,pleach::daemon=info\"\n",
        options.workers,
        options.step_us,
        options.streams,
        // Without a flood, who comes back before its old place in line is free is not refused.
        if options.queue > 0 { options.queue + IN_LINE } else { 2 * IN_LINE },
    ))
    .await?;
    let leaving = f64::from(options.leaving) / 100.0;
    let half = options.tokens / 2;
    let lengths = options.tokens - half..=options.tokens + half;
    let crowd = Crowd::start(&daemon.url, options.streams + IN_LINE, lengths, leaving)?;
    tokio::time::sleep(WARM_UP).await;
    measure(options, &daemon, &crowd, write).await?;
    crowd.end()?;
    if options.queue > 0 {
        // Streams that go on all the while: no place becomes free.
        let crowd = Crowd::start(&daemon.url, options.streams, ENDLESS..=ENDLESS, 0.0)?;
        tokio::time::sleep(WARM_UP).await;
        let probes = daemon.probe_address().ok_or("no address for probes")?;
        let found = flood::run(&daemon.url, &probes, options.queue + IN_LINE).await?;
        crowd.end()?;
        told(&found);
    }
    Ok(())
}

fn told(found: &flood::Found) {
    let flood::Found { asked, refused, refusals, .. } = found;
    let within = |what: &str, time: Duration, most_ms: u128| {
        let found = format!("{:.1} ms", ms(time));
        verdict(what, found, &format!("at most {most_ms} ms"), time.as_millis() <= most_ms);
    };
    println!("a queue of {}; refusals, ms  {refusals}", found.waiting);
    verdict("refused", format!("{refused} of {asked}"), "all", refused == asked);
    within("longest refusal", found.refusal, 50);
    within("longest /livez", found.beside.livez, 100);
    within("longest /metrics", found.beside.metrics, 100);
    within("longest /livez at the address for probes", found.apart.livez, 100);
    within("longest /metrics there", found.apart.metrics, 100);
}

/// `write_us`: processor time of one write alone.
async fn measure(
    options: &Options,
    daemon: &Daemon,
    crowd: &Crowd,
    write_us: f64,
) -> Result<(), Box<dyn Error>> {
    let before = Page::read(&daemon.url).await?;
    let (started, cpu) = (Instant::now(), daemon.cpu_time());
    crowd.take_gaps();
    let end = started + Duration::from_secs(options.seconds);
    let mut memory = Vec::new();
    while Instant::now() < end {
        tokio::time::sleep(SAMPLE_EVERY).await;
        memory.push(daemon.resident_kib() as f64 / 1024.0);
    }
    let used = daemon.cpu_time() - cpu;
    let wall = started.elapsed();
    let after = Page::read(&daemon.url).await?;
    let gaps = Percentiles::of(crowd.take_gaps().into_iter());
    let grew = |name: &str| after.sum(name) - before.sum(name);
    let steps = grew("pleach_device_batch_size_count");
    let batch = grew("pleach_device_batch_size_sum") / steps;
    let tokens = grew("pleach_generation_tokens_total");
    let period = wall.as_secs_f64() * 1e3 / steps;
    let step = options.step_us as f64 / 1e3;
    let share = batch / options.streams as f64;
    println!(
        "{steps:.0} steps in {:.0} s, {period:.2} ms each; {:.0} tokens/s",
        wall.as_secs_f64(),
        tokens / wall.as_secs_f64()
    );
    println!("  gaps, ms  {gaps}");
    verdict(
        "mean batch",
        format!("{batch:.1} of {}", options.streams),
        "at least 99.5%",
        share >= 0.995,
    );
    verdict(
        "p99 gap",
        format!("{:.2} steps", gaps.p99 / step),
        "at most 1.5",
        gaps.p99 <= 1.5 * step,
    );
    let cpu_us = used.as_secs_f64() * 1e6 / tokens;
    println!("  CPU a token  {cpu_us:.2} us, {:.2} bare writes", cpu_us / write_us);
    println!("  cores busy   {:.2}", used.as_secs_f64() / wall.as_secs_f64());
    let quarter = (memory.len() / 4).max(1);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let (first, last) = (mean(&memory[..quarter]), mean(&memory[memory.len() - quarter..]));
    let told = format!("{first:.1} MiB, then {last:.1} MiB");
    verdict("memory", told, "at most 5% more", last <= first * 1.05);
    Ok(())
}

fn verdict(what: &str, found: impl Display, wanted: &str, holds: bool) {
    println!("  {what}: {found} ({wanted}): {}", if holds { "yes" } else { "NO" });
}
