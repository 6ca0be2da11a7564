//! The model's tokenizer and chat template as the HTTP room sees them.

use std::sync::Arc;

use serde_json::Value;
use time::{OffsetDateTime, UtcOffset};

use crate::TokenId;
use crate::chat::format::ChatFormat;
use crate::chat::prompt::{Prompt, prompt};
use crate::chat::template::{ChatTemplate, RenderInput, TemplateError, WriteCalls};
use crate::http::model::{Conversing, PromptTemplate, TemplateFault, TextCodec};
use crate::vocab::{SpecialTokens, Tokenizer, byte_vocabulary, encode_bytes};

/// A real tokenizer.
pub(super) struct TokenizerCodec(pub(super) Tokenizer);

impl TextCodec for TokenizerCodec {
    fn encode(&self, text: &str, parse_special: bool) -> Result<Vec<TokenId>, String> {
        let special = if parse_special { SpecialTokens::Parse } else { SpecialTokens::AsText };
        self.0.encode(text, special).map_err(|error| error.to_string())
    }

    fn decode_bytes(&self, tokens: &[TokenId]) -> Vec<u8> {
        self.0.decode_bytes(tokens)
    }

    fn add_bos(&self) -> bool {
        self.0.add_bos()
    }
}

/// The simulated device's tokenizer: bytes.
pub(super) struct ByteCodec;

impl TextCodec for ByteCodec {
    fn encode(&self, text: &str, parse_special: bool) -> Result<Vec<TokenId>, String> {
        Ok(encode_bytes(text, parse_special))
    }

    fn decode_bytes(&self, tokens: &[TokenId]) -> Vec<u8> {
        let vocabulary = byte_vocabulary();
        tokens.iter().flat_map(|&token| vocabulary.bytes(token).to_vec()).collect()
    }

    fn add_bos(&self) -> bool {
        false
    }
}

/// A chat template with the model's own token texts.
pub(super) struct ModelTemplate {
    pub(super) template: ChatTemplate,
    /// In which past calls are written where the template does not show them.
    pub(super) format: Arc<ChatFormat>,
    pub(super) bos_token: String,
    pub(super) eos_token: String,
    pub(super) clock: LocalClock,
}

/// The machine's local time. Its offset is read once, before there are threads: the C library's
/// environment is not safe to read later.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalClock(UtcOffset);

impl LocalClock {
    /// Reads the offset; UTC where it cannot be known.
    pub(super) fn read() -> Self {
        Self(UtcOffset::current_local_offset().unwrap_or(UtcOffset::UTC))
    }

    fn now(self) -> OffsetDateTime {
        OffsetDateTime::now_utc().to_offset(self.0)
    }
}

impl ModelTemplate {
    /// Brings the conversation into the template's form and has `write` make something of it.
    fn with_input<T>(
        &self,
        conversation: Conversing,
        write: impl FnOnce(&RenderInput) -> Result<T, TemplateError>,
    ) -> Result<T, TemplateFault> {
        let fault = |error: TemplateError| TemplateFault { message: error.to_string() };
        let calls = |calls: &[Value]| self.format.write_calls(calls);
        let write_calls: Option<WriteCalls> = self.format.tools.is_some().then_some(&calls);
        let messages = self.template.prepare(conversation.messages, write_calls).map_err(fault)?;
        let input = RenderInput {
            messages: &messages,
            tools: conversation.tools,
            documents: None,
            add_generation_prompt: conversation.add_generation_prompt,
            kwargs: conversation.kwargs,
            bos_token: &self.bos_token,
            eos_token: &self.eos_token,
            now: self.clock.now(),
        };
        write(&input).map_err(fault)
    }
}

impl PromptTemplate for ModelTemplate {
    fn render(&self, conversation: Conversing) -> Result<String, TemplateFault> {
        self.with_input(conversation, |input| {
            if conversation.continue_final_message {
                self.template.render_continued(input)
            } else {
                self.template.render(input)
            }
        })
    }

    fn prompt(&self, conversation: Conversing) -> Result<Prompt, TemplateFault> {
        self.with_input(conversation, |input| {
            prompt(&self.template, input, conversation.continue_final_message)
        })
    }

    fn shows_tools(&self) -> bool {
        self.template.caps().tools
    }
}
