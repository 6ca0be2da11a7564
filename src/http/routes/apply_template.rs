//! `POST /apply-template`: the prompt that a conversation becomes, without generating anything.

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use serde_json::json;

use super::tokenize::with_body;
use crate::http::error::ApiError;
use crate::http::openai::{convert, tools, validate};
use crate::http::state::HttpState;

/// `{messages, tools, chat_template_kwargs, add_generation_prompt, continue_final_message}` and the
/// reasoning fields to `{prompt}`.
pub async fn apply_template(
    request: HttpRequest,
    payload: Payload,
    state: Data<HttpState>,
) -> Result<HttpResponse, ApiError> {
    with_body(request, payload, state, |model, _, mut f| {
        let tools = tools::take(&mut f, true)?;
        let mut conversation = validate::conversation(&mut f)?;
        conversation.tools = tools.shown;
        Ok(json!({"prompt": convert::render(model, &conversation)?}))
    })
    .await
}
