//! `GET /livez`, `/readyz`, `/health`.

use actix_web::HttpResponse;
use actix_web::web::Data;
use serde_json::json;

use crate::http::state::HttpState;

/// The process answers.
pub async fn livez() -> HttpResponse {
    HttpResponse::Ok().json(json!({"status": "alive"}))
}

/// Requests are taken: 200, else 503 with `status`, `reason` and OpenAI's `error`.
pub async fn readyz(state: Data<HttpState>) -> HttpResponse {
    match state.ready() {
        Ok(()) => HttpResponse::Ok().json(json!({
            "status": "ready",
            "queued": state.engine().status().queued,
            "permits_in_use": state.admission().in_use(),
            "permits": state.admission().capacity(),
        })),
        Err(error) => {
            let mut body = error.to_value();
            if let Some(map) = body.as_object_mut() {
                map.insert("status".into(), json!(error.class().code));
                map.insert("reason".into(), json!(error.to_string()));
            }
            error.response_builder().json(body)
        }
    }
}
