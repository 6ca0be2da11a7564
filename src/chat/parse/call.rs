//! What is a call or may become one.

use std::sync::Arc;

use super::envelope::{EnvelopeReader, Frame};
use super::literal::{Match, SPACE_MAX, match_any, match_text};
use super::machine::{Machine, State};
use super::parameters::{Around, ParametersReader};
use crate::chat::arguments::{Converter, Dialect, Progress};
use crate::chat::format::{ArgumentSyntax, ChatFormat, Piece, Place, ToolSyntax};

/// Longest name or id, in bytes.
const NAME_MAX: usize = 256;

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

    /// Makes the reader of arguments that must know their function.
    fn prepare_arguments(&mut self, call: &mut Call, piece: Option<&Piece>) {
        let Some(Piece::Arguments(arguments)) = piece else { return };
        let tools = Arc::clone(&self.options.tools);
        let converter = match arguments {
            ArgumentSyntax::PythonCall => {
                // The bracket before has made it a call.
                self.decide(call);
                Converter::call_arguments(tools.parameters(&call.name))
            }
            ArgumentSyntax::Object(Dialect::Json) => Converter::json_arguments(),
            ArgumentSyntax::Object(dialect) => match tools.schema(&call.name) {
                Some(schema) => Converter::typed(dialect.clone(), schema),
                None => Converter::new(dialect.clone()),
            },
            ArgumentSyntax::Parameters(_) => return,
        };
        call.piece = Reader::Object(Box::new(converter));
    }

    fn piece_letter(
        &mut self,
        call: &mut Call,
        syntax: &ToolSyntax,
        at: usize,
        letter: char,
    ) -> Took {
        let piece = syntax.call.get(at);
        match (&mut call.piece, piece) {
            (Reader::Held(held), Some(Piece::Name)) => {
                let took = word_letter(held, letter, is_name_letter);
                if matches!(took, Took::Done { .. }) {
                    call.name = held_word(held, letter);
                }
                took
            }
            (Reader::Held(held), Some(Piece::Id)) => {
                let took =
                    word_letter(held, letter, |letter| is_name_letter(letter) || letter == ':');
                if matches!(took, Took::Done { .. }) {
                    call.id = Some(held_word(held, letter));
                }
                took
            }
            (Reader::Held(held), Some(Piece::Ordinal)) => {
                let took = word_letter(held, letter, |letter| letter.is_ascii_digit());
                if matches!(took, Took::Done { .. }) {
                    call.ordinal = Some(held_word(held, letter));
                }
                took
            }
            (Reader::Object(_), _) => self.object_letter(call, letter),
            (Reader::Parameters(_), Some(Piece::Arguments(ArgumentSyntax::Parameters(shape)))) => {
                let Reader::Parameters(mut reader) =
                    std::mem::replace(&mut call.piece, Reader::Held(String::new()))
                else {
                    return Took::No { back: 0 };
                };
                let took = reader.letter(self, call, Around::new(shape, syntax, at), letter);
                call.piece = Reader::Parameters(reader);
                took
            }
            (Reader::Envelope(_), Some(Piece::Envelope(shape))) => {
                let Reader::Envelope(mut reader) =
                    std::mem::replace(&mut call.piece, Reader::Held(String::new()))
                else {
                    return Took::No { back: 0 };
                };
                let frame = Frame { shape, place: syntax.place };
                let took = reader.letter(self, call, frame, letter);
                call.piece = Reader::Envelope(reader);
                took
            }
            _ => text_letter(&mut call.piece, piece, letter),
        }
    }

    /// One letter of arguments that show their own end.
    fn object_letter(&mut self, call: &mut Call, letter: char) -> Took {
        let mut bytes = [0; 4];
        let text: &str = letter.encode_utf8(&mut bytes);
        let mut out = String::new();
        let Reader::Object(converter) = &mut call.piece else { return Took::No { back: 0 } };
        let progress = converter.push(text, &mut out);
        self.add_arguments(call, &out);
        if call.verdict == Verdict::Undecided && !call.early.is_empty() {
            if !call.early.starts_with('{') {
                return Took::No { back: text.len() };
            }
            self.decide(call);
        }
        match progress {
            Progress::Open => Took::More,
            Progress::Complete { consumed } => {
                self.complete(call);
                Took::Done { back: text.len() - consumed.min(text.len()) }
            }
            Progress::Broken { .. } => Took::No { back: text.len() },
        }
    }

    /// Appends to the arguments of the call.
    pub(super) fn add_arguments(&mut self, call: &mut Call, json: &str) {
        match call.verdict {
            Verdict::Undecided => call.early.push_str(json),
            Verdict::Known(index) => {
                if let Some(known) = self.call_mut(index) {
                    known.arguments.push_str(json);
                }
            }
            Verdict::Unknown => {}
        }
    }

    /// The arguments have come to their end.
    pub(super) fn complete(&mut self, call: &Call) {
        if let Verdict::Known(index) = call.verdict
            && let Some(known) = self.call_mut(index)
        {
            known.complete = true;
        }
    }

    /// All but the arguments has been read: it is a call, of a function that is on offer or not.
    pub(super) fn decide(&mut self, call: &mut Call) {
        if call.verdict != Verdict::Undecided {
            return;
        }
        if self.options.tools.contains(&call.name) {
            let index = self.begin_call(&call.name, call.id.as_deref(), call.ordinal.as_deref());
            call.verdict = Verdict::Known(index);
            let early = std::mem::take(&mut call.early);
            self.add_arguments(call, &early);
        } else {
            call.verdict = Verdict::Unknown;
            call.early.clear();
        }
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

    fn between_letter(&mut self, mut call: Box<Call>, syntax: &ToolSyntax, letter: char) {
        let Reader::Held(held) = &mut call.piece else { return };
        held.push(letter);
        match look_between(syntax, held, call.verdict != Verdict::Undecided) {
            Between::More => {
                let length = held.len();
                self.settle(&mut call, length);
                self.state = State::Call(call);
            }
            Between::Separator(length) => {
                let back = held.len() - length.min(held.len());
                self.proceed(call, syntax, Step::Between, back);
            }
            Between::Close => {
                let back = held.len();
                self.proceed(call, syntax, Step::Close(0), back);
            }
            Between::Call => {
                let back = held.len();
                let again = call.raw.split_off(call.raw.len().saturating_sub(back));
                self.settle_before(&mut call, again.len());
                self.read_again(&again);
                call.forget();
                call.go_to(Step::Call(0), syntax);
                self.state = State::Call(call);
            }
            Between::Leave => {
                let back = held.len();
                self.abandon(*call, syntax, back);
            }
        }
    }

    /// The text has ended within what is a call or may be one.
    pub(super) fn finish_call(&mut self, mut call: Call) {
        match call.verdict {
            Verdict::Undecided | Verdict::Unknown => {
                let raw = std::mem::take(&mut call.raw);
                self.write(&raw, raw.len());
            }
            Verdict::Known(_) => {
                let mut out = String::new();
                let complete = match &mut call.piece {
                    Reader::Object(converter) => {
                        matches!(converter.cut(&mut out), Progress::Complete { .. })
                    }
                    Reader::Envelope(reader) => {
                        reader.cut(&mut out);
                        false
                    }
                    Reader::Parameters(reader) => {
                        self.cut_parameters(call.step, reader, &mut out);
                        false
                    }
                    Reader::Held(_) => false,
                };
                self.add_arguments(&mut call, &out);
                if complete {
                    self.complete(&call);
                }
            }
        }
    }
}

