//! The mask of a state: looked up, or walked with as little of the vocabulary as will do.

use std::sync::Arc;

use super::automaton::{Automaton, ConfigId, START};
use super::builder::{BOTTOM, Builder, StackId};
use super::charloop::{LoopChars, reaches_by_splits};
use super::charsplit::CharSplit;
use super::error::LimitError;
use super::expr::TokenSet;
use super::limits::Fuel;
use super::mask::{clear_bit, has_bit, set_bit};
use super::mask_cache::{CachedMask, MaskCache, finish_below};
use super::mask_walk::{MaskWalk, Walked};
use super::program::{NO_WAY, Node, Program, Role};
use super::vocabulary::GrammarVocabulary;
use crate::TokenId;

/// What the masks of one grammar are made from.
pub(crate) struct MaskMaker<'a> {
    pub(crate) automaton: &'a Automaton,
    pub(crate) cache: &'a MaskCache,
    pub(crate) vocabulary: &'a GrammarVocabulary,
    /// End tokens that the grammar does not use itself.
    pub(crate) end_tokens: &'a [TokenId],
}

/// Tokens that a loop of a state consumes whole, known without a walk.
#[derive(Clone, Debug)]
pub(crate) struct LoopTokens {
    pub(crate) split: Arc<CharSplit>,
    /// Characters that the loop may still consume; `None`: any number.
    pub(crate) rounds: Option<u32>,
    /// Height of the lowest frame that this depends on.
    pub(crate) floor: u32,
    /// Most bytes that are needed to finish after one of the tokens.
    pub(crate) finish_bytes: u32,
    /// The state, with abstract counts, that each of the characters leads back to, and how many
    /// bytes a token may have for which it stands.
    pub(crate) closed: Option<(ConfigId, u32)>,
}

/// A loop of one item.
struct FoundLoop {
    chars: LoopChars,
    rounds: Option<u32>,
    floor: u32,
    finish_bytes: u32,
    /// Whether no other item of the state consumes such characters.
    is_alone: bool,
}

/// Bytes below which too many tokens are longer.
const CLOSED_BYTES_MIN: u32 = 12;
/// Bytes that an unfinished character may lack.
const UNFINISHED_BYTES_MAX: u32 = 3;

