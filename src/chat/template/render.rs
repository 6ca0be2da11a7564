//! A compiled template and its render.

use std::collections::HashSet;
use std::io;

use minijinja::value::Serde;
use minijinja::{Environment, Value};
use serde_json::Map;
use time::OffsetDateTime;

use super::caps::TemplateCaps;
use super::environment::{self, TEMPLATE_NAME};
use super::error::TemplateError;
use super::generation;
use super::prepare::{self, WriteCalls};

/// Bounds on what a template may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Work of one render, in the engine's steps: one for each instruction and for each 64 bytes
    /// written, copied or looked at. Bounds the memory of a render as well.
    pub fuel: u64,
    /// Longest prompt, in bytes.
    pub output_bytes: usize,
    /// Longest template source, in bytes.
    pub source_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { fuel: 10_000_000, output_bytes: 32 << 20, source_bytes: 4 << 20 }
    }
}

/// A compiled chat template.
#[derive(Debug)]
pub struct ChatTemplate {
    engine: Engine,
    variables: HashSet<String>,
    caps: TemplateCaps,
}

/// Variables that no `chat_template_kwargs` may set.
const OWN_VARIABLES: [&str; 5] =
    ["messages", "tools", "add_generation_prompt", "raise_exception", "strftime_now"];

/// All that a template sees.
#[derive(Debug, Clone, Copy)]
pub struct RenderInput<'a> {
    /// The conversation, already in the form that the template takes.
    pub messages: &'a [serde_json::Value],
    /// Tools offered; none where the template should see `none`.
    pub tools: Option<&'a [serde_json::Value]>,
    /// Documents to answer from; none where the template should see `none`.
    pub documents: Option<&'a [serde_json::Value]>,
    /// Whether the prompt ends with the opening of the assistant's turn.
    pub add_generation_prompt: bool,
    /// Further variables (`chat_template_kwargs`). They may replace `documents` and the token texts.
    pub kwargs: &'a Map<String, serde_json::Value>,
    /// Text of the model's beginning-of-sequence token; empty where it has none.
    pub bos_token: &'a str,
    /// Text of the model's end-of-sequence token; empty where it has none.
    pub eos_token: &'a str,
    /// What `strftime_now` reads: the server's local time.
    pub now: OffsetDateTime,
}

impl ChatTemplate {
    /// Compiles `source` under the default [`Limits`].
    pub fn compile(source: &str) -> Result<Self, TemplateError> {
        Self::compile_with(source, Limits::default())
    }

    /// Compiles `source` under `limits`.
    pub fn compile_with(source: &str, limits: Limits) -> Result<Self, TemplateError> {
        if source.len() > limits.source_bytes {
            let message =
                format!("the source has {} bytes, more than {}", source.len(), limits.source_bytes);
            return Err(TemplateError::Compile { line: 0, message });
        }
        // Jinja reads every line end as a newline.
        let source = source.replace("\r\n", "\n").replace('\r', "\n");
        let source = generation::rewrite(&source).map_err(|too_deep| TemplateError::Compile {
            line: too_deep.line,
            message: too_deep.reason.to_owned(),
        })?;
        let failed = |error| TemplateError::from_compile(&error);
        let mut env = environment::build(&limits).map_err(failed)?;
        env.add_template_owned(TEMPLATE_NAME, source.clone()).map_err(failed)?;
        let variables =
            env.get_template(TEMPLATE_NAME).map_err(failed)?.undeclared_variables(false);
        let engine = Engine { env, limits };
        let caps = TemplateCaps::probe(&engine, &variables, &source)?;
        Ok(Self { engine, variables, caps })
    }

    /// What the template can show.
    pub fn caps(&self) -> &TemplateCaps {
        &self.caps
    }

    /// Whether the template reads the variable `name` that it does not set itself.
    pub fn reads_variable(&self, name: &str) -> bool {
        self.variables.contains(name)
    }

    /// Brings a client's messages into the form that this template takes.
    ///
    /// `write_calls` writes past tool calls as text for a template that does not show them
    /// ([`TemplateCaps::tool_calls`]); without it such a call is an error, as is everything else
    /// that the prompt would silently lose.
    pub fn prepare(
        &self,
        messages: &[serde_json::Value],
        write_calls: Option<WriteCalls>,
    ) -> Result<Vec<serde_json::Value>, TemplateError> {
        prepare::prepare(&self.caps, messages, write_calls)
    }

    /// The prompt for `input`.
    pub fn render(&self, input: &RenderInput) -> Result<String, TemplateError> {
        self.engine.render(input)
    }
}

/// The environment with its one template.
#[derive(Debug)]
pub(super) struct Engine {
    env: Environment<'static>,
    limits: Limits,
}

impl Engine {
    /// The prompt for `input`.
    pub(super) fn render(&self, input: &RenderInput) -> Result<String, TemplateError> {
        if let Some(name) = OWN_VARIABLES.iter().find(|name| input.kwargs.contains_key(**name)) {
            return Err(TemplateError::Unsupported {
                field: "chat_template_kwargs",
                reason: format!("{name} is set by the request's own fields"),
            });
        }
        let template = self
            .env
            .get_template(TEMPLATE_NAME)
            .map_err(|error| TemplateError::from_render(&error, &self.limits))?;
        let mut out = BoundedText::new(self.limits.output_bytes);
        let rendered = template.render_captured_to(context(input), &mut out);
        if out.refused {
            return Err(TemplateError::OutputTooLong { limit_bytes: out.limit });
        }
        match rendered {
            Ok(_) => Ok(String::from_utf8_lossy(&out.bytes).into_owned()),
            Err(error) => Err(TemplateError::from_render(&error, &self.limits)),
        }
    }
}

/// The variables of one render, under the names that `transformers` gives them.
fn context(input: &RenderInput) -> Value {
    let list = |values: Option<&[serde_json::Value]>| match values {
        Some(values) => Value::from(Serde(values)),
        None => Value::from(()),
    };
    let mut variables = vec![
        ("messages", Value::from(Serde(input.messages))),
        ("tools", list(input.tools)),
        ("documents", list(input.documents)),
        ("add_generation_prompt", Value::from(input.add_generation_prompt)),
        ("bos_token", Value::from(input.bos_token)),
        ("eos_token", Value::from(input.eos_token)),
        ("strftime_now", environment::strftime_now(input.now)),
    ];
    for (name, value) in input.kwargs {
        variables.push((name.as_str(), Value::from(Serde(value))));
    }
    Value::from_pairs(variables)
}

/// Collects the prompt and refuses to grow past its limit.
struct BoundedText {
    bytes: Vec<u8>,
    limit: usize,
    /// Set once a write did not fit.
    refused: bool,
}

impl BoundedText {
    fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit, refused: false }
    }
}

impl io::Write for BoundedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            self.refused = true;
            return Err(io::Error::other("output limit reached"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
