//! A compiled grammar: immutable rules, and the states and masks met so far.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use rustc_hash::FxHashMap;

use super::automaton::{Automaton, ConfigId, DEAD, START};
use super::error::{GrammarError, LimitError, MatchError};
use super::expr::{ExprPool, RuleId};
use super::json_schema::Relaxed;
use super::limits::{Fuel, Limits};
use super::lower::lower;
use super::mask_cache::{CachedMask, MaskCache};
use super::masks::{MaskMaker, is_in_set};
use super::matcher::Matcher;
use super::program::Program;
use super::source::{self, GrammarSource, Parsed};
use super::spelling::Spelling;
use super::vocabulary::GrammarVocabulary;
use crate::TokenId;

/// The states and masks of a grammar since they were last thrown away.
pub(crate) struct Generation {
    pub(crate) number: u64,
    pub(crate) automaton: Automaton,
    pub(crate) masks: MaskCache,
    /// Tokens that finish a state, for those that were asked about.
    pub(crate) ways: Mutex<FxHashMap<ConfigId, u32>>,
    /// Bytes from which on the states are thrown away.
    bytes_max: AtomicUsize,
}

impl Generation {
    fn new(number: u64, automaton: Automaton, limits: &Limits) -> Self {
        let bytes_max = AtomicUsize::new(limits.states_bytes_max);
        let ways = Mutex::default();
        Self { number, automaton, masks: MaskCache::default(), ways, bytes_max }
    }

    /// Whether the states take more memory than they may.
    pub(crate) fn is_full(&self) -> bool {
        self.automaton.bytes() > self.bytes_max.load(Ordering::Relaxed)
    }

    /// Makes room for as much again as there is now. What a matcher has brought along is needed
    /// however often it is thrown away; without room beside it that would be at every step.
    pub(crate) fn make_room(&self) {
        self.bytes_max.fetch_max(self.automaton.bytes() * 2, Ordering::Relaxed);
    }
}

/// A grammar, ready to be followed by any number of matchers at once.
///
/// States and masks are built as they are met and shared by all matchers. When they outgrow their
/// budget they are thrown away as a whole: matchers move over to a new generation at their next
/// mask, and the old one goes with the last matcher that holds it.
pub struct CompiledGrammar {
    program: Arc<Program>,
    vocabulary: Arc<GrammarVocabulary>,
    spelling: OnceLock<Spelling>,
    limits: Limits,
    end_tokens: Box<[TokenId]>,
    generation: RwLock<Arc<Generation>>,
    generation_number: AtomicU64,
    last_used: AtomicU64,
    /// What of a JSON Schema is not followed, because its options allow that.
    relaxed: OnceLock<Box<[Relaxed]>>,
}

/// Numbers that say how large a grammar is and has become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrammarSize {
    /// Nodes of the lowered grammar.
    pub nodes: usize,
    /// Classes of bytes that it tells apart.
    pub byte_classes: usize,
    /// States met so far.
    pub states: usize,
    /// Different masks met so far.
    pub masks: usize,
    /// Bytes of memory of the rules and the states; masks count for the vocabulary.
    pub bytes: usize,
}

impl CompiledGrammar {
    /// Compiles `source` for a vocabulary.
    ///
    /// # Errors
    /// What [`GrammarError`] lists: the source is wrong, matches nothing, or costs more than
    /// `limits` and `fuel` allow.
    pub fn compile(
        source: &GrammarSource,
        vocabulary: &Arc<GrammarVocabulary>,
        limits: &Limits,
        fuel: &mut Fuel<'_>,
    ) -> Result<Arc<Self>, GrammarError> {
        let (bytes, max) = (source.bytes(), limits.source_bytes_max);
        if bytes > max {
            return Err(LimitError::Source { bytes, max }.into());
        }
        let Parsed { pool, root, relaxed } = source::parse(source, vocabulary, fuel)?;
        let grammar = Self::from_rules(pool, root, vocabulary, limits, fuel)
            .map_err(|error| source.told_of_its_parts(error))?;
        let relaxed = grammar.relaxed.set(relaxed.into());
        debug_assert!(relaxed.is_ok(), "nobody else knows the grammar yet");
        Ok(grammar)
    }

    /// Compiles what `root` matches: for grammars that are made by code and not from text.
    ///
    /// # Errors
    /// As for [`compile`](Self::compile).
    pub fn from_rules(
        pool: ExprPool,
        root: RuleId,
        vocabulary: &Arc<GrammarVocabulary>,
        limits: &Limits,
        fuel: &mut Fuel<'_>,
    ) -> Result<Arc<Self>, GrammarError> {
        let program = Arc::new(lower(pool, root, limits, fuel)?);
        let end_tokens = vocabulary.end_tokens().iter().copied();
        let end_tokens = end_tokens
            .filter(|&token| {
                !program.token_sets.iter().any(|set| is_in_set(set, vocabulary, token))
            })
            .collect();
        let automaton = Automaton::new(Arc::clone(&program), limits, fuel)?;
        let generation = Generation::new(0, automaton, limits);
        let grammar = Arc::new(Self {
            spelling: OnceLock::new(),
            program,
            vocabulary: Arc::clone(vocabulary),
            limits: *limits,
            end_tokens,
            generation: RwLock::new(Arc::new(generation)),
            generation_number: AtomicU64::new(0),
            last_used: AtomicU64::new(vocabulary.tick()),
            relaxed: OnceLock::new(),
        });
        vocabulary.register(&grammar);
        let generation = grammar.generation();
        let first = grammar.mask(&generation, START, fuel)?;
        if first.mask.count() == 0 && !generation.automaton.config(START).accepting {
            return Err(GrammarError::Unspellable);
        }
        Ok(grammar)
    }

