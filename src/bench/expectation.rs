//! Whether an answer is what was asked for.

use std::sync::Arc;

use super::{Answer, Call};
use crate::grammar::json_schema::{Document, Json, SchemaError, SchemaOptions};
use crate::grammar::{Fuel, Limits};

/// What an answer has to be.
#[derive(Clone, Debug)]
pub enum Expectation {
    /// Any text.
    Text,
    /// JSON that satisfies this schema.
    Schema(Arc<str>),
    /// Any text, or calls of these functions, each with the schema of its arguments.
    Calls(Arc<[(String, String)]>),
}

/// What an answer turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing was demanded of it.
    Free,
    /// It is what was demanded.
    Valid,
    /// It ran out of tokens before it was complete.
    Cut,
    /// It is something else.
    Invalid(String),
}

impl Expectation {
    /// Holds an answer against what was asked for.
    pub fn judge(&self, answer: &Answer) -> Verdict {
        let verdict = match self {
            Self::Text => return Verdict::Free,
            Self::Schema(schema) => satisfies(schema, &answer.text),
            Self::Calls(_) if answer.calls.is_empty() => return Verdict::Free,
            Self::Calls(functions) => {
                answer.calls.iter().try_for_each(|call| is_legal(call, functions))
            }
        };
        match verdict {
            Ok(()) => Verdict::Valid,
            Err(_) if answer.finish_reason == "length" => Verdict::Cut,
            Err(why) => Verdict::Invalid(why),
        }
    }
}

fn is_legal(call: &Call, functions: &[(String, String)]) -> Result<(), String> {
    let function = functions.iter().find(|(name, _)| *name == call.name);
    let (name, schema) = function.ok_or_else(|| format!("there is no function {:?}", call.name))?;
    satisfies(schema, &call.arguments).map_err(|why| format!("{name}: {why}"))
}

fn satisfies(schema: &str, text: &str) -> Result<(), String> {
    let value = Json::parse(text).map_err(|error| format!("not JSON: {error}: {text}"))?;
    let in_words = |error: SchemaError| error.to_string();
    let mut fuel = Fuel::new(Limits::default().compile_steps_max);
    let mut document =
        Document::parse(schema, &SchemaOptions::default(), &mut fuel).map_err(in_words)?;
    let root = document.root();
    match document.accepts(&root, &value, &mut fuel).map_err(in_words)? {
        true => Ok(()),
        false => Err(format!("the schema does not allow {text}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"{"type": "object", "required": ["n"],
        "properties": {"n": {"type": "integer", "maximum": 5}}, "additionalProperties": false}"#;

    fn judged(text: &str, finish_reason: &str) -> Verdict {
        let (text, finish_reason) = (text.to_owned(), finish_reason.to_owned());
        let answer = Answer { text, finish_reason, ..Answer::default() };
        Expectation::Schema(SCHEMA.into()).judge(&answer)
    }

    #[test]
    fn answers_are_held_against_their_schema() {
        assert_eq!(judged("{\"n\": 5}", "stop"), Verdict::Valid);
        assert_eq!(judged("{\"n\": ", "length"), Verdict::Cut);
        for wrong in ["{\"n\": 6}", "{\"n\": 5, \"m\": 1}", "{}", "five", "{\"n\": "] {
            assert!(matches!(judged(wrong, "stop"), Verdict::Invalid(_)), "{wrong}");
        }
    }

    #[test]
    fn calls_are_of_known_functions_with_legal_arguments() {
        let expected = Expectation::Calls([("f".to_owned(), SCHEMA.to_owned())].into());
        let judged = |name: &str, arguments: &str| {
            let call = Call { name: name.to_owned(), arguments: arguments.to_owned() };
            expected.judge(&Answer { calls: vec![call], ..Answer::default() })
        };
        assert_eq!(judged("f", "{\"n\": 1}"), Verdict::Valid);
        assert!(matches!(judged("f", "{}"), Verdict::Invalid(_)));
        assert!(matches!(judged("g", "{\"n\": 1}"), Verdict::Invalid(_)));
        assert_eq!(expected.judge(&Answer::default()), Verdict::Free);
    }
}
