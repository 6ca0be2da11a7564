//! What is looked for in free text.

use super::literal::first_word;
use super::tools::ToolSet;
use crate::chat::format::{ChatFormat, Piece, Place};

/// What finding a marker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    OpenReasoning,
    CloseReasoning,
    /// The marker is dropped.
    Drop,
    /// A call may start here, with the frame around calls.
    Block,
    /// A call may start here, without the frame.
    Call,
    /// A header starts.
    Header,
    /// A message ends.
    EndMessage,
}

/// A marker of free text.
#[derive(Clone, Debug)]
pub(super) struct Trigger {
    pub(super) text: String,
    pub(super) action: Action,
    pub(super) place: Place,
}

/// Every marker of a format that counts for one request.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    pub(super) triggers: Vec<Trigger>,
    first_letters: Vec<char>,
}

impl Plan {
    /// The markers of `format`; those of calls only where there are `tools`.
    pub(super) fn new(format: &ChatFormat, tools: &ToolSet, reasoning: bool) -> Self {
        let mut plan = Self::default();
        if let Some(channels) = &format.channels {
            let starts = channels.starts.iter().map(|text| (text, Action::Header));
            let ends = channels.ends.iter().map(|text| (text, Action::EndMessage));
            for (text, action) in starts.chain(ends) {
                plan.add(text, action, Place::Anywhere);
            }
        }
        if let (Some(tags), None, true) = (&format.reasoning, &format.channels, reasoning) {
            plan.add(&tags.open, Action::OpenReasoning, tags.place);
            plan.add(&tags.close, Action::CloseReasoning, tags.place);
        }
        if reasoning {
            for mark in &format.content_marks {
                plan.add(mark, Action::Drop, Place::Anywhere);
            }
        }
        if let Some(syntax) = format.tools.as_ref().filter(|_| !tools.is_empty()) {
            let recipient = format.channels.as_ref().is_some_and(|it| !it.recipient.is_empty());
            if !recipient {
                let alone = syntax.open.is_empty();
                let names = alone.then_some(tools);
                plan.add_calls(&syntax.open, Action::Block, syntax.place, names);
                plan.add_calls(&syntax.call, Action::Call, syntax.place, names);
            }
        }
        let mut letters: Vec<char> =
            plan.triggers.iter().filter_map(|trigger| trigger.text.chars().next()).collect();
        letters.sort_unstable();
        letters.dedup();
        plan.first_letters = letters;
        plan
    }

    /// Whether a marker starts with this letter.
    pub(super) fn may_start(&self, letter: char) -> bool {
        self.first_letters.binary_search(&letter).is_ok()
    }

    fn add(&mut self, text: &str, action: Action, place: Place) {
        if !text.is_empty() {
            self.triggers.push(Trigger { text: text.to_owned(), action, place });
        }
    }

    /// Adds what calls may start with. Without `names` only texts count: within a block a bracket or
    /// a name starts a call, outside of it that is no sign of one.
    fn add_calls(
        &mut self,
        pieces: &[Piece],
        action: Action,
        place: Place,
        names: Option<&ToolSet>,
    ) {
        for piece in pieces {
            match (piece, names) {
                (Piece::Text(_) | Piece::OneOf(_), _) => {
                    for word in piece.texts().iter().filter_map(|text| first_word(text)) {
                        let is_marker = word.len() > 2;
                        self.add(word, action, if is_marker { Place::Anywhere } else { place });
                    }
                }
                (Piece::Envelope(_), Some(_)) => self.add("{", action, place),
                (Piece::Name, Some(tools)) => {
                    for name in tools.names() {
                        self.add(name, action, place);
                    }
                }
                _ => {}
            }
            if !piece.is_optional() {
                break;
            }
        }
    }
}
