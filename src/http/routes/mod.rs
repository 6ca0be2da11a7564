//! One file for each route.

mod apply_template;
mod chat_completions;
mod completions;
mod generate;
mod health;
mod metrics;
mod models;
mod tokenize;

use actix_web::guard::{self, Guard};
use actix_web::web::ServiceConfig;
use actix_web::{Handler, HttpRequest, Resource, Responder, web};

use super::error::ApiError;

/// Adds every route. A known path with another method is a 405 with `Allow`.
pub fn configure(config: &mut ServiceConfig) {
    config
        .service(post("/v1/chat/completions", chat_completions::chat_completions))
        .service(post("/v1/completions", completions::completions))
        .service(get("/v1/models", models::list))
        .service(get("/v1/models/{id:.*}", models::one))
        .service(post("/tokenize", tokenize::tokenize))
        .service(post("/detokenize", tokenize::detokenize))
        .service(post("/apply-template", apply_template::apply_template))
        .configure(configure_probes);
}

/// Adds the routes of those who watch the daemon.
pub fn configure_probes(config: &mut ServiceConfig) {
    config
        .service(get("/livez", health::livez))
        .service(get("/readyz", health::readyz))
        .service(get("/health", health::readyz))
        .service(get("/metrics", metrics::metrics));
}

/// The answer of every path that is not there.
pub async fn unknown_url(request: HttpRequest) -> Result<&'static str, ApiError> {
    Err(ApiError::UnknownUrl(request.path().to_owned()))
}

fn post<F, Args>(path: &str, handler: F) -> Resource
where
    F: Handler<Args>,
    Args: actix_web::FromRequest + 'static,
    F::Output: Responder + 'static,
{
    resource(path, guard::Post(), handler, "POST")
}

fn get<F, Args>(path: &str, handler: F) -> Resource
where
    F: Handler<Args>,
    Args: actix_web::FromRequest + 'static,
    F::Output: Responder + 'static,
{
    resource(path, guard::Any(guard::Get()).or(guard::Head()), handler, "GET, HEAD")
}

fn resource<F, Args>(
    path: &str,
    methods: impl Guard + 'static,
    handler: F,
    allow: &'static str,
) -> Resource
where
    F: Handler<Args>,
    Args: actix_web::FromRequest + 'static,
    F::Output: Responder + 'static,
{
    let other = move |request: HttpRequest| async move {
        let method = request.method().to_string();
        Err::<&'static str, _>(ApiError::MethodNotAllowed { method, allow })
    };
    web::resource(path)
        .route(web::route().guard(methods).to(handler))
        .default_service(web::to(other))
}
