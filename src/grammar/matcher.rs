//! Follows one answer through a grammar.

use std::sync::Arc;

use super::automaton::{ConfigId, DEAD, START};
use super::compiled::{CompiledGrammar, Generation};
use super::distinct::{DistinctKeys, Mark};
use super::error::{LimitError, MatchError};
use super::finish::Plan;
use super::limits::Fuel;
use super::mask::{Mask, clear_bit};
use super::mask_cache::CachedMask;
use crate::TokenId;

/// The place of one answer in a grammar.
///
/// Belongs to one session and dies with it; a clone is a fork that goes its own way. All it holds
/// is a number for each token, so rolling back and forking cost next to nothing.
///
/// Invariant: `history` holds the state that the answer starts in and then the state after each accepted token, end
/// token apart; none of them is dead.
#[derive(Clone)]
pub struct Matcher {
    grammar: Arc<CompiledGrammar>,
    generation: Arc<Generation>,
    history: Vec<ConfigId>,
    /// Whether an end token was accepted after the last state.
    has_ended: bool,
    /// A known way to finish from here, while the answer follows it.
    pub(super) plan: Option<Plan>,
    /// The keys of the objects that are open, where they must differ.
    pub(super) distinct: Option<Box<DistinctKeys>>,
}

impl Matcher {
    pub(super) fn new(grammar: Arc<CompiledGrammar>, generation: Arc<Generation>) -> Self {
        let distinct = grammar.distinct_keys();
        Self { grammar, generation, history: vec![START], has_ended: false, plan: None, distinct }
    }

    /// A matcher that goes on where `begun` ends, the beginning of an answer that was written by
    /// somebody else.
    pub(super) fn after_text(
        grammar: Arc<CompiledGrammar>,
        generation: Arc<Generation>,
        begun: &[u8],
    ) -> Result<Self, MatchError> {
        let mut matcher = Self::new(grammar, generation);
        let mut fuel = matcher.fuel();
        let (mut at, mut marks) = (START, Vec::with_capacity(begun.len()));
        for (index, &byte) in begun.iter().enumerate() {
            let automaton = &matcher.generation.automaton;
            let config = automaton.config(at);
            marks.push(Mark::of(automaton, config, byte));
            at = automaton.edge(config, byte, &mut fuel)?.to;
            if at == DEAD {
                return Err(MatchError::NotBegun { at_byte: index });
            }
        }
        matcher.history = vec![at];
        let vocabulary = matcher.grammar.vocabulary();
        let quotes = vocabulary.quoted.get(vocabulary);
        if let Some(keys) = &mut matcher.distinct
            && !keys.accept(begun, &marks, quotes)
        {
            return Err(MatchError::NotBegun { at_byte: begun.len() });
        }
        Ok(matcher)
    }

    /// The grammar it follows.
    pub fn grammar(&self) -> &Arc<CompiledGrammar> {
        &self.grammar
    }

    /// Tokens accepted, the end token included.
    pub fn len(&self) -> usize {
        self.history.len() - 1 + usize::from(self.has_ended)
    }

    /// Whether nothing was accepted yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the answer so far is a complete one.
    pub fn is_complete(&self) -> bool {
        self.has_ended || self.generation.automaton.config(self.state()).accepting
    }

    /// Whether the answer may go on with anything but an end token, where that can be told
    /// without a mask. `None`: look at the mask.
    pub fn goes_on(&self) -> Option<bool> {
        let config = self.generation.automaton.config(self.state());
        if self.has_ended || config.has_token_items {
            return None;
        }
        if config.alive == [0; 4] {
            return Some(false);
        }
        let singles = self.grammar.vocabulary().single_bytes();
        let goes_on = config.alive.iter().zip(singles).any(|(alive, single)| alive & single != 0);
        goes_on.then_some(true)
    }

    /// Whether an end token was accepted.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The state after the last token.
    pub(super) fn state(&self) -> ConfigId {
        self.history.last().copied().unwrap_or(START)
    }

    pub(super) fn generation(&self) -> &Generation {
        &self.generation
    }

