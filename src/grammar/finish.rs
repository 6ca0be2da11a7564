//! Whole answers: how many tokens it takes to finish, and masks that leave a way to.
//!
//! The least number of *bytes* that finish is known of every state. The bound in tokens is the
//! fewest tokens that spell one shortest text; where the vocabulary cannot spell that one, a
//! search over tokens decides. So a bound is always a way that exists, never a guess.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::automaton::{Automaton, Config, ConfigId, DEAD};
use super::compiled::{CompiledGrammar, Generation};
use super::distinct::{DistinctKeys, Mark};
use super::error::{LimitError, MatchError};
use super::limits::Fuel;
use super::mask::{Mask, clear_bit, set_bit, tokens_of};
use super::mask_cache::{finish_below, floor_of};
use super::masks::add_token_set;
use super::matcher::Matcher;
use super::program::{NO_WAY, Node};
use super::walk::walk;
use crate::TokenId;

/// Texts longer than this are not spelled out to count tokens: a byte is taken for a token.
const SPELLED_BYTES_MAX: u32 = 4_096;
/// States that a search for a way to finish may visit.
const SEARCHED_STATES_MAX: usize = 512;

/// Tokens that finish an answer, to be taken one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The tokens, last first.
    reversed: Arc<[TokenId]>,
    /// How many are still to come.
    left: usize,
}

impl Plan {
    fn new(tokens: Vec<TokenId>) -> Self {
        let reversed: Arc<[TokenId]> = tokens.into_iter().rev().collect();
        Self { left: reversed.len(), reversed }
    }

    fn next(&self) -> Option<TokenId> {
        self.left.checked_sub(1).and_then(|index| self.reversed.get(index).copied())
    }

    /// What is left of the plan after a token, if the token is the next of it.
    pub(super) fn after(self, token: TokenId) -> Option<Self> {
        (self.next() == Some(token)).then(|| Self { left: self.left - 1, ..self })
    }
}

/// How a state can be finished.
pub(super) enum Way {
    /// With these tokens.
    Tokens(Vec<TokenId>),
    /// With a token for each byte; there are too many to spell them out.
    Bytes(u32),
}

impl Way {
    pub(super) fn len(&self) -> u32 {
        match self {
            Self::Tokens(tokens) => u32::try_from(tokens.len()).unwrap_or(u32::MAX),
            Self::Bytes(bytes) => *bytes,
        }
    }
}

impl Matcher {
    /// Tokens in which the answer can certainly be finished, the end token not counted: an upper
    /// bound, tight for most grammars. `None`: no way is known.
    ///
    /// # Errors
    /// [`MatchError::Limit`] if finding out costs more than the grammar's limits allow.
    pub fn min_tokens_to_finish(&mut self) -> Result<Option<u32>, MatchError> {
        if self.has_ended() {
            return Ok(Some(0));
        }
        let mut fuel = self.fuel();
        let found = self.way(&mut fuel)?;
        let planned = self.plan.as_ref().map(|plan| plan.left as u32);
        Ok(match (found.map(|way| way.len()), planned) {
            (Some(found), Some(planned)) => Some(found.min(planned)),
            (found, planned) => found.or(planned),
        })
    }

    /// Writes into `bits` the tokens after which the answer can still be finished, if `tokens_left`
    /// more tokens may be taken, the next one included and the end token not counted.
    ///
    /// A mask from here is never empty as long as the answer follows such masks with a count that
    /// goes down by one each time: when nothing else fits, the shortest known way does.
    ///
    /// # Errors
    /// [`MatchError::BudgetTooSmall`] if no way to finish in `tokens_left` is known; else as for
    /// [`fill_mask`](Matcher::fill_mask).
    pub fn fill_mask_within(
        &mut self,
        tokens_left: u32,
        bits: &mut [u32],
    ) -> Result<(), MatchError> {
        let mut fuel = self.fuel();
        self.fill_mask_within_with(tokens_left, bits, &mut fuel)
    }

    /// As [`fill_mask_within`](Self::fill_mask_within), with the caller's fuel.
    ///
    /// # Errors
    /// As for [`fill_mask_within`](Self::fill_mask_within).
    pub fn fill_mask_within_with(
        &mut self,
        tokens_left: u32,
        bits: &mut [u32],
        fuel: &mut Fuel<'_>,
    ) -> Result<(), MatchError> {
        self.check_size(bits)?;
        if let Some(mask) = self.mask_within_with(tokens_left, bits, fuel)? {
            mask.write(bits);
        }
        Ok(())
    }

