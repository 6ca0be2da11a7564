//! What a template can show, found by rendering small conversations with it.
//!
//! No list of model names: each question is a conversation that holds a marker word, and the answer
//! is whether the marker comes out. A template is asked once, when it is compiled.

use std::collections::HashSet;

use serde_json::{Map, Value, json};
use time::OffsetDateTime;

use super::render::{Engine, RenderInput};
use super::{TemplateError, tojson};

/// Marker words: no template holds them by itself.
const TEXT: &str = "qzTextqz";
const SYSTEM: &str = "qzSystemqz";
const TOOL: &str = "qzToolqz";
const SECOND_TOOL: &str = "qzSecondqz";
const KEY: &str = "qzKeyqz";
const VALUE: &str = "qzValueqz";
const RESULT: &str = "qzResultqz";

/// The form in which a template takes the arguments of a past tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentsForm {
    /// A JSON object.
    Object,
    /// The text of a JSON object.
    Text,
}

/// What stands for the content of a message that has only tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmptyContent {
    /// The empty string.
    Text,
    /// `null`.
    Null,
    /// No `content` key at all.
    Missing,
}

/// The key under which a template looks for the thinking of a past answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasoningKey {
    /// `reasoning_content`, the most common one.
    ReasoningContent,
    /// `reasoning`.
    Reasoning,
    /// `thinking`.
    Thinking,
}

impl ReasoningKey {
    /// The key itself.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReasoningContent => "reasoning_content",
            Self::Reasoning => "reasoning",
            Self::Thinking => "thinking",
        }
    }
}

/// What a template can show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateCaps {
    /// Content may be a string.
    pub text_content: bool,
    /// Content may be a list of parts.
    pub list_content: bool,
    /// Messages of the role `system` are shown.
    pub system_role: bool,
    /// Messages of the role `developer` are shown.
    pub developer_role: bool,
    /// A system message is also shown when it is not the first message.
    pub system_anywhere: bool,
    /// Two user messages may follow each other.
    pub repeated_roles: bool,
    /// The tools on offer are in the prompt.
    pub tools: bool,
    /// Past tool calls are in the prompt.
    pub tool_calls: bool,
    /// Several calls of one message are all in the prompt.
    pub parallel_tool_calls: bool,
    /// Messages of the role `tool` are shown.
    pub tool_role: bool,
    /// One message may have content, thinking and calls at once.
    pub content_with_reasoning_and_calls: bool,
    /// Form of the arguments of past calls.
    pub arguments: ArgumentsForm,
    /// Content of a message with calls only.
    pub empty_content: EmptyContent,
    /// Where the thinking of past answers is read; none where the template never does.
    pub reasoning_key: Option<ReasoningKey>,
    /// The variables that switch thinking, of those the template reads: `enable_thinking`, `thinking`,
    /// `reasoning_effort`, `thinking_budget`.
    pub thinking_variables: Vec<&'static str>,
}

