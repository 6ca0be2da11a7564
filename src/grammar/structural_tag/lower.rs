//! From a structural tag to rules.

use rustc_hash::FxHashMap;

use super::{FreeEnd, FreePart, FreeTextTag, SchemaLeaf, StructuralTag};
use crate::TokenId;
use crate::grammar::error::GrammarError;
use crate::grammar::expr::{CharSet, ExprId, ExprPool, RuleId};
use crate::grammar::free_text::{FreeText, Trigger};
use crate::grammar::json_schema::{self, Relaxed};
use crate::grammar::limits::Fuel;
use crate::grammar::markers::Segment;
use crate::grammar::source;
use crate::grammar::vocabulary::GrammarVocabulary;

/// Adds the rules of a tag to a pool: the one that is the tag, and what was relaxed.
pub(in crate::grammar) fn rules_into(
    pool: &mut ExprPool,
    tag: &StructuralTag,
    vocabulary: &GrammarVocabulary,
    fuel: &mut Fuel<'_>,
) -> Result<(RuleId, Vec<Relaxed>), GrammarError> {
    let (relaxed, schemas) = (Vec::new(), FxHashMap::default());
    let mut lowering = TagLowering { pool: &mut *pool, vocabulary, fuel, relaxed, schemas };
    let body = lowering.tag(tag)?;
    let relaxed = lowering.relaxed;
    let root = pool.declare("answer");
    pool.define(root, body);
    Ok((root, relaxed))
}

/// Rules under construction.
struct TagLowering<'p, 'f> {
    pool: &'p mut ExprPool,
    vocabulary: &'p GrammarVocabulary,
    fuel: &'p mut Fuel<'f>,
    relaxed: Vec<Relaxed>,
    schemas: FxHashMap<&'p SchemaLeaf, ExprId>,
}