    /// A matcher at the start of an answer.
    pub fn matcher(self: &Arc<Self>) -> Matcher {
        self.last_used.store(self.vocabulary.tick(), Ordering::Relaxed);
        Matcher::new(Arc::clone(self), self.generation())
    }

    /// A matcher that goes on after the beginning of an answer.
    ///
    /// # Errors
    /// [`MatchError::NotBegun`] if no answer begins so.
    pub fn matcher_after(self: &Arc<Self>, begun: &[u8]) -> Result<Matcher, MatchError> {
        self.last_used.store(self.vocabulary.tick(), Ordering::Relaxed);
        Matcher::after_text(Arc::clone(self), self.generation(), begun)
    }

    /// What of a JSON Schema is not followed, because its options allow that.
    pub fn relaxed(&self) -> &[Relaxed] {
        self.relaxed.get().map_or(&[], |relaxed| relaxed)
    }

    /// The vocabulary it was compiled for.
    pub fn vocabulary(&self) -> &Arc<GrammarVocabulary> {
        &self.vocabulary
    }

    /// How large it is, and has become.
    pub fn size(&self) -> GrammarSize {
        let generation = self.generation();
        GrammarSize {
            nodes: self.program.nodes.len(),
            byte_classes: self.program.classes.len(),
            states: generation.automaton.len(),
            masks: generation.masks.len(),
            bytes: self.program.bytes() + generation.automaton.bytes(),
        }
    }

    /// Throws away the states and masks met so far; they are built anew when they are needed.
    pub fn forget(&self) {
        let number = self.generation_number.load(Ordering::Acquire);
        // The start state is the only one needed: what it took before it takes again.
        let mut fuel = Fuel::new(self.limits.compile_steps_max);
        let Ok(automaton) = Automaton::new(Arc::clone(&self.program), &self.limits, &mut fuel)
        else {
            return;
        };
        let fresh = Generation::new(number + 1, automaton, &self.limits);
        let mut current = self.generation.write().unwrap_or_else(PoisonError::into_inner);
        if current.number == number {
            *current = Arc::new(fresh);
            self.generation_number.store(number + 1, Ordering::Release);
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    /// How the vocabulary spells its texts byte by byte.
    pub(crate) fn spelling(&self) -> &Spelling {
        self.spelling.get_or_init(|| Spelling::new(&self.program, &self.vocabulary))
    }

    /// When it was last used, in ticks of the vocabulary.
    pub(crate) fn last_used(&self) -> u64 {
        self.last_used.load(Ordering::Relaxed)
    }

    /// The states and masks as they are now.
    pub(crate) fn generation(&self) -> Arc<Generation> {
        Arc::clone(&self.generation.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a generation is still the one that is shared.
    pub(crate) fn is_current(&self, generation: &Generation) -> bool {
        self.generation_number.load(Ordering::Acquire) == generation.number
    }

    /// End tokens that the grammar does not use itself.
    pub(crate) fn end_tokens(&self) -> &[TokenId] {
        &self.end_tokens
    }

    /// The mask of a state.
    pub(crate) fn mask(
        &self,
        generation: &Generation,
        config: ConfigId,
        fuel: &mut Fuel<'_>,
    ) -> Result<Arc<CachedMask>, LimitError> {
        let maker = MaskMaker {
            automaton: &generation.automaton,
            cache: &generation.masks,
            vocabulary: &self.vocabulary,
            end_tokens: &self.end_tokens,
        };
        maker.mask(config, fuel)
    }

    /// The state after a token, end tokens apart; the dead state if it is not allowed.
    pub(crate) fn follow(
        &self,
        generation: &Generation,
        from: ConfigId,
        token: TokenId,
        fuel: &mut Fuel<'_>,
    ) -> Result<ConfigId, LimitError> {
        let automaton = &generation.automaton;
        let bytes = self.vocabulary.token_bytes(token);
        let mut to = if bytes.is_empty() { DEAD } else { from };
        for &byte in bytes {
            to = automaton.edge(automaton.config(to), byte, fuel)?.to;
            if to == DEAD {
                break;
            }
        }
        if automaton.config(from).has_token_items {
            let sets = &self.program.token_sets;
            let is_in = |set: u32| is_in_set(&sets[set as usize], &self.vocabulary, token);
            to = automaton.follow_token(from, token, to, &is_in, fuel)?;
        }
        Ok(to)
    }
}

impl std::fmt::Debug for CompiledGrammar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompiledGrammar").field("size", &self.size()).finish_non_exhaustive()
    }
}
