//! Checked requests to generations: template, tokens, context, seeds.

use std::sync::Arc;

use super::constraint::{Compiled, ConstraintFields, ConstraintRequest};
use super::tools::Tools;
use super::types::{ChatPrompt, CommonFields, Conversation, Prompt};
use crate::TokenId;
use crate::chat::constraint::{self, CannotHold, Held, Wish};
use crate::chat::parse::ParseOptions;
use crate::chat::prompt::Prompt as ChatText;
use crate::grammar::GrammarSource;
use crate::http::error::ApiError;
use crate::http::model::{Chat, Model, TemplateFault};
use crate::http::offload::Cancel;
use crate::session::{ChatReading, Generation};

/// A prompt in tokens, shared by its choices; never empty.
pub type PromptTokens = Arc<[TokenId]>;

/// The prompt text of a conversation.
pub fn render(model: &Model, conversation: &Conversation) -> Result<String, ApiError> {
    let template = &chat_of(model)?.template;
    template.render(conversation.as_input()).map_err(refused_by_template)
}

/// A chat request's prompt, and what comes of it.
pub struct Opened {
    /// The prompt.
    pub tokens: PromptTokens,
    /// How the answer is read; none: it is plain text.
    pub reading: Option<ChatReading>,
    /// What the answer is held to.
    pub constraint: Option<ConstraintRequest>,
}

/// The prompt of a chat request, and how its answer is read and held.
pub fn chat_prompt(
    model: &Model,
    request: &ChatPrompt,
    held: ConstraintFields,
    cancel: &Cancel,
) -> Result<Opened, ApiError> {
    let chat = chat_of(model)?;
    let input = request.conversation.as_input();
    let tools = &request.tools;
    // What a message has begun counts for the constraint, whatever the format.
    let holds_begun = request.conversation.continue_final_message && held.constraint.is_some();
    let is_read = chat.format.is_read(!tools.offered.is_empty());
    if !tools.no_calls && !is_read && !holds_begun {
        let text = chat.template.render(input).map_err(refused_by_template)?;
        cancel.check()?;
        let tokens = encode(model, &text, "messages")?;
        return Ok(Opened { tokens, reading: None, constraint: held.constraint });
    }
    let prompt = chat.template.prompt(input).map_err(refused_by_template)?;
    cancel.check()?;
    let holds_content = held.constraint.is_some();
    let constraint = hold(chat, request, held, &prompt)?;
    let options = ParseOptions {
        tools: Arc::clone(&tools.offered),
        prefill: prompt.prefill,
        continues: prompt.continues,
        separate_reasoning: request.separate_reasoning,
        whole_content: holds_content,
        id_seed: 0,
    };
    let reading = ChatReading {
        format: Arc::clone(&chat.format),
        options,
        markers: Arc::clone(&chat.markers),
        one_call: tools.one_call,
    };
    Ok(Opened {
        tokens: encode(model, &prompt.text, "messages")?,
        reading: Some(reading),
        constraint,
    })
}

/// What the answer is held to, in the way the model writes.
fn hold(
    chat: &Chat,
    request: &ChatPrompt,
    held: ConstraintFields,
    prompt: &ChatText,
) -> Result<Option<ConstraintRequest>, ApiError> {
    let Tools { functions, must_call, one_call, no_calls, .. } = &request.tools;
    let wish = Wish {
        functions: functions.clone(),
        must_call: *must_call,
        one_call: *one_call,
        no_calls: *no_calls,
        content: held.constraint.as_ref().map(ConstraintRequest::as_tag),
    };
    let message = prompt.continues.then(|| request.conversation.messages.last()).flatten();
    let message = message.and_then(|message| message.get("content")?.as_str());
    let held_to =
        constraint::hold(&chat.format, wish, &prompt.prefill, message).map_err(|error| {
            let param = match error {
                CannotHold::Name { .. } => "tools",
                CannotHold::NoCalls | CannotHold::NoFunctions => "tool_choice",
            };
            ApiError::invalid(param, format!("`{param}`: {error}"))
        })?;
    let param = match &held.constraint {
        Some(constraint) => constraint.param.clone(),
        None => "tools".to_owned(),
    };
    Ok(held_to.map(|Held { tag, begun }| ConstraintRequest {
        source: GrammarSource::StructuralTag(Arc::new(tag)),
        param,
        allow_truncation: held.allow_truncation,
        begun,
    }))
}

fn chat_of(model: &Model) -> Result<&Chat, ApiError> {
    model.chat.as_ref().ok_or_else(|| ApiError::Invalid {
        message: "the model has no chat template; use /v1/completions".into(),
        param: Some("messages".into()),
        code: Some("no_chat_template"),
    })
}

