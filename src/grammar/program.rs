//! The lowered grammar: a flat graph of nodes that a parse walks, byte by byte.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::charloop::CharLoop;
use super::expr::TokenSet;
use super::free_places::FreePlaces;
use super::key_reach::NodeKeys;
use super::members::{Facts, KeyId, Machine, Progress, Progresses};
use super::text_places::TextNodes;

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
    /// As `Call`, with something in the register of the new top frame.
    Enter { start: NodeId, next: NodeId, register: u32 },
    /// A character is done: the register counts how many more may come, and it takes at least
    /// `needs` of them to end the text from `next`.
    Tick { next: NodeId, needs: u32 },
    /// A key is written.
    Member { machine: u32, key: u32, next: NodeId },
    /// Where the next member starts or the object ends; what that takes the register says.
    Hub { next: NodeId },
    /// Go on only if the object may end.
    Close { machine: u32, next: NodeId },
}

/// What the register of a frame means, by the frame's node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    /// Nothing, or the rounds of a counted loop.
    #[default]
    Plain,
    /// Characters that may still come; it never takes more than `needs_max` to end the text.
    Characters { needs_max: u32 },
    /// The same within a character that takes several bytes: it takes `least` to end the text.
    InCharacter { least: u32, needs_max: u32 },
    /// Progress of an object, on the way to its next hub.
    ToHub { machine: u32, is_first: bool },
    /// Progress of an object, at a state of the key.
    Key { machine: u32, state: u32 },
    /// Progress of an object, on the way to a state of the key or past its end.
    InKey { machine: u32 },
}

impl Role {
    /// Whether the register is the progress of an object.
    pub(crate) fn is_progress(self) -> bool {
        matches!(self, Self::ToHub { .. } | Self::Key { .. } | Self::InKey { .. })
    }
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arm {
    pub(crate) low: u8,
    pub(crate) high: u8,
    pub(crate) next: NodeId,
}

impl Hash for Arm {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let range = u64::from(self.low) | u64::from(self.high) << 8;
        state.write_u64(range | u64::from(self.next) << 16);
    }
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

/// Least bytes to the end of an object, by node and register.
pub(crate) type MemberCosts = rustc_hash::FxHashMap<(NodeId, u32), u32>;

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
    /// What registers mean, by node; empty if all are plain.
    pub(crate) roles: Vec<Role>,
    /// The rules of objects.
    pub(crate) machines: Vec<Machine>,
    /// Texts between quotes.
    pub(crate) texts: TextNodes,
    /// How far objects have come, by the numbers that registers hold.
    pub(crate) progresses: Progresses,
    /// Whether no object may have a key twice.
    pub(crate) distinct_keys: bool,
    /// The switches of free texts.
    pub(crate) free: FreePlaces,
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
    pub(crate) fn char_loop(&self, node: NodeId) -> Option<CharLoop> {
        CharLoop::find(self, node)
    }

    /// Whether a node consumes the byte that opens an object.
    pub(crate) fn opens_object(&self, node: NodeId) -> bool {
        let opens = |span| self.follow(span, b'{').is_some();
        matches!(self.role(node), Role::ToHub { is_first: true, .. })
            && matches!(self.nodes[node as usize], Node::Switch(span) if opens(span))
    }

    /// Whether a quote at this node ends a key that is not declared.
    pub(crate) fn ends_free_key(&self, node: NodeId) -> bool {
        let (Role::Key { .. }, Node::Switch(span)) = (self.role(node), self.nodes[node as usize])
        else {
            return false;
        };
        self.follow(span, b'"').is_some_and(|next| match self.nodes[next as usize] {
            Node::Member { machine, key, .. } => !self.machines[machine as usize].is_declared(key),
            _ => false,
        })
    }

    /// What the register of a frame at a node means.
    #[inline]
    pub(crate) fn role(&self, node: NodeId) -> Role {
        self.roles.get(node as usize).copied().unwrap_or_default()
    }

    /// Least bytes that finish a frame: from its node, with its register, to the end of its rule.
    /// `known` keeps what was found out about places in objects.
    pub(crate) fn frame_cost(&self, node: NodeId, count: u32, known: &mut MemberCosts) -> u32 {
        if let Node::Loop(index) = self.nodes[node as usize] {
            return self.loops[index as usize].cost_from(count, &self.costs);
        }
        match self.role(node) {
            Role::Plain | Role::Characters { .. } | Role::InCharacter { .. } => {
                self.costs[node as usize]
            }
            Role::ToHub { .. } if count == Progresses::ANY => self.costs[node as usize],
            Role::Key { .. } | Role::InKey { .. } if count == Progresses::ANY => 0,
            Role::ToHub { .. } | Role::Key { .. } | Role::InKey { .. } => {
                if let Some(&cost) = known.get(&(node, count)) {
                    return cost;
                }
                let progress = self.progresses.get(count);
                self.member_cost(node, (count, &progress), known)
            }
        }
    }

