//! The prompt of a request, and the part of it that the answer continues.

use super::template::{ChatTemplate, RenderInput, TemplateError};

/// A prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// All of it.
    pub text: String,
    /// Its end: from where the assistant's turn opens. Parser and grammar start with it.
    pub prefill: String,
    /// Whether it ends inside the assistant's message.
    pub continues: bool,
}

/// The prompt of `input`, or with `continue_final_message` the one that ends inside the last message.
pub fn prompt(
    template: &ChatTemplate,
    input: &RenderInput,
    continue_final_message: bool,
) -> Result<Prompt, TemplateError> {
    if continue_final_message {
        let text = template.render_continued(input)?;
        let before = input.messages.len().saturating_sub(1);
        let messages = input.messages.get(..before).unwrap_or_default();
        // A template may refuse to open without the last message: then all of it is looked at.
        let opening = RenderInput { messages, add_generation_prompt: false, ..*input };
        let start = template.render(&opening).map_or(0, |start| shared_bytes(&text, &start));
        let prefill = text.get(start..).unwrap_or_default().to_owned();
        return Ok(Prompt { text, prefill, continues: true });
    }
    let text = template.render(input)?;
    let prefill = if input.add_generation_prompt {
        let without = template.render(&RenderInput { add_generation_prompt: false, ..*input })?;
        text.get(shared_bytes(&text, &without)..).unwrap_or_default().to_owned()
    } else {
        String::new()
    };
    Ok(Prompt { text, prefill, continues: false })
}

/// Bytes that both start with, whole characters only.
fn shared_bytes(one: &str, other: &str) -> usize {
    let same = one.chars().zip(other.chars()).take_while(|(a, b)| a == b);
    same.map(|(letter, _)| letter.len_utf8()).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};
    use time::OffsetDateTime;

    use super::*;

    const TURNS: &str = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}\
                         {% if add_generation_prompt %}<|assistant|><think>{% endif %}";

    fn prompt_of(messages: &[Value], continues: bool) -> Prompt {
        let template = ChatTemplate::compile(TURNS).unwrap();
        let input = RenderInput {
            messages,
            tools: None,
            documents: None,
            add_generation_prompt: !continues,
            kwargs: &Map::new(),
            bos_token: "",
            eos_token: "",
            now: OffsetDateTime::UNIX_EPOCH,
        };
        prompt(&template, &input, continues).unwrap()
    }

    #[test]
    fn the_prefill_is_what_opens_the_turn() {
        let user = json!({"role": "user", "content": "Hi"});
        let opened = prompt_of(std::slice::from_ref(&user), false);
        assert_eq!(opened.text, "<|user|>Hi<|end|><|assistant|><think>");
        assert_eq!((opened.prefill.as_str(), opened.continues), ("<|assistant|><think>", false));
        let said = json!({"role": "assistant", "content": "<think>Hm.</think>It is"});
        let going_on = prompt_of(&[user, said], true);
        assert_eq!(going_on.prefill, "<|assistant|><think>Hm.</think>It is");
        assert!(going_on.continues);
    }
}
