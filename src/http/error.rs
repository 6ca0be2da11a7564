//! Everything that can be wrong with a request or its answer, in OpenAI's shape.

use std::borrow::Cow;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpResponse, HttpResponseBuilder, ResponseError};
use serde::Serialize;

use crate::session::{Fault, Outcome};

/// Seconds that a client is told to wait while the daemon cannot take requests at all.
const UNAVAILABLE_RETRY_AFTER_S: u32 = 5;
/// Messages and params repeat what the client sent; not all of it when it is long.
const MESSAGE_CHARS_MAX: usize = 1000;
const PARAM_CHARS_MAX: usize = 200;

/// An error as a client sees it. Each variant has one status, type and code ([`ApiError::class`]).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// A field, or the body as a whole, cannot be honoured.
    #[error("{message}")]
    Invalid {
        /// What is wrong.
        message: String,
        /// The field's path, as in `messages[0].content`; `None`: the body itself.
        param: Option<String>,
        /// A word for programs.
        code: Option<&'static str>,
    },
    /// The prompt, or prompt and answer together, do not fit the context.
    #[error("{}", context_message(*prompt_tokens, *max_tokens, *context_tokens))]
    ContextLengthExceeded {
        /// The field that holds the prompt.
        param: &'static str,
        /// Tokens of the prompt.
        prompt_tokens: usize,
        /// Tokens of the answer, where the client asked for a number.
        max_tokens: Option<u32>,
        /// Tokens that fit.
        context_tokens: u32,
    },
    /// No key, or none that is known.
    #[error("{0}")]
    Unauthorized(&'static str),
    /// The request names a model that is not served here.
    #[error("the model `{0}` does not exist; GET /v1/models lists what is served")]
    ModelNotFound(String),
    /// No such path.
    #[error("unknown URL: {0}")]
    UnknownUrl(String),
    /// The path exists, with other methods.
    #[error("method {method} is not allowed here; allowed: {allow}")]
    MethodNotAllowed {
        /// What was tried.
        method: String,
        /// The `Allow` header.
        allow: &'static str,
    },
    /// The body did not arrive in time; the connection is closed.
    #[error("the request body did not arrive within {} s", .0.as_secs_f32())]
    BodyTimeout(Duration),
    /// The body ended early or was garbled in transfer; the connection is closed.
    #[error("the request body could not be read: {0}")]
    BodyBroken(String),
    /// The body is over the limit; the connection is closed.
    #[error("the request body is larger than {limit_bytes} bytes")]
    BodyTooLarge {
        /// The limit.
        limit_bytes: usize,
    },
    /// The body is not plain JSON by its own account; the text is what it is.
    #[error("{0} is not supported; send application/json without encoding")]
    UnsupportedMediaType(String),
    /// Every admission permit is taken.
    #[error("too many requests are running or waiting; try again in {retry_after_s} s")]
    QueueFull {
        /// The `Retry-After` header.
        retry_after_s: u32,
    },
    /// The daemon cannot take requests now.
    #[error("the server is {state}: {reason}")]
    Unavailable {
        /// `loading`, `draining` or `unhealthy`.
        state: &'static str,
        /// Why, in a sentence.
        reason: String,
    },
    /// The request's deadline passed before the answer was whole.
    #[error("the request's deadline passed before the answer was complete")]
    Deadline,
    /// The client read too slowly and its answer was given up.
    #[error("the client stopped reading the answer")]
    SlowClient,
    /// A fault of the device or in this one answer.
    #[error("{message}")]
    Failed {
        /// What happened.
        message: String,
        /// `device_fault`, `device_hang`, `non_finite`, `grammar_dead_end`.
        code: &'static str,
    },
    /// A fault of Pleach itself. Details are in the log under the request id.
    #[error("internal error")]
    Internal,
}

/// How an error is shown: status, OpenAI's `type`, OpenAI's `code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorClass {
    /// HTTP status.
    pub status: StatusCode,
    /// The `type` key.
    pub kind: &'static str,
    /// The `code` key.
    pub code: Option<&'static str>,
}

/// The wire form; all four keys are always there.
#[derive(Serialize)]
struct Envelope<'a> {
    error: Detail<'a>,
}

#[derive(Serialize)]
struct Detail<'a> {
    message: String,
    r#type: &'static str,
    param: Option<Cow<'a, str>>,
    code: Option<&'static str>,
}

