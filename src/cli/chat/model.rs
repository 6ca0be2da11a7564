//! The files of a model that say how it chats.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use time::{OffsetDateTime, UtcOffset};

use super::super::CliError;
use super::super::grammar::read_text;
use super::request::Request;
use crate::chat::detect::{Detected, ModelFiles, detect};
use crate::chat::format::ChatFormat;
use crate::chat::prompt::{Prompt, prompt};
use crate::chat::template::{ChatTemplate, RenderInput, TemplateError, WriteCalls};
use crate::vocab::{Tokenizer, Vocabulary};

/// A chat template and what is known beside it.
pub(super) struct Model {
    source: String,
    template: ChatTemplate,
    response_template: Option<Value>,
    vocabulary: Option<Arc<Vocabulary>>,
    bos_token: String,
    eos_token: String,
}

impl Model {
    /// Reads a template: Jinja, or a `tokenizer_config.json` that holds one.
    pub(super) fn read(file: &Path, tokenizer: Option<&Tokenizer>) -> Result<Self, CliError> {
        let text = read_text(file)?;
        let is_config = file.extension().is_some_and(|ending| ending == "json");
        let (source, config) = if is_config {
            let config: Value = serde_json::from_str(&text)
                .map_err(|error| CliError::Usage(format!("{}: {error}", file.display())))?;
            (template_of(&config, file)?, config)
        } else {
            (text, Value::Null)
        };
        let template = ChatTemplate::compile(&source)
            .map_err(|error| CliError::Usage(format!("{}: {error}", file.display())))?;
        let vocabulary = tokenizer.map(Tokenizer::vocabulary);
        let of_vocabulary = |id: Option<u32>| {
            let vocabulary = vocabulary.as_deref()?;
            Some(String::from_utf8_lossy(vocabulary.bytes(id?)).into_owned())
        };
        let bos = vocabulary.as_deref().and_then(Vocabulary::bos);
        let eos = vocabulary.as_deref().and_then(|it| it.end_tokens().first().copied());
        Ok(Self {
            bos_token: token_of(&config, "bos_token").or(of_vocabulary(bos)).unwrap_or_default(),
            eos_token: token_of(&config, "eos_token").or(of_vocabulary(eos)).unwrap_or_default(),
            response_template: config.get("response_template").filter(|it| !it.is_null()).cloned(),
            source,
            template,
            vocabulary,
        })
    }

    pub(super) fn detect(&self) -> Detected {
        detect(&ModelFiles {
            source: &self.source,
            template: &self.template,
            vocabulary: self.vocabulary.as_deref(),
            response_template: self.response_template.as_ref(),
        })
    }

    /// The prompt of a request. Past calls that the template does not show are written as `format`
    /// says.
    pub(super) fn prompt(
        &self,
        request: &Request,
        format: &ChatFormat,
    ) -> Result<Prompt, CliError> {
        let conversation = &request.conversation;
        let write = |calls: &[Value]| format.write_calls(calls);
        let refused = |error: TemplateError| CliError::Usage(error.to_string());
        let write_calls: Option<WriteCalls> = format.tools.is_some().then_some(&write);
        let messages =
            self.template.prepare(&conversation.messages, write_calls).map_err(refused)?;
        let offset = UtcOffset::current_local_offset().unwrap_or(UtcOffset::UTC);
        let input = RenderInput {
            messages: &messages,
            tools: conversation.tools.as_deref(),
            documents: None,
            add_generation_prompt: conversation.add_generation_prompt,
            kwargs: &conversation.kwargs,
            bos_token: &self.bos_token,
            eos_token: &self.eos_token,
            now: OffsetDateTime::now_utc().to_offset(offset),
        };
        prompt(&self.template, &input, conversation.continue_final_message).map_err(refused)
    }
}

/// The template of a `tokenizer_config.json`: one, or several of which one is the default.
fn template_of(config: &Value, file: &Path) -> Result<String, CliError> {
    let found = match config.get("chat_template") {
        Some(Value::String(source)) => Some(source),
        Some(Value::Array(named)) => {
            let of_name = |name: &str| {
                let entry =
                    named.iter().find(|entry| entry.get("name").is_some_and(|it| it == name))?;
                match entry.get("template")? {
                    Value::String(source) => Some(source),
                    _ => None,
                }
            };
            of_name("tool_use").or_else(|| of_name("default"))
        }
        _ => None,
    };
    found
        .cloned()
        .ok_or_else(|| CliError::Usage(format!("{} has no chat_template", file.display())))
}

/// The text of a special token: a string or an object that holds it.
fn token_of(config: &Value, key: &str) -> Option<String> {
    let token = config.get(key)?;
    let text = token.as_str().or_else(|| token.get("content")?.as_str())?;
    Some(text.to_owned())
}
