//! Pleach's engine.

use std::sync::Arc;

use pleach::TokenId;
use pleach::grammar::json_schema::SchemaOptions;
use pleach::grammar::{CompiledGrammar, Fuel, GrammarSource, GrammarVocabulary, Limits, Matcher};
use pleach::vocab::Vocabulary;

use super::{Case, Engine, Follower};

/// The engine and the grammar it has compiled last.
pub struct Ours {
    vocabulary: Arc<GrammarVocabulary>,
    limits: Limits,
    schemas: SchemaOptions,
    grammar: Option<Arc<CompiledGrammar>>,
}

impl Ours {
    /// `schemas` is how schemas are followed.
    pub fn new(vocabulary: &Vocabulary, schemas: SchemaOptions) -> Self {
        Self {
            schemas,
            vocabulary: GrammarVocabulary::new(vocabulary),
            limits: Limits::default(),
            grammar: None,
        }
    }
}

impl Engine for Ours {
    fn forget(&mut self) {
        self.grammar = None;
    }

    fn compile(&mut self, case: &Case) -> Result<(), String> {
        let source = match (&case.gbnf, &case.schema) {
            (Some(gbnf), _) => GrammarSource::Gbnf(gbnf.clone()),
            (None, Some(schema)) => {
                GrammarSource::JsonSchema { schema: schema.clone(), options: self.schemas }
            }
            (None, None) => return Err("neither GBNF nor a schema is given".to_owned()),
        };
        let mut fuel = Fuel::new(self.limits.compile_steps_max);
        let grammar = CompiledGrammar::compile(&source, &self.vocabulary, &self.limits, &mut fuel)
            .map_err(|error| error.to_string())?;
        grammar.matcher().mask().map_err(|error| error.to_string())?;
        self.grammar = Some(grammar);
        Ok(())
    }

    fn start(&mut self, cold: bool) -> Result<Box<dyn Follower + '_>, String> {
        let grammar = self.grammar.as_ref().ok_or("nothing is compiled")?;
        if cold {
            grammar.forget();
        }
        let bits = vec![0; self.vocabulary.mask_words()];
        Ok(Box::new(OurFollower { matcher: grammar.matcher(), bits }))
    }
}

struct OurFollower {
    matcher: Matcher,
    bits: Vec<u32>,
}

impl Follower for OurFollower {
    fn mask(&mut self) -> bool {
        self.matcher.fill_mask(&mut self.bits).is_ok()
    }

    fn allows(&self, token: TokenId) -> bool {
        let word = self.bits.get(token as usize / 32).copied().unwrap_or(0);
        word >> (token % 32) & 1 == 1
    }

    fn accept(&mut self, token: TokenId) -> bool {
        self.matcher.accept(token).is_ok()
    }

    fn is_complete(&mut self) -> bool {
        self.matcher.is_complete()
    }
}
