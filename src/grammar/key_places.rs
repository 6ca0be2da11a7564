//! Masks of the places in a key.
//!
//! Which keys may come differs at nearly every place of an answer, since none comes twice. So a
//! place in a key is looked at once for all answers: each token that may ever come there is noted
//! with the keys of which it needs one. A mask is then put together from the tokens whose needs are
//! met, and there is one for each set of needs, not for each way to get there.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::automaton::{ConfigId, DEAD};
use super::builder::Frame;
use super::error::LimitError;
use super::expr::ExprId;
use super::limits::Fuel;
use super::mask::{Mask, has_bit, set_bit};
use super::mask_cache::{CachedMask, finish_below};
use super::masks::MaskMaker;
use super::members::KeyId;
use super::program::{NO_WAY, NodeId, Role};
use crate::TokenId;

mod ends;
mod survey;

use ends::Ends;

/// What a token needs at a place in a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Need {
    /// One of a set of keys may come.
    OneOf(u32),
    /// This key may come.
    Key(KeyId),
    /// This key may come, and another one after it.
    KeyAndMore(KeyId),
    /// This key may come, and the object may end after it.
    KeyAndEnd(KeyId),
}

/// Tokens that many places share, and what they need.
type Base = (Arc<[u32]>, Need);

/// A place, if only walks can tell: none.
type FoundPlace = Option<Arc<KeyPlace>>;

/// What the tokens need that may come at one place in a key.
#[derive(Debug)]
struct KeyPlace {
    machine: u32,
    /// Tokens that many places share, and what they need here.
    base: Option<Base>,
    /// Those of them that do not count, ascending: they need something else, or are not allowed.
    except: Box<[TokenId]>,
    groups: Box<[(Need, Box<[TokenId]>)]>,
    /// Tokens that see so much of the object that they must be followed.
    followed: Box<[TokenId]>,
    /// Most bytes that finish the value within which a token ends.
    value_bytes: u32,
    /// The masks by the needs that are met, those of the followed tokens last.
    masks: Mutex<FxHashMap<SmallVec<[u64; 2]>, Arc<Mask>>>,
}

/// What is known of places in keys, and of what follows keys.
#[derive(Default)]
pub(crate) struct KeyPlaces {
    /// By node, and by whether a free key may come.
    places: Mutex<FxHashMap<(NodeId, bool), FoundPlace>>,
    /// By the start of the value, the whitespace in gaps, and the bytes of a comma.
    ends: Mutex<FxHashMap<(NodeId, ExprId, u32), Arc<Ends>>>,
}

impl KeyPlace {
    /// Bytes of memory it takes, about; masks count for the vocabulary.
    fn bytes(&self) -> usize {
        let groups = self.groups.iter().map(|(_, tokens)| size_of_val(&**tokens));
        size_of::<Self>() + size_of_val(&*self.except) + groups.sum::<usize>()
    }
}

