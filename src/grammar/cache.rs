//! Compiled grammars, kept for the next request that brings the same source.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::compiled::CompiledGrammar;
use super::error::GrammarError;
use super::limits::{Fuel, Limits};
use super::source::GrammarSource;
use super::vocabulary::GrammarVocabulary;

/// Sources that are remembered to be wrong, at most: they cost their text alone.
const ENTRIES_MAX: usize = 4096;

/// All grammars of one vocabulary, under one set of limits: the key is the source alone.
///
/// The least recently used go out when the bytes of all exceed the budget; who holds one keeps it.
/// What does not compile is remembered too, unless the caller itself stopped the work.
#[derive(Debug)]
pub struct GrammarCache {
    vocabulary: Arc<GrammarVocabulary>,
    limits: Limits,
    bytes_max: usize,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    by_source: FxHashMap<Arc<GrammarSource>, Entry>,
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    result: Result<Arc<CompiledGrammar>, GrammarError>,
    last_used: u64,
}

impl GrammarCache {
    /// An empty cache whose grammars may take `bytes_max` together, masks apart.
    pub fn new(vocabulary: Arc<GrammarVocabulary>, limits: Limits, bytes_max: usize) -> Self {
        Self { vocabulary, limits, bytes_max, entries: Mutex::default() }
    }

    /// What is known of a source; `None`: it was not compiled yet, or has gone.
    pub fn get(
        &self,
        source: &GrammarSource,
    ) -> Option<Result<Arc<CompiledGrammar>, GrammarError>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.clock += 1;
        let now = entries.clock;
        let entry = entries.by_source.get_mut(source)?;
        entry.last_used = now;
        Some(entry.result.clone())
    }

    /// Compiles a source and remembers the result. No lock is held meanwhile: two requests with
    /// the same new source both compile it, and the later result stays. `stopped` ends the work.
    ///
    /// # Errors
    /// See [`CompiledGrammar::compile`].
    pub fn compile(
        &self,
        source: &GrammarSource,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Arc<CompiledGrammar>, GrammarError> {
        let mut fuel = Fuel::with_stop(self.limits.compile_steps_max, stopped);
        let result = CompiledGrammar::compile(source, &self.vocabulary, &self.limits, &mut fuel);
        if !result.as_ref().is_err_and(GrammarError::is_stopped) {
            self.insert(source.clone(), result.clone());
        }
        result
    }

    fn insert(&self, source: GrammarSource, result: Result<Arc<CompiledGrammar>, GrammarError>) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.clock += 1;
        let last_used = entries.clock;
        entries.by_source.insert(Arc::new(source), Entry { result, last_used });
        entries.keep_budget(self.bytes_max);
    }
}

impl Entries {
    /// Drops what was not used for longest until the rest fits. Grammars grow while they are used,
    /// so their size is asked anew.
    fn keep_budget(&mut self, bytes_max: usize) {
        let mut by_age: Vec<(u64, usize, Arc<GrammarSource>)> = self
            .by_source
            .iter()
            .map(|(source, entry)| (entry.last_used, entry.bytes(source), Arc::clone(source)))
            .collect();
        by_age.sort_unstable_by_key(|&(last_used, ..)| std::cmp::Reverse(last_used));
        let mut held = 0;
        for (index, (_, bytes, source)) in by_age.into_iter().enumerate() {
            held += bytes;
            // The newest stays even where it alone is over the budget.
            if index > 0 && (held > bytes_max || index >= ENTRIES_MAX) {
                self.by_source.remove(&source);
            }
        }
    }
}

impl Entry {
    fn bytes(&self, source: &GrammarSource) -> usize {
        let compiled = self.result.as_ref().map_or(0, |grammar| grammar.size().bytes);
        compiled + source.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::json_schema::SchemaOptions;
    use crate::vocab::byte_vocabulary;

    fn cache(bytes_max: usize) -> GrammarCache {
        let vocabulary = GrammarVocabulary::new(&byte_vocabulary());
        GrammarCache::new(vocabulary, Limits::default(), bytes_max)
    }

    fn regex(text: &str) -> GrammarSource {
        GrammarSource::Regex(text.to_owned())
    }

    #[test]
    fn a_source_is_compiled_once_good_or_bad() {
        let cache = cache(1 << 20);
        let good = cache.compile(&regex("a+"), &|| false).unwrap();
        assert!(Arc::ptr_eq(&good, &cache.get(&regex("a+")).unwrap().unwrap()));
        assert!(cache.get(&regex("b+")).is_none());
        assert!(cache.compile(&regex("("), &|| false).is_err());
        assert!(cache.get(&regex("(")).unwrap().is_err());
        assert!(cache.get(&GrammarSource::Gbnf("a+".to_owned())).is_none(), "another language");
    }

    #[test]
    fn what_the_caller_stopped_is_not_remembered() {
        let cache = cache(1 << 20);
        let choices = GrammarSource::Choice((0..20_000).map(|n| n.to_string()).collect());
        // Stopped while the schema is read, which is an error of schemas.
        let properties: Vec<_> =
            (0..20_000).map(|n| format!(r#""p{n}":{{"minimum":{n}}}"#)).collect();
        let schema = GrammarSource::JsonSchema {
            schema: format!(r#"{{"properties":{{{}}}}}"#, properties.join(",")),
            options: SchemaOptions::default(),
        };
        for source in [choices, schema] {
            let error = cache.compile(&source, &|| true).unwrap_err();
            assert!(error.is_stopped(), "{error:?}");
            assert!(error.clone().within("tools[0]").is_stopped());
            assert!(cache.get(&source).is_none());
        }
        assert!(!cache.compile(&regex("("), &|| true).unwrap_err().is_stopped());
    }

    #[test]
    fn the_least_recently_used_go_and_their_holders_keep_them() {
        let cache = cache(1);
        let first = cache.compile(&regex("a+"), &|| false).unwrap();
        cache.compile(&regex("b+"), &|| false).unwrap();
        assert!(cache.get(&regex("a+")).is_none());
        assert!(cache.get(&regex("b+")).is_some());
        assert!(first.matcher().mask().is_ok());
    }
}
