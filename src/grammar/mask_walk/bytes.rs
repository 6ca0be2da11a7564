//! Walks over the tree of bytes, where shapes do not tell.

use super::{BULK_NODES_MIN, MaskWalk, TOKENS_PER_NODE, height_of};
use crate::grammar::automaton::{ConfigId, DEAD};
use crate::grammar::error::LimitError;
use crate::grammar::mask::{clear_bit, set_bit};
use crate::grammar::shapes::Symbol;
use crate::grammar::trie::{NO_TOKEN, Trie, TrieNode};
use crate::grammar::walk::walk;

impl MaskWalk<'_, '_, '_> {
    /// Walks a part of the vocabulary, byte by byte.
    pub(super) fn run_rest(&mut self, rest: &Trie) -> Result<(), LimitError> {
        let (automaton, start) = (self.maker.automaton, self.config(self.start));
        let (bits, finish_bytes) = (&mut *self.bits, &mut self.finish_bytes);
        self.floor = walk(automaton, rest, start, self.fuel, |token, _, config| {
            *finish_bytes = (*finish_bytes).max(config.finish_bytes);
            set_bit(bits, token);
            Ok(())
        })?;
        Ok(())
    }

    /// Walks a node of the tree of bytes, and what is below it.
    pub(super) fn walk_bytes(&mut self, from: usize, to: usize) -> Result<(), LimitError> {
        let automaton = self.maker.automaton;
        let nodes = self.maker.vocabulary.trie().nodes();
        let mut index = from;
        while index < to {
            let node = &nodes[index];
            self.pay(1)?;
            let depth = usize::from(node.depth);
            let state = automaton.config(self.byte_states[depth]);
            let edge = automaton.edge(state, node.byte, self.fuel)?;
            if edge.to == DEAD {
                index = node.skip as usize;
                continue;
            }
            self.floor = self.floor.min(edge.floor);
            self.byte_states[depth + 1] = edge.to;
            if node.token != NO_TOKEN {
                set_bit(self.bits, node.token);
                self.land(edge.to);
            }
            let below = node.skip - index as u32;
            let is_done = below >= BULK_NODES_MIN && self.set_below(index, node, edge.to)?;
            index = if is_done { node.skip as usize } else { index + 1 };
        }
        Ok(())
    }

    /// Sets the tokens below a node of the tree of bytes, if `state`, which the node leads to, is
    /// one that the rest of a run leads back to. Otherwise does nothing and returns false.
    pub(super) fn set_below(
        &mut self,
        index: usize,
        node: &TrieNode,
        state: ConfigId,
    ) -> Result<bool, LimitError> {
        let shapes = self.shapes();
        let Some(shape) = shapes.of_bytes(index) else { return Ok(false) };
        let Symbol::Run(class) = shapes.nodes()[shape as usize].symbol else { return Ok(false) };
        let bytes = self.bytes_max.min(height_of(node));
        let Some(again) = self.maker.automaton.run_on(state, class, bytes, self.fuel)? else {
            return Ok(false);
        };
        self.find_ends(shape, again)?;
        if !self.ends.is_known {
            return Ok(false);
        }
        let tokens = shapes.tokens_between(index, node.skip as usize);
        self.pay((tokens.len() / TOKENS_PER_NODE) as u32)?;
        for &(token, shape) in tokens {
            if self.ends.has(shape) {
                set_bit(self.bits, token);
            }
        }
        Ok(true)
    }

    /// Walks the tokens of more than `bytes_max` bytes by themselves, from the start.
    pub(super) fn replace_longer(&mut self, trie: &Trie) -> Result<(), LimitError> {
        if self.bytes_max == u32::MAX {
            return Ok(());
        }
        self.shapes().longer_than(self.bytes_max).for_each(|token| clear_bit(self.bits, token));
        self.byte_states.resize(trie.depth_max() + 1, self.start);
        if let Some(first) = self.byte_states.first_mut() {
            *first = self.start;
        }
        self.walk_longer(trie)
    }

    /// Sets the alive tokens of more than `bytes_max` bytes.
    pub(super) fn walk_longer(&mut self, trie: &Trie) -> Result<(), LimitError> {
        let automaton = self.maker.automaton;
        let nodes = trie.nodes();
        let mut index = 0;
        while let Some(node) = nodes.get(index) {
            let depth = usize::from(node.depth);
            let bytes = u32::from(node.depth) + 1;
            let longest = bytes.saturating_add(height_of(node));
            if longest <= self.bytes_max {
                index = node.skip as usize;
                continue;
            }
            self.pay(1)?;
            let state = automaton.config(self.byte_states[depth]);
            let edge = automaton.edge(state, node.byte, self.fuel)?;
            if edge.to == DEAD {
                index = node.skip as usize;
                continue;
            }
            self.floor = self.floor.min(edge.floor);
            self.byte_states[depth + 1] = edge.to;
            if node.token != NO_TOKEN && bytes > self.bytes_max {
                set_bit(self.bits, node.token);
                self.land(edge.to);
            }
            index += 1;
        }
        Ok(())
    }
}