impl MaskMaker<'_> {
    /// The mask of a state in which nothing but a key is open, if it is one of which the needs can
    /// be told.
    pub(super) fn key_mask(
        &self,
        id: ConfigId,
        fuel: &mut Fuel<'_>,
    ) -> Result<Option<CachedMask>, LimitError> {
        let Some(keys) = self.open_keys(id) else { return Ok(None) };
        let mut masks: SmallVec<[Arc<Mask>; 1]> = SmallVec::new();
        let mut finish_bytes = 0u32;
        let mut floor = u32::MAX;
        for &Frame { node, count: register, parent, height, .. } in &keys {
            let is_free = self.may_be_free(node, register);
            let Some(place) = self.key_place(node, is_free, fuel)? else { return Ok(None) };
            masks.push(self.mask_of_place(&place, id, register, fuel)?);
            let machine = &self.automaton.program().machines[place.machine as usize];
            let progress = self.automaton.program().progresses.get(register);
            let rest = machine.finish_bytes(&progress, false);
            let own = machine.member_bytes_max().max(place.value_bytes);
            let below = self.automaton.lock().frame(parent).finish_bytes;
            finish_bytes = finish_bytes.max(below.saturating_add(rest).saturating_add(own));
            floor = floor.min(height);
        }
        let mask = match &*masks {
            [only] => Arc::clone(only),
            _ => self.union(&masks),
        };
        let below = finish_below(self.automaton, id, floor);
        let finish_bytes_over_cut = below
            .filter(|_| finish_bytes < NO_WAY)
            .map(|(least, _)| finish_bytes.saturating_sub(least));
        Ok(Some(CachedMask { mask, finish_bytes_over_cut, floor_below_items: 0 }))
    }

    /// The tops of a state's stacks, if all are in a key.
    fn open_keys(&self, id: ConfigId) -> Option<SmallVec<[Frame; 2]>> {
        let config = self.automaton.config(id);
        if config.accepting || config.has_token_items || !config.has_progress {
            return None;
        }
        let program = self.automaton.program();
        let builder = self.automaton.lock();
        let keys: SmallVec<[Frame; 2]> =
            config.items.iter().map(|&item| *builder.frame(item)).collect();
        let are_keys = keys.iter().all(|key| matches!(program.role(key.node), Role::Key { .. }));
        (are_keys && !keys.is_empty()).then_some(keys)
    }

    /// Whether a free key may come, in an object in which any text may be one.
    fn may_be_free(&self, node: NodeId, register: u32) -> bool {
        let program = self.automaton.program();
        let Role::Key { machine, .. } = program.role(node) else { return false };
        let free = program.machines[machine as usize].outside().free_key;
        free.is_some_and(|free| program.has_room(free, register))
    }

    fn key_place(
        &self,
        node: NodeId,
        is_free: bool,
        fuel: &mut Fuel<'_>,
    ) -> Result<Option<Arc<KeyPlace>>, LimitError> {
        let places = &self.cache.keys.places;
        {
            let known = places.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = known.get(&(node, is_free)) {
                return Ok(known.clone());
            }
        }
        let place = self.survey(node, is_free, fuel)?.map(Arc::new);
        self.automaton.add_bytes(place.as_ref().map_or(0, |place| place.bytes()));
        let mut known = places.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(known.entry((node, is_free)).or_insert(place).clone())
    }

    /// The mask of a place for an object that has come so far.
    fn mask_of_place(
        &self,
        place: &KeyPlace,
        id: ConfigId,
        register: u32,
        fuel: &mut Fuel<'_>,
    ) -> Result<Arc<Mask>, LimitError> {
        let met = self.needs_met(place, id, register, fuel)?;
        let known = {
            let masks = place.masks.lock().unwrap_or_else(PoisonError::into_inner);
            masks.get(&met).cloned()
        };
        if let Some(known) = known {
            return Ok(known);
        }
        let mask = self.put_together(place, &met);
        let mut masks = place.masks.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Arc::clone(masks.entry(met).or_insert(mask)))
    }

    /// A bit for each need of a place, in the order of its groups; the base's comes first.
    fn needs_met(
        &self,
        place: &KeyPlace,
        id: ConfigId,
        register: u32,
        fuel: &mut Fuel<'_>,
    ) -> Result<SmallVec<[u64; 2]>, LimitError> {
        let mut met = Met::default();
        let program = self.automaton.program();
        let machine = &program.machines[place.machine as usize];
        let facts = program.facts(place.machine, register);
        let after = |key| program.after_key(place.machine, register, key);
        let is_met = |need: &Need| match *need {
            Need::OneOf(set) => facts.may_add(machine.key_set(set)),
            Need::Key(key) => facts.may_add_key(key),
            Need::KeyAndMore(key) => after(key)
                .is_some_and(|register| program.facts(place.machine, register).may_go_on()),
            Need::KeyAndEnd(key) => {
                after(key).is_some_and(|register| program.facts(place.machine, register).may_close)
            }
        };
        met.push(place.base.as_ref().is_some_and(|(_, need)| is_met(need)));
        place.groups.iter().for_each(|(need, _)| met.push(is_met(need)));
        for &token in &place.followed {
            met.push(self.is_followed(id, token, fuel)?);
        }
        Ok(met.bits)
    }

    fn is_followed(
        &self,
        id: ConfigId,
        token: TokenId,
        fuel: &mut Fuel<'_>,
    ) -> Result<bool, LimitError> {
        let mut at = id;
        for &byte in self.vocabulary.token_bytes(token) {
            at = self.automaton.edge(self.automaton.config(at), byte, fuel)?.to;
            if at == DEAD {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The mask of the tokens whose needs are met.
    fn put_together(&self, place: &KeyPlace, met: &[u64]) -> Arc<Mask> {
        let is_met = |index: usize| met[index / 64] >> (index % 64) & 1 == 1;
        let mut tokens: Vec<TokenId> = Vec::new();
        for (index, (_, group)) in place.groups.iter().enumerate() {
            if is_met(index + 1) {
                tokens.extend_from_slice(group);
            }
        }
        for (index, &token) in place.followed.iter().enumerate() {
            if is_met(index + 1 + place.groups.len()) {
                tokens.push(token);
            }
        }
        // Runs that are sorted are merged.
        tokens.sort();
        tokens.dedup();
        let base = place.base.as_ref().filter(|_| is_met(0)).map(|(base, _)| base);
        let Some(base) = base else { return self.vocabulary.mask_of_tokens(None, tokens) };
        let is_off = |token: &&TokenId| tokens.binary_search(token).is_err();
        if place.except.iter().any(|token| is_off(&token)) {
            let mut bits = base.to_vec();
            for token in place.except.iter().filter(is_off) {
                super::mask::clear_bit(&mut bits, *token);
            }
            tokens.iter().for_each(|&token| set_bit(&mut bits, token));
            return self.vocabulary.mask(None, &bits);
        }
        tokens.retain(|&token| !has_bit(base, token));
        self.vocabulary.mask_of_tokens(Some(Arc::clone(base)), tokens)
    }

    fn union(&self, masks: &[Arc<Mask>]) -> Arc<Mask> {
        let mut all = vec![0u32; self.vocabulary.mask_words()];
        let mut bits = all.clone();
        for mask in masks {
            mask.write(&mut bits);
            all.iter_mut().zip(&bits).for_each(|(all, more)| *all |= more);
        }
        self.vocabulary.mask(None, &all)
    }
}

/// Bits in the making.
#[derive(Default)]
struct Met {
    bits: SmallVec<[u64; 2]>,
    len: usize,
}

impl Met {
    fn push(&mut self, is_met: bool) {
        if self.len.is_multiple_of(64) {
            self.bits.push(0);
        }
        self.bits[self.len / 64] |= u64::from(is_met) << (self.len % 64);
        self.len += 1;
    }
}
