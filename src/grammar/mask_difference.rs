//! The mask of a place in a declared key, by how it differs from that of a key nobody declared.
//!
//! A key that may still become a free one allows nearly what the rest of a free key allows. So the
//! mask of that place is copied, and only bytes that lead elsewhere are followed, from both places
//! at once: where they meet in one state, what follows is the same.

use std::sync::Arc;

use smallvec::SmallVec;

use super::automaton::{ConfigId, DEAD, Edge};
use super::error::LimitError;
use super::limits::Fuel;
use super::mask::{clear_bit, has_bit, set_bit};
use super::mask_cache::{CachedMask, finish_below, floor_of};
use super::masks::MaskMaker;
use super::program::{Arm, NO_WAY, Node, NodeId, Program, Role, Span};
use super::trie::{NO_TOKEN, Trie};

/// A set of bytes.
type Bytes = [u64; 4];

/// A mask in the making.
struct Difference<'d, 'f> {
    maker: &'d MaskMaker<'d>,
    trie: &'d Trie,
    fuel: &'d mut Fuel<'f>,
    bits: Vec<u32>,
    base: Option<Arc<[u32]>>,
    floor: u32,
    finish_bytes: u32,
}

impl MaskMaker<'_> {
    /// The mask of a state and the height of the lowest frame it depends on, if there is another
    /// state that is much like it.
    pub(super) fn by_difference(
        &self,
        id: ConfigId,
        fuel: &mut Fuel<'_>,
    ) -> Result<Option<(u32, CachedMask)>, LimitError> {
        let Some(like) = self.free_key(id)? else { return Ok(None) };
        let known = self.mask(like, fuel)?;
        let floor = floor_of(self.automaton, like, &known);
        let Some((least, _)) = finish_below(self.automaton, like, floor) else { return Ok(None) };
        let Some(over_cut) = known.finish_bytes_over_cut else { return Ok(None) };
        let vocabulary = self.vocabulary;
        let mut bits = vec![0; vocabulary.mask_words()];
        known.mask.write(&mut bits);
        let base = self.loop_tokens(like, fuel)?.map(|tokens| tokens.split.inside(tokens.rounds));
        let mut difference = Difference {
            maker: self,
            trie: vocabulary.trie(),
            fuel,
            bits,
            base,
            floor,
            finish_bytes: least.saturating_add(over_cut),
        };
        difference.follow((id, like), None)?;
        let Difference { mut bits, base, floor, finish_bytes, .. } = difference;
        for &(token, twin) in vocabulary.twins() {
            let set = if has_bit(&bits, token) { set_bit } else { clear_bit };
            set(&mut bits, twin);
        }
        let lowest = floor_of_items(self, id);
        let floor = floor.min(lowest);
        let below = finish_below(self.automaton, id, floor);
        let mask = CachedMask {
            mask: vocabulary.mask(base, &bits),
            finish_bytes_over_cut: below
                .filter(|_| finish_bytes < NO_WAY)
                .map(|(least, _)| finish_bytes.saturating_sub(least)),
            floor_below_items: lowest - floor,
        };
        Ok(Some((floor, mask)))
    }

    /// The state in which the key of this one is a free one already.
    fn free_key(&self, id: ConfigId) -> Result<Option<ConfigId>, LimitError> {
        let config = self.automaton.config(id);
        let ([item], false, false) = (&*config.items, config.accepting, config.has_token_items)
        else {
            return Ok(None);
        };
        let program = self.automaton.program();
        let node = self.automaton.lock().frame(*item).node;
        let (Role::Key { .. }, Node::Switch(span)) =
            (program.role(node), program.nodes[node as usize])
        else {
            return Ok(None);
        };
        let is_free = |next: NodeId| {
            next != node
                && matches!(program.role(next), Role::Key { .. })
                && program.char_loop(next).is_some_and(|it| !it.returns && it.chars.wide)
        };
        let found = program.arms(span).iter().find(|arm| is_free(arm.next));
        found.map(|arm| self.automaton.sibling(*item, arm.next)).transpose()
    }
}

