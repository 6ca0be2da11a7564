//! What is a call or may become one.

mod arguments;
mod between;
mod pieces;

use std::sync::Arc;

use super::envelope::EnvelopeReader;
use super::machine::{Machine, State};
use super::parameters::ParametersReader;
use crate::chat::arguments::Converter;
use crate::chat::format::{ArgumentSyntax, ChatFormat, Piece, Place, ToolSyntax};
pub(in crate::chat) use pieces::is_plain_name;
use pieces::text_letter;

/// A block as it is read, piece by piece.
#[derive(Clone, Debug)]
pub(super) struct Call {
    step: Step,
    piece: Reader,
    /// What has been read and not been settled: text of the answer, should this be no call. Its
    /// end is what the current piece may want to have read again.
    raw: String,
    pub(super) verdict: Verdict,
    pub(super) name: String,
    pub(super) id: Option<String>,
    ordinal: Option<String>,
    /// Arguments that were read before it was known whose they are.
    early: String,
}

/// Which piece is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Open(usize),
    Call(usize),
    /// Between two calls of a block.
    Between,
    Close(usize),
}

/// What is known about the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It may still be no call.
    Undecided,
    /// It is the call at this index.
    Known(usize),
    /// It calls a function that is not on offer: it is read as a call, and written as content.
    Unknown,
}

/// Reads one piece.
#[derive(Clone, Debug)]
enum Reader {
    /// Text, name, id or number, as far as it has been read.
    Held(String),
    Object(Box<Converter>),
    Parameters(Box<ParametersReader>),
    Envelope(Box<EnvelopeReader>),
}

/// What a letter did to a piece. `back`: bytes at the end of what was read that belong to what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Took {
    More,
    Done {
        back: usize,
    },
    /// The piece has ended, and so have those before this one.
    Skip {
        to: usize,
        back: usize,
    },
    /// The piece goes on, and reads what is left again.
    Again {
        back: usize,
    },
    /// It is no call, or a broken one.
    No {
        back: usize,
    },
}

impl Call {
    /// What may be a block (or, without its frame, a call), of which nothing has been read.
    pub(super) fn new(with_frame: bool) -> Self {
        Self {
            step: if with_frame { Step::Open(0) } else { Step::Call(0) },
            piece: Reader::Held(String::new()),
            raw: String::new(),
            verdict: Verdict::Undecided,
            name: String::new(),
            id: None,
            ordinal: None,
            early: String::new(),
        }
    }

    /// A call that a header announced: its arguments are next.
    pub(super) fn of_header(format: &ChatFormat, index: usize, name: &str) -> Option<Self> {
        let syntax = format.tools.as_ref()?;
        let at = syntax.call.iter().position(|piece| matches!(piece, Piece::Arguments(_)))?;
        let mut call = Self::new(false);
        call.verdict = Verdict::Known(index);
        name.clone_into(&mut call.name);
        call.go_to(Step::Call(at), syntax);
        call.piece = Reader::Object(Box::new(Converter::json_arguments()));
        Some(call)
    }

    fn go_to(&mut self, step: Step, syntax: &ToolSyntax) {
        self.step = step;
        let piece = match step {
            Step::Call(at) => syntax.call.get(at),
            Step::Open(_) | Step::Between | Step::Close(_) => None,
        };
        self.piece = match piece {
            Some(Piece::Arguments(ArgumentSyntax::Parameters(_))) => {
                Reader::Parameters(Box::default())
            }
            Some(Piece::Envelope(_)) => Reader::Envelope(Box::default()),
            // Other arguments must know their function: see `Machine::prepare_arguments`.
            _ => Reader::Held(String::new()),
        };
    }

    /// Bytes at the end of the raw text that the piece may want to have read again.
    fn held(&self) -> usize {
        match &self.piece {
            Reader::Held(held) => held.len(),
            Reader::Parameters(reader) => reader.held(),
            Reader::Object(_) | Reader::Envelope(_) => 0,
        }
    }

    fn forget(&mut self) {
        self.verdict = Verdict::Undecided;
        self.name.clear();
        self.id = None;
        self.ordinal = None;
        self.early.clear();
    }
}

