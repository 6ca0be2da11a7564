//! What is asked: a workload makes the n-th request, always the same one.

use serde_json::{Value, json};

use super::texts::{QUESTIONS, long_text};
use super::{Endpoint, Expectation, Request};

/// What kind of requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Workload {
    /// Short questions with free answers.
    Chat,
    /// Answers held to a JSON schema, one of four.
    Schema,
    /// Questions with two tools to call.
    Tools,
    /// Short questions after one long system prompt, the same for all.
    LongPrefix,
    /// All of these in turn.
    Mixed,
}

/// A workload with its sizes.
#[derive(Clone, Debug)]
pub struct Shape {
    /// What is asked.
    pub workload: Workload,
    /// The model's name.
    pub model: String,
    /// Tokens of an answer at most; none: as suits the workload.
    pub max_tokens: Option<u32>,
    /// Words of the long system prompt.
    pub prefix_words: usize,
    /// Fields that every request has besides, in place of its own.
    pub extra: Value,
    /// Number of the first request: loads that follow each other ask different things.
    pub first: usize,
}

impl Workload {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Schema => "schema",
            Self::Tools => "tools",
            Self::LongPrefix => "long-prefix",
            Self::Mixed => "mixed",
        }
    }

    /// The kind of the n-th request.
    fn of(self, index: usize) -> Self {
        const TURNS: [Workload; 4] =
            [Workload::Chat, Workload::Schema, Workload::Tools, Workload::LongPrefix];
        if self == Self::Mixed { TURNS[index % TURNS.len()] } else { self }
    }

    /// Tokens that an answer may have unless something else is wished.
    fn max_tokens(self) -> u32 {
        match self {
            Self::Chat | Self::Mixed | Self::Tools => 128,
            Self::Schema => 256,
            Self::LongPrefix => 32,
        }
    }
}

impl Shape {
    /// The n-th request.
    pub fn request(&self, index: usize) -> Request {
        let index = self.first + index;
        let kind = self.workload.of(index);
        // In turns of different kinds each kind has its own count.
        let nth = if self.workload == Workload::Mixed { index / 4 } else { index };
        let max_tokens = self.max_tokens.unwrap_or(kind.max_tokens());
        let request = match kind {
            Workload::Chat | Workload::Mixed => chat(nth),
            Workload::Schema => schema(nth),
            Workload::Tools => tools(nth),
            Workload::LongPrefix => long_prefix(nth, self.prefix_words),
        };
        let common = json!({"model": self.model, "max_tokens": max_tokens, "temperature": 0});
        request.with(&common).with(&self.extra)
    }
}

fn question(index: usize) -> String {
    let asked = QUESTIONS[index % QUESTIONS.len()];
    // No two requests are the same: an answer that is only remembered measures nothing.
    if index < QUESTIONS.len() { asked.to_owned() } else { format!("Question {index}: {asked}") }
}

fn ask(messages: &Value) -> Request {
    Request::new(Endpoint::Chat, json!({"messages": messages}))
}

fn chat(index: usize) -> Request {
    ask(&json!([{"role": "user", "content": question(index)}]))
}

fn long_prefix(index: usize, words: usize) -> Request {
    let system = format!("You answer in one short sentence. {}", long_text(1, words));
    ask(&json!([{"role": "system", "content": system},
                {"role": "user", "content": question(index)}]))
}

fn schema(index: usize) -> Request {
    let forms = forms();
    let (task, schema) = &forms[index % forms.len()];
    let content = format!("{task} (number {index}) as JSON.");
    let format = json!({"type": "json_schema",
                        "json_schema": {"name": "answer", "strict": true, "schema": schema}});
    let mut request = ask(&json!([{"role": "user", "content": content}]));
    request.body["response_format"] = format;
    request.expectation = Expectation::Schema(schema.to_string().into());
    request
}

fn object(properties: Value) -> Value {
    let names: Vec<&String> =
        properties.as_object().into_iter().flat_map(|map| map.keys()).collect();
    json!({"type": "object", "required": names, "properties": properties,
           "additionalProperties": false})
}

