//! What both generation routes do: admission before, the answer after.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::web::{Bytes, Data, Payload};
use actix_web::{HttpMessage, HttpRequest, HttpResponse};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::http::admission::AdmissionPermit;
use crate::http::auth::Client;
use crate::http::body;
use crate::http::engine::Job;
use crate::http::error::{ApiError, clip};
use crate::http::model::Model;
use crate::http::offload;
use crate::http::openai::answer::Answer;
use crate::http::openai::chunk::ChunkWriter;
use crate::http::openai::constraint::{Compiled, ConstraintRequest};
use crate::http::openai::types::{AnswerHead, ChatPrompt, CommonFields, Shape, StreamOptions};
use crate::http::openai::usage::Tally;
use crate::http::request_id::{self, RequestId};
use crate::http::sse::SseBody;
use crate::http::state::HttpState;
use crate::session::{Frame, FrameBody, Generation};

/// How much of a request's unknown field names the log shows.
const UNKNOWN_NAMES_MAX: usize = 20;
const UNKNOWN_NAME_CHARS_MAX: usize = 64;

/// A request that was let in and whose body is there.
pub struct Intake {
    pub state: Data<HttpState>,
    pub model: Arc<Model>,
    pub body: Bytes,
    permit: AdmissionPermit,
    request_id: Arc<str>,
    client: Arc<str>,
}

/// Generations and how their answer looks.
pub struct Plan {
    pub generations: Vec<Generation>,
    /// What of a schema was given up, in words.
    pub relaxed: Option<String>,
    pub prompts: usize,
    pub choices_per_prompt: u32,
    pub shape: Shape,
    pub stream: Option<StreamOptions>,
}

impl Intake {
    /// Takes a permit, then the body, then its turn.
    pub async fn admit(
        request: HttpRequest,
        payload: Payload,
        state: Data<HttpState>,
    ) -> Result<Self, ApiError> {
        let permit = state.admit(1)?;
        let model = state.model()?;
        let request_id = request.extensions().get::<RequestId>().map(|id| Arc::clone(&id.0));
        let client = request.extensions().get::<Client>().map(|client| Arc::clone(&client.0));
        let (Some(request_id), Some(client)) = (request_id, client) else {
            return Err(ApiError::Internal);
        };
        let body = body::read(&request, payload, state.settings()).await?;
        state.turns().take().await;
        Ok(Self { state, model, body, permit, request_id, client })
    }

    /// Takes the permits of all further choices, and logs the fields that were ignored.
    pub fn admit_choices(&mut self, prompts: usize, common: &CommonFields) -> Result<(), ApiError> {
        let choices = u32::try_from(prompts).unwrap_or(u32::MAX).saturating_mul(common.n);
        if choices > 1 {
            self.permit.merge(self.state.admit(choices - 1)?);
        }
        if !common.unknown.is_empty() {
            let names = common.unknown.iter().take(UNKNOWN_NAMES_MAX);
            let names: Vec<_> = names.map(|name| clip(name, UNKNOWN_NAME_CHARS_MAX)).collect();
            let fields = names.join(", ");
            tracing::info!(request_id = &*self.request_id, fields, "unknown fields are ignored");
        }
        Ok(())
    }

    /// Logs that tools were offered which the model cannot see, or whose calls cannot be read.
    /// A call that must come is refused then.
    pub fn note_unseen_tools(&self, prompt: &ChatPrompt) -> Result<(), ApiError> {
        let Some(chat) = self.model.chat.as_ref().filter(|_| !prompt.tools.offered.is_empty())
        else {
            return Ok(());
        };
        let must_call = |unseen: &str| {
            let message = format!("`tool_choice` cannot be honoured: {unseen}");
            Err(ApiError::invalid("tool_choice", message))
        };
        let request_id = &*self.request_id;
        if !chat.template.shows_tools() {
            let unseen = "the chat template leaves tools out of the prompt";
            if prompt.tools.must_call {
                return must_call(unseen);
            }
            tracing::warn!(request_id, "{unseen}");
        }
        if chat.format.tools.is_none() {
            if prompt.tools.must_call {
                return must_call("the chat format has no tool calls");
            }
            let format = &*chat.format.kind;
            tracing::warn!(request_id, format, "the chat format has no tool calls: all is content");
        }
        Ok(())
    }

