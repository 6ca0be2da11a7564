//! From shapes to the engine's rules: one rule for each conjunction that is met.

mod arguments;
mod arrays;
mod base;
mod keys;
mod limits;
mod numbers;
mod objects;
mod strings;
mod style;
mod values;

use std::sync::Arc;

use base::Base;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use style::Style;

use super::atom::Types;
use super::{
    Conj, Dialect, Document, Json, NodeId, NumberSet, Relaxed, SchemaError, SchemaOptions, Shapes,
    StringSet, types,
};
use crate::grammar::expr::{ExprId, ExprPool, RuleId};
use crate::grammar::limits::Fuel;
use crate::grammar::regular::Dfa;

/// Texts that are listed one by one, at most.
const FEW_TEXTS_MAX: usize = 256;

/// The integers of a set, if they are few and need no other test.
fn few_integers(set: &NumberSet) -> Option<Vec<String>> {
    let plain = set.multiples_of.is_empty() && set.not_multiples_of.is_empty();
    if !set.integer || !plain || !set.excluded.is_empty() {
        return None;
    }
    let (min, max) = (set.min.as_ref()?, set.max.as_ref()?);
    let low = min.value.to_i64()?.checked_add(i64::from(min.exclusive))?;
    let high = max.value.to_i64()?.checked_sub(i64::from(max.exclusive))?;
    let count = high.checked_sub(low)?;
    (count < FEW_TEXTS_MAX as i64).then(|| (low..=high).map(|value| value.to_string()).collect())
}

/// Adds the rules of a schema whose values are written in a dialect to a pool. Gives back the rule
/// that is the value, and what was relaxed.
pub fn rules_into(
    pool: &mut ExprPool,
    schema: &str,
    options: &SchemaOptions,
    dialect: &Dialect,
    fuel: &mut Fuel<'_>,
) -> Result<(RuleId, Vec<Relaxed>), SchemaError> {
    let document = Document::parse(schema, options, fuel)?;
    let root = document.root();
    let integers = document.number_options().integers;
    let base = match dialect {
        Dialect::Json => base::of(options, integers).filter(|base| base.start(pool)),
        _ => None,
    };
    let mut lowering = Lowering::new(pool, document, *options, dialect);
    lowering.base = base;
    let root = match dialect {
        Dialect::Json => lowering.rule(&root, Style::Json),
        _ => lowering.arguments(&root, schema, fuel)?,
    };
    lowering.lower_pending(fuel)?;
    let mut relaxed = lowering.document.relaxed().to_vec();
    relaxed.append(&mut lowering.relaxed);
    Ok((root, relaxed))
}

/// Rules under construction.
struct Lowering<'p> {
    pool: &'p mut ExprPool,
    document: Document,
    options: SchemaOptions,
    /// What was given up, beside what the document gave up.
    relaxed: Vec<Relaxed>,
    dialect: Dialect,
    /// What the pool started from.
    base: Option<Arc<Base>>,
    /// What has its expressions already, beside what it has from the base.
    known: Known,
    /// Rules that are called and not lowered yet.
    pending: Vec<(Conj, Style, RuleId)>,
    /// What strings of a style may be.
    limits: FxHashMap<Style, Option<Arc<Dfa>>>,
}

/// What has its expressions already.
#[derive(Debug, Default)]
struct Known {
    rules: FxHashMap<(Conj, Style), RuleId>,
    /// Rules for all values of some types, in JSON.
    types: SmallVec<[(Types, RuleId); 4]>,
    any_string: Option<ExprId>,
    strings: FxHashMap<(StringSet, Style), ExprId>,
    numbers: FxHashMap<Vec<NumberSet>, ExprId>,
    gap: Option<ExprId>,
    gap_rule: Option<RuleId>,
    never: Option<RuleId>,
}

impl<'p> Lowering<'p> {
    fn new(
        pool: &'p mut ExprPool,
        document: Document,
        options: SchemaOptions,
        dialect: &Dialect,
    ) -> Self {
        Self {
            pool,
            document,
            options,
            dialect: dialect.clone(),
            limits: FxHashMap::default(),
            relaxed: Vec::new(),
            base: None,
            known: Known::default(),
            pending: Vec::new(),
        }
    }

    /// Finds something in what is known here or in the base.
    fn find_known<T: Copy>(&self, find: impl Fn(&Known) -> Option<&T>) -> Option<T> {
        let of_base = || self.base.as_ref().and_then(|base| find(base.known()));
        find(&self.known).or_else(of_base).copied()
    }

    /// The rule for what a conjunction allows; it is lowered later.
    fn rule(&mut self, conj: &Conj, style: Style) -> RuleId {
        if let Some(rule) = self.rule_of_types(conj, style) {
            return rule;
        }
        let key = (conj.clone(), style);
        if let Some(known) = self.find_known(|known| known.rules.get(&key)) {
            return known;
        }
        let name = match conj.literals().first() {
            Some(literal) => self.document.pointer_of(literal.node),
            None => "anything".to_owned(),
        };
        let rule = self.pool.declare(name);
        self.known.rules.insert(key, rule);
        self.pending.push((conj.clone(), style, rule));
        rule
    }

