//! A place in a text, and errors that name it.

use crate::grammar::error::GrammarError;

/// A place in a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// Bytes before the place.
    pub(super) fn offset(self) -> usize {
        self.at
    }

    pub(super) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Goes past `expected` if it is here.
    pub(super) fn eat(&mut self, expected: &str) -> bool {
        let is_here = self.rest().starts_with(expected);
        if is_here {
            self.at += expected.len();
        }
        is_here
    }

    /// Goes past all characters for which `is_part` holds.
    pub(super) fn eat_while(&mut self, is_part: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|character| !is_part(character)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// Goes past blanks and comments, and past line ends too if `newlines`.
    pub(super) fn skip_space(&mut self, newlines: bool) {
        loop {
            self.eat_while(|c| c == ' ' || c == '\t' || newlines && (c == '\n' || c == '\r'));
            if self.peek() != Some('#') {
                return;
            }
            self.eat_while(|c| c != '\n' && c != '\r');
        }
    }

    /// An error at this place.
    pub(super) fn error(&self, message: impl Into<String>) -> GrammarError {
        self.error_at(self.at, message)
    }

    /// An error at a byte offset.
    pub(super) fn error_at(&self, offset: usize, message: impl Into<String>) -> GrammarError {
        let before = &self.text[..offset];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        GrammarError::Syntax {
            message: message.into(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }

    /// An error that says what was expected here and what is there instead.
    pub(super) fn expected(&self, expected: &str) -> GrammarError {
        let found = match self.peek() {
            None => "the end of the grammar".to_owned(),
            Some('\n' | '\r') => "the end of the line".to_owned(),
            Some(character) => format!("`{character}`"),
        };
        self.error(format!("expected {expected}, found {found}"))
    }
}
