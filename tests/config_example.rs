//! `config/example.toml` is complete, equals the defaults, and tells the ranges that are checked.

#![allow(clippy::unwrap_used)]

use pleach::config::{ApiKey, Config};
use serde_json::Value;

const EXAMPLE: &str = include_str!("../config/example.toml");

#[test]
fn the_example_equals_the_defaults() {
    let config: Config = toml::from_str(EXAMPLE).unwrap();
    assert_eq!(config, Config::default());
}

#[test]
fn the_commented_keys_are_valid_too() {
    let text: String = EXAMPLE
        .lines()
        .filter(|line| !line.starts_with("keys = []") && !line.starts_with("# sha256 = "))
        .map(|line| if commented_key(line).is_some() { &line[2..] } else { line })
        .map(|line| if line == "# [[auth.keys]]" { &line[2..] } else { line })
        .fold(String::new(), |text, line| text + line + "\n");
    let config: Config = toml::from_str(&text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(config.check().map_err(|error| error.to_string()), Ok(()));
    assert_eq!(config.auth.keys.len(), 1);
    assert!(config.model.path.is_some() && config.device.simulated.fault.is_some());
}

#[test]
fn every_field_stands_in_the_example() {
    let mut expected = Vec::new();
    collect_keys("", &serde_json::to_value(Config::default()).unwrap(), &mut expected);
    let key = ApiKey { name: String::new(), sha256: None, file: None, weight: 1 };
    collect_keys("auth.keys", &serde_json::to_value(key).unwrap(), &mut expected);
    let present: Vec<String> = entries().into_iter().map(|entry| entry.path).collect();
    for path in &expected {
        assert!(present.contains(path), "{path} is missing in config/example.toml");
    }
    assert!(expected.len() > 60, "only {} keys were looked for", expected.len());
}

#[test]
fn every_number_is_checked_against_the_range_in_its_comment() {
    let mut checked = 0;
    for entry in entries() {
        let Some(value) = &entry.number else { continue };
        let Some((low, high)) = &entry.range else {
            assert!(entry.comment.contains("Above 0"), "{} has no range", entry.path);
            continue;
        };
        let with_point = |number: &str| {
            if value.contains('.') { format!("{number}.0") } else { number.to_owned() }
        };
        for inside in [low, high] {
            let error = problem_with(&entry, &with_point(inside));
            assert_eq!(error, None, "{} = {inside}", entry.path);
        }
        let low: i128 = low.parse().unwrap();
        let high: i128 = high.parse().unwrap();
        for outside in [low - 1, high + 1] {
            let error = problem_with(&entry, &with_point(&outside.to_string()));
            assert!(error.is_some(), "{} = {outside} was taken", entry.path);
        }
        checked += 1;
    }
    assert!(checked > 35, "only {checked} ranges were checked");
}

/// A `key = value` line of the example.
struct Entry {
    path: String,
    line: usize,
    number: Option<String>,
    comment: String,
    range: Option<(String, String)>,
}

/// Every key of the example, commented out or not, with the comment lines above it.
fn entries() -> Vec<Entry> {
    let mut section = String::new();
    let mut comment = String::new();
    let mut entries = Vec::new();
    for (line, text) in EXAMPLE.lines().enumerate() {
        let shown = text.trim_start_matches("# ");
        let commented = commented_key(text);
        if shown.starts_with('[') {
            section = shown.trim_matches(['[', ']']).to_owned();
        } else if let Some((key, value)) =
            commented.or_else(|| text.split_once(" = ").filter(|_| !text.starts_with('#')))
        {
            entries.push(Entry {
                path: format!("{section}.{key}"),
                line,
                number: value.parse::<f64>().is_ok().then(|| value.to_owned()),
                range: range_in(&comment),
                comment: std::mem::take(&mut comment),
            });
        } else if let Some(words) = text.strip_prefix("# ") {
            comment = format!("{comment} {words}");
        } else {
            comment.clear();
        }
    }
    entries
}

/// The key and value of a line that is a commented-out key.
fn commented_key(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.strip_prefix("# ")?.split_once(" = ")?;
    key.bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        .then_some((key, value))
}

/// The last "A to B" of two integers in a comment.
fn range_in(comment: &str) -> Option<(String, String)> {
    let words: Vec<&str> = comment.split([' ', ',', '.', ';']).filter(|w| !w.is_empty()).collect();
    let is_number = |word: &str| word.parse::<i128>().is_ok();
    words
        .windows(3)
        .rev()
        .find(|three| three[1] == "to" && is_number(three[0]) && is_number(three[2]))
        .map(|three| (three[0].to_owned(), three[2].to_owned()))
}

/// What is said about the entry's own key when it has another value.
fn problem_with(entry: &Entry, value: &str) -> Option<String> {
    let key = entry.path.rsplit('.').next().unwrap();
    let text: String = EXAMPLE
        .lines()
        .enumerate()
        .map(|(line, text)| match line == entry.line {
            true => format!("{key} = {value}\n"),
            false => format!("{text}\n"),
        })
        .collect();
    let config: Config = match toml::from_str(&text) {
        Ok(config) => config,
        Err(error) => return Some(error.to_string()),
    };
    let errors = config.check().err()?.to_string();
    // A rule between two keys may speak too; "must be A to B" is the range's own.
    errors
        .lines()
        .find(|line| line.starts_with(&format!("{} must be", entry.path)) && line.contains(" to "))
        .filter(|line| !line.contains("for the ggml device"))
        .map(str::to_owned)
}

fn collect_keys(prefix: &str, value: &Value, keys: &mut Vec<String>) {
    let Value::Object(fields) = value else { panic!("{prefix} is not a table") };
    for (name, field) in fields {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match field {
            Value::Object(_) => collect_keys(&path, field, keys),
            _ => keys.push(path),
        }
    }
}