    /// As [`fill_mask_within`](Self::fill_mask_within), but where every token of the plain mask
    /// leaves enough this mask is returned, and `bits` are as they were: nothing is copied.
    ///
    /// # Errors
    /// As for [`fill_mask_within`](Self::fill_mask_within); the size of `bits` may go unnoticed where
    /// they are not written.
    pub fn mask_within(
        &mut self,
        tokens_left: u32,
        bits: &mut [u32],
    ) -> Result<Option<Arc<Mask>>, MatchError> {
        let mut fuel = self.fuel();
        self.mask_within_with(tokens_left, bits, &mut fuel)
    }

    fn mask_within_with(
        &mut self,
        tokens_left: u32,
        bits: &mut [u32],
        fuel: &mut Fuel<'_>,
    ) -> Result<Option<Arc<Mask>>, MatchError> {
        if let Some(mask) = self.roomy_mask(tokens_left) {
            return Ok(Some(mask));
        }
        self.check_size(bits)?;
        let plain = self.mask_with(fuel)?;
        if self.is_ample(tokens_left, fuel)? {
            return Ok(Some(plain));
        }
        if let Some(too_long) = self.too_long_in_free_text(&plain, tokens_left, fuel)? {
            if too_long.is_empty() {
                return Ok(Some(plain));
            }
            plain.write(bits);
            too_long.iter().for_each(|&token| clear_bit(bits, token));
            return Ok(None);
        }
        self.plan_to_finish(tokens_left, fuel)?;
        let mut within = vec![0u32; bits.len()];
        if let Some(after) = tokens_left.checked_sub(1) {
            self.add_tokens_within(after, &mut within, fuel)?;
        }
        if let Some(next) = self.plan.as_ref().and_then(Plan::next) {
            set_bit(&mut within, next);
        }
        if self.is_complete() {
            self.grammar().end_tokens().iter().for_each(|&token| set_bit(&mut within, token));
        }
        if self.distinct.is_some() {
            // The plain mask knows which keys were written; the walk does not.
            plain.write(bits);
            within.iter_mut().zip(&*bits).for_each(|(word, plain)| *word &= plain);
        }
        bits.copy_from_slice(&within);
        Ok(None)
    }

    /// The plain mask, where all is known of this place already. While the device runs, all memory
    /// is far away: this looks at little of it.
    fn roomy_mask(&self, tokens_left: u32) -> Option<Arc<Mask>> {
        let mask = self.known_mask()?;
        let config = self.generation().automaton.config(self.state());
        self.has_room(config, tokens_left)?.then(|| Arc::clone(mask))
    }

    /// Whether every allowed token leaves enough, as far as that was found out.
    fn has_room(&self, config: &Config, tokens_left: u32) -> Option<bool> {
        if config.finish_tokens.get().is_some_and(|&tokens| tokens <= tokens_left) {
            return Some(true);
        }
        let most = config.finish_bytes_after.get()?;
        Some(most.saturating_add(self.spare()) < tokens_left)
    }

    /// Whether every allowed token leaves enough, as far as can be told without looking at each.
    fn is_ample(&mut self, tokens_left: u32, fuel: &mut Fuel<'_>) -> Result<bool, LimitError> {
        let config = self.generation().automaton.config(self.state());
        if let Some(known) = self.has_room(config, tokens_left) {
            return Ok(known);
        }
        let most = self.find_finish_bytes_after(fuel)?;
        Ok(most.saturating_add(self.spare()) < tokens_left)
    }

    fn find_finish_bytes_after(&mut self, fuel: &mut Fuel<'_>) -> Result<u32, LimitError> {
        if !self.grammar().spelling().is_enough() {
            let config = self.generation().automaton.config(self.state());
            return Ok(*config.finish_bytes_after.get_or_init(|| NO_WAY));
        }
        let cached = self.cached_mask(fuel)?;
        let automaton = &self.generation().automaton;
        let most = cached.finish_bytes_over_cut.map_or(NO_WAY, |over_cut| {
            let floor = floor_of(automaton, self.state(), &cached);
            let below = finish_below(automaton, self.state(), floor);
            below.map_or(0, |(_, most)| most).saturating_add(over_cut)
        });
        Ok(*automaton.config(self.state()).finish_bytes_after.get_or_init(|| most))
    }

