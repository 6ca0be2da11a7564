//! The walk over the vocabulary that makes a mask.
//!
//! It goes over the [`Shapes`] of the tokens. Where a state tells the characters of a run apart,
//! as at the start of a keyword, the bytes below are walked instead, until what is left of the
//! run makes no difference again.

use super::automaton::{Config, ConfigId, DEAD, Edge, Run};
use super::error::LimitError;
use super::limits::Fuel;
use super::mask::set_bit;
use super::masks::{LoopTokens, MaskMaker};
use super::shapes::{Class, ShapeId, ShapeNode, Shapes, Symbol};
use super::trie::TrieNode;
use super::walk::walk;
use crate::TokenId;

mod bounds;
mod bytes;

/// Nodes between two payments of fuel.
const NODES_PER_PAYMENT: u32 = 512;
/// Nodes below a node from which on it is worth asking whether they need a walk.
const BULK_NODES_MIN: u32 = 6;
/// Tokens that are set one by one in the time of a node.
const TOKENS_PER_NODE: usize = 4;
/// Bytes below which too many tokens are longer.
const BYTES_MAX_LEAST: u32 = 12;

/// Bytes by which the longest token below a node goes on, at most.
fn height_of(node: &TrieNode) -> u32 {
    if node.height < u8::MAX { u32::from(node.height) } else { u32::from(u16::MAX) }
}

/// A mask in the making.
pub(super) struct MaskWalk<'w, 'm, 'f> {
    maker: &'w MaskMaker<'m>,
    fuel: &'w mut Fuel<'f>,
    bits: &'w mut [u32],
    start: ConfigId,
    unpaid: u32,
    /// Tokens of more bytes are left to a walk of their own.
    bytes_max: u32,
    /// Height of the lowest frame that was looked at.
    floor: u32,
    /// Most bytes that are needed to finish after one of the tokens set.
    finish_bytes: u32,
    /// States along the path of bytes that is walked; the first is the one before any byte.
    byte_states: Vec<ConfigId>,
    /// The class, below a shape, whose characters were walked byte by byte.
    expanded: Option<(Option<ShapeId>, Class)>,
    ends: Ends,
}

/// How the tokens may go on that are in a run at some shape, in some state.
#[derive(Default)]
struct Ends {
    place: Option<(ShapeId, ConfigId)>,
    /// Whether the shapes alone tell.
    is_known: bool,
    /// The shapes that are alive, as bits.
    alive: Vec<u64>,
    alive_from: u32,
}

impl Ends {
    fn has(&self, shape: ShapeId) -> bool {
        let bit = shape.wrapping_sub(self.alive_from);
        self.alive.get((bit / 64) as usize).is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }

    fn clear(&mut self, place: (ShapeId, ConfigId), shapes_end: ShapeId) {
        self.place = Some(place);
        self.is_known = true;
        self.alive_from = place.0;
        self.alive.clear();
        self.alive.resize(((shapes_end - place.0) as usize).div_ceil(64), 0);
    }

    fn set(&mut self, shape: ShapeId) {
        let bit = shape.wrapping_sub(self.alive_from);
        if let Some(word) = self.alive.get_mut((bit / 64) as usize) {
            *word |= 1 << (bit % 64);
        }
    }
}

/// What a walk has found out, besides the tokens.
pub(super) struct Walked {
    /// Height of the lowest frame that was looked at.
    pub(super) floor: u32,
    /// Most bytes that are needed to finish after one of the tokens set.
    pub(super) finish_bytes: u32,
}

impl<'w, 'm, 'f> MaskWalk<'w, 'm, 'f> {
    pub(super) fn new(
        maker: &'w MaskMaker<'m>,
        start: ConfigId,
        bits: &'w mut [u32],
        fuel: &'w mut Fuel<'f>,
    ) -> Self {
        Self {
            maker,
            fuel,
            bits,
            start,
            unpaid: 0,
            bytes_max: u32::MAX,
            floor: u32::MAX,
            finish_bytes: 0,
            byte_states: Vec::new(),
            expanded: None,
            ends: Ends::default(),
        }
    }

