//! API keys. Only their SHA-256 is held, and it is compared in constant time with every key.

use std::sync::Arc;

use actix_web::HttpMessage;
use actix_web::ResponseError;
use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header;
use actix_web::middleware::Next;
use actix_web::web::Data;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use super::error::ApiError;
use super::state::HttpState;

/// Paths that never need a key, by exact match: everything else does.
const PUBLIC_PATHS: [&str; 3] = ["/livez", "/readyz", "/health"];
const METRICS_PATH: &str = "/metrics";

/// Who may call.
#[derive(Clone, Debug)]
pub enum Auth {
    /// Everybody.
    Off,
    /// Holders of one of these keys; an empty list lets nobody in.
    Keys(Vec<ApiKey>),
}

/// A key, hashed.
#[derive(Clone, Debug)]
pub struct ApiKey {
    name: Arc<str>,
    sha256: [u8; 32],
}

impl ApiKey {
    /// From the key itself, which is not kept. `name` is the client's name in logs and in the queue.
    pub fn from_secret(name: &str, secret: &str) -> Self {
        Self::from_sha256(name, Sha256::digest(secret.as_bytes()).into())
    }

    /// From the key's SHA-256.
    pub fn from_sha256(name: &str, sha256: [u8; 32]) -> Self {
        Self { name: name.into(), sha256 }
    }
}

/// Who sent a request: the name of its key, or its address. Kept in the request's extensions.
#[derive(Clone, Debug)]
pub struct Client(pub Arc<str>);

impl Auth {
    /// The name of the client with this `Authorization` header; `None` where keys are off.
    pub fn check(&self, authorization: Option<&[u8]>) -> Result<Option<Arc<str>>, ApiError> {
        let Self::Keys(keys) = self else { return Ok(None) };
        let Some(header) = authorization else {
            return Err(ApiError::Unauthorized(
                "no API key; send it as `Authorization: Bearer KEY`",
            ));
        };
        let wrong = ApiError::Unauthorized("the API key is not valid");
        let secret = bearer_token(header).ok_or(wrong.clone())?;
        find_key(keys, secret).map(Some).ok_or(wrong)
    }
}

/// The scheme's name is case-insensitive (RFC 9110).
fn bearer_token(header: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = header.split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| rest.trim_ascii())
}

/// Looks at every key whichever matches, so that the time says nothing.
fn find_key(keys: &[ApiKey], secret: &[u8]) -> Option<Arc<str>> {
    let digest: [u8; 32] = Sha256::digest(secret).into();
    let mut found = Choice::from(0);
    let mut index = 0u64;
    for (i, key) in (0u64..).zip(keys) {
        let same = key.sha256.ct_eq(&digest);
        index.conditional_assign(&i, same);
        found |= same;
    }
    if !bool::from(found) {
        return None;
    }
    keys.get(usize::try_from(index).ok()?).map(|key| Arc::clone(&key.name))
}

/// Middleware: refuses requests without a known key and names the client of the others.
pub async fn authenticate(
    state: Data<HttpState>,
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, actix_web::Error> {
    let path = request.path();
    let public =
        PUBLIC_PATHS.contains(&path) || (path == METRICS_PATH && state.settings().metrics_public);
    let header = request.headers().get(header::AUTHORIZATION).map(|value| value.as_bytes());
    let client = match state.auth().check(header) {
        Ok(Some(name)) => name,
        Ok(None) => address(&request, state.settings().trust_forwarded),
        Err(_) if public => address(&request, state.settings().trust_forwarded),
        Err(error) => return Ok(request.into_response(error.error_response())),
    };
    request.extensions_mut().insert(Client(client));
    Ok(next.call(request).await?.map_into_boxed_body())
}

fn address(request: &ServiceRequest, trust_forwarded: bool) -> Arc<str> {
    if trust_forwarded && let Some(address) = request.connection_info().realip_remote_addr() {
        return address.into();
    }
    match request.peer_addr() {
        Some(address) => address.ip().to_string().into(),
        None => "unknown".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Auth {
        Auth::Keys(vec![ApiKey::from_secret("ann", "sk-1"), ApiKey::from_secret("bob", "sk-2")])
    }

    #[test]
    fn a_known_key_names_its_client() {
        for (header, name) in [("Bearer sk-1", "ann"), ("bearer sk-2", "bob")] {
            assert_eq!(&*keys().check(Some(header.as_bytes())).unwrap().unwrap(), name);
        }
        assert!(Auth::Off.check(None).unwrap().is_none());
    }

    #[test]
    fn anything_else_is_refused() {
        for header in ["Bearer sk-3", "Bearer ", "Bearer", "", "Basic sk-1", "sk-1", "Bearer sk-1x"]
        {
            assert!(keys().check(Some(header.as_bytes())).is_err(), "{header}");
        }
        assert!(keys().check(None).is_err());
        assert!(Auth::Keys(Vec::new()).check(Some(b"Bearer sk-1")).is_err());
    }

    #[test]
    fn the_secret_is_not_kept() {
        assert!(!format!("{:?}", keys()).contains("sk-1"));
    }
}
