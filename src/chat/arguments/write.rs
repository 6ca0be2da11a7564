//! JSON strings.

use std::fmt::Write;

/// Appends `text` as a JSON string, quotes included.
pub fn write_string(text: &str, out: &mut String) {
    out.push('"');
    escape(text, out);
    out.push('"');
}

/// Appends `text` as it stands within a JSON string.
pub(super) fn escape(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find(needs_escape) {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);
        let mut characters = special.chars();
        if let Some(character) = characters.next() {
            escape_character(character, out);
        }
        rest = characters.as_str();
    }
    out.push_str(rest);
}

fn needs_escape(character: char) -> bool {
    matches!(character, '"' | '\\' | '\0'..='\x1f')
}

fn escape_character(character: char, out: &mut String) {
    let short = match character {
        '"' => "\\\"",
        '\\' => "\\\\",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\x08' => "\\b",
        '\x0c' => "\\f",
        control => {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{:04x}", u32::from(control));
            return;
        }
    };
    out.push_str(short);
}
