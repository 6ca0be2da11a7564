//! Reading a request's body: its type, its size, its time.

use actix_web::HttpRequest;
use actix_web::error::PayloadError;
use actix_web::http::header;
use actix_web::web::{Bytes, BytesMut, Payload};
use futures_util::StreamExt;

use super::error::ApiError;
use super::settings::HttpSettings;

/// The whole body. A missing content type is taken as JSON.
///
/// # Errors
/// 415 for another content type or any content encoding, 413 over `body_bytes_max`, 408 after `body_timeout`, 400 for a body
/// that breaks off.
pub async fn read(
    request: &HttpRequest,
    payload: Payload,
    settings: &HttpSettings,
) -> Result<Bytes, ApiError> {
    check_type(request)?;
    let limit_bytes = settings.body_bytes_max;
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > limit_bytes as u64) {
        return Err(ApiError::BodyTooLarge { limit_bytes });
    }
    tokio::time::timeout(settings.body_timeout, collect(payload, limit_bytes))
        .await
        .unwrap_or(Err(ApiError::BodyTimeout(settings.body_timeout)))
}

async fn collect(mut payload: Payload, limit_bytes: usize) -> Result<Bytes, ApiError> {
    let mut body = BytesMut::new();
    while let Some(chunk) = payload.next().await {
        let chunk = chunk.map_err(|error| match error {
            PayloadError::Overflow => ApiError::BodyTooLarge { limit_bytes },
            other => ApiError::BodyBroken(other.to_string()),
        })?;
        if body.len() + chunk.len() > limit_bytes {
            return Err(ApiError::BodyTooLarge { limit_bytes });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

fn check_type(request: &HttpRequest) -> Result<(), ApiError> {
    if let Some(encoding) = request.headers().get(header::CONTENT_ENCODING)
        && encoding != "identity"
    {
        let encoding = String::from_utf8_lossy(encoding.as_bytes()).into_owned();
        return Err(ApiError::UnsupportedMediaType(format!("content encoding `{encoding}`")));
    }
    let Some(value) = request.headers().get(header::CONTENT_TYPE) else { return Ok(()) };
    let text = String::from_utf8_lossy(value.as_bytes());
    let essence = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_json = essence == "application/json"
        || (essence.starts_with("application/") && essence.ends_with("+json"));
    if is_json {
        return Ok(());
    }
    Err(ApiError::UnsupportedMediaType(format!("content type `{essence}`")))
}
