//! Answers that are a sequence of messages with headers.

use super::answer::Answer;
use super::call::Calls;
use super::pieces::Variant;
use crate::chat::format::{Channels, Piece};
use crate::grammar::StructuralTag;
use crate::grammar::structural_tag::{FreeEnd, FreePart, FreeTextTag};

/// Whether a message is followed by another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Follows {
    Another,
    Nothing,
}

impl Answer<'_> {
    /// The messages of an answer, from the start of the first header.
    pub(super) fn messages(self, channels: &Channels) -> StructuralTag {
        let calls = self.calls();
        let next = StructuralTag::text(&*channels.next);
        let thoughts = StructuralTag::Repeat {
            body: Box::new(self.thought(channels, Follows::Another)),
            min: 0,
            max: None,
        };
        let last = match (self.wish.must_call, &self.wish.content) {
            (true, _) => self.called(channels, calls),
            (false, Some(content)) => {
                let header = channels.content_headers.first().map_or("", |header| header);
                let content = vec![StructuralTag::text(header), self.lead(Some(content.clone()))];
                let content = StructuralTag::Sequence(content);
                let calls = calls.map(|calls| self.called(channels, Some(calls)));
                StructuralTag::AnyOf(calls.into_iter().chain([content]).collect())
            }
            (false, None) => return self.free_messages(channels, calls, next),
        };
        StructuralTag::Sequence(vec![next.optional(), thoughts, last])
    }

    /// Any messages, the last of which may be broken off.
    fn free_messages(
        self,
        channels: &Channels,
        calls: Option<Calls<'_>>,
        next: StructuralTag,
    ) -> StructuralTag {
        let message = |follows| {
            let mut kinds = vec![self.thought(channels, follows)];
            let content = self.content(channels, calls, follows);
            kinds.extend(channels.content_headers.iter().map(|header| {
                StructuralTag::Sequence(vec![StructuralTag::text(&**header), content.clone()])
            }));
            StructuralTag::AnyOf(kinds)
        };
        let body = Box::new(message(Follows::Another));
        let before = StructuralTag::Repeat { body, min: 0, max: None };
        let mut lasts = vec![message(Follows::Nothing)];
        if let Some(calls) = calls.filter(|_| has_call_messages(channels)) {
            lasts.push(self.called(channels, Some(calls)));
        }
        StructuralTag::Sequence(vec![next.optional(), before, StructuralTag::AnyOf(lasts)])
    }

    /// A message of reasoning.
    fn thought(self, channels: &Channels, follows: Follows) -> StructuralTag {
        let markers = self.calls().map(|calls| calls.markers()).unwrap_or_default();
        let markers = if has_call_messages(channels) { Vec::new() } else { markers };
        let text = FreeTextTag { excluded: markers, ..FreeTextTag::default() };
        let header = StructuralTag::text(&*channels.reasoning_header);
        StructuralTag::Sequence(vec![header, message_text(channels, text, follows)])
    }

    /// What follows the header of content.
    fn content(
        self,
        channels: &Channels,
        calls: Option<Calls<'_>>,
        follows: Follows,
    ) -> StructuralTag {
        let calls = calls.filter(|_| !has_call_messages(channels));
        // After the only call comes nothing.
        let may_call = |calls: &Calls<'_>| follows == Follows::Nothing || !calls.one_call;
        let mut text = self.free_content(calls.filter(may_call));
        if let Some(calls) = calls.filter(|calls| !may_call(calls)) {
            text.excluded.extend(calls.markers());
        }
        message_text(channels, text, follows)
    }

    /// Messages that are calls, or one that holds them.
    fn called(self, channels: &Channels, calls: Option<Calls<'_>>) -> StructuralTag {
        let Some(calls) = calls else { return StructuralTag::AnyOf(Vec::new()) };
        let end = || {
            let ends = channels.ends.iter().map(|end| StructuralTag::text(&**end));
            StructuralTag::AnyOf(ends.collect())
        };
        if !has_call_messages(channels) {
            let header = channels.content_headers.first().map_or("", |header| header);
            let tags = vec![StructuralTag::text(header), self.lead(Some(calls.all()))];
            return StructuralTag::Sequence(tags);
        }
        // What ends the message stands between two calls, and may be left to the end of the turn.
        let call = calls.syntax.call.as_slice();
        let call = match call.split_last() {
            Some((Piece::OneOf(_) | Piece::Text(_), before)) => before,
            _ => call,
        };
        let call = StructuralTag::Sequence(calls.call_of(call, Variant::Canonical));
        let next = StructuralTag::text(&*channels.next);
        let calls = if calls.one_call {
            call
        } else {
            StructuralTag::Separated {
                item: Box::new(call),
                separator: Box::new(StructuralTag::Sequence(vec![end(), next])),
            }
        };
        StructuralTag::Sequence(vec![calls, end().optional()])
    }
}

/// Whether calls are messages of their own.
fn has_call_messages(channels: &Channels) -> bool {
    !channels.recipient.is_empty()
}

/// The text of a message, in which nothing of a header may come.
fn message_text(channels: &Channels, mut text: FreeTextTag, follows: Follows) -> StructuralTag {
    text.excluded.extend(channels.starts.iter().map(|start| start.to_string()));
    match follows {
        Follows::Another => {
            text.end = FreeEnd::WithPart;
            text.parts.extend(channels.ends.iter().map(|end| FreePart {
                trigger: end.to_string(),
                at_start: false,
                rest: StructuralTag::text(&*channels.next),
                goes_on: false,
            }));
        }
        Follows::Nothing => {
            text.end = FreeEnd::Anywhere;
            text.parts.extend(channels.ends.iter().map(|end| FreePart {
                trigger: end.to_string(),
                at_start: false,
                rest: StructuralTag::nothing(),
                goes_on: false,
            }));
        }
    }
    StructuralTag::FreeText(text)
}
