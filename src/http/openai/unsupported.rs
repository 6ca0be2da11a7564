//! The fields that are refused by name, and those that may be ignored.

use serde_json::Value;

use super::fields::Fields;
use crate::http::error::ApiError;

/// Fields that will be honoured one day.
const LATER: [&str; 31] = [
    "allowed_token_ids",
    "audio",
    "bad_words",
    "chat_template",
    "ebnf",
    "functions",
    "function_call",
    "grammar_lazy",
    "grammar_triggers",
    "guided_decoding_backend",
    "guided_json_object",
    "guided_whitespace_pattern",
    "include_reasoning",
    "lora",
    "preserved_tokens",
    "prompt_logprobs",
    "reasoning_budget",
    "reasoning_budget_tokens",
    "regex",
    "return_token_ids",
    "return_tokens_as_token_ids",
    "separate_reasoning",
    "stream_reasoning",
    "structural_tag",
    "thinking_budget_tokens",
    "thinking_token_budget",
    "tools",
    "top_logprobs_num",
    "truncate_prompt_tokens",
    "verbosity",
    "web_search_options",
];

/// Fields that will not be honoured, each with the reason.
const NEVER: [(&str, &str); 16] = [
    ("adaptive_decay", "this sampler is not implemented"),
    ("adaptive_target", "this sampler is not implemented"),
    ("length_penalty", "there is no beam search"),
    ("logit_processors", "code is not taken from requests; use `logit_bias`"),
    ("logits_processors", "code is not taken from requests; use `logit_bias`"),
    ("mirostat", "this sampler is not implemented; use `min_p` or `typical_p`"),
    ("mirostat_eta", "this sampler is not implemented; use `min_p` or `typical_p`"),
    ("mirostat_tau", "this sampler is not implemented; use `min_p` or `typical_p`"),
    ("no_stop_trim", "use `include_stop_str_in_output`"),
    ("prediction", "predicted outputs are not implemented"),
    ("prompt_embeds", "prompts are text or tokens"),
    ("samplers", "the order of the sampler chain is fixed"),
    ("sampler_seq", "the order of the sampler chain is fixed"),
    ("stop_regex", "use `stop` with strings"),
    ("suffix", "text cannot be filled in before a suffix"),
    ("use_beam_search", "there is no beam search"),
];

/// Fields that change nothing in the answer and are accepted with any value: bookkeeping, routing
/// and hints of OpenAI's API.
const IGNORED: [&str; 9] = [
    "metadata",
    "parallel_tool_calls",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "store",
    "user",
    "cache_prompt",
];

/// Refuses what cannot be honoured and takes what may be ignored.
pub fn check(fields: &mut Fields) -> Result<(), ApiError> {
    for name in LATER {
        if let Some(value) = fields.take(name)
            && !is_off(name, &value)
        {
            return Err(not_yet(&fields.param(name), ""));
        }
    }
    for (name, reason) in NEVER {
        if let Some(value) = fields.take(name)
            && !is_off(name, &value)
        {
            let message = format!("not supported: `{name}`; {reason}");
            return Err(ApiError::invalid(fields.param(name), message));
        }
    }
    for name in IGNORED {
        fields.take(name);
    }
    tool_choice(fields)?;
    modalities(fields)?;
    only_text(fields, "reasoning_format", "none")?;
    if fields.boolean("skip_special_tokens")? == Some(false) {
        return Err(not_yet("skip_special_tokens", " = false"));
    }
    Ok(())
}

/// The 400 for a field that waits for later work.
pub fn not_yet(param: &str, what: &str) -> ApiError {
    ApiError::invalid(param, format!("not supported yet: `{param}`{what}"))
}

/// Values by which clients say that they do not use a field.
fn is_off(name: &str, value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Number(number) => name == "mirostat" && number.as_f64() == Some(0.0),
        Value::Bool(true) | Value::Object(_) => false,
    }
}

/// Without tools, `none` and `auto` both mean: no call.
fn tool_choice(fields: &mut Fields) -> Result<(), ApiError> {
    match fields.take("tool_choice") {
        None => Ok(()),
        Some(Value::String(choice)) if choice == "none" || choice == "auto" => Ok(()),
        Some(_) => Err(not_yet("tool_choice", " other than \"none\" and \"auto\"")),
    }
}

fn modalities(fields: &mut Fields) -> Result<(), ApiError> {
    let wanted = fields.list("modalities")?.unwrap_or_default();
    if wanted.iter().all(|kind| kind.as_str() == Some("text")) {
        return Ok(());
    }
    Err(ApiError::invalid("modalities", "not supported: `modalities` other than [\"text\"]"))
}

fn only_text(fields: &mut Fields, name: &str, legal: &str) -> Result<(), ApiError> {
    match fields.string(name)? {
        Some(value) if value != legal => Err(not_yet(name, &format!(" = \"{value}\""))),
        _ => Ok(()),
    }
}
