//! The text of one parameter, typed by its schema.

use super::candidate::Candidate;
use super::fit::fit;
use super::wrapping::{Unwrap, Wrapping};
use super::write::{escape, write_string};
use crate::grammar::json_schema::DeclaredTypes;

/// The text of one parameter whose end the block parser finds, as a JSON value of the declared type.
///
/// - Only a string is declared: the text as it stands, streamed.
/// - No string is declared: the value the text spells in JSON or Python (`True`, `None`, `+3`,
///   `007`, `['a']`), if that has a declared type; else the text as a string.
/// - A string or another type: a string, unless the text is `true`, `null`, a number, an array or an
///   object and that type is declared (`03106` is no number). It streams as soon as no other type is
///   possible, mostly from its first character.
/// - Nothing is declared: a string, unless the text is JSON of another type.
///
/// Where the answer ends within the text, drop this value: nothing that waits is certain, and what
/// has been written is a prefix of the value.
#[derive(Clone, Debug)]
pub struct TypedText {
    types: DeclaredTypes,
    unwrap: Unwrap,
    state: State,
    /// The part of the last piece that belongs to the value.
    piece: String,
}

#[derive(Clone, Debug)]
enum State {
    /// Nothing is written: the text may be more than a string.
    Waiting { text: String, candidate: Candidate },
    /// The opening quote is written.
    String,
}

impl TypedText {
    /// The text as it stands.
    pub fn new(types: DeclaredTypes) -> Self {
        Self::wrapped(types, Wrapping::None)
    }

    /// Without exactly one newline before the value and one after it, each where it is there
    /// (Qwen's XML).
    pub fn between_newlines(types: DeclaredTypes) -> Self {
        Self::wrapped(types, Wrapping::Newlines)
    }

    /// Where the text starts with `<![CDATA[`: without that, and without `]]>` at its end (MiniCPM).
    pub fn cdata(types: DeclaredTypes) -> Self {
        Self::wrapped(types, Wrapping::Cdata)
    }

    fn wrapped(types: DeclaredTypes, wrapping: Wrapping) -> Self {
        Self {
            types,
            unwrap: Unwrap::new(wrapping),
            state: State::Waiting { text: String::new(), candidate: Candidate::Blank },
            piece: String::new(),
        }
    }

    /// Takes the next piece of the text and appends to `out` what has become certain.
    pub fn push(&mut self, text: &str, out: &mut String) {
        self.unwrap.push(text, &mut self.piece);
        self.take_piece(out);
    }

    /// The text has ended: writes the rest of the value, which is then whole.
    pub fn finish(self, out: &mut String) {
        let Self { types, unwrap, state, mut piece } = self;
        unwrap.finish(&mut piece);
        match state {
            State::Waiting { mut text, .. } => {
                text.push_str(&piece);
                match fit(&text, types) {
                    Some(json) => out.push_str(&json),
                    None => write_string(&text, out),
                }
            }
            State::String => {
                escape(&piece, out);
                out.push('"');
            }
        }
    }

    fn take_piece(&mut self, out: &mut String) {
        if self.piece.is_empty() {
            return;
        }
        if let State::Waiting { text, candidate } = &mut self.state {
            text.push_str(&self.piece);
            if self.types.allows_string() {
                *candidate = self.piece.chars().fold(*candidate, |c, next| c.next(next));
                if !candidate.is_possible(self.types) {
                    out.push('"');
                    escape(text, out);
                    self.state = State::String;
                }
            }
        } else {
            escape(&self.piece, out);
        }
        self.piece.clear();
    }
}
