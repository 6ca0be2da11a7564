//! What tools cost that an answer may call, but does not.
//!
//! A chat request with 20 tools and `tool_choice: "auto"` beside one without tools whose system
//! message says what the template makes of them: the prompts are the same, and so is the number of
//! tokens, since no end token is drawn. The daemon remembers both prompts.

use std::error::Error;
use std::path::Path;

use pleach::bench::stats::{median, ms};
use pleach::bench::{Client, Request, Shape, Workload};
use pleach::chat::template::{ChatTemplate, RenderInput};
use serde_json::{Map, Value, json};
use time::OffsetDateTime;

use super::Options;
use super::support::client::{self, Burst};
use super::support::daemon::Daemon;
use super::support::metrics::Page;
use super::support::wanted::Wanted;

const TEMPLATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/hermes.jinja");
const TOOLS: &str = include_str!("tools.json");
/// Prompt and answer.
const CONTEXT_TOKENS: u32 = 4_096;
const RATIO_WANTED: Wanted = Wanted::AtLeast(0.98);
const MASK_US_WANTED: Wanted = Wanted::AtMost(2.0);

/// What one side of a round took.
struct Side {
    burst: Burst,
    /// Processor time of the daemon.
    cpu_ms: f64,
}

/// Figures of the rounds, with tools over without.
#[derive(Default)]
struct Ratios {
    rate: Vec<f64>,
    cpu: Vec<f64>,
    gap: Vec<f64>,
}

/// Tokens a second with tools over tokens a second without, the same daemon in turn, and the time
/// that a mask took.
pub async fn measure(options: &Options, model: &Path) -> Result<(), Box<dyn Error>> {
    let (streams, most) = super::streams(options, &[1, 8]);
    let settings = format!("chat_template = {TEMPLATE:?}\ncontext_tokens = {CONTEXT_TOKENS}");
    let daemon = super::daemon(options, model, most, &settings).await?;
    let client = client::client(&daemon.url)?;
    let name = client.first_model().await?;
    let tools: Vec<Value> = serde_json::from_str(TOOLS)?;
    let system = in_words(&tools)?;
    for count in streams {
        let free = requests(options, &name, count, |body| {
            let said = json!({"role": "system", "content": system});
            body["messages"].as_array_mut().into_iter().for_each(|all| all.insert(0, said.clone()));
        });
        let held = requests(options, &name, count, |body| {
            body["tools"] = tools.clone().into();
            body["tool_choice"] = "auto".into();
        });
        let mut ratios = Ratios::default();
        // Both prompts become known, and all masks.
        round(&daemon, &client, [&free, &held], &mut Ratios::default()).await?;
        let before = Page::read(&daemon.url).await?;
        for nth in 0..options.rounds {
            round(&daemon, &client, [&free, &held], &mut ratios).await?;
            let rate = ratios.rate.last().copied().unwrap_or_default();
            eprintln!("{count} streams, round {nth}: {rate:.3}");
        }
        let after = Page::read(&daemon.url).await?;
        report(options, count, &ratios, mask_us(&before, &after));
    }
    Ok(())
}

/// What the template says of the tools: the content of the system turn that it makes of them.
fn in_words(tools: &[Value]) -> Result<String, Box<dyn Error>> {
    let template = ChatTemplate::compile(&std::fs::read_to_string(TEMPLATE)?)?;
    let prompt = template.render(&RenderInput {
        messages: &[],
        tools: Some(tools),
        documents: None,
        add_generation_prompt: false,
        kwargs: &Map::new(),
        bos_token: "",
        eos_token: "",
        now: OffsetDateTime::UNIX_EPOCH,
    })?;
    let content = prompt.split_once("system\n").and_then(|(_, rest)| rest.split_once("<|im_end|>"));
    Ok(content.ok_or("the template makes no system turn of tools")?.0.to_owned())
}

fn requests(
    options: &Options,
    name: &str,
    count: usize,
    further: impl Fn(&mut Value),
) -> Vec<Request> {
    let shape = Shape {
        workload: Workload::Chat,
        model: name.to_owned(),
        max_tokens: Some(options.tokens),
        prefix_words: 0,
        extra: json!({"ignore_eos": true}),
        first: 0,
    };
    let request = |which| {
        let mut request = shape.request(which);
        further(&mut request.body);
        request
    };
    (0..count).map(request).collect()
}

async fn round(
    daemon: &Daemon,
    client: &Client,
    [free, held]: [&[Request]; 2],
    ratios: &mut Ratios,
) -> Result<(), Box<dyn Error>> {
    // The first of two may find the machine in another state: each is first in half of the rounds.
    let sides = if ratios.rate.len().is_multiple_of(2) {
        let free = side(daemon, client, free).await?;
        (free, side(daemon, client, held).await?)
    } else {
        let held = side(daemon, client, held).await?;
        (side(daemon, client, free).await?, held)
    };
    let (free, held) = sides;
    for (free, held) in free.burst.streams.iter().zip(&held.burst.streams) {
        let counts = [free, held].map(|answer| (answer.prompt_tokens, answer.tokens));
        if counts[0] != counts[1] || !held.calls.is_empty() {
            return Err(format!("nothing to compare: {counts:?} tokens, {:?}", held.calls).into());
        }
    }
    let (_, free_gap, _) = super::latencies(std::slice::from_ref(&free.burst));
    let (_, held_gap, _) = super::latencies(std::slice::from_ref(&held.burst));
    ratios.rate.push(held.burst.tokens_per_second() / free.burst.tokens_per_second());
    ratios.cpu.push(held.cpu_ms / free.cpu_ms);
    ratios.gap.push(held_gap / free_gap);
    Ok(())
}

async fn side(
    daemon: &Daemon,
    client: &Client,
    requests: &[Request],
) -> Result<Side, Box<dyn Error>> {
    let before = daemon.cpu_time();
    let burst = client::burst(client, requests.to_vec()).await?;
    Ok(Side { burst, cpu_ms: ms(daemon.cpu_time() - before) })
}

/// Microseconds that a mask took on average between two pages.
fn mask_us(before: &Page, after: &Page) -> f64 {
    let grew = |name: &str| after.sum(name) - before.sum(name);
    let seconds = grew("pleach_grammar_mask_seconds_sum");
    seconds * 1e6 / grew("pleach_grammar_mask_seconds_count")
}

fn report(options: &Options, count: usize, ratios: &Ratios, mask_us: f64) {
    let [rate, cpu, gap] = [&ratios.rate, &ratios.cpu, &ratios.gap].map(|values| median(values));
    if options.json {
        let line = json!({"streams": count, "ratio": rate, "cpu_ratio": cpu, "itl_ratio": gap,
                          "mask_us": mask_us});
        println!("{line}");
        return;
    }
    let verdict = |wanted: Wanted, found| {
        format!("{wanted}: {}", if wanted.holds(found) { "yes" } else { "NO" })
    };
    println!(
        "{count:4} streams: with 20 tools {rate:.3} of the tokens a second without ({}), {cpu:.3} \
         of the CPU, {gap:.3} of the ITL p50; a mask {mask_us:.2} us ({})",
        verdict(RATIO_WANTED, rate),
        verdict(MASK_US_WANTED, mask_us),
    );
}