fn floor_of_items(maker: &MaskMaker<'_>, id: ConfigId) -> u32 {
    let builder = maker.automaton.lock();
    let items = maker.automaton.config(id).items.iter();
    items.map(|&item| builder.frame(item).height).min().unwrap_or(0)
}

impl Difference<'_, '_> {
    /// Follows the bytes below a node of the tree, or below its root, by which the two states lead
    /// to different ones. The bits are those of the second.
    fn follow(
        &mut self,
        (ours, theirs): (ConfigId, ConfigId),
        node: Option<u32>,
    ) -> Result<(), LimitError> {
        let differing = self.differing(ours, theirs);
        let trie = self.trie;
        for (index, child) in trie.children(node) {
            if differing[usize::from(child.byte >> 6)] >> (child.byte & 63) & 1 == 0 {
                continue;
            }
            self.fuel.spend(1)?;
            let automaton = self.maker.automaton;
            let our: Edge = automaton.edge(automaton.config(ours), child.byte, self.fuel)?;
            let their = automaton.edge(automaton.config(theirs), child.byte, self.fuel)?;
            self.floor = self.floor.min(our.floor).min(their.floor);
            if our.to == their.to {
                continue;
            }
            if our.to == DEAD {
                for token in trie.tokens_from(index) {
                    self.clear(token);
                }
                continue;
            }
            if child.token != NO_TOKEN {
                set_bit(&mut self.bits, child.token);
                let bytes = automaton.config(our.to).finish_bytes;
                self.finish_bytes = self.finish_bytes.max(bytes);
            }
            self.follow((our.to, their.to), Some(index))?;
        }
        Ok(())
    }

    fn clear(&mut self, token: crate::TokenId) {
        clear_bit(&mut self.bits, token);
        if self.base.as_ref().is_some_and(|base| has_bit(base, token)) {
            self.base = None;
        }
    }

    /// The bytes by which two states may lead to different ones.
    fn differing(&self, ours: ConfigId, theirs: ConfigId) -> Bytes {
        let automaton = self.maker.automaton;
        let (our, their) = (automaton.config(ours), automaton.config(theirs));
        let program = automaton.program();
        let ([a], [b]) = (&*our.items, &*their.items) else {
            return union(&our.alive, &their.alive);
        };
        let builder = automaton.lock();
        let (a, b) = (*builder.frame(*a), *builder.frame(*b));
        drop(builder);
        match (program.nodes[a.node as usize], program.nodes[b.node as usize]) {
            (Node::Switch(first), Node::Switch(second))
                if a.count == b.count && a.parent == b.parent =>
            {
                differing_arms(program, first, second)
            }
            _ => union(&our.alive, &their.alive),
        }
    }
}

fn union(a: &Bytes, b: &Bytes) -> Bytes {
    std::array::from_fn(|word| a[word] | b[word])
}

/// The bytes by which two switches lead to different nodes.
fn differing_arms(program: &Program, first: Span, second: Span) -> Bytes {
    let mut differing = [0; 4];
    // The places where an arm of either starts or ends; between two of them nothing changes.
    let mut edges: SmallVec<[u16; 32]> = SmallVec::new();
    for arm in program.arms(first).iter().chain(program.arms(second)) {
        edges.extend([u16::from(arm.low), u16::from(arm.high) + 1]);
    }
    edges.sort_unstable();
    edges.dedup();
    let target = |arms: &[Arm], byte: u8| {
        let at = arms.partition_point(|arm| arm.high < byte);
        arms.get(at).filter(|arm| arm.low <= byte).map(|arm| arm.next)
    };
    let (first, second) = (program.arms(first), program.arms(second));
    for pair in edges.windows(2) {
        let low = pair[0] as u8;
        if target(first, low) != target(second, low) {
            for byte in pair[0]..pair[1] {
                differing[usize::from(byte >> 6)] |= 1u64 << (byte & 63);
            }
        }
    }
    differing
}
