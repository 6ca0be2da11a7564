//! What may stand around the text of a parameter without being part of it.

/// The text around a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrapping {
    None,
    /// One newline before and one after, each where it is there.
    Newlines,
    /// `<![CDATA[` and `]]>`, the latter only if the former is there.
    Cdata,
}

impl Wrapping {
    fn before(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Newlines => "\n",
            Self::Cdata => "<![CDATA[",
        }
    }

    fn after(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Newlines => "\n",
            Self::Cdata => "]]>",
        }
    }
}

/// Takes a wrapping off a text as it arrives.
#[derive(Clone, Debug)]
pub(super) struct Unwrap {
    wrapping: Wrapping,
    state: State,
    /// Text that may belong to the wrapping.
    held: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Before,
    Inside,
    /// What stands after the value is part of it.
    Bare,
}

impl Unwrap {
    pub(super) fn new(wrapping: Wrapping) -> Self {
        Self { wrapping, state: State::Before, held: String::new() }
    }

    /// Appends to `value` what is certain to be part of it.
    pub(super) fn push(&mut self, text: &str, value: &mut String) {
        if self.state == State::Bare {
            value.push_str(text);
            return;
        }
        self.held.push_str(text);
        if self.state == State::Before {
            self.take_before();
        }
        match self.state {
            State::Before => {}
            State::Inside => {
                let certain = self.held.len() - self.tail();
                value.extend(self.held.drain(..certain));
            }
            State::Bare => value.push_str(&std::mem::take(&mut self.held)),
        }
    }

    /// The text has ended.
    pub(super) fn finish(self, value: &mut String) {
        let rest = match self.state {
            State::Inside => self.held.strip_suffix(self.wrapping.after()).unwrap_or(&self.held),
            State::Before | State::Bare => &self.held,
        };
        value.push_str(rest);
    }

    fn take_before(&mut self) {
        let before = self.wrapping.before();
        if self.held.starts_with(before) {
            self.held.drain(..before.len());
            self.state = State::Inside;
        } else if !before.starts_with(&self.held) {
            self.state = match self.wrapping {
                Wrapping::Newlines => State::Inside,
                Wrapping::None | Wrapping::Cdata => State::Bare,
            };
        }
    }

    /// Bytes at the end of the held text that may be the start of what stands after the value.
    fn tail(&self) -> usize {
        let after = self.wrapping.after();
        (0..=after.len())
            .rev()
            .find(|&length| after.get(..length).is_some_and(|start| self.held.ends_with(start)))
            .unwrap_or(0)
    }
}
