//! Routes, middleware and the listening server.

use std::io;
use std::net::SocketAddr;

use actix_cors::Cors;
use actix_web::dev::{Server, ServerHandle};
use actix_web::http::{Method, header};
use actix_web::middleware::{Condition, from_fn};
use actix_web::web::{self, Data, ServiceConfig};
use actix_web::{App, HttpServer};

use super::state::HttpState;
use super::{auth, catch_panic, metrics, request_id, routes};

/// Adds every route with its middleware, outermost first: request id, measuring, catching panics,
/// CORS, keys.
pub fn configure(config: &mut ServiceConfig, state: Data<HttpState>) {
    with_middleware(config, state, routes::configure);
}

fn with_middleware(
    config: &mut ServiceConfig,
    state: Data<HttpState>,
    routes: fn(&mut ServiceConfig),
) {
    let origins = &state.settings().cors_origins;
    let cors = Condition::new(!origins.is_empty(), cors(origins));
    let scope = web::scope("")
        .configure(routes)
        .default_service(web::to(routes::unknown_url))
        .wrap(from_fn(auth::authenticate))
        .wrap(cors)
        .wrap(from_fn(catch_panic::catch_panic))
        .wrap(from_fn(metrics::measure))
        .wrap(from_fn(request_id::identify));
    config.app_data(state).service(scope);
}

fn cors(origins: &[String]) -> Cors {
    let allowed = |cors: Cors, origin: &String| match origin.as_str() {
        "*" => cors.allow_any_origin(),
        origin => cors.allowed_origin(origin),
    };
    let methods = [Method::GET, Method::POST];
    let cors = Cors::default()
        .allowed_methods(methods)
        .allow_any_header()
        .expose_headers(["x-request-id", header::RETRY_AFTER.as_str()])
        .block_on_origin_mismatch(false)
        .max_age(3600);
    origins.iter().fold(cors, allowed)
}

/// A server that listens but does not run yet: await it (or spawn it) on the System's thread.
pub struct Bound {
    /// The future that serves.
    pub server: Server,
    /// Stops it: `handle().stop(graceful)`.
    pub handle: ServerHandle,
    /// Where it listens; a port 0 in the settings is a real one here.
    pub addresses: Vec<SocketAddr>,
}

/// Binds every address of the settings.
///
/// # Errors
/// The address that could not be bound, and why.
pub fn serve(state: Data<HttpState>) -> io::Result<Bound> {
    let settings = state.settings();
    let (listen, workers) = (settings.listen.clone(), settings.workers);
    bind(state, &listen, workers, routes::configure)
}

/// Binds the address of the settings where only those ask who watch the daemon, if there is one.
/// They have a worker of their own: it answers at once, however much the others have to do.
///
/// # Errors
/// Why the address could not be bound.
pub fn serve_probes(state: Data<HttpState>) -> io::Result<Option<Bound>> {
    let address = state.settings().probe_listen;
    address.map(|address| bind(state, &[address], 1, routes::configure_probes)).transpose()
}

fn bind(
    state: Data<HttpState>,
    addresses: &[SocketAddr],
    workers: usize,
    routes: fn(&mut ServiceConfig),
) -> io::Result<Bound> {
    let settings = state.settings().clone();
    // `h1_allow_half_closed(false)`: else a client that closes while its answer is being made is
    // never noticed, and its sessions run on.
    let mut http = HttpServer::new(move || {
        let state = state.clone();
        App::new().configure(move |config| with_middleware(config, state, routes))
    })
    .workers(workers.max(1))
    .worker_max_blocking_threads(settings.blocking_threads.max(1))
    .backlog(settings.backlog)
    .max_connections(settings.max_connections)
    .keep_alive(settings.keep_alive)
    .client_request_timeout(settings.head_timeout)
    .h1_allow_half_closed(false)
    .tcp_nodelay(true)
    .shutdown_timeout(settings.shutdown_timeout.as_secs())
    .disable_signals();
    for address in addresses {
        http = http.bind(address).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
        })?;
    }
    let addresses = http.addrs();
    let server = http.run();
    let handle = server.handle();
    Ok(Bound { server, handle, addresses })
}
