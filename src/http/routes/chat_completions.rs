//! `POST /v1/chat/completions`.

use std::sync::Arc;

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};

use super::generate::{Intake, Plan};
use crate::http::error::ApiError;
use crate::http::offload;
use crate::http::openai::constraint::Compiled;
use crate::http::openai::convert::{self, AnswerRules};
use crate::http::openai::json;
use crate::http::openai::types::Shape;
use crate::http::openai::validate::Checks;
use crate::http::state::HttpState;

pub async fn chat_completions(
    request: HttpRequest,
    payload: Payload,
    state: Data<HttpState>,
) -> Result<HttpResponse, ApiError> {
    let mut intake = Intake::admit(request, payload, state).await?;
    let limits = intake.state.settings().limits.clone();
    let body_bytes = intake.body.len();

    let body = intake.body.clone();
    let checked = (Arc::clone(&intake.model), limits.clone());
    let chat = offload::run(body_bytes, limits.offload_bytes, move |_| {
        let (model, limits) = &checked;
        let fields = json::parse_object(&body, limits.json_values_max)?;
        let mut chat = Checks { model, limits }.chat(fields)?;
        chat.common.take_sent_schema(&body);
        chat.prompt.take_sent_schemas(&body);
        Ok(chat)
    })
    .await?;
    intake.admit_choices(1, &chat.common)?;

    let model = Arc::clone(&intake.model);
    let (prompt, held) = (chat.prompt, chat.common.held.clone());
    intake.note_unseen_tools(&prompt)?;
    let opened = offload::run(body_bytes, limits.offload_bytes, move |cancel| {
        convert::chat_prompt(&model, &prompt, held, cancel)
    })
    .await?;
    let rules = AnswerRules {
        prompt_param: "messages",
        max_tokens_default: limits.answer_tokens_default(limits.chat_max_tokens_default),
        echo: false,
    };
    let compiled = intake.compile(opened.constraint).await?;
    let prompts = [opened.tokens];
    let mut generations =
        convert::generations(&intake.model, &chat.common, &prompts, rules, compiled.as_ref())?;
    convert::read_as(&mut generations, opened.reading.as_ref());
    let plan = Plan {
        generations,
        relaxed: compiled.as_ref().and_then(Compiled::relaxed),
        prompts: 1,
        choices_per_prompt: chat.common.n,
        shape: Shape::Chat,
        stream: chat.common.stream,
    };
    intake.answer(plan).await
}
