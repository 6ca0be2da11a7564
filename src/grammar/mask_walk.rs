//! The walk over the vocabulary that makes a mask.
//!
//! Much of a vocabulary is words, and much of a grammar is places where words may stand. So where
//! a state loops over a set of characters, all tokens below a node that spell nothing else are
//! set at once, and are not walked.

use super::automaton::{Config, DEAD};
use super::error::LimitError;
use super::limits::Fuel;
use super::mask::set_bit;
use super::masks::{LoopTokens, MaskMaker};
use super::trie::{NO_TOKEN, TrieNode};
use super::walk::walk;

/// Nodes between two payments of fuel.
const NODES_PER_PAYMENT: u32 = 512;
/// Nodes below a node from which on it is worth asking whether they need a walk.
const BULK_NODES_MIN: u32 = 8;

/// A mask in the making.
pub(super) struct MaskWalk<'w, 'm, 'f> {
    pub(super) maker: &'w MaskMaker<'m>,
    pub(super) fuel: &'w mut Fuel<'f>,
    pub(super) bits: &'w mut [u32],
    /// Most bytes that are needed to finish after one of the tokens set.
    pub(super) finish_bytes: u32,
}

impl MaskWalk<'_, '_, '_> {
    /// Sets all tokens that are alive from `start`, except those that `known` stands for, and
    /// says how low the lowest frame is that was looked at.
    pub(super) fn run(
        &mut self,
        start: &Config,
        known: Option<&LoopTokens>,
    ) -> Result<u32, LimitError> {
        if let Some(known) = known.filter(|known| known.is_closed && known.split.rest.is_some()) {
            return self.run_tails(start, known);
        }
        let whole = self.maker.vocabulary.trie();
        let rest = known.and_then(|known| known.split.rest.as_ref());
        let trie = rest.unwrap_or(whole);
        let is_whole = rest.is_none();
        let automaton = self.maker.automaton;
        let mut floor = u32::MAX;
        // The state after each byte of the path; the first entry is the one before any.
        let mut states: Vec<&Config> = vec![start; trie.depth_max() + 1];
        let nodes = trie.nodes();
        let mut index = 0;
        let mut unpaid = 0;
        while let Some(node) = nodes.get(index) {
            unpaid += 1;
            if unpaid == NODES_PER_PAYMENT {
                self.fuel.spend(unpaid)?;
                unpaid = 0;
            }
            let depth = usize::from(node.depth);
            let edge = automaton.edge(states[depth], node.byte, self.fuel)?;
            if edge.to == DEAD {
                index = node.skip as usize;
                continue;
            }
            floor = floor.min(edge.floor);
            let config = automaton.config(edge.to);
            states[depth + 1] = config;
            if node.token != NO_TOKEN {
                self.finish_bytes = self.finish_bytes.max(config.finish_bytes);
                set_bit(self.bits, node.token);
            }
            let below = node.skip - index as u32;
            if is_whole
                && below >= BULK_NODES_MIN
                && let Some(tokens) = self.maker.loop_tokens(config, self.fuel)?
                && tokens.rounds.is_none_or(|rounds| rounds >= u32::from(node.height))
                && node.height < u8::MAX
                && tokens.split.is_inside_below(index, depth + 1)
            {
                floor = floor.min(tokens.floor);
                self.finish_bytes = self.finish_bytes.max(tokens.finish_bytes);
                self.set_all(&nodes[index + 1..node.skip as usize]);
                index = node.skip as usize;
                continue;
            }
            index += 1;
        }
        self.fuel.spend(unpaid)?;
        Ok(floor)
    }

    /// As [`run`](Self::run), from a state that each character of a loop leads back to: tokens
    /// are told apart by what comes after such characters.
    fn run_tails(&mut self, start: &Config, known: &LoopTokens) -> Result<u32, LimitError> {
        let vocabulary = self.maker.vocabulary;
        let tails = known.split.tails(vocabulary.trie(), &|token| vocabulary.token_bytes(token));
        let (bits, finish_bytes) = (&mut *self.bits, &mut self.finish_bytes);
        walk(self.maker.automaton, &tails.trie, start, self.fuel, |tail, _, config| {
            *finish_bytes = (*finish_bytes).max(config.finish_bytes);
            tails.tokens(tail).iter().for_each(|&token| set_bit(bits, token));
            Ok(())
        })
    }

    fn set_all(&mut self, nodes: &[TrieNode]) {
        for node in nodes {
            if node.token != NO_TOKEN {
                set_bit(self.bits, node.token);
            }
        }
    }
}
