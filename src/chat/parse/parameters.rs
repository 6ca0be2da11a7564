//! Arguments that are written as a block a parameter.

use super::call::{Call, Took};
use super::literal::{Match, SPACE_MAX, first_word, match_any, match_text};
use super::machine::Machine;
use crate::chat::arguments::{DeclaredTypes, Members, TypedText};
use crate::chat::format::{Parameters, Piece, ToolSyntax, Typing, Wrapping};

/// Longest name of a parameter, with what ends it, in bytes.
const NAME_MAX: usize = 512;

/// Reads the parameters of one call.
#[derive(Clone, Debug, Default)]
pub(super) struct ParametersReader {
    state: State,
    members: Members,
    /// What was read and may be the start of what comes next.
    held: String,
}

#[derive(Clone, Debug, Default)]
enum State {
    /// Before a parameter or the end.
    #[default]
    Between,
    Name,
    /// The type of the parameter of this name.
    Type(String),
    Value(Box<TypedText>),
}

/// The pieces around the parameters.
#[derive(Clone, Copy)]
pub(super) struct Around<'a> {
    pub(super) shape: &'a Parameters,
    /// The pieces of the call after the parameters.
    pub(super) following: &'a [Piece],
    /// The index in the call of the first of these.
    pub(super) following_at: usize,
}

impl<'a> Around<'a> {
    pub(super) fn new(shape: &'a Parameters, syntax: &'a ToolSyntax, at: usize) -> Self {
        let following = syntax.call.get(at + 1..).unwrap_or_default();
        Self { shape, following, following_at: at + 1 }
    }
}