/// Tasks with the schemas of their answers: bounded, so that an answer fits its tokens.
fn forms() -> [(&'static str, Value); 4] {
    let text = |most: u32| json!({"type": "string", "minLength": 1, "maxLength": most});
    let number =
        |least: u32, most: u32| json!({"type": "integer", "minimum": least, "maximum": most});
    let list =
        |items: Value| json!({"type": "array", "items": items, "minItems": 1, "maxItems": 3});
    [
        (
            "Describe a person",
            object(json!({"name": text(30), "age": number(0, 120), "city": text(20),
                          "hobbies": list(text(16)), "member": {"type": "boolean"}})),
        ),
        (
            "Describe an order of a shop",
            object(json!({
                "order_number": number(1, 99_999),
                "items": list(object(json!({"article": text(20), "quantity": number(1, 99)}))),
                "payment": {"enum": ["card", "invoice", "cash"]},
                "delivered": {"type": "boolean"}
            })),
        ),
        (
            "Write a review of a hotel",
            object(json!({"sentiment": {"enum": ["positive", "neutral", "negative"]},
                          "stars": number(1, 5), "summary": text(80),
                          "would_recommend": {"type": "boolean"}})),
        ),
        (
            "Describe a meeting",
            object(json!({
                "title": text(40),
                "date": object(json!({"year": number(2000, 2100), "month": number(1, 12),
                                      "day": number(1, 31)})),
                "attendees": list(text(20)),
                "priority": {"enum": ["low", "normal", "high"]}
            })),
        ),
    ]
}

fn tools(index: usize) -> Request {
    let city = ["Paris", "Oslo", "Lima", "Cairo"][index % 4];
    let content = match index % 2 {
        0 => format!("What is the weather in {city} on day {index}?"),
        _ => format!("Remind me in {} minutes to call {city}.", index + 10),
    };
    let offered = [
        (
            "get_weather",
            "The weather of a place.",
            object(json!({
                "city": {"type": "string", "maxLength": 40},
                "unit": {"enum": ["celsius", "fahrenheit"]}
            })),
        ),
        (
            "set_reminder",
            "Reminds of something later.",
            object(json!({
                "minutes": {"type": "integer", "minimum": 1, "maximum": 1440},
                "text": {"type": "string", "maxLength": 60}
            })),
        ),
    ];
    let list: Vec<Value> = offered
        .iter()
        .map(|(name, description, parameters)| {
            json!({"type": "function", "function":
                   {"name": name, "description": description, "parameters": parameters}})
        })
        .collect();
    let mut request = ask(&json!([{"role": "user", "content": content}]));
    request.body["tools"] = list.into();
    request.body["tool_choice"] = "auto".into();
    let schemas = offered.map(|(name, _, schema)| (name.to_owned(), schema.to_string()));
    request.expectation = Expectation::Calls(schemas.into());
    request
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::bench::{Answer, Verdict};

    fn shape(workload: Workload) -> Shape {
        let extra = json!({"temperature": 0.5, "seed": 3});
        Shape {
            workload,
            model: "m".to_owned(),
            max_tokens: None,
            prefix_words: 300,
            extra,
            first: 0,
        }
    }

    #[test]
    fn every_request_differs_and_says_what_was_wished() {
        use Workload::{Chat, LongPrefix, Mixed, Schema, Tools};
        for workload in [Chat, Schema, Tools, LongPrefix, Mixed] {
            let shape = shape(workload);
            let bodies: Vec<Value> = (0..64).map(|index| shape.request(index).body).collect();
            let distinct: HashSet<String> = bodies.iter().map(Value::to_string).collect();
            assert_eq!(distinct.len(), 64, "{workload:?}");
            for body in &bodies {
                assert_eq!((&body["model"], &body["stream"]), (&"m".into(), &true.into()));
                assert_eq!((&body["temperature"], &body["seed"]), (&0.5.into(), &3.into()));
                assert!(body["max_tokens"].as_u64().is_some_and(|most| most >= 32));
            }
        }
    }

    #[test]
    fn the_long_prefix_is_shared_and_long() {
        let prefix = |index| {
            let body = shape(Workload::LongPrefix).request(index).body;
            body["messages"][0]["content"].as_str().unwrap().to_owned()
        };
        assert_eq!(prefix(0), prefix(9));
        assert!(prefix(0).split(' ').count() >= 300);
    }

    #[test]
    fn each_form_has_an_answer_that_satisfies_it() {
        let right = [
            json!({"name": "A", "age": 3, "city": "B", "hobbies": ["c"], "member": true}),
            json!({"order_number": 7, "items": [{"article": "a", "quantity": 2}],
                   "payment": "card", "delivered": false}),
            json!({"sentiment": "neutral", "stars": 3, "summary": "s", "would_recommend": true}),
            json!({"title": "t", "date": {"year": 2026, "month": 1, "day": 2},
                   "attendees": ["a"], "priority": "low"}),
        ];
        for (index, right) in right.iter().enumerate() {
            let expectation = shape(Workload::Schema).request(index).expectation;
            let judged = |text: String| expectation.judge(&Answer { text, ..Answer::default() });
            assert_eq!(judged(right.to_string()), Verdict::Valid, "{right}");
            assert!(matches!(judged("{}".to_owned()), Verdict::Invalid(_)));
        }
    }
}
