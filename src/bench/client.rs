//! A client of one server.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use serde_json::Value;

use super::answer::{Reader, message};
use super::sse::EventReader;
use super::{Answer, BenchError, Request};

/// The longest error body that is read.
const ERROR_BYTES_MAX: usize = 1 << 20;

/// Where a server is, and how it is spoken to.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its address, `http://host:port`, without `/v1`.
    url: String,
    /// Sent as `Authorization: Bearer …`.
    key: Option<String>,
    /// A request that takes longer has failed.
    timeout: Duration,
}

impl Target {
    /// A server at `url`, with or without a trailing `/v1`.
    ///
    /// # Errors
    /// When the address is none of plain HTTP.
    pub fn new(url: &str, key: Option<String>, timeout: Duration) -> Result<Self, BenchError> {
        let wrong = |reason| BenchError::Url { url: url.to_owned(), reason };
        if url.starts_with("https://") {
            return Err(wrong("it is encrypted; give the server's own address, before the proxy"));
        }
        if !url.starts_with("http://") {
            return Err(wrong("it does not start with http://"));
        }
        let base = url.trim_end_matches('/');
        let base = base.strip_suffix("/v1").unwrap_or(base).trim_end_matches('/');
        Ok(Self { url: base.to_owned(), key, timeout })
    }
}

/// Sends requests and reads their streams. Each has a connection of its own: one that is kept may be
/// closed by the server just when the next request goes out on it.
#[derive(Clone)]
pub struct Client {
    http: awc::Client,
    target: Target,
}

impl Client {
    /// A client for a server. Must be used inside an actix `System`.
    pub fn new(target: Target) -> Self {
        let connector = awc::Connector::new().limit(0);
        let mut builder = awc::Client::builder().connector(connector).disable_timeout();
        if let Some(key) = &target.key {
            builder = builder.add_default_header(("Authorization", format!("Bearer {key}")));
        }
        Self { http: builder.finish(), target }
    }

    /// The first model that the server names.
    ///
    /// # Errors
    /// When there is no server, or it names none.
    pub async fn first_model(&self) -> Result<String, BenchError> {
        let sent = self.http.get(format!("{}/v1/models", self.target.url)).force_close().send();
        let mut answer =
            self.within(async { sent.await.map_err(|error| self.unreachable(&error)) }).await?;
        let body = answer.body().limit(ERROR_BYTES_MAX).await;
        let body = body.map_err(|error| BenchError::Broken(error.to_string()))?;
        if !answer.status().is_success() {
            return Err(refused(answer.status().as_u16(), &body));
        }
        let models: Value = serde_json::from_slice(&body).unwrap_or_default();
        let name = models["data"][0]["id"].as_str();
        let nameless = || BenchError::Broken("/v1/models names no model; use --model".to_owned());
        Ok(name.ok_or_else(nameless)?.to_owned())
    }

    /// Sends one request and reads its answer to the end.
    ///
    /// # Errors
    /// When there is no whole answer.
    pub async fn ask(&self, request: &Request) -> Result<Answer, BenchError> {
        self.within(self.stream(request)).await
    }

    async fn within<T>(
        &self,
        work: impl Future<Output = Result<T, BenchError>>,
    ) -> Result<T, BenchError> {
        let timeout = self.target.timeout;
        let late = |_| BenchError::Timeout(timeout.as_secs());
        tokio::time::timeout(timeout, work).await.map_err(late)?
    }

    async fn stream(&self, request: &Request) -> Result<Answer, BenchError> {
        let started = Instant::now();
        let url = format!("{}{}", self.target.url, request.endpoint.path());
        let sent = self.http.post(url).force_close().send_json(&request.body).await;
        let mut answer = sent.map_err(|error| self.unreachable(&error))?;
        if !answer.status().is_success() {
            let status = answer.status().as_u16();
            let body = answer.body().limit(ERROR_BYTES_MAX).await.unwrap_or_default();
            return Err(refused(status, &body));
        }
        let (mut events, mut reader) = (EventReader::default(), Reader::new(started));
        while let Some(bytes) = answer.next().await {
            let bytes = bytes.map_err(|error| BenchError::Broken(error.to_string()))?;
            let now = Instant::now();
            let mut taken = Ok(());
            events.push(&bytes, |data| {
                if taken.is_ok() {
                    taken = reader.event(data, now);
                }
            });
            taken?;
        }
        reader.finish(Instant::now())
    }

    fn unreachable(&self, error: &awc::error::SendRequestError) -> BenchError {
        BenchError::Unreachable { url: self.target.url.clone(), reason: error.to_string() }
    }
}

fn refused(status: u16, body: &[u8]) -> BenchError {
    let parsed: Value = serde_json::from_slice(body).unwrap_or_default();
    let message = match &parsed {
        Value::Null => String::from_utf8_lossy(body).trim().to_owned(),
        _ => message(&parsed),
    };
    BenchError::Status { status, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_as_clients_write_them() {
        for url in ["http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/"] {
            let target = Target::new(url, None, Duration::from_secs(1)).unwrap();
            assert_eq!(target.url, "http://h:1");
        }
        for url in ["https://h", "h:1", "ftp://h"] {
            let error = Target::new(url, None, Duration::from_secs(1)).unwrap_err();
            assert!(matches!(error, BenchError::Url { .. }), "{url}");
        }
    }

    #[test]
    fn refusals_say_what_the_server_said() {
        let said = |body: &str| match refused(429, body.as_bytes()) {
            BenchError::Status { status: 429, message } => message,
            other => panic!("{other}"),
        };
        assert_eq!(said(r#"{"error": {"message": "full"}}"#), "full");
        assert_eq!(said(r#"{"error": "full"}"#), "full");
        assert_eq!(said("no JSON\n"), "no JSON");
    }
}
