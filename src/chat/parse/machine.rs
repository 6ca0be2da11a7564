//! The state machine: letters in, fields of a message out.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use super::call::Call;
use super::header::Header;
use super::ids::{Written, call_id};
use super::plan::{Action, Plan};
use super::text::Field;
use super::{ChatMessage, ParseOptions, ToolCall};
use crate::chat::format::ChatFormat;

/// Which field free text goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Reasoning,
    Content,
}

/// What the machine is reading.
#[derive(Clone, Debug)]
pub(super) enum State {
    /// Free text; what may be a marker is in [`Machine::held`].
    Text,
    /// Something that is a call or may become one.
    Call(Box<Call>),
    /// The header of a message.
    Header(Header),
}

/// Reads one answer.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) format: Arc<ChatFormat>,
    pub(super) options: ParseOptions,
    pub(super) plan: Plan,
    pub(super) state: State,
    pub(super) mode: Mode,
    /// Free text that may be the start of a marker.
    pub(super) held: String,
    /// Letters to read again.
    queue: VecDeque<char>,
    /// Bytes that have been read, the prefill's included.
    read: usize,
    reasoning: Field,
    content: Field,
    calls: Vec<ToolCall>,
    ids: HashSet<String>,
    /// Letters looked at, those read again counted each time.
    #[cfg(test)]
    pub(super) looks: usize,
}

impl Machine {
    pub(super) fn new(format: Arc<ChatFormat>, options: ParseOptions) -> Self {
        let plan = Plan::new(&format, &options.tools, options.separate_reasoning);
        let prefill = options.prefill.clone();
        let mut machine = Self {
            format,
            options,
            plan,
            state: State::Text,
            mode: Mode::Content,
            held: String::new(),
            queue: VecDeque::new(),
            read: 0,
            reasoning: Field::default(),
            content: Field::default(),
            calls: Vec::new(),
            ids: HashSet::new(),
            #[cfg(test)]
            looks: 0,
        };
        machine.push(&prefill);
        machine
    }

    /// Reads on.
    pub(super) fn push(&mut self, text: &str) {
        for letter in text.chars() {
            self.queue.push_back(letter);
            self.run();
        }
    }

    /// The text has ended: what was held back is what it looks like.
    pub(super) fn finish(&mut self) {
        loop {
            match std::mem::replace(&mut self.state, State::Text) {
                State::Text if self.held.is_empty() => return,
                State::Text => self.scan(true),
                State::Call(call) => self.finish_call(*call),
                State::Header(header) => self.finish_header(&header),
            }
            self.run();
        }
    }

    pub(super) fn message(&self) -> ChatMessage {
        ChatMessage {
            reasoning: self.reasoning.as_str().to_owned(),
            content: self.content.as_str().to_owned(),
            tool_calls: self.calls.clone(),
        }
    }

    pub(super) fn reasoning(&self) -> &str {
        self.reasoning.as_str()
    }

    pub(super) fn content(&self) -> &str {
        self.content.as_str()
    }

    pub(super) fn calls(&self) -> &[ToolCall] {
        &self.calls
    }

    fn run(&mut self) {
        while let Some(letter) = self.queue.pop_front() {
            self.read += letter.len_utf8();
            #[cfg(test)]
            {
                self.looks += 1;
            }
            match std::mem::replace(&mut self.state, State::Text) {
                State::Text => self.text_letter(letter),
                State::Call(call) => self.call_letter(call, letter),
                State::Header(header) => self.header_letter(header, letter),
            }
        }
    }

    /// Has these letters, the last ones that were read, read again.
    pub(super) fn read_again(&mut self, text: &str) {
        self.read = self.read.saturating_sub(text.len());
        for letter in text.chars().rev() {
            self.queue.push_front(letter);
        }
    }

    /// Where a text that has just been read starts.
    pub(super) fn position(&self, text: &str) -> usize {
        self.read.saturating_sub(text.len())
    }

    /// Writes free text. `behind`: bytes that have been read after it and `text` itself.
    pub(super) fn write(&mut self, text: &str, behind: usize) {
        let mut position = self.read.saturating_sub(behind);
        let prefill = self.options.prefill.len();
        let field = match self.mode {
            Mode::Reasoning => &mut self.reasoning,
            Mode::Content => &mut self.content,
        };
        for letter in text.chars() {
            if position >= prefill {
                field.push(letter);
            } else if self.options.continues {
                field.assume(letter);
            }
            position += letter.len_utf8();
        }
    }

    pub(super) fn end_segments(&mut self) {
        self.reasoning.end_segment();
        self.content.end_segment();
    }

    pub(super) fn set_mode(&mut self, mode: Mode) {
        self.end_segments();
        self.mode = mode;
    }

    /// Whether no content has been written since the start or the last call.
    pub(super) fn at_start(&self) -> bool {
        !self.content.is_open()
    }

    /// Whether there is no content at all.
    pub(super) fn without_content(&self) -> bool {
        self.content.is_untouched()
    }

    /// Begins the call of a function that is on offer; its index.
    pub(super) fn begin_call(
        &mut self,
        name: &str,
        id: Option<&str>,
        ordinal: Option<&str>,
    ) -> usize {
        self.end_segments();
        let index = self.calls.len();
        let written = Written { id, name, ordinal };
        let ids = &self.ids;
        let taken = |id: &str| ids.contains(id);
        let id = call_id(self.format.call_ids, self.options.id_seed, index, &written, &taken);
        self.ids.insert(id.clone());
        self.calls.push(ToolCall {
            id,
            name: name.to_owned(),
            arguments: String::new(),
            complete: false,
        });
        index
    }

    pub(super) fn call_mut(&mut self, index: usize) -> Option<&mut ToolCall> {
        self.calls.get_mut(index)
    }

    /// Does what a marker says. `marker` has been read, and nothing after it.
    pub(super) fn act(&mut self, action: Action, marker: &str) {
        match action {
            Action::OpenReasoning => self.set_mode(Mode::Reasoning),
            Action::CloseReasoning | Action::EndMessage => self.set_mode(Mode::Content),
            Action::Drop => self.end_segments(),
            Action::Header => self.state = State::Header(Header::new(marker)),
            Action::Block | Action::Call => {
                self.state = State::Call(Box::new(Call::new(action == Action::Block)));
                self.read_again(marker);
            }
        }
    }
}
