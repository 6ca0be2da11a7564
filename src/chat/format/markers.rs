//! Every fixed text of a format.

use super::write::delimiter;
use super::{ArgumentSyntax, ChatFormat, Parameters, Piece, Text, Typing};

impl ChatFormat {
    /// Whether `name`, a token's, is a marker of this format or a part of one: the parser has to see
    /// it although the token is no text.
    pub fn has_marker(&self, name: &str) -> bool {
        !name.is_empty() && self.texts().iter().any(|text| text.contains(name))
    }

    /// Whether reading an answer may find anything but plain content in it.
    pub fn is_read(&self, has_tools: bool) -> bool {
        self.reasoning.is_some()
            || self.channels.is_some()
            || !self.content_marks.is_empty()
            || (has_tools && self.tools.is_some())
    }

    fn texts(&self) -> Vec<&str> {
        let mut texts: Vec<&str> = self.content_marks.iter().map(Text::as_ref).collect();
        if let Some(reasoning) = &self.reasoning {
            texts.extend([&*reasoning.open, &*reasoning.close]);
        }
        if let Some(channels) = &self.channels {
            texts.extend([&*channels.message, &*channels.recipient, &*channels.reasoning_header]);
            let lists = [&channels.starts, &channels.ends, &channels.content_headers];
            texts.extend(lists.into_iter().flatten().map(Text::as_ref));
            texts.push(&channels.next);
        }
        if let Some(tools) = &self.tools {
            texts.push(&tools.between);
            let pieces = tools.open.iter().chain(&tools.call).chain(&tools.close);
            for piece in pieces {
                texts.extend(piece.texts().iter().map(Text::as_ref));
                if let Piece::Arguments(syntax) = piece {
                    texts.extend(argument_texts(syntax));
                }
            }
        }
        texts
    }
}

fn argument_texts(syntax: &ArgumentSyntax) -> Vec<&str> {
    match syntax {
        ArgumentSyntax::Object(dialect) => vec![delimiter(dialect)],
        ArgumentSyntax::PythonCall => Vec::new(),
        ArgumentSyntax::Parameters(Parameters { open, name_end, typing, close, .. }) => {
            let typing: &str = match typing {
                Typing::Schema => "",
                Typing::StringFlag(text) | Typing::TypeName(text) => text,
            };
            vec![open, name_end, typing, close]
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::chat::format::ChatFormat;
    use crate::chat::formats::named;

    #[test]
    fn markers_are_known_whole_and_in_parts() {
        let hermes = named("hermes_json").unwrap();
        assert!(hermes.has_marker("<tool_call>") && hermes.has_marker("</think>"));
        assert!(!hermes.has_marker("<|vision_start|>") && !hermes.has_marker(""));
        assert!(named("gemma4").unwrap().has_marker("<|\"|>"));
        assert!(named("harmony").unwrap().has_marker("<|channel|>"));
        assert!(hermes.is_read(false));
        let plain = ChatFormat { reasoning: None, ..hermes };
        assert!(plain.is_read(true) && !plain.is_read(false));
        assert!(!ChatFormat::content_only().is_read(true));
    }
}
