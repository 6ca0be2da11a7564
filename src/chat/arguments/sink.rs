//! Output that may have to wait until a parenthesis is known to be a tuple.

/// Where a literal's JSON goes: to the caller, or to a buffer while a parenthesis is undecided.
#[derive(Clone, Debug, Default)]
pub(super) struct Sink {
    held: String,
    /// Positions in `held` of blanks that become `[` if their parenthesis is a tuple.
    undecided: Vec<usize>,
}

impl Sink {
    /// The text to append to.
    pub(super) fn of<'a>(&'a mut self, out: &'a mut String) -> &'a mut String {
        if self.undecided.is_empty() { out } else { &mut self.held }
    }

    /// A parenthesis has been read.
    pub(super) fn open_parenthesis(&mut self) {
        self.undecided.push(self.held.len());
        self.held.push(' ');
    }

    /// The innermost undecided parenthesis is a tuple.
    pub(super) fn decide_tuple(&mut self, out: &mut String) {
        if let Some(at) = self.undecided.pop() {
            self.held.replace_range(at..=at, "[");
        }
        self.flush(out);
    }

    /// The innermost undecided parenthesis only encloses a value.
    pub(super) fn decide_value(&mut self, out: &mut String) {
        self.undecided.pop();
        self.flush(out);
    }

    fn flush(&mut self, out: &mut String) {
        if self.undecided.is_empty() {
            out.push_str(self.held.trim_start_matches(' '));
            self.held.clear();
        }
    }
}
