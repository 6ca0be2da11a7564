//! Texts and character sets as trees of switches.

use regex_syntax::utf8::{Utf8Range, Utf8Sequences};
use smallvec::SmallVec;

use super::Lowering;
use crate::grammar::error::LimitError;
use crate::grammar::expr::{CharSet, TokenSet};
use crate::grammar::markers::Segment;
use crate::grammar::program::{Arm, Node, NodeId};

/// The bytes of some characters.
type Sequence = SmallVec<[Utf8Range; 4]>;

/// Texts that agree before `depth`, on their way into a switch.
struct Branch<'t> {
    texts: &'t [Box<[u8]>],
    depth: usize,
    /// Byte that leads here from the branch above.
    byte: u8,
    /// Whether one of the texts ended here.
    ends: bool,
    arms: SmallVec<[Arm; 4]>,
}

impl<'t> Branch<'t> {
    fn new(texts: &'t [Box<[u8]>], depth: usize, byte: u8) -> Self {
        match texts.split_first() {
            Some((first, rest)) if first.len() == depth => {
                Self { texts: rest, depth, byte, ends: true, arms: SmallVec::new() }
            }
            _ => Self { texts, depth, byte, ends: false, arms: SmallVec::new() },
        }
    }

    /// Takes the texts that share the first one's byte at this depth.
    fn take_child(&mut self) -> Option<Self> {
        let byte = *self.texts.first()?.get(self.depth)?;
        let count = self.texts.partition_point(|text| text.get(self.depth) == Some(&byte));
        let (group, rest) = self.texts.split_at(count);
        self.texts = rest;
        Some(Self::new(group, self.depth + 1, byte))
    }
}

/// Adds an arm, which joins the one before if that ends just below it and leads to the same node.
pub(super) fn push_arm<L: AsMut<[Arm]> + Extend<Arm>>(arms: &mut L, arm: Arm) {
    match arms.as_mut().last_mut() {
        Some(last) if last.next == arm.next && last.high.checked_add(1) == Some(arm.low) => {
            last.high = arm.high;
        }
        _ => arms.extend([arm]),
    }
}

/// The arms of a set that is all ASCII.
pub(super) fn ascii_arms(set: &CharSet, next: NodeId) -> impl Iterator<Item = Arm> + '_ {
    set.ranges().iter().map(move |&(low, high)| Arm { low: low as u8, high: high as u8, next })
}

impl Lowering<'_, '_> {
    pub(super) fn lower_literal(
        &mut self,
        bytes: &[u8],
        next: NodeId,
    ) -> Result<NodeId, LimitError> {
        bytes
            .iter()
            .rev()
            .try_fold(next, |next, &byte| self.switch(&[Arm { low: byte, high: byte, next }]))
    }

    /// A text in which control tokens may come as such or be spelled.
    pub(super) fn lower_marked(&mut self, text: &[u8], next: NodeId) -> Result<NodeId, LimitError> {
        let mut node = next;
        for segment in self.pool.segments(text).into_iter().rev() {
            node = match segment {
                Segment::Bytes(bytes) => self.lower_literal(bytes, node)?,
                Segment::Marker(token, name) => {
                    let spelled = self.lower_literal(name, node)?;
                    let set = self.token_set(TokenSet::only(token));
                    let token = self.push(Node::Token { set, next: node })?;
                    self.split(&[spelled, token])?
                }
            };
        }
        Ok(node)
    }

    /// One of sorted, distinct, non-empty texts. Common starts are walked once, and equal ends
    /// are the same nodes because equal switches are.
    pub(super) fn lower_literals(
        &mut self,
        texts: &[Box<[u8]>],
        next: NodeId,
    ) -> Result<NodeId, LimitError> {
        let mut open = vec![Branch::new(texts, 0, 0)];
        while let Some(mut branch) = open.pop() {
            if let Some(child) = branch.take_child() {
                open.push(branch);
                open.push(child);
                continue;
            }
            let node = match (branch.ends, branch.arms.is_empty()) {
                (_, true) => next,
                (false, false) => self.switch(&branch.arms)?,
                (true, false) => {
                    let longer = self.switch(&branch.arms)?;
                    self.split(&[longer, next])?
                }
            };
            match open.last_mut() {
                Some(above) => push_arm(
                    &mut above.arms,
                    Arm { low: branch.byte, high: branch.byte, next: node },
                ),
                None => return Ok(node),
            }
        }
        Ok(next)
    }

    /// One character of the set, as UTF-8.
    pub(super) fn lower_chars(
        &mut self,
        set: &CharSet,
        next: NodeId,
    ) -> Result<NodeId, LimitError> {
        if set.is_ascii() {
            return self.switch(&ascii_arms(set, next).collect::<SmallVec<[Arm; 8]>>());
        }
        let mut sequences: Vec<Sequence> = Vec::new();
        for &(low, high) in set.ranges() {
            let (Some(low), Some(high)) = (char::from_u32(low), char::from_u32(high)) else {
                continue;
            };
            for sequence in Utf8Sequences::new(low, high) {
                self.fuel.spend(1)?;
                sequences.push(sequence.as_slice().into());
            }
        }
        sequences.sort_unstable_by(|a, b| by_starts(a).cmp(by_starts(b)));
        self.lower_sequences(&sequences, 0, next)
    }

    /// Sequences that agree before `depth`. Their ranges at `depth` are equal or disjoint,
    /// because the sequences come from disjoint ranges of characters.
    fn lower_sequences(
        &mut self,
        sequences: &[Sequence],
        depth: usize,
        next: NodeId,
    ) -> Result<NodeId, LimitError> {
        let mut arms: SmallVec<[Arm; 8]> = SmallVec::new();
        for group in sequences.chunk_by(|a, b| a.get(depth) == b.get(depth)) {
            let Some(range) = group.first().and_then(|sequence| sequence.get(depth)) else {
                return Ok(next);
            };
            let node = self.lower_sequences(group, depth + 1, next)?;
            push_arm(&mut arms, Arm { low: range.start, high: range.end, next: node });
        }
        self.switch(&arms)
    }
}

fn by_starts(sequence: &[Utf8Range]) -> impl Iterator<Item = u8> + '_ {
    sequence.iter().map(|range| range.start)
}