    /// Sets all tokens that are alive from the start, except those that `known` stands for.
    pub(super) fn run(mut self, known: Option<&LoopTokens>) -> Result<Walked, LimitError> {
        match known {
            Some(known) => match known.closed {
                Some((state, bytes)) => self.run_tails(known, state, bytes)?,
                None => self.run_rest(&known.split.rest)?,
            },
            None => self.run_shapes()?,
        }
        self.fuel.spend(self.unpaid)?;
        Ok(Walked { floor: self.floor, finish_bytes: self.finish_bytes })
    }

    fn config(&self, id: ConfigId) -> &'m Config {
        self.maker.automaton.config(id)
    }

    fn shapes(&self) -> &'m Shapes {
        self.maker.vocabulary.shapes()
    }

    #[inline]
    fn pay(&mut self, nodes: u32) -> Result<(), LimitError> {
        self.unpaid += nodes;
        if self.unpaid < NODES_PER_PAYMENT {
            return Ok(());
        }
        self.fuel.spend(std::mem::take(&mut self.unpaid))
    }

    /// Notes what a state that a token leads to takes to finish.
    fn land(&mut self, state: ConfigId) {
        self.finish_bytes = self.finish_bytes.max(self.config(state).finish_bytes);
    }

    /// Where each character of a loop leads back to a state, tokens are told apart by what comes
    /// after such characters. Tokens of more than `bytes_max` bytes are walked by themselves.
    fn run_tails(
        &mut self,
        known: &LoopTokens,
        state: ConfigId,
        bytes_max: u32,
    ) -> Result<(), LimitError> {
        let tails = &known.split.tails;
        let (automaton, start) = (self.maker.automaton, self.config(state));
        let (bits, finish_bytes) = (&mut *self.bits, &mut self.finish_bytes);
        self.floor = walk(automaton, &tails.trie, start, self.fuel, |tail, _, config| {
            *finish_bytes = (*finish_bytes).max(config.finish_bytes);
            tails.tokens(tail).iter().for_each(|&token| set_bit(bits, token));
            Ok(())
        })?;
        self.bytes_max = bytes_max;
        self.replace_longer(&known.split.rest)
    }

    /// Walks the whole vocabulary, shape by shape.
    ///
    /// Where a counted loop may end within the longest tokens but not within most, those of more
    /// bytes than the loop has rounds left are walked by themselves.
    fn run_shapes(&mut self) -> Result<(), LimitError> {
        while !self.try_shapes()? {}
        self.replace_longer(self.maker.vocabulary.trie())
    }

    /// Walks the shapes; false if that must be done again because `bytes_max` is lower now.
    fn try_shapes(&mut self) -> Result<bool, LimitError> {
        self.expanded = None;
        self.ends.place = None;
        let shapes = self.shapes();
        let mut states = vec![self.start; shapes.depth_max() + 1];
        let mut path = vec![0; shapes.depth_max() + 1];
        let start = self.config(self.start);
        for root in shapes.roots() {
            if !start.is_alive_on_any(root.first_bytes) {
                self.pay(1)?;
            } else if !self.try_below(root.index, &mut states, &mut path)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The same for the shapes that begin as one of one symbol.
    fn try_below(
        &mut self,
        root: ShapeId,
        states: &mut [ConfigId],
        path: &mut [ShapeId],
    ) -> Result<bool, LimitError> {
        let shapes = self.shapes();
        let nodes = shapes.nodes();
        let (mut index, end) = (root, nodes[root as usize].skip);
        while index < end {
            let node = &nodes[index as usize];
            self.pay(1)?;
            let depth = usize::from(node.depth);
            match self.step(states[depth], node)? {
                Run::Dead => index = node.skip,
                Run::Mixed => {
                    if self.lower_bytes_max(states[depth], node)? {
                        return Ok(false);
                    }
                    let parent = depth.checked_sub(1).map(|above| path[above]);
                    self.expand(parent, index, states[depth])?;
                    index = node.skip;
                }
                Run::To(edge) => {
                    self.floor = self.floor.min(edge.floor);
                    states[depth + 1] = edge.to;
                    path[depth] = index;
                    if shapes.set_own(node, self.bits) {
                        self.land(edge.to);
                    }
                    index += 1;
                }
            }
        }
        Ok(true)
    }

    /// Lowers `bytes_max` if a run is mixed only because a counted loop may end within its longest
    /// tokens. Shorter tokens are then all alike.
    fn lower_bytes_max(&mut self, from: ConfigId, node: &ShapeNode) -> Result<bool, LimitError> {
        let Symbol::Run(class) = node.symbol else { return Ok(false) };
        let automaton = self.maker.automaton;
        let (low, high) = class.first_bytes();
        let config = automaton.config(from);
        let Some(byte) = (low..=high).find(|&byte| config.is_alive_on(byte)) else {
            return Ok(false);
        };
        let edge = automaton.edge(config, byte, self.fuel)?;
        let Some(rounds) = automaton.rounds_left(edge.to) else { return Ok(false) };
        // One round less: a count is known to be far from its end only then.
        let bytes = (rounds.saturating_sub(1)) & !3;
        let is_lower =
            BYTES_MAX_LEAST <= bytes && bytes < self.bytes_max.min(u32::from(node.height));
        if is_lower {
            self.bytes_max = bytes;
            self.bits.fill(0);
        }
        Ok(is_lower)
    }

    /// Where a symbol leads.
    #[inline]
    fn step(&mut self, from: ConfigId, node: &ShapeNode) -> Result<Run, LimitError> {
        let automaton = self.maker.automaton;
        match node.symbol {
            Symbol::Byte(byte) => {
                let edge = automaton.edge(automaton.config(from), byte, self.fuel)?;
                Ok(if edge.to == DEAD { Run::Dead } else { Run::To(edge) })
            }
            Symbol::One(class) => automaton.single(from, class, self.fuel),
            Symbol::Run(class) => {
                let bytes = self.bytes_max.min(u32::from(node.height));
                automaton.run(from, class, bytes, self.fuel)
            }
        }
    }

    /// Sets the tokens of a shape and of those below whose bytes are alive, where the last symbol
    /// of the shape does not lead from `state` to one place.
    fn expand(
        &mut self,
        parent: Option<ShapeId>,
        index: ShapeId,
        state: ConfigId,
    ) -> Result<(), LimitError> {
        let node = &self.shapes().nodes()[index as usize];
        let class = match node.symbol {
            Symbol::Byte(_) => return Ok(()),
            Symbol::One(class) | Symbol::Run(class) => class,
        };
        if self.count(index, class, state)? || self.close_in(index, state)? {
            return Ok(());
        }
        // The single character has been here before the run.
        if self.expanded == Some((parent, class)) {
            return Ok(());
        }
        self.expanded = Some((parent, class));
        let trie = self.maker.vocabulary.trie();
        self.byte_states.resize(trie.depth_max() + 1, state);
        let config = self.config(state);
        for &start in self.shapes().starts(parent, class) {
            let node = &trie.nodes()[start as usize];
            if config.is_alive_on(node.byte) {
                self.byte_states[usize::from(node.depth)] = state;
                self.walk_bytes(start as usize, node.skip as usize)?;
            }
        }
        Ok(())
    }

    /// Sets the tokens of a run and of those below, where it only matters how many characters
    /// there are, as in a counted loop. Otherwise does nothing and returns false.
    fn count(&mut self, index: ShapeId, class: Class, state: ConfigId) -> Result<bool, LimitError> {
        let (automaton, shapes) = (self.maker.automaton, self.shapes());
        let nodes = shapes.nodes();
        let node = &nodes[index as usize];
        if node.height >= u16::from(u8::MAX) {
            // The lengths of runs are not known beyond.
            return Ok(false);
        }
        // The states after each number of characters; the last one is for all that are more.
        let mut states = vec![state];
        let mut floor = u32::MAX;
        let goes_on = loop {
            let last = states.last().copied().unwrap_or(state);
            match automaton.single(last, class, self.fuel)? {
                Run::Mixed => return Ok(false),
                Run::Dead => break false,
                Run::To(edge) => {
                    floor = {
                        if edge.to == last || states.len() > usize::from(node.height) {
                            break true;
                        }
                        states.push(edge.to);
                        floor.min(edge.floor)
                    }
                }
            }
        };
        self.pay(states.len() as u32)?;
        self.floor = self.floor.min(floor);
        let mut landed = usize::MAX;
        for (token, run) in shapes.own_runs(node) {
            let run = usize::from(run);
            if run >= states.len() && !goes_on {
                break;
            }
            set_bit(self.bits, token);
            if landed != run {
                landed = run;
                self.land(states[run.min(states.len() - 1)]);
            }
        }
        let shortest = if class.has_single() { 2 } else { 1 };
        let mut child = index + 1;
        while child < node.skip {
            let below = &nodes[child as usize];
            for &state in states.get(shortest..).unwrap_or(&[]) {
                if self.step(state, below)? != Run::Dead {
                    self.walk_each(shapes.tokens_from(below))?;
                    break;
                }
            }
            child = below.skip;
        }
        Ok(true)
    }

    /// Follows each of some tokens from its first byte.
    fn walk_each(&mut self, tokens: &[TokenId]) -> Result<(), LimitError> {
        let (automaton, vocabulary) = (self.maker.automaton, self.maker.vocabulary);
        'tokens: for &token in tokens {
            let mut state = self.start;
            for &byte in vocabulary.token_bytes(token) {
                self.pay(1)?;
                let edge = automaton.edge(automaton.config(state), byte, self.fuel)?;
                if edge.to == DEAD {
                    continue 'tokens;
                }
                self.floor = self.floor.min(edge.floor);
                state = edge.to;
            }
            set_bit(self.bits, token);
            self.land(state);
        }
        Ok(())
    }

    /// Finds out which of the shapes below one are alive from a state, unless that was the last
    /// thing found out.
    fn find_ends(&mut self, shape: ShapeId, state: Edge) -> Result<(), LimitError> {
        if self.ends.place == Some((shape, state.to)) {
            return Ok(());
        }
        let nodes = self.shapes().nodes();
        let end = nodes[shape as usize].skip;
        self.ends.clear((shape, state.to), end);
        self.ends.set(shape);
        let first_depth = usize::from(nodes[shape as usize].depth) + 1;
        let (mut floor, mut finish_bytes) = (state.floor, self.config(state.to).finish_bytes);
        let mut states = vec![state.to; self.shapes().depth_max() + 1];
        let mut index = shape + 1;
        while index < end {
            let node = &nodes[index as usize];
            self.pay(1)?;
            let depth = usize::from(node.depth) - first_depth;
            match self.step(states[depth], node)? {
                Run::Dead => index = node.skip,
                Run::Mixed => {
                    self.ends.is_known = false;
                    return Ok(());
                }
                Run::To(edge) => {
                    floor = floor.min(edge.floor);
                    finish_bytes = finish_bytes.max(self.config(edge.to).finish_bytes);
                    states[depth + 1] = edge.to;
                    self.ends.set(index);
                    index += 1;
                }
            }
        }
        self.floor = self.floor.min(floor);
        self.finish_bytes = self.finish_bytes.max(finish_bytes);
        Ok(())
    }
}
