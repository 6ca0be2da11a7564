//! A JSON object that holds a call.

use super::call::{Call, Took, Verdict};
use super::machine::Machine;
use crate::chat::arguments::{Converter, Dialect, Progress};
use crate::chat::format::{Envelope, Marker, Member, Place};

/// Longest key, name or id in its quotes, in bytes.
const TEXT_MAX: usize = 1024;

/// Reads the object, member by member, in any order.
#[derive(Clone, Debug, Default)]
pub(super) struct EnvelopeReader {
    state: State,
    name: Option<String>,
    has_arguments: bool,
}

#[derive(Clone, Debug, Default)]
enum State {
    #[default]
    Start,
    /// Before a key or the end.
    Key,
    InKey(Text),
    Colon(Holds),
    Arguments(Box<Converter>),
    /// A name, an id, or what is of no interest.
    Value(Holds, Text),
    AfterValue,
}

/// What a member's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Member(Member),
    Other,
}

/// What the format says of the object.
#[derive(Clone, Copy)]
pub(super) struct Frame<'a> {
    pub(super) shape: &'a Envelope,
    /// Whether it stands behind a marker, or at the start of an answer that may be any JSON.
    pub(super) place: Place,
}

/// A JSON value of which only what it says matters.
#[derive(Clone, Debug)]
struct Text {
    converter: Box<Converter>,
    json: String,
    /// Whether the text is kept.
    kept: bool,
}

impl Text {
    fn new(kept: bool) -> Self {
        let converter = Box::new(Converter::new(Dialect::Json));
        Self { converter, json: String::new(), kept }
    }

    fn push(&mut self, letter: &str) -> Progress {
        if !self.kept {
            self.json.clear();
        }
        self.converter.push(letter, &mut self.json)
    }

    fn string(&self) -> Option<String> {
        serde_json::from_str(&self.json).ok()
    }
}

impl EnvelopeReader {
    pub(super) fn letter(
        &mut self,
        machine: &mut Machine,
        call: &mut Call,
        frame: Frame,
        letter: char,
    ) -> Took {
        let mut bytes = [0; 4];
        let text: &str = letter.encode_utf8(&mut bytes);
        let no = Took::No { back: text.len() };
        match std::mem::take(&mut self.state) {
            State::Start if letter == '{' => self.state = State::Key,
            State::Start if letter.is_whitespace() => {}
            State::Start => return no,
            State::Key if letter.is_whitespace() => self.state = State::Key,
            State::Key if letter == '}' => return self.end(machine, call, frame),
            State::Key if letter == '"' => {
                let mut key = Text::new(true);
                key.push(text);
                self.state = State::InKey(key);
            }
            State::Key => return no,
            State::InKey(key) => return self.key_letter(machine, call, frame, key, text),
            State::Colon(holds) if letter.is_whitespace() => self.state = State::Colon(holds),
            State::Colon(holds) if letter == ':' => self.state = self.value_of(holds),
            State::Colon(_) => return no,
            State::Arguments(converter) => {
                return self.arguments_letter(machine, call, frame, converter, text);
            }
            State::Value(holds, value) => {
                return self.value_letter(machine, call, frame, holds, value, text);
            }
            State::AfterValue => match letter {
                ',' => self.state = State::Key,
                '}' => return self.end(machine, call, frame),
                letter if letter.is_whitespace() => self.state = State::AfterValue,
                _ => return no,
            },
        }
        Took::More
    }

    /// The text has ended: what only waited for its end.
    pub(super) fn cut(&mut self, out: &mut String) {
        if let State::Arguments(converter) = &mut self.state {
            converter.cut(out);
        }
    }

    fn value_of(&mut self, holds: Holds) -> State {
        match holds {
            Holds::Member(Member::Arguments) if !self.has_arguments => {
                self.has_arguments = true;
                State::Arguments(Box::new(Converter::json_arguments()))
            }
            Holds::Member(Member::Arguments) | Holds::Other => {
                State::Value(Holds::Other, Text::new(false))
            }
            Holds::Member(_) => State::Value(holds, Text::new(true)),
        }
    }

