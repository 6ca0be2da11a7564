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

use serde_json::Value;

use super::format::{ChatFormat, Reasoning, ReasoningMode, turn_end};
use super::formats::{Family, families};
use super::response_template::{self, Unreadable};
use super::template::ChatTemplate;
use crate::vocab::Vocabulary;
use probe::Probe;

/// What comes with a model and tells its format.
#[derive(Clone, Copy, Debug)]
pub struct ModelFiles<'a> {
    /// What `template` was compiled from.
    pub source: &'a str,
    /// The chat template.
    pub template: &'a ChatTemplate,
    /// The model's tokens, where they are known.
    pub vocabulary: Option<&'a Vocabulary>,
    /// The key `response_template` of `tokenizer_config.json`, where it is there.
    pub response_template: Option<&'a Value>,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Detected {
    /// The format.
    pub format: ChatFormat,
    /// Why the model's own description was not taken, where it has one.
    pub unreadable: Option<Unreadable>,
}

/// The format of a model.
pub fn detect(model: &ModelFiles) -> Detected {
    let probe = Probe::ask(model.template);
    let evidence = Evidence::new(model.source, probe.texts(), model.vocabulary);
    let described = model.response_template.map(response_template::format_of).transpose();
    let (described, unreadable) = match described {
        Ok(format) => (format, None),
        Err(unreadable) => (None, Some(unreadable)),
    };
    let format = match described {
        Some(format) => with_turn(format, &probe),
        None => with_template(by_evidence(&evidence), &probe, &evidence),
    };
    Detected { format, unreadable }
}

/// The known format of this name, as a model with this template writes it; none where no format
/// has the name. For who knows better than the files.
pub fn named(name: &str, model: &ModelFiles) -> Option<ChatFormat> {
    let probe = Probe::ask(model.template);
    let evidence = Evidence::new(model.source, probe.texts(), model.vocabulary);
    let family = families().into_iter().find(|family| family.name == name)?;
    Some(with_template((family.build)(&evidence), &probe, &evidence))
}

fn by_evidence(evidence: &Evidence) -> ChatFormat {
    match family_of(evidence) {
        Some(family) => (family.build)(evidence),
        None => ChatFormat::content_only(),
    }
}

/// What the template itself says: whether it reasons, what it opens, how it ends a turn.
fn with_template(mut format: ChatFormat, probe: &Probe, evidence: &Evidence) -> ChatFormat {
    let in_messages = format.channels.is_some();
    format.reasoning = format.reasoning.take().filter(|reasoning| {
        in_messages || reasoning.mode == ReasoningMode::Forced || is_seen(reasoning, evidence)
    });
    if let Some(reasoning) = &mut format.reasoning
        && !reasoning.open.is_empty()
        && probe.always_opens(reasoning)
    {
        reasoning.mode = ReasoningMode::Forced;
    }
    with_turn(format, probe)
}

/// What the template opens by default, and how it ends a turn.
fn with_turn(mut format: ChatFormat, probe: &Probe) -> ChatFormat {
    probe.prefill().clone_into(&mut format.prefill);
    if let Some(stop) = probe.after_content().and_then(|tail| end_of_turn(&format, tail))
        && !format.extra_stops.iter().any(|known| known.as_ref() == stop)
    {
        format.extra_stops.push(stop.to_owned().into());
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
    let mut starts_after_own = false;
    while let Some(mark) = own.iter().find(|mark| tail.starts_with(mark.as_ref())) {
        if format.extra_stops.contains(mark) {
            return None;
        }
        tail = tail.strip_prefix(mark.as_ref())?.trim_start();
        starts_after_own = true;
    }
    // After a format's own end of content the next message may follow at once.
    let is_next = |stop: &str| starts_after_own && format.prefill.trim_start().starts_with(stop);
    turn_end(tail).filter(|stop| !is_next(stop))
}
