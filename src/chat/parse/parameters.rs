//! Arguments that are written as a block a parameter.

use super::call::{Call, Took, Verdict};
use super::literal::{Match, SPACE_MAX, first_word, match_any, match_text};
use super::machine::Machine;
use crate::chat::arguments::{DeclaredTypes, Members, TypedText};
use crate::chat::format::{Parameters, Text, ToolSyntax, Typing, Wrapping};

/// Longest name of a parameter, in bytes.
const KEY_MAX: usize = 512;

/// Reads the parameters of one call.
#[derive(Clone, Debug, Default)]
pub(super) struct ParametersReader {
    state: State,
    members: Members,
    /// What was read and may be the start of what comes next.
    held: String,
    key: String,
}

#[derive(Clone, Debug, Default)]
enum State {
    /// Before a parameter or the end.
    #[default]
    Between,
    Key,
    KeyEnd,
    Type,
    TypeEnd,
    Value(Box<TypedText>),
}

impl ParametersReader {
    /// Bytes that may be read again.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// One letter of the piece at `at` of the call.
    pub(super) fn letter(
        &mut self,
        machine: &mut Machine,
        call: &mut Call,
        shape: &Parameters,
        syntax: &ToolSyntax,
        at: usize,
        letter: char,
    ) -> Took {
        self.held.push(letter);
        match std::mem::take(&mut self.state) {
            State::Between => self.between(machine, call, shape, syntax, at),
            State::Key => {
                self.state = State::Key;
                self.word(&shape.name_end, State::KeyEnd)
            }
            State::KeyEnd => self.key_end(machine, call, shape),
            State::Type => {
                self.state = State::Type;
                match &shape.typing {
                    Typing::Schema => Took::No { back: 0 },
                    Typing::StringFlag(end) | Typing::TypeName(end) => {
                        self.word(end, State::TypeEnd)
                    }
                }
            }
            State::TypeEnd => self.type_end(machine, call, shape),
            State::Value(value) => self.value(machine, call, shape, syntax, at, value),
        }
    }

    fn between(
        &mut self,
        machine: &mut Machine,
        call: &mut Call,
        shape: &Parameters,
        syntax: &ToolSyntax,
        at: usize,
    ) -> Took {
        let mut may_come = match match_text(&shape.open, &self.held) {
            Match::Full(length) => {
                machine.decide(call, 0);
                let back = self.held.len() - length.min(self.held.len());
                self.held.clear();
                self.key.clear();
                self.state = State::Key;
                // The opener ends with the letter that was read last: nothing is left over.
                return if back == 0 { Took::More } else { Took::No { back: 0 } };
            }
            Match::More => true,
            Match::No => false,
        };
        // Any text that follows in the call ends the parameters, should one before it be missing.
        for (index, piece) in syntax.call.iter().enumerate().skip(at + 1) {
            match match_any(piece.texts(), &self.held) {
                Match::Full(_) => {
                    machine.decide(call, 0);
                    let mut out = String::new();
                    std::mem::take(&mut self.members).end(&mut out);
                    machine.add_arguments(call, &out);
                    machine.complete(call);
                    return Took::Skip { to: index, back: std::mem::take(&mut self.held).len() };
                }
                Match::More => may_come = true,
                Match::No => {}
            }
        }
        if may_come {
            self.state = State::Between;
            return Took::More;
        }
        Took::No { back: std::mem::take(&mut self.held).len() }
    }

    /// A letter of a name or a type, which the first letter of `end` ends.
    fn word(&mut self, end: &Text, then: State) -> Took {
        let letter = self.held.chars().next_back();
        if letter.is_some() && letter == end.trim_start().chars().next() {
            let length = letter.map_or(0, char::len_utf8);
            let rest = self.held.split_off(self.held.len() - length);
            self.key_or_type(&then);
            self.held = rest;
            self.state = then;
            // A text of one letter is complete with it.
            return Took::More;
        }
        if self.held.len() > KEY_MAX { Took::No { back: 0 } } else { Took::More }
    }

    /// Keeps the word that was read: a name until its value, a type in its place in `held`.
    fn key_or_type(&mut self, then: &State) {
        let word = std::mem::take(&mut self.held);
        match then {
            State::KeyEnd => word.trim().clone_into(&mut self.key),
            _ => {
                self.key.push('\0');
                self.key.push_str(word.trim());
            }
        }
    }

    fn key_end(&mut self, machine: &mut Machine, call: &mut Call, shape: &Parameters) -> Took {
        let _ = (machine, call, shape);
        Took::No { back: 0 }
    }

    fn type_end(&mut self, machine: &mut Machine, call: &mut Call, shape: &Parameters) -> Took {
        let _ = (machine, call, shape);
        Took::No { back: 0 }
    }

    fn value(
        &mut self,
        machine: &mut Machine,
        call: &mut Call,
        shape: &Parameters,
        syntax: &ToolSyntax,
        at: usize,
        value: Box<TypedText>,
    ) -> Took {
        let _ = (machine, call, shape, syntax, at, value, SPACE_MAX, first_word("x"));
        let _ = (Verdict::Unknown, DeclaredTypes::unknown(), Wrapping::None);
        Took::No { back: 0 }
    }
}
