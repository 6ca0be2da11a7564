//! Answers to "why": what a grammar says about a text, and texts that it allows.

use std::sync::Arc;

use super::automaton::{Automaton, Config, ConfigId, DEAD, START};
use super::compiled::CompiledGrammar;
use super::distinct::Mark;
use super::error::MatchError;
use super::limits::Fuel;
use super::mask::has_bit;
use super::program::Node;
use crate::TokenId;

/// What a grammar says about a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextReport {
    /// Whether the text is a complete answer.
    pub accepted: bool,
    /// Bytes that could be followed: all of them, if nothing is wrong but that more must come.
    pub at_byte: usize,
    /// Line of that byte, from 1.
    pub line: usize,
    /// What could have come there, in words.
    pub expected: Vec<String>,
    /// Whether the text up to there is a complete answer.
    pub complete: bool,
}

/// What a grammar says about a text that is split into tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenReport {
    /// Tokens that were accepted.
    pub accepted_tokens: usize,
    /// Whether these are a complete answer.
    pub complete: bool,
    /// Tokens about which the mask and `accept` disagree, by position: always empty, or there is
    /// a bug in the engine.
    pub disagreements: Vec<usize>,
}

/// Checks a text byte by byte.
///
/// # Errors
/// [`MatchError::Limit`] if following it costs more than the grammar's limits allow.
pub fn check_text(grammar: &Arc<CompiledGrammar>, text: &[u8]) -> Result<TextReport, MatchError> {
    let generation = grammar.generation();
    let automaton = &generation.automaton;
    let vocabulary = grammar.vocabulary();
    let mut keys = grammar.distinct_keys();
    let mut at = START;
    let mut at_byte = 0;
    for &byte in text {
        let mut fuel = Fuel::new(grammar.limits().walk_steps_max);
        let to = automaton.edge(automaton.config(at), byte, &mut fuel)?.to;
        let repeats_key = keys.as_mut().is_some_and(|keys| {
            let mark = Mark::of(automaton, automaton.config(at), byte);
            !keys.accept(&[byte], &[mark], vocabulary.quoted.get(vocabulary))
        });
        if to == DEAD || repeats_key {
            break;
        }
        at = to;
        at_byte += 1;
    }
    let config = automaton.config(at);
    Ok(TextReport {
        accepted: at_byte == text.len() && config.accepting,
        at_byte,
        line: text[..at_byte].iter().filter(|byte| **byte == b'\n').count() + 1,
        expected: expected(automaton, config),
        complete: config.accepting,
    })
}

/// Checks a text token by token, and the mask against `accept` at each.
///
/// # Errors
/// [`MatchError::Limit`] as for [`check_text`].
pub fn check_tokens(
    grammar: &Arc<CompiledGrammar>,
    tokens: &[TokenId],
) -> Result<TokenReport, MatchError> {
    let mut matcher = grammar.matcher();
    let mut bits = vec![0; grammar.vocabulary().mask_words()];
    let mut report =
        TokenReport { accepted_tokens: 0, complete: matcher.is_complete(), disagreements: vec![] };
    for (position, &token) in tokens.iter().enumerate() {
        match matcher.fill_mask(&mut bits) {
            Ok(()) => {}
            Err(MatchError::DeadEnd | MatchError::Ended) => bits.fill(0),
            Err(error) => return Err(error),
        }
        let is_accepted = match matcher.accept(token) {
            Ok(()) => true,
            Err(MatchError::Rejected { .. } | MatchError::Ended) => false,
            Err(error) => return Err(error),
        };
        if is_accepted != has_bit(&bits, token) {
            report.disagreements.push(position);
        }
        if !is_accepted {
            break;
        }
        report.accepted_tokens += 1;
    }
    report.complete = matcher.is_complete();
    Ok(report)
}

