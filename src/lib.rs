//! Pleach serves a language model whose answers cannot leave the shape the client asked for.
//!
//! The rooms, top to bottom; a module uses only what stands below it (`tests/layering.rs`):
//!
//! | module | what it is |
//! |---|---|
//! | [`cli`] | the commands of `pleach` |
//! | [`bench`] | the load generator: requests, streams, what they took |
//! | [`daemon`] | start and stop order, signals, systemd |
//! | [`http`] | the OpenAI wire: routes, validation, errors, server-sent events |
//! | [`actors`] | thin actix adapters around the pure state machines |
//! | [`config`] | the TOML file, every limit with its default and unit |
//! | [`telemetry`] | metric names, logs, panic hook |
//! | [`schedule`] | pure: which tokens go into the next device step |
//! | [`session`] | pure: one generation, from rows to text |
//! | [`chat`] | pure: chat templates and formats |
//! | [`grammar`] | pure: from a grammar to a mask over the vocabulary |
//! | [`sampling`] | pure: from a row of logits to a token |
//! | [`vocab`] | token bytes, the tokenizer, UTF-8 assembly |
//! | [`device`] | what turns a batch of tokens into rows of logits |
//!
//! "Pure" means: no clock, no I/O, no runtime. Time and randomness come in as arguments.

pub mod actors;
pub mod bench;
pub mod chat;
pub mod cli;
pub mod config;
pub mod daemon;
pub mod device;
pub mod grammar;
pub mod http;
pub mod sampling;
pub mod schedule;
pub mod session;
pub mod telemetry;
pub mod vocab;

/// Index of a token in the model's vocabulary.
pub type TokenId = u32;
