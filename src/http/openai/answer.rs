//! The whole answer.

use serde::Serialize;
use tokio::sync::mpsc;

use super::logprobs::{ChatLogprobs, CompletionLogprobs};
use super::types::{AnswerHead, Shape};
use super::usage::{Finish, Tally, UsageObject};
use crate::http::error::ApiError;
use crate::http::model::Model;
use crate::session::{CallPart, Delta, Frame, FrameBody};

/// Every choice of a request, complete.
#[derive(Debug)]
pub struct Answer {
    choices: Vec<ChoiceText>,
    usage: UsageObject,
}

#[derive(Clone, Debug, Default)]
struct ChoiceText {
    said: Delta,
    finish: Option<Finish>,
}

impl Answer {
    /// Reads frames until every choice has ended.
    ///
    /// # Errors
    /// The first choice that failed fails the request, and so does a channel that closes early.
    pub async fn collect(
        mut frames: mpsc::Receiver<Frame>,
        mut tally: Tally,
    ) -> Result<Self, ApiError> {
        let mut choices = vec![ChoiceText::default(); tally.choices()];
        while !tally.is_complete() {
            let Some(frame) = frames.recv().await else {
                tracing::error!("the sessions ended without finishing the answer");
                return Err(ApiError::Internal);
            };
            tally.check(&frame)?;
            let choice = choices.get_mut(frame.choice as usize).ok_or(ApiError::Internal)?;
            match frame.body {
                FrameBody::Delta(delta) => {
                    choice.said.extend(delta);
                }
                FrameBody::Done(summary) => {
                    choice.finish = Some(tally.finish(frame.choice, &summary)?);
                }
            }
        }
        Ok(Self { choices, usage: tally.usage() })
    }

    /// The body of the response.
    pub fn to_json(&self, head: &AnswerHead, model: &Model, logprobs: bool) -> Vec<u8> {
        let mut out = Vec::new();
        match head.shape {
            Shape::Chat => {
                let choices = self.indexed(|index, choice| ChatChoice {
                    index,
                    message: Message::new(&choice.said),
                    logprobs: logprobs.then(|| ChatLogprobs::new(model, &choice.said.tokens)),
                    finish_reason: finish_word(choice),
                });
                super::chunk::write_json(&mut out, &self.body("chat.completion", head, choices));
            }
            Shape::Completion => {
                let choices = self.indexed(|index, choice| CompletionChoice {
                    index,
                    text: &choice.said.text,
                    logprobs: logprobs.then(|| CompletionLogprobs::new(model, &choice.said.tokens)),
                    finish_reason: finish_word(choice),
                });
                super::chunk::write_json(&mut out, &self.body("text_completion", head, choices));
            }
        }
        out
    }

    fn indexed<'a, C>(&'a self, choice: impl Fn(usize, &'a ChoiceText) -> C) -> Vec<C> {
        self.choices.iter().enumerate().map(|(i, text)| choice(i, text)).collect()
    }

    fn body<'a, C>(
        &self,
        object: &'static str,
        head: &'a AnswerHead,
        choices: Vec<C>,
    ) -> Body<'a, C> {
        Body {
            id: &head.id,
            object,
            created: head.created_unix_s,
            model: &head.model,
            choices,
            usage: self.usage,
        }
    }
}

fn finish_word(choice: &ChoiceText) -> Option<&'static str> {
    choice.finish.map(Finish::as_str)
}

#[derive(Serialize)]
struct Body<'a, C> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: Vec<C>,
    usage: UsageObject,
}

#[derive(Serialize)]
struct ChatChoice<'a> {
    index: usize,
    message: Message<'a>,
    logprobs: Option<ChatLogprobs<'a>>,
    finish_reason: Option<&'static str>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Option<&'a str>,
    refusal: Option<()>,
    #[serde(skip_serializing_if = "str::is_empty")]
    reasoning_content: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: String,
}

impl<'a> Message<'a> {
    /// A message that calls and says nothing has no content.
    fn new(said: &'a Delta) -> Self {
        let mut tool_calls: Vec<Call> = Vec::new();
        for part in &said.calls {
            match part {
                CallPart::Begin { id, name, .. } => tool_calls.push(Call {
                    id,
                    r#type: "function",
                    function: Function { name, arguments: String::new() },
                }),
                CallPart::Arguments { index, json } => {
                    if let Some(call) = tool_calls.get_mut(*index) {
                        call.function.arguments.push_str(json);
                    }
                }
            }
        }
        Self {
            role: "assistant",
            content: Some(said.text.as_str())
                .filter(|text| tool_calls.is_empty() || !text.is_empty()),
            refusal: None,
            reasoning_content: &said.reasoning,
            tool_calls,
        }
    }
}

#[derive(Serialize)]
struct CompletionChoice<'a> {
    index: usize,
    text: &'a str,
    logprobs: Option<CompletionLogprobs<'a>>,
    finish_reason: Option<&'static str>,
}
