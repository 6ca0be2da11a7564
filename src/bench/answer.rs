//! One answer as it comes over the wire.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::BenchError;

/// A tool call, put together from its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The function.
    pub name: String,
    /// Its arguments, JSON.
    pub arguments: String,
}

/// What one stream brought, and when.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// From the request to the first of the answer.
    pub first: Duration,
    /// Between two events that brought more of it.
    pub gaps: Vec<Duration>,
    /// From the request to the end.
    pub wall: Duration,
    /// Tokens of the answer by the server's count, or the events where it does not count.
    pub tokens: u64,
    /// Tokens of the prompt by the server's count.
    pub prompt_tokens: u64,
    /// Of these, those that the server need not compute.
    pub cached_tokens: u64,
    /// The text, without reasoning.
    pub text: String,
    /// The calls.
    pub calls: Vec<Call>,
    /// Why it ended, in OpenAI's words.
    pub finish_reason: String,
}

/// Puts an answer together from its events.
#[derive(Debug)]
pub(super) struct Reader {
    started: Instant,
    last: Option<Instant>,
    answer: Answer,
    events: u64,
    is_done: bool,
}

impl Reader {
    pub(super) fn new(started: Instant) -> Self {
        let answer = Answer::default();
        Self { started, last: None, answer, events: 0, is_done: false }
    }

    /// Takes the data of one event that came `now`.
    pub(super) fn event(&mut self, data: &[u8], now: Instant) -> Result<(), BenchError> {
        if data == b"[DONE]" {
            self.is_done = true;
            return Ok(());
        }
        let event: Value = serde_json::from_slice(data)
            .map_err(|error| BenchError::Broken(format!("an event is not JSON: {error}")))?;
        if !event["error"].is_null() {
            return Err(BenchError::InStream(message(&event)));
        }
        self.usage(&event["usage"]);
        let choice = &event["choices"][0];
        if let Some(reason) = choice["finish_reason"].as_str() {
            reason.clone_into(&mut self.answer.finish_reason);
        }
        if self.take(choice) {
            self.events += 1;
            match self.last.replace(now) {
                Some(last) => self.answer.gaps.push(now - last),
                None => self.answer.first = now - self.started,
            }
        }
        Ok(())
    }

    fn usage(&mut self, usage: &Value) {
        let count = |value: &Value| value.as_u64().unwrap_or_default();
        if usage.is_object() {
            self.answer.tokens = count(&usage["completion_tokens"]);
            self.answer.prompt_tokens = count(&usage["prompt_tokens"]);
            self.answer.cached_tokens = count(&usage["prompt_tokens_details"]["cached_tokens"]);
        }
    }

    /// Takes what a choice brings; whether that is anything.
    fn take(&mut self, choice: &Value) -> bool {
        let delta = &choice["delta"];
        let said = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
        let text = choice["text"].as_str().or(delta["content"].as_str()).unwrap_or_default();
        self.answer.text.push_str(text);
        let calls = delta["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
        calls.iter().for_each(|part| self.call(part));
        let reasons = said(&delta["reasoning_content"]) || said(&delta["reasoning"]);
        !text.is_empty() || !calls.is_empty() || reasons
    }

    fn call(&mut self, part: &Value) {
        // A server that numbers calls by the million is not believed.
        const CALLS_MAX: usize = 1_024;
        let index = part["index"].as_u64().and_then(|index| usize::try_from(index).ok());
        let index = index.unwrap_or_default().min(CALLS_MAX);
        let calls = &mut self.answer.calls;
        calls.resize_with(calls.len().max(index + 1), Call::default);
        if let Some(call) = calls.get_mut(index) {
            call.name.push_str(part["function"]["name"].as_str().unwrap_or_default());
            call.arguments.push_str(part["function"]["arguments"].as_str().unwrap_or_default());
        }
    }

    /// The stream has ended.
    pub(super) fn finish(mut self, now: Instant) -> Result<Answer, BenchError> {
        if !self.is_done {
            return Err(BenchError::Broken("the stream ended without [DONE]".to_owned()));
        }
        self.answer.wall = now - self.started;
        if self.answer.tokens == 0 {
            self.answer.tokens = self.events;
        }
        Ok(self.answer)
    }
}

/// What an error object says.
pub(super) fn message(body: &Value) -> String {
    let error = &body["error"];
    error["message"].as_str().or(error.as_str()).map_or_else(|| body.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(events: &[Value]) -> Result<Answer, BenchError> {
        let start = Instant::now();
        let mut reader = Reader::new(start);
        let mut now = start;
        for event in events {
            now += Duration::from_millis(10);
            reader.event(event.to_string().as_bytes(), now)?;
        }
        reader.event(b"[DONE]", now)?;
        reader.finish(now)
    }

    fn delta(delta: Value) -> Value {
        json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
    }

    #[test]
    fn a_chat_answer_is_put_together() {
        let call = |part| delta(json!({"tool_calls": [part]}));
        let answer = read(&[
            delta(json!({"role": "assistant", "content": ""})),
            delta(json!({"reasoning_content": "Hm"})),
            delta(json!({"content": "Hel"})),
            delta(json!({"content": "lo"})),
            call(json!({"index": 0, "id": "x", "function": {"name": "f", "arguments": ""}})),
            call(json!({"index": 0, "function": {"arguments": "{}"}})),
            json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}),
            json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 7,
                   "prompt_tokens_details": {"cached_tokens": 4}}}),
        ])
        .unwrap();
        assert_eq!(answer.text, "Hello");
        assert_eq!(answer.calls, [Call { name: "f".to_owned(), arguments: "{}".to_owned() }]);
        assert_eq!((answer.prompt_tokens, answer.tokens, answer.cached_tokens), (9, 7, 4));
        assert_eq!(answer.finish_reason, "tool_calls");
        assert_eq!(answer.first, Duration::from_millis(20), "the role alone is no answer");
        assert_eq!(answer.gaps, [Duration::from_millis(10); 4]);
    }

    #[test]
    fn a_completion_without_usage_is_counted_by_its_events() {
        let text = |text| json!({"choices": [{"text": text}]});
        let answer = read(&[text("a"), text(""), text("b")]).unwrap();
        assert_eq!((answer.text.as_str(), answer.tokens), ("ab", 2));
    }

    #[test]
    fn errors_and_streams_that_break_off_are_no_answers() {
        let failed = read(&[json!({"error": {"message": "no"}})]).unwrap_err();
        assert_eq!(failed, BenchError::InStream("no".to_owned()));
        let now = Instant::now();
        assert!(matches!(Reader::new(now).finish(now), Err(BenchError::Broken(_))));
        assert!(matches!(Reader::new(now).event(b"{", now), Err(BenchError::Broken(_))));
    }
}
