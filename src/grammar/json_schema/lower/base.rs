//! The rules of a value of any kind, shared by all schemas that have the same options.

use std::sync::{Arc, Mutex, PoisonError};

use super::super::atom::Types;
use super::super::{Dialect, Document, IntegerSpelling, SchemaOptions, Shapes};
use super::style::Style;
use super::{Known, Lowering};
use crate::grammar::error::GrammarError;
use crate::grammar::expr::{ExprPool, RuleId};
use crate::grammar::limits::{Fuel, Limits};
use crate::grammar::lower;

/// Bases that are kept; what further options ask for is lowered each time.
const KEPT_MAX: usize = 8;

/// What a schema that allows everything is lowered to.
pub(super) struct Base {
    known: Known,
    engine: Arc<lower::Base>,
}

/// Types that most schemas have somewhere.
const TYPES: [(Types, &str); 4] = [
    (Types::STRING, "string"),
    (Types::NUMBER, "number"),
    (Types::INTEGER, "integer"),
    (Types::BOOLEAN, "boolean"),
];

impl Base {
    fn new(options: SchemaOptions, integers: IntegerSpelling) -> Result<Self, GrammarError> {
        let limits = Limits::default();
        let fuel = &mut Fuel::new(limits.compile_steps_max);
        let mut pool = ExprPool::new();
        let anything = match integers {
            IntegerSpelling::Plain => r#"{"$schema":"http://json-schema.org/draft-04/schema#"}"#,
            IntegerSpelling::Any | IntegerSpelling::MostlyPlain => "true",
        };
        let document = Document::parse(anything, &options, fuel)?;
        let anything = document.root();
        let mut lowering = Lowering::new(&mut pool, document, options, &Dialect::Json);
        let rule = lowering.rule(&anything, Style::Json);
        lowering.lower_pending(fuel)?;
        for (types, name) in TYPES {
            let body = lowering.shapes(&Shapes::of_scalars(types), Style::Json, fuel)?;
            let rule = lowering.pool.declare(name);
            lowering.pool.define(rule, body);
            lowering.known.types.push((types, rule));
        }
        let known = lowering.known;
        let scalars: Vec<RuleId> = known.types.iter().map(|&(_, rule)| rule).collect();
        let engine = Arc::new(lower::Base::new(pool, rule, &scalars, &limits, fuel)?);
        Ok(Self { known, engine })
    }

    /// Puts the base into a pool where nothing is yet; whether it was so.
    pub(super) fn start(&self, pool: &mut ExprPool) -> bool {
        pool.start_from(&self.engine)
    }

    /// What has its expressions in the base's pool.
    pub(super) fn known(&self) -> &Known {
        &self.known
    }
}

/// What a base depends on.
type Key = (SchemaOptions, IntegerSpelling);

/// The base for some options, and documents whose integers are written in some way; made when it is
/// first asked for.
pub(super) fn of(options: &SchemaOptions, integers: IntegerSpelling) -> Option<Arc<Base>> {
    static KEPT: Mutex<Vec<(Key, Arc<Base>)>> = Mutex::new(Vec::new());
    // There is nothing that could be relaxed.
    let options = SchemaOptions { strict: true, ..*options };
    let key = (options, integers);
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, base)) = kept.iter().find(|(known, _)| *known == key) {
        return Some(Arc::clone(base));
    }
    if kept.len() >= KEPT_MAX {
        return None;
    }
    let base = Arc::new(Base::new(options, integers).ok()?);
    kept.push((key, Arc::clone(&base)));
    Some(base)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::explain::check_text;
    use crate::grammar::{CompiledGrammar, GrammarSource, GrammarVocabulary, Whitespace};
    use crate::vocab::byte_vocabulary;

    fn compile(schema: &str, options: SchemaOptions) -> Arc<CompiledGrammar> {
        let source = GrammarSource::JsonSchema { schema: schema.to_owned(), options };
        let vocabulary = GrammarVocabulary::new(&byte_vocabulary());
        let limits = Limits::default();
        let mut fuel = Fuel::new(limits.compile_steps_max);
        CompiledGrammar::compile(&source, &vocabulary, &limits, &mut fuel).unwrap()
    }

    #[test]
    fn options_have_their_own_bases_or_none() {
        // Those that all other tests use come first.
        let _ = of(&SchemaOptions::default(), IntegerSpelling::Any);
        for gap in 0..3 * KEPT_MAX {
            let whitespace = Whitespace::Any { characters_max: gap as u32 };
            let options = SchemaOptions { whitespace, ..SchemaOptions::default() };
            let of = || of(&options, IntegerSpelling::Any);
            let (first, again) = (of(), of());
            assert_eq!(first.is_some(), again.is_some());
            assert!(first.iter().zip(&again).all(|(first, again)| Arc::ptr_eq(first, again)));
            let grammar = compile(r#"{"type":"array"}"#, options);
            let text = |spaces: usize| format!("[{}[1,\"\",{{\"a\":null}}]]", " ".repeat(spaces));
            assert!(check_text(&grammar, text(gap).as_bytes()).unwrap().accepted);
            assert!(!check_text(&grammar, text(gap + 1).as_bytes()).unwrap().accepted);
        }
    }

    #[test]
    fn the_types_of_a_base_are_what_schemas_of_them_are() {
        let fuel = &mut Fuel::new(1_000_000);
        for (types, name) in TYPES {
            let schema = format!(r#"{{"type":"{name}"}}"#);
            let options = SchemaOptions::default();
            let mut document = Document::parse(&schema, &options, fuel).unwrap();
            let root = document.root();
            assert_eq!(document.plain_types(&root), Some(types));
            assert_eq!(*document.shapes(&root, fuel).unwrap(), Shapes::of_scalars(types), "{name}");
        }
    }

    #[test]
    fn integers_of_draft_4_are_not_those_of_other_schemas() {
        let draft_4 = r#"{"$schema":"http://json-schema.org/draft-04/schema#","items":{"type":"integer"},"type":"array"}"#;
        let other = r#"{"items":{"type":"integer"},"type":"array"}"#;
        for (schema, takes) in [(other, true), (draft_4, false), (other, true)] {
            let grammar = compile(schema, SchemaOptions::default());
            assert_eq!(check_text(&grammar, b"[1.0]").unwrap().accepted, takes, "{schema}");
            assert!(check_text(&grammar, b"[1,-20]").unwrap().accepted);
        }
    }

    #[test]
    fn only_a_schema_that_uses_the_base_carries_it() {
        let nodes = |schema| compile(schema, SchemaOptions::default()).size().nodes;
        let any = nodes("true");
        assert!(nodes(r#"{"items":{"type":"null"},"type":"array"}"#) < any / 2);
        assert!(nodes(r#"{"properties":{"a":{"type":"null"}},"type":"object"}"#) > any);
    }
}
