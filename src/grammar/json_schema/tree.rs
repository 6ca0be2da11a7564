//! A JSON text in one arena, and the parser that fills it without recursion.

use std::fmt::Write;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::grammar::LimitError;

use super::decimal::Decimal;
use super::error::SchemaError;

/// Nesting of arrays and objects beyond this is refused.
const DEPTH_MAX: u32 = 1_024;
/// Objects with more entries look for repeated keys in a set.
const SCAN_KEYS_MAX: usize = 12;

/// A value of a [`Tree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ValueId(pub(super) u32);

/// A range of bytes of the tree's text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

/// A range of the tree's items or entries.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slice {
    start: u32,
    end: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Number(Span),
    String(Span),
    Array(Slice),
    Object(Slice),
}

/// JSON texts, each a root. Values are numbered in the order of the text.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// The texts; decoded strings that have escapes come after theirs.
    text: String,
    values: Vec<Value>,
    /// For each value the array or object it is in; a root is its own.
    parents: Vec<ValueId>,
    items: Vec<ValueId>,
    entries: Vec<(Span, ValueId)>,
}

impl Tree {
    /// Reads one more text and returns its root.
    pub(super) fn read(&mut self, source: &str) -> Result<ValueId, SchemaError> {
        let start = self.text.len();
        // Every span of this text, and of its decoded strings, which are no longer, fits 32 bits.
        if source.len() > (u32::MAX / 4) as usize || start > (u32::MAX / 4) as usize {
            return Err(LimitError::Steps.into());
        }
        self.text.push_str(source);
        // Of most schemas a value takes twenty to thirty bytes.
        let expected = source.len() / 24;
        self.values.reserve(expected);
        self.parents.reserve(expected);
        self.entries.reserve(expected);
        let mut parser = Parser { tree: self, source, base: start, at: 0 };
        parser.document()
    }

    pub(super) fn get(&self, id: ValueId) -> Value {
        self.values.get(id.0 as usize).copied().unwrap_or(Value::Null)
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn text(&self, span: Span) -> &str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    pub(super) fn items(&self, slice: Slice) -> &[ValueId] {
        self.items.get(slice.start as usize..slice.end as usize).unwrap_or(&[])
    }

    pub(super) fn entries(&self, slice: Slice) -> &[(Span, ValueId)] {
        self.entries.get(slice.start as usize..slice.end as usize).unwrap_or(&[])
    }

    /// The value of a key, if `id` is an object that has it.
    pub(super) fn member(&self, id: ValueId, key: &str) -> Option<ValueId> {
        let Value::Object(entries) = self.get(id) else { return None };
        self.entries(entries).iter().find(|(name, _)| self.text(*name) == key).map(|&(_, id)| id)
    }

    /// The text of a member that is a string.
    pub(super) fn string_member(&self, id: ValueId, key: &str) -> Option<&str> {
        match self.get(self.member(id, key)?) {
            Value::String(text) => Some(self.text(text)),
            _ => None,
        }
    }

    /// The array or object that holds a value.
    pub(super) fn parent(&self, id: ValueId) -> Option<ValueId> {
        self.parents.get(id.0 as usize).copied().filter(|&parent| parent != id)
    }

    /// Writes the step of a pointer from `parent` to `child`, escaped.
    fn write_step(&self, parent: ValueId, child: ValueId, pointer: &mut String) {
        match self.get(parent) {
            Value::Array(items) => {
                let at = self.items(items).iter().position(|&item| item == child);
                // Nothing fails where a string is written to.
                let _ = at.map(|index| write!(pointer, "{index}"));
            }
            Value::Object(entries) => {
                let entry = self.entries(entries).iter().find(|entry| entry.1 == child);
                for character in entry.map_or("", |entry| self.text(entry.0)).chars() {
                    match character {
                        '~' => pointer.push_str("~0"),
                        '/' => pointer.push_str("~1"),
                        other => pointer.push(other),
                    }
                }
            }
            _ => {}
        }
    }

    /// The JSON pointer of a value from the root it is in.
    pub(super) fn pointer(&self, id: ValueId) -> String {
        let mut steps: SmallVec<[(ValueId, ValueId); 16]> = SmallVec::new();
        let mut at = id;
        while let Some(parent) = self.parent(at) {
            steps.push((parent, at));
            at = parent;
        }
        let mut pointer = String::with_capacity(64);
        pointer.push('#');
        for &(parent, child) in steps.iter().rev() {
            pointer.push('/');
            self.write_step(parent, child, &mut pointer);
        }
        pointer
    }

    /// Follows the decoded steps of a JSON pointer (`/a/0`, or empty).
    pub(super) fn follow(&self, from: ValueId, pointer: &str) -> Option<ValueId> {
        if pointer.is_empty() {
            return Some(from);
        }
        let mut at = from;
        for step in pointer.strip_prefix('/')?.split('/') {
            let step = step.replace("~1", "/").replace("~0", "~");
            at = match self.get(at) {
                Value::Object(_) => self.member(at, &step)?,
                Value::Array(items) => *self.items(items).get(step.parse::<usize>().ok()?)?,
                _ => return None,
            };
        }
        Some(at)
    }
}

/// An array or object that is not closed yet.
struct Open {
    id: ValueId,
    object: bool,
    /// Where its members begin in the list of pending ones.
    first: usize,
}

struct Parser<'a> {
    tree: &'a mut Tree,
    source: &'a str,
    /// Where the source begins in the tree's text.
    base: usize,
    at: usize,
}

