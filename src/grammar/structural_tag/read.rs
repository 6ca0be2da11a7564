//! Structural tags as requests write them, in both shapes that are about.
//!
//! ```text
//! {"structures": [{"begin": …, "schema": …, "end": …}, …], "triggers": [ … ]}
//! {"format": {"type": "triggered_tags", …}}
//! ```
//!
//! They are read from the text of the request: a schema keeps all the digits it was sent with.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{FreeEnd, FreePart, FreeTextTag, SchemaLeaf, StructuralTag};
use crate::grammar::json_schema::{Dialect, SchemaOptions};
use crate::grammar::source::GrammarSource;

/// What is wrong with a structural tag.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{place}` {reason}")]
pub struct ReadError {
    /// The field, as in `response_format.format.tags[0].end`.
    pub place: String,
    /// What is wrong, as a predicate of the field.
    pub reason: String,
}

/// Types of formats, for messages.
const TYPES: &str = "const_string, json_schema, regex, grammar, any_text, sequence, or, optional, \
                     star, plus, repeat, tag, triggered_tags, tags_with_separator";

impl StructuralTag {
    /// Reads the object in `text` that has `structures` and `triggers`, or a `format`. `place` is
    /// where it stands in the request; `options` hold for all of its schemas.
    ///
    /// # Errors
    /// [`ReadError`] names the field.
    pub fn read(text: &str, place: &str, options: SchemaOptions) -> Result<Self, ReadError> {
        let mut object = Object::read(text, place)?;
        let reader = Reader { options };
        let tag = match object.take("format") {
            Some(format) => reader.format(format.get(), &object.place_of("format"))?,
            None => reader.structures(&mut object)?,
        };
        object.take("type");
        object.finish()?;
        Ok(tag)
    }
}

/// A JSON object in the request.
struct Object<'t> {
    fields: BTreeMap<String, &'t RawValue>,
    place: String,
}

impl<'t> Object<'t> {
    fn read(text: &'t str, place: &str) -> Result<Self, ReadError> {
        let mut fields: BTreeMap<String, &RawValue> =
            serde_json::from_str(text).map_err(|_| wrong(place, "must be an object"))?;
        fields.retain(|_, value| value.get() != "null");
        Ok(Self { fields, place: place.to_owned() })
    }

    fn place_of(&self, name: &str) -> String {
        format!("{}.{name}", self.place)
    }

    fn take(&mut self, name: &str) -> Option<&'t RawValue> {
        self.fields.remove(name)
    }

    fn require(&mut self, name: &str) -> Result<(&'t str, String), ReadError> {
        let place = self.place_of(name);
        match self.take(name) {
            Some(value) => Ok((value.get(), place)),
            None => Err(wrong(&place, "is missing")),
        }
    }

    fn parsed<T: Deserialize<'t>>(&mut self, name: &str, is: &str) -> Result<Option<T>, ReadError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let parsed = serde_json::from_str(value.get());
        parsed.map(Some).map_err(|_| wrong(&self.place_of(name), &format!("must be {is}")))
    }

    fn string(&mut self, name: &str) -> Result<Option<String>, ReadError> {
        self.parsed(name, "a string")
    }

    fn flag(&mut self, name: &str) -> Result<bool, ReadError> {
        Ok(self.parsed(name, "true or false")?.unwrap_or(false))
    }

    fn texts(&mut self, name: &str) -> Result<Vec<String>, ReadError> {
        Ok(self.parsed(name, "a list of strings")?.unwrap_or_default())
    }

    fn list(&mut self, name: &str) -> Result<Vec<(&'t str, String)>, ReadError> {
        let (text, place) = self.require(name)?;
        let list: Vec<&'t RawValue> =
            serde_json::from_str(text).map_err(|_| wrong(&place, "must be a list"))?;
        if list.is_empty() {
            return Err(wrong(&place, "must not be empty"));
        }
        let items = list.into_iter().enumerate();
        Ok(items.map(|(index, item)| (item.get(), format!("{place}[{index}]"))).collect())
    }

    /// Refuses what nobody has taken.
    fn finish(self) -> Result<(), ReadError> {
        match self.fields.keys().next() {
            Some(name) => Err(wrong(&self.place_of(name), "is not known")),
            None => Ok(()),
        }
    }
}

