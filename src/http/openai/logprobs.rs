//! Log-probabilities in OpenAI's two shapes.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::borrow::Cow;

use crate::TokenId;
use crate::http::model::Model;
use crate::session::TokenEntry;

/// OpenAI's stand-in for a probability of zero, which JSON cannot hold as a logarithm.
const LOGPROB_MIN: f32 = -9999.0;

fn on_wire(logprob: f32) -> f32 {
    if logprob.is_finite() { logprob } else { LOGPROB_MIN }
}

/// The chat shape: `{"content":[{token, logprob, bytes, top_logprobs}], "refusal": null}`.
#[derive(Serialize)]
pub struct ChatLogprobs<'a> {
    content: Vec<ChatEntry<'a>>,
    refusal: Option<()>,
}

#[derive(Serialize)]
struct ChatEntry<'a> {
    #[serde(flatten)]
    token: ChatToken<'a>,
    top_logprobs: Vec<ChatToken<'a>>,
}

#[derive(Serialize)]
struct ChatToken<'a> {
    token: Cow<'a, str>,
    logprob: Option<f32>,
    bytes: &'a [u8],
}

impl<'a> ChatLogprobs<'a> {
    /// Of these tokens.
    pub fn new(model: &'a Model, entries: &[TokenEntry]) -> Self {
        let token = |id: TokenId, logprob: Option<f32>| ChatToken {
            token: model.token_text(id),
            logprob: logprob.map(on_wire),
            bytes: model.vocabulary.bytes(id),
        };
        let entry = |entry: &TokenEntry| ChatEntry {
            token: token(entry.token, entry.logprob),
            top_logprobs: entry.top.iter().map(|(id, p)| token(*id, Some(*p))).collect(),
        };
        Self { content: entries.iter().map(entry).collect(), refusal: None }
    }
}

/// The completions shape: parallel lists. Offsets count characters.
#[derive(Serialize)]
pub struct CompletionLogprobs<'a> {
    tokens: Vec<Cow<'a, str>>,
    token_logprobs: Vec<Option<f32>>,
    top_logprobs: Vec<Option<TopLogprobs<'a>>>,
    text_offset: Vec<u32>,
}

/// A map from token to log-probability, most probable first. As with OpenAI the chosen token is
/// always in it. Of tokens with the same text (pieces of characters show as U+FFFD) the first stays.
struct TopLogprobs<'a>(Vec<(Cow<'a, str>, f32)>);

impl Serialize for TopLogprobs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (token, logprob) in &self.0 {
            map.serialize_entry(token, logprob)?;
        }
        map.end()
    }
}

impl<'a> CompletionLogprobs<'a> {
    /// Of these tokens.
    pub fn new(model: &'a Model, entries: &[TokenEntry]) -> Self {
        Self {
            tokens: entries.iter().map(|e| model.token_text(e.token)).collect(),
            token_logprobs: entries.iter().map(|e| e.logprob.map(on_wire)).collect(),
            top_logprobs: entries.iter().map(|e| top_of(model, e)).collect(),
            text_offset: entries.iter().map(|e| e.text_offset).collect(),
        }
    }
}

fn top_of<'a>(model: &'a Model, entry: &TokenEntry) -> Option<TopLogprobs<'a>> {
    let own = (entry.token, entry.logprob?);
    let mut top: Vec<(Cow<'a, str>, f32)> = Vec::with_capacity(entry.top.len() + 1);
    for (id, logprob) in entry.top.iter().copied().chain([own]) {
        let text = model.token_text(id);
        if top.iter().all(|(seen, _)| *seen != text) {
            top.push((text, on_wire(logprob)));
        }
    }
    Some(TopLogprobs(top))
}
