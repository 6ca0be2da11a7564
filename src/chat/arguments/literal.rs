//! Python literals and dictionaries with bare keys: the brackets and what stands between them.

mod scalars;

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::Value;

use super::converter::{MAX_DEPTH, Progress};
use super::delimited::{Delimited, Opening};
use super::quoted::Quoted;
use super::sink::Sink;
use super::syntax::{StringStart, Syntax, is_whitespace};
use super::typed::TypedText;
use super::write::write_string;

/// A value of which part has been read.
#[derive(Clone, Debug)]
pub(super) struct Literal {
    syntax: Syntax,
    state: State,
    open: Vec<Bracket>,
    /// Names for the positional arguments of a call that have not been given.
    parameters: VecDeque<String>,
    /// What types delimited strings of the outermost object.
    schema: Option<Arc<Value>>,
    /// The last bare key.
    key: String,
    /// The word at hand.
    word: String,
    /// What a string said in the piece of text at hand.
    decoded: String,
    sink: Sink,
}

#[derive(Clone, Debug)]
enum State {
    /// The opening parenthesis of a call has been read and nothing after it.
    Call,
    /// A value must come.
    Value,
    /// After an opening bracket.
    First,
    /// After a comma, which is written once something follows it.
    Next,
    /// After a key.
    Colon,
    /// After a value in brackets.
    After,
    Word(Role),
    /// A word of a call has ended: before `=` it is a name.
    WordEnded,
    /// In the delimiter that opens a string, after so many bytes.
    Opening(Role, usize),
    Delimited(Role, Delimited),
    /// In a delimited string that is to be of a declared type.
    Typed(Delimited, Box<TypedText>),
    Quoted(Role, Quoted),
    /// The closing quote is not written: an adjacent string goes on with the same.
    QuotedEnded(Role),
    /// In a word after a string, which must be the prefix of another.
    Prefix(Role),
    Done,
    Broken,
}

/// What an item of a bracket is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Key,
    Value,
    /// A name or a value of a call.
    Argument,
}

