//! The arguments of a call, in the dialects that are not JSON.

use std::sync::Arc;

use serde_json::Value;

use super::super::{
    Conj, DeclaredTypes, Dialect, Json, NodeId, ObjectShape, Parameters, SchemaError, Shapes,
    Typing, Wrapping,
};
use super::Lowering;
use super::keys::keys;
use super::objects::{is_known, may_leave_free_keys_out};
use super::style::{Markup, Quotes, Style};
use super::values::NEVER;
use crate::grammar::expr::{ExprId, ExprPool, Mark, Members, RuleId};
use crate::grammar::limits::Fuel;
use crate::grammar::members::{KeyOrder, MemberRules, Presence};
use crate::grammar::text::Spelling;

/// Longest name of a parameter that is read as one, in bytes.
const NAME_BYTES_MAX: usize = 512;
/// Names of JSON types, as a block may name them.
const TYPE_NAMES: [&str; 6] = ["string", "number", "boolean", "null", "array", "object"];

/// What one argument may be.
enum Argument<'a> {
    Valid(&'a Conj),
    Exactly(&'a Json),
}

/// The arguments of a call in their order.
struct Arguments {
    names: Vec<Arc<str>>,
    values: Vec<RuleId>,
    rules: MemberRules,
    at: NodeId,
}

impl Lowering<'_> {
    /// The rule for the arguments that a conjunction allows. `schema` is what it comes from, by which
    /// the types of plain texts are told.
    pub(super) fn arguments(
        &mut self,
        conj: &Conj,
        schema: &str,
        fuel: &mut Fuel<'_>,
    ) -> Result<RuleId, SchemaError> {
        // The text is JSON; if it nests too deep for this reader, no types are known to anybody.
        let schema: Value = serde_json::from_str(schema).unwrap_or_default();
        let shapes = self.document.shapes(conj, fuel)?;
        let at = conj.literals().first().map(|literal| literal.node);
        let mut choices = Vec::new();
        for value in &shapes.values {
            if let (Json::Object(entries), Some(at)) = (value, at) {
                choices.push(self.exact_arguments(entries, at, &schema, fuel)?);
            }
        }
        for shape in &shapes.objects {
            let arguments = self.arguments_of(shape, &schema, fuel);
            choices
                .push(arguments.map_err(|error| error.at(|| self.document.pointer_of(shape.at)))?);
        }
        if choices.is_empty() {
            let reason = "arguments are an object".to_owned();
            return Err(SchemaError::Unsatisfiable { pointer: "#".to_owned(), reason });
        }
        let body = self.pool.alt(&choices);
        let rule = self.pool.declare("arguments");
        self.pool.define(rule, body);
        Ok(rule)
    }

    fn arguments_of(
        &mut self,
        shape: &ObjectShape,
        schema: &Value,
        fuel: &mut Fuel<'_>,
    ) -> Result<ExprId, SchemaError> {
        if self.dialect == Dialect::Python {
            return self.object(shape, Style::Python(Quotes::Either), fuel);
        }
        let first_free = shape.properties.len() as u32;
        let free = self.free_keys(shape, first_free, Style::Bare(None), fuel)?;
        let open_ended = free.as_ref().is_some_and(|free| free.listed.is_none());
        if open_ended && !may_leave_free_keys_out(shape) {
            if matches!(self.dialect, Dialect::BareKeys(_)) {
                let style = self.style_of_free_keys(shape, Style::Bare(None))?;
                return self.object(shape, style, fuel);
            }
            let error = self.no_free_keys(shape);
            let keyword = match &error {
                SchemaError::Inexact { keyword, .. } if keyword != "minProperties" => keyword,
                _ => return Err(error),
            };
            if !self.relax(shape.at, keyword) {
                return Err(error);
            }
        }
        let order = self.property_order(shape);
        let (mut names, mut values) = (Vec::new(), Vec::new());
        for property in order.iter().map(|&index| &shape.properties[index]) {
            fuel.spend(1)?;
            values.push(match property.possible {
                true => {
                    let value = Argument::Valid(&property.value);
                    self.argument(&property.name, &value, shape.at, schema, fuel)?
                }
                false => self.never_rule(),
            });
            names.push(Arc::clone(&property.name));
        }
        if let Some((listed, kinds)) = free.and_then(|free| free.listed.zip(Some(free.values))) {
            for (name, kind) in listed.iter().filter(|(name, _)| !is_known(shape, name)) {
                let value = Argument::Valid(&kinds[(kind - first_free) as usize]);
                values.push(self.argument(name, &value, shape.at, schema, fuel)?);
                names.push(name.as_str().into());
            }
        }
        let rules = self.member_rules(shape, &order, names.len() as u32);
        self.written(Arguments { names, values, rules, at: shape.at })
    }

    /// Arguments that are given one by one by the schema.
    fn exact_arguments(
        &mut self,
        entries: &[(Arc<str>, Json)],
        at: NodeId,
        schema: &Value,
        fuel: &mut Fuel<'_>,
    ) -> Result<ExprId, SchemaError> {
        if self.dialect == Dialect::Python {
            let value = Json::Object(entries.to_vec());
            return self.values(&[value], Style::Python(Quotes::Either), fuel);
        }
        let (mut names, mut values) = (Vec::new(), Vec::new());
        for (name, value) in entries {
            values.push(self.argument(name, &Argument::Exactly(value), at, schema, fuel)?);
            names.push(Arc::clone(name));
        }
        let declared = names.len() as u32;
        let all = Presence { required: (0..declared).collect(), forbidden: Box::default() };
        let order = if self.options.any_order { KeyOrder::Any } else { KeyOrder::Declared };
        let rules = MemberRules { declared, order, presence: [all].into(), min: 0, max: None };
        self.written(Arguments { names, values, rules, at })
    }

    /// The rule for the value of one argument.
    fn argument(
        &mut self,
        name: &str,
        value: &Argument<'_>,
        at: NodeId,
        schema: &Value,
        fuel: &mut Fuel<'_>,
    ) -> Result<RuleId, SchemaError> {
        let declared = DeclaredTypes::of_parameter(schema, name);
        let style = match &self.dialect {
            Dialect::Parameters(blocks) => {
                let blocks = blocks.clone();
                let shapes = match value {
                    Argument::Valid(conj) => Shapes::clone(&*self.document.shapes(conj, fuel)?),
                    Argument::Exactly(value) => exactly(value),
                };
                let body = self.parameter(&shapes, declared, &blocks, fuel)?;
                if body == NEVER && !shapes.is_never() {
                    let reason = format!("have no value for {name:?} that would be read as it");
                    return Err(self.inexact(at, "properties", &reason));
                }
                let rule = self.pool.declare(name);
                self.pool.define(rule, body);
                return Ok(rule);
            }
            Dialect::BareKeys(_) if !self.is_bare(name) => Style::Json,
            Dialect::BareKeys(_) if declared.is_unknown() => Style::Bare(None),
            Dialect::BareKeys(_) => Style::Bare(Some(declared)),
            _ => Style::Python(Quotes::Either),
        };
        match value {
            Argument::Valid(conj) => Ok(self.rule(conj, style)),
            Argument::Exactly(value) => {
                let body = self.shapes(&exactly(value), style, fuel)?;
                let rule = self.pool.declare(name);
                self.pool.define(rule, body);
                Ok(rule)
            }
        }
    }

    /// A value of a parameter, from after its name to what ends it.
    fn parameter(
        &mut self,
        shapes: &Shapes,
        declared: DeclaredTypes,
        blocks: &Parameters,
        fuel: &mut Fuel<'_>,
    ) -> Result<ExprId, SchemaError> {
        let typings: Vec<(String, DeclaredTypes)> = match &blocks.typing {
            Typing::Schema => vec![(String::new(), declared)],
            Typing::StringFlag(end) => vec![
                (format!("true{}", end.trim_end()), DeclaredTypes::string()),
                (format!("false{}", end.trim_end()), DeclaredTypes::not_string()),
            ],
            Typing::TypeName(end) => TYPE_NAMES
                .map(|name| (format!("{name}{}", end.trim_end()), DeclaredTypes::named(name)))
                .into(),
        };
        let mut choices = Vec::with_capacity(typings.len());
        for (head, declared) in typings {
            let head = self.pool.marked(head.as_bytes());
            let value = self.wrapped(shapes, declared, blocks.wrapping, fuel)?;
            choices.push(self.pool.seq(&[head, value]));
        }
        let value = self.pool.alt(&choices);
        let close = self.pool.marked(blocks.close.as_bytes());
        Ok(self.pool.seq(&[value, close]))
    }

    fn wrapped(
        &mut self,
        shapes: &Shapes,
        declared: DeclaredTypes,
        wrapping: Wrapping,
        fuel: &mut Fuel<'_>,
    ) -> Result<ExprId, SchemaError> {
        let (before, after) = wrapping.marks();
        let (before, after) =
            (self.pool.literal(before.as_bytes()), self.pool.literal(after.as_bytes()));
        let markup = if wrapping == Wrapping::Cdata { Markup::Cdata } else { Markup::Any };
        let value = self.shapes(shapes, Style::Plain(declared, markup), fuel)?;
        let value = self.pool.seq(&[before, value, after]);
        if wrapping != Wrapping::Cdata {
            return Ok(value);
        }
        let bare = self.shapes(shapes, Style::Plain(declared, Markup::None), fuel)?;
        Ok(self.pool.alt(&[bare, value]))
    }

    /// Names and values with what stands around them.
    fn written(&mut self, arguments: Arguments) -> Result<ExprId, SchemaError> {
        let Arguments { names, values, rules, at } = arguments;
        let mut texts: Vec<String> = Vec::with_capacity(names.len());
        for name in &names {
            let text = self.argument_name(name);
            texts.push(text.ok_or_else(|| self.unwritable_name(at, name))?);
        }
        let keys = keys(texts.iter().map(String::as_str), None, Spelling::Plain);
        let text = |text: &str| Mark::from(text.as_bytes());
        let gap = self.gap();
        let mut members = Members {
            open: Mark::new(),
            close: text(")"),
            comma: text(self.options.whitespace.comma()),
            colon: text("="),
            keys: Arc::new(keys),
            values: values.into_iter().map(Some).collect(),
            quoted: false,
            rules: rules.into(),
            gap,
        };
        let dialect = self.dialect.clone();
        match &dialect {
            Dialect::BareKeys(_) => {
                members = Members {
                    close: text("}"),
                    comma: text(","),
                    colon: text(":"),
                    gap: ExprPool::EMPTY,
                    ..members
                };
                let (open, members) = (self.pool.literal(b"{"), self.pool.members(members));
                Ok(self.pool.seq(&[open, members]))
            }
            Dialect::Parameters(blocks) => {
                let may_be_empty = members.rules.min == 0
                    && members.rules.presence.iter().any(|presence| presence.required.is_empty());
                members = Members {
                    open: text(&blocks.open),
                    close: text(&blocks.after),
                    comma: text(&format!("{}{}", blocks.between, blocks.open)),
                    // Whitespace before a value would be part of it.
                    colon: text(blocks.name_end.trim_end()),
                    gap: ExprPool::EMPTY,
                    ..members
                };
                // No parameters are nothing at all.
                let rules = Arc::make_mut(&mut members.rules);
                rules.min = rules.min.max(1);
                let none = if may_be_empty { ExprPool::EMPTY } else { NEVER };
                let some = self.pool.members(members);
                Ok(self.pool.alt(&[none, some]))
            }
            _ => Ok(self.pool.members(members)),
        }
    }

    /// A name as it is written; `None` if it cannot be.
    fn argument_name(&self, name: &str) -> Option<String> {
        let is_written = match &self.dialect {
            Dialect::BareKeys(_) => return self.key_text(name, Style::Bare(None)),
            Dialect::Parameters(blocks) => {
                let end = blocks.name_end.trim_start().chars().next();
                name.trim() == name
                    && name.len() <= NAME_BYTES_MAX
                    && end.is_some_and(|end| !name.contains(end))
            }
            _ => {
                let is_word =
                    |it: char| it.is_alphanumeric() || matches!(it, '_' | '.' | '+' | '-');
                !name.is_empty() && name.chars().all(is_word)
            }
        };
        is_written.then(|| name.to_owned())
    }
}

/// The shapes of one value.
fn exactly(value: &Json) -> Shapes {
    match value {
        Json::Null => Shapes { null: true, ..Shapes::default() },
        Json::Bool(value) => Shapes { booleans: [!value, *value], ..Shapes::default() },
        other => Shapes { values: vec![other.clone()], ..Shapes::default() },
    }
}
