//! One request.

use serde_json::{Value, json};

use super::Expectation;

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// `/v1/chat/completions`
    Chat,
    /// `/v1/completions`
    Completions,
}

impl Endpoint {
    /// Its path.
    pub fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Completions => "/v1/completions",
        }
    }
}

/// A request, and what a right answer to it is.
#[derive(Clone, Debug)]
pub struct Request {
    /// Where it goes.
    pub endpoint: Endpoint,
    /// Its body.
    pub body: Value,
    /// What its answer has to be.
    pub expectation: Expectation,
}

impl Request {
    /// A streamed request to an endpoint whose answer may be any text.
    pub fn new(endpoint: Endpoint, mut body: Value) -> Self {
        body["stream"] = true.into();
        body["stream_options"] = json!({"include_usage": true});
        Self { endpoint, body, expectation: Expectation::Text }
    }

    /// Sets fields of the body, in place of what is there.
    pub fn with(mut self, fields: &Value) -> Self {
        for (name, value) in fields.as_object().into_iter().flatten() {
            self.body[name] = value.clone();
        }
        self
    }
}