    /// A way to finish from here, in which no key comes twice.
    fn way(&self, fuel: &mut Fuel<'_>) -> Result<Option<Way>, LimitError> {
        let keys = self.distinct.as_deref();
        way_of(self.grammar(), self.generation(), self.state(), keys, fuel)
    }

    /// Tokens that a way may need beyond what its bytes say, so that no key comes twice.
    fn spare(&self) -> u32 {
        self.distinct.as_ref().map_or(0, |keys| keys.spare_bytes())
    }

    /// Makes sure that the plan, or a way from here, fits into `tokens_left`.
    fn plan_to_finish(&mut self, tokens_left: u32, fuel: &mut Fuel<'_>) -> Result<(), MatchError> {
        let found = self.way(fuel)?;
        let planned = self.plan.as_ref().map_or(u32::MAX, |plan| plan.left as u32);
        let needed = found.as_ref().map_or(u32::MAX, Way::len).min(planned);
        if needed == u32::MAX {
            return Err(MatchError::DeadEnd);
        }
        if needed > tokens_left {
            return Err(MatchError::BudgetTooSmall { needed, left: tokens_left });
        }
        if let Some(Way::Tokens(tokens)) = found
            && (tokens.len() as u32) < planned
        {
            self.plan = Some(Plan::new(tokens));
        }
        Ok(())
    }

    /// Sets the tokens after which `after` more tokens are enough.
    fn add_tokens_within(
        &self,
        after: u32,
        bits: &mut [u32],
        fuel: &mut Fuel<'_>,
    ) -> Result<(), LimitError> {
        let (grammar, generation) = (self.grammar(), self.generation());
        let vocabulary = grammar.vocabulary();
        let mut fits = FxHashSet::default();
        let mut fits_not = FxHashSet::default();
        let mut landings: Vec<(TokenId, ConfigId)> = Vec::new();
        let start = generation.automaton.config(self.state());
        // Which keys were written by then differs from token to token, so a few bytes are kept for
        // one that must be longer.
        let after = after.saturating_sub(self.spare());
        walk(&generation.automaton, vocabulary.trie(), start, fuel, |token, to, config| {
            match quick_fit(grammar, config, after) {
                Some(true) => set_bit(bits, token),
                Some(false) => {}
                None => landings.push((token, to)),
            }
            Ok(())
        })?;
        let mut check = |to: ConfigId, fuel: &mut Fuel<'_>| -> Result<bool, LimitError> {
            if fits.contains(&to) || fits_not.contains(&to) {
                return Ok(fits.contains(&to));
            }
            let way = way_of(grammar, generation, to, None, fuel)?;
            let fit = way.is_some_and(|way| way.len() <= after);
            if fit {
                fits.insert(to)
            } else {
                fits_not.insert(to)
            };
            Ok(fit)
        };
        for (token, to) in landings {
            if check(to, fuel)? {
                set_bit(bits, token);
            }
        }
        for &(token, twin) in vocabulary.twins() {
            if super::mask::has_bit(bits, token) {
                set_bit(bits, twin);
            }
        }
        for (token, to) in token_item_landings(grammar, generation, self.state(), fuel)? {
            if check(to, fuel)? {
                set_bit(bits, token);
            }
        }
        Ok(())
    }
}

/// Whether a state can be finished in `after` tokens, where the bytes alone say so.
fn quick_fit(grammar: &CompiledGrammar, config: &Config, after: u32) -> Option<bool> {
    let vocabulary = grammar.vocabulary();
    if grammar.spelling().is_enough() && config.finish_bytes <= after {
        return Some(true);
    }
    let tokens_min = config.finish_bytes.div_ceil(vocabulary.token_bytes_max().max(1));
    (tokens_min > after).then_some(false)
}

/// The tokens that a state consumes by id, and where they lead.
fn token_item_landings(
    grammar: &CompiledGrammar,
    generation: &Generation,
    from: ConfigId,
    fuel: &mut Fuel<'_>,
) -> Result<Vec<(TokenId, ConfigId)>, LimitError> {
    let automaton = &generation.automaton;
    let config = automaton.config(from);
    if !config.has_token_items {
        return Ok(Vec::new());
    }
    let program = grammar.program();
    let mut bits = vec![0u32; grammar.vocabulary().mask_words()];
    {
        let builder = automaton.lock();
        for &item in &config.items {
            if let Node::Token { set, .. } = program.nodes[builder.frame(item).node as usize] {
                add_token_set(&program.token_sets[set as usize], grammar.vocabulary(), &mut bits);
            }
        }
    }
    let mut landings = Vec::new();
    for token in tokens_of(&bits) {
        fuel.spend(1)?;
        landings.push((token, grammar.follow(generation, from, token, fuel)?));
    }
    Ok(landings)
}