    /// Least bytes from a node of an object to the object's end.
    fn member_cost(&self, node: NodeId, at: (u32, &Progress), known: &mut MemberCosts) -> u32 {
        if let Some(&cost) = known.get(&(node, at.0)) {
            return cost;
        }
        let cost = match self.role(node) {
            Role::Plain | Role::Characters { .. } | Role::InCharacter { .. } => {
                self.costs[node as usize]
            }
            Role::ToHub { machine, is_first } => {
                let rest = self.machines[machine as usize].finish_bytes(at.1, is_first);
                self.costs[node as usize].saturating_add(rest)
            }
            Role::Key { machine, state } => {
                self.machines[machine as usize].bytes_from_key(at.1, state)
            }
            // What lies between two states of a key has no cycle.
            Role::InKey { .. } => self.cost_in_key(node, at, known),
        };
        known.insert((node, at.0), cost);
        cost
    }

    fn cost_in_key(&self, node: NodeId, at: (u32, &Progress), known: &mut MemberCosts) -> u32 {
        let mut least = |nodes: &mut dyn Iterator<Item = NodeId>| {
            nodes.map(|node| self.member_cost(node, at, known)).min().unwrap_or(NO_WAY)
        };
        match self.nodes[node as usize] {
            Node::Switch(span) => {
                least(&mut self.arms(span).iter().map(|arm| arm.next)).saturating_add(1)
            }
            Node::Split(span) => least(&mut self.targets(span).iter().copied()),
            Node::Token { next, .. } => self.member_cost(next, at, known).saturating_add(1),
            Node::Member { machine, key, .. } => {
                self.machines[machine as usize].bytes_after_key(at.1, key)
            }
            _ => self.costs[node as usize],
        }
    }

    /// Where a node that consumes nothing and looks at the register leads, and with what in it.
    pub(crate) fn pass(&self, node: NodeId, register: u32) -> Option<(NodeId, u32)> {
        match self.nodes[node as usize] {
            Node::Tick { next, needs } => match register {
                count::FREE => Some((next, count::FREE)),
                _ => (register > needs).then(|| (next, register - 1)),
            },
            Node::Member { machine, key, next } => {
                let after = self.after_key(machine, register, key)?;
                Some((next, after))
            }
            Node::Close { machine, next } => {
                self.facts(machine, register).may_close.then_some((next, 0))
            }
            _ => None,
        }
    }

    /// Whether the register of a frame at this node is a count that can be made abstract.
    pub(crate) fn counts(&self, node: NodeId) -> bool {
        matches!(self.nodes[node as usize], Node::Loop(_))
            || matches!(self.role(node), Role::Characters { .. } | Role::InCharacter { .. })
    }

    /// Whether the register leaves room for what is under way at a node: the character, or a key
    /// that may come.
    #[inline]
    pub(crate) fn has_room(&self, node: NodeId, register: u32) -> bool {
        match self.role(node) {
            Role::InCharacter { least, .. } => register >= least,
            Role::Key { machine, .. } | Role::InKey { machine } => {
                let facts = self.facts(machine, register);
                // Every node of the key leads to some key.
                facts.may_add_all || {
                    let set = self.key_set_of(machine, node);
                    facts.may_add(self.machines[machine as usize].key_set(set))
                }
            }
            _ => true,
        }
    }

    /// What an object's progress means for it.
    pub(crate) fn facts(&self, machine: u32, register: u32) -> Arc<Facts> {
        self.progresses.facts(&self.machines[machine as usize], machine, register)
    }

    /// Which keys may come of the nodes of an object's key.
    pub(crate) fn node_keys(&self, machine: u32) -> &NodeKeys {
        self.machines[machine as usize].node_keys(|| NodeKeys::new(self, machine))
    }

    /// The number of the set of keys that may come of a node of an object's key.
    pub(crate) fn key_set_of(&self, machine: u32, node: NodeId) -> u32 {
        self.node_keys(machine).of_node(node)
    }

    /// The register after a key, if the key may come.
    pub(crate) fn after_key(&self, machine: u32, register: u32, key: KeyId) -> Option<u32> {
        if register == Progresses::ANY {
            return Some(register);
        }
        let progress = self.progresses.get(register);
        let after = self.machines[machine as usize].after(&progress, key)?;
        Some(self.progresses.number(after))
    }

    /// The register that stands for `register` as long as at most `rounds` more are counted.
    pub(crate) fn abstracted(&self, node: NodeId, register: u32, rounds: u32) -> u32 {
        match (self.nodes[node as usize], self.role(node)) {
            (Node::Loop(index), _) => self.loops[index as usize].abstracted(register, rounds),
            (_, Role::Characters { needs_max } | Role::InCharacter { needs_max, .. })
                if register > needs_max.saturating_add(rounds) =>
            {
                count::FREE
            }
            _ => register,
        }
    }

    /// Bytes of memory it takes, about.
    pub(crate) fn bytes(&self) -> usize {
        self.nodes.len() * (size_of::<Node>() + size_of::<u32>())
            + self.arms.len() * size_of::<Arm>()
            + self.targets.len() * size_of::<NodeId>()
            + self.loops.len() * size_of::<CountedLoop>()
            + self.roles.len() * size_of::<Role>()
            + self.machines.iter().map(Machine::bytes_of_keys).sum::<usize>()
            + self.progresses.bytes()
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
        let mut representatives: Vec<u8> = Vec::with_capacity(256);
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