fn wrong(place: &str, reason: &str) -> ReadError {
    ReadError { place: place.to_owned(), reason: reason.to_owned() }
}

/// A tag: `begin`, what stands in it, and the texts one of which ends it.
struct Tag {
    begin: String,
    rest: StructuralTag,
}

/// What hangs together by triggers.
struct Triggered {
    triggers: Vec<String>,
    tags: Vec<(Tag, String)>,
    excluded: Vec<String>,
    at_least_one: bool,
    stop_after_first: bool,
}

struct Reader {
    options: SchemaOptions,
}

impl Reader {
    /// The older shape.
    fn structures(&self, object: &mut Object) -> Result<StructuralTag, ReadError> {
        let mut tags = Vec::new();
        for (text, place) in object.list("structures")? {
            let mut tag = Object::read(text, &place)?;
            let begin = tag.string("begin")?.unwrap_or_default();
            let (schema, at) = tag.require("schema")?;
            let content = self.schema(schema, at)?;
            let end = tag.string("end")?.unwrap_or_default();
            tag.finish()?;
            tags.push((Tag { begin, rest: followed(content, vec![end]) }, place));
        }
        let place = object.place_of("triggers");
        let triggers = object.texts("triggers")?;
        triggered(
            Triggered {
                triggers,
                tags,
                excluded: Vec::new(),
                at_least_one: false,
                stop_after_first: false,
            },
            &place,
        )
    }

    fn format(&self, text: &str, place: &str) -> Result<StructuralTag, ReadError> {
        let mut object = Object::read(text, place)?;
        let kind_place = object.place_of("type");
        let kind = object.string("type")?.ok_or_else(|| wrong(&kind_place, "is missing"))?;
        let format = self.format_of(&kind, &mut object)?;
        let Some(format) = format else {
            return Err(wrong(&kind_place, &format!("is `{kind}`; supported are {TYPES}")));
        };
        object.finish()?;
        Ok(format)
    }

    /// `None`: there is no such type.
    fn format_of(
        &self,
        kind: &str,
        object: &mut Object,
    ) -> Result<Option<StructuralTag>, ReadError> {
        Ok(Some(match kind {
            "const_string" => StructuralTag::Text(self.text(object, "value")?),
            "json_schema" => {
                self.only_json(object)?;
                let (schema, place) = object.require("json_schema")?;
                self.schema(schema, place)?
            }
            "regex" => self.grammar(object, "pattern", GrammarSource::Regex)?,
            "grammar" => self.grammar(object, "grammar", GrammarSource::Gbnf)?,
            "any_text" => {
                let excluded = object.texts("excludes")?;
                StructuralTag::FreeText(FreeTextTag { excluded, ..FreeTextTag::default() })
            }
            "sequence" => StructuralTag::Sequence(self.formats(object, "elements")?),
            "or" => StructuralTag::AnyOf(self.formats(object, "elements")?),
            "optional" | "star" | "plus" | "repeat" => self.repeat(kind, object)?,
            "tag" => {
                let Tag { begin, rest } = self.tag(object)?;
                StructuralTag::Sequence(vec![StructuralTag::Text(begin), rest])
            }
            "triggered_tags" => {
                let place = object.place_of("triggers");
                let triggers = object.texts("triggers")?;
                let tags = self.tags(object)?;
                let excluded = object.texts("excludes")?;
                let at_least_one = object.flag("at_least_one")?;
                let stop_after_first = object.flag("stop_after_first")?;
                let all = Triggered { triggers, tags, excluded, at_least_one, stop_after_first };
                triggered(all, &place)?
            }
            "tags_with_separator" => self.separated(object)?,
            _ => return Ok(None),
        }))
    }

    fn text(&self, object: &mut Object, name: &str) -> Result<String, ReadError> {
        let place = object.place_of(name);
        object.string(name)?.ok_or_else(|| wrong(&place, "is missing"))
    }

    /// Other ways of writing a value than JSON are chosen by the model's chat format alone.
    fn only_json(&self, object: &mut Object) -> Result<(), ReadError> {
        let place = object.place_of("style");
        match object.string("style")? {
            Some(style) if style != "json" => {
                Err(wrong(&place, &format!("is `{style}`; only json is supported")))
            }
            _ => Ok(()),
        }
    }

