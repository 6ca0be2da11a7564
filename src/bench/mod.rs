//! A load generator for any server that speaks OpenAI's API: what `pleach bench` and the load tests
//! send, and what they measure.
//!
//! ```text
//! Workload -> Request (body, Expectation) -> Client (one stream) -> Answer
//!          -> load (many clients)         -> Report (rates, percentiles, validity)
//! ```

mod answer;
mod client;
mod error;
mod expectation;
mod load;
mod report;
mod requests;
mod sse;
pub mod stats;
mod texts;
mod workload;

pub use answer::{Answer, Call};
pub use client::{Client, Target};
pub use error::BenchError;
pub use expectation::{Expectation, Verdict};
pub use load::{Load, Progress, run};
pub use report::{Constrained, Percentiles, Report};
pub use requests::{Endpoint, Request};
pub use texts::long_text;
pub use workload::{Shape, Workload};
