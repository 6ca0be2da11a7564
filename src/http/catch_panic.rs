//! A panic in a handler is a 500 in OpenAI's shape, not a closed connection.

use std::panic::AssertUnwindSafe;

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use futures_util::FutureExt;

use super::error::ApiError;
use crate::telemetry::metrics::PANICS_TOTAL;

/// Middleware. The panic hook has already logged message and place. What the handler owned is
/// dropped by the unwinding; the shared state holds no lock across an await that could poison.
pub async fn catch_panic(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, actix_web::Error> {
    let answer = AssertUnwindSafe(async { next.call(request).await });
    answer.catch_unwind().await.unwrap_or_else(|_panic| {
        metrics::counter!(PANICS_TOTAL, "where" => "http").increment(1);
        Err(ApiError::Internal.into())
    })
}