impl<'p> TagLowering<'p, '_> {
    fn tag(&mut self, tag: &'p StructuralTag) -> Result<ExprId, GrammarError> {
        self.fuel.spend(1)?;
        match tag {
            StructuralTag::Text(text) => Ok(self.pool.marked(text.as_bytes())),
            StructuralTag::Space(max) => {
                let white = CharSet::new([(0x20, 0x20), (0x9, 0xA), (0xD, 0xD)]);
                let white = self.pool.chars(white);
                Ok(self.pool.repeat(white, 0, Some(*max)))
            }
            StructuralTag::Sequence(tags) => {
                let parts = self.tags(tags)?;
                Ok(self.pool.seq(&parts))
            }
            StructuralTag::AnyOf(tags) => {
                let choices = self.tags(tags)?;
                Ok(self.pool.alt(&choices))
            }
            StructuralTag::Repeat { body, min, max } => {
                let body = self.tag(body)?;
                Ok(self.pool.repeat(body, *min, *max))
            }
            StructuralTag::Separated { item, separator } => {
                let (body, separator) = (self.tag(item)?, self.tag(separator)?);
                let item = self.pool.declare("item");
                self.pool.define(item, body);
                let item = self.pool.call(item);
                let next = self.pool.seq(&[separator, item]);
                let more = self.pool.repeat(next, 0, None);
                Ok(self.pool.seq(&[item, more]))
            }
            StructuralTag::Schema(leaf) => self.schema(leaf),
            StructuralTag::Grammar { source, place } => {
                let rules = source::rules_into(self.pool, source, self.vocabulary, self.fuel);
                let (root, relaxed) = rules.map_err(|error| error.within(place))?;
                self.note(relaxed, place);
                Ok(self.pool.call(root))
            }
            StructuralTag::FreeText(text) => self.free_text(text),
        }
    }

    fn tags(&mut self, tags: &'p [StructuralTag]) -> Result<Vec<ExprId>, GrammarError> {
        tags.iter().map(|tag| self.tag(tag)).collect()
    }

    /// The value of a schema; the same one is lowered once, however often it comes.
    fn schema(&mut self, leaf: &'p SchemaLeaf) -> Result<ExprId, GrammarError> {
        if let Some(&known) = self.schemas.get(leaf) {
            return Ok(known);
        }
        let SchemaLeaf { schema, options, dialect, place } = leaf;
        let rules = json_schema::rules_into(self.pool, schema, options, dialect, self.fuel);
        let (root, relaxed) = rules.map_err(|error| GrammarError::from(error).within(place))?;
        self.note(relaxed, place);
        let value = self.pool.call(root);
        self.schemas.insert(leaf, value);
        Ok(value)
    }

    fn note(&mut self, relaxed: Vec<Relaxed>, place: &str) {
        let placed = |it: Relaxed| Relaxed { pointer: format!("{place}{}", it.pointer), ..it };
        self.relaxed.extend(relaxed.into_iter().map(placed));
    }

    /// Free text is a rule, to which its parts come back.
    fn free_text(&mut self, tag: &'p FreeTextTag) -> Result<ExprId, GrammarError> {
        let more = self.pool.declare("text");
        let again = self.pool.call(more);
        let mut anywhere: Vec<(&str, Vec<ExprId>)> = Vec::new();
        let mut at_start: Vec<(&str, Vec<ExprId>)> = Vec::new();
        for FreePart { trigger, at_start: only_at_start, rest, goes_on } in &tag.parts {
            let rest = self.tag(rest)?;
            let rest = if *goes_on { self.pool.seq(&[rest, again]) } else { rest };
            let list = if *only_at_start { &mut at_start } else { &mut anywhere };
            match list.iter_mut().find(|(known, _)| known == trigger) {
                Some((_, choices)) => choices.push(rest),
                None => list.push((trigger, vec![rest])),
            }
        }
        let mut triggers = |list: Vec<(&str, Vec<ExprId>)>| -> Vec<Trigger> {
            let trigger = |(text, choices): (&str, Vec<ExprId>)| Trigger {
                text: text.as_bytes().into(),
                then: Some(self.pool.alt(&choices)),
            };
            list.into_iter().filter(|(text, _)| !text.is_empty()).map(trigger).collect()
        };
        let (mut anywhere, at_start) = (triggers(anywhere), triggers(at_start));
        for text in tag.excluded.iter().filter(|text| !text.is_empty()) {
            if !anywhere.iter().any(|trigger| *trigger.text == *text.as_bytes()) {
                anywhere.push(Trigger { text: text.as_bytes().into(), then: None });
            }
        }
        let tokens = self.tokens(tag);
        let text = FreeText {
            anywhere,
            at_start,
            tokens,
            may_end: tag.end != FreeEnd::WithPart,
            may_be_empty: true,
        };
        let first = FreeText { may_end: tag.end == FreeEnd::Anywhere, ..text.clone() };
        let body = self.pool.free_text(text);
        self.pool.define(more, body);
        match tag.end {
            FreeEnd::Anywhere | FreeEnd::WithPart => Ok(again),
            FreeEnd::AfterFirst => {
                let rule = self.pool.declare("text with a part");
                let body = self.pool.free_text(first);
                self.pool.define(rule, body);
                Ok(self.pool.call(rule))
            }
        }
    }

    /// The control tokens that the texts of free text name.
    fn tokens(&self, tag: &FreeTextTag) -> Vec<(TokenId, Box<[u8]>)> {
        let triggers = tag.parts.iter().map(|part| &part.trigger);
        let texts = triggers.chain(&tag.excluded).chain(&tag.marks);
        let mut tokens: Vec<(TokenId, Box<[u8]>)> = Vec::new();
        for text in texts {
            for segment in self.vocabulary.markers().split(text.as_bytes()) {
                if let Segment::Marker(token, name) = segment
                    && !tokens.iter().any(|(known, _)| *known == token)
                {
                    tokens.push((token, name.into()));
                }
            }
        }
        tokens
    }
}