impl ParametersReader {
    /// Bytes that may be read again.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    pub(super) fn letter(
        &mut self,
        machine: &mut Machine,
        call: &mut Call,
        around: Around,
        letter: char,
    ) -> Took {
        self.held.push(letter);
        match std::mem::take(&mut self.state) {
            State::Between => self.between(machine, call, around),
            State::Name => self.name(machine, call, around.shape),
            State::Type(name) => self.type_of(machine, call, around.shape, name),
            State::Value(value) => self.value(machine, call, around, value),
        }
    }

    /// The text has ended. A value whose end has been read is one; any other is cut off.
    pub(super) fn cut(&mut self, shape: &Parameters, out: &mut String) {
        if let State::Value(value) = std::mem::take(&mut self.state)
            && self.held.starts_with(shape.close.as_ref())
        {
            value.finish(out);
        }
    }

    fn between(&mut self, machine: &mut Machine, call: &mut Call, around: Around) -> Took {
        let mut may_come = match match_text(&around.shape.open, &self.held) {
            Match::Full(_) => {
                // An opener is complete with its last letter, so nothing is left of the held text.
                self.held.clear();
                self.state = State::Name;
                machine.decide(call);
                return Took::More;
            }
            Match::More => true,
            Match::No => false,
        };
        // Any text that follows ends the parameters, should the one before it be missing.
        for (index, piece) in around.following.iter().enumerate() {
            match match_any(piece.texts(), &self.held) {
                Match::Full(_) => {
                    self.end(machine, call);
                    let back = std::mem::take(&mut self.held).len();
                    return Took::Skip { to: around.following_at + index, back };
                }
                Match::More => may_come = true,
                Match::No => {}
            }
        }
        if may_come {
            return Took::More;
        }
        Took::No { back: std::mem::take(&mut self.held).len() }
    }

    fn end(&mut self, machine: &mut Machine, call: &mut Call) {
        machine.decide(call);
        let mut out = String::new();
        std::mem::take(&mut self.members).end(&mut out);
        machine.add_arguments(call, &out);
        machine.complete(call);
    }

    fn name(&mut self, machine: &mut Machine, call: &mut Call, shape: &Parameters) -> Took {
        match split_at_end(&self.held, &shape.name_end) {
            Split::Open => {
                self.state = State::Name;
                Took::More
            }
            Split::Word(name) => {
                let name = name.to_owned();
                self.held.clear();
                if shape.typing == Typing::Schema {
                    let types = machine.options.tools.types(&call.name, &name);
                    self.open_value(machine, call, shape, &name, types);
                } else {
                    self.state = State::Type(name);
                }
                Took::More
            }
            Split::Broken => Took::No { back: 0 },
        }
    }

    fn type_of(
        &mut self,
        machine: &mut Machine,
        call: &mut Call,
        shape: &Parameters,
        name: String,
    ) -> Took {
        let (Typing::StringFlag(end) | Typing::TypeName(end)) = &shape.typing else {
            return Took::No { back: 0 };
        };
        let types = match split_at_end(&self.held, end) {
            Split::Open => {
                self.state = State::Type(name);
                return Took::More;
            }
            Split::Broken => return Took::No { back: 0 },
            Split::Word(word) => match (&shape.typing, word) {
                (Typing::StringFlag(_), "true") => DeclaredTypes::string(),
                (Typing::StringFlag(_), "false") => DeclaredTypes::not_string(),
                (Typing::TypeName(_), word) => DeclaredTypes::named(word),
                _ => machine.options.tools.types(&call.name, &name),
            },
        };
        self.held.clear();
        self.open_value(machine, call, shape, &name, types);
        Took::More
    }

    fn open_value(
        &mut self,
        machine: &mut Machine,
        call: &mut Call,
        shape: &Parameters,
        name: &str,
        types: DeclaredTypes,
    ) {
        let mut out = String::new();
        self.members.name(name, &mut out);
        machine.add_arguments(call, &out);
        self.state = State::Value(Box::new(match shape.wrapping {
            Wrapping::None => TypedText::new(types),
            Wrapping::Newlines => TypedText::between_newlines(types),
            Wrapping::Cdata => TypedText::cdata(types),
        }));
    }

    /// A letter of a value. What ends it must be followed by what may follow it: a value may well
    /// speak of `</parameter>`.
    fn value(
        &mut self,
        machine: &mut Machine,
        call: &mut Call,
        around: Around,
        mut value: Box<TypedText>,
    ) -> Took {
        let mut out = String::new();
        let close: &str = &around.shape.close;
        loop {
            match end_of_value(&self.held, around) {
                Match::Full(_) => {
                    value.finish(&mut out);
                    machine.add_arguments(call, &out);
                    // The held text is what ended the value and some of what follows it.
                    let back = self.held.len() - close.len().min(self.held.len());
                    self.held.clear();
                    return Took::Again { back };
                }
                Match::More => break,
                Match::No => {}
            }
            let length = self.held.chars().next().map_or(0, char::len_utf8);
            let letter: String = self.held.drain(..length).collect();
            value.push(&letter, &mut out);
        }
        machine.add_arguments(call, &out);
        self.state = State::Value(value);
        Took::More
    }
}

/// Whether the held text is the end of a value and something that may follow it.
fn end_of_value(held: &str, around: Around) -> Match {
    let close: &str = &around.shape.close;
    let Some(rest) = held.strip_prefix(close) else {
        return if close.starts_with(held) { Match::More } else { Match::No };
    };
    let following = rest.trim_start();
    if rest.len() - following.len() > SPACE_MAX {
        return Match::No;
    }
    let texts = around.following.iter().flat_map(Piece::texts);
    let mut verdict = if following.is_empty() { Match::More } else { Match::No };
    for word in texts.chain([&around.shape.open]).filter_map(|text| first_word(text)) {
        if following.starts_with(word) {
            return Match::Full(held.len());
        }
        if word.starts_with(following) {
            verdict = Match::More;
        }
    }
    verdict
}

/// A word and what ends it.
enum Split<'a> {
    Open,
    Word(&'a str),
    Broken,
}

/// The word that `end` ends: the first letter of `end` is in no word.
fn split_at_end<'a>(held: &'a str, end: &str) -> Split<'a> {
    let Some(first) = end.trim_start().chars().next() else { return Split::Broken };
    let Some(at) = held.find(first) else {
        return if held.len() > NAME_MAX { Split::Broken } else { Split::Open };
    };
    let (word, rest) = held.split_at(at);
    match match_text(end, rest) {
        Match::Full(_) => Split::Word(word.trim()),
        Match::More => Split::Open,
        Match::No => Split::Broken,
    }
}
