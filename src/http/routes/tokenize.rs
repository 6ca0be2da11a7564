//! `POST /tokenize` and `/detokenize`.

use std::sync::Arc;

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use serde_json::{Value, json};

use crate::TokenId;
use crate::http::body;
use crate::http::error::ApiError;
use crate::http::model::Model;
use crate::http::offload;
use crate::http::openai::fields::{Fields, wrong_type};
use crate::http::openai::json::parse_object;
use crate::http::openai::validate::Checks;
use crate::http::settings::RequestLimits;
use crate::http::state::HttpState;

/// `{content | prompt, add_special, parse_special, with_pieces}` to `{tokens, count, max_model_len}`.
/// With `with_pieces`, each token is `{id, piece}`, the piece a string or, where its bytes are not
/// UTF-8, a list of bytes.
pub async fn tokenize(
    request: HttpRequest,
    payload: Payload,
    state: Data<HttpState>,
) -> Result<HttpResponse, ApiError> {
    with_body(request, payload, state, |model, _, mut f| {
        let text = text(&mut f)?;
        let add_special = f.boolean("add_special")?.unwrap_or(false);
        let parse_special = f.boolean("parse_special")?.unwrap_or(true);
        let with_pieces = f.boolean("with_pieces")?.unwrap_or(false);
        let mut tokens = model
            .codec
            .encode(&text, parse_special)
            .map_err(|reason| ApiError::invalid("content", reason))?;
        if let Some(bos) = model.vocabulary.bos()
            && add_special
            && model.codec.add_bos()
        {
            tokens.insert(0, bos);
        }
        let count = tokens.len();
        let tokens: Vec<Value> = if with_pieces {
            tokens.into_iter().map(|id| json!({"id": id, "piece": piece(model, id)})).collect()
        } else {
            tokens.into_iter().map(Value::from).collect()
        };
        Ok(json!({"tokens": tokens, "count": count, "max_model_len": model.context_tokens}))
    })
    .await
}

/// `{tokens}` to `{content}`; bytes that are no UTF-8 show as U+FFFD.
pub async fn detokenize(
    request: HttpRequest,
    payload: Payload,
    state: Data<HttpState>,
) -> Result<HttpResponse, ApiError> {
    with_body(request, payload, state, |model, limits, mut f| {
        let list = match f.require("tokens")? {
            Value::Array(list) => list,
            other => return Err(wrong_type("tokens", "a list of token ids", &other)),
        };
        let tokens = Checks { model, limits }.tokens(&list, "tokens")?;
        let bytes = model.codec.decode_bytes(&tokens);
        Ok(json!({"content": String::from_utf8_lossy(&bytes)}))
    })
    .await
}

/// Reads the body and, in its turn, does `work` on its fields, off the worker where the body is big.
pub async fn with_body(
    request: HttpRequest,
    payload: Payload,
    state: Data<HttpState>,
    work: impl FnOnce(&Model, &RequestLimits, Fields) -> Result<Value, ApiError> + Send + 'static,
) -> Result<HttpResponse, ApiError> {
    let model: Arc<Model> = state.model()?;
    let limits = state.settings().limits.clone();
    let body = body::read(&request, payload, state.settings()).await?;
    state.turns().take().await;
    let answer = offload::run(body.len(), limits.offload_bytes, move |_| {
        let mut fields = Fields::root(parse_object(&body, limits.json_values_max)?);
        Checks { model: &model, limits: &limits }.model_name(&mut fields)?;
        work(&model, &limits, fields)
    })
    .await?;
    Ok(HttpResponse::Ok().json(answer))
}

/// llama-server calls it `content`, vLLM `prompt`.
fn text(f: &mut Fields) -> Result<String, ApiError> {
    match (f.string("content")?, f.string("prompt")?) {
        (Some(text), None) | (None, Some(text)) => Ok(text),
        (None, None) => Err(ApiError::invalid("content", "missing required field `content`")),
        (Some(_), Some(_)) => {
            Err(ApiError::invalid("prompt", "send `content` or `prompt`, not both"))
        }
    }
}

fn piece(model: &Model, id: TokenId) -> Value {
    let bytes = model.vocabulary.bytes(id);
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::from(text),
        Err(_) => Value::from(bytes.to_vec()),
    }
}