fn refused_by_template(fault: TemplateFault) -> ApiError {
    let message = format!("the chat template refused the conversation: {fault}");
    ApiError::invalid("messages", message)
}

/// Has each generation read as a chat message; calls of different choices get different ids.
pub fn read_as(generations: &mut [Generation], reading: Option<&ChatReading>) {
    for generation in generations {
        generation.reading = reading.cloned().map(|mut reading| {
            reading.options.id_seed = fastrand::u64(..);
            reading
        });
    }
}

/// The tokens of each prompt of a completion.
pub fn completion_prompts(
    model: &Model,
    prompts: Vec<Prompt>,
    cancel: &Cancel,
) -> Result<Vec<PromptTokens>, ApiError> {
    let each = |prompt| {
        cancel.check()?;
        match prompt {
            Prompt::Text(text) => encode(model, &text, "prompt"),
            Prompt::Tokens(tokens) => not_empty(model, tokens, "prompt"),
        }
    };
    prompts.into_iter().map(each).collect()
}

fn encode(model: &Model, text: &str, param: &str) -> Result<PromptTokens, ApiError> {
    let tokens = model.encode_prompt(text).map_err(|reason| {
        ApiError::invalid(param, format!("`{param}` cannot be tokenised: {reason}"))
    })?;
    not_empty(model, tokens, param)
}

/// An empty prompt starts from the model's start token, where it has one.
fn not_empty(model: &Model, tokens: Vec<TokenId>, param: &str) -> Result<PromptTokens, ApiError> {
    if !tokens.is_empty() {
        return Ok(tokens.into());
    }
    match model.vocabulary.bos() {
        Some(bos) => Ok([bos].into()),
        None => {
            let message = format!("`{param}` is empty, and the model has no start token");
            Err(ApiError::invalid(param, message))
        }
    }
}

/// What the two routes do differently.
#[derive(Clone, Copy, Debug)]
pub struct AnswerRules {
    /// The field that holds the prompt, for errors.
    pub prompt_param: &'static str,
    /// `max_tokens` where the request names none; the context bounds it.
    pub max_tokens_default: u32,
    /// The answer starts with the prompt.
    pub echo: bool,
}

/// `n` generations for each prompt, with running index; choice i draws with seed + i.
pub fn generations(
    model: &Model,
    common: &CommonFields,
    prompts: &[PromptTokens],
    rules: AnswerRules,
    compiled: Option<&Compiled>,
) -> Result<Vec<Generation>, ApiError> {
    let first_seed = common.seed.unwrap_or_else(|| fastrand::u64(..));
    let mut generations = Vec::with_capacity(prompts.len() * common.n as usize);
    for prompt in prompts {
        let max_tokens = answer_tokens(model, common, prompt.len(), rules)?;
        if let Some(compiled) = compiled {
            compiled.check_budget(max_tokens)?;
        }
        for _ in 0..common.n {
            let choice = generations.len() as u32;
            generations.push(Generation {
                choice,
                prompt: Arc::clone(prompt),
                max_tokens,
                min_tokens: common.min_tokens,
                sampling: common.sampling.clone(),
                dry_breakers: common.dry_breakers.clone(),
                seed: first_seed.wrapping_add(u64::from(choice)),
                logprobs: common.logprobs,
                stop: common.stop.clone(),
                constraint: compiled.map(|compiled| compiled.constraint.clone()),
                reading: None,
                echo: rules.echo,
            });
        }
    }
    Ok(generations)
}

fn answer_tokens(
    model: &Model,
    common: &CommonFields,
    prompt_tokens: usize,
    rules: AnswerRules,
) -> Result<u32, ApiError> {
    let context_tokens = model.context_tokens;
    let room = u32::try_from(prompt_tokens).ok().and_then(|n| context_tokens.checked_sub(n));
    let too_long = |max_tokens: Option<u32>| ApiError::ContextLengthExceeded {
        // The prompt alone fits where a budget is named.
        param: if max_tokens.is_some() { "max_tokens" } else { rules.prompt_param },
        prompt_tokens,
        max_tokens,
        context_tokens,
    };
    match (common.max_tokens, room) {
        (_, None) => Err(too_long(None)),
        (None, Some(0)) => Err(too_long(None)),
        (None, Some(room)) if common.min_tokens > room => {
            let message = format!(
                "`min_tokens` is {}, and after a prompt of {prompt_tokens} tokens the context of \
                 {context_tokens} has room for {room}",
                common.min_tokens
            );
            Err(ApiError::invalid("min_tokens", message))
        }
        (None, Some(room)) => Ok(rules.max_tokens_default.max(common.min_tokens).min(room)),
        (Some(asked), Some(room)) if asked > room => Err(too_long(Some(asked))),
        (Some(asked), Some(_)) => Ok(asked),
    }
}