    /// The rule that is there already for what a conjunction allows, if that is whole types.
    fn rule_of_types(&self, conj: &Conj, style: Style) -> Option<RuleId> {
        let base = self.base.as_ref().filter(|_| style == Style::Json)?;
        let types = self.document.plain_types(conj)?;
        let mut known = base.known().types.iter();
        known.find(|(known, _)| *known == types).map(|&(_, rule)| rule)
    }

    fn lower_pending(&mut self, fuel: &mut Fuel<'_>) -> Result<(), SchemaError> {
        while let Some((conj, style, rule)) = self.pending.pop() {
            let shapes = self.document.shapes(&conj, fuel)?;
            let body = self.shapes(&shapes, style, fuel).map_err(|error| {
                let at = conj.literals().first().map(|literal| literal.node);
                error.at(|| at.map_or_else(|| "/".to_owned(), |at| self.document.pointer_of(at)))
            })?;
            self.pool.define(rule, body);
        }
        Ok(())
    }

    /// What shapes allow.
    fn shapes(
        &mut self,
        shapes: &Shapes,
        style: Style,
        fuel: &mut Fuel<'_>,
    ) -> Result<ExprId, SchemaError> {
        let mut choices: SmallVec<[ExprId; 8]> = SmallVec::new();
        let allowed = [shapes.null, shapes.booleans[0], shapes.booleans[1]];
        for (words, _) in style.words().iter().zip(allowed).filter(|(_, allowed)| *allowed) {
            choices.push(self.pool.literals(words));
        }
        if !shapes.values.is_empty() {
            choices.push(self.values(&shapes.values, style, fuel)?);
        }
        if !shapes.numbers.is_empty() {
            choices.push(self.numbers(&shapes.numbers, style, fuel)?);
        }
        for set in &shapes.strings {
            choices.push(self.string(set, style, fuel)?);
        }
        if self.tells_bracketed(style, types::ARRAY) {
            for shape in &shapes.arrays {
                choices.push(self.array(shape, style.inner(), fuel)?);
            }
        }
        if self.tells_bracketed(style, types::OBJECT) {
            for shape in &shapes.objects {
                choices.push(self.object(shape, style.inner(), fuel)?);
            }
        }
        Ok(self.pool.alt(&choices))
    }

    /// Whether a keyword that cannot be followed exactly is to be left out; it is noted then.
    fn relax(&mut self, at: NodeId, keyword: &str) -> bool {
        if self.options.strict {
            return false;
        }
        let pointer = self.document.pointer_of(at);
        self.relaxed.push(Relaxed { pointer, keyword: keyword.to_owned() });
        true
    }

    fn inexact(&self, at: NodeId, keyword: &str, reason: &str) -> SchemaError {
        let (keyword, reason) = (keyword.to_owned(), reason.to_owned());
        SchemaError::Inexact { pointer: self.document.pointer_of(at), keyword, reason }
    }

    /// The texts of all that a conjunction allows, if they are few: no object or array is. Each
    /// value has one.
    fn few_texts(
        &mut self,
        conj: &Conj,
        style: Style,
        fuel: &mut Fuel<'_>,
    ) -> Result<Option<Vec<String>>, SchemaError> {
        let shapes = self.document.shapes(conj, fuel)?;
        let mut texts: Vec<String> = Vec::new();
        let allowed = [shapes.null, shapes.booleans[0], shapes.booleans[1]];
        let words = style.words();
        let words = words.iter().zip(allowed).filter(|(_, allowed)| *allowed);
        texts.extend(words.filter_map(|(words, _)| words.first()).map(|word| (*word).to_owned()));
        if !shapes.arrays.is_empty() || !shapes.objects.is_empty() {
            return Ok(None);
        }
        let mut strings: Vec<Arc<str>> = Vec::new();
        for value in &shapes.values {
            match value {
                Json::String(text) => strings.push(Arc::clone(text)),
                Json::Number(number) => texts.push(number.to_string()),
                _ => return Ok(None),
            }
        }
        for set in &shapes.strings {
            let few = self.whole_language(set, fuel)?.finite(FEW_TEXTS_MAX);
            let Some(few) = few else { return Ok(None) };
            strings.extend(few.iter().map(|text| Arc::from(text.as_str())));
        }
        for text in strings {
            texts.extend(self.string_texts(&text, style, fuel)?.into_iter().next());
        }
        for set in &shapes.numbers {
            let Some(few) = few_integers(set) else { return Ok(None) };
            texts.extend(few);
        }
        texts.sort_unstable();
        texts.dedup();
        Ok((texts.len() <= FEW_TEXTS_MAX).then_some(texts))
    }

    /// Whitespace, where it is allowed.
    fn gap(&mut self) -> ExprId {
        if let Some(gap) = self.find_known(|known| known.gap.as_ref()) {
            return gap;
        }
        let gap = self.options.whitespace.gap(self.pool);
        *self.known.gap.insert(gap)
    }
}
