//! Masks in free text: all tokens of text, but for the few that a trigger makes doubtful.

use std::sync::{Arc, PoisonError};

use super::automaton::{Automaton, ConfigId, DEAD};
use super::compiled::{CompiledGrammar, Generation};
use super::error::LimitError;
use super::finish::way_of;
use super::free_places::FreePlace;
use super::limits::Fuel;
use super::mask::{Mask, clear_bit, set_bit};
use super::mask_cache::{CachedMask, finish_below};
use super::masks::MaskMaker;
use super::matcher::Matcher;
use super::program::NO_WAY;
use crate::TokenId;

/// Where a state is in free text, and the most bytes that it takes to finish after a token that is
/// not doubtful there. Of several places the one that is nearest to the end.
fn free_place(automaton: &Automaton, id: ConfigId) -> Option<(FreePlace, u32)> {
    let free = &automaton.program().free;
    if free.is_empty() {
        return None;
    }
    let builder = automaton.lock();
    let place = |item| {
        let frame = builder.frame(item);
        let place = free.get(frame.node)?;
        let below = builder.frame(frame.parent).finish_bytes;
        Some((place, below.saturating_add(free.cost_max(place))))
    };
    let items = automaton.config(id).items.iter().copied();
    items.filter_map(place).min_by_key(|(_, finish_bytes)| *finish_bytes)
}

impl MaskMaker<'_> {
    /// The mask of a state in free text and the height of the lowest frame it depends on.
    pub(super) fn by_free_text(
        &self,
        id: ConfigId,
        fuel: &mut Fuel<'_>,
    ) -> Result<Option<(u32, CachedMask)>, LimitError> {
        let Some((place, mut finish_bytes)) = free_place(self.automaton, id) else {
            return Ok(None);
        };
        let (automaton, vocabulary) = (self.automaton, self.vocabulary);
        let config = automaton.config(id);
        let doubtful = automaton.program().free.doubtful(place, vocabulary);
        let mut bits = vocabulary.text_tokens().to_vec();
        let lowest = {
            let builder = automaton.lock();
            config.items.iter().map(|&item| builder.frame(item).height).min().unwrap_or(0)
        };
        let mut floor = lowest;
        'tokens: for &token in &*doubtful {
            clear_bit(&mut bits, token);
            let mut at = id;
            for &byte in vocabulary.token_bytes(token) {
                fuel.spend(1)?;
                let edge = automaton.edge(automaton.config(at), byte, fuel)?;
                if edge.to == DEAD {
                    continue 'tokens;
                }
                floor = floor.min(edge.floor);
                at = edge.to;
            }
            set_bit(&mut bits, token);
            finish_bytes = finish_bytes.max(automaton.config(at).finish_bytes);
        }
        if config.has_token_items {
            finish_bytes = finish_bytes.max(self.add_token_items(id, &mut bits));
        }
        if config.accepting {
            self.end_tokens.iter().for_each(|&token| set_bit(&mut bits, token));
        }
        let below = finish_below(automaton, id, floor);
        let mask = CachedMask {
            mask: vocabulary.mask(None, &bits),
            finish_bytes_over_cut: below
                .filter(|_| finish_bytes < NO_WAY)
                .map(|(least, _)| finish_bytes.saturating_sub(least)),
            floor_below_items: lowest - floor,
        };
        Ok(Some((floor, mask)))
    }
}

impl Matcher {
    /// The tokens of the plain mask after which `tokens_left`, with themselves, are not enough,
    /// where free text leaves nearly every token enough. `None`: it is no such place.
    pub(super) fn too_long_in_free_text(
        &self,
        plain: &Mask,
        tokens_left: u32,
        fuel: &mut Fuel<'_>,
    ) -> Result<Option<Vec<TokenId>>, LimitError> {
        let (grammar, generation) = (self.grammar(), self.generation());
        let automaton = &generation.automaton;
        let Some((place, finish_bytes)) = free_place(automaton, self.state()) else {
            return Ok(None);
        };
        let vocabulary = grammar.vocabulary();
        let fits = grammar.spelling().is_enough() && finish_bytes < tokens_left;
        let Some(after) = tokens_left.checked_sub(1).filter(|_| fits) else { return Ok(None) };
        let (mut too_long, mut finish_tokens) = (Vec::new(), finish_bytes.saturating_add(1));
        let ids = grammar.program().free.tokens(place);
        let doubtful = grammar.program().free.doubtful(place, vocabulary);
        for &token in doubtful.iter().chain(ids) {
            let to = grammar.follow(generation, self.state(), token, fuel)?;
            if to == DEAD {
                continue;
            }
            let way = tokens_to_finish(grammar, generation, to, fuel)?;
            finish_tokens = finish_tokens.max(way.saturating_add(1));
            if way > after && plain.contains(token) {
                too_long.push(token);
            }
        }
        automaton.config(self.state()).finish_tokens.get_or_init(|| finish_tokens);
        Ok(Some(too_long))
    }
}

/// Tokens that finish a state, as far as is known; remembered, since they are asked for at every
/// token of the text.
fn tokens_to_finish(
    grammar: &Arc<CompiledGrammar>,
    generation: &Generation,
    state: ConfigId,
    fuel: &mut Fuel<'_>,
) -> Result<u32, LimitError> {
    let lock = || generation.ways.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&known) = lock().get(&state) {
        return Ok(known);
    }
    let way = way_of(grammar, generation, state, None, fuel)?;
    let way = way.map_or(NO_WAY, |way| way.len());
    lock().insert(state, way);
    Ok(way)
}
