//! Bodies to checked requests. Every 400 names its field.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use super::constraint::{self, AnswerKind};
use super::fields::{self, Fields, wrong_type};
use super::sampling;
use super::types::{
    ChatPrompt, ChatRequest, CommonFields, CompletionRequest, Conversation, Prompt, StreamOptions,
};
use super::{messages, tools, unsupported};
use crate::TokenId;
use crate::http::error::ApiError;
use crate::http::model::Model;
use crate::http::settings::RequestLimits;
use crate::sampling::DryBreakers;
use crate::session::{LogprobsRequest, StopRules};

/// OpenAI's bound on `top_logprobs`; completions may ask as much here (OpenAI: 5).
const TOP_LOGPROBS_MAX: u32 = 20;
const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// What a request is checked against.
#[derive(Clone, Copy)]
pub struct Checks<'a> {
    /// The served model.
    pub model: &'a Model,
    /// The bounds.
    pub limits: &'a RequestLimits,
}

impl Checks<'_> {
    /// A `/v1/chat/completions` body.
    pub fn chat(&self, body: Map<String, Value>) -> Result<ChatRequest, ApiError> {
        let mut f = Fields::root(body);
        self.model_name(&mut f)?;
        let mut tools = tools::take(&mut f, self.limits.strict_schemas)?;
        let separate_reasoning = separate_reasoning(&mut f)?;
        unsupported::check(&mut f)?;
        if f.boolean("echo")? == Some(true) {
            let message = "not supported: `echo` in chat; use /v1/completions";
            return Err(ApiError::invalid("echo", message));
        }
        let mut conversation = conversation(&mut f)?;
        let logprobs = chat_logprobs(&mut f)?;
        let answer = AnswerKind {
            has_functions: !tools.functions.is_empty(),
            continues: conversation.continue_final_message,
        };
        let common = self.common(f, logprobs, 1, answer)?;
        for function in &mut tools.functions {
            function.options = common.held.options(function.options.strict);
        }
        conversation.tools = tools.shown.take();
        let prompt = ChatPrompt { conversation, tools, separate_reasoning };
        Ok(ChatRequest { common, prompt })
    }

    /// A `/v1/completions` body.
    pub fn completion(&self, body: Map<String, Value>) -> Result<CompletionRequest, ApiError> {
        let mut f = Fields::root(body);
        self.model_name(&mut f)?;
        unsupported::check(&mut f)?;
        let prompts = self.prompts(f.require("prompt")?)?;
        let echo = f.boolean("echo")?.unwrap_or(false);
        let logprobs = f.unsigned("logprobs", 0..=TOP_LOGPROBS_MAX)?;
        let logprobs = logprobs.map(|top| LogprobsRequest { top: top as u8 });
        let max_tokens_min = if echo { 0 } else { 1 };
        let common = self.common(f, logprobs, max_tokens_min, AnswerKind::default())?;
        let choices = prompts.len() as u64 * u64::from(common.n);
        let choices_max = self.choices_max();
        if choices > u64::from(choices_max) {
            let message = format!(
                "{} prompts with `n` = {} are {choices} choices; at most {choices_max} are legal",
                prompts.len(),
                common.n
            );
            return Err(ApiError::invalid("prompt", message));
        }
        Ok(CompletionRequest { common, prompts, echo })
    }

    /// The `model` field of any body; missing: the served one.
    pub fn model_name(&self, f: &mut Fields) -> Result<(), ApiError> {
        match f.string("model")? {
            Some(name) if !self.model.answers_to(&name) => Err(ApiError::ModelNotFound(name)),
            _ => Ok(()),
        }
    }

    fn choices_max(&self) -> u32 {
        let room = u32::try_from(self.limits.max_requests).unwrap_or(u32::MAX);
        self.limits.choices_max.min(room).max(1)
    }

    fn answer_tokens_max(&self) -> u32 {
        self.limits.answer_tokens_max.unwrap_or(i32::MAX as u32)
    }

    fn common(
        &self,
        mut f: Fields,
        logprobs: Option<LogprobsRequest>,
        max_tokens_min: u32,
        answer: AnswerKind,
    ) -> Result<CommonFields, ApiError> {
        let f = &mut f;
        let sampling = sampling::take(f, self.model.vocabulary.len(), self.limits)?;
        let seed = f.integer("seed", -1..=i64::MAX)?.and_then(|seed| u64::try_from(seed).ok());
        let n = f.unsigned("n", 1..=self.choices_max())?.unwrap_or(1);
        best_of(f, n)?;
        let dry_breakers = DryBreakers::new(&sampling.dry, &self.model.vocabulary)
            .map_err(|error| ApiError::invalid("dry_sequence_breakers", error.to_string()))?;
        let max_tokens = max_tokens(f, max_tokens_min..=self.answer_tokens_max())?;
        let min_tokens = f.unsigned("min_tokens", 0..=i32::MAX as u32)?.unwrap_or(0);
        if let Some(max_tokens) = max_tokens
            && min_tokens > max_tokens
        {
            let message = format!("`min_tokens` ({min_tokens}) is over max_tokens ({max_tokens})");
            return Err(ApiError::invalid("min_tokens", message));
        }
        let stop = self.stop(f)?;
        let held = constraint::take(f, answer, self.limits.strict_schemas)?;
        let stream = stream(f)?;
        let unknown = std::mem::replace(f, Fields::root(Map::new())).left();
        Ok(CommonFields {
            sampling,
            dry_breakers,
            seed,
            n,
            max_tokens,
            min_tokens,
            stop,
            held,
            logprobs,
            stream,
            unknown,
        })
    }

    fn stop(&self, f: &mut Fields) -> Result<StopRules, ApiError> {
        let bytes_max = self.limits.stop_bytes_max;
        let strings = match f.take("stop") {
            None => Vec::new(),
            Some(Value::String(text)) => vec![sampling::text_within(text, "stop", bytes_max)?],
            Some(Value::Array(list)) if list.len() > self.limits.stop_strings_max => {
                return Err(sampling::too_many("stop", list.len(), self.limits.stop_strings_max));
            }
            Some(Value::Array(list)) => sampling::texts(list, "stop", bytes_max)?,
            Some(other) => return Err(wrong_type("stop", "a string or a list of strings", &other)),
        };
        let ids = f.list("stop_token_ids")?.unwrap_or_default();
        if ids.len() > self.limits.stop_token_ids_max {
            let max = self.limits.stop_token_ids_max;
            return Err(sampling::too_many("stop_token_ids", ids.len(), max));
        }
        Ok(StopRules {
            strings,
            token_ids: self.tokens(&ids, "stop_token_ids")?,
            include_in_output: f.boolean("include_stop_str_in_output")?.unwrap_or(false),
            ignore_eos: f.boolean("ignore_eos")?.unwrap_or(false),
        })
    }

    fn prompts(&self, value: Value) -> Result<Vec<Prompt>, ApiError> {
        let list = match value {
            Value::String(text) => return Ok(vec![Prompt::Text(text)]),
            Value::Array(list) => list,
            other => {
                let expected = "a string, a list of strings, a list of token ids or a list of such";
                return Err(wrong_type("prompt", expected, &other));
            }
        };
        match list.first() {
            None => Err(ApiError::invalid("prompt", "`prompt` must not be an empty list")),
            Some(Value::Number(_)) => Ok(vec![Prompt::Tokens(self.tokens(&list, "prompt")?)]),
            Some(Value::String(_)) => list.into_iter().enumerate().map(text_prompt).collect(),
            Some(Value::Array(_)) => {
                let each = |(i, value): (usize, Value)| {
                    let param = format!("prompt[{i}]");
                    match value {
                        Value::Array(ids) => Ok(Prompt::Tokens(self.tokens(&ids, &param)?)),
                        other => Err(wrong_type(&param, "a list of token ids", &other)),
                    }
                };
                list.into_iter().enumerate().map(each).collect()
            }
            Some(other) => Err(wrong_type("prompt[0]", "a string or a token id", other)),
        }
    }

    /// Token ids, each within the vocabulary.
    pub fn tokens(&self, values: &[Value], param: &str) -> Result<Vec<TokenId>, ApiError> {
        let vocab_size = self.model.vocabulary.len();
        let each = |(i, value): (usize, &Value)| {
            let param = format!("{param}[{i}]");
            let id = fields::integer(value, &param, 0..=i64::MAX)?;
            let known = TokenId::try_from(id).ok().filter(|id| (*id as usize) < vocab_size);
            known.ok_or_else(|| sampling::unknown_token(&param, id, vocab_size))
        };
        values.iter().enumerate().map(each).collect()
    }
}