impl TemplateCaps {
    /// Asks the template. An error only where it does not end within its limits.
    pub(super) fn probe(
        engine: &Engine,
        variables: &HashSet<String>,
        source: &str,
    ) -> Result<Self, TemplateError> {
        let ask = Ask { engine };
        let text_content = ask.shows(&[user(json!(TEXT))], &[TEXT])?;
        let parts = json!([{"type": "text", "text": TEXT}]);
        let list_content = match ask.render(&[user(parts)])? {
            // A template for strings may print the list itself.
            Some(text) => {
                text.contains(TEXT) && !text.contains("'type'") && !text.contains("\"type\"")
            }
            None => false,
        };
        let content = |text: &str| content_of(text, text_content || !list_content);
        let system = |role: &str| json!({"role": role, "content": content(SYSTEM)});
        let turns = [user(content("Hi")), assistant(content("Hi."))];
        let question = user(content(TEXT));
        let system_anywhere = ask.shows(
            &[turns[0].clone(), turns[1].clone(), system("system"), question.clone()],
            &[SYSTEM, TEXT],
        )?;
        let calls = CallProbes { ask: &ask, question: question.clone(), content: &content };
        let (arguments, empty_content, tool_calls) = calls.forms()?;
        Ok(Self {
            text_content,
            list_content,
            system_role: ask.shows(&[system("system"), question.clone()], &[SYSTEM, TEXT])?,
            // A template that prints every role shows this one too, but its model never saw it.
            developer_role: source.contains("developer")
                && ask.shows(&[system("developer"), question.clone()], &[SYSTEM, TEXT])?,
            system_anywhere,
            repeated_roles: ask.shows(&[user(content(VALUE)), question.clone()], &[VALUE, TEXT])?,
            tools: ask.shows_tools(std::slice::from_ref(&question))?,
            tool_calls,
            parallel_tool_calls: calls.parallel(arguments, empty_content)?,
            tool_role: calls.result(arguments, empty_content)?,
            content_with_reasoning_and_calls: calls.everything(arguments, source)?,
            arguments,
            empty_content,
            reasoning_key: reasoning_key(source),
            thinking_variables: [
                "enable_thinking",
                "thinking",
                "reasoning_effort",
                "thinking_budget",
            ]
            .into_iter()
            .filter(|name| variables.contains(*name))
            .collect(),
        })
    }
}

/// Renders probes. What a template refuses or fails on is an answer; running out of work is not.
struct Ask<'a> {
    engine: &'a Engine,
}

impl Ask<'_> {
    fn render(&self, messages: &[Value]) -> Result<Option<String>, TemplateError> {
        let tool = |name: &str| {
            json!({"type": "function", "function": {"name": name, "description": "A tool.",
                "parameters": {"type": "object", "properties": {KEY: {"type": "string", "description": "A key."}},
                    "required": [KEY]}}})
        };
        self.render_with(messages, Some(&[tool(TOOL), tool(SECOND_TOOL)]))
    }

    fn render_with(
        &self,
        messages: &[Value],
        tools: Option<&[Value]>,
    ) -> Result<Option<String>, TemplateError> {
        let input = RenderInput {
            messages,
            tools,
            documents: None,
            add_generation_prompt: true,
            kwargs: &Map::new(),
            bos_token: "",
            eos_token: "",
            now: OffsetDateTime::UNIX_EPOCH,
        };
        match self.engine.render(&input) {
            Ok(text) => Ok(Some(text)),
            Err(
                error @ (TemplateError::OutOfFuel { .. } | TemplateError::OutputTooLong { .. }),
            ) => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// Whether all `markers` are in the prompt of a conversation without tools.
    fn shows(&self, messages: &[Value], markers: &[&str]) -> Result<bool, TemplateError> {
        let text = self.render_with(messages, None)?;
        Ok(text.is_some_and(|text| markers.iter().all(|marker| text.contains(marker))))
    }

    fn shows_tools(&self, messages: &[Value]) -> Result<bool, TemplateError> {
        Ok(self.render(messages)?.is_some_and(|text| text.contains(TOOL)))
    }
}

/// The questions about past tool calls. Each ends with a result and tools on offer, since some
/// templates raise on a call that has neither.
struct CallProbes<'a> {
    ask: &'a Ask<'a>,
    question: Value,
    content: &'a dyn Fn(&str) -> Value,
}

