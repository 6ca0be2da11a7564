//! The arguments of a JSON call: an object, or a string that holds the text of one.

use super::converter::Progress;
use super::json::Json;
use super::quoted::Quoted;

/// Arguments of which part has been read.
#[derive(Clone, Debug)]
pub(super) struct Arguments {
    state: State,
    object: Json,
}

#[derive(Clone, Debug)]
enum State {
    Start,
    Object,
    /// In a string in which nothing but whitespace has been read.
    Blank(Quoted),
    InString(Quoted),
    /// In `null`, of which these bytes are missing.
    InNull(&'static [u8]),
    Done,
    Broken,
}

impl Arguments {
    pub(super) fn new() -> Self {
        Self { state: State::Start, object: Json::new() }
    }

    pub(super) fn push(&mut self, text: &str, out: &mut String) -> Progress {
        let mut consumed = 0;
        loop {
            let rest = text.get(consumed..).unwrap_or_default();
            let Some(character) = rest.chars().next() else { break };
            let (next, bytes) = match std::mem::replace(&mut self.state, State::Broken) {
                State::Start => self.start(character),
                State::Object => match self.object.push(rest, out) {
                    Progress::Open => (State::Object, rest.len()),
                    Progress::Complete { consumed } => (State::Done, consumed),
                    Progress::Broken { consumed } => (State::Broken, consumed),
                },
                State::Blank(string) => self.in_string(string, State::Blank, character, out),
                State::InString(string) => self.in_string(string, State::InString, character, out),
                State::InNull([]) => {
                    out.push_str("{}");
                    (State::Done, 0)
                }
                State::InNull([next, missing @ ..]) if char::from(*next) == character => {
                    (State::InNull(missing), 1)
                }
                State::InNull(_) | State::Broken => (State::Broken, 0),
                State::Done => (State::Done, 0),
            };
            self.state = next;
            consumed += bytes;
            if matches!(self.state, State::Done | State::Broken) {
                break;
            }
        }
        match self.state {
            State::Done => Progress::Complete { consumed },
            State::Broken => Progress::Broken { consumed },
            _ => Progress::Open,
        }
    }

    /// The text has ended.
    pub(super) fn cut(&mut self, out: &mut String) -> Progress {
        if let State::InNull([]) = self.state {
            out.push_str("{}");
            self.state = State::Done;
        }
        self.push("", out)
    }

    fn start(&self, character: char) -> (State, usize) {
        match character {
            ' ' | '\n' | '\r' | '\t' => (State::Start, 1),
            '{' => (State::Object, 0),
            '"' => (State::Blank(Quoted::json()), 1),
            'n' => (State::InNull(b"ull"), 1),
            _ => (State::Broken, 0),
        }
    }

    /// One character of the string, decoded and read as JSON.
    fn in_string(
        &mut self,
        mut string: Quoted,
        before: fn(Quoted) -> State,
        character: char,
        out: &mut String,
    ) -> (State, usize) {
        let mut decoded = String::new();
        let taken = string.push(character.encode_utf8(&mut [0; 4]), &mut decoded);
        let is_blank = decoded.chars().all(|c| c.is_ascii_whitespace());
        let state = match before(string) {
            State::Blank(_) if taken.ended => {
                out.push_str("{}");
                State::Done
            }
            State::Blank(string) if is_blank => State::Blank(string),
            State::Blank(_) if !decoded.starts_with('{') => State::Broken,
            State::Blank(string) | State::InString(string) => {
                match self.object.push(&decoded, out) {
                    Progress::Broken { .. } => State::Broken,
                    Progress::Complete { consumed }
                        if !decoded.get(consumed..).unwrap_or_default().trim().is_empty() =>
                    {
                        State::Broken
                    }
                    Progress::Complete { .. } if taken.ended => State::Done,
                    Progress::Open if taken.ended => State::Broken,
                    _ => State::InString(string),
                }
            }
            other => other,
        };
        let bytes = if matches!(state, State::Broken) { 0 } else { taken.bytes };
        (state, bytes)
    }
}
