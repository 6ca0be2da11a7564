//! Where the arguments of a call go, and when it is one.

use std::sync::Arc;

use super::{Call, Reader, Step, Took, Verdict};
use crate::chat::arguments::{Converter, Dialect, Progress};
use crate::chat::format::{ArgumentSyntax, Piece};
use crate::chat::parse::machine::Machine;
use crate::chat::parse::parameters::ParametersReader;

impl Machine {
    /// Makes the reader of arguments that must know their function.
    pub(super) fn prepare_arguments(&mut self, call: &mut Call, piece: Option<&Piece>) {
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

    /// One letter of arguments that show their own end.
    pub(super) fn object_letter(&mut self, call: &mut Call, letter: char) -> Took {
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
    pub(in crate::chat::parse) fn add_arguments(&mut self, call: &mut Call, json: &str) {
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
    pub(in crate::chat::parse) fn complete(&mut self, call: &Call) {
        if let Verdict::Known(index) = call.verdict
            && let Some(known) = self.call_mut(index)
        {
            known.complete = true;
        }
    }

    /// All but the arguments has been read: it is a call, of a function that is on offer or not.
    pub(in crate::chat::parse) fn decide(&mut self, call: &mut Call) {
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

    /// The text has ended within what is a call or may be one.
    pub(in crate::chat::parse) fn finish_call(&mut self, mut call: Call) {
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

    fn cut_parameters(&self, step: Step, reader: &mut ParametersReader, out: &mut String) {
        let (Step::Call(at), Some(syntax)) = (step, &self.format.tools) else { return };
        if let Some(Piece::Arguments(ArgumentSyntax::Parameters(shape))) = syntax.call.get(at) {
            reader.cut(shape, out);
        }
    }
}
