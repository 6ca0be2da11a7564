//! Stream chunks. With a thousand streams this is where the HTTP worker's time goes, so a chunk is
//! written straight into the connection's buffer: a head that was formatted once, the text escaped,
//! a constant tail.

use std::fmt::Write;
use std::io;
use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use serde::Serialize;
use serde_json::json;

use super::logprobs::{ChatLogprobs, CompletionLogprobs};
use super::types::{AnswerHead, Shape};
use super::usage::{Finish, UsageObject};
use crate::http::error::ApiError;
use crate::http::model::Model;
use crate::session::{CallPart, Delta, TokenEntry};

/// Writes the events of one stream.
pub struct ChunkWriter {
    /// Up to and with `"choices":[`.
    head: String,
    /// From the end of the choice on.
    tail: &'static str,
    shape: Shape,
    include_usage: bool,
    model: Arc<Model>,
}

/// The events of an idle stream: a comment, which every client skips.
pub const PING: &[u8] = b": ping\n\n";

impl ChunkWriter {
    /// For a stream with this head. With `include_usage`, chunks carry `usage: null` and a last one
    /// carries the sums.
    pub fn new(head: &AnswerHead, include_usage: bool, model: Arc<Model>) -> Self {
        let object = match head.shape {
            Shape::Chat => "chat.completion.chunk",
            Shape::Completion => "text_completion",
        };
        let head_text = format!(
            r#"data: {{"id":{},"object":"{object}","created":{},"model":{},"choices":["#,
            json!(head.id),
            head.created_unix_s,
            json!(head.model),
        );
        let tail = if include_usage { "}],\"usage\":null}\n\n" } else { "}]}\n\n" };
        Self { head: head_text, tail, shape: head.shape, include_usage, model }
    }

    /// The first chunk of a choice: chat names the role; completions have none.
    pub fn opening(&self, out: &mut BytesMut, choice: u32) {
        if self.shape == Shape::Chat {
            self.open(out, choice);
            push(out, r#","delta":{"role":"assistant","content":""},"logprobs":null"#);
            self.close(out, None);
        }
    }

    /// A piece of the answer: a chunk for each field that grew, the tokens in the first. One that
    /// adds nothing writes nothing.
    pub fn delta(&self, out: &mut BytesMut, choice: u32, delta: &Delta) {
        let mut tokens = delta.tokens.as_slice();
        if !delta.reasoning.is_empty() {
            let tokens = std::mem::take(&mut tokens);
            self.field(out, choice, r#","delta":{"reasoning_content":"#, &delta.reasoning, tokens);
        }
        if !delta.text.is_empty() {
            let tokens = std::mem::take(&mut tokens);
            self.content(out, choice, &delta.text, tokens);
        }
        for part in &delta.calls {
            let tokens = std::mem::take(&mut tokens);
            self.call(out, choice, part, tokens);
        }
        if !tokens.is_empty() {
            self.content(out, choice, "", tokens);
        }
    }

    fn content(&self, out: &mut BytesMut, choice: u32, text: &str, tokens: &[TokenEntry]) {
        match self.shape {
            Shape::Chat => self.field(out, choice, r#","delta":{"content":"#, text, tokens),
            Shape::Completion => {
                self.open(out, choice);
                push(out, r#","text":"#);
                write_json(&mut out.writer(), text);
                self.logprobs(out, tokens);
                self.close(out, None);
            }
        }
    }

    /// A chunk of chat with one field of text; `before` is everything up to it.
    fn field(
        &self,
        out: &mut BytesMut,
        choice: u32,
        before: &str,
        text: &str,
        tokens: &[TokenEntry],
    ) {
        self.open(out, choice);
        push(out, before);
        write_json(&mut out.writer(), text);
        push(out, "}");
        self.logprobs(out, tokens);
        self.close(out, None);
    }

    fn call(&self, out: &mut BytesMut, choice: u32, part: &CallPart, tokens: &[TokenEntry]) {
        self.open(out, choice);
        push(out, r#","delta":{"tool_calls":["#);
        let call = match part {
            CallPart::Begin { index, id, name } => json!({
                "index": index, "id": id, "type": "function",
                "function": {"name": name, "arguments": ""},
            }),
            CallPart::Arguments { index, json } => {
                json!({"index": index, "function": {"arguments": json}})
            }
        };
        write_json(&mut out.writer(), &call);
        push(out, "]}");
        self.logprobs(out, tokens);
        self.close(out, None);
    }

    /// The last chunk of a choice.
    pub fn finish(&self, out: &mut BytesMut, choice: u32, finish: Finish) {
        self.open(out, choice);
        push(
            out,
            match self.shape {
                Shape::Chat => r#","delta":{},"logprobs":null"#,
                Shape::Completion => r#","text":"","logprobs":null"#,
            },
        );
        self.close(out, Some(finish));
    }

    /// The end of a stream that went well: the usage where asked for, then `[DONE]`.
    pub fn done(&self, out: &mut BytesMut, usage: UsageObject) {
        if self.include_usage {
            push(out, &self.head);
            push(out, "],\"usage\":");
            write_json(&mut out.writer(), &usage);
            push(out, "}\n\n");
        }
        push(out, "data: [DONE]\n\n");
    }

    /// The end of a stream that failed.
    pub fn error(&self, out: &mut BytesMut, error: &ApiError) {
        push(out, "data: ");
        write_json(&mut out.writer(), &error.to_value());
        push(out, "\n\n");
    }

    fn open(&self, out: &mut BytesMut, choice: u32) {
        push(out, &self.head);
        // Writing into memory that grows cannot fail.
        let _ = write!(out, "{{\"index\":{choice}");
    }

    fn logprobs(&self, out: &mut BytesMut, tokens: &[TokenEntry]) {
        push(out, ",\"logprobs\":");
        if tokens.is_empty() {
            return push(out, "null");
        }
        let mut writer = out.writer();
        match self.shape {
            Shape::Chat => write_json(&mut writer, &ChatLogprobs::new(&self.model, tokens)),
            Shape::Completion => {
                write_json(&mut writer, &CompletionLogprobs::new(&self.model, tokens));
            }
        }
    }

    fn close(&self, out: &mut BytesMut, finish: Option<Finish>) {
        match finish {
            None => push(out, ",\"finish_reason\":null"),
            Some(finish) => {
                push(out, ",\"finish_reason\":\"");
                push(out, finish.as_str());
                push(out, "\"");
            }
        }
        push(out, self.tail);
    }
}

fn push(out: &mut BytesMut, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// Appends `value` as JSON to memory. The types of this room have string keys and finite numbers and
/// the memory grows, so there is nothing that could fail; a failure would leave the JSON broken,
/// which a client refuses.
pub fn write_json<T: Serialize + ?Sized>(out: &mut impl io::Write, value: &T) {
    if let Err(error) = serde_json::to_writer(out, value) {
        tracing::error!(%error, "an answer could not be serialised");
    }
}
