//! OpenAI's JSON, and only here: requests in, answers and chunks out.

pub mod answer;
pub mod chunk;
pub mod constraint;
pub mod convert;
pub mod fields;
pub mod json;
pub mod logprobs;
pub mod messages;
pub mod sampling;
pub mod schema;
pub mod tools;
pub mod types;
pub mod unsupported;
pub mod usage;
pub mod validate;