impl MaskMaker<'_> {
    /// The mask of a state.
    pub(crate) fn mask(
        &self,
        id: ConfigId,
        fuel: &mut Fuel<'_>,
    ) -> Result<Arc<CachedMask>, LimitError> {
        let config = self.automaton.config(id);
        if let Some(known) = config.mask.get() {
            return Ok(Arc::clone(known));
        }
        if let Some(mask) = self.key_mask(id, fuel)? {
            return Ok(Arc::clone(config.mask.get_or_init(|| Arc::new(mask))));
        }
        let mask = match id {
            // No other state is like the first one.
            START => Arc::new(self.walk(id, fuel)?.1),
            _ => self.mask_of_like(id, fuel)?,
        };
        Ok(Arc::clone(config.mask.get_or_init(|| mask)))
    }

    /// The mask of a state that others may be like.
    fn mask_of_like(
        &self,
        id: ConfigId,
        fuel: &mut Fuel<'_>,
    ) -> Result<Arc<CachedMask>, LimitError> {
        let simple = self.automaton.abstracted(id, self.vocabulary)?;
        if simple != id {
            let mask = self.mask(simple, fuel)?;
            return Ok(self.for_object(id, mask));
        }
        if let Some(known) = self.cache.find(self.automaton, id) {
            return Ok(known);
        }
        let (floor, mask) = self.walk(id, fuel)?;
        let mask = Arc::new(mask);
        self.cache.insert(self.automaton, id, floor, &mask);
        Ok(mask)
    }

    /// The mask of a state whose objects another one's stood for: what it takes to finish differs.
    fn for_object(&self, id: ConfigId, mask: Arc<CachedMask>) -> Arc<CachedMask> {
        let config = self.automaton.config(id);
        let Some(over_cut) = mask.finish_bytes_over_cut.filter(|_| config.has_progress) else {
            return mask;
        };
        let program = self.automaton.program();
        let builder = self.automaton.lock();
        let lowest = config.items.iter().map(|&item| builder.frame(item).height).min();
        let floor = lowest.unwrap_or(0).saturating_sub(mask.floor_below_items);
        let more_of = |item: StackId| {
            let (mut stack, mut more) = (item, 0u32);
            while stack != BOTTOM && builder.frame(stack).height >= floor {
                let frame = builder.frame(stack);
                if let Role::ToHub { machine, .. } = program.role(frame.node) {
                    let below = builder.frame(frame.parent).finish_bytes;
                    let member = program.machines[machine as usize].member_bytes_max();
                    more = more.saturating_add(frame.finish_bytes.saturating_sub(below) + member);
                }
                stack = frame.parent;
            }
            more
        };
        let more = config.items.iter().map(|&item| more_of(item)).max().unwrap_or(0);
        Arc::new(CachedMask {
            mask: Arc::clone(&mask.mask),
            finish_bytes_over_cut: Some(over_cut.saturating_add(more)),
            floor_below_items: mask.floor_below_items,
        })
    }

    fn walk(&self, id: ConfigId, fuel: &mut Fuel<'_>) -> Result<(u32, CachedMask), LimitError> {
        if let Some(found) = self.by_free_text(id, fuel)? {
            return Ok(found);
        }
        if let Some(found) = self.text_mask(id, fuel)? {
            return Ok(found);
        }
        let config = self.automaton.config(id);
        let mut bits = vec![0u32; self.vocabulary.mask_words()];
        let loop_tokens = self.loop_tokens(id, fuel)?;
        let walked = MaskWalk::new(self, id, &mut bits, fuel).run(loop_tokens.as_ref())?;
        let Walked { mut floor, mut finish_bytes } = walked;
        for &(token, twin) in self.vocabulary.twins() {
            if has_bit(&bits, token) {
                set_bit(&mut bits, twin);
            }
        }
        let lowest = {
            let builder = self.automaton.lock();
            config.items.iter().map(|&item| builder.frame(item).height).min().unwrap_or(0)
        };
        floor = floor.min(lowest);
        if config.has_token_items {
            finish_bytes = finish_bytes.max(self.add_token_items(id, &mut bits));
        }
        if config.accepting {
            self.end_tokens.iter().for_each(|&token| set_bit(&mut bits, token));
        }
        let base = loop_tokens.map(|tokens| {
            floor = floor.min(tokens.floor);
            finish_bytes = finish_bytes.max(tokens.finish_bytes);
            tokens.split.inside(tokens.rounds)
        });
        let below = finish_below(self.automaton, id, floor);
        let mask = CachedMask {
            mask: self.vocabulary.mask(base, &bits),
            // A count too low to know has no bound.
            finish_bytes_over_cut: below
                .filter(|_| finish_bytes < NO_WAY)
                .map(|(least, _)| finish_bytes.saturating_sub(least)),
            floor_below_items: lowest - floor,
        };
        Ok((floor, mask))
    }

    /// Sets the tokens that are consumed by id; returns the most bytes needed after one of them.
    pub(super) fn add_token_items(&self, id: ConfigId, bits: &mut [u32]) -> u32 {
        let program = self.automaton.program();
        let builder = self.automaton.lock();
        let mut finish_bytes = 0;
        for &item in &self.automaton.config(id).items {
            let frame = builder.frame(item);
            if let Node::Token { set, .. } = program.nodes[frame.node as usize] {
                add_token_set(&program.token_sets[set as usize], self.vocabulary, bits);
                // What is needed after the token is less than before it.
                finish_bytes = finish_bytes.max(frame.finish_bytes);
            }
        }
        finish_bytes
    }

    /// The largest set of tokens that a loop of the state consumes whole.
    pub(super) fn loop_tokens(
        &self,
        id: ConfigId,
        fuel: &mut Fuel<'_>,
    ) -> Result<Option<LoopTokens>, LimitError> {
        let config = self.automaton.config(id);
        let mut builder = self.automaton.lock();
        let mut best: Option<FoundLoop> = None;
        let size = |found: &FoundLoop| (found.chars.wide, found.chars.ascii.count_ones());
        for &item in &config.items {
            let found = self.loop_of_item(&mut builder, &config.items, item, fuel)?;
            if let Some(found) = found
                && best.as_ref().is_none_or(|best| size(best) < size(&found))
            {
                best = Some(found);
            }
        }
        drop(builder);
        let Some(best) = best else { return Ok(None) };
        let mut closed = None;
        if best.is_alone {
            // Of a counted loop, the last rounds are left out, where it is near its end.
            let bytes = best.rounds.map_or(u32::MAX, |rounds| rounds.saturating_sub(2) & !3);
            let state = self.automaton.abstracted_for(id, bytes)?;
            let any = best.chars.ascii.trailing_zeros() as u8;
            let next = self.automaton.edge(self.automaton.config(state), any, fuel)?.to;
            closed = (next == state && bytes >= CLOSED_BYTES_MIN).then_some((state, bytes));
        }
        Ok(self.vocabulary.split(best.chars).map(|split| LoopTokens {
            split: Arc::clone(split),
            rounds: best.rounds,
            floor: best.floor,
            finish_bytes: best.finish_bytes,
            closed,
        }))
    }

    /// The characters that an item consumes over and over, and how often it may.
    fn loop_of_item(
        &self,
        builder: &mut Builder,
        items: &[StackId],
        item: StackId,
        fuel: &mut Fuel<'_>,
    ) -> Result<Option<FoundLoop>, LimitError> {
        let program = self.automaton.program();
        let top = *builder.frame(item);
        let Some(char_loop) = program.char_loop(top.node) else { return Ok(None) };
        let chars = char_loop.chars;
        let consumes = |builder: &Builder, other| may_consume(program, builder, other, chars);
        let mut found = FoundLoop {
            chars,
            rounds: None,
            floor: top.height,
            finish_bytes: top.finish_bytes.saturating_add(UNFINISHED_BYTES_MAX),
            is_alone: !items.iter().any(|&other| other != item && consumes(builder, other)),
        };
        if !char_loop.returns {
            return Ok(Some(found));
        }
        if top.parent == BOTTOM {
            return Ok(None);
        }
        let below = *builder.frame(top.parent);
        found.floor = below.height;
        let Node::Loop(index) = program.nodes[below.node as usize] else {
            return Ok(calls_again(program, below.node, top.node).then_some(found));
        };
        let counted = program.loops[index as usize];
        if !reaches_by_splits(program, counted.body, top.node) {
            return Ok(None);
        }
        let Some(rounds) = counted.rounds_left(below.count) else { return Ok(Some(found)) };
        // Tokens with more characters than the loop has rounds left must all be dead: nothing
        // else may consume such a character, neither now, nor in the same round, nor after the loop.
        if !found.is_alone || !char_loop.is_round {
            return Ok(None);
        }
        builder.close_from(program, counted.next, below.parent, fuel)?;
        found.floor = builder.closed().floor.min(below.height);
        let after = builder.closed().items.clone();
        let goes_on = after.iter().any(|&other| consumes(builder, other));
        // The round that is under way counts too.
        found.rounds = Some(rounds + 1);
        Ok((!goes_on).then_some(found))
    }
}

