//! `pleach chat`: which format a template's model writes, what it is asked, what it said.

mod model;
mod request;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::args::{ChatArgs, ChatDetectArgs, ChatParseArgs, ChatRenderArgs};
use super::grammar::{read_input, read_tokenizer};
use super::{CliError, note, print};
use crate::chat::format::{ChatFormat, ReasoningMode};
use crate::chat::formats;
use crate::chat::parse::{ChatMessage, ChatStream, Delta, ParseOptions, ToolCall, ToolSet, parse};
use crate::vocab::TextAssembler;
use model::Model;
use request::Request;

pub(super) fn run(args: &ChatArgs) -> Result<(), CliError> {
    match args {
        ChatArgs::Detect(args) => detect(args),
        ChatArgs::Render(args) => render(args),
        ChatArgs::Parse(args) => parse_answer(args),
    }
}

fn detect(args: &ChatDetectArgs) -> Result<(), CliError> {
    let tokenizer = args.tokenizer.as_deref().map(read_tokenizer).transpose()?;
    for file in &args.templates {
        let model = Model::read(file, tokenizer.as_ref())?;
        let format = format_of(&model, file);
        let line = json!({
            "file": file.display().to_string(),
            "kind": format.kind,
            "reasoning": reasoning(&format),
            "prefill": format.prefill,
            "extra_stops": format.extra_stops,
        });
        print(&format!("{line}\n"))?;
    }
    Ok(())
}

/// The format of a model; what its own description has that cannot be read is told.
fn format_of(model: &Model, file: &Path) -> ChatFormat {
    let detected = model.detect();
    if let Some(unreadable) = &detected.unreadable {
        note(&format!("{}: {unreadable}; the template tells the format", file.display()));
    }
    detected.format
}

fn reasoning(format: &ChatFormat) -> &'static str {
    match format.reasoning.as_ref().map(|reasoning| reasoning.mode) {
        None => "off",
        Some(ReasoningMode::Tags) => "tags",
        Some(ReasoningMode::Forced) => "forced",
    }
}

fn render(args: &ChatRenderArgs) -> Result<(), CliError> {
    let tokenizer = args.tokenizer.as_deref().map(read_tokenizer).transpose()?;
    let model = Model::read(&args.template, tokenizer.as_ref())?;
    let request = Request::read(&args.request)?;
    print(&model.prompt(&request, &format_of(&model, &args.template))?.text)
}

fn parse_answer(args: &ChatParseArgs) -> Result<(), CliError> {
    let request = args.request.as_deref().map(Request::read).transpose()?;
    let (format, prompt) = match &args.template {
        Some(file) => {
            let tokenizer = args.tokenizer.as_deref().map(read_tokenizer).transpose()?;
            let model = Model::read(file, tokenizer.as_ref())?;
            let format = format_of(&model, file);
            let prompt =
                request.as_ref().map(|request| model.prompt(request, &format)).transpose()?;
            (format, prompt)
        }
        None => (named(args.format.as_deref().unwrap_or_default())?, None),
    };
    let tools = match (&request, &args.tools) {
        (Some(request), _) => request.offered(),
        (None, Some(file)) => request::read_tools(file)?,
        (None, None) => ToolSet::default(),
    };
    let options = ParseOptions {
        tools: Arc::new(tools),
        continues: prompt.as_ref().is_some_and(|prompt| prompt.continues),
        prefill: match (&args.prefill, prompt) {
            (Some(prefill), _) => prefill.clone(),
            (None, Some(prompt)) => prompt.prefill,
            (None, None) => format.prefill.clone(),
        },
        ..ParseOptions::default()
    };
    let raw = read_input(args.raw.as_ref())?;
    let format = Arc::new(format);
    let message = match args.chunk {
        Some(bytes) => in_pieces(&format, &raw, bytes, args.partial, options),
        None => parse(&format, &String::from_utf8_lossy(&raw), args.partial, &options),
    };
    print(&format!("{}\n", in_json(&message)))
}

fn named(name: &str) -> Result<ChatFormat, CliError> {
    formats::named(name).ok_or_else(|| {
        let known: Vec<&str> = formats::families().iter().map(|family| family.name).collect();
        CliError::Usage(format!("--format {name} is not known; known are {}", known.join(", ")))
    })
}

/// What a client puts together from the stream of an answer that comes in pieces of `bytes` bytes.
fn in_pieces(
    format: &Arc<ChatFormat>,
    raw: &[u8],
    bytes: u32,
    partial: bool,
    options: ParseOptions,
) -> ChatMessage {
    let mut stream = ChatStream::new(format, options);
    let mut text = TextAssembler::new();
    let mut client = Client::default();
    for piece in raw.chunks(usize::try_from(bytes).unwrap_or(usize::MAX)) {
        client.take(stream.push(&text.push(piece)));
    }
    if !partial {
        client.take(stream.push(&text.finish()));
        client.take(stream.finish());
    }
    client.message()
}

/// Puts deltas together as OpenAI's clients do.
#[derive(Default)]
struct Client {
    reasoning: String,
    content: String,
    calls: BTreeMap<usize, ToolCall>,
}

impl Client {
    fn take(&mut self, deltas: Vec<Delta>) {
        for delta in deltas {
            match delta {
                Delta::Reasoning(text) => self.reasoning.push_str(&text),
                Delta::Content(text) => self.content.push_str(&text),
                Delta::CallBegin { index, id, name } => {
                    let (arguments, complete) = (String::new(), false);
                    self.calls.insert(index, ToolCall { id, name, arguments, complete });
                }
                Delta::CallArguments { index, json } => {
                    if let Some(call) = self.calls.get_mut(&index) {
                        call.arguments.push_str(&json);
                    }
                }
            }
        }
    }

    fn message(self) -> ChatMessage {
        let tool_calls = self.calls.into_values().collect();
        ChatMessage { reasoning: self.reasoning, content: self.content, tool_calls }
    }
}

fn in_json(message: &ChatMessage) -> Value {
    let call = |call: &ToolCall| {
        json!({"id": call.id, "type": "function",
            "function": {"name": call.name, "arguments": call.arguments}})
    };
    json!({
        "reasoning": message.reasoning,
        "content": message.content,
        "tool_calls": message.tool_calls.iter().map(call).collect::<Vec<_>>(),
    })
}