    /// Compiles what the answer is held to: at once where it is known, else on the blocking pool.
    pub async fn compile(
        &self,
        request: Option<ConstraintRequest>,
    ) -> Result<Option<Compiled>, ApiError> {
        let Some(request) = request else { return Ok(None) };
        if let Some(known) = request.cached(&self.model.grammars) {
            return known.map(Some);
        }
        let model = Arc::clone(&self.model);
        let always = 0;
        let compiled =
            offload::run(1, always, move |cancel| request.compile(&model.grammars, cancel));
        compiled.await.map(Some)
    }

    /// Submits the generations and answers with what comes back.
    pub async fn answer(self, plan: Plan) -> Result<HttpResponse, ApiError> {
        let Self { state, model, permit, request_id, client, body } = self;
        drop(body);
        let head = answer_head(&model, plan.shape);
        let tally = Tally::new(plan.prompts, plan.choices_per_prompt);
        let relaxed = plan.relaxed.map(|relaxed| {
            tracing::info!(request_id = &*request_id, relaxed, "the schema is followed in part");
            ascii(&relaxed)
        });
        let logprobs = plan.generations.iter().any(|g| g.logprobs.is_some());
        let frames = state.engine().submit(Job {
            request_id,
            client,
            generations: plan.generations,
            permit,
            deadline: state.settings().request_deadline,
            frame_capacity: state.settings().frame_capacity.max(1),
        });
        let mut response = match plan.stream {
            None => {
                let answer = Answer::collect(frames, tally).await?;
                let body = answer.to_json(&head, &model, logprobs);
                HttpResponse::Ok().content_type("application/json").body(body)
            }
            Some(options) => {
                let writer = ChunkWriter::new(&head, options.include_usage, model);
                stream(&state, frames, writer, tally).await?
            }
        };
        if let Some(relaxed) = relaxed.and_then(|text| HeaderValue::from_str(&text).ok()) {
            response.headers_mut().insert(RELAXED, relaxed);
        }
        Ok(response)
    }
}

/// The header that says what of a schema was given up.
const RELAXED: HeaderName = HeaderName::from_static("x-pleach-schema-relaxed");
/// Characters of that header, at most.
const RELAXED_CHARS_MAX: usize = 1_000;

/// Text for a header: everything but printable ASCII is escaped, and what is too long is cut.
fn ascii(text: &str) -> String {
    let mut escaped: String = text.chars().flat_map(char::escape_default).collect();
    escaped.truncate(RELAXED_CHARS_MAX);
    escaped
}

/// Sends the head with the first frame, or when that takes long.
async fn stream(
    state: &HttpState,
    mut frames: mpsc::Receiver<Frame>,
    writer: ChunkWriter,
    tally: Tally,
) -> Result<HttpResponse, ApiError> {
    let settings = state.settings();
    let first = match timeout(settings.stream_head_delay, frames.recv()).await {
        // Those who came together have waited equally long.
        Err(_elapsed) => {
            state.turns().take().await;
            None
        }
        Ok(None) => {
            tracing::error!("the sessions ended before the stream began");
            return Err(ApiError::Internal);
        }
        Ok(Some(frame)) => Some(frame),
    };
    if let Some(Frame { body: FrameBody::Done(summary), .. }) = &first
        && let Some(error) = ApiError::of_outcome(&summary.outcome)
    {
        return Err(error);
    }
    let body = SseBody::new(frames, first, writer, tally, settings.ping_interval);
    Ok(HttpResponse::Ok()
        .content_type("text/event-stream; charset=utf-8")
        .insert_header((header::CACHE_CONTROL, "no-cache"))
        .insert_header(("x-accel-buffering", "no"))
        .body(body))
}

fn answer_head(model: &Model, shape: Shape) -> AnswerHead {
    let prefix = match shape {
        Shape::Chat => "chatcmpl-",
        Shape::Completion => "cmpl-",
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    AnswerHead {
        id: request_id::random(prefix),
        created_unix_s: now.as_secs(),
        model: model.name.clone(),
        shape,
    }
}
