//! A chat answer as it is generated: reasoning, content and tool calls.

use std::sync::Arc;

use super::stops::{Scan, StopMatcher};
use super::{CallPart, Delta, StopCause};
use crate::TokenId;
use crate::chat::format::ChatFormat;
use crate::chat::parse::{self, ChatStream, ParseOptions};

/// How an answer is read as a chat message.
#[derive(Clone, Debug)]
pub struct ChatReading {
    /// How the model writes.
    pub format: Arc<ChatFormat>,
    /// What the request says about reading its answer.
    pub options: ParseOptions,
    /// Control tokens whose names are text to the format, ascending. All others are no text.
    pub markers: Arc<[TokenId]>,
    /// The answer ends with its first complete call.
    pub one_call: bool,
}

/// Reads an answer letter by letter, so that neither the fields nor the place of a stop depend on
/// how the text was cut.
///
/// Stop strings are looked for in the content alone: neither reasoning nor the text of calls ends
/// an answer.
pub struct Reader {
    stream: ChatStream,
    one_call: bool,
}

impl Reader {
    /// A reader before the first letter.
    pub fn new(reading: &ChatReading) -> Self {
        let stream = ChatStream::new(&reading.format, reading.options.clone());
        Self { stream, one_call: reading.one_call }
    }

    /// Reads on. The cause is why the answer is over; what was read after it is not told. Unless
    /// `may_stop`, nothing ends it.
    pub fn push(
        &mut self,
        text: &str,
        stops: &mut StopMatcher,
        may_stop: bool,
    ) -> (Delta, Option<StopCause>) {
        let mut told = Delta::default();
        if !may_stop {
            tell(self.stream.push(text), &mut told, &mut StopMatcher::new(Vec::new(), false));
            return (told, None);
        }
        let mut bytes = [0; 4];
        for letter in text.chars() {
            let news = self.stream.push(letter.encode_utf8(&mut bytes));
            if let Some(stop) = tell(news, &mut told, stops) {
                return (told, Some(StopCause::StopString(stop)));
            }
            if self.one_call && self.has_called() {
                return (told, Some(StopCause::OneCall));
            }
        }
        (told, None)
    }

    /// The answer is over: what may have been the start of a marker is what it looks like.
    pub fn finish(&mut self, stops: &mut StopMatcher) -> Delta {
        let mut told = Delta::default();
        tell(self.stream.finish(), &mut told, stops);
        told
    }

    /// Whether what comes next is reasoning, as far as can be told.
    pub fn is_reasoning(&self) -> bool {
        self.stream.is_reasoning()
    }

    /// Whether there are calls, each with all of its arguments.
    pub fn has_called(&self) -> bool {
        self.stream.calls_are_complete()
    }
}

