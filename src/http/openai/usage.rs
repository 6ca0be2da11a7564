//! The `usage` object and the bookkeeping of a request's choices.

use serde::Serialize;

use crate::http::error::ApiError;
use crate::session::{FinishReason, Frame, FrameBody, Summary, Usage};

/// OpenAI's `usage`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct UsageObject {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    prompt_tokens_details: PromptDetails,
    completion_tokens_details: CompletionDetails,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct PromptDetails {
    cached_tokens: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct CompletionDetails {
    reasoning_tokens: u64,
}

/// Which choices of a request have ended, and what they cost.
#[derive(Clone, Debug)]
pub struct Tally {
    ended: Vec<Option<Usage>>,
    choices_per_prompt: usize,
}

/// A choice's end that a client may use.
pub type Finish = FinishReason;

impl Tally {
    /// For `prompts` times `choices_per_prompt` choices.
    pub fn new(prompts: usize, choices_per_prompt: u32) -> Self {
        let choices_per_prompt = (choices_per_prompt as usize).max(1);
        Self { ended: vec![None; prompts * choices_per_prompt], choices_per_prompt }
    }

    /// How many choices there are.
    pub fn choices(&self) -> usize {
        self.ended.len()
    }

    /// Whether a frame may come now: its choice exists and has not ended.
    pub fn check(&self, frame: &Frame) -> Result<(), ApiError> {
        match self.ended.get(frame.choice as usize) {
            Some(None) => Ok(()),
            Some(Some(_)) | None => {
                let done = matches!(frame.body, FrameBody::Done(_));
                tracing::error!(
                    choice = frame.choice,
                    done,
                    "a frame of a choice that is not open"
                );
                Err(ApiError::Internal)
            }
        }
    }

    /// Takes a choice's end. A choice that failed makes the whole request fail.
    pub fn finish(&mut self, choice: u32, summary: &Summary) -> Result<Finish, ApiError> {
        if let Some(error) = ApiError::of_outcome(&summary.outcome) {
            return Err(error);
        }
        if let Some(slot) = self.ended.get_mut(choice as usize) {
            *slot = Some(summary.usage);
        }
        summary.finish_reason().ok_or(ApiError::Internal)
    }

    /// Whether every choice has ended.
    pub fn is_complete(&self) -> bool {
        self.ended.iter().all(Option::is_some)
    }

    /// The sums: completion tokens over all choices, prompt tokens once for each prompt. A prompt's
    /// token counts as cached when no choice had to compute it.
    pub fn usage(&self) -> UsageObject {
        let mut prompt_tokens = 0;
        let mut cached_tokens = 0;
        let mut completion_tokens = 0;
        let mut reasoning_tokens = 0;
        for choices in self.ended.chunks(self.choices_per_prompt) {
            let ended = || choices.iter().flatten();
            prompt_tokens += ended().map(|u| u64::from(u.prompt_tokens)).max().unwrap_or(0);
            cached_tokens += ended().map(|u| u64::from(u.cached_tokens)).min().unwrap_or(0);
            completion_tokens += ended().map(|u| u64::from(u.completion_tokens)).sum::<u64>();
            reasoning_tokens += ended().map(|u| u64::from(u.reasoning_tokens)).sum::<u64>();
        }
        UsageObject {
            prompt_tokens,
            completion_tokens,
            total_tokens: prompt_tokens + completion_tokens,
            prompt_tokens_details: PromptDetails { cached_tokens },
            completion_tokens_details: CompletionDetails { reasoning_tokens },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Outcome, StopCause};
    use std::time::Duration;

    fn summary(prompt_tokens: u32, completion_tokens: u32, cached_tokens: u32) -> Summary {
        Summary {
            outcome: Outcome::Stop(StopCause::EndToken(0)),
            has_called: false,
            usage: Usage { prompt_tokens, completion_tokens, reasoning_tokens: 1, cached_tokens },
            queue_time: Duration::ZERO,
            time_to_first_token: None,
        }
    }

    #[test]
    fn prompts_count_once_and_answers_each() {
        let mut tally = Tally::new(2, 2);
        for (choice, summary) in
            [summary(10, 1, 4), summary(10, 2, 10), summary(5, 3, 0), summary(5, 4, 5)]
                .iter()
                .enumerate()
        {
            assert!(!tally.is_complete());
            tally.finish(choice as u32, summary).unwrap();
        }
        assert!(tally.is_complete());
        let usage = serde_json::to_value(tally.usage()).unwrap();
        assert_eq!(usage["prompt_tokens"], 15);
        assert_eq!(usage["completion_tokens"], 10);
        assert_eq!(usage["total_tokens"], 25);
        assert_eq!(usage["prompt_tokens_details"]["cached_tokens"], 4);
        assert_eq!(usage["completion_tokens_details"]["reasoning_tokens"], 4);
    }
}
