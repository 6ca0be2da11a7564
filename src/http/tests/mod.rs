//! The room as a client sees it, over doubles for engine, tokenizer and template.

mod answers;
mod errors;
mod fuzz;
mod metrics;
mod requests;
mod socket;
mod streams;
mod tools;
mod validation;

/// Where requests for answers go.
const CHAT: &str = "/v1/chat/completions";
const COMPLETIONS: &str = "/v1/completions";

/// A chat body with `extra` merged in.
fn chat_body(extra: serde_json::Value) -> serde_json::Value {
    merge(serde_json::json!({"messages": [{"role": "user", "content": "Hi"}]}), extra)
}

/// A completion body with `extra` merged in.
fn completion_body(extra: serde_json::Value) -> serde_json::Value {
    merge(serde_json::json!({"prompt": "Hi"}), extra)
}

fn merge(mut body: serde_json::Value, extra: serde_json::Value) -> serde_json::Value {
    let extra = extra.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(extra);
    body
}