    /// Fuel for one mask or one token.
    pub(super) fn fuel(&self) -> Fuel<'static> {
        Fuel::new(self.grammar.limits().walk_steps_max)
    }

    /// Which tokens may come next: a shared mask, nothing is copied. After the end it is empty.
    ///
    /// # Errors
    /// [`MatchError::DeadEnd`] if the answer is not complete and no token can continue it;
    /// [`MatchError::Limit`] if finding out costs more than the grammar's limits allow.
    pub fn mask(&mut self) -> Result<Arc<Mask>, MatchError> {
        let mut fuel = self.fuel();
        self.mask_with(&mut fuel)
    }

    /// As [`mask`](Self::mask), with the caller's fuel.
    ///
    /// # Errors
    /// As for [`mask`](Self::mask).
    pub fn mask_with(&mut self, fuel: &mut Fuel<'_>) -> Result<Arc<Mask>, MatchError> {
        if self.has_ended {
            return Err(MatchError::Ended);
        }
        let cached = self.cached_mask(fuel)?;
        if cached.mask.count() == 0 && !self.is_complete() {
            return Err(MatchError::DeadEnd);
        }
        let repeating = self.repeating_tokens(&cached.mask, fuel)?;
        if repeating.is_empty() {
            return Ok(Arc::clone(&cached.mask));
        }
        let vocabulary = self.grammar.vocabulary();
        let mut bits = vec![0; vocabulary.mask_words()];
        cached.mask.write(&mut bits);
        repeating.iter().for_each(|&token| clear_bit(&mut bits, token));
        let mask = vocabulary.mask(None, &bits);
        if mask.count() == 0 {
            return Err(MatchError::DeadEnd);
        }
        Ok(mask)
    }

    /// Writes which tokens may come next into `bits`: bit `t % 32` of word `t / 32` is token `t`.
    ///
    /// # Errors
    /// [`MatchError::MaskSize`] if `bits` has another length than the vocabulary's masks; else as
    /// for [`mask`](Self::mask). `bits` is then as it was.
    pub fn fill_mask(&mut self, bits: &mut [u32]) -> Result<(), MatchError> {
        self.check_size(bits)?;
        match self.known_mask() {
            Some(mask) => mask.write(bits),
            None => self.mask()?.write(bits),
        }
        Ok(())
    }

    /// The mask of this state, where it was found before and allows nothing that must be taken out.
    pub(super) fn known_mask(&self) -> Option<&Arc<Mask>> {
        let known = self.generation.automaton.config(self.state()).mask.get()?;
        let repeats = self.distinct.as_ref().is_some_and(|keys| !keys.has_nothing_to_repeat());
        (!self.has_ended && !repeats && known.mask.count() > 0).then_some(&known.mask)
    }

    pub(super) fn check_size(&self, bits: &[u32]) -> Result<(), MatchError> {
        let expected = self.grammar.vocabulary().mask_words();
        if bits.len() == expected {
            return Ok(());
        }
        Err(MatchError::MaskSize { expected, given: bits.len() })
    }

    pub(super) fn cached_mask(
        &mut self,
        fuel: &mut Fuel<'_>,
    ) -> Result<Arc<CachedMask>, LimitError> {
        if let Some(known) = self.generation.automaton.config(self.state()).mask.get() {
            return Ok(Arc::clone(known));
        }
        self.move_to_current_generation()?;
        let mask = self.grammar.mask(&self.generation, self.state(), fuel)?;
        self.grammar.vocabulary().keep_budget();
        Ok(mask)
    }

    /// Moves over to the states that are shared now, if the ones held were thrown away or should
    /// be. Only done when a mask must be found anyway.
    fn move_to_current_generation(&mut self) -> Result<(), LimitError> {
        if self.generation.is_full() && self.grammar.is_current(&self.generation) {
            self.grammar.forget();
        }
        if self.grammar.is_current(&self.generation) {
            return Ok(());
        }
        let current = self.grammar.generation();
        self.history = current.automaton.adopt(&self.generation.automaton, &self.history)?;
        current.make_room();
        self.generation = current;
        Ok(())
    }

    /// Takes the next token of the answer.
    ///
    /// # Errors
    /// [`MatchError::Rejected`] if the token is not allowed, [`MatchError::Ended`] after the end.
    /// The matcher is then as it was before.
    pub fn accept(&mut self, token: TokenId) -> Result<(), MatchError> {
        if self.has_ended {
            return Err(MatchError::Ended);
        }
        let is_end = self.grammar.end_tokens().binary_search(&token).is_ok();
        if is_end && self.is_complete() {
            self.has_ended = true;
            self.plan = None;
            return Ok(());
        }
        let mut fuel = self.fuel();
        let next = self.grammar.follow(&self.generation, self.state(), token, &mut fuel)?;
        if next == DEAD || !self.accept_keys(token)? {
            return Err(MatchError::Rejected { token });
        }
        if self.is_stuck(next) {
            self.distinct.iter_mut().for_each(|keys| keys.rollback(1));
            return Err(MatchError::Rejected { token });
        }
        self.plan = self.plan.take().and_then(|plan| plan.after(token));
        self.history.push(next);
        Ok(())
    }

    /// Takes a token that was not sampled: part of a forced run, or of a prefill. The same rules
    /// hold; what differs is whose mistake a rejection is.
    ///
    /// # Errors
    /// As for [`accept`](Self::accept).
    pub fn accept_forced(&mut self, token: TokenId) -> Result<(), MatchError> {
        self.accept(token)
    }

    /// Takes the last `count` tokens back, end token included.
    ///
    /// # Errors
    /// [`MatchError::RollbackTooFar`] if fewer were accepted; then none is taken back.
    pub fn rollback(&mut self, count: usize) -> Result<(), MatchError> {
        let accepted = self.len();
        if count > accepted {
            return Err(MatchError::RollbackTooFar { asked: count, accepted });
        }
        if count == 0 {
            return Ok(());
        }
        let states = count - usize::from(std::mem::take(&mut self.has_ended));
        self.history.truncate(self.history.len() - states);
        if let Some(keys) = &mut self.distinct {
            keys.rollback(states);
        }
        self.plan = None;
        Ok(())
    }

    /// A matcher at the same place that goes its own way.
    pub fn fork(&self) -> Self {
        self.clone()
    }
}

impl std::fmt::Debug for Matcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Matcher")
            .field("len", &self.len())
            .field("is_complete", &self.is_complete())
            .finish_non_exhaustive()
    }
}