/// What may come next in a state, in words.
fn expected(automaton: &Automaton, config: &Config) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut low: Option<u8> = None;
    for byte in 0..=255u8 {
        let alive = config.is_alive_on(byte);
        if alive && low.is_none() {
            low = Some(byte);
        }
        // Ranges do not run across kinds of bytes, so that they read well.
        let ends = byte == 255 || !config.is_alive_on(byte + 1) || kind(byte) != kind(byte + 1);
        if let (true, true, Some(from)) = (alive, ends, low) {
            words.push(range_in_words(from, byte));
            low = None;
        }
    }
    if config.has_token_items {
        let program = automaton.program();
        let builder = automaton.lock();
        for &item in &config.items {
            if let Node::Token { set, .. } = program.nodes[builder.frame(item).node as usize] {
                let set = &program.token_sets[set as usize];
                let but = if set.is_negated() { "any token but " } else { "token " };
                words.push(format!("{but}{:?}", set.named()));
            }
        }
    }
    if config.accepting {
        words.push("the end".to_owned());
    }
    words
}

fn kind(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => 1,
        b'a'..=b'z' => 2,
        b'A'..=b'Z' => 3,
        0x21..=0x7E => 4,
        0..=0x20 | 0x7F => 5,
        0x80.. => 6,
    }
}

fn range_in_words(low: u8, high: u8) -> String {
    let word = |byte: u8| match byte {
        b'\n' => "a line feed".to_owned(),
        b'\r' => "a carriage return".to_owned(),
        b'\t' => "a tab".to_owned(),
        b' ' => "a space".to_owned(),
        0x21..=0x7E => format!("`{}`", char::from(byte)),
        _ => format!("byte {byte:02X}"),
    };
    if low == high { word(low) } else { format!("{} to {}", word(low), word(high)) }
}

/// A text that the grammar allows, drawn with `random`, which gives a number below its argument.
/// After about `bytes_max` bytes it takes the nearest way to the end. Token references are left
/// out of the text. `None` if the text cannot be found within the grammar's limits.
pub fn sample(
    grammar: &Arc<CompiledGrammar>,
    bytes_max: usize,
    random: &mut dyn FnMut(usize) -> usize,
) -> Option<Vec<u8>> {
    let generation = grammar.generation();
    let automaton = &generation.automaton;
    let vocabulary = grammar.vocabulary();
    let mut keys = grammar.distinct_keys();
    let mut fuel = Fuel::new(grammar.limits().walk_steps_max);
    let mut text = Vec::new();
    let mut at = START;
    loop {
        let config = automaton.config(at);
        let mut repeats_key = |byte: u8| {
            keys.as_mut().is_some_and(|keys| {
                let mark = Mark::of(automaton, config, byte);
                !keys.accept(&[byte], &[mark], vocabulary.quoted.get(vocabulary))
            })
        };
        let is_over = text.len() >= bytes_max;
        let bytes: Vec<u8> = (0..=255).filter(|&byte| config.is_alive_on(byte)).collect();
        if config.accepting && (is_over || bytes.is_empty() || random(4) == 0) {
            return Some(text);
        }
        let mut steps = Vec::with_capacity(bytes.len());
        for byte in bytes {
            steps.push((byte, automaton.edge(config, byte, &mut fuel).ok()?.to));
        }
        let nearer = |&(_, to): &(u8, ConfigId)| {
            !is_over || automaton.config(to).finish_bytes < config.finish_bytes
        };
        let (mut steps, mut others): (Vec<_>, Vec<_>) = steps.into_iter().partition(nearer);
        if steps.is_empty() {
            others.clear();
        }
        // A key that would come a second time goes on, away from the end.
        let mut step = None;
        while let Some(from) = [&mut steps, &mut others].into_iter().find(|from| !from.is_empty()) {
            let drawn = from.swap_remove(random(from.len()));
            if !repeats_key(drawn.0) {
                step = Some(drawn);
                break;
            }
        }
        if let Some((byte, to)) = step {
            text.push(byte);
            at = to;
            continue;
        }
        let item = automaton.nearest_token_item(at)?;
        at = automaton.follow_item(item, &mut fuel).ok()??.1;
    }
}
