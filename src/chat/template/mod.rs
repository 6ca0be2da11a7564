//! Chat templates: Jinja as `transformers` renders it, by a Rust engine.
//!
//! [`ChatTemplate::compile`] takes the template's source once; [`ChatTemplate::render`] turns a
//! conversation into the prompt and may be called from many threads at a time. What Python would
//! write is what this writes: `tests/template_parity.rs` compares the two on real templates. A
//! template is data that came with a model, so it gets bounded work, depth and output.
//!
//! One thing is not bounded: a template that wraps a list in a list some tens of thousands of times
//! overflows the stack when the engine frees it. Only a template written to do harm does that, and
//! whoever loads a model's weights trusts its maker with more.

mod caps;
mod continuation;
mod environment;
mod error;
mod filters;
mod generation;
mod methods;
mod prepare;
mod python_text;
mod render;
mod strftime;
mod tests_of_type;
mod tojson;

pub use caps::{ArgumentsForm, EmptyContent, ReasoningKey, TemplateCaps};
pub use error::TemplateError;
pub use prepare::WriteCalls;
pub use render::{ChatTemplate, Limits, RenderInput};

#[cfg(test)]
mod tests;
