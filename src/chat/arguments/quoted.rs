//! The inside of a string between quotes, decoded to the text it stands for.

use super::json_string::Taken;

/// What a backslash does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Escapes {
    /// As in Python. What is no escape stays as it is, backslash and all.
    Python,
    /// As in a Python string with the prefix `r`.
    Raw,
    /// As in JSON, and `\'`. What is no escape stays as it is.
    Json,
}

/// How a string ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    /// At the next quote.
    One,
    /// At three quotes in a row.
    Three,
}

/// A string whose first quote has been read.
#[derive(Clone, Debug)]
pub(super) struct Quoted {
    quote: char,
    escapes: Escapes,
    closing: Closing,
    state: State,
    /// The first half of a surrogate pair.
    high: Option<u32>,
}

#[derive(Clone, Debug)]
enum State {
    /// One quote has been read: two more make a string of three.
    Opened,
    OpenedTwice,
    Plain,
    Backslash,
    /// The digits after `\x`, `\u` or `\U`.
    Hexadecimal {
        letter: char,
        digits: String,
    },
    /// The value of one or two digits after a backslash.
    Octal {
        value: u32,
        digits: u8,
    },
    /// Quotes in a row within a string that ends at three.
    Quotes(u8),
    Ended,
}

/// Whether the character at hand has been read or is looked at again in the new state.
#[derive(PartialEq, Eq)]
enum Step {
    Read,
    Again,
}

impl Quoted {
    /// A string of a language without triple quotes.
    pub(super) fn json() -> Self {
        Self {
            quote: '"',
            escapes: Escapes::Json,
            closing: Closing::One,
            state: State::Plain,
            high: None,
        }
    }

    /// A Python string, of one or three of this quote.
    pub(super) fn python(quote: char, escapes: Escapes) -> Self {
        Self { quote, escapes, closing: Closing::One, state: State::Opened, high: None }
    }

    /// Appends to `decoded` what is certain of `text`.
    pub(super) fn push(&mut self, text: &str, decoded: &mut String) -> Taken {
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            let run = self.plain_run(rest);
            if run > 0 {
                self.give_up_half(decoded);
                decoded.push_str(rest.get(..run).unwrap_or_default());
                rest = rest.get(run..).unwrap_or_default();
                continue;
            }
            let step = self.step(character, decoded);
            if step == Step::Read {
                rest = rest.get(character.len_utf8()..).unwrap_or_default();
            }
            if matches!(self.state, State::Ended) {
                return Taken { bytes: text.len() - rest.len(), ended: true };
            }
        }
        Taken { bytes: text.len(), ended: false }
    }

    /// Whether the string is whole if no more text comes: after `""`, which might have opened a
    /// string of three quotes.
    pub(super) fn is_empty_if_cut(&self) -> bool {
        matches!(self.state, State::OpenedTwice)
    }

    /// Bytes at the start of the text that mean themselves.
    fn plain_run(&self, rest: &str) -> usize {
        match self.state {
            State::Plain => rest.find([self.quote, '\\']).unwrap_or(rest.len()),
            _ => 0,
        }
    }

    fn step(&mut self, character: char, decoded: &mut String) -> Step {
        match std::mem::replace(&mut self.state, State::Plain) {
            State::Opened if character == self.quote => self.state = State::OpenedTwice,
            State::OpenedTwice if character == self.quote => self.closing = Closing::Three,
            State::OpenedTwice => {
                self.state = State::Ended;
                return Step::Again;
            }
            State::Opened => return Step::Again,
            State::Plain if character == self.quote => self.close(1, decoded),
            State::Plain if character == '\\' => self.state = State::Backslash,
            State::Plain => self.character(character, decoded),
            State::Quotes(count) if character == self.quote => self.close(count + 1, decoded),
            State::Quotes(count) => {
                self.give_up_half(decoded);
                decoded.extend(std::iter::repeat_n(self.quote, usize::from(count)));
                return Step::Again;
            }
            State::Backslash => return self.escape(character, decoded),
            State::Hexadecimal { letter, digits } => {
                return self.hexadecimal(letter, digits, character, decoded);
            }
            State::Octal { value, digits } => match character.to_digit(8) {
                Some(digit) if digits == 2 => self.unit(value * 8 + digit, decoded),
                Some(digit) => self.state = State::Octal { value: value * 8 + digit, digits: 2 },
                None => {
                    self.unit(value, decoded);
                    return Step::Again;
                }
            },
            State::Ended => self.state = State::Ended,
        }
        Step::Read
    }

    fn close(&mut self, quotes: u8, decoded: &mut String) {
        if self.closing == Closing::One || quotes == 3 {
            self.give_up_half(decoded);
            self.state = State::Ended;
        } else {
            self.state = State::Quotes(quotes);
        }
    }

    /// The character after a backslash.
    fn escape(&mut self, character: char, decoded: &mut String) -> Step {
        let python = self.escapes == Escapes::Python;
        let meaning = match character {
            _ if self.escapes == Escapes::Raw => {
                decoded.push('\\');
                character
            }
            'x' | 'U' if python => return self.digits_follow(character),
            'u' => return self.digits_follow(character),
            '0'..='7' if python => {
                let value = character.to_digit(8).unwrap_or_default();
                self.state = State::Octal { value, digits: 1 };
                return Step::Read;
            }
            '\n' if python => return Step::Read,
            '\\' | '"' | '\'' => character,
            '/' if !python => '/',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'b' => '\x08',
            'f' => '\x0c',
            'a' if python => '\x07',
            'v' if python => '\x0b',
            _ => {
                self.character('\\', decoded);
                return Step::Again;
            }
        };
        self.character(meaning, decoded);
        Step::Read
    }

    fn digits_follow(&mut self, letter: char) -> Step {
        self.state = State::Hexadecimal { letter, digits: String::new() };
        Step::Read
    }

    fn hexadecimal(
        &mut self,
        letter: char,
        mut digits: String,
        character: char,
        decoded: &mut String,
    ) -> Step {
        if !character.is_ascii_hexdigit() {
            self.character('\\', decoded);
            decoded.push(letter);
            decoded.push_str(&digits);
            return Step::Again;
        }
        digits.push(character);
        let wanted = match letter {
            'x' => 2,
            'u' => 4,
            _ => 8,
        };
        if digits.len() < wanted {
            self.state = State::Hexadecimal { letter, digits };
        } else {
            self.unit(u32::from_str_radix(&digits, 16).unwrap_or(u32::MAX), decoded);
        }
        Step::Read
    }

    /// A character by its number, which may be half a surrogate pair.
    fn unit(&mut self, value: u32, decoded: &mut String) {
        match (value, self.high) {
            (0xd800..=0xdbff, _) => {
                self.give_up_half(decoded);
                self.high = Some(value);
            }
            (0xdc00..=0xdfff, Some(high)) => {
                self.high = None;
                let pair = 0x10000 + ((high - 0xd800) << 10) + (value - 0xdc00);
                decoded.push(char::from_u32(pair).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            _ => self
                .character(char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER), decoded),
        }
    }

    fn character(&mut self, character: char, decoded: &mut String) {
        self.give_up_half(decoded);
        decoded.push(character);
    }

    fn give_up_half(&mut self, decoded: &mut String) {
        if self.high.take().is_some() {
            decoded.push(char::REPLACEMENT_CHARACTER);
        }
    }
}
