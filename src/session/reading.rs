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
