//! The pieces of a call, a letter at a time.

use super::{Call, Reader, Took};
use crate::chat::format::{ArgumentSyntax, Piece, ToolSyntax};
use crate::chat::parse::envelope::Frame;
use crate::chat::parse::literal::{Match, match_any};
use crate::chat::parse::machine::Machine;
use crate::chat::parse::parameters::Around;

/// Longest name or id, in bytes.
const NAME_MAX: usize = 256;

impl Machine {
    pub(super) fn piece_letter(
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
}

/// One letter of a fixed text.
pub(super) fn text_letter(reader: &mut Reader, piece: Option<&Piece>, letter: char) -> Took {
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

/// Whether a function's name can be read where no quotes stand around it.
pub(in crate::chat) fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name.len() < NAME_MAX && name.chars().all(is_name_letter)
}

/// Letters of a function's name.
pub(super) fn is_name_letter(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '/' | '$')
}
