//! One text of a message, trimmed as it grows.

/// Reasoning or content: segments, each trimmed, joined by a blank line. Only ever appended to.
#[derive(Clone, Debug, Default)]
pub(super) struct Field {
    text: String,
    /// Whitespace that belongs to the text only if more text follows.
    held: String,
    /// Whether the current segment has text.
    open: bool,
}

impl Field {
    pub(super) fn push(&mut self, letter: char) {
        if letter.is_whitespace() {
            if self.open {
                self.held.push(letter);
            }
            return;
        }
        if self.open {
            self.text.push_str(&self.held);
        } else if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.held.clear();
        self.open = true;
        self.text.push(letter);
    }

    /// Takes a letter that somebody else has already written: what follows continues it.
    pub(super) fn assume(&mut self, letter: char) {
        self.open |= !letter.is_whitespace();
    }

    pub(super) fn end_segment(&mut self) {
        self.held.clear();
        self.open = false;
    }

    /// Whether the current segment has text.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// Whether no segment has text.
    pub(super) fn is_untouched(&self) -> bool {
        !self.open && self.text.is_empty()
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::Field;

    #[test]
    fn segments_are_trimmed_and_joined() {
        let mut field = Field::default();
        for letter in " \n a  b\n ".chars() {
            field.push(letter);
        }
        field.end_segment();
        assert_eq!(field.as_str(), "a  b");
        for letter in "\tc ".chars() {
            field.push(letter);
        }
        assert_eq!(field.as_str(), "a  b\n\nc");
    }

    #[test]
    fn what_was_written_before_is_continued() {
        let mut field = Field::default();
        "Hi".chars().for_each(|letter| field.assume(letter));
        " you".chars().for_each(|letter| field.push(letter));
        assert_eq!(field.as_str(), " you");
    }
}