impl Role {
    /// The role of an item that is no bare word.
    fn without_name(self) -> Self {
        match self {
            Self::Argument => Self::Value,
            other => other,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bracket {
    Call,
    Dict,
    List,
    Tuple,
    /// A parenthesis that is a tuple if a comma follows its first item.
    Parenthesis,
}

/// Bytes taken of the text at hand; `None` where its first character cannot be.
type Step = Option<usize>;

impl Literal {
    /// One value.
    pub(super) fn new(syntax: Syntax) -> Self {
        Self {
            syntax,
            state: State::Value,
            open: Vec::new(),
            parameters: VecDeque::new(),
            schema: None,
            key: String::new(),
            word: String::new(),
            decoded: String::new(),
            sink: Sink::default(),
        }
    }

    /// The arguments of a Python call.
    pub(super) fn call(parameters: VecDeque<String>) -> Self {
        let mut literal = Self::new(Syntax::Python);
        literal.state = State::Call;
        literal.open.push(Bracket::Call);
        literal.parameters = parameters;
        literal
    }

    /// An object of arguments whose delimited strings may spell other types, by this schema.
    pub(super) fn typed(syntax: Syntax, tool_parameters: Arc<Value>) -> Self {
        Self { schema: Some(tool_parameters), ..Self::new(syntax) }
    }

    pub(super) fn push(&mut self, text: &str, out: &mut String) -> Progress {
        let mut rest = text;
        loop {
            let consumed = text.len() - rest.len();
            match self.state {
                State::Done => return Progress::Complete { consumed },
                State::Broken => return Progress::Broken { consumed },
                _ => {}
            }
            let Some(character) = rest.chars().next() else { return Progress::Open };
            match self.step(character, rest, out) {
                Some(bytes) => rest = rest.get(bytes..).unwrap_or_default(),
                None => self.state = State::Broken,
            }
        }
    }

    /// The text has ended: a word on its own is whole, and so is an empty string.
    pub(super) fn cut(&mut self, out: &mut String) -> Progress {
        if self.open.is_empty() {
            match &self.state {
                State::Word(_) => self.end_word_value(out),
                State::Quoted(_, string) if string.is_empty_if_cut() => {
                    self.sink.of(out).push('"');
                    self.value_ended();
                }
                _ => {}
            }
        }
        self.push("", out)
    }

    fn step(&mut self, character: char, rest: &str, out: &mut String) -> Step {
        match &mut self.state {
            State::Quoted(role, string) => {
                let (role, taken) = (*role, string.push(rest, &mut self.decoded));
                self.write_decoded(out);
                Some(self.after_piece(role, taken, out))
            }
            State::Delimited(role, string) => {
                let (role, taken) = (*role, string.push(rest, &mut self.decoded));
                self.write_decoded(out);
                Some(self.after_piece(role, taken, out))
            }
            State::Typed(string, typed) => {
                let taken = string.push(rest, &mut self.decoded);
                typed.push(&self.decoded, out);
                self.decoded.clear();
                if taken.ended {
                    if let State::Typed(_, typed) = std::mem::replace(&mut self.state, State::After)
                    {
                        typed.finish(out);
                    }
                    self.value_ended();
                }
                Some(taken.bytes)
            }
            State::Opening(role, seen) => {
                let Syntax::BareKeys(delimiter) = &self.syntax else { return None };
                if delimiter.open(seen, character)? == Opening::Whole {
                    let (role, string) = (*role, Delimited::new(delimiter.clone()));
                    self.state = self.in_delimited(role, string, out);
                }
                Some(character.len_utf8())
            }
            State::Word(role) => {
                let role = *role;
                self.in_word(role, character, rest, out)
            }
            State::Prefix(role) => {
                let role = *role;
                self.in_prefix(role, character)
            }
            State::Call => {
                out.push('{');
                self.state = State::First;
                Some(0)
            }
            _ if is_whitespace(character) => Some(1),
            State::QuotedEnded(role) => {
                let role = *role;
                self.after_string(role, character, out)
            }
            _ => self.structure(character, out),
        }
    }

    /// A character between items.
    fn structure(&mut self, character: char, out: &mut String) -> Step {
        match (&self.state, character) {
            (State::Colon, ':') => {
                self.sink.of(out).push(':');
                self.state = State::Value;
            }
            (State::WordEnded, '=') => {
                let name = std::mem::take(&mut self.word);
                self.write_name(&name, out);
                // Python takes no positional argument after a named one.
                self.parameters.clear();
                self.state = State::Value;
            }
            (State::WordEnded, _) => {
                self.name_positional(out)?;
                self.end_word_value(out);
                return Some(0);
            }
            (State::After, ',') => {
                if self.open.last() == Some(&Bracket::Parenthesis) {
                    self.open.pop();
                    self.open.push(Bracket::Tuple);
                    self.sink.decide_tuple(out);
                }
                self.state = State::Next;
            }
            (State::After | State::First | State::Next, ')' | ']' | '}') => {
                return self.close(character, out);
            }
            (State::First | State::Next | State::Value, _) => return self.item(character, out),
            _ => return None,
        }
        Some(1)
    }

    /// The first character of a key or value.
    fn item(&mut self, character: char, out: &mut String) -> Step {
        let role = match (&self.state, self.open.last()) {
            (State::First | State::Next, Some(Bracket::Dict)) => Role::Key,
            (State::First | State::Next, Some(Bracket::Call)) => Role::Argument,
            _ => Role::Value,
        };
        if self.syntax.starts_word(character) {
            self.separate(out);
            self.state = State::Word(role);
            return Some(0);
        }
        let string = self.syntax.string(character);
        let may_open = self.syntax.opens_bracket(character)
            && role != Role::Key
            && self.open.len() < MAX_DEPTH;
        if string.is_none() && !may_open {
            return None;
        }
        self.separate(out);
        if role == Role::Argument {
            self.name_positional(out)?;
        }
        match string {
            Some(StringStart::Quote(string)) => {
                self.sink.of(out).push('"');
                self.state = State::Quoted(role.without_name(), string);
                Some(1)
            }
            Some(StringStart::Delimiter) => {
                self.state = State::Opening(role.without_name(), 0);
                Some(0)
            }
            None => Some(self.open_bracket(character, out)),
        }
    }

    /// Writes the comma before an item that is not the first.
    fn separate(&mut self, out: &mut String) {
        if matches!(self.state, State::Next) {
            self.sink.of(out).push(',');
        }
    }

    /// Writes the name of a positional argument; `None` if there is none for it.
    fn name_positional(&mut self, out: &mut String) -> Option<()> {
        let name = self.parameters.pop_front()?;
        self.write_name(&name, out);
        Some(())
    }

    fn write_name(&mut self, name: &str, out: &mut String) {
        let out = self.sink.of(out);
        write_string(name, out);
        out.push(':');
    }

    fn open_bracket(&mut self, character: char, out: &mut String) -> usize {
        let bracket = match character {
            '{' => Bracket::Dict,
            '[' => Bracket::List,
            _ => Bracket::Parenthesis,
        };
        self.open.push(bracket);
        match bracket {
            Bracket::Parenthesis => self.sink.open_parenthesis(),
            _ => self.sink.of(out).push(character),
        }
        self.state = State::First;
        1
    }

    fn close(&mut self, character: char, out: &mut String) -> Step {
        let json = match (self.open.last()?, character) {
            (Bracket::Dict, '}') | (Bracket::Call, ')') => "}",
            (Bracket::List, ']') => "]",
            (Bracket::Tuple, ')') => "]",
            // `()` is the empty tuple, `(x)` is x.
            (Bracket::Parenthesis, ')') if matches!(self.state, State::First) => {
                self.sink.decide_tuple(out);
                "]"
            }
            (Bracket::Parenthesis, ')') => {
                self.sink.decide_value(out);
                ""
            }
            _ => return None,
        };
        self.sink.of(out).push_str(json);
        self.open.pop();
        self.value_ended();
        Some(1)
    }

    fn value_ended(&mut self) {
        self.state = if self.open.is_empty() { State::Done } else { State::After };
    }
}
