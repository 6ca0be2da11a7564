//! `POST /v1/completions`.

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

pub async fn completions(
    request: HttpRequest,
    payload: Payload,
    state: Data<HttpState>,
) -> Result<HttpResponse, ApiError> {
    let mut intake = Intake::admit(request, payload, state).await?;
    let limits = intake.state.settings().limits.clone();
    let body_bytes = intake.body.len();

    let body = intake.body.clone();
    let checked = (Arc::clone(&intake.model), limits.clone());
    let completion = offload::run(body_bytes, limits.offload_bytes, move |_| {
        let (model, limits) = &checked;
        let fields = json::parse_object(&body, limits.json_values_max)?;
        let mut completion = Checks { model, limits }.completion(fields)?;
        completion.common.take_sent_schema(&body);
        Ok(completion)
    })
    .await?;
    let (mut common, echo) = (completion.common, completion.echo);
    intake.admit_choices(completion.prompts.len(), &common)?;

    let model = Arc::clone(&intake.model);
    let prompts = completion.prompts;
    let prompts = offload::run(body_bytes, limits.offload_bytes, move |cancel| {
        convert::completion_prompts(&model, prompts, cancel)
    })
    .await?;
    let rules = AnswerRules {
        prompt_param: "prompt",
        max_tokens_default: limits.answer_tokens_default(limits.completion_max_tokens_default),
        echo,
    };
    let compiled = intake.compile(common.held.constraint.take()).await?;
    let generations =
        convert::generations(&intake.model, &common, &prompts, rules, compiled.as_ref())?;
    let plan = Plan {
        generations,
        relaxed: compiled.as_ref().and_then(Compiled::relaxed),
        prompts: prompts.len(),
        choices_per_prompt: common.n,
        shape: Shape::Completion,
        stream: common.stream,
    };
    intake.answer(plan).await
}