    fn schema(&self, text: &str, place: String) -> Result<StructuralTag, ReadError> {
        if !text.starts_with(['{', 't', 'f']) {
            return Err(wrong(&place, "must be a JSON Schema"));
        }
        Ok(StructuralTag::Schema(SchemaLeaf {
            schema: text.to_owned(),
            options: self.options,
            dialect: Dialect::Json,
            place,
        }))
    }

    fn grammar(
        &self,
        object: &mut Object,
        name: &str,
        source: fn(String) -> GrammarSource,
    ) -> Result<StructuralTag, ReadError> {
        let place = object.place_of(name);
        let source = Box::new(source(self.text(object, name)?));
        Ok(StructuralTag::Grammar { source, place })
    }

    fn formats(&self, object: &mut Object, name: &str) -> Result<Vec<StructuralTag>, ReadError> {
        object.list(name)?.into_iter().map(|(text, place)| self.format(text, &place)).collect()
    }

    fn repeat(&self, kind: &str, object: &mut Object) -> Result<StructuralTag, ReadError> {
        let (content, place) = object.require("content")?;
        let body = Box::new(self.format(content, &place)?);
        let (min, max) = match kind {
            "optional" => (0, Some(1)),
            "star" => (0, None),
            "plus" => (1, None),
            _ => {
                let bound = "a whole number";
                let min: u32 = object.parsed("min", bound)?.unwrap_or(0);
                let max: Option<i64> = object.parsed("max", bound)?;
                // -1 stands for any number.
                let max = max.filter(|max| *max >= 0);
                (min, max.map(|max| u32::try_from(max).unwrap_or(u32::MAX)))
            }
        };
        if max.is_some_and(|max| max < min) {
            return Err(wrong(&object.place_of("max"), "is less than `min`"));
        }
        Ok(StructuralTag::Repeat { body, min, max })
    }

    fn tags(&self, object: &mut Object) -> Result<Vec<(Tag, String)>, ReadError> {
        let mut tags = Vec::new();
        for (text, place) in object.list("tags")? {
            let mut tag = Object::read(text, &place)?;
            match tag.string("type")?.as_deref() {
                None | Some("tag") => {}
                Some(_) => return Err(wrong(&tag.place_of("type"), "must be `tag`")),
            }
            let read = self.tag(&mut tag)?;
            tag.finish()?;
            tags.push((read, place));
        }
        Ok(tags)
    }

    fn tag(&self, object: &mut Object) -> Result<Tag, ReadError> {
        let begin = self.text(object, "begin")?;
        let (content, place) = object.require("content")?;
        let content = self.format(content, &place)?;
        let ends = match object.take("end") {
            None => vec![String::new()],
            Some(end) => match serde_json::from_str::<String>(end.get()) {
                Ok(end) => vec![end],
                Err(_) => serde_json::from_str::<Vec<String>>(end.get())
                    .ok()
                    .filter(|ends| !ends.is_empty())
                    .ok_or_else(|| {
                        wrong(&object.place_of("end"), "must be a string or a list of strings")
                    })?,
            },
        };
        Ok(Tag { begin, rest: followed(content, ends) })
    }

    fn separated(&self, object: &mut Object) -> Result<StructuralTag, ReadError> {
        let tags = self.tags(object)?.into_iter().map(|(Tag { begin, rest }, _)| {
            StructuralTag::Sequence(vec![StructuralTag::Text(begin), rest])
        });
        let one = StructuralTag::AnyOf(tags.collect());
        let separator = self.text(object, "separator")?;
        let at_least_one = object.flag("at_least_one")?;
        let some = if object.flag("stop_after_first")? {
            one
        } else {
            let next = StructuralTag::Sequence(vec![StructuralTag::Text(separator), one.clone()]);
            let more = StructuralTag::Repeat { body: Box::new(next), min: 0, max: None };
            StructuralTag::Sequence(vec![one, more])
        };
        Ok(if at_least_one { some } else { some.optional() })
    }
}

/// What stands in a tag, and its end. Free text goes up to the first of the ends.
fn followed(content: StructuralTag, ends: Vec<String>) -> StructuralTag {
    match content {
        StructuralTag::FreeText(text)
            if text.parts.is_empty() && ends.iter().all(|end| !end.is_empty()) =>
        {
            let part = |trigger| FreePart {
                trigger,
                at_start: false,
                rest: StructuralTag::nothing(),
                goes_on: false,
            };
            let parts = ends.into_iter().map(part).collect();
            StructuralTag::FreeText(FreeTextTag { parts, end: FreeEnd::WithPart, ..text })
        }
        content => {
            let ends = ends.into_iter().map(StructuralTag::Text).collect();
            StructuralTag::Sequence(vec![content, StructuralTag::AnyOf(ends)])
        }
    }
}