impl ApiError {
    /// A 400 about one field.
    pub fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Invalid { message: message.into(), param: Some(param.into()), code: None }
    }

    /// The error that an unfinished answer ends with; `None` for an answer that is usable.
    pub fn of_outcome(outcome: &Outcome) -> Option<Self> {
        Some(match outcome {
            Outcome::Stop(_) | Outcome::Length => return None,
            Outcome::Deadline => Self::Deadline,
            Outcome::QueueDeadline => Self::Unavailable {
                state: "overloaded",
                reason: "the request waited too long for its turn".into(),
            },
            Outcome::SlowClient => Self::SlowClient,
            Outcome::Drained => Self::Unavailable {
                state: "draining",
                reason: "it stopped before the answer was complete".into(),
            },
            Outcome::GrammarDeadEnd => Self::Failed {
                message: "no token that the grammar allows could be sampled".into(),
                code: "grammar_dead_end",
            },
            Outcome::Fault(Fault::Device(reason)) => Self::Failed {
                message: format!("the device failed: {reason}"),
                code: "device_fault",
            },
            Outcome::Fault(Fault::DeviceHang) => Self::Failed {
                message: "the device did not finish a step in time".into(),
                code: "device_hang",
            },
            Outcome::Fault(Fault::Grammar(reason)) => Self::Failed {
                message: format!("the grammar could not be followed: {reason}"),
                code: "grammar_fault",
            },
            Outcome::Fault(Fault::NonFinite) => Self::Failed {
                message: "the device returned logits that are not finite".into(),
                code: "non_finite",
            },
            Outcome::Fault(Fault::Panic) | Outcome::ClientGone | Outcome::TornDown => {
                Self::Internal
            }
        })
    }

    /// Status, type and code.
    pub fn class(&self) -> ErrorClass {
        let invalid = "invalid_request_error";
        let (status, kind, code) = match self {
            Self::Invalid { code, .. } => (400, invalid, *code),
            Self::ContextLengthExceeded { .. } => (400, invalid, Some("context_length_exceeded")),
            Self::BodyBroken(_) => (400, invalid, Some("incomplete_body")),
            Self::Unauthorized(_) => (401, "authentication_error", Some("invalid_api_key")),
            Self::ModelNotFound(_) => (404, invalid, Some("model_not_found")),
            Self::UnknownUrl(_) => (404, invalid, Some("unknown_url")),
            Self::MethodNotAllowed { .. } => (405, invalid, Some("method_not_allowed")),
            Self::BodyTimeout(_) => (408, invalid, Some("request_timeout")),
            Self::BodyTooLarge { .. } => (413, invalid, Some("request_too_large")),
            Self::UnsupportedMediaType(_) => (415, invalid, Some("unsupported_media_type")),
            Self::QueueFull { .. } => (429, "rate_limit_error", Some("queue_full")),
            Self::SlowClient => (408, invalid, Some("slow_client")),
            Self::Unavailable { state, .. } => (503, "server_error", Some(*state)),
            Self::Deadline => (504, "server_error", Some("deadline_exceeded")),
            Self::Failed { code: "device_hang", .. } => (504, "server_error", Some("device_hang")),
            Self::Failed { code, .. } => (500, "server_error", Some(*code)),
            Self::Internal => (500, "server_error", Some("internal_error")),
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        ErrorClass { status, kind, code }
    }

    /// The field it is about.
    pub fn param(&self) -> Option<&str> {
        match self {
            Self::Invalid { param, .. } => param.as_deref(),
            Self::ContextLengthExceeded { param, .. } => Some(param),
            Self::ModelNotFound(_) => Some("model"),
            _ => None,
        }
    }

    /// `{"error":{"message","type","param","code"}}`.
    pub fn to_value(&self) -> serde_json::Value {
        let ErrorClass { kind, code, .. } = self.class();
        let message = clip(&self.to_string(), MESSAGE_CHARS_MAX).into_owned();
        let param = self.param().map(|param| clip(param, PARAM_CHARS_MAX));
        let detail = Detail { message, r#type: kind, param, code };
        serde_json::json!(Envelope { error: detail })
    }

    /// A response with this error's status and headers; the body is still to come.
    pub fn response_builder(&self) -> HttpResponseBuilder {
        let mut response = HttpResponse::build(self.class().status);
        match self {
            Self::QueueFull { retry_after_s } => {
                response.insert_header((header::RETRY_AFTER, retry_after_s.to_string()));
            }
            Self::Unavailable { .. } => {
                response.insert_header((header::RETRY_AFTER, UNAVAILABLE_RETRY_AFTER_S));
            }
            Self::MethodNotAllowed { allow, .. } => {
                response.insert_header((header::ALLOW, HeaderValue::from_static(allow)));
            }
            Self::Unauthorized(_) => {
                let scheme = HeaderValue::from_static("Bearer");
                response.insert_header((header::WWW_AUTHENTICATE, scheme));
            }
            _ => {}
        }
        if self.closes_connection() {
            response.force_close();
        }
        response
    }

    /// After a body that was not read to its end, and when the daemon wants its clients gone.
    fn closes_connection(&self) -> bool {
        match self {
            Self::BodyTimeout(_) | Self::BodyBroken(_) | Self::BodyTooLarge { .. } => true,
            Self::Unavailable { state, .. } => *state == "draining",
            _ => false,
        }
    }
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        self.class().status
    }

    fn error_response(&self) -> HttpResponse {
        self.response_builder().json(self.to_value())
    }
}

