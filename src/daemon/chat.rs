//! How the loaded model chats: its template, its format, and the tokens that end its turns.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::ServeError;
use super::model::{LocalClock, ModelTemplate};
use crate::chat::detect::{self, ModelFiles};
use crate::chat::format::ChatFormat;
use crate::chat::template::ChatTemplate;
use crate::config::Config;
use crate::http::model::Chat;
use crate::vocab::Vocabulary;

/// What comes with a model and says how it chats.
pub(super) struct ModelChat<'a> {
    /// Its own template.
    pub(super) template: &'a str,
    pub(super) bos_token: String,
    pub(super) eos_token: String,
    /// The `response_template` of its files.
    pub(super) described: Option<Value>,
}

/// How the model chats, and its vocabulary with the format's own end tokens.
pub(super) fn settle(
    config: &Config,
    model: ModelChat,
    vocabulary: Arc<Vocabulary>,
) -> Result<(Chat, Arc<Vocabulary>), ServeError> {
    let source = match &config.model.chat_template {
        Some(path) => read(path)?,
        None => model.template.to_owned(),
    };
    let template = ChatTemplate::compile(&source)
        .map_err(|error| ServeError::Model(format!("the chat template: {error}")))?;
    let files = ModelFiles {
        source: &source,
        template: &template,
        vocabulary: Some(&vocabulary),
        response_template: model.described.as_ref(),
    };
    let format = Arc::new(format_of(config, &files)?);
    let reasoning = if format.reasoning.is_some() { " with reasoning" } else { "" };
    tracing::info!("chat format: {}{reasoning}", format.kind);
    let vocabulary = with_stops(&format, vocabulary);
    let template = ModelTemplate {
        template,
        format: Arc::clone(&format),
        bos_token: model.bos_token,
        eos_token: model.eos_token,
        clock: LocalClock::read(),
    };
    Ok((Chat::new(Arc::new(template), format, &vocabulary), vocabulary))
}

/// The `response_template` in the `tokenizer_config.json` beside a model file, where there is one.
#[cfg(feature = "ggml")]
pub(super) fn described_beside(model: &Path) -> Result<Option<Value>, ServeError> {
    let path = model.with_file_name("tokenizer_config.json");
    if !path.exists() {
        return Ok(None);
    }
    let wrong =
        |error: &dyn std::fmt::Display| ServeError::Model(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(&error))?;
    let mut config: Value = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
    let described = config.get_mut("response_template").map(Value::take);
    Ok(described.filter(|described| !described.is_null()))
}

fn format_of(config: &Config, files: &ModelFiles) -> Result<ChatFormat, ServeError> {
    if let Some(name) = &config.model.chat_format {
        return detect::named(name, files)
            .ok_or_else(|| ServeError::Model(format!("model.chat_format {name} is not known")));
    }
    let detected = detect::detect(files);
    if let Some(unreadable) = detected.unreadable {
        tracing::warn!("response_template: {unreadable}; the template tells the chat format");
    }
    Ok(detected.format)
}

/// The vocabulary in which the format's stops end an answer too.
fn with_stops(format: &ChatFormat, vocabulary: Arc<Vocabulary>) -> Arc<Vocabulary> {
    let mut more = Vec::new();
    for stop in &format.extra_stops {
        match vocabulary.added_token(stop) {
            Some(token) if vocabulary.is_end(token) => {}
            Some(token) => {
                tracing::info!(stop = &**stop, token, "the chat format ends turns with this token");
                more.push(token);
            }
            None => tracing::warn!(
                stop = &**stop,
                "the chat format ends turns with a text that is no token of its own: \
                 answers do not end there unless a request names it in `stop`"
            ),
        }
    }
    if more.is_empty() { vocabulary } else { Arc::new(vocabulary.with_end_tokens(&more)) }
}

fn read(path: &Path) -> Result<String, ServeError> {
    std::fs::read_to_string(path).map_err(|error| {
        ServeError::Model(format!("the chat template {}: {error}", path.display()))
    })
}
