//! `x-request-id`: the client's own where it is sane, else a new one.

use std::sync::Arc;

use actix_web::HttpMessage;
use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::error::InternalError;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use actix_web::middleware::Next;

const HEADER: HeaderName = HeaderName::from_static("x-request-id");
const LENGTH_MAX: usize = 128;

/// The id of a request. Kept in its extensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(pub Arc<str>);

impl RequestId {
    /// The client's id if it is at most 128 visible ASCII characters, else a random one.
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let sane = |id: &&str| {
            !id.is_empty() && id.len() <= LENGTH_MAX && id.bytes().all(|b| b.is_ascii_graphic())
        };
        match headers.get(HEADER).and_then(|value| value.to_str().ok()).filter(sane) {
            Some(id) => Self(id.into()),
            None => Self(random("req_").into()),
        }
    }

    fn insert_into(&self, headers: &mut HeaderMap) {
        if let Ok(value) = HeaderValue::from_str(&self.0) {
            headers.insert(HEADER, value);
        }
    }
}

/// `prefix` and 24 random letters and digits.
pub fn random(prefix: &str) -> String {
    prefix.chars().chain(std::iter::repeat_with(fastrand::alphanumeric).take(24)).collect()
}

/// Middleware: gives every request its id and every answer the header, errors of other middleware
/// included.
pub async fn identify(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, actix_web::Error> {
    let id = RequestId::from_headers(request.headers());
    request.extensions_mut().insert(id.clone());
    match next.call(request).await {
        Ok(mut response) => {
            id.insert_into(response.headers_mut());
            Ok(response)
        }
        Err(error) => {
            let mut response = error.error_response();
            id.insert_into(response.headers_mut());
            Err(InternalError::from_response(error, response).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sane_id_is_kept_and_another_replaced() {
        let id = |value: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert(HEADER, HeaderValue::from_bytes(value).unwrap());
            RequestId::from_headers(&headers).0.to_string()
        };
        assert_eq!(id(b"abc-1"), "abc-1");
        for bad in [&b""[..], b"a b", b"\xc3\xa4", &[b'x'; 129]] {
            let made = id(bad);
            assert!(made.starts_with("req_") && made.len() == 28, "{made}");
        }
    }
}