/// Sets the tokens of a set.
pub(crate) fn add_token_set(set: &TokenSet, vocabulary: &GrammarVocabulary, bits: &mut [u32]) {
    if !set.is_negated() {
        return set.named().iter().for_each(|&token| set_bit(bits, token));
    }
    let mut texts = vocabulary.text_tokens().to_vec();
    set.named().iter().for_each(|&token| clear_bit(&mut texts, token));
    bits.iter_mut().zip(texts).for_each(|(word, text)| *word |= text);
}

/// Whether a token is in a set.
pub(crate) fn is_in_set(set: &TokenSet, vocabulary: &GrammarVocabulary, token: TokenId) -> bool {
    let is_named = set.named().binary_search(&token).is_ok();
    if set.is_negated() { !is_named && has_bit(vocabulary.text_tokens(), token) } else { is_named }
}

/// Whether a frame, when it is gone on with, calls what has `top` at its start and comes back to
/// itself: a repetition whose body is a call.
fn calls_again(program: &Program, frame: u32, top: u32) -> bool {
    let calls = |node: u32| match program.nodes[node as usize] {
        Node::Call { start, next } => next == frame && reaches_by_splits(program, start, top),
        _ => false,
    };
    match program.nodes[frame as usize] {
        Node::Split(span) => program.targets(span).iter().any(|&target| calls(target)),
        _ => calls(frame),
    }
}

/// Whether an item may consume the first byte of a character of the set.
fn may_consume(program: &Program, builder: &Builder, item: StackId, chars: LoopChars) -> bool {
    match program.nodes[builder.frame(item).node as usize] {
        Node::Switch(span) => program
            .arms(span)
            .iter()
            .any(|arm| (arm.low..=arm.high).any(|byte| chars.may_start(byte))),
        _ => false,
    }
}