/// Free text with tags: each begins with one of the triggers.
fn triggered(all: Triggered, place: &str) -> Result<StructuralTag, ReadError> {
    if all.triggers.is_empty() || all.triggers.iter().any(String::is_empty) {
        return Err(wrong(place, "must be a list of texts that are not empty"));
    }
    let mut parts = Vec::new();
    for (Tag { begin, rest }, tag_place) in all.tags {
        // The text is a tag from the first trigger on that is complete.
        let trigger = all.triggers.iter().filter(|trigger| begin.starts_with(trigger.as_str()));
        let Some(trigger) = trigger.min_by_key(|trigger| trigger.len()) else {
            let reason = "must begin with one of the triggers";
            return Err(wrong(&format!("{tag_place}.begin"), reason));
        };
        let begun = begin.get(trigger.len()..).unwrap_or_default();
        parts.push(FreePart {
            trigger: trigger.clone(),
            at_start: false,
            rest: StructuralTag::Sequence(vec![StructuralTag::text(begun), rest]),
            goes_on: !all.stop_after_first,
        });
    }
    let used = |trigger: &&String| !parts.iter().any(|part| part.trigger == **trigger);
    let unused: Vec<String> = all.triggers.iter().filter(used).cloned().collect();
    let excluded = all.excluded.into_iter().chain(unused).collect();
    let end = if all.at_least_one { FreeEnd::AfterFirst } else { FreeEnd::Anywhere };
    Ok(StructuralTag::FreeText(FreeTextTag { parts, excluded, marks: Vec::new(), end }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<StructuralTag, ReadError> {
        StructuralTag::read(text, "response_format", SchemaOptions::default())
    }

    #[test]
    fn both_shapes_say_the_same() {
        let old = r#"{"type": "structural_tag", "triggers": ["<f="], "structures":
            [{"begin": "<f=a>", "schema": {"type": "null"}, "end": "</f>"}]}"#;
        let new = r#"{"type": "structural_tag", "format": {"type": "triggered_tags",
            "triggers": ["<f="], "tags": [{"begin": "<f=a>", "end": "</f>",
            "content": {"type": "json_schema", "json_schema": {"type": "null"}}}]}}"#;
        let place = |tag: StructuralTag| format!("{tag:?}").replace("structures[0].schema", "x");
        let new = format!("{:?}", read(new).unwrap());
        let new = new.replace("format.tags[0].content.json_schema", "x");
        assert_eq!(place(read(old).unwrap()), new);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let format = |format: &str| format!(r#"{{"format": {format}}}"#);
        for (text, place) in [
            ("[]", "response_format"),
            ("{}", "response_format.structures"),
            (r#"{"structures": []}"#, "response_format.structures"),
            (
                r#"{"structures": [{"begin": "<a>", "schema": {}}], "triggers": ["<b"]}"#,
                "response_format.structures[0].begin",
            ),
            (r#"{"structures": [{"begin": "<a>", "schema": {}}]}"#, "response_format.triggers"),
            (&format("{}"), "response_format.format.type"),
            (&format(r#"{"type": "klingon"}"#), "response_format.format.type"),
            (&format(r#"{"type": "const_string"}"#), "response_format.format.value"),
            (&format(r#"{"type": "any_text", "x": 1}"#), "response_format.format.x"),
            (
                &format(
                    r#"{"type": "tag", "begin": "", "content": {"type": "any_text"}, "end": []}"#,
                ),
                "response_format.format.end",
            ),
            (
                &format(r#"{"type": "sequence", "elements": [{"type": "regex"}]}"#),
                "response_format.format.elements[0].pattern",
            ),
            (
                &format(
                    r#"{"type": "repeat", "min": 3, "max": 2, "content": {"type": "any_text"}}"#,
                ),
                "response_format.format.max",
            ),
        ] {
            assert_eq!(read(text).unwrap_err().place, place, "{text}");
        }
    }
}
