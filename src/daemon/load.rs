//! Loading: the device, the tokenizer, the chat template.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::chat::{self, ModelChat};
use super::model::ByteCodec;
use super::{ServeError, settings};
use crate::config::{Config, DeviceKind};
use crate::device::simulated::{CHAT_TEMPLATE, SimulatedDevice};
use crate::device::{Device, DeviceInfo, Repeatable};
use crate::http::model::{Chat, Model, TextCodec};
use crate::vocab::{Vocabulary, byte_vocabulary};

/// Ends a load early.
#[derive(Clone, Debug, Default)]
pub(super) struct Cancel(Arc<AtomicBool>);

impl Cancel {
    pub(super) fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// All that the runtime and the routes need of a model.
pub(super) struct Loaded {
    pub(super) device: Box<dyn Device>,
    pub(super) model: Model,
}

/// Loads what the configuration names. Runs on a thread of its own.
pub(super) fn load(config: &Config, cancel: &Cancel) -> Result<Loaded, ServeError> {
    match config.device.kind {
        DeviceKind::Simulated => simulated(config),
        DeviceKind::Ggml => ggml(config, cancel),
    }
}

fn simulated(config: &Config) -> Result<Loaded, ServeError> {
    let device = SimulatedDevice::new(settings::simulated(config))?;
    let texts = ModelChat {
        template: CHAT_TEMPLATE,
        bos_token: String::new(),
        eos_token: "<|end|>".to_owned(),
        described: None,
    };
    let (chat, vocabulary) = chat::settle(config, texts, byte_vocabulary())?;
    let parts = Parts { codec: Arc::new(ByteCodec), vocabulary, chat: Some(chat) };
    let model = parts.into_model(config, device.info());
    Ok(Loaded { device: Box::new(device), model })
}

#[cfg(not(feature = "ggml"))]
fn ggml(_config: &Config, _cancel: &Cancel) -> Result<Loaded, ServeError> {
    Err(ServeError::Model(
        "this build has no ggml device; build it with --features ggml, or serve --device simulated"
            .to_owned(),
    ))
}

#[cfg(feature = "ggml")]
fn ggml(config: &Config, cancel: &Cancel) -> Result<Loaded, ServeError> {
    use super::model::TokenizerCodec;
    use crate::device::ggml::GgmlDevice;
    use crate::device::ggml::gguf::GgufMetadata;

    let Some(path) = &config.model.path else {
        return Err(ServeError::Model("no model file: give --model FILE".to_owned()));
    };
    let wrong = |error: &dyn std::fmt::Display| ServeError::Model(error.to_string());
    let metadata = GgufMetadata::read(path).map_err(|error| wrong(&error))?;
    let tokenizer = tokenizer(config, path, &metadata)?;
    let vocabulary = tokenizer.vocabulary();
    let (chat, vocabulary) = gguf_chat(config, &metadata, path, vocabulary)?;

    let mut reported = 0;
    let mut progress = |done: f32| {
        let percent = (done * 100.0) as u32 / 10 * 10;
        if percent > reported {
            reported = percent;
            tracing::info!(percent, "loading");
        }
        !cancel.is_cancelled()
    };
    let device = GgmlDevice::load(&settings::ggml(config, path), &mut progress)?;
    check_vocabulary(&tokenizer, &device)?;
    tracing::info!(device = device.info().description, "device ready");
    let parts = Parts { codec: Arc::new(TokenizerCodec(tokenizer)), vocabulary, chat };
    let model = parts.into_model(config, device.info());
    Ok(Loaded { device: Box::new(device), model })
}

/// The tokenizer that the configuration names, else the one beside the model, else the model's.
#[cfg(feature = "ggml")]
fn tokenizer(
    config: &Config,
    model: &Path,
    metadata: &crate::device::ggml::gguf::GgufMetadata,
) -> Result<crate::vocab::Tokenizer, ServeError> {
    use crate::vocab::Tokenizer;

    let beside = model.with_file_name("tokenizer.json");
    let file = match &config.model.tokenizer {
        Some(path) => Some(path.clone()),
        None => beside.exists().then_some(beside),
    };
    let tokenizer = match &file {
        Some(path) => Tokenizer::from_json_file(path),
        None => Tokenizer::from_gguf(metadata),
    };
    if let Some(path) = file {
        tracing::info!(path = %path.display(), "tokenizer from a file of its own");
    }
    tokenizer.map_err(|error| ServeError::Model(error.to_string()))
}

/// The device's rows must have an entry for every token, and both must read text alike.
#[cfg(feature = "ggml")]
fn check_vocabulary(
    tokenizer: &crate::vocab::Tokenizer,
    device: &dyn Device,
) -> Result<(), ServeError> {
    use crate::vocab::selftest;

    let (tokens, row) = (tokenizer.vocabulary().len(), device.info().vocab_size);
    if tokens > row {
        return Err(ServeError::Model(format!(
            "the tokenizer has {tokens} tokens and the model {row}: they do not belong together"
        )));
    }
    selftest::compare(tokenizer, |text| device.tokenize(text).and_then(Result::ok)).map_err(
        |error| ServeError::Model(format!("the tokenizer differs from the model's own: {error}")),
    )
}

#[cfg(feature = "ggml")]
fn gguf_chat(
    config: &Config,
    metadata: &crate::device::ggml::gguf::GgufMetadata,
    model: &Path,
    vocabulary: Arc<Vocabulary>,
) -> Result<(Option<Chat>, Arc<Vocabulary>), ServeError> {
    let wrong = |error: &dyn std::fmt::Display| ServeError::Model(error.to_string());
    let source = metadata.string("tokenizer.chat_template").map_err(|error| wrong(&error))?;
    if source.is_none() && config.model.chat_template.is_none() {
        tracing::warn!("the model has no chat template: chat requests will be refused");
        return Ok((None, vocabulary));
    }
    let text_of = |key: &str| -> Result<String, ServeError> {
        let id: Option<crate::TokenId> = metadata.integer(key).map_err(|error| wrong(&error))?;
        let bytes = id.map_or(&[][..], |id| vocabulary.bytes(id));
        Ok(String::from_utf8_lossy(bytes).into_owned())
    };
    let texts = ModelChat {
        template: source.unwrap_or_default(),
        bos_token: text_of("tokenizer.ggml.bos_token_id")?,
        eos_token: text_of("tokenizer.ggml.eos_token_id")?,
        described: chat::described_beside(model)?,
    };
    let (chat, vocabulary) = chat::settle(config, texts, vocabulary)?;
    Ok((Some(chat), vocabulary))
}

/// What is known of a model beside its device.
struct Parts {
    codec: Arc<dyn TextCodec>,
    vocabulary: Arc<Vocabulary>,
    chat: Option<Chat>,
}

impl Parts {
    fn into_model(self, config: &Config, device: &DeviceInfo) -> Model {
        let created = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let repeatable = match &device.repeatable {
            Repeatable::Proven => "proven".to_owned(),
            Repeatable::Refuted(case) => format!("no: {case}"),
            Repeatable::Untested => "untested".to_owned(),
        };
        tracing::info!(repeatable, "the same request and seed give the same text at any load");
        Model {
            name: config.model.served_name(),
            aliases: config.model.aliases.clone(),
            created_unix_s: created.as_secs(),
            grammars: settings::grammars(config, &self.vocabulary, self.codec.clone()),
            codec: self.codec,
            vocabulary: self.vocabulary,
            chat: self.chat,
            context_tokens: device.context_tokens,
            trained_context_tokens: device.trained_context_tokens,
            device: format!("{}: {}", device.kind, device.description),
            repeatable,
        }
    }
}
