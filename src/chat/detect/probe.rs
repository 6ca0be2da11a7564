//! What a template renders of small conversations.

use serde_json::{Map, Value, json};
use time::OffsetDateTime;

use crate::chat::format::Reasoning;
use crate::chat::template::{ChatTemplate, RenderInput};

/// Stands for the model's end-of-sequence token, which is no extra stop.
const EOS: &str = "\u{e000}eos\u{e000}";
/// An answer that no template holds by itself.
const ANSWER: &str = "qzAnswerqz";

/// What a template renders. A conversation that it refuses tells nothing.
pub(super) struct Probe {
    /// A conversation with two past calls.
    calls: String,
    /// A conversation without.
    plain: String,
    /// What the generation prompt adds: by default, and with thinking switched on and off.
    prefills: Vec<String>,
}

impl Probe {
    pub(super) fn ask(template: &ChatTemplate) -> Self {
        let ask = Ask { template };
        let calls = ask
            .render(&conversation(2), true, &Map::new())
            .or_else(|| ask.render(&conversation(1), true, &Map::new()));
        let turns = [user("Hi"), json!({"role": "assistant", "content": ANSWER}), user("Hm.")];
        let prefills = [None, Some(true), Some(false)]
            .into_iter()
            .filter_map(|thinking| ask.prefill(&thinking.map_or_else(Map::new, switches)));
        Self {
            calls: calls.unwrap_or_default(),
            plain: ask.render(&turns, false, &Map::new()).unwrap_or_default(),
            prefills: prefills.collect(),
        }
    }

    /// Everything that was rendered.
    pub(super) fn texts(&self) -> Vec<&str> {
        let prefills = self.prefills.iter().map(String::as_str);
        [self.calls.as_str(), self.plain.as_str()].into_iter().chain(prefills).collect()
    }

    /// What the generation prompt adds by default.
    pub(super) fn prefill(&self) -> &str {
        self.prefills.first().map_or("", |prefill| prefill)
    }

    /// Whether the generation prompt opens the reasoning whatever it is told.
    pub(super) fn always_opens(&self, reasoning: &Reasoning) -> bool {
        self.prefills.len() == 3
            && self.prefills.iter().all(|prefill| {
                let open = prefill.rfind(reasoning.open.as_ref());
                open.is_some() && open > prefill.rfind(reasoning.close.as_ref())
            })
    }

    /// What comes after an answer; none where that is the end-of-sequence token.
    pub(super) fn after_content(&self) -> Option<&str> {
        let (_, tail) = self.plain.rsplit_once(ANSWER)?;
        (!tail.trim_start().starts_with(EOS)).then_some(tail)
    }
}

struct Ask<'a> {
    template: &'a ChatTemplate,
}

impl Ask<'_> {
    fn render(
        &self,
        messages: &[Value],
        with_tools: bool,
        kwargs: &Map<String, Value>,
    ) -> Option<String> {
        let messages = self.template.prepare(messages, None).ok()?;
        let tools = tools();
        self.template.render(&input(&messages, with_tools.then_some(&tools), kwargs)).ok()
    }

    fn prefill(&self, kwargs: &Map<String, Value>) -> Option<String> {
        let messages = self.template.prepare(&[user("Hi")], None).ok()?;
        self.template.generation_prefill(&input(&messages, None, kwargs)).ok()
    }
}

fn input<'a>(
    messages: &'a [Value],
    tools: Option<&'a [Value; 2]>,
    kwargs: &'a Map<String, Value>,
) -> RenderInput<'a> {
    RenderInput {
        messages,
        tools: tools.map(<[Value; 2]>::as_slice),
        documents: None,
        add_generation_prompt: true,
        kwargs,
        bos_token: "",
        eos_token: EOS,
        now: OffsetDateTime::UNIX_EPOCH,
    }
}

/// The variables that switch thinking in the templates that have a switch.
fn switches(on: bool) -> Map<String, Value> {
    ["enable_thinking", "thinking"].into_iter().map(|name| (name.to_owned(), on.into())).collect()
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

/// A question, an answer with thinking and this many calls, and their results.
fn conversation(calls: usize) -> Vec<Value> {
    let call = |index: usize| {
        json!({"id": format!("call0000{index}"), "type": "function",
            "function": {"name": format!("qzTool{index}"), "arguments": {"qzKey": "qzValue"}}})
    };
    let result = |index: usize| {
        json!({"role": "tool", "tool_call_id": format!("call0000{index}"),
            "name": format!("qzTool{index}"), "content": "Done."})
    };
    let answer = json!({"role": "assistant", "content": ANSWER, "reasoning_content": "Hm.",
        "tool_calls": (0..calls).map(call).collect::<Vec<_>>()});
    [user("Hi"), answer].into_iter().chain((0..calls).map(result)).collect()
}

fn tools() -> [Value; 2] {
    ["qzTool0", "qzTool1"].map(|name| {
        json!({"type": "function", "function": {"name": name, "description": "A tool.",
            "parameters": {"type": "object",
                "properties": {"qzKey": {"type": "string", "description": "A key."}},
                "required": ["qzKey"]}}})
    })
}