/// Puts news into a delta; the stop string that the content came to, if it did.
fn tell(news: Vec<parse::Delta>, told: &mut Delta, stops: &mut StopMatcher) -> Option<String> {
    for part in news {
        match part {
            parse::Delta::Reasoning(text) => told.reasoning.push_str(&text),
            parse::Delta::Content(text) => match stops.push(&text) {
                Scan::Text(text) => told.text.push_str(&text),
                Scan::Stopped { text, stop } => {
                    told.text.push_str(&text);
                    return Some(stop);
                }
            },
            parse::Delta::CallBegin { index, id, name } => {
                told.push_call(CallPart::Begin { index, id, name });
            }
            parse::Delta::CallArguments { index, json } => {
                told.push_call(CallPart::Arguments { index, json });
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::formats::named;
    use crate::chat::parse::ToolSet;
    use crate::sampling::{DryBreakers, SamplingParams};
    use crate::session::{Generation, LogprobsRequest, Outcome, Session, StopRules, Summary, Then};
    use crate::vocab::{Token, TokenKind, Vocabulary};
    use serde_json::json;
    use std::time::Duration;

    const OPEN: TokenId = 256;
    const CLOSE: TokenId = 257;
    const END: TokenId = 259;

    /// Bytes, and control tokens.
    fn vocabulary() -> Arc<Vocabulary> {
        let text = |byte: u8| Token { bytes: vec![byte], kind: TokenKind::Text };
        let control = |name: &str| Token { bytes: name.into(), kind: TokenKind::Control };
        let names = ["<tool_call>", "</tool_call>", "<|noise|>", "<|end|>"];
        let tokens = (0..=255).map(text).chain(names.into_iter().map(control)).collect();
        Arc::new(Vocabulary::new(tokens, &[END], None))
    }

    fn generation(tools: &[&str]) -> Generation {
        let tool = |name: &&str| json!({"type": "function", "function": {"name": name}});
        let tools: Vec<_> = tools.iter().map(tool).collect();
        let options =
            ParseOptions { tools: ToolSet::from_request(&tools).into(), ..Default::default() };
        let reading = ChatReading {
            format: Arc::new(named("hermes_json").unwrap()),
            options,
            markers: [OPEN, CLOSE].into(),
            one_call: false,
        };
        Generation {
            choice: 0,
            prompt: [1].into(),
            max_tokens: 1000,
            min_tokens: 0,
            sampling: SamplingParams::default(),
            dry_breakers: DryBreakers::none(),
            seed: 0,
            logprobs: None,
            stop: StopRules::default(),
            constraint: None,
            reading: Some(reading),
            echo: false,
        }
    }

    /// The text in tokens: those names are tokens, `$` is the end.
    fn tokens(text: &str) -> Vec<TokenId> {
        let text = text.replace("<tool_call>", "\u{1}").replace("</tool_call>", "\u{2}");
        let text = text.replace("<|noise|>", "\u{3}").replace('$', "\u{4}");
        let token = |byte: u8| match byte {
            1..=4 => TokenId::from(byte) + OPEN - 1,
            byte => byte.into(),
        };
        text.bytes().map(token).collect()
    }

    /// All that the answer said, and how it ended.
    fn answer(generation: Generation, text: &str) -> (Delta, Summary) {
        let mut session = Session::new(generation, vocabulary(), 260);
        let mut said = Delta::default();
        for token in tokens(text) {
            let mut row = vec![0.0; 260];
            row[token as usize] = 8.0;
            let progress = session.on_rows(&[row], true);
            said.extend(progress.delta.unwrap_or_default());
            if let Then::End(outcome) = progress.then {
                let summary = Summary {
                    outcome,
                    has_called: session.has_called(),
                    usage: session.usage(),
                    queue_time: Duration::ZERO,
                    time_to_first_token: None,
                };
                return (said, summary);
            }
        }
        panic!("the answer did not end: {said:?}");
    }

    fn arguments(said: &Delta) -> Vec<&str> {
        let part = |part| match part {
            &CallPart::Begin { .. } => None,
            CallPart::Arguments { json, .. } => Some(json.as_str()),
        };
        said.calls.iter().filter_map(part).collect()
    }

    fn finish(summary: &Summary) -> &'static str {
        summary.finish_reason().unwrap().as_str()
    }

    const CALL: &str = "<tool_call>\n{\"name\": \"dim\", \"arguments\": {\"a\": 1}}\n</tool_call>";

    #[test]
    fn markers_that_are_control_tokens_are_read_and_others_are_no_text() {
        let (said, summary) = answer(generation(&["dim"]), &format!("a<|noise|>b {CALL}$"));
        assert_eq!((said.text.as_str(), finish(&summary)), ("ab", "tool_calls"));
        assert_eq!(arguments(&said), ["{\"a\": 1}"]);
        let (said, summary) = answer(generation(&[]), &format!("{CALL}<|noise|>$"));
        assert_eq!((said.text.as_str(), finish(&summary)), (CALL, "stop"));
        let plain = Generation { reading: None, ..generation(&[]) };
        assert!(!answer(plain, &format!("{CALL}$")).0.text.contains("tool_call"));
    }

    #[test]
    fn stop_strings_end_content_and_neither_reasoning_nor_calls() {
        let mut request = generation(&["dim"]);
        request.stop.strings = vec!["END".to_owned()];
        let text = "<think>the END of x</think>ok EN";
        let (said, summary) = answer(request.clone(), &format!("{text}D more$"));
        assert_eq!(summary.usage.reasoning_tokens, 1 + 12 + 8, "text and markers, by letters");
        assert_eq!((said.reasoning.as_str(), said.text.as_str()), ("the END of x", "ok "));
        assert_eq!(summary.outcome, Outcome::Stop(StopCause::StopString("END".to_owned())));
        let (said, _) = answer(request.clone(), &format!("{text}$"));
        assert_eq!(said.text, "ok EN", "nothing that was held back is lost");
        let called = CALL.replace("1", "\"END\"");
        let (said, summary) = answer(request, &format!("{called}$"));
        assert_eq!((arguments(&said), finish(&summary)), (vec!["{\"a\": \"END\"}"], "tool_calls"));
    }

    #[test]
    fn nothing_ends_an_answer_before_min_tokens() {
        let mut request = generation(&["dim"]);
        request.stop.strings = vec!["b".to_owned()];
        request.min_tokens = 3;
        assert_eq!(answer(request, "abaxb$").0.text, "abax");
    }

    #[test]
    fn where_one_call_is_asked_for_the_answer_ends_with_it() {
        let mut request = generation(&["dim"]);
        if let Some(reading) = &mut request.reading {
            reading.one_call = true;
        }
        let (said, summary) = answer(request, &format!("So: {CALL}{CALL}$"));
        assert_eq!((arguments(&said).len(), said.text.as_str()), (1, "So:"));
        assert_eq!(summary.outcome, Outcome::Stop(StopCause::OneCall));
        assert_eq!(finish(&summary), "tool_calls");
    }

    #[test]
    fn a_cut_answer_keeps_what_it_has_and_ends_with_length() {
        let up_to = |text: &str| {
            let cut = CALL.find(text).unwrap() + text.len();
            let max_tokens = u32::try_from(tokens(&CALL[..cut]).len()).unwrap();
            let (said, summary) =
                answer(Generation { max_tokens, ..generation(&["dim"]) }, &format!("{CALL}$"));
            assert_eq!(finish(&summary), "length");
            said
        };
        assert_eq!(arguments(&up_to("\"a\": ")), ["{\"a\": "]);
        assert_eq!(arguments(&up_to("1}}")), ["{\"a\": 1}"]);
        let early = up_to("{\"na");
        assert_eq!((early.text.as_str(), early.calls.len()), ("<tool_call>\n{\"na", 0));
    }

    #[test]
    fn tokens_are_reported_unless_a_stop_takes_them() {
        let mut request = generation(&["dim"]);
        request.logprobs = Some(LogprobsRequest { top: 0 });
        let (said, _) = answer(request.clone(), &format!("<think>a</think>b{CALL}$"));
        assert_eq!(said.tokens.len(), tokens(&format!("<think>a</think>b{CALL}")).len());
        request.stop.strings = vec!["xyz".to_owned()];
        let (said, _) = answer(request, "abxyz$");
        let told: Vec<u8> = said.tokens.iter().map(|entry| entry.token as u8).collect();
        assert_eq!(told, b"ab");
    }
}