impl Machine {
    fn cut_parameters(&self, step: Step, reader: &mut ParametersReader, out: &mut String) {
        let (Step::Call(at), Some(syntax)) = (step, &self.format.tools) else { return };
        if let Some(Piece::Arguments(ArgumentSyntax::Parameters(shape))) = syntax.call.get(at) {
            reader.cut(shape, out);
        }
    }
}

/// What stands between two calls.
enum Between {
    More,
    Separator(usize),
    Call,
    Close,
    Leave,
}

fn look_between(syntax: &ToolSyntax, held: &str, after_call: bool) -> Between {
    let text = held.trim_start();
    if text.is_empty() {
        return if held.len() > SPACE_MAX { Between::Leave } else { Between::More };
    }
    let mut may_come = false;
    for piece in &syntax.close {
        match match_any(piece.texts(), held) {
            Match::Full(_) => return Between::Close,
            Match::More => may_come = true,
            Match::No => {}
        }
        if !piece.is_optional() {
            break;
        }
    }
    for piece in &syntax.call {
        match piece {
            Piece::Envelope(_) if text.starts_with('{') => return Between::Call,
            Piece::Name if text.starts_with(is_name_letter) => return Between::Call,
            Piece::Text(_) | Piece::OneOf(_) => match match_any(piece.texts(), held) {
                Match::Full(_) => return Between::Call,
                // The first word is enough to be sure that a call is meant.
                Match::More if text.contains(char::is_whitespace) => return Between::Call,
                Match::More => may_come = true,
                Match::No => {}
            },
            _ => {}
        }
        if !piece.is_optional() {
            break;
        }
    }
    let separator = syntax.between.trim();
    if after_call && !separator.is_empty() {
        match match_text(separator, held) {
            Match::Full(length) => return Between::Separator(length),
            Match::More => may_come = true,
            Match::No => {}
        }
    }
    if may_come { Between::More } else { Between::Leave }
}

/// One letter of a fixed text.
fn text_letter(reader: &mut Reader, piece: Option<&Piece>, letter: char) -> Took {
    let (Reader::Held(held), Some(piece)) = (reader, piece) else {
        return Took::Done { back: letter.len_utf8() };
    };
    held.push(letter);
    let only_space = piece.texts().iter().all(|text| text.trim().is_empty());
    match match_any(piece.texts(), held) {
        Match::Full(length) => Took::Done { back: held.len() - length.min(held.len()) },
        Match::More => Took::More,
        Match::No if only_space || piece.is_optional() => Took::Done { back: held.len() },
        Match::No => Took::No { back: held.len() },
    }
}

/// One letter of a word of letters that `belongs` says yes to.
fn word_letter(held: &mut String, letter: char, belongs: impl Fn(char) -> bool) -> Took {
    let has_word = !held.trim_start().is_empty();
    held.push(letter);
    if belongs(letter) || (letter.is_whitespace() && !has_word) {
        return if held.len() > NAME_MAX { Took::No { back: held.len() } } else { Took::More };
    }
    if has_word { Took::Done { back: letter.len_utf8() } } else { Took::No { back: held.len() } }
}

/// The word that `held` is, without the letter that ended it.
fn held_word(held: &str, end: char) -> String {
    held.strip_suffix(end).unwrap_or(held).trim_start().to_owned()
}

/// Letters of a function's name.
fn is_name_letter(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '/' | '$')
}
