//! The sampler's fields, their ranges and their two or three spellings.

use serde_json::Value;

use super::fields::{self, Bounds, Fields};
use crate::TokenId;
use crate::http::error::ApiError;
use crate::http::settings::RequestLimits;
use crate::sampling::{DryParams, SamplingParams};

/// Bound of values that only need to be finite.
const HUGE: f64 = 1e6;
/// A sequence breaker is a character or a few.
const BREAKERS_MAX: usize = 64;
const BREAKER_BYTES_MAX: usize = 128;

/// Takes every sampler field. Absent fields are at the server's defaults, which are neutral unless
/// the configuration says otherwise: without any the answer is greedy.
pub fn take(
    f: &mut Fields,
    vocab_size: usize,
    limits: &RequestLimits,
) -> Result<SamplingParams, ApiError> {
    let mut params = limits.sampling.clone();
    let unit = Bounds::closed(0.0, 1.0);
    let share = Bounds::above(0.0, 1.0);
    let temperatures = Bounds::closed(0.0, limits.temperature_max);
    set(&mut params.temperature, f.number("temperature", temperatures)?);
    set(&mut params.dynatemp_range, f.number("dynatemp_range", temperatures)?);
    set(&mut params.dynatemp_exponent, f.number("dynatemp_exponent", Bounds::closed(0.0, HUGE))?);
    // -1 is vLLM's and 0 llama.cpp's way to say "all".
    let top_k = f.integer("top_k", -1..=i64::from(i32::MAX))?;
    set(&mut params.top_k, top_k.map(|k| u32::try_from(k).unwrap_or(0)));
    set(&mut params.top_p, f.number("top_p", share)?);
    set(&mut params.min_p, f.number("min_p", unit)?);
    set(&mut params.typical_p, f.number("typical_p", share)?);
    // llama.cpp's neutral value is -1.
    let sigmas = f.number("top_n_sigma", Bounds::closed(-1.0, HUGE))?;
    set(&mut params.top_n_sigma, sigmas.map(|n| n.max(0.0)));
    set(&mut params.xtc_probability, f.number("xtc_probability", unit)?);
    set(&mut params.xtc_threshold, f.number("xtc_threshold", unit)?);
    let min_keep = f.unsigned("min_keep", 0..=i32::MAX as u32)?;
    set(&mut params.min_keep, min_keep.map(|n| n.max(1)));
    penalties(f, &mut params)?;
    dry(f, &mut params.dry)?;
    params.logit_bias = logit_bias(f, vocab_size, limits)?;
    Ok(params)
}

fn set<T>(slot: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *slot = value;
    }
}

fn penalties(f: &mut Fields, params: &mut SamplingParams) -> Result<(), ApiError> {
    let openai = Bounds::closed(-2.0, 2.0);
    set(&mut params.frequency_penalty, f.number("frequency_penalty", openai)?);
    set(&mut params.presence_penalty, f.number("presence_penalty", openai)?);
    let factor = Bounds::above(0.0, 100.0);
    let vllm = f.number("repetition_penalty", factor)?;
    let llama = f.number("repeat_penalty", factor)?;
    if let (Some(vllm), Some(llama)) = (vllm, llama)
        && vllm != llama
    {
        return Err(ApiError::invalid(
            "repeat_penalty",
            format!(
                "`repetition_penalty` ({vllm}) and `repeat_penalty` ({llama}) differ; send one"
            ),
        ));
    }
    set(&mut params.repetition_penalty, vllm.or(llama));
    set(&mut params.repeat_last_n, last_n(f, "repeat_last_n")?);
    Ok(())
}

fn last_n(f: &mut Fields, name: &str) -> Result<Option<i32>, ApiError> {
    let value = f.integer(name, -1..=i64::from(i32::MAX))?;
    Ok(value.and_then(|value| i32::try_from(value).ok()))
}

fn dry(f: &mut Fields, dry: &mut DryParams) -> Result<(), ApiError> {
    set(&mut dry.multiplier, f.number("dry_multiplier", Bounds::closed(0.0, 100.0))?);
    set(&mut dry.base, f.number("dry_base", Bounds::closed(1.0, 100.0))?);
    set(&mut dry.allowed_length, f.unsigned("dry_allowed_length", 0..=i32::MAX as u32)?);
    set(&mut dry.penalty_last_n, last_n(f, "dry_penalty_last_n")?);
    if let Some(breakers) = f.list("dry_sequence_breakers")? {
        let param = "dry_sequence_breakers";
        if breakers.len() > BREAKERS_MAX {
            return Err(too_many(param, breakers.len(), BREAKERS_MAX));
        }
        dry.sequence_breakers = texts(breakers, param, BREAKER_BYTES_MAX)?;
    }
    Ok(())
}

/// A list of strings, none empty, each at most `bytes_max` long.
pub(super) fn texts(
    values: Vec<Value>,
    param: &str,
    bytes_max: usize,
) -> Result<Vec<String>, ApiError> {
    let check = |(i, value): (usize, Value)| {
        let param = format!("{param}[{i}]");
        match value {
            Value::String(text) => text_within(text, &param, bytes_max),
            other => Err(fields::wrong_type(&param, "a string", &other)),
        }
    };
    values.into_iter().enumerate().map(check).collect()
}

/// The string, if it is not empty and at most `bytes_max` long.
pub(super) fn text_within(text: String, param: &str, bytes_max: usize) -> Result<String, ApiError> {
    if text.is_empty() {
        return Err(ApiError::invalid(param, format!("`{param}` must not be empty")));
    }
    if text.len() > bytes_max {
        let message = format!("`{param}` has {} bytes; at most {bytes_max} are legal", text.len());
        return Err(ApiError::invalid(param, message));
    }
    Ok(text)
}

/// The 400 for a list that is too long.
pub(super) fn too_many(param: &str, got: usize, max: usize) -> ApiError {
    ApiError::invalid(param, format!("`{param}` has {got} entries; at most {max} are legal"))
}

/// An object from token ids, as strings, to values in [-100, 100].
fn logit_bias(
    f: &mut Fields,
    vocab_size: usize,
    limits: &RequestLimits,
) -> Result<Vec<(TokenId, f32)>, ApiError> {
    let Some(map) = f.object("logit_bias")? else { return Ok(Vec::new()) };
    if map.len() > limits.logit_bias_max {
        return Err(too_many("logit_bias", map.len(), limits.logit_bias_max));
    }
    let entry = |(key, value): (String, Value)| {
        let param = format!("logit_bias.{key}");
        // Digits only: "+5" and "05" would be second spellings of the same token.
        let canonical = |id: &TokenId| id.to_string() == key;
        let id = key.parse::<TokenId>().ok().filter(canonical).ok_or_else(|| {
            ApiError::invalid("logit_bias", format!("`{key}` in `logit_bias` is not a token id"))
        })?;
        if id as usize >= vocab_size {
            return Err(unknown_token("logit_bias", id.into(), vocab_size));
        }
        Ok((id, fields::number(&value, &param, Bounds::closed(-100.0, 100.0))?))
    };
    map.into_iter().map(entry).collect()
}

/// The 400 for a token id past the vocabulary.
pub(super) fn unknown_token(param: &str, id: i64, vocab_size: usize) -> ApiError {
    let message = format!("`{param}` names token {id}; the vocabulary has {vocab_size} tokens");
    ApiError::invalid(param, message)
}