/// A way to finish a state, if one is known.
pub(super) fn way_of(
    grammar: &CompiledGrammar,
    generation: &Generation,
    from: ConfigId,
    keys: Option<&DistinctKeys>,
    fuel: &mut Fuel<'_>,
) -> Result<Option<Way>, LimitError> {
    let finish_bytes = generation.automaton.config(from).finish_bytes;
    if finish_bytes > SPELLED_BYTES_MAX {
        let spells = grammar.spelling().is_enough() && finish_bytes != u32::MAX;
        return Ok(spells.then_some(Way::Bytes(finish_bytes)));
    }
    let text = shortest_text(grammar, &generation.automaton, from, keys, fuel)?;
    if let Some(tokens) = text.and_then(|text| fewest_tokens(grammar, &text)) {
        return Ok(Some(Way::Tokens(tokens)));
    }
    Ok(search(grammar, generation, from, fuel)?.map(Way::Tokens))
}

/// A byte, or a token taken by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Symbol {
    Byte(u8),
    Token(TokenId),
}

/// Bytes by which keys are made longer in one text, so that they differ.
const DETOURS_MAX: u32 = 1_024;

/// A shortest text that finishes a state, or nearly: where the keys that were written are given, a
/// key that would come twice is made longer. `None` if a step of it is a token set without tokens,
/// or no such keys are found.
fn shortest_text(
    grammar: &CompiledGrammar,
    automaton: &Automaton,
    from: ConfigId,
    keys: Option<&DistinctKeys>,
    fuel: &mut Fuel<'_>,
) -> Result<Option<Vec<Symbol>>, LimitError> {
    let mut keys = keys.cloned();
    let quotes = grammar.vocabulary().quoted.get(grammar.vocabulary());
    let mut takes = |at: &Config, byte: u8| {
        keys.as_mut()
            .is_none_or(|keys| keys.accept(&[byte], &[Mark::of(automaton, at, byte)], quotes))
    };
    let mut text = Vec::new();
    let mut detours = 0;
    let mut at = from;
    while automaton.config(at).finish_bytes > 0 {
        let step = match shorter_step(grammar, automaton, at, &mut takes, fuel)? {
            Some(step) => Some(step),
            None if detours < DETOURS_MAX => {
                detours += 1;
                level_step(grammar, automaton, at, &mut takes, fuel)?
            }
            None => None,
        };
        let Some((symbol, to)) = step else { return Ok(None) };
        text.push(symbol);
        at = to;
    }
    Ok(Some(text))
}

/// A byte that makes a key longer and brings its state no further from its end.
fn level_step(
    grammar: &CompiledGrammar,
    automaton: &Automaton,
    at: ConfigId,
    takes: &mut dyn FnMut(&Config, u8) -> bool,
    fuel: &mut Fuel<'_>,
) -> Result<Option<(Symbol, ConfigId)>, LimitError> {
    let config = automaton.config(at);
    // Another class each time: keys that were made longer before are not met again.
    let first = config.items.first().map_or(0, |item| *item as usize);
    let mut is_level = |byte: u8, bytes: u32| bytes <= config.finish_bytes && takes(config, byte);
    byte_step(grammar, automaton, (at, first), &mut is_level, fuel)
}

/// A byte, one of each class from some class on, that leads to where a test holds: of the byte, and
/// of the bytes that it then takes to finish. Rather one that is a token by itself.
fn byte_step(
    grammar: &CompiledGrammar,
    automaton: &Automaton,
    (at, first_class): (ConfigId, usize),
    is_it: &mut dyn FnMut(u8, u32) -> bool,
    fuel: &mut Fuel<'_>,
) -> Result<Option<(Symbol, ConfigId)>, LimitError> {
    let config = automaton.config(at);
    let (classes, spelling) = (&grammar.program().classes, grammar.spelling());
    let in_turn = || (0..classes.len()).map(|offset| (first_class + offset) % classes.len());
    let spelled = in_turn().filter_map(|class| spelling.byte_of(class));
    let others = in_turn().filter(|&class| spelling.byte_of(class).is_none());
    for byte in spelled.chain(others.map(|class| classes.representative(class))) {
        let to = automaton.edge(config, byte, fuel)?.to;
        if to != DEAD && is_it(byte, automaton.config(to).finish_bytes) {
            return Ok(Some((Symbol::Byte(byte), to)));
        }
    }
    Ok(None)
}

