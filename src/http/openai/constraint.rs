//! The fields that hold an answer to a grammar, in all their spellings.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::fields::{Fields, wrong_type};
use super::schema::{self, SchemaFields};
use super::unsupported::not_yet;
use crate::grammar::json_schema::{Dialect, SchemaError, SchemaOptions};
use crate::grammar::structural_tag::SchemaLeaf;
use crate::grammar::{CompiledGrammar, GrammarError, GrammarSource, MatchError, StructuralTag};
use crate::http::error::ApiError;
use crate::http::model::Grammars;
use crate::http::offload::Cancel;
use crate::session::Constraint;
use crate::telemetry::metrics::{
    GRAMMAR_CACHE_HITS_TOTAL, GRAMMAR_COMPILE_REJECTIONS_TOTAL, GRAMMAR_COMPILE_SECONDS,
};

/// A constraint that a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConstraintRequest {
    /// The grammar.
    pub source: GrammarSource,
    /// The field that brought it.
    pub param: String,
    /// The answer may be cut by its token budget.
    pub allow_truncation: bool,
    /// What the prompt has written of the answer.
    pub begun: String,
}

/// What a request says about holding its answer to something.
#[derive(Clone, Debug)]
pub struct ConstraintFields {
    /// The constraint, if there is one.
    pub constraint: Option<ConstraintRequest>,
    /// An answer that is held to calls may be cut by its token budget.
    pub allow_truncation: bool,
    /// How the schemas of functions are followed.
    schemas: SchemaFields,
}

impl ConstraintFields {
    /// How a function's arguments follow their schema.
    pub fn options(&self, strict: bool) -> SchemaOptions {
        self.schemas.options(strict)
    }
}

/// A constraint, compiled, with the tokens that its shortest answer takes; `None`: not known.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// What the sessions are held to.
    pub constraint: Constraint,
    /// Tokens of the shortest answer that is known of.
    pub shortest_tokens: Option<u32>,
}

/// What is known of an answer besides what it is held to.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnswerKind {
    /// Its calls are held to their schemas.
    pub has_functions: bool,
    /// It goes on with a text that somebody else has begun.
    pub continues: bool,
}

/// Takes every field that constrains the answer. At most one of them may be set. `strict`: whether
/// schemas are that do not say so themselves.
pub fn take(
    f: &mut Fields,
    answer: AnswerKind,
    strict: bool,
) -> Result<ConstraintFields, ApiError> {
    let mut found: Vec<(String, GrammarSource)> = Vec::new();
    for (name, as_source) in [
        ("grammar", GrammarSource::Gbnf as fn(String) -> GrammarSource),
        ("guided_grammar", GrammarSource::Gbnf),
        ("guided_regex", GrammarSource::Regex),
    ] {
        if let Some(text) = text_of(f, name)? {
            found.push((f.param(name), as_source(text)));
        }
    }
    if let Some(choices) = f.list("guided_choice")?.filter(|choices| !choices.is_empty()) {
        found.push((f.param("guided_choice"), choice(choices, "guided_choice")?));
    }
    let schemas = SchemaFields::take(f, strict, answer.continues)?;
    for name in ["guided_json", "json_schema"] {
        if let Some(value) = f.take(name) {
            let text = schema::text(value, name)?;
            found.push((f.param(name), schemas.source(text, None)));
        }
    }
    found.extend(structured_outputs(f, schemas)?);
    found.extend(response_format(f, schemas)?);
    schemas.check_used(found.first().map(|(_, source)| source), answer.has_functions)?;
    let truncation = f.boolean("allow_truncation")?;
    let allow_truncation = truncation.unwrap_or(false);
    if let [(first, _), (second, _), ..] = &*found {
        let message = format!("`{second}` and `{first}` cannot both constrain the answer");
        return Err(ApiError::invalid(second, message));
    }
    if found.is_empty() && truncation.is_some() && !answer.has_functions {
        let message = "`allow_truncation` needs a field that constrains the answer";
        return Err(ApiError::invalid("allow_truncation", message));
    }
    let request = |(param, source)| ConstraintRequest {
        source,
        param,
        allow_truncation,
        begun: String::new(),
    };
    let constraint = found.pop().map(request);
    Ok(ConstraintFields { constraint, allow_truncation, schemas })
}

