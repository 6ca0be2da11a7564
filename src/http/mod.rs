//! The HTTP room: OpenAI's wire in front of an [`engine::Engine`].
//!
//! A generation request goes through, in this order: request id, key, admission permit, body (type,
//! size, time), its turn, JSON, validation, further permits for further choices, template and tokens,
//! context check, [`engine::Engine::submit`]. The permit comes before the body, so that the bodies held in
//! memory are bounded by `max_requests` and a full daemon refuses in microseconds.
//!
//! Decisions where peers differ:
//! * A missing `model` means the served one; an unknown one is a 404.
//! * A missing `max_tokens` means 16 for completions (OpenAI) and, for chat, the rest of the context
//!   up to a setting. One that was asked for and does not fit the context is a 400.
//! * Unknown fields are ignored, with a log line that names them. Known fields that cannot be
//!   honoured are a 400 that names them, unless their value says "off" (null, false, "", []).
//! * Temperatures over OpenAI's 2 are legal, up to a setting; without any sampler field an answer is
//!   greedy.
//! * A prompt gets the model's start token in front unless it already begins with it; a prompt in
//!   tokens is taken as it is.
//! * Log-probabilities show a token's bytes as text with U+FFFD; chat has the exact bytes beside it.
//! * `/tokenize`, `/detokenize` and `/apply-template` need no permit: they generate nothing.
//! * Text parts of a message are joined by newlines.
//! * A stream's head waits up to `stream_head_delay` for the first frame, so that what fails at once
//!   fails with its HTTP status; later failures are error events without `[DONE]`.

pub mod admission;
pub mod auth;
mod body;
mod catch_panic;
pub mod engine;
pub mod error;
pub mod metrics;
pub mod model;
mod offload;
pub mod openai;
mod request_id;
mod routes;
mod server;
mod settings;
mod sse;
mod state;
mod turns;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use server::{Bound, configure, serve, serve_probes};
pub use settings::{HttpSettings, RequestLimits};
pub use state::{HttpState, RenderMetrics};
