//! JSON, checked and passed through.

use super::converter::{MAX_DEPTH, Progress};
use super::json_string::JsonString;
use super::number::Number;

/// A JSON value of which part has been read.
#[derive(Clone, Debug)]
pub(super) struct Json {
    state: State,
    open: Vec<Bracket>,
    /// A number or word that waits for its end.
    held: String,
}

#[derive(Clone, Debug)]
enum State {
    /// Nothing but whitespace has been read.
    Start,
    /// A value must come.
    Value,
    /// After `[`: a value or `]`.
    FirstItem,
    /// After `{`: a name or `}`.
    FirstName,
    /// After a comma in an object.
    Name,
    Colon,
    /// In brackets, after a value.
    After,
    InName(JsonString),
    InString(JsonString),
    InNumber(Number),
    /// In `true`, `false` or `null`, of which these bytes are missing.
    InWord(&'static [u8]),
    Done,
    Broken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bracket {
    Array,
    Object,
}

/// Bytes taken of the text at hand; `None` where its first byte cannot be.
type Step = Option<usize>;

impl Json {
    pub(super) fn new() -> Self {
        Self { state: State::Start, open: Vec::new(), held: String::new() }
    }

    pub(super) fn push(&mut self, text: &str, out: &mut String) -> Progress {
        let mut consumed = 0;
        loop {
            match self.state {
                State::Done => return Progress::Complete { consumed },
                State::Broken => return Progress::Broken { consumed },
                _ => {}
            }
            let Some(&byte) = text.as_bytes().get(consumed) else { return Progress::Open };
            match self.step(byte, text.get(consumed..).unwrap_or_default(), out) {
                Some(bytes) => consumed += bytes,
                None => self.state = State::Broken,
            }
        }
    }

    /// The text has ended: a number or word on its own may be whole.
    pub(super) fn cut(&mut self, out: &mut String) -> Progress {
        let is_whole = match &self.state {
            State::InNumber(number) => number.is_whole(),
            State::InWord(missing) => missing.is_empty(),
            _ => false,
        };
        if is_whole && self.open.is_empty() {
            self.end_word(out);
        }
        self.push("", out)
    }

    fn step(&mut self, byte: u8, rest: &str, out: &mut String) -> Step {
        match &mut self.state {
            State::InString(string) => {
                let taken = string.push(rest, out);
                if taken.ended {
                    self.value_ended();
                }
                Some(taken.bytes)
            }
            State::InName(string) => {
                let taken = string.push(rest, out);
                if taken.ended {
                    self.state = State::Colon;
                }
                Some(taken.bytes)
            }
            State::InNumber(number) => match number.next(byte) {
                Some(next) => {
                    self.state = State::InNumber(next);
                    self.hold(byte)
                }
                None if number.is_whole() && ends_word(byte) => self.end_word(out),
                None => None,
            },
            State::InWord(missing) => match missing.split_first() {
                Some((next, missing)) if *next == byte => {
                    self.state = State::InWord(missing);
                    self.hold(byte)
                }
                None if ends_word(byte) => self.end_word(out),
                _ => None,
            },
            State::Start if is_whitespace(byte) => Some(1),
            _ if is_whitespace(byte) => self.write(byte, out),
            _ => self.structure(byte, out),
        }
    }

    /// A byte outside strings, words and whitespace.
    fn structure(&mut self, byte: u8, out: &mut String) -> Step {
        let innermost = self.open.last().copied();
        match (&self.state, byte) {
            (State::FirstItem, b']') | (State::FirstName, b'}') => return self.close(byte, out),
            (State::After, b']') if innermost == Some(Bracket::Array) => {
                return self.close(byte, out);
            }
            (State::After, b'}') if innermost == Some(Bracket::Object) => {
                return self.close(byte, out);
            }
            (State::After, b',') => {
                self.state = match innermost {
                    Some(Bracket::Object) => State::Name,
                    _ => State::Value,
                };
            }
            (State::Colon, b':') => self.state = State::Value,
            (State::FirstName | State::Name, b'"') => {
                self.state = State::InName(JsonString::default());
            }
            (State::Start | State::Value | State::FirstItem, _) => return self.value(byte, out),
            _ => return None,
        }
        self.write(byte, out)
    }

    /// The first byte of a value.
    fn value(&mut self, byte: u8, out: &mut String) -> Step {
        match byte {
            b'"' => self.state = State::InString(JsonString::default()),
            b'{' | b'[' if self.open.len() >= MAX_DEPTH => return None,
            b'{' => {
                self.open.push(Bracket::Object);
                self.state = State::FirstName;
            }
            b'[' => {
                self.open.push(Bracket::Array);
                self.state = State::FirstItem;
            }
            b't' => return self.word(b"rue", byte),
            b'f' => return self.word(b"alse", byte),
            b'n' => return self.word(b"ull", byte),
            _ => match Number::start(byte) {
                Some(number) => {
                    self.state = State::InNumber(number);
                    return self.hold(byte);
                }
                None => return None,
            },
        }
        self.write(byte, out)
    }

    fn word(&mut self, missing: &'static [u8], byte: u8) -> Step {
        self.state = State::InWord(missing);
        self.hold(byte)
    }

    fn hold(&mut self, byte: u8) -> Step {
        self.held.push(char::from(byte));
        Some(1)
    }

    fn write(&self, byte: u8, out: &mut String) -> Step {
        out.push(char::from(byte));
        Some(1)
    }

    fn close(&mut self, byte: u8, out: &mut String) -> Step {
        self.open.pop();
        self.value_ended();
        self.write(byte, out)
    }

    fn end_word(&mut self, out: &mut String) -> Step {
        self.flush(out);
        self.value_ended();
        Some(0)
    }

    fn flush(&mut self, out: &mut String) {
        out.push_str(&self.held);
        self.held.clear();
    }

    fn value_ended(&mut self) {
        self.state = if self.open.is_empty() { State::Done } else { State::After };
    }
}

fn is_whitespace(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

/// Whether a number or word can end before this byte: `truex` and `03` are mistakes, not values
/// with something behind them.
fn ends_word(byte: u8) -> bool {
    !(byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'+' | b'-'))
}
