mod bare_keys;
mod declared;
mod json;
mod properties;
mod python;
mod typed;
mod writers;

use super::{Converter, Dialect, Progress};

/// What a converter wrote, where it stopped, and how.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    json: String,
    end: End,
}

#[derive(Debug, PartialEq, Eq)]
enum End {
    /// More text was wanted.
    Open,
    /// Bytes of the whole text.
    Complete(usize),
    Broken(usize),
}

/// Pushes pieces until the value ends.
fn run<'a>(mut converter: Converter, pieces: impl IntoIterator<Item = &'a str>) -> Outcome {
    let mut json = String::new();
    let mut before = 0;
    for piece in pieces {
        let end = match converter.push(piece, &mut json) {
            Progress::Open => {
                before += piece.len();
                continue;
            }
            Progress::Complete { consumed } => End::Complete(before + consumed),
            Progress::Broken { consumed } => End::Broken(before + consumed),
        };
        let written = json.clone();
        assert_ne!(converter.push(" ]})\"", &mut json), Progress::Open);
        assert_eq!(json, written, "written after the end");
        return Outcome { json, end };
    }
    Outcome { json, end: End::Open }
}

/// The text whole, by characters, and in every two pieces, which must agree; whatever each prefix
/// gives must be a prefix.
fn run_all_ways(converter: &Converter, text: &str) -> Outcome {
    let whole = run(converter.clone(), [text]);
    let characters = text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]);
    assert_eq!(run(converter.clone(), characters), whole, "by characters: {text}");
    for (at, _) in text.char_indices() {
        let (left, right) = text.split_at(at);
        assert_eq!(run(converter.clone(), [left, right]), whole, "cut at {at}: {text}");
        let part = run(converter.clone(), [left]);
        assert!(whole.json.starts_with(&part.json), "prefix {at} of {text}: {}", part.json);
    }
    whole
}

/// The JSON of a text that is one whole value.
fn convert(converter: &Converter, text: &str) -> String {
    let Outcome { json, end } = run_all_ways(converter, text);
    assert_eq!(end, End::Complete(text.len()), "{text} gave {json}");
    serde_json::from_str::<serde_json::Value>(&json).unwrap_or_else(|e| panic!("{json}: {e}"));
    json
}

fn assert_broken_at(converter: &Converter, text: &str, at: usize) {
    assert_eq!(run_all_ways(converter, text).end, End::Broken(at), "{text}");
}

fn table(dialect: &Dialect, rows: &[(&str, &str)]) {
    let converter = Converter::new(dialect.clone());
    for (text, json) in rows {
        assert_eq!(convert(&converter, text), *json, "{text}");
    }
}
