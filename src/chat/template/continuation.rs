//! The end of a prompt: what opens the assistant's turn, and prompts that end inside an answer.

use super::render::{ChatTemplate, RenderInput};
use super::{TemplateError, python_text};

impl ChatTemplate {
    /// The text that `add_generation_prompt` adds for this conversation: what the model continues.
    ///
    /// Rendered both ways, so it holds for every template: the part of the prompt with the opening
    /// that comes after all that both have in common. Where the template opens the turn in any case,
    /// it is empty.
    pub fn generation_prefill(&self, input: &RenderInput) -> Result<String, TemplateError> {
        let with = self.render(&RenderInput { add_generation_prompt: true, ..*input })?;
        let without = self.render(&RenderInput { add_generation_prompt: false, ..*input })?;
        let shared: usize = with
            .chars()
            .zip(without.chars())
            .take_while(|(a, b)| a == b)
            .map(|(a, _)| a.len_utf8())
            .sum();
        Ok(with.get(shared..).unwrap_or_default().to_owned())
    }

    /// The prompt that ends inside the last message, for the model to go on with it
    /// (`continue_final_message`).
    ///
    /// The prompt is cut right after that message's text, as `transformers` does. An error where the
    /// last message is not an assistant's with text, or the template changes the text.
    pub fn render_continued(&self, input: &RenderInput) -> Result<String, TemplateError> {
        let refuse = |reason: &str| TemplateError::Unsupported {
            field: "continue_final_message",
            reason: reason.to_owned(),
        };
        let last = input.messages.last().ok_or_else(|| refuse("there are no messages"))?;
        if last.get("role").and_then(serde_json::Value::as_str) != Some("assistant") {
            return Err(refuse("the last message is not of the role assistant"));
        }
        let text = last_text(last).ok_or_else(|| refuse("the last message has no text"))?;
        let left_trimmed = text.trim_start_matches(python_text::is_space);
        let trimmed = left_trimmed.trim_end_matches(python_text::is_space);
        if trimmed.is_empty() {
            return Err(refuse("the last message has no text"));
        }
        let prompt = self.render(&RenderInput { add_generation_prompt: false, ..*input })?;
        let start = prompt
            .rfind(trimmed)
            .ok_or_else(|| refuse("this model's chat template changes the last message's text"))?;
        let keeps_spaces = prompt.get(start..).is_some_and(|rest| rest.starts_with(left_trimmed));
        let length = if keeps_spaces { left_trimmed.len() } else { trimmed.len() };
        Ok(prompt.get(..start + length).unwrap_or(&prompt).to_owned())
    }
}

/// The message's text: its content, or its last text part.
fn last_text(message: &serde_json::Value) -> Option<&str> {
    let content = message.get("content")?;
    match content {
        serde_json::Value::Array(parts) => {
            parts.iter().rev().find_map(|part| part.get("text")?.as_str())
        }
        _ => content.as_str(),
    }
}
