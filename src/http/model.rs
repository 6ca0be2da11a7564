//! What the routes need to know of the model. Tokenizer and template come in as traits.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::TokenId;
use crate::chat::format::ChatFormat;
use crate::chat::prompt::Prompt;
use crate::grammar::{GrammarCache, Tokenize};
use crate::vocab::{TokenKind, Vocabulary};

/// Text to tokens and back.
pub trait TextCodec: Send + Sync {
    /// The tokens of `text`; nothing is added in front. With `parse_special`, the names of control
    /// tokens in the text become those tokens. The error is a sentence for the client.
    fn encode(&self, text: &str, parse_special: bool) -> Result<Vec<TokenId>, String>;

    /// The bytes of `tokens`, as the tokenizer joins them; control tokens included by name.
    fn decode_bytes(&self, tokens: &[TokenId]) -> Vec<u8>;

    /// Whether the model expects its start token in front of every text.
    fn add_bos(&self) -> bool;
}

/// The model's chat template. Bounded in time by the implementation.
pub trait PromptTemplate: Send + Sync {
    /// The text of the prompt for a conversation.
    fn render(&self, conversation: Conversing) -> Result<String, TemplateFault>;

    /// The prompt for a conversation, with the part that the answer continues. Takes longer.
    fn prompt(&self, conversation: Conversing) -> Result<Prompt, TemplateFault>;

    /// Whether the prompt shows tools.
    fn shows_tools(&self) -> bool;
}

/// What a chat template is given.
#[derive(Clone, Copy, Debug)]
pub struct Conversing<'a> {
    /// Checked messages: roles are known, `content` is a string or null, `tool_calls` have their
    /// shape.
    pub messages: &'a [Value],
    /// The tools on offer.
    pub tools: Option<&'a [Value]>,
    /// Variables for the template.
    pub kwargs: &'a Map<String, Value>,
    /// End the prompt with the opening of an assistant's turn.
    pub add_generation_prompt: bool,
    /// Leave the last message open for the model to continue.
    pub continue_final_message: bool,
}

/// How the model chats.
#[derive(Clone)]
pub struct Chat {
    /// What writes its prompts.
    pub template: Arc<dyn PromptTemplate>,
    /// How it writes its answers.
    pub format: Arc<ChatFormat>,
    /// Control tokens whose names are text to the format, ascending.
    pub markers: Arc<[TokenId]>,
}

impl Chat {
    /// For a model with this vocabulary.
    pub fn new(
        template: Arc<dyn PromptTemplate>,
        format: Arc<ChatFormat>,
        vocabulary: &Vocabulary,
    ) -> Self {
        let is_marker = |id: &TokenId| {
            let token = vocabulary.get(*id).filter(|token| token.kind == TokenKind::Control);
            let name = token.and_then(|token| std::str::from_utf8(&token.bytes).ok());
            name.is_some_and(|name| format.has_marker(name))
        };
        let ids = (0..).take(vocabulary.len());
        let markers = ids.filter(is_marker).collect();
        Self { template, format, markers }
    }
}

/// The template refused the conversation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TemplateFault {
    /// What it said, in words for the client.
    pub message: String,
}

/// What compiles the grammars of requests.
#[derive(Clone)]
pub struct Grammars {
    /// The compiled ones.
    pub cache: Arc<GrammarCache>,
    /// How long compiling one may take.
    pub compile_deadline: Duration,
    /// Splits forced text into tokens; `None`: forced runs are off.
    pub forced_by: Option<Arc<dyn Tokenize + Send + Sync>>,
}

/// The served model.
#[derive(Clone)]
pub struct Model {
    /// The name in `/v1/models` and in every answer.
    pub name: String,
    /// Further names that requests may use.
    pub aliases: Vec<String>,
    /// When it was loaded, seconds since 1970.
    pub created_unix_s: u64,
    /// Its tokenizer.
    pub codec: Arc<dyn TextCodec>,
    /// Its tokens.
    pub vocabulary: Arc<Vocabulary>,
    /// How it chats; `None`: chat requests are refused.
    pub chat: Option<Chat>,
    /// Its grammars.
    pub grammars: Grammars,
    /// Tokens that a prompt and its answer may have together.
    pub context_tokens: u32,
    /// Tokens of context that it was trained with; 0: unknown.
    pub trained_context_tokens: u32,
    /// What runs it, for `/v1/models`.
    pub device: String,
    /// What is known of its repeatability, for `/v1/models`.
    pub repeatable: String,
}

impl Model {
    /// Whether a request may call the model by this name.
    pub fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }

    /// The token as text: its bytes with U+FFFD for what is not UTF-8, a control token by name.
    pub fn token_text(&self, token: TokenId) -> Cow<'_, str> {
        String::from_utf8_lossy(self.vocabulary.bytes(token))
    }

    /// The tokens of a prompt, the start token in front where the model wants one and the text does
    /// not already begin with it.
    pub fn encode_prompt(&self, text: &str) -> Result<Vec<TokenId>, String> {
        let mut tokens = self.codec.encode(text, true)?;
        if let Some(bos) = self.vocabulary.bos()
            && self.codec.add_bos()
            && tokens.first() != Some(&bos)
        {
            tokens.insert(0, bos);
        }
        Ok(tokens)
    }
}
