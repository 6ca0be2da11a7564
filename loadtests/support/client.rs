//! Streams of `/v1/completions` that start together.

use std::error::Error;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use pleach::bench::{Answer, Client, Endpoint, Request, Target};
use serde_json::json;

/// Several streams that started together.
#[derive(Clone, Debug, Default)]
pub struct Burst {
    /// From the first request to the last byte.
    pub wall: Duration,
    /// Each stream.
    pub streams: Vec<Answer>,
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

/// A client of the server at `url`.
pub fn client(url: &str) -> Result<Client, Box<dyn Error>> {
    Ok(Client::new(Target::new(url, None, Duration::from_secs(3600))?))
}

/// A request for exactly `max_tokens` tokens after a prompt of `prompt_tokens` tokens.
pub fn request(prompt_tokens: usize, max_tokens: u32, which: usize) -> Request {
    let prompt: Vec<usize> =
        (0..prompt_tokens).map(|at| 100 + (at * 7 + which * 13) % 150).collect();
    let body = json!({
        "prompt": prompt, "max_tokens": max_tokens, "ignore_eos": true, "temperature": 0,
    });
    Request::new(Endpoint::Completions, body)
}

/// Sends all requests at once and reads their streams to the end.
pub async fn burst(client: &Client, requests: Vec<Request>) -> Result<Burst, Box<dyn Error>> {
    let start = Instant::now();
    let streams = join_all(requests.iter().map(|request| client.ask(request))).await;
    let streams = streams.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(Burst { wall: start.elapsed(), streams })
}