/// A text; empty means that the field is not used. llama.cpp's grammar is the only dialect.
fn text_of(f: &mut Fields, name: &str) -> Result<Option<String>, ApiError> {
    let param = f.param(name);
    match f.take(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text).filter(|text| !text.is_empty())),
        Some(Value::Object(_)) if name == "grammar" => {
            let message = "`grammar` must be a string in llama.cpp's GBNF; for a regular \
                           expression use `guided_regex`";
            Err(ApiError::invalid(param, message))
        }
        Some(other) => Err(wrong_type(&param, "a string", &other)),
    }
}

fn choice(choices: Vec<Value>, param: &str) -> Result<GrammarSource, ApiError> {
    let text = |(index, choice): (usize, Value)| match choice {
        Value::String(text) => Ok(text),
        other => Err(wrong_type(&format!("{param}[{index}]"), "a string", &other)),
    };
    Ok(GrammarSource::Choice(choices.into_iter().enumerate().map(text).collect::<Result<_, _>>()?))
}

/// vLLM's object with exactly one kind of constraint in it.
fn structured_outputs(
    f: &mut Fields,
    schemas: SchemaFields,
) -> Result<Vec<(String, GrammarSource)>, ApiError> {
    let Some(value) = f.take("structured_outputs") else { return Ok(Vec::new()) };
    let mut inner = Fields::nested(value, "structured_outputs")?;
    let mut found = Vec::new();
    if let Some(text) = text_of(&mut inner, "regex")? {
        found.push((inner.param("regex"), GrammarSource::Regex(text)));
    }
    if let Some(text) = text_of(&mut inner, "grammar")? {
        found.push((inner.param("grammar"), GrammarSource::Gbnf(text)));
    }
    if let Some(choices) = inner.list("choice")? {
        let param = inner.param("choice");
        found.push((param.clone(), choice(choices, &param)?));
    }
    let compact = inner.boolean("disable_any_whitespace")?;
    if let Some(value) = inner.take("json") {
        let param = inner.param("json");
        let text = schema::text(value, &param)?;
        found.push((param, schemas.compact_if(compact).source(text, None)));
    } else if compact == Some(true) {
        let param = inner.param("disable_any_whitespace");
        return Err(ApiError::invalid(&*param, format!("`{param}` needs `json` beside it")));
    }
    if inner.boolean("json_object")? == Some(true) {
        found.push((inner.param("json_object"), GrammarSource::JsonObject));
    }
    if let Some(value) = inner.take("structural_tag") {
        let param = inner.param("structural_tag");
        let text = match value {
            Value::String(text) => text,
            value => value.to_string(),
        };
        found.push((param.clone(), structural_tag(&text, &param, schemas)?));
    }
    if let Some(value) = inner.take("whitespace_pattern")
        && value != Value::Bool(false)
    {
        return Err(not_yet(&inner.param("whitespace_pattern"), ""));
    }
    if let Some(unknown) = inner.left().into_iter().next() {
        let param = format!("structured_outputs.{unknown}");
        return Err(ApiError::invalid(&*param, format!("unknown field `{param}`")));
    }
    if found.is_empty() {
        let message = "`structured_outputs` must have one of json, regex, choice, grammar, \
                       json_object, structural_tag";
        return Err(ApiError::invalid("structured_outputs", message));
    }
    Ok(found)
}

/// A structural tag, in either of its shapes.
fn structural_tag(
    text: &str,
    param: &str,
    schemas: SchemaFields,
) -> Result<GrammarSource, ApiError> {
    let tag = StructuralTag::read(text, param, schemas.default_options());
    let tag = tag.map_err(|error| ApiError::invalid(error.place.clone(), error.to_string()))?;
    Ok(GrammarSource::StructuralTag(Arc::new(tag)))
}

