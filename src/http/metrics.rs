//! The metrics of this room, and the middleware that measures every request.

use std::time::Instant;

use actix_web::HttpMessage;
use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::middleware::Next;
use tracing::Instrument;

use super::request_id::RequestId;
use crate::telemetry::metrics::{HTTP_REQUEST_DURATION_SECONDS, HTTP_REQUESTS_TOTAL};

/// Middleware: counts, times and logs every request, and puts its id on what is logged meanwhile.
pub async fn measure(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, actix_web::Error> {
    let start = Instant::now();
    let method = method_label(request.method());
    let route = request.match_pattern().unwrap_or_else(|| "unmatched".into());
    let request_id = request.extensions().get::<RequestId>().map(|id| id.0.clone());
    let request_id = request_id.as_deref().unwrap_or_default();
    let span = tracing::info_span!("http", request_id);

    let result = next.call(request).instrument(span.clone()).await;
    let status = match &result {
        Ok(response) => response.status(),
        Err(error) => error.as_response_error().status_code(),
    };
    let elapsed = start.elapsed();
    let status_label = status.as_str().to_owned();
    metrics::counter!(HTTP_REQUESTS_TOTAL, "method" => method, "route" => route.clone(), "status" => status_label)
        .increment(1);
    metrics::histogram!(HTTP_REQUEST_DURATION_SECONDS, "method" => method, "route" => route.clone())
        .record(elapsed);
    let elapsed_ms = elapsed.as_secs_f64() * 1e3;
    span.in_scope(|| {
        tracing::debug!(method, route, status = status.as_u16(), elapsed_ms, "request answered");
    });
    result
}

fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}
