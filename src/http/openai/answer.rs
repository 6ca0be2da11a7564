//! The whole answer.

use serde::Serialize;
use tokio::sync::mpsc;

use super::logprobs::{ChatLogprobs, CompletionLogprobs};
use super::types::{AnswerHead, Shape};
use super::usage::{Finish, Tally, UsageObject};
use crate::http::error::ApiError;
use crate::http::model::Model;
use crate::session::{Frame, FrameBody, TokenEntry};

/// Every choice of a request, complete.
#[derive(Debug)]
pub struct Answer {
    choices: Vec<ChoiceText>,
    usage: UsageObject,
}

#[derive(Clone, Debug, Default)]
struct ChoiceText {
    text: String,
    tokens: Vec<TokenEntry>,
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
                    choice.text.push_str(&delta.text);
                    choice.tokens.extend(delta.tokens);
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
                    message: Message { role: "assistant", content: &choice.text, refusal: None },
                    logprobs: logprobs.then(|| ChatLogprobs::new(model, &choice.tokens)),
                    finish_reason: finish_word(choice),
                });
                super::chunk::write_json(&mut out, &self.body("chat.completion", head, choices));
            }
            Shape::Completion => {
                let choices = self.indexed(|index, choice| CompletionChoice {
                    index,
                    text: &choice.text,
                    logprobs: logprobs.then(|| CompletionLogprobs::new(model, &choice.tokens)),
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
    content: &'a str,
    refusal: Option<()>,
}

#[derive(Serialize)]
struct CompletionChoice<'a> {
    index: usize,
    text: &'a str,
    logprobs: Option<CompletionLogprobs<'a>>,
    finish_reason: Option<&'static str>,
}
