//! Streaming clients of `/v1/completions`.

use std::error::Error;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::join_all;
use serde_json::{Value, json};

/// What one stream looked like from outside.
#[derive(Clone, Debug, Default)]
pub struct StreamReport {
    /// From the request to the first text.
    pub first: Duration,
    /// Between two events with text.
    pub gaps: Vec<Duration>,
    /// Tokens by the server's own count.
    pub tokens: u64,
}

/// Several streams that started together.
#[derive(Clone, Debug, Default)]
pub struct Burst {
    /// From the first request to the last byte.
    pub wall: Duration,
    /// Each stream.
    pub streams: Vec<StreamReport>,
}

impl Burst {
    /// Tokens of all streams.
    pub fn tokens(&self) -> u64 {
        self.streams.iter().map(|stream| stream.tokens).sum()
    }

    /// Tokens a second over all streams.
    pub fn tokens_per_second(&self) -> f64 {
        self.tokens() as f64 / self.wall.as_secs_f64()
    }
}

/// A client without limits of its own.
pub fn client() -> awc::Client {
    awc::Client::builder().connector(awc::Connector::new().limit(0)).disable_timeout().finish()
}

/// A request for exactly `max_tokens` tokens after a prompt of `prompt_tokens` tokens.
pub fn request(prompt_tokens: usize, max_tokens: u32, which: usize) -> Value {
    let prompt: Vec<usize> =
        (0..prompt_tokens).map(|at| 100 + (at * 7 + which * 13) % 150).collect();
    json!({
        "prompt": prompt, "max_tokens": max_tokens, "ignore_eos": true, "temperature": 0,
        "stream": true, "stream_options": {"include_usage": true},
    })
}

/// Sends all requests at once and reads their streams to the end.
pub async fn burst(
    client: &awc::Client,
    url: &str,
    requests: Vec<Value>,
) -> Result<Burst, Box<dyn Error>> {
    let start = Instant::now();
    let streams = join_all(requests.into_iter().map(|body| stream(client, url, body))).await;
    let streams = streams.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(Burst { wall: start.elapsed(), streams })
}

/// One stream, read to its `[DONE]`.
pub async fn stream(
    client: &awc::Client,
    url: &str,
    body: Value,
) -> Result<StreamReport, Box<dyn Error>> {
    let start = Instant::now();
    let sent = client.post(format!("{url}/v1/completions")).send_json(&body).await;
    let mut answer = sent.map_err(|error| error.to_string())?;
    if !answer.status().is_success() {
        let text = answer.body().await.unwrap_or_default();
        return Err(format!("{}: {}", answer.status(), String::from_utf8_lossy(&text)).into());
    }
    let mut reader = Reader { start, last: start, report: StreamReport::default(), done: false };
    let mut rest = Vec::new();
    while let Some(bytes) = answer.next().await {
        rest.extend_from_slice(&bytes.map_err(|error| error.to_string())?);
        while let Some(end) = rest.windows(2).position(|pair| pair == b"\n\n") {
            let event: Vec<u8> = rest.drain(..end + 2).collect();
            reader.event(&event)?;
        }
    }
    if !reader.done {
        return Err("the stream ended without [DONE]".into());
    }
    Ok(reader.report)
}

struct Reader {
    start: Instant,
    last: Instant,
    report: StreamReport,
    done: bool,
}

impl Reader {
    fn event(&mut self, event: &[u8]) -> Result<(), Box<dyn Error>> {
        let Some(data) = event.strip_prefix(b"data: ") else { return Ok(()) };
        if data.starts_with(b"[DONE]") {
            self.done = true;
            return Ok(());
        }
        let event: Value = serde_json::from_slice(data)?;
        if !event["error"].is_null() {
            return Err(event.to_string().into());
        }
        if let Some(tokens) = event["usage"]["completion_tokens"].as_u64() {
            self.report.tokens = tokens;
        }
        if event["choices"][0]["text"].as_str().is_some_and(|text| !text.is_empty()) {
            let now = Instant::now();
            if self.report.first.is_zero() {
                self.report.first = now - self.start;
            } else {
                self.report.gaps.push(now - self.last);
            }
            self.last = now;
        }
        Ok(())
    }
}