/// A step that brings a state nearer to its end.
fn shorter_step(
    grammar: &CompiledGrammar,
    automaton: &Automaton,
    at: ConfigId,
    takes: &mut dyn FnMut(&Config, u8) -> bool,
    fuel: &mut Fuel<'_>,
) -> Result<Option<(Symbol, ConfigId)>, LimitError> {
    let config = automaton.config(at);
    let mut is_shorter = |byte: u8, bytes: u32| bytes < config.finish_bytes && takes(config, byte);
    if let Some(step) = byte_step(grammar, automaton, (at, 0), &mut is_shorter, fuel)? {
        return Ok(Some(step));
    }
    if !config.has_token_items {
        return Ok(None);
    }
    let Some(nearest) = automaton.nearest_token_item(at) else { return Ok(None) };
    let Some((set, to)) = automaton.follow_item(nearest, fuel)? else { return Ok(None) };
    let mut bits = vec![0u32; grammar.vocabulary().mask_words()];
    add_token_set(&grammar.program().token_sets[set as usize], grammar.vocabulary(), &mut bits);
    Ok(tokens_of(&bits).next().map(|token| (Symbol::Token(token), to)))
}

/// The fewest tokens that spell a text.
fn fewest_tokens(grammar: &CompiledGrammar, text: &[Symbol]) -> Option<Vec<TokenId>> {
    let trie = grammar.vocabulary().trie();
    // For each place: the fewest tokens from there to the end, the first of them, where it ends.
    let mut best: Vec<Option<(u32, TokenId, usize)>> = vec![None; text.len() + 1];
    best[text.len()] = Some((0, TokenId::MAX, text.len()));
    for start in (0..text.len()).rev() {
        let mut at = None;
        for (end, symbol) in text.iter().enumerate().skip(start) {
            let token = match *symbol {
                Symbol::Token(token) if end == start => Some(token),
                Symbol::Token(_) => break,
                Symbol::Byte(byte) => {
                    at = trie.children(at).find(|(_, node)| node.byte == byte).map(|(i, _)| i);
                    let Some(node) = at else { break };
                    trie.token_at(node)
                }
            };
            let (Some(token), Some((count, _, _))) = (token, best[end + 1]) else { continue };
            if best[start].is_none_or(|(known, _, _)| count + 1 < known) {
                best[start] = Some((count + 1, token, end + 1));
            }
            if matches!(symbol, Symbol::Token(_)) {
                break;
            }
        }
    }
    let mut tokens = Vec::new();
    let mut place = 0;
    while place < text.len() {
        let (_, token, end) = best[place]?;
        tokens.push(token);
        place = end;
    }
    Some(tokens)
}

/// Looks for any way to finish, fewest tokens first: for vocabularies that cannot spell the
/// shortest text.
fn search(
    grammar: &CompiledGrammar,
    generation: &Generation,
    from: ConfigId,
    fuel: &mut Fuel<'_>,
) -> Result<Option<Vec<TokenId>>, LimitError> {
    let automaton = &generation.automaton;
    // States in the order they were found, each with the entry and the token it was found by.
    let mut found: Vec<(ConfigId, usize, TokenId)> = vec![(from, 0, TokenId::MAX)];
    let mut seen = FxHashSet::from_iter([from]);
    let mut next = 0;
    while let Some(&(state, _, _)) = found.get(next) {
        if automaton.config(state).accepting {
            let mut tokens = Vec::new();
            let mut entry = next;
            while entry != 0 {
                tokens.push(found[entry].2);
                entry = found[entry].1;
            }
            tokens.reverse();
            return Ok(Some(tokens));
        }
        let mut landings = token_item_landings(grammar, generation, state, fuel)?;
        walk(
            automaton,
            grammar.vocabulary().trie(),
            automaton.config(state),
            fuel,
            |token, to, _| {
                if landings.last().is_none_or(|(_, last)| *last != to) {
                    landings.push((token, to));
                }
                Ok(())
            },
        )?;
        for (token, to) in landings {
            if to != DEAD && seen.len() < SEARCHED_STATES_MAX && seen.insert(to) {
                found.push((to, next, token));
            }
        }
        next += 1;
    }
    Ok(None)
}
