//! Where in the file a key stands, for error messages.

use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::ConfigError;

/// A config file's text, to look places up in.
pub(super) struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    pub(super) fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), text })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The folder that relative paths in the file start at.
    pub(super) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// `file:line:column` of a key, or of the closest table above it that the file has.
    pub(super) fn place_of(&self, key: &str) -> String {
        match offset_of(&self.text, key) {
            Some(offset) => self.place_at(offset),
            None => self.path.display().to_string(),
        }
    }

    /// The parser's error with its place and the path of the key that it is about.
    pub(super) fn syntax_error(&self, error: &toml::de::Error) -> ConfigError {
        let message = error.message().replace('\n', ", ");
        let Some(span) = error.span() else {
            return ConfigError::Syntax { place: self.path.display().to_string(), message };
        };
        let message = match key_at(&self.text, span.start) {
            Some(key) => format!("{key}: {message}"),
            None => message,
        };
        ConfigError::Syntax { place: self.place_at(span.start), message }
    }

    fn place_at(&self, offset: usize) -> String {
        let (line, column) = line_and_column(&self.text, offset);
        format!("{}:{line}:{column}", self.path.display())
    }
}

/// Line and column of a byte offset, both from 1; columns count characters.
fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.matches('\n').count() + 1;
    let column = before.get(line_start..).unwrap_or_default().chars().count() + 1;
    (line, column)
}

/// Byte offset of the key at `path` (`limits.max_sessions`, `auth.keys[0].file`).
fn offset_of(text: &str, path: &str) -> Option<usize> {
    let root = DeTable::parse(text).ok()?;
    let mut table = root.get_ref();
    let mut offset = None;
    for part in path.split('.') {
        let (name, index) = match part.split_once('[') {
            Some((name, rest)) => (name, rest.trim_end_matches(']').parse::<usize>().ok()),
            None => (part, None),
        };
        let Some((key, value)) = table.iter().find(|(key, _)| key.get_ref() == name) else {
            break;
        };
        let item = index.and_then(|index| value.get_ref().as_array()?.get(index));
        offset = Some(item.map_or(key.span().start, |item| item.span().start));
        match item.unwrap_or(value).get_ref().as_table() {
            Some(below) => table = below,
            None => break,
        }
    }
    offset
}

/// Path of the key or value that starts at, or spans, a byte offset; `None` outside of any.
fn key_at(text: &str, offset: usize) -> Option<String> {
    let root = DeTable::parse(text).ok()?;
    key_in_table(root.get_ref(), offset)
}

fn key_in_table(table: &DeTable<'_>, offset: usize) -> Option<String> {
    table.iter().find_map(|(key, value)| {
        let name = key.get_ref();
        if key.span().contains(&offset) {
            return Some(name.to_string());
        }
        key_in_value(value, offset).map(|below| format!("{name}{below}"))
    })
}

/// What follows the key's own name: nothing, `.key` or `[index]`.
fn key_in_value(value: &Spanned<DeValue<'_>>, offset: usize) -> Option<String> {
    let below = match value.get_ref() {
        DeValue::Table(table) => key_in_table(table, offset).map(|below| format!(".{below}")),
        DeValue::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
            key_in_value(item, offset).map(|below| format!("[{index}]{below}"))
        }),
        _ => None,
    };
    below.or_else(|| value.span().contains(&offset).then(String::new))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
[limits]
max_queued = 1
  max_sessions = 0 # é

[[auth.keys]]
name = \"a\"
[[auth.keys]]
name = \"b\"
sha256 = \"x\"
[model]
aliases = [\"é\", 7]
";

    fn place(path: &str) -> Option<(usize, usize)> {
        offset_of(TEXT, path).map(|offset| line_and_column(TEXT, offset))
    }

    #[test]
    fn finds_keys_tables_and_items() {
        assert_eq!(place("limits.max_sessions"), Some((3, 3)));
        assert_eq!(place("auth.keys[1].sha256"), Some((9, 1)));
        assert_eq!(place("auth.keys[1].file"), Some((7, 1)));
        assert_eq!(place("model.aliases[1]"), Some((11, 17)));
        assert_eq!(place("server.listen"), None);
    }

    #[test]
    fn names_the_key_at_an_offset() {
        let at = |needle: &str| key_at(TEXT, TEXT.find(needle).unwrap());
        assert_eq!(at("max_sessions").as_deref(), Some("limits.max_sessions"));
        assert_eq!(at("0 #").as_deref(), Some("limits.max_sessions"));
        assert_eq!(at("\"x\"").as_deref(), Some("auth.keys[1].sha256"));
        assert_eq!(at("7]").as_deref(), Some("model.aliases[1]"));
        assert_eq!(at("# é"), None);
    }

    #[test]
    fn an_offset_past_the_end_or_inside_a_character_is_no_panic() {
        assert_eq!(line_and_column("é", 1), (1, 2));
        assert_eq!(line_and_column("a\n", 99), (2, 1));
        assert_eq!(line_and_column("", 0), (1, 1));
    }
}
