//! What the load tests share: a daemon as a child process, and streaming clients.

#![allow(dead_code, reason = "each load test uses its own part")]

pub mod client;
pub mod daemon;
pub mod metrics;
pub mod wanted;
