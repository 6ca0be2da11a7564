//! Which format a model writes, from what comes with the model.
//!
//! Asked in this order, the first answer counts:
//!
//! 1. the `response_template` of the tokenizer's files, where it can be read
//!    ([`crate::chat::response_template`]);
//! 2. the template's source and what it renders of a conversation with two past calls, against the
//!    signs of every known [`Family`], most specific first;
//! 3. single tokens of the vocabulary, for markers that no template prints;
//! 4. `content_only`.
//!
//! Reasoning stays in a format only where its markers were seen in one of these. A model's own
//! name is never asked.

mod evidence;
mod probe;

pub use evidence::Evidence;

use super::format::{ChatFormat, Reasoning, ReasoningMode, turn_end};
use super::formats::{Family, families};
use super::template::ChatTemplate;
use crate::vocab::Vocabulary;
use probe::Probe;

/// The format of a model with this template. `source` is what `template` was compiled from.
pub fn detect(
    source: &str,
    template: &ChatTemplate,
    vocabulary: Option<&Vocabulary>,
) -> ChatFormat {
    let probe = Probe::ask(template);
    let evidence = Evidence::new(source, probe.texts(), vocabulary);
    let format = match family_of(&evidence) {
        Some(family) => (family.build)(&evidence),
        None => ChatFormat::content_only(),
    };
    with_template(format, &probe, &evidence)
}

/// `format`, which somebody has named, as a model with this template writes it.
pub fn complete(
    format: ChatFormat,
    source: &str,
    template: &ChatTemplate,
    vocabulary: Option<&Vocabulary>,
) -> ChatFormat {
    let probe = Probe::ask(template);
    let evidence = Evidence::new(source, probe.texts(), vocabulary);
    with_template(format, &probe, &evidence)
}

/// What the template itself says: whether it reasons, what it opens, how a turn ends.
fn with_template(mut format: ChatFormat, probe: &Probe, evidence: &Evidence) -> ChatFormat {
    let in_messages = format.channels.is_some();
    format.reasoning = format.reasoning.take().filter(|reasoning| {
        in_messages || reasoning.mode == ReasoningMode::Forced || is_seen(reasoning, evidence)
    });
    if let Some(reasoning) = &mut format.reasoning {
        if !reasoning.open.is_empty() && probe.always_opens(reasoning) {
            reasoning.mode = ReasoningMode::Forced;
        }
    }
    probe.prefill().clone_into(&mut format.prefill);
    if let Some(stop) = probe.after_content().and_then(|tail| end_of_turn(&format, tail)) {
        if !format.extra_stops.iter().any(|known| known.as_ref() == stop) {
            format.extra_stops.push(stop.to_owned().into());
        }
    }
    format
}

fn family_of(evidence: &Evidence) -> Option<&'static Family> {
    let families = families();
    let by_signs = |family: &&&Family| {
        family.signs.iter().any(|sign| {
            !sign.all.is_empty()
                && sign.all.iter().all(|text| evidence.shows(text))
                && !sign.none.iter().any(|text| evidence.shows(text))
        })
    };
    let by_tokens = |family: &&&Family| family.tokens.iter().any(|token| evidence.has_token(token));
    let last = families.last().copied();
    families.iter().find(by_signs).or_else(|| families.iter().find(by_tokens)).copied().or(last)
}

fn is_seen(reasoning: &Reasoning, evidence: &Evidence) -> bool {
    let (open, close) = (&reasoning.open, &reasoning.close);
    let shown = |text: &str| !text.is_empty() && evidence.shows(text);
    shown(open) || shown(close) || (evidence.has_token(open) && evidence.has_token(close))
}

/// The marker that ends a turn, after what a format itself writes behind content.
fn end_of_turn<'a>(format: &ChatFormat, tail: &'a str) -> Option<&'a str> {
    let mut tail = tail.trim_start();
    let ends = format.channels.iter().flat_map(|channels| &channels.ends);
    let own: Vec<_> = format.content_marks.iter().chain(ends).collect();
    while let Some(mark) = own.iter().find(|mark| tail.starts_with(mark.as_ref())) {
        if format.extra_stops.contains(mark) {
            return None;
        }
        tail = tail.strip_prefix(mark.as_ref())?.trim_start();
    }
    // The next message may follow at once where there is no marker of the turn's end.
    turn_end(tail).filter(|stop| !format.prefill.trim_start().starts_with(stop))
}
