//! The lowered grammar: a flat graph of nodes that a parse walks, byte by byte.

use super::charloop::CharLoop;
use super::expr::TokenSet;

/// Index of a node in its program.
pub(crate) type NodeId = u32;

/// A cost in bytes that stands for "there is no way".
pub(crate) const NO_WAY: u32 = u32::MAX;

/// A step of a rule. What follows is part of the node, so a rule's end is a node too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    /// The rule has ended: go on with the frame below.
    Return,
    /// Consume a byte: the one arm that holds it says where to go on.
    Switch(Span),
    /// Go on at every target at once.
    Split(Span),
    /// Go on at `start`, with a frame below it that goes on at `next`.
    Call { start: NodeId, next: NodeId },
    /// A counted repetition, by index into [`Program::loops`]. The count is the frame's register.
    Loop(u32),
    /// Consume a token of the set with this index.
    Token { set: u32, next: NodeId },
}

/// A run of arms or of targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Span {
    pub(crate) first: u32,
    pub(crate) count: u32,
}

impl Span {
    /// The run as a range of indices.
    pub(crate) fn range(self) -> std::ops::Range<usize> {
        self.first as usize..(self.first + self.count) as usize
    }
}

/// A byte range of a switch and where it leads. The arms of a switch ascend and do not overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Arm {
    pub(crate) low: u8,
    pub(crate) high: u8,
    pub(crate) next: NodeId,
}

/// `body`, from `min` to `max` times. The body consumes at least one byte or token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountedLoop {
    pub(crate) body: NodeId,
    pub(crate) next: NodeId,
    pub(crate) min: u32,
    /// `None`: any number; then the count stops at `min`.
    pub(crate) max: Option<u32>,
    /// Least bytes that the body takes.
    pub(crate) body_cost: u32,
}

/// A lowered grammar.
///
/// Invariants: every node can reach [`Node::Return`], so a parse that is alive can be completed
/// (as far as the vocabulary can spell it); node 0 is `Return`; every cycle of splits and tail
/// calls passes a byte, a token, or is a repetition that the closure's visited set ends; no rule
/// is left-recursive.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) nodes: Vec<Node>,
    pub(crate) arms: Vec<Arm>,
    pub(crate) targets: Vec<NodeId>,
    pub(crate) loops: Vec<CountedLoop>,
    pub(crate) token_sets: Vec<TokenSet>,
    pub(crate) start: NodeId,
    /// Least bytes from a node to the end of its rule; a token counts as one.
    pub(crate) costs: Vec<u32>,
    /// Bytes that no switch tells apart share a class.
    pub(crate) classes: ByteClasses,
    /// What a wide switch repeats, sorted by node.
    pub(crate) char_loops: Vec<(NodeId, CharLoop)>,
}

impl Program {
    /// The node that ends a rule.
    pub(crate) const RETURN: NodeId = 0;

    /// The arms of a switch.
    #[inline]
    pub(crate) fn arms(&self, span: Span) -> &[Arm] {
        &self.arms[span.range()]
    }

    /// The targets of a split.
    #[inline]
    pub(crate) fn targets(&self, span: Span) -> &[NodeId] {
        &self.targets[span.range()]
    }

    /// Where a switch leads on a byte.
    #[inline]
    pub(crate) fn follow(&self, span: Span, byte: u8) -> Option<NodeId> {
        self.arms(span).iter().find(|arm| arm.low <= byte && byte <= arm.high).map(|arm| arm.next)
    }

    /// What the switch repeats, if it is wide enough to matter.
    pub(crate) fn char_loop(&self, node: NodeId) -> Option<&CharLoop> {
        let index = self.char_loops.binary_search_by_key(&node, |(node, _)| *node).ok()?;
        self.char_loops.get(index).map(|(_, char_loop)| char_loop)
    }

    /// Least bytes that finish a frame: from its node, with its register, to the end of its rule.
    pub(crate) fn frame_cost(&self, node: NodeId, count: u32) -> u32 {
        match self.nodes[node as usize] {
            Node::Loop(index) => self.loops[index as usize].cost_from(count, &self.costs),
            _ => self.costs[node as usize],
        }
    }

