//! The whole of an answer.

use super::Wish;
use super::call::Calls;
use crate::chat::format::{ChatFormat, Place, Reasoning};
use crate::grammar::StructuralTag;
use crate::grammar::structural_tag::{FreeEnd, FreePart, FreeTextTag};

/// Whitespace characters between the parts of an answer, at most.
pub(super) const GAP_MAX: u32 = 8;
/// Marks of content before it, at most.
const MARKS_MAX: u32 = 3;

/// What an answer is made from.
#[derive(Clone, Copy)]
pub(super) struct Answer<'a> {
    pub(super) format: &'a ChatFormat,
    pub(super) wish: &'a Wish,
}

impl<'a> Answer<'a> {
    /// The answer; `None`: it need not be held to anything.
    pub(super) fn tag(self) -> Option<StructuralTag> {
        let calls = self.calls();
        if self.wish.content.is_none() && calls.is_none() && self.banned().is_empty() {
            return None;
        }
        Some(match &self.format.channels {
            Some(channels) => self.messages(channels),
            None => match (self.wish.must_call, &self.wish.content) {
                (true, _) => self.after_thinking(self.lead(calls.map(|calls| calls.all()))),
                (false, Some(content)) => {
                    let lead = |tag: StructuralTag| self.lead(Some(tag));
                    let content = lead(content.clone());
                    let calls = calls.map(|calls| lead(calls.all()));
                    self.after_thinking(StructuralTag::AnyOf(
                        calls.into_iter().chain([content]).collect(),
                    ))
                }
                (false, None) => StructuralTag::FreeText(self.free_text(calls)),
            },
        })
    }

    /// The calls that the answer may have.
    pub(super) fn calls(self) -> Option<Calls<'a>> {
        let syntax = self.format.tools.as_ref().filter(|_| !self.wish.functions.is_empty())?;
        let Wish { functions, one_call, .. } = self.wish;
        Some(Calls { format: self.format, syntax, functions, one_call: *one_call })
    }

    /// The words that would open a call where none may be made.
    pub(super) fn banned(self) -> Vec<String> {
        let syntax = self.format.tools.as_ref().filter(|_| self.wish.no_calls);
        let calls = syntax.map(|syntax| Calls {
            format: self.format,
            syntax,
            functions: &[],
            one_call: false,
        });
        calls.map(|calls| calls.markers()).unwrap_or_default()
    }

    /// What comes first of all or after the thinking.
    fn after_thinking(self, rest: StructuralTag) -> StructuralTag {
        // What nothing opens is read as content.
        let marked = |it: &&Reasoning| !it.open.trim().is_empty();
        let Some(reasoning) = self.format.reasoning.as_ref().filter(marked) else { return rest };
        let open = StructuralTag::text(reasoning.open.trim());
        let thinking = self.thinking(reasoning, FreeEnd::WithPart);
        let thinking = vec![StructuralTag::Space(GAP_MAX), open, thinking];
        StructuralTag::Sequence(vec![StructuralTag::Sequence(thinking).optional(), rest])
    }

    /// Free thinking, up to what closes it.
    ///
    /// Where the markers are tags, prose may speak of them, so what opens a call does not come at
    /// all. Where they mean what they say wherever they stand, calls may come within the thinking.
    fn thinking(self, reasoning: &Reasoning, end: FreeEnd) -> StructuralTag {
        let close = reasoning.close.trim().to_owned();
        let mut excluded = self.calls().map(|calls| calls.markers()).unwrap_or_default();
        let mut parts = Vec::new();
        // After the only call comes nothing: then it ends the thinking that is not closed.
        let may_go_on = !self.wish.one_call || end == FreeEnd::Anywhere;
        let is_free = !self.wish.must_call && self.wish.content.is_none();
        if reasoning.place == Place::Anywhere && is_free && may_go_on {
            parts.extend(self.calls().map(|calls| calls.parts()).unwrap_or_default());
            parts.retain(|part| !part.at_start);
            excluded.retain(|marker| parts.iter().all(|part| part.trigger != *marker));
        }
        if end == FreeEnd::WithPart {
            let rest = StructuralTag::nothing();
            parts.push(FreePart { trigger: close, at_start: false, rest, goes_on: false });
        } else {
            excluded.push(close);
        }
        StructuralTag::FreeText(FreeTextTag { parts, excluded, marks: Vec::new(), end })
    }

    /// Whitespace and the marks of content, and then what counts.
    pub(super) fn lead(self, tag: Option<StructuralTag>) -> StructuralTag {
        let space = || StructuralTag::Space(GAP_MAX);
        let marks = self.format.content_marks.iter().map(|mark| StructuralTag::text(&**mark));
        let marks: Vec<StructuralTag> = marks.collect();
        let mut tags = vec![space()];
        if !marks.is_empty() {
            let mark = StructuralTag::Sequence(vec![StructuralTag::AnyOf(marks), space()]);
            tags.push(StructuralTag::Repeat { body: Box::new(mark), min: 0, max: Some(MARKS_MAX) });
        }
        tags.extend(tag);
        StructuralTag::Sequence(tags)
    }

    /// An answer that may think, speak and call as it likes.
    fn free_text(self, calls: Option<Calls<'a>>) -> FreeTextTag {
        let mut text = self.free_content(calls);
        if let Some(reasoning) = &self.format.reasoning {
            let trigger = reasoning.open.trim();
            let at_start = reasoning.place == Place::Start;
            let part = |end, goes_on| FreePart {
                trigger: trigger.to_owned(),
                at_start,
                rest: self.thinking(reasoning, end),
                goes_on,
            };
            // Thinking that is not closed goes on to the end of the answer.
            text.parts.extend([part(FreeEnd::WithPart, true), part(FreeEnd::Anywhere, false)]);
        }
        text
    }

    /// Content with calls in it.
    pub(super) fn free_content(self, calls: Option<Calls<'a>>) -> FreeTextTag {
        let mut text = FreeTextTag { excluded: self.banned(), ..FreeTextTag::default() };
        text.marks = self.format.content_marks.iter().map(|mark| mark.to_string()).collect();
        if let Some(calls) = calls {
            text.parts = calls.parts();
            // Calls outside of their block are read as calls too.
            text.excluded.extend(calls.markers());
        }
        // A mark of content may begin as calls do.
        let triggers = text.parts.iter().map(|part| &part.trigger);
        let begin: Vec<String> = triggers.chain(&text.excluded).cloned().collect();
        for (mark, trigger) in self
            .format
            .content_marks
            .iter()
            .flat_map(|mark| begin.iter().map(move |trigger| (mark, trigger)))
        {
            let rest = mark.strip_prefix(trigger.as_str()).filter(|rest| !rest.trim().is_empty());
            text.parts.extend(rest.map(|rest| FreePart {
                trigger: trigger.clone(),
                at_start: false,
                rest: StructuralTag::text(rest),
                goes_on: true,
            }));
        }
        text.excluded.retain(|marker| text.parts.iter().all(|part| part.trigger != *marker));
        text
    }
}
