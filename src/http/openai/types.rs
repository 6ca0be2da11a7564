//! Requests after validation: every field checked, nothing of the wire's spelling left.

use serde_json::{Map, Value};

use super::constraint::ConstraintFields;
use super::schema;
use super::tools::Tools;
use crate::TokenId;
use crate::http::model::Conversing;
use crate::sampling::{DryBreakers, SamplingParams};
use crate::session::{LogprobsRequest, StopRules};

/// What chat and completion requests share.
#[derive(Clone, Debug)]
pub struct CommonFields {
    /// The sampler chain.
    pub sampling: SamplingParams,
    /// The sequence breakers of its DRY stage.
    pub dry_breakers: DryBreakers,
    /// Seed of the first choice; `None`: from entropy.
    pub seed: Option<u64>,
    /// Choices for each prompt; at least 1.
    pub n: u32,
    /// Longest answer in tokens, where the client said one.
    pub max_tokens: Option<u32>,
    /// Shortest answer in tokens.
    pub min_tokens: u32,
    /// What ends the answer.
    pub stop: StopRules,
    /// What the answer cannot leave.
    pub held: ConstraintFields,
    /// Log-probabilities, where asked for.
    pub logprobs: Option<LogprobsRequest>,
    /// How to stream; `None`: a whole answer.
    pub stream: Option<StreamOptions>,
    /// Names of fields that mean nothing here; for the log.
    pub unknown: Vec<String>,
}

impl CommonFields {
    /// Takes schemas as they stand in the body.
    pub fn take_sent_schema(&mut self, body: &[u8]) {
        if let Some(mut constraint) = self.held.constraint.take() {
            constraint.take_sent_text(body, &self.held);
            self.held.constraint = Some(constraint);
        }
    }
}

/// How an answer is streamed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamOptions {
    /// Send a chunk with the usage before `[DONE]`.
    pub include_usage: bool,
}

/// A `/v1/chat/completions` request.
#[derive(Clone, Debug)]
pub struct ChatRequest {
    /// What it shares with completions.
    pub common: CommonFields,
    /// What its prompt and the reading of its answer are made of.
    pub prompt: ChatPrompt,
}

/// What a chat request's prompt and the reading of its answer are made of.
#[derive(Clone, Debug)]
pub struct ChatPrompt {
    /// What goes into the template.
    pub conversation: Conversation,
    /// What the answer may and must call; their definitions are in the conversation.
    pub tools: Tools,
    /// Reasoning is told from content.
    pub separate_reasoning: bool,
}

impl ChatPrompt {
    /// Takes the parameters of functions as they stand in the body.
    pub fn take_sent_schemas(&mut self, body: &[u8]) {
        if !self.tools.functions.is_empty() {
            schema::take_sent_parameters(body, &mut self.tools.functions);
        }
    }
}

/// The input of a chat template.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    /// The messages, checked and with text parts joined; never empty.
    pub messages: Vec<Value>,
    /// Tool definitions.
    pub tools: Option<Vec<Value>>,
    /// Variables for the template.
    pub kwargs: Map<String, Value>,
    /// End the prompt with the opening of an assistant's turn.
    pub add_generation_prompt: bool,
    /// Leave the last message open for the model to continue.
    pub continue_final_message: bool,
}

impl Conversation {
    /// What a template is given of it.
    pub fn as_input(&self) -> Conversing<'_> {
        Conversing {
            messages: &self.messages,
            tools: self.tools.as_deref(),
            kwargs: &self.kwargs,
            add_generation_prompt: self.add_generation_prompt,
            continue_final_message: self.continue_final_message,
        }
    }
}

/// A `/v1/completions` request.
#[derive(Clone, Debug)]
pub struct CompletionRequest {
    /// What it shares with chat.
    pub common: CommonFields,
    /// The prompts; never empty.
    pub prompts: Vec<Prompt>,
    /// The answer starts with the prompt.
    pub echo: bool,
}

/// One prompt of a completion request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// Text, to be tokenised.
    Text(String),
    /// Tokens, taken as they are; each is in the vocabulary.
    Tokens(Vec<TokenId>),
}

/// Which of the two answers is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `chat.completion`
    Chat,
    /// `text_completion`
    Completion,
}

/// What every chunk and the whole answer repeat.
#[derive(Clone, Debug)]
pub struct AnswerHead {
    /// The answer's id.
    pub id: String,
    /// Seconds since 1970.
    pub created_unix_s: u64,
    /// The served model's name.
    pub model: String,
    /// Chat or completion.
    pub shape: Shape,
}