fn text_prompt((i, value): (usize, Value)) -> Result<Prompt, ApiError> {
    match value {
        Value::String(text) => Ok(Prompt::Text(text)),
        other => Err(wrong_type(&format!("prompt[{i}]"), "a string", &other)),
    }
}

/// The fields that a chat template sees.
pub fn conversation(f: &mut Fields) -> Result<Conversation, ApiError> {
    let messages = messages::check(f.require("messages")?)?;
    let continue_final_message = f.boolean("continue_final_message")?.unwrap_or(false);
    let add_generation_prompt = f.boolean("add_generation_prompt")?;
    if continue_final_message {
        if add_generation_prompt == Some(true) {
            return Err(ApiError::invalid(
                "add_generation_prompt",
                "`add_generation_prompt` and `continue_final_message` exclude each other",
            ));
        }
        let last_role = messages.last().and_then(|message| message.get("role")?.as_str());
        if last_role != Some("assistant") {
            return Err(ApiError::invalid(
                "continue_final_message",
                "`continue_final_message` needs a last message of role `assistant`",
            ));
        }
    }
    Ok(Conversation {
        messages,
        tools: None,
        kwargs: template_kwargs(f)?,
        add_generation_prompt: add_generation_prompt.unwrap_or(!continue_final_message),
        continue_final_message,
    })
}