    /// Bytes of memory it takes, about.
    pub(crate) fn bytes(&self) -> usize {
        self.nodes.len() * (size_of::<Node>() + size_of::<u32>())
            + self.arms.len() * size_of::<Arm>()
            + self.targets.len() * size_of::<NodeId>()
            + self.loops.len() * size_of::<CountedLoop>()
            + self.char_loops.len() * size_of::<(NodeId, CharLoop)>()
    }
}

/// Counts that stand for many: a walk over the vocabulary need not know how far a loop has come
/// when the longest token cannot reach its bounds.
pub(crate) mod count {
    /// May end, and may go on for longer than any token.
    pub(crate) const FREE: u32 = u32::MAX;
    /// May not end within any token.
    pub(crate) const LOW: u32 = u32::MAX - 1;
    /// Greatest count that is a number.
    pub(crate) const MAX: u32 = u32::MAX - 2;
}

impl CountedLoop {
    /// Whether the loop may end after `count` rounds.
    #[inline]
    pub(crate) fn may_end(&self, count: u32) -> bool {
        count != count::LOW && count >= self.min
    }

    /// The count after one more round, if there may be one.
    #[inline]
    pub(crate) fn next_round(&self, count: u32) -> Option<u32> {
        match (count, self.max) {
            (count::FREE | count::LOW, _) => Some(count),
            (_, Some(max)) => (count < max).then(|| count + 1),
            (_, None) => Some((count + 1).min(self.min)),
        }
    }

    /// The count that stands for `count` as long as at most `bytes` more bytes are consumed.
    pub(crate) fn abstracted(&self, count: u32, bytes: u32) -> u32 {
        if count > count::MAX {
            return count;
        }
        // The round under way takes a byte at least, and each after it as many as the body.
        let rounds = bytes.saturating_sub(1) / self.body_cost.max(1) + 1;
        let ends_far = self.max.is_none_or(|max| max - count > rounds);
        if count >= self.min && ends_far {
            count::FREE
        } else if count < self.min && self.min - count > rounds {
            count::LOW
        } else {
            count
        }
    }

    /// Rounds that may still be made after `count`; `None`: any number.
    pub(crate) fn rounds_left(&self, count: u32) -> Option<u32> {
        if count > count::MAX { None } else { self.max.map(|max| max - count) }
    }

    fn cost_from(&self, count: u32, costs: &[u32]) -> u32 {
        // A low count can be any, so what it takes to finish has no bound.
        let rounds = match count {
            count::FREE => 0,
            count::LOW => return NO_WAY,
            count => self.min.saturating_sub(count),
        };
        let rounds_cost = if rounds == 0 { 0 } else { rounds.saturating_mul(self.body_cost) };
        rounds_cost.saturating_add(costs[self.next as usize])
    }
}

/// The classes of bytes that a program tells apart.
#[derive(Clone, Debug)]
pub(crate) struct ByteClasses {
    class_of: [u8; 256],
    representatives: Vec<u8>,
}

impl ByteClasses {
    /// The classes that these arms need.
    pub(crate) fn of_arms(arms: &[Arm]) -> Self {
        let mut starts = [false; 257];
        starts[0] = true;
        for arm in arms {
            starts[usize::from(arm.low)] = true;
            starts[usize::from(arm.high) + 1] = true;
        }
        let mut class_of = [0; 256];
        let mut representatives: Vec<u8> = Vec::new();
        for byte in 0..=255u8 {
            if starts[usize::from(byte)] {
                representatives.push(byte);
            }
            class_of[usize::from(byte)] = (representatives.len() - 1) as u8;
        }
        Self { class_of, representatives }
    }

    /// Class of a byte.
    #[inline]
    pub(crate) fn of(&self, byte: u8) -> usize {
        usize::from(self.class_of[usize::from(byte)])
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.representatives.len()
    }

    /// Some byte of a class.
    pub(crate) fn representative(&self, class: usize) -> u8 {
        self.representatives[class]
    }
}
