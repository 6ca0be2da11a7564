//! Free text and the markers in it.

use super::machine::{Machine, Mode};
use super::plan::{Action, Trigger};
use crate::chat::format::Place;

impl Machine {
    pub(super) fn text_letter(&mut self, letter: char) {
        let is_only_content =
            self.options.whole_content && self.mode == Mode::Content && !self.at_start();
        if self.held.is_empty() && (is_only_content || !self.plan.may_start(letter)) {
            let mut bytes = [0; 4];
            self.write(letter.encode_utf8(&mut bytes), letter.len_utf8());
            return;
        }
        self.held.push(letter);
        self.scan(false);
    }

    /// Looks for markers at the start of the held text; writes what cannot be part of one. With
    /// `last` no more text will come.
    pub(super) fn scan(&mut self, last: bool) {
        while !self.held.is_empty() {
            let (found, may_grow) = self.find();
            if may_grow && !last {
                return;
            }
            if let Some((length, action)) = found {
                let rest = self.held.split_off(length.min(self.held.len()));
                let marker = std::mem::take(&mut self.held);
                self.read_again(&rest);
                self.act(action, &marker);
                return;
            }
            let length = self.held.chars().next().map_or(0, char::len_utf8);
            let behind = self.held.len();
            let letter: String = self.held.drain(..length).collect();
            self.write(&letter, behind);
        }
    }

    /// The longest marker that the held text starts with, and whether it may become a longer one.
    fn find(&self) -> (Option<(usize, Action)>, bool) {
        let mut found: Option<(usize, Action)> = None;
        let mut may_grow = false;
        for trigger in self.plan.triggers.iter().filter(|trigger| self.counts(trigger)) {
            if self.held.starts_with(&trigger.text) {
                if found.is_none_or(|(length, _)| trigger.text.len() > length) {
                    found = Some((trigger.text.len(), trigger.action));
                }
            } else if trigger.text.starts_with(&self.held) {
                may_grow = true;
            }
        }
        (found, may_grow)
    }

    /// Whether a marker counts where the text stands.
    fn counts(&self, trigger: &Trigger) -> bool {
        let anywhere = trigger.place == Place::Anywhere;
        match (trigger.action, self.mode) {
            (Action::OpenReasoning, Mode::Content) => anywhere || self.at_start(),
            (Action::OpenReasoning | Action::Drop, Mode::Reasoning) => false,
            (Action::CloseReasoning, Mode::Reasoning) => true,
            (Action::CloseReasoning, Mode::Content) => anywhere || self.at_start(),
            (Action::Block | Action::Call, mode) => {
                anywhere || (mode == Mode::Content && self.without_content())
            }
            (Action::Drop | Action::Header | Action::EndMessage, _) => true,
        }
    }
}