fn response_format(
    f: &mut Fields,
    schemas: SchemaFields,
) -> Result<Option<(String, GrammarSource)>, ApiError> {
    let Some(value) = f.take("response_format") else { return Ok(None) };
    let text = value.to_string();
    let mut format = Fields::nested(value, "response_format")?;
    match format.string("type")?.as_deref() {
        Some("text") => Ok(None),
        Some("json_object") => match format.take("schema") {
            None => Ok(Some(("response_format".to_owned(), GrammarSource::JsonObject))),
            // Older servers take a schema here.
            Some(schema) => {
                let param = format.param("schema");
                let text = schema::text(schema, &param)?;
                Ok(Some((param, schemas.source(text, None))))
            }
        },
        Some("json_schema") => json_schema(&mut format, schemas).map(Some),
        Some("structural_tag") => {
            let source = structural_tag(&text, "response_format", schemas)?;
            Ok(Some(("response_format".to_owned(), source)))
        }
        Some(other) => Err(not_yet("response_format", &format!(" of type `{other}`"))),
        None => {
            let message = "missing required field `response_format.type`";
            Err(ApiError::invalid("response_format.type", message))
        }
    }
}

/// OpenAI's object around a schema. Its name and description are for the model's template alone.
fn json_schema(
    format: &mut Fields,
    schemas: SchemaFields,
) -> Result<(String, GrammarSource), ApiError> {
    let missing = |param: String| {
        let message = format!("missing required field `{param}`");
        ApiError::invalid(&*param, message)
    };
    let param = format.param("json_schema");
    let value = format.take("json_schema").ok_or_else(|| missing(param.clone()))?;
    let mut inner = Fields::nested(value, &param)?;
    inner.string("name")?;
    inner.string("description")?;
    let strict = inner.boolean("strict")?;
    let param = inner.param("schema");
    let schema = inner.take("schema").ok_or_else(|| missing(param.clone()))?;
    let source = schemas.source(schema::text(schema, &param)?, strict);
    Ok((param, source))
}

impl ConstraintRequest {
    /// Takes schemas as they stand in the body: the parsed body has lost digits of large numbers.
    pub fn take_sent_text(&mut self, body: &[u8], fields: &ConstraintFields) {
        let Some(text) = schema::sent_text(body, &self.param) else { return };
        match &mut self.source {
            GrammarSource::JsonSchema { schema, .. } => *schema = text.to_owned(),
            GrammarSource::StructuralTag(tag) => {
                // It has been read before: only digits differ.
                let options = fields.schemas.default_options();
                if let Ok(sent) = StructuralTag::read(text, &self.param, options) {
                    *tag = Arc::new(sent);
                }
            }
            _ => {}
        }
    }

    /// The constraint as a part of an answer.
    pub fn as_tag(&self) -> StructuralTag {
        let place = self.param.clone();
        match &self.source {
            GrammarSource::StructuralTag(tag) => StructuralTag::clone(tag),
            GrammarSource::JsonSchema { schema, options } => StructuralTag::Schema(SchemaLeaf {
                schema: schema.clone(),
                options: *options,
                dialect: Dialect::Json,
                place,
            }),
            source => StructuralTag::Grammar { source: Box::new(source.clone()), place },
        }
    }

    /// The constraint, if its grammar is compiled already.
    pub fn cached(&self, grammars: &Grammars) -> Option<Result<Compiled, ApiError>> {
        let known = grammars.cache.get(&self.source)?;
        metrics::counter!(GRAMMAR_CACHE_HITS_TOTAL).increment(1);
        Some(known.map_err(|error| self.refused(&error)).and_then(|it| self.compiled(grammars, it)))
    }

