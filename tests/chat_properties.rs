//! What holds for every text and every way of cutting it.

#![allow(clippy::unwrap_used)]

mod chat_support;

use std::sync::Arc;

use chat_support::{Row, rows};
use pleach::chat::format::{ChatFormat, Piece};
use pleach::chat::parse::{ChatMessage, ChatStream, Delta, ParseOptions, parse};
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Checks that each field of `earlier` is a prefix of that field of `later`.
fn check_prefix(earlier: &ChatMessage, later: &ChatMessage) -> Result<(), TestCaseError> {
    prop_assert!(later.reasoning.starts_with(&earlier.reasoning), "{earlier:?} {later:?}");
    prop_assert!(later.content.starts_with(&earlier.content), "{earlier:?} {later:?}");
    prop_assert!(later.tool_calls.len() >= earlier.tool_calls.len(), "{earlier:?} {later:?}");
    for (one, other) in earlier.tool_calls.iter().zip(&later.tool_calls) {
        prop_assert_eq!((&one.id, &one.name), (&other.id, &other.name));
        prop_assert!(other.arguments.starts_with(&one.arguments), "{earlier:?} {later:?}");
        prop_assert!(!one.complete || one == other, "{earlier:?} {later:?}");
    }
    Ok(())
}

/// Runs the stream over the pieces that `cuts` make, and checks every message on the way.
fn check_text(
    format: &Arc<ChatFormat>,
    text: &str,
    cuts: &[Index],
    options: &ParseOptions,
) -> Result<(), TestCaseError> {
    let letters: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let mut cuts: Vec<usize> = if letters.is_empty() {
        Vec::new()
    } else {
        cuts.iter().map(|cut| *cut.get(&letters)).collect()
    };
    cuts.sort_unstable();
    cuts.push(text.len());
    let mut stream = ChatStream::new(format, options.clone());
    let whole = parse(format, text, false, options);
    let (mut start, mut told, mut earlier) = (0, 0, ChatMessage::default());
    for cut in cuts {
        told += told_bytes(&stream.push(&text[start..cut]));
        let now = stream.message();
        prop_assert_eq!(&now, &parse(format, &text[..cut], true, options));
        check_prefix(&earlier, &now)?;
        check_prefix(&now, &parse(format, &text[..cut], false, options))?;
        check_prefix(&now, &whole)?;
        (start, earlier) = (cut, now);
    }
    told += told_bytes(&stream.finish());
    prop_assert_eq!(&stream.message(), &whole);
    prop_assert_eq!(told, message_bytes(&whole));
    Ok(())
}

fn told_bytes(deltas: &[Delta]) -> usize {
    let bytes = |delta: &Delta| match delta {
        Delta::Reasoning(text) | Delta::Content(text) => text.len(),
        Delta::CallBegin { id, name, .. } => id.len() + name.len(),
        Delta::CallArguments { json, .. } => json.len(),
    };
    deltas.iter().map(bytes).sum()
}

fn message_bytes(message: &ChatMessage) -> usize {
    let call = |call: &pleach::chat::parse::ToolCall| {
        call.id.len() + call.name.len() + call.arguments.len()
    };
    message.reasoning.len()
        + message.content.len()
        + message.tool_calls.iter().map(call).sum::<usize>()
}

/// What a mutation may put in: the format's own texts and what is likely to confuse.
fn words(format: &ChatFormat) -> Vec<String> {
    let mut words: Vec<String> = [
        "{",
        "}",
        "[",
        "]",
        "\"",
        "\\",
        ",",
        ": ",
        "(",
        ")",
        "<",
        ">",
        "\n",
        " ",
        "é",
        "\u{1f600}",
        "pin",
        "dye",
        "rest",
        "nobody",
        "null",
        "\"name\": ",
        "'",
        "```",
        "\\u00e9",
        "   ",
    ]
    .iter()
    .map(|word| (*word).to_owned())
    .collect();
    if let Some(reasoning) = &format.reasoning {
        words.extend([reasoning.open.to_string(), reasoning.close.to_string()]);
    }
    words.extend(format.content_marks.iter().map(ToString::to_string));
    if let Some(tools) = &format.tools {
        let pieces = tools.open.iter().chain(&tools.call).chain(&tools.close);
        words.extend(pieces.flat_map(Piece::texts).map(ToString::to_string));
    }
    if let Some(channels) = &format.channels {
        words.extend(channels.starts.iter().chain(&channels.ends).map(ToString::to_string));
        words.push(channels.message.to_string());
    }
    words.retain(|word| !word.is_empty());
    words
}