impl Machine {
    pub(super) fn call_letter(&mut self, mut call: Box<Call>, letter: char) {
        let format = Arc::clone(&self.format);
        let Some(syntax) = &format.tools else { return };
        call.raw.push(letter);
        let took = match call.step {
            Step::Between => {
                self.between_letter(call, syntax, letter);
                return;
            }
            Step::Open(at) => text_letter(&mut call.piece, syntax.open.get(at), letter),
            Step::Close(at) => text_letter(&mut call.piece, syntax.close.get(at), letter),
            Step::Call(at) => self.piece_letter(&mut call, syntax, at, letter),
        };
        match took {
            Took::More => {
                let held = call.held();
                self.settle(&mut call, held);
                self.state = State::Call(call);
            }
            Took::Done { back } => {
                let next = match call.step {
                    Step::Open(at) => Step::Open(at + 1),
                    Step::Call(at) => Step::Call(at + 1),
                    Step::Close(at) => Step::Close(at + 1),
                    Step::Between => Step::Between,
                };
                self.proceed(call, syntax, next, back);
            }
            Took::Skip { to, back } => self.proceed(call, syntax, Step::Call(to), back),
            Took::Again { back } => {
                let again = call.raw.split_off(call.raw.len().saturating_sub(back));
                self.settle_before(&mut call, again.len());
                self.read_again(&again);
                self.state = State::Call(call);
            }
            Took::No { back } => self.abandon(*call, syntax, back),
        }
    }

    /// Goes on with the piece at `next`, or with what follows the last one. The last `back` bytes
    /// are read again.
    fn proceed(&mut self, mut call: Box<Call>, syntax: &ToolSyntax, next: Step, back: usize) {
        let again = call.raw.split_off(call.raw.len().saturating_sub(back));
        self.settle_before(&mut call, again.len());
        self.read_again(&again);
        let next = match next {
            Step::Open(at) if at >= syntax.open.len() => Step::Between,
            Step::Call(at) if at >= syntax.call.len() => {
                if !syntax.calls_share_block() {
                    return;
                }
                Step::Between
            }
            Step::Close(at) if at >= syntax.close.len() => {
                // A block without calls says nothing, unless it looks like any bracket.
                if call.verdict == Verdict::Undecided && syntax.place == Place::Start {
                    self.write(&call.raw, call.raw.len() + again.len());
                }
                return;
            }
            next => next,
        };
        call.go_to(next, syntax);
        if let Step::Call(at) = next {
            self.prepare_arguments(&mut call, syntax.call.get(at));
        }
        self.state = State::Call(call);
    }

    /// Writes or drops what has been read and is decided, but for its last `held` bytes.
    fn settle(&mut self, call: &mut Call, held: usize) {
        let settled = call.raw.len().saturating_sub(held);
        match call.verdict {
            Verdict::Undecided => return,
            Verdict::Known(_) => {}
            Verdict::Unknown => {
                let text = call.raw.get(..settled).unwrap_or_default();
                self.write(text, call.raw.len());
            }
        }
        call.raw.drain(..settled);
    }

    /// As [`Self::settle`] for all of the raw text, after which `behind` more bytes have been read.
    fn settle_before(&mut self, call: &mut Call, behind: usize) {
        if call.verdict == Verdict::Undecided {
            return;
        }
        let raw = std::mem::take(&mut call.raw);
        if call.verdict == Verdict::Unknown {
            self.write(&raw, raw.len() + behind);
        }
    }

    /// It is no call after all, or it breaks off. What is not read again becomes text, unless it is
    /// part of a call that has been told already.
    fn abandon(&mut self, mut call: Call, syntax: &ToolSyntax, back: usize) {
        // A piece that ends a call may be missing, and the next call may follow all the same.
        let told = matches!(call.verdict, Verdict::Known(index)
            if self.calls().get(index).is_some_and(|call| call.complete));
        let mut again = call.raw.split_off(call.raw.len().saturating_sub(back));
        if told && matches!(call.step, Step::Call(_)) && syntax.calls_share_block() {
            self.read_again(&again);
            call.raw.clear();
            call.go_to(Step::Between, syntax);
            self.state = State::Call(Box::new(call));
            return;
        }
        if matches!(call.verdict, Verdict::Known(_)) {
            self.read_again(&again);
            return;
        }
        let mut text = call.raw;
        if text.is_empty() && call.verdict == Verdict::Undecided {
            // Nothing but the start of a marker, which is to be read again: as text this time.
            let length = again.chars().next().map_or(0, char::len_utf8);
            let rest = again.split_off(length);
            text = std::mem::replace(&mut again, rest);
        }
        self.write(&text, text.len() + again.len());
        self.read_again(&again);
    }
}
