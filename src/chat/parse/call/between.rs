//! Between two calls of a block.

use super::pieces::is_name_letter;
use super::{Call, Reader, Step, Verdict};
use crate::chat::format::{Piece, ToolSyntax};
use crate::chat::parse::literal::{Match, SPACE_MAX, match_any, match_text};
use crate::chat::parse::machine::{Machine, State};

/// What stands between two calls.
enum Between {
    More,
    Separator(usize),
    Call,
    Close,
    Leave,
}

impl Machine {
    pub(super) fn between_letter(
        &mut self,
        mut call: Box<Call>,
        syntax: &ToolSyntax,
        letter: char,
    ) {
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