/// Members of containers that are open together, mostly.
const PENDING_EXPECTED: usize = 32;

impl Parser<'_> {
    fn document(&mut self) -> Result<ValueId, SchemaError> {
        let mut open: Vec<Open> = Vec::new();
        let mut pending: Vec<(Span, ValueId)> = Vec::with_capacity(PENDING_EXPECTED);
        let mut key = Span { start: 0, end: 0 };
        let root = ValueId(self.tree.values.len() as u32);
        loop {
            self.skip_space();
            let (id, container) = self.value(open.last().map(|open| open.id))?;
            pending.push((key, id));
            if let Some(object) = container {
                if open.len() as u32 >= DEPTH_MAX {
                    return Err(LimitError::Depth { max: DEPTH_MAX }.into());
                }
                open.push(Open { id, object, first: pending.len() });
                self.skip_space();
                if !self.eat(if object { b'}' } else { b']' }) {
                    if object {
                        key = self.key()?;
                    }
                    continue;
                }
                self.close(&mut open, &mut pending)?;
            }
            if !self.next_member(&mut open, &mut pending, &mut key)? {
                break;
            }
        }
        self.skip_space();
        if self.at < self.source.len() {
            return Err(self.error("text after the end of the value"));
        }
        Ok(root)
    }

    /// After a value: closes what ends here, and moves on to the next member, if there is one.
    fn next_member(
        &mut self,
        open: &mut Vec<Open>,
        pending: &mut Vec<(Span, ValueId)>,
        key: &mut Span,
    ) -> Result<bool, SchemaError> {
        while let Some(object) = open.last().map(|open| open.object) {
            self.skip_space();
            if self.eat(b',') {
                if object {
                    self.skip_space();
                    *key = self.key()?;
                }
                return Ok(true);
            }
            if !self.eat(if object { b'}' } else { b']' }) {
                return Err(self.error(if object {
                    "expected `,` or `}`"
                } else {
                    "expected `,` or `]`"
                }));
            }
            self.close(open, pending)?;
        }
        Ok(false)
    }

    /// Moves the members of the innermost container to their place.
    fn close(
        &mut self,
        open: &mut Vec<Open>,
        pending: &mut Vec<(Span, ValueId)>,
    ) -> Result<(), SchemaError> {
        let Some(Open { id, object, first }) = open.pop() else { return Ok(()) };
        let members = pending.drain(first..);
        let value = if object {
            let start = self.tree.entries.len() as u32;
            self.tree.entries.extend(members);
            let slice = Slice { start, end: self.tree.entries.len() as u32 };
            self.check_keys(slice)?;
            Value::Object(slice)
        } else {
            let start = self.tree.items.len() as u32;
            self.tree.items.extend(members.map(|(_, id)| id));
            Value::Array(Slice { start, end: self.tree.items.len() as u32 })
        };
        if let Some(slot) = self.tree.values.get_mut(id.0 as usize) {
            *slot = value;
        }
        Ok(())
    }

    fn check_keys(&self, slice: Slice) -> Result<(), SchemaError> {
        let entries = self.tree.entries(slice);
        let name = |entry: &(Span, ValueId)| self.tree.text(entry.0);
        let repeated = if entries.len() <= SCAN_KEYS_MAX {
            entries.iter().enumerate().find(|(index, entry)| {
                entries.iter().take(*index).any(|other| name(other) == name(entry))
            })
        } else {
            let mut seen = FxHashSet::default();
            entries.iter().enumerate().find(|(_, entry)| !seen.insert(name(entry)))
        };
        match repeated {
            Some((_, entry)) => Err(self.error(&format!("the key {:?} comes twice", name(entry)))),
            None => Ok(()),
        }
    }

    /// A scalar, or the start of a container: `Some(whether it is an object)`.
    fn value(&mut self, parent: Option<ValueId>) -> Result<(ValueId, Option<bool>), SchemaError> {
        let (value, container) = match self.peek() {
            Some(b'{') => {
                self.at += 1;
                (Value::Object(Slice::default()), Some(true))
            }
            Some(b'[') => {
                self.at += 1;
                (Value::Array(Slice::default()), Some(false))
            }
            Some(b'"') => (Value::String(self.string()?), None),
            Some(b'-' | b'0'..=b'9') => (Value::Number(self.number()?), None),
            _ => (self.word()?, None),
        };
        let id = ValueId(self.tree.values.len() as u32);
        self.tree.values.push(value);
        self.tree.parents.push(parent.unwrap_or(id));
        Ok((id, container))
    }

    fn word(&mut self) -> Result<Value, SchemaError> {
        let words =
            [("true", Value::Bool(true)), ("false", Value::Bool(false)), ("null", Value::Null)];
        for (word, value) in words {
            if self
                .source
                .as_bytes()
                .get(self.at..)
                .is_some_and(|rest| rest.starts_with(word.as_bytes()))
            {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.error("expected a value"))
    }

    fn number(&mut self) -> Result<Span, SchemaError> {
        let rest = self.source.as_bytes().get(self.at..).unwrap_or(&[]);
        let length = rest
            .iter()
            .take_while(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'))
            .count();
        let text = self.source.get(self.at..self.at + length).unwrap_or("");
        if Decimal::parse(text).is_none() {
            return Err(self.error("no JSON number, or an exponent of more than 18 digits"));
        }
        let span = self.span(self.at, self.at + length);
        self.at += length;
        Ok(span)
    }

    fn key(&mut self) -> Result<Span, SchemaError> {
        if self.peek() != Some(b'"') {
            return Err(self.error("expected a key in double quotes"));
        }
        let key = self.string()?;
        self.skip_space();
        if self.eat(b':') { Ok(key) } else { Err(self.error("expected `:`")) }
    }

    /// A string, from its opening quote on.
    fn string(&mut self) -> Result<Span, SchemaError> {
        self.at += 1;
        let start = self.at;
        let bytes = self.source.as_bytes();
        loop {
            match bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(self.span(start, self.at - 1));
                }
                Some(b'\\') => return self.escaped_string(start),
                Some(0..=0x1F) => return Err(self.error("a control character in a string")),
                Some(_) => self.at += 1,
                None => return Err(self.error("the string does not end")),
            }
        }
    }

    /// The rest of a string that has escapes; decoded to the end of the tree's text.
    fn escaped_string(&mut self, start: usize) -> Result<Span, SchemaError> {
        let mut decoded = String::from(self.source.get(start..self.at).unwrap_or(""));
        loop {
            let rest = self.source.get(self.at..).unwrap_or("");
            let mut chars = rest.chars();
            match chars.next() {
                Some('"') => break,
                Some('\\') => {
                    self.at += 1;
                    decoded.push(self.escape()?);
                }
                Some(character) if character >= ' ' => {
                    decoded.push(character);
                    self.at += character.len_utf8();
                }
                Some(_) => return Err(self.error("a control character in a string")),
                None => return Err(self.error("the string does not end")),
            }
        }
        self.at += 1;
        let start = self.tree.text.len() as u32;
        self.tree.text.push_str(&decoded);
        Ok(Span { start, end: self.tree.text.len() as u32 })
    }

    fn escape(&mut self) -> Result<char, SchemaError> {
        let byte = self.peek();
        self.at += 1;
        Ok(match byte {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{C}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return Err(self.error("no such escape")),
        })
    }

    fn unicode_escape(&mut self) -> Result<char, SchemaError> {
        let first = self.hex4()?;
        let code = if (0xD800..0xDC00).contains(&first) && self.eat(b'\\') && self.eat(b'u') {
            match self.hex4()? {
                second @ 0xDC00..0xE000 => 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00),
                _ => return Err(self.error("half of a surrogate pair")),
            }
        } else {
            first
        };
        char::from_u32(code).ok_or_else(|| self.error("half of a surrogate pair"))
    }

    fn hex4(&mut self) -> Result<u32, SchemaError> {
        let digits = self.source.get(self.at..self.at + 4).unwrap_or("");
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) || digits.len() != 4 {
            return Err(self.error("expected four hexadecimal digits"));
        }
        self.at += 4;
        u32::from_str_radix(digits, 16).map_err(|_| self.error("expected four hexadecimal digits"))
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span { start: (self.base + start) as u32, end: (self.base + end) as u32 }
    }

    fn peek(&self) -> Option<u8> {
        self.source.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn error(&self, message: &str) -> SchemaError {
        let mut end = self.at.min(self.source.len());
        while !self.source.is_char_boundary(end) {
            end -= 1;
        }
        let before = self.source.get(..end).unwrap_or("");
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        SchemaError::Syntax {
            message: message.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or("").chars().count() + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Tree, ValueId), SchemaError> {
        let mut tree = Tree::default();
        let root = tree.read(text)?;
        Ok((tree, root))
    }

    #[test]
    fn pointers_lead_back_to_values() {
        let (tree, root) = read(r#"{"a/b": [1, {"~": null}], "c": {}}"#).unwrap();
        for index in 0..tree.len() {
            let id = ValueId(index as u32);
            assert_eq!(tree.follow(root, tree.pointer(id).get(1..).unwrap()), Some(id));
        }
        assert_eq!(tree.follow(root, "/a~1b/2"), None);
        assert_eq!(tree.follow(root, "c"), None);
    }

    #[test]
    fn what_is_no_json_is_an_error_with_its_place() {
        for (text, line, column) in [
            ("", 1, 1),
            ("{\n \"a\" 1}", 2, 6),
            ("[1,\n2,]", 2, 3),
            ("{\"a\":1,\"a\":2}", 1, 14),
            ("[1] x", 1, 5),
            (r#""\ud800""#, 1, 8),
            (r#""\ud800\u0041""#, 1, 14),
            ("\"\u{1}\"", 1, 2),
            ("\"é", 1, 3),
            ("[01]", 1, 2),
            ("nul", 1, 1),
            ("{,}", 1, 2),
            ("{1:2}", 1, 2),
            (r#""\x""#, 1, 4),
            (r#""\u00g0""#, 1, 4),
            ("[1 2]", 1, 4),
        ] {
            match read(text) {
                Err(SchemaError::Syntax { line: l, column: c, .. }) => {
                    assert_eq!((l, c), (line, column), "{text}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn depth_is_bounded_without_recursion() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(read(&nested(1_024)).is_ok());
        assert_eq!(
            read(&nested(1_000_000)).unwrap_err(),
            SchemaError::Limit(LimitError::Depth { max: 1_024 })
        );
    }

    #[test]
    fn escapes_are_decoded() {
        let (tree, root) = read(r#""\"\\\/\b\f\n\r\t\u00e9\ud83d\ude42x""#).unwrap();
        let Value::String(text) = tree.get(root) else { panic!() };
        assert_eq!(tree.text(text), "\"\\/\u{8}\u{C}\n\r\té🙂x");
    }
}