/// The first `chars_max` characters, with an ellipsis for what is left out.
pub fn clip(text: &str, chars_max: usize) -> Cow<'_, str> {
    match text.char_indices().nth(chars_max) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default())),
    }
}

fn context_message(prompt_tokens: usize, max_tokens: Option<u32>, context_tokens: u32) -> String {
    match max_tokens {
        None => format!(
            "the prompt has {prompt_tokens} tokens, and the model's context holds {context_tokens}, \
             the answer included; shorten the prompt"
        ),
        Some(max_tokens) => format!(
            "the prompt has {prompt_tokens} tokens and max_tokens is {max_tokens}, together {}, and \
             the model's context holds {context_tokens}; shorten the prompt or the answer",
            prompt_tokens as u64 + u64::from(max_tokens)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::StopCause;

    #[test]
    fn every_error_has_the_four_keys() {
        let errors = [
            ApiError::invalid("stop[1]", "empty"),
            ApiError::Unauthorized("no"),
            ApiError::ModelNotFound("x".into()),
            ApiError::QueueFull { retry_after_s: 3 },
            ApiError::Internal,
        ];
        for error in errors {
            let value = error.to_value();
            let detail = value["error"].as_object().unwrap();
            let keys: Vec<&str> = detail.keys().map(String::as_str).collect();
            assert_eq!(keys, ["message", "type", "param", "code"], "{error:?}");
        }
    }

    #[test]
    fn outcomes_become_errors_exactly_when_they_have_no_finish_reason() {
        let outcomes = [
            (Outcome::Stop(StopCause::Grammar), None),
            (Outcome::Length, None),
            (Outcome::ClientGone, Some(500)),
            (Outcome::SlowClient, Some(408)),
            (Outcome::Deadline, Some(504)),
            (Outcome::Drained, Some(503)),
            (Outcome::GrammarDeadEnd, Some(500)),
            (Outcome::Fault(Fault::Device("x".into())), Some(500)),
            (Outcome::Fault(Fault::DeviceHang), Some(504)),
            (Outcome::Fault(Fault::NonFinite), Some(500)),
            (Outcome::Fault(Fault::Panic), Some(500)),
            (Outcome::TornDown, Some(500)),
        ];
        for (outcome, status) in outcomes {
            let error = ApiError::of_outcome(&outcome);
            assert_eq!(error.is_none(), outcome.finish_reason().is_some(), "{outcome:?}");
            assert_eq!(error.map(|e| e.class().status.as_u16()), status, "{outcome:?}");
        }
    }

    #[test]
    fn long_texts_are_clipped_between_characters() {
        assert_eq!(clip("äöü", 3), "äöü");
        assert_eq!(clip("äöü", 2), "äö…");
        let error = ApiError::ModelNotFound("x".repeat(1 << 20)).to_value().to_string();
        assert!(error.len() < 2000);
    }

    #[test]
    fn the_context_error_names_both_numbers() {
        let error = ApiError::ContextLengthExceeded {
            param: "prompt",
            prompt_tokens: 90,
            max_tokens: Some(20),
            context_tokens: 100,
        };
        let message = error.to_string();
        assert!(message.contains("90") && message.contains("100"), "{message}");
    }
}
