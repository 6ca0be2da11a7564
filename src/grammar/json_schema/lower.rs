//! From shapes to the engine's rules: one rule for each conjunction that is met.

mod arrays;
mod keys;
mod numbers;
mod objects;
mod strings;
mod values;

use rustc_hash::FxHashMap;

use super::{
    Conj, Dialect, Document, Json, NodeId, NumberSet, Relaxed, SchemaError, SchemaOptions, Shapes,
    StringSet,
};
use crate::grammar::expr::{CharSet, ExprId, ExprPool, RuleId};
use crate::grammar::limits::Fuel;
use crate::grammar::text::json_spelled;

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
    let mut lowering = Lowering::new(pool, document, *options, dialect);
    let root = lowering.rule(&root);
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
    rules: FxHashMap<Conj, RuleId>,
    /// Rules that are called and not lowered yet.
    pending: Vec<(Conj, RuleId)>,
    any_string: Option<ExprId>,
    strings: FxHashMap<StringSet, ExprId>,
    numbers: FxHashMap<Vec<NumberSet>, ExprId>,
    gap: Option<ExprId>,
    never: Option<RuleId>,
}

impl<'p> Lowering<'p> {
    fn new(
        pool: &'p mut ExprPool,
        document: Document,
        options: SchemaOptions,
        dialect: &Dialect,
    ) -> Self {
        match dialect {
            Dialect::Json => {}
        }
        Self {
            pool,
            document,
            options,
            relaxed: Vec::new(),
            rules: FxHashMap::default(),
            pending: Vec::new(),
            any_string: None,
            strings: FxHashMap::default(),
            numbers: FxHashMap::default(),
            gap: None,
            never: None,
        }
    }

    /// The rule for what a conjunction allows; it is lowered later.
    fn rule(&mut self, conj: &Conj) -> RuleId {
        if let Some(&known) = self.rules.get(conj) {
            return known;
        }
        let name = match conj.literals().first() {
            Some(literal) => self.document.pointer_of(literal.node),
            None => "anything".to_owned(),
        };
        let rule = self.pool.declare(name);
        self.rules.insert(conj.clone(), rule);
        self.pending.push((conj.clone(), rule));
        rule
    }

    fn lower_pending(&mut self, fuel: &mut Fuel<'_>) -> Result<(), SchemaError> {
        while let Some((conj, rule)) = self.pending.pop() {
            let shapes = self.document.shapes(&conj, fuel)?;
            let body = self.shapes(&shapes, fuel).map_err(|error| {
                let at = conj.literals().first().map(|literal| literal.node);
                error.at(|| at.map_or_else(|| "/".to_owned(), |at| self.document.pointer_of(at)))
            })?;
            self.pool.define(rule, body);
        }
        Ok(())
    }

    /// What shapes allow.
    fn shapes(&mut self, shapes: &Shapes, fuel: &mut Fuel<'_>) -> Result<ExprId, SchemaError> {
        let mut choices = Vec::new();
        let words =
            [("null", shapes.null), ("false", shapes.booleans[0]), ("true", shapes.booleans[1])];
        for (word, _) in words.into_iter().filter(|(_, allowed)| *allowed) {
            choices.push(self.pool.literal(word.as_bytes()));
        }
        choices.push(self.values(&shapes.values, fuel)?);
        if !shapes.numbers.is_empty() {
            choices.push(self.numbers(&shapes.numbers, fuel)?);
        }
        for set in &shapes.strings {
            choices.push(self.string(set, fuel)?);
        }
        for shape in &shapes.arrays {
            choices.push(self.array(shape, fuel)?);
        }
        for shape in &shapes.objects {
            choices.push(self.object(shape, fuel)?);
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

    /// The texts of all that a conjunction allows, if they are few: no object or array is.
    fn few_texts(
        &mut self,
        conj: &Conj,
        fuel: &mut Fuel<'_>,
    ) -> Result<Option<Vec<String>>, SchemaError> {
        let shapes = self.document.shapes(conj, fuel)?;
        let mut texts: Vec<String> = Vec::new();
        let words =
            [("null", shapes.null), ("false", shapes.booleans[0]), ("true", shapes.booleans[1])];
        texts.extend(
            words.iter().filter(|(_, allowed)| *allowed).map(|(word, _)| (*word).to_owned()),
        );
        if !shapes.arrays.is_empty() || !shapes.objects.is_empty() {
            return Ok(None);
        }
        for value in &shapes.values {
            match value {
                Json::String(text) => texts.push(format!("\"{}\"", json_spelled(text))),
                Json::Number(number) => texts.push(number.to_string()),
                _ => return Ok(None),
            }
        }
        for set in &shapes.strings {
            let few = self.whole_language(set, fuel)?.finite(FEW_TEXTS_MAX);
            let Some(few) = few else { return Ok(None) };
            texts.extend(few.iter().map(|text| format!("\"{}\"", json_spelled(text))));
        }
        for set in &shapes.numbers {
            let Some(few) = few_integers(set) else { return Ok(None) };
            texts.extend(few);
        }
        texts.sort_unstable();
        texts.dedup();
        Ok((texts.len() <= FEW_TEXTS_MAX).then_some(texts))
    }

    /// Whitespace characters in one place, at most.
    fn gap_max(&self) -> u32 {
        if self.options.compact { 0 } else { self.options.gap_characters_max }
    }

    /// Whitespace, where it is allowed.
    fn gap(&mut self) -> ExprId {
        if let Some(gap) = self.gap {
            return gap;
        }
        let white = self.pool.chars(CharSet::new([(0x20, 0x20), (0x9, 0xA), (0xD, 0xD)]));
        let gap = self.pool.repeat(white, 0, Some(self.gap_max()));
        *self.gap.insert(gap)
    }
}