/// `chat_template_kwargs` with the reasoning fields merged in. Templates read `enable_thinking` or
/// `thinking`, so a wish is set under both names. Wishes that contradict each other are a 400.
fn template_kwargs(f: &mut Fields) -> Result<Map<String, Value>, ApiError> {
    let mut kwargs = f.object("chat_template_kwargs")?.unwrap_or_default();
    let mut wishes: Vec<(&str, bool)> = Vec::new();
    for name in ["enable_thinking", "thinking"] {
        match kwargs.get(name) {
            None | Some(Value::Null) => {}
            Some(Value::Bool(on)) => wishes.push((name, *on)),
            Some(other) => {
                let param = format!("chat_template_kwargs.{name}");
                return Err(wrong_type(&param, "true or false", other));
            }
        }
    }
    if let Some(on) = f.boolean("enable_thinking")? {
        wishes.push(("enable_thinking", on));
    }
    let mut effort = f.take("reasoning_effort").map(|value| ("reasoning_effort", value));
    match f.take("think") {
        None => {}
        Some(Value::Bool(on)) => wishes.push(("think", on)),
        Some(level @ Value::String(_)) if effort.is_none() => effort = Some(("think", level)),
        Some(level) if effort.as_ref().is_some_and(|(_, effort)| *effort == level) => {}
        Some(Value::String(_)) => {
            let message = "`think` and `reasoning_effort` differ; send one";
            return Err(ApiError::invalid("think", message));
        }
        Some(other) => return Err(wrong_type("think", "true, false or a level", &other)),
    }
    if let Some((name, value)) = effort {
        let level = effort_level(name, value)?;
        wishes.push((name, level != "none"));
        kwargs.insert("reasoning_effort".into(), Value::String(level));
    }
    if let Some((first, on)) = wishes.first().copied() {
        if let Some((other, _)) = wishes.iter().find(|(_, wish)| *wish != on) {
            let message = format!("`{first}` and `{other}` contradict each other");
            return Err(ApiError::invalid(*other, message));
        }
        for name in ["enable_thinking", "thinking"] {
            kwargs.insert(name.into(), Value::Bool(on));
        }
    }
    Ok(kwargs)
}

fn effort_level(name: &str, value: Value) -> Result<String, ApiError> {
    match value {
        Value::String(level) if EFFORTS.contains(&level.as_str()) => Ok(level),
        Value::String(level) => {
            let message = format!("`{name}` is `{level}`; legal are {}", EFFORTS.join(", "));
            Err(ApiError::invalid(name, message))
        }
        other => Err(wrong_type(name, "a string", &other)),
    }
}

/// `reasoning_format`: whether reasoning has a field of its own.
fn separate_reasoning(f: &mut Fields) -> Result<bool, ApiError> {
    match f.string("reasoning_format")?.as_deref() {
        None | Some("auto" | "deepseek") => Ok(true),
        Some("none") => Ok(false),
        Some(other) => Err(unsupported::not_yet("reasoning_format", &format!(" = \"{other}\""))),
    }
}

/// Every choice is sampled once and returned.
fn best_of(f: &mut Fields, n: u32) -> Result<(), ApiError> {
    match f.integer("best_of", 1..=i64::MAX)? {
        Some(best_of) if best_of != i64::from(n) => {
            let message = format!("not supported: `best_of` ({best_of}) other than `n` ({n})");
            Err(ApiError::invalid("best_of", message))
        }
        _ => Ok(()),
    }
}

/// Where both names are given, OpenAI's newer one holds.
fn max_tokens(f: &mut Fields, legal: RangeInclusive<u32>) -> Result<Option<u32>, ApiError> {
    let old = f.unsigned("max_tokens", legal.clone())?;
    let new = f.unsigned("max_completion_tokens", legal)?;
    Ok(new.or(old))
}

fn chat_logprobs(f: &mut Fields) -> Result<Option<LogprobsRequest>, ApiError> {
    let wanted = f.boolean("logprobs")?.unwrap_or(false);
    match f.unsigned("top_logprobs", 0..=TOP_LOGPROBS_MAX)? {
        Some(1..) if !wanted => {
            Err(ApiError::invalid("top_logprobs", "`top_logprobs` needs `logprobs`: true"))
        }
        top => Ok(wanted.then(|| LogprobsRequest { top: top.unwrap_or(0) as u8 })),
    }
}

fn stream(f: &mut Fields) -> Result<Option<StreamOptions>, ApiError> {
    let stream = f.boolean("stream")?.unwrap_or(false);
    let Some(options) = f.take("stream_options") else {
        return Ok(stream.then(StreamOptions::default));
    };
    if !stream {
        return Err(ApiError::invalid("stream_options", "`stream_options` needs `stream`: true"));
    }
    let mut options = Fields::nested(options, "stream_options")?;
    let include_usage = options.boolean("include_usage")?.unwrap_or(false);
    if options.boolean("continuous_usage_stats")? == Some(true) {
        return Err(unsupported::not_yet("stream_options.continuous_usage_stats", ""));
    }
    Ok(Some(StreamOptions { include_usage }))
}