#[derive(Clone, Debug)]
enum Mutation {
    Remove(Index, usize),
    Insert(Index, Index),
    Repeat(Index, usize),
    Cut(Index),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        (any::<Index>(), 1..20_usize).prop_map(|(at, length)| Mutation::Remove(at, length)),
        (any::<Index>(), any::<Index>()).prop_map(|(at, word)| Mutation::Insert(at, word)),
        (any::<Index>(), 1..60_usize).prop_map(|(at, length)| Mutation::Repeat(at, length)),
        any::<Index>().prop_map(Mutation::Cut),
    ]
}

fn mutate(text: &str, mutations: &[Mutation], words: &[String]) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    for mutation in mutations {
        if letters.is_empty() {
            break;
        }
        match mutation {
            Mutation::Remove(at, length) => {
                let at = at.index(letters.len());
                letters.drain(at..(at + length).min(letters.len()));
            }
            Mutation::Insert(at, word) => {
                let at = at.index(letters.len());
                letters.splice(at..at, words[word.index(words.len())].chars());
            }
            Mutation::Repeat(at, length) => {
                let at = at.index(letters.len());
                let again = letters[at..(at + length).min(letters.len())].to_vec();
                letters.splice(at..at, again);
            }
            Mutation::Cut(at) => letters.truncate(at.index(letters.len())),
        }
    }
    letters.into_iter().collect()
}

#[test]
fn every_prefix_of_every_answer_is_a_prefix() {
    for row in rows() {
        let (format, options) = (row.format(), row.options());
        let mut earlier = ChatMessage::default();
        for (cut, _) in row.raw.char_indices().skip(1) {
            let now = parse(&format, &row.raw[..cut], true, &options);
            check_prefix(&earlier, &now).unwrap();
            check_prefix(&now, &parse(&format, &row.raw[..cut], false, &options)).unwrap();
            earlier = now;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(600), ..ProptestConfig::default() })]

    #[test]
    fn no_mutation_breaks_a_stream(
        which in any::<Index>(),
        mutations in prop::collection::vec(mutation(), 1..6),
        cuts in prop::collection::vec(any::<Index>(), 0..12),
        continues in any::<bool>(),
        separate_reasoning in prop::bool::weighted(0.9),
        with_prefill in prop::bool::weighted(0.8),
    ) {
        let rows: Vec<Row> = rows();
        let row = which.get(&rows);
        let format = row.format();
        let text = mutate(&row.raw, &mutations, &words(&format));
        let mut options = ParseOptions { continues, separate_reasoning, ..row.options() };
        if !with_prefill {
            options.prefill.clear();
        }
        check_text(&format, &text, &cuts, &options)?;
    }

    #[test]
    fn no_heap_of_markers_breaks_a_stream(
        which in any::<Index>(),
        pieces in prop::collection::vec(any::<Index>(), 0..40),
        cuts in prop::collection::vec(any::<Index>(), 0..12),
    ) {
        let rows = rows();
        let row = which.get(&rows);
        let format = row.format();
        let words = words(&format);
        let text: String = pieces.iter().map(|piece| piece.get(&words).as_str()).collect();
        check_text(&format, &text, &cuts, &row.options())?;
    }

    #[test]
    fn without_markers_text_is_content(
        name in select(rows().into_iter().map(|row| row.name).collect::<Vec<_>>()),
        text in "[a-zA-Z0-9 .;\n]{0,80}",
    ) {
        let row = rows().into_iter().find(|row| row.name == name).unwrap();
        let options = ParseOptions { prefill: String::new(), ..row.options() };
        // A segment is trimmed, and nothing else happens to it.
        let message = parse(&row.format(), &text, false, &options);
        prop_assert_eq!(message.content, text.trim());
        prop_assert_eq!(message.reasoning, "");
    }
}

/// More cases where `PROPTEST_CASES` asks for them.
fn cases(default: u32) -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(default)
}

/// However often a marker is broken off, nothing is written twice.
#[test]
fn long_texts_of_broken_markers_are_written_once() {
    for row in rows() {
        let format = row.format();
        for word in words(&format) {
            let text = word.repeat(20_000 / word.len());
            let message = parse(&format, &text, false, &row.options());
            let read = message.reasoning.len() + message.content.len();
            assert!(read <= 3 * text.len() + 64, "{}: {read}", row.name);
        }
    }
}