impl CallProbes<'_> {
    /// The forms of arguments and empty content that show the call best, and whether any does.
    fn forms(&self) -> Result<(ArgumentsForm, EmptyContent, bool), TemplateError> {
        let mut fallback = None;
        for empty in [EmptyContent::Text, EmptyContent::Null, EmptyContent::Missing] {
            for form in [ArgumentsForm::Object, ArgumentsForm::Text] {
                match self.shown(form, empty)? {
                    Shown::Cleanly => return Ok((form, empty, true)),
                    Shown::Escaped => fallback = fallback.or(Some((form, empty, true))),
                    Shown::No => {}
                }
            }
        }
        Ok(fallback.unwrap_or((ArgumentsForm::Object, EmptyContent::Text, false)))
    }

    fn shown(&self, form: ArgumentsForm, empty: EmptyContent) -> Result<Shown, TemplateError> {
        // The tools on offer name the tool and the key too, so the value is what counts.
        let call = self.caller(&[call(TOOL, VALUE, form, 0)], empty);
        Ok(match self.ask.render(&[self.question.clone(), call, result(0)])? {
            Some(text) if text.contains(VALUE) => {
                // `{'key'` is Python's text of a dict: as wrong as a string escaped twice.
                let escaped =
                    text.contains(&format!("\\\"{KEY}")) || text.contains(&format!("{{'{KEY}"));
                if escaped { Shown::Escaped } else { Shown::Cleanly }
            }
            _ => Shown::No,
        })
    }

    fn parallel(&self, form: ArgumentsForm, empty: EmptyContent) -> Result<bool, TemplateError> {
        let calls = [call(TOOL, VALUE, form, 0), call(SECOND_TOOL, TEXT, form, 1)];
        let question = user((self.content)("Hi"));
        let messages = [question, self.caller(&calls, empty), result(0), result(1)];
        let text = self.ask.render(&messages)?;
        Ok(text.is_some_and(|text| text.contains(VALUE) && text.contains(TEXT)))
    }

    fn result(&self, form: ArgumentsForm, empty: EmptyContent) -> Result<bool, TemplateError> {
        let call = self.caller(&[call(TOOL, VALUE, form, 0)], empty);
        let text = self.ask.render(&[self.question.clone(), call, result(0)])?;
        Ok(text.is_some_and(|text| text.contains(RESULT)))
    }

    fn everything(&self, form: ArgumentsForm, source: &str) -> Result<bool, TemplateError> {
        let Some(key) = reasoning_key(source) else { return Ok(true) };
        let message = json!({"role": "assistant", "content": (self.content)("Hm."),
            key.as_str(): "Let me see.", "tool_calls": [call(TOOL, VALUE, form, 0)]});
        Ok(self.ask.render(&[self.question.clone(), message, result(0)])?.is_some())
    }

    fn caller(&self, calls: &[Value], empty: EmptyContent) -> Value {
        match empty {
            EmptyContent::Text => {
                json!({"role": "assistant", "content": (self.content)(""), "tool_calls": calls})
            }
            EmptyContent::Null => {
                json!({"role": "assistant", "content": null, "tool_calls": calls})
            }
            EmptyContent::Missing => json!({"role": "assistant", "tool_calls": calls}),
        }
    }
}

/// How a call's arguments came out.
enum Shown {
    Cleanly,
    Escaped,
    No,
}

fn content_of(text: &str, as_text: bool) -> Value {
    if as_text { json!(text) } else { json!([{"type": "text", "text": text}]) }
}

fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

fn assistant(content: Value) -> Value {
    json!({"role": "assistant", "content": content})
}

/// A call with an id of the nine letters and digits that Mistral's templates insist on.
fn call(name: &str, value: &str, form: ArgumentsForm, index: usize) -> Value {
    let arguments = json!({KEY: value});
    let arguments = match form {
        ArgumentsForm::Object => arguments,
        ArgumentsForm::Text => json!(tojson::dumps(&arguments)),
    };
    json!({"id": call_id(index), "type": "function",
        "function": {"name": name, "arguments": arguments}})
}

fn result(index: usize) -> Value {
    json!({"role": "tool", "tool_call_id": call_id(index), "name": TOOL, "content": RESULT})
}

fn call_id(index: usize) -> String {
    format!("call0000{index}")
}

/// The key that the template's text mentions: whether past thinking is shown depends on the turn, so
/// a render would not tell.
fn reasoning_key(source: &str) -> Option<ReasoningKey> {
    let mentions = |key: &str| {
        [format!(".{key}"), format!("'{key}'"), format!("\"{key}\"")]
            .iter()
            .any(|form| source.contains(form.as_str()))
    };
    if mentions("reasoning_content") {
        Some(ReasoningKey::ReasoningContent)
    } else if mentions("reasoning") {
        Some(ReasoningKey::Reasoning)
    } else if mentions("thinking") {
        Some(ReasoningKey::Thinking)
    } else {
        None
    }
}
