//! Regular expressions of which texts can be read off: fixed text, whitespace, named groups.

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Fixed text; `\s*`, `\s+` and `\n?` are one newline.
    Text(String),
    /// One of these texts; an empty one where the group is optional.
    Choice(Vec<String>),
    /// `(?P<name>…)`, whatever it matches.
    Group(String),
}

/// The parts of a pattern. The error says what cannot be read.
pub(super) fn read(pattern: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut rest = pattern;
    while !rest.is_empty() {
        if let Some(group) = rest.strip_prefix("(?P<") {
            let (name, body) = group.split_once('>').ok_or("a group has no name")?;
            let end = end_of_group(body)?;
            flush(&mut text, &mut parts);
            parts.push(Part::Group(name.to_owned()));
            rest = body.get(end + 1..).unwrap_or_default();
        } else if let Some(body) = rest.strip_prefix("(?:") {
            let end = end_of_group(body)?;
            let mut choice = alternatives(body.get(..end).unwrap_or_default())?;
            rest = body.get(end + 1..).unwrap_or_default();
            if let Some(after) = rest.strip_prefix('?') {
                choice.push(String::new());
                rest = after;
            }
            flush(&mut text, &mut parts);
            parts.push(Part::Choice(choice));
        } else {
            rest = read_text(rest, &mut text)?;
        }
    }
    flush(&mut text, &mut parts);
    Ok(parts)
}

/// The texts of a pattern that is one text or another; an end of the answer (`$`) is none.
pub(super) fn alternatives(pattern: &str) -> Result<Vec<String>, String> {
    let mut texts = Vec::new();
    for branch in branches(pattern)? {
        if branch == "$" {
            continue;
        }
        let mut choices = vec![String::new()];
        for part in read(branch)? {
            let more = match part {
                Part::Text(text) => vec![text],
                Part::Choice(texts) => texts,
                Part::Group(name) => return Err(format!("the group {name} is no text")),
            };
            choices = choices
                .iter()
                .flat_map(|start| more.iter().map(move |end| format!("{start}{end}")))
                .collect();
        }
        texts.extend(choices.iter().map(|text| text.trim_end().to_owned()));
    }
    texts.retain(|text| !text.is_empty());
    Ok(texts)
}

fn flush(text: &mut String, parts: &mut Vec<Part>) {
    if !text.is_empty() {
        parts.push(Part::Text(std::mem::take(text)));
    }
}

/// Reads a letter of fixed text, or whitespace; what is left of the pattern.
fn read_text<'a>(pattern: &'a str, text: &mut String) -> Result<&'a str, String> {
    for space in ["\\s*\\n?", "\\s*\\n", "\\s*", "\\s+", "\\n?", "\\n*", "\\n+", "\\n"] {
        if let Some(rest) = pattern.strip_prefix(space) {
            text.push('\n');
            return Ok(rest);
        }
    }
    let mut letters = pattern.chars();
    match letters.next() {
        Some('\\') => match letters.next() {
            Some(escaped) if !escaped.is_alphanumeric() => text.push(escaped),
            Some(class) => return Err(format!("\\{class} is no fixed text")),
            None => return Err("it ends with a backslash".to_owned()),
        },
        Some(meta @ ('.' | '*' | '+' | '?' | '[' | '(' | ')' | '|' | '{' | '^' | '$')) => {
            return Err(format!("{meta} is no fixed text"));
        }
        Some(letter) => text.push(letter),
        None => {}
    }
    let rest = letters.as_str();
    match rest.chars().next() {
        Some(meta @ ('*' | '+' | '?' | '{')) => Err(format!("{meta} after a letter is not read")),
        _ => Ok(rest),
    }
}

/// Where the group that `body` is the inside of ends.
fn end_of_group(body: &str) -> Result<usize, String> {
    let mut depth = 0_usize;
    let mut escaped = false;
    let mut in_class = false;
    for (at, letter) in body.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ']' => in_class = false,
            _ if in_class => {}
            '[' => in_class = true,
            '(' => depth += 1,
            ')' if depth == 0 => return Ok(at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    Err("a group does not end".to_owned())
}

/// The branches of `a|b`, those within groups left alone.
fn branches(pattern: &str) -> Result<Vec<&str>, String> {
    let mut branches = Vec::new();
    let (mut start, mut at) = (0, 0);
    let mut escaped = false;
    while let Some(letter) = pattern.get(at..).and_then(|rest| rest.chars().next()) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '(' => at += 1 + end_of_group(pattern.get(at + 1..).unwrap_or_default())?,
            '|' => {
                branches.push(pattern.get(start..at).unwrap_or_default());
                start = at + 1;
            }
            _ => {}
        }
        at += pattern.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
    }
    branches.push(pattern.get(start..).unwrap_or_default());
    Ok(branches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_groups_are_read() {
        let text = |text: &str| Part::Text(text.to_owned());
        let group = |name: &str| Part::Group(name.to_owned());
        assert_eq!(
            read(r"<call>\s*<fn=(?P<name>[^\n>)]+)>").unwrap(),
            [text("<call>\n<fn="), group("name"), text(">")]
        );
        assert_eq!(
            read(r"(?:<\|a\|>|b)x(?:c)?").unwrap(),
            [
                Part::Choice(vec!["<|a|>".to_owned(), "b".to_owned()]),
                text("x"),
                Part::Choice(vec!["c".to_owned(), String::new()])
            ]
        );
        assert_eq!(alternatives(r"(?:<t\|>|<\|r>)\s*|$").unwrap(), ["<t|>", "<|r>"]);
    }

    #[test]
    fn what_is_no_text_is_named() {
        for pattern in [r"a.*b", r"[ab]", r"\w+", r"(?=x)", r"ab*", r"(?P<a>x", r"a\", r"(?:a"] {
            assert!(read(pattern).is_err(), "{pattern}");
        }
        assert!(alternatives(r"(?P<a>x)").is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_pattern_breaks_the_reader(pattern in "[a\\\\()|?:*s$<>P\\[\\]{}é.]{0,24}") {
            let _ = read(&pattern);
            let _ = alternatives(&pattern);
        }
    }
}
