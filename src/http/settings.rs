//! Every limit and switch of the HTTP room, with its default.

use std::net::SocketAddr;
use std::time::Duration;

use super::auth::Auth;
use crate::sampling::SamplingParams;

/// How the server listens and what it lets in.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// Addresses to listen on.
    pub listen: Vec<SocketAddr>,
    /// Address where only `/livez`, `/readyz`, `/health` and `/metrics` are answered.
    pub probe_listen: Option<SocketAddr>,
    /// HTTP worker threads; parsing and writing are all they do.
    pub workers: usize,
    /// Threads a worker may use for big templates and prompts.
    pub blocking_threads: usize,
    /// Connections that may wait to be accepted.
    pub backlog: u32,
    /// Open connections over which no further one is accepted.
    pub max_connections: usize,
    /// How long an idle connection stays open.
    pub keep_alive: Duration,
    /// How long a request's head may take.
    pub head_timeout: Duration,
    /// How long a request's body may take.
    pub body_timeout: Duration,
    /// Largest body, bytes.
    pub body_bytes_max: usize,
    /// Origins of browsers that may call; empty: cross-origin requests get no permission.
    pub cors_origins: Vec<String>,
    /// Who may call.
    pub auth: Auth,
    /// `/metrics` needs no key.
    pub metrics_public: bool,
    /// A client's address is taken from `Forwarded` and `X-Forwarded-For`. Only behind a proxy that
    /// sets them: otherwise clients choose their own name in the fair queue.
    pub trust_forwarded: bool,
    /// Silence in a stream after which a `: ping` comment is sent.
    pub ping_interval: Duration,
    /// How long a stream's head waits for the first frame, so that an early failure still has its
    /// HTTP status. Afterwards the head is sent and failures become error events.
    pub stream_head_delay: Duration,
    /// Frames between a session and its connection before the session pauses.
    pub frame_capacity: usize,
    /// Time that a request may take from submission; `None`: as long as it likes.
    pub request_deadline: Option<Duration>,
    /// How long open connections are kept when the server stops; whole seconds.
    pub shutdown_timeout: Duration,
    /// What a single request may ask.
    pub limits: RequestLimits,
}

/// Bounds on one request.
#[derive(Clone, Debug)]
pub struct RequestLimits {
    /// Generations in the daemon, running and waiting; more is a 429.
    pub max_requests: usize,
    /// Choices of one request, over all its prompts.
    pub choices_max: u32,
    /// `max_tokens` of a chat request that names none; the context bounds it too.
    pub chat_max_tokens_default: u32,
    /// `max_tokens` of a completion request that names none (OpenAI's 16).
    pub completion_max_tokens_default: u32,
    /// `max_tokens` that a request may ask; `None`: as many as the context has room for.
    pub answer_tokens_max: Option<u32>,
    /// The sampler of a request that names nothing.
    pub sampling: SamplingParams,
    /// Whether a schema that does not say `strict` itself is.
    pub strict_schemas: bool,
    /// Stop strings.
    pub stop_strings_max: usize,
    /// Bytes of one stop string.
    pub stop_bytes_max: usize,
    /// Entries of `stop_token_ids`.
    pub stop_token_ids_max: usize,
    /// Entries of `logit_bias`.
    pub logit_bias_max: usize,
    /// Highest temperature. OpenAI's is 2; local clients go beyond.
    pub temperature_max: f64,
    /// JSON values in one body: bounds the memory that a body unfolds to.
    pub json_values_max: usize,
    /// Bodies over this many bytes are parsed, rendered and tokenised off the HTTP worker.
    pub offload_bytes: usize,
}

impl RequestLimits {
    /// A default for `max_tokens`, within what may be asked.
    pub(super) fn answer_tokens_default(&self, default: u32) -> u32 {
        self.answer_tokens_max.map_or(default, |max| default.min(max))
    }
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            listen: vec![SocketAddr::from(([127, 0, 0, 1], 8080))],
            probe_listen: None,
            workers: 1,
            blocking_threads: 2,
            backlog: 2048,
            max_connections: 16_384,
            keep_alive: Duration::from_secs(75),
            head_timeout: Duration::from_secs(5),
            body_timeout: Duration::from_secs(30),
            body_bytes_max: 8 << 20,
            cors_origins: Vec::new(),
            auth: Auth::Off,
            metrics_public: true,
            trust_forwarded: false,
            ping_interval: Duration::from_secs(15),
            stream_head_delay: Duration::from_secs(1),
            frame_capacity: 64,
            request_deadline: None,
            shutdown_timeout: Duration::from_secs(30),
            limits: RequestLimits::default(),
        }
    }
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            max_requests: 256,
            choices_max: 128,
            chat_max_tokens_default: 4096,
            completion_max_tokens_default: 16,
            answer_tokens_max: None,
            sampling: SamplingParams::default(),
            strict_schemas: true,
            stop_strings_max: 4,
            stop_bytes_max: 1024,
            stop_token_ids_max: 128,
            logit_bias_max: 1024,
            temperature_max: 100.0,
            json_values_max: 500_000,
            offload_bytes: 16 << 10,
        }
    }
}