    fn key_letter(
        &mut self,
        machine: &mut Machine,
        call: &mut Call,
        frame: Frame,
        mut key: Text,
        letter: &str,
    ) -> Took {
        match key.push(letter) {
            Progress::Open if key.json.len() <= TEXT_MAX => {
                self.state = State::InKey(key);
                Took::More
            }
            Progress::Complete { .. } => {
                let Some(name) = key.string() else { return Took::No { back: letter.len() } };
                let holds = match frame.shape {
                    Envelope::Members(members) => holds(members, &name),
                    Envelope::NameIsKey if self.name.is_some() => Holds::Other,
                    Envelope::NameIsKey => {
                        self.set_name(machine, call, name);
                        Holds::Member(Member::Arguments)
                    }
                };
                // Any JSON object may be an answer: only one that starts as a call is held back.
                let starts_call = holds != Holds::Other || key.json == "\"type\"";
                if frame.place == Place::Start && !starts_call && self.name.is_none() {
                    return Took::No { back: 0 };
                }
                self.state = State::Colon(holds);
                Took::More
            }
            Progress::Open | Progress::Broken { .. } => Took::No { back: letter.len() },
        }
    }

    fn value_letter(
        &mut self,
        machine: &mut Machine,
        call: &mut Call,
        frame: Frame,
        holds: Holds,
        mut value: Text,
        letter: &str,
    ) -> Took {
        match value.push(letter) {
            Progress::Open if !value.kept || value.json.len() <= TEXT_MAX => {
                self.state = State::Value(holds, value);
                Took::More
            }
            Progress::Complete { consumed } => {
                match (holds, value.string()) {
                    (Holds::Member(Member::Name), Some(name)) => {
                        self.set_name(machine, call, name);
                    }
                    (Holds::Member(Member::Name), None) => {
                        return Took::No { back: letter.len() };
                    }
                    (Holds::Member(Member::Id), Some(id)) => call.id = Some(id),
                    _ => {}
                }
                self.state = State::AfterValue;
                // A number ends before the letter that shows its end.
                if consumed == 0 { self.again(machine, call, frame, letter) } else { Took::More }
            }
            Progress::Open | Progress::Broken { .. } => Took::No { back: letter.len() },
        }
    }

    /// Reads a letter after a value that ended before it.
    fn again(
        &mut self,
        machine: &mut Machine,
        call: &mut Call,
        frame: Frame,
        letter: &str,
    ) -> Took {
        match letter {
            "," => self.state = State::Key,
            "}" => return self.end(machine, call, frame),
            letter if letter.trim().is_empty() => {}
            letter => return Took::No { back: letter.len() },
        }
        Took::More
    }

    fn arguments_letter(
        &mut self,
        machine: &mut Machine,
        call: &mut Call,
        frame: Frame,
        mut converter: Box<Converter>,
        letter: &str,
    ) -> Took {
        let mut out = String::new();
        let progress = converter.push(letter, &mut out);
        machine.add_arguments(call, &out);
        if !out.is_empty() && self.name.is_some() {
            machine.decide(call);
        }
        match progress {
            Progress::Open => {
                self.state = State::Arguments(converter);
                Took::More
            }
            Progress::Complete { consumed } => {
                self.state = State::AfterValue;
                machine.complete(call);
                if consumed == 0 { self.again(machine, call, frame, letter) } else { Took::More }
            }
            Progress::Broken { .. } => Took::No { back: letter.len() },
        }
    }

    /// The name has been read. One that nobody offers settles the matter at once; otherwise the
    /// arguments do, unless they were first.
    fn set_name(&mut self, machine: &mut Machine, call: &mut Call, name: String) {
        if self.name.is_some() {
            return;
        }
        call.name.clone_from(&name);
        let is_known = machine.options.tools.contains(&name);
        self.name = Some(name);
        let came_late = self.has_arguments;
        if !is_known || came_late {
            machine.decide(call);
            if came_late {
                machine.complete(call);
            }
        }
    }

    fn end(&mut self, machine: &mut Machine, call: &mut Call, frame: Frame) -> Took {
        if call.verdict == Verdict::Undecided {
            // Without arguments a bare object is an answer like any other.
            if self.name.is_none() || frame.place == Place::Start {
                return Took::No { back: 0 };
            }
            machine.decide(call);
        }
        if !self.has_arguments {
            machine.add_arguments(call, "{}");
            machine.complete(call);
        }
        Took::Done { back: 0 }
    }
}

fn holds(members: &[Marker], key: &str) -> Holds {
    let known = members.iter().find(|marker| marker.keys.iter().any(|one| one == key));
    known.map_or(Holds::Other, |marker| Holds::Member(marker.member))
}
