//! `GET /v1/models` and `/v1/models/{id}`.

use actix_web::HttpResponse;
use actix_web::web::{Data, Path};
use serde_json::{Value, json};

use crate::http::error::ApiError;
use crate::http::model::Model;
use crate::http::state::HttpState;

/// The served model under each of its names.
pub async fn list(state: Data<HttpState>) -> Result<HttpResponse, ApiError> {
    let model = state.model()?;
    let names = std::iter::once(&model.name).chain(&model.aliases);
    let data: Vec<Value> = names.map(|name| entry(&model, name)).collect();
    Ok(HttpResponse::Ok().json(json!({"object": "list", "data": data})))
}

/// One name; it may contain slashes.
pub async fn one(state: Data<HttpState>, id: Path<String>) -> Result<HttpResponse, ApiError> {
    let model = state.model()?;
    let id = id.into_inner();
    if !model.answers_to(&id) {
        return Err(ApiError::ModelNotFound(id));
    }
    Ok(HttpResponse::Ok().json(entry(&model, &id)))
}

fn entry(model: &Model, name: &str) -> Value {
    json!({
        "id": name,
        "object": "model",
        "created": model.created_unix_s,
        "owned_by": "pleach",
        "root": model.name,
        "max_model_len": model.context_tokens,
        "meta": {
            "n_ctx": model.context_tokens,
            "n_ctx_train": model.trained_context_tokens,
            "n_vocab": model.vocabulary.len(),
            "device": model.device,
            "repeatable": model.repeatable,
        },
    })
}
