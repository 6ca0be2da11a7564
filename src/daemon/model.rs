//! The model's tokenizer and chat template as the HTTP room sees them.

use serde_json::{Map, Value};
use time::{OffsetDateTime, UtcOffset};

use crate::TokenId;
use crate::chat::template::{ChatTemplate, RenderInput, TemplateError};
use crate::http::model::{PromptTemplate, TemplateFault, TextCodec};
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

impl PromptTemplate for ModelTemplate {
    fn render(
        &self,
        messages: &[Value],
        tools: Option<&[Value]>,
        kwargs: &Map<String, Value>,
        add_generation_prompt: bool,
        continue_final_message: bool,
    ) -> Result<String, TemplateFault> {
        let fault = |error: TemplateError| TemplateFault { message: error.to_string() };
        let messages = self.template.prepare(messages, None).map_err(fault)?;
        let input = RenderInput {
            messages: &messages,
            tools,
            documents: None,
            add_generation_prompt,
            kwargs,
            bos_token: &self.bos_token,
            eos_token: &self.eos_token,
            now: self.clock.now(),
        };
        if continue_final_message {
            self.template.render_continued(&input).map_err(fault)
        } else {
            self.template.render(&input).map_err(fault)
        }
    }
}