    /// Compiles the grammar; long work, to be done off the HTTP worker. Ends early when the client
    /// has left or the deadline for grammars passes.
    pub fn compile(&self, grammars: &Grammars, cancel: &Cancel) -> Result<Compiled, ApiError> {
        let started = Instant::now();
        let deadline: Duration = grammars.compile_deadline;
        let stopped = || cancel.check().is_err() || started.elapsed() > deadline;
        let result = grammars.cache.compile(&self.source, &stopped);
        metrics::histogram!(GRAMMAR_COMPILE_SECONDS).record(started.elapsed());
        let compiled = result.map_err(|error| self.refused(&error))?;
        self.compiled(grammars, compiled)
    }

    fn compiled(
        &self,
        grammars: &Grammars,
        grammar: Arc<CompiledGrammar>,
    ) -> Result<Compiled, ApiError> {
        let mut start =
            grammar.matcher_after(self.begun.as_bytes()).map_err(|error| match error {
                MatchError::NotBegun { .. } => ApiError::invalid(
                    "messages",
                    "what the prompt has written of the answer cannot go on under this constraint",
                ),
                error => self.too_complex(&error.to_string()),
            })?;
        let shortest_tokens =
            start.min_tokens_to_finish().map_err(|error| self.too_complex(&error.to_string()))?;
        let constraint = Constraint {
            start,
            forced_by: grammars.forced_by.clone(),
            whole: !self.allow_truncation,
        };
        Ok(Compiled { constraint, shortest_tokens })
    }

    fn refused(&self, error: &GrammarError) -> ApiError {
        use GrammarError::{Limit, Schema, Within};
        if let Within { place, error } = error {
            let param = if place.is_empty() { &self.param } else { place };
            return Self { param: param.clone(), ..self.clone() }.refused(error);
        }
        let message = error.to_string();
        if matches!(error, Limit(_) | Schema(SchemaError::Limit(_))) {
            return self.too_complex(&message);
        }
        metrics::counter!(GRAMMAR_COMPILE_REJECTIONS_TOTAL, "reason" => "invalid").increment(1);
        let param = &self.param;
        ApiError::Invalid {
            message: match error {
                Schema(_) => format!("`{param}`: {message}"),
                _ => format!("`{param}` is not a usable grammar: {message}"),
            },
            param: Some(param.clone()),
            code: Some(match error {
                Schema(_) => "invalid_json_schema",
                _ => "invalid_grammar",
            }),
        }
    }

    fn too_complex(&self, message: &str) -> ApiError {
        metrics::counter!(GRAMMAR_COMPILE_REJECTIONS_TOTAL, "reason" => "too_complex").increment(1);
        let param = &self.param;
        ApiError::Invalid {
            message: format!("`{param}`: {message}"),
            param: Some(param.clone()),
            code: Some("grammar_too_complex"),
        }
    }
}

impl Compiled {
    /// What of a schema was given up at the request's own wish, in words; `None`: nothing.
    pub fn relaxed(&self) -> Option<String> {
        let relaxed = self.constraint.start.grammar().relaxed();
        let words = relaxed.iter().map(|it| format!("{} at {}", it.keyword, it.pointer));
        (!relaxed.is_empty()).then(|| words.collect::<Vec<_>>().join(", "))
    }

    /// Refuses a token budget that no complete answer fits.
    pub fn check_budget(&self, max_tokens: u32) -> Result<(), ApiError> {
        if !self.constraint.whole {
            return Ok(());
        }
        let too_small = |message: String| {
            Err(ApiError::Invalid {
                message,
                param: Some("max_tokens".to_owned()),
                code: Some("max_tokens_too_small"),
            })
        };
        match self.shortest_tokens {
            Some(needed) if needed > max_tokens => too_small(format!(
                "no complete answer fits in {max_tokens} tokens: the shortest takes {needed}; \
                 raise max_tokens, or set allow_truncation to true"
            )),
            Some(_) => Ok(()),
            None => too_small(
                "no way to complete the answer within a token budget is known for this grammar; \
                 set allow_truncation to true"
                    .to_owned(),
            ),
        }
    }
}
