//! The inside of a JSON string, passed through and mended.

use super::write::escape;

/// A JSON string whose opening quote has been read and written.
#[derive(Clone, Debug, Default)]
pub(super) struct JsonString {
    state: State,
    /// `\uD8xx` that waits for its second half.
    high: Option<Unit>,
}

#[derive(Clone, Debug, Default)]
enum State {
    #[default]
    Plain,
    Backslash,
    /// The hexadecimal digits after `\u`.
    Unicode(String),
}

/// An escape of four hexadecimal digits, as written.
type Unit = String;

/// How much of a piece of text belonged to the string, and whether it ended there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) bytes: usize,
    pub(super) ended: bool,
}

impl JsonString {
    /// Appends what is certain of `text`, the closing quote included.
    pub(super) fn push(&mut self, text: &str, out: &mut String) -> Taken {
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            let step = match std::mem::take(&mut self.state) {
                State::Plain => match character {
                    '"' => {
                        self.give_up_half(out);
                        out.push('"');
                        return Taken { bytes: text.len() - rest.len() + 1, ended: true };
                    }
                    '\\' => {
                        self.state = State::Backslash;
                        1
                    }
                    _ => self.plain(rest, out),
                },
                State::Backslash => self.escape(character, out),
                State::Unicode(digits) => self.unicode(digits, character, out),
            };
            rest = rest.get(step..).unwrap_or_default();
        }
        Taken { bytes: text.len(), ended: false }
    }

    /// A run of characters that mean themselves.
    fn plain(&mut self, rest: &str, out: &mut String) -> usize {
        self.give_up_half(out);
        let length = rest.find(['"', '\\']).unwrap_or(rest.len());
        escape(rest.get(..length).unwrap_or_default(), out);
        length
    }

    /// The character after a backslash. One that makes no escape is left for the next step.
    fn escape(&mut self, character: char, out: &mut String) -> usize {
        match character {
            'u' => {
                self.state = State::Unicode(String::new());
                return 1;
            }
            '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' => {
                self.give_up_half(out);
                out.push('\\');
                out.push(character);
                return 1;
            }
            _ => self.give_up_half(out),
        }
        if character != '\'' {
            out.push_str("\\\\");
        }
        0
    }

    fn unicode(&mut self, mut digits: String, character: char, out: &mut String) -> usize {
        if !character.is_ascii_hexdigit() {
            self.give_up_half(out);
            out.push_str("\\\\u");
            out.push_str(&digits);
            return 0;
        }
        digits.push(character);
        if digits.len() < 4 {
            self.state = State::Unicode(digits);
        } else {
            self.unit(digits, out);
        }
        1
    }

    /// A whole `\uXXXX`, written as it came unless it is half a surrogate pair.
    fn unit(&mut self, digits: Unit, out: &mut String) {
        match u32::from_str_radix(&digits, 16) {
            Ok(0xd800..=0xdbff) => {
                self.give_up_half(out);
                self.high = Some(digits);
            }
            Ok(0xdc00..=0xdfff) => match self.high.take() {
                Some(high) => {
                    for unit in [high, digits] {
                        out.push_str("\\u");
                        out.push_str(&unit);
                    }
                }
                None => out.push(char::REPLACEMENT_CHARACTER),
            },
            _ => {
                self.give_up_half(out);
                out.push_str("\\u");
                out.push_str(&digits);
            }
        }
    }

    /// The other half of the surrogate pair did not come.
    fn give_up_half(&mut self, out: &mut String) {
        if self.high.take().is_some() {
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }
}
