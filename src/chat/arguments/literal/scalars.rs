//! Words and strings within a literal.

use super::super::delimited::Delimited;
use super::super::json_string::Taken;
use super::super::quoted::Escapes;
use super::super::syntax::{Syntax, python_string, string_prefix};
use super::super::typed::TypedText;
use super::super::word::{write_key, write_word};
use super::super::write::{escape, write_string};
use super::{Bracket, Literal, Role, State, Step};
use crate::grammar::json_schema::DeclaredTypes;

impl Literal {
    /// The state after an opening delimiter.
    pub(super) fn in_delimited(
        &mut self,
        role: Role,
        string: Delimited,
        out: &mut String,
    ) -> State {
        if let Some(schema) = &self.schema
            && role == Role::Value
            && self.open == [Bracket::Dict]
        {
            let declared = DeclaredTypes::of_parameter(schema, &self.key);
            if !declared.is_unknown() {
                return State::Typed(string, Box::new(TypedText::new(declared)));
            }
        }
        self.sink.of(out).push('"');
        State::Delimited(role, string)
    }

    pub(super) fn in_word(
        &mut self,
        role: Role,
        character: char,
        rest: &str,
        out: &mut String,
    ) -> Step {
        let syntax = &self.syntax;
        let run = match role {
            Role::Key => rest.find(|c| !syntax.continues_key(c)),
            Role::Value | Role::Argument => rest.find(|c| !syntax.continues_value(c)),
        };
        let run = run.unwrap_or(rest.len());
        if run > 0 {
            self.word.push_str(rest.get(..run).unwrap_or_default());
            return Some(run);
        }
        if self.syntax.joins_strings() && matches!(character, '"' | '\'') {
            return self.end_prefix(role, character, out);
        }
        match role {
            Role::Argument => self.state = State::WordEnded,
            Role::Key => {
                let word = std::mem::take(&mut self.word);
                match self.syntax {
                    Syntax::Python => write_key(&word, self.sink.of(out)),
                    Syntax::BareKeys(_) => {
                        word.trim_end().clone_into(&mut self.key);
                        write_string(&self.key, self.sink.of(out));
                    }
                }
                self.state = State::Colon;
            }
            Role::Value => self.end_word_value(out),
        }
        Some(0)
    }

    /// A quote after a word, which must be the prefix of a string.
    fn end_prefix(&mut self, role: Role, quote: char, out: &mut String) -> Step {
        let string = python_string(quote, string_prefix(&self.word)?)?;
        self.word.clear();
        if role == Role::Argument {
            self.name_positional(out)?;
        }
        self.sink.of(out).push('"');
        self.state = State::Quoted(role.without_name(), string);
        Some(1)
    }

    pub(super) fn end_word_value(&mut self, out: &mut String) {
        let word = std::mem::take(&mut self.word);
        write_word(word.trim_end(), self.sink.of(out));
        self.value_ended();
    }

    /// A piece of a string has been read, perhaps the last.
    pub(super) fn after_piece(&mut self, role: Role, taken: Taken, out: &mut String) -> usize {
        if taken.ended {
            if self.syntax.joins_strings() && !self.open.is_empty() {
                self.state = State::QuotedEnded(role);
            } else {
                self.end_string(role, out);
            }
        }
        taken.bytes
    }

    /// The first character after a Python string that is no whitespace.
    pub(super) fn after_string(&mut self, role: Role, character: char, out: &mut String) -> Step {
        if let Some(string) = python_string(character, Escapes::Python) {
            self.state = State::Quoted(role, string);
            return Some(1);
        }
        if self.syntax.starts_word(character) {
            self.state = State::Prefix(role);
            return Some(0);
        }
        self.end_string(role, out);
        Some(0)
    }

    pub(super) fn in_prefix(&mut self, role: Role, character: char) -> Step {
        if matches!(character, '"' | '\'') {
            self.state = State::Quoted(role, python_string(character, string_prefix(&self.word)?)?);
            self.word.clear();
        } else if self.word.len() < 2 && character.is_ascii_alphabetic() {
            self.word.push(character);
        } else {
            return None;
        }
        Some(1)
    }

    fn end_string(&mut self, role: Role, out: &mut String) {
        self.sink.of(out).push('"');
        match role {
            Role::Key => self.state = State::Colon,
            Role::Value | Role::Argument => self.value_ended(),
        }
    }

    pub(super) fn write_decoded(&mut self, out: &mut String) {
        escape(&self.decoded, self.sink.of(out));
        self.decoded.clear();
    }
}
