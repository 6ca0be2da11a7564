//! What is measured on each side.

use std::error::Error;
use std::time::Duration;

use futures_util::future::{join, join_all};
use pleach::bench::{
    Client, Endpoint, Load, Percentiles, Report, Request, Shape, Workload, long_text, run,
};
use serde_json::{Value, json};

use super::Part;
use super::support::wanted::Wanted;

/// Prompts that arrive one a second.
const ARRIVALS: usize = 8;
/// Words of such a prompt: about 2,000 tokens.
const LONG_WORDS: usize = 1_640;
/// Words of the shared prompt: about 1,000 tokens.
const PREFIX_WORDS: usize = 820;

/// What one round found on one side.
pub type Measured = Vec<Figure>;

/// One figure, and what our own over the other's should be.
pub struct Figure {
    pub name: &'static str,
    pub value: f64,
    pub wanted: Option<Wanted>,
}

/// A figure.
pub fn figure(name: &'static str, value: f64, wanted: Option<Wanted>) -> Figure {
    Figure { name, value, wanted }
}

/// Measures one part once. Each round asks something else, so that nobody remembers an answer.
pub async fn measure(
    part: Part,
    client: &Client,
    model: &str,
    clients: usize,
    round: usize,
) -> Result<Measured, Box<dyn Error>> {
    let prompts = json!({"seed": round});
    match part {
        Part::Free => {
            let extra = json!({"ignore_eos": true, "seed": round});
            let report = load(client, model, Workload::Chat, clients, 96, extra, round).await?;
            Ok(vec![
                figure("tokens/s", report.tokens_per_second, Some(Wanted::AtLeast(1.0))),
                figure("ITL p50", report.itl_ms.p50, None),
                figure("ITL p99", report.itl_ms.p99, Some(Wanted::AtMost(1.0))),
                figure("TTFT p50", report.ttft_ms.p50, None),
            ])
        }
        Part::Schema | Part::Compact => {
            let mut extra = prompts;
            if part == Part::Compact {
                extra["json_whitespace"] = "compact".into();
            }
            let report = load(client, model, Workload::Schema, clients, 256, extra, round).await?;
            let found = &report.constrained;
            let valid = found.valid as f64 / (found.valid + found.cut + found.invalid) as f64;
            Ok(vec![
                figure("valid answers/min", found.valid_per_minute, Some(Wanted::AtLeast(1.5))),
                figure("tokens/s", report.tokens_per_second, None),
                figure("share valid", valid, None),
                figure("ITL p99", report.itl_ms.p99, None),
            ])
        }
        Part::Long => arrivals(client, model, clients, round).await,
        Part::Prefix => {
            let report = load(client, model, Workload::LongPrefix, 1, 8, prompts, round).await?;
            Ok(vec![figure("TTFT p50", report.ttft_ms.p50, Some(Wanted::AtMost(0.2)))])
        }
    }
}

async fn load(
    client: &Client,
    model: &str,
    workload: Workload,
    clients: usize,
    max_tokens: u32,
    extra: Value,
    round: usize,
) -> Result<Report, Box<dyn Error>> {
    let shape = Shape {
        workload,
        model: model.to_owned(),
        max_tokens: Some(max_tokens),
        prefix_words: PREFIX_WORDS,
        extra,
        first: round * 1_000,
    };
    let load = Load { clients, requests: clients.max(4) * 2, warmup: 0, shape };
    let report = run(client, &load, |_| {}).await;
    match report.errors.keys().next() {
        Some(error) => Err(error.clone().into()),
        None => Ok(report),
    }
}

/// Streams that run all the while, and a long prompt each second.
async fn arrivals(
    client: &Client,
    model: &str,
    clients: usize,
    round: usize,
) -> Result<Measured, Box<dyn Error>> {
    let request = |text: String, max_tokens: usize| {
        let body = json!({"model": model, "max_tokens": max_tokens, "temperature": 0, "ignore_eos": true,
                          "messages": [{"role": "user", "content": text}]});
        Request::new(Endpoint::Chat, body)
    };
    let running: Vec<Request> = (0..clients)
        .map(|which| request(format!("{which} {round}: tell a long story."), STREAM_TOKENS))
        .collect();
    let coming: Vec<Request> = (0..ARRIVALS)
        .map(|which| {
            let text = long_text((round * 100 + which) as u64, LONG_WORDS);
            request(format!("{text} What is this about?"), 4)
        })
        .collect();
    let streams = join_all(running.iter().map(|request| client.ask(request)));
    let arrivals = join_all(coming.iter().enumerate().map(|(at, request)| async move {
        tokio::time::sleep(Duration::from_secs(1 + at as u64)).await;
        client.ask(request).await
    }));
    let (streams, arrivals) = join(streams, arrivals).await;
    let streams = streams.into_iter().collect::<Result<Vec<_>, _>>()?;
    let arrivals = arrivals.into_iter().collect::<Result<Vec<_>, _>>()?;
    let gaps = Percentiles::of(streams.iter().flat_map(|stream| stream.gaps.clone()));
    let first = Percentiles::of(arrivals.iter().map(|answer| answer.first));
    let prompt = arrivals.first().map_or(0, |answer| answer.prompt_tokens);
    Ok(vec![
        figure("gap p99", gaps.p99, Some(Wanted::AtMost(0.5))),
        figure("gap p50", gaps.p50, None),
        figure("TTFT p50, long prompts", first.p50, None),
        figure("tokens, long prompts", prompt as f64, None),
    ])
}

/// Tokens of a running stream: some longer than the prompts keep arriving.
const STREAM_TOKENS: usize = 256;
