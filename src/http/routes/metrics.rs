//! `GET /metrics`: the Prometheus page.

use actix_web::HttpResponse;
use actix_web::web::Data;

use crate::http::state::HttpState;

pub async fn metrics(state: Data<HttpState>) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/plain; version=0.0.4; charset=utf-8")
        .body(state.render_metrics())
}
