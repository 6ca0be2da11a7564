//! What the load tests share: a daemon as a child process, and streaming clients.

pub mod client;
pub mod daemon;
