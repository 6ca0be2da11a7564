//! Finds new states: follows one byte or token and closes over what costs nothing.

use hashbrown::HashTable;
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};

use super::automaton::{Config, ConfigFacts, ConfigId};
use super::error::LimitError;
use super::hubs::Hubs;
use super::limits::{Fuel, Limits};
use super::members::Progresses;
use super::program::{MemberCosts, Node, NodeId, Program, Role};
use crate::TokenId;

/// A hash-consed stack of frames, by its top.
pub(crate) type StackId = u32;

/// The stack without frames.
pub(crate) const BOTTOM: StackId = 0;

/// Frames a stack may have: a text that nests deeper is refused.
const HEIGHT_MAX: u32 = 100_000;

/// The top of a stack: where to go on, and with what below.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) node: NodeId,
    /// The register: rounds made by a counted loop, or what the node's role says; else 0.
    pub(crate) count: u32,
    pub(crate) parent: StackId,
    /// Frames in the stack, this one included.
    pub(crate) height: u32,
    /// Least bytes that complete the answer from here.
    pub(crate) finish_bytes: u32,
    /// Whether this frame or one below it counts rounds.
    pub(crate) has_counts: bool,
    /// Whether this frame or one below it holds the progress of an object.
    pub(crate) has_progress: bool,
}

/// The outcome of a step, not yet interned.
#[derive(Debug, Default)]
pub(crate) struct Closed {
    /// Stacks whose tops consume, ascending and distinct.
    pub(crate) items: Vec<StackId>,
    pub(crate) accepting: bool,
    /// Height of the lowest frame that was looked at; 0: the bottom.
    pub(crate) floor: u32,
}

/// The interned stacks of one automaton, and the scratch space of a step.
pub(crate) struct Builder {
    frames: Vec<Frame>,
    frame_ids: HashTable<StackId>,
    config_ids: HashTable<ConfigId>,
    token_edges: FxHashMap<(ConfigId, TokenId), ConfigId>,
    closed: Closed,
    open: Vec<(NodeId, u32, StackId)>,
    visited: Visited,
    items_max: usize,
    frames_counted: usize,
    member_costs: MemberCosts,
    hubs: Hubs,
}

/// Places that a closure has been to: few as a rule, so a list comes before the set.
#[derive(Default)]
struct Visited {
    few: SmallVec<[(NodeId, u32, StackId); 16]>,
    many: FxHashSet<(NodeId, u32, StackId)>,
}

impl Visited {
    fn clear(&mut self) {
        self.few.clear();
        if !self.many.is_empty() {
            self.many = FxHashSet::default();
        }
    }

    /// Whether the place is new; it is not the next time.
    fn insert(&mut self, place: (NodeId, u32, StackId)) -> bool {
        if self.few.contains(&place) {
            return false;
        }
        if self.few.len() < self.few.inline_size() {
            self.few.push(place);
            return true;
        }
        self.many.insert(place)
    }
}

/// States that the first mask takes: room for so many is made at once.
const STATES_EXPECTED: usize = 28;

fn hash_of(value: impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    value.hash(&mut hasher);
    hasher.finish()
}

impl Builder {
    pub(super) fn new(limits: &Limits) -> Self {
        let bottom = Frame {
            node: Program::RETURN,
            count: 0,
            parent: BOTTOM,
            height: 0,
            finish_bytes: 0,
            has_counts: false,
            has_progress: false,
        };
        let mut frames = Vec::with_capacity(STATES_EXPECTED);
        frames.push(bottom);
        Self {
            frames,
            frame_ids: HashTable::with_capacity(STATES_EXPECTED),
            config_ids: HashTable::with_capacity(STATES_EXPECTED),
            token_edges: FxHashMap::default(),
            closed: Closed::default(),
            open: Vec::new(),
            visited: Visited::default(),
            items_max: limits.items_max,
            frames_counted: 0,
            member_costs: MemberCosts::default(),
            hubs: Hubs::default(),
        }
    }

    /// The top frame of a stack.
    pub(crate) fn frame(&self, stack: StackId) -> &Frame {
        &self.frames[stack as usize]
    }

    /// The outcome of the last step.
    pub(crate) fn closed(&self) -> &Closed {
        &self.closed
    }

    /// Makes the last outcome one without items.
    pub(super) fn clear(&mut self) {
        self.closed.items.clear();
        self.closed.accepting = false;
        self.closed.floor = u32::MAX;
        self.open.clear();
        self.visited.clear();
    }

    /// The closure of the program's start.
    pub(super) fn start(
        &mut self,
        program: &Program,
        fuel: &mut Fuel<'_>,
    ) -> Result<(), LimitError> {
        self.close_from(program, program.start, BOTTOM, fuel)
    }

    /// The closure of one node over a stack.
    pub(super) fn close_from(
        &mut self,
        program: &Program,
        node: NodeId,
        parent: StackId,
        fuel: &mut Fuel<'_>,
    ) -> Result<(), LimitError> {
        self.close_at(program, (node, 0, parent), fuel)
    }

    /// The closure of one node with a register over a stack.
    pub(super) fn close_at(
        &mut self,
        program: &Program,
        place: (NodeId, u32, StackId),
        fuel: &mut Fuel<'_>,
    ) -> Result<(), LimitError> {
        self.clear();
        self.open.push(place);
        self.close(program, fuel)
    }

    /// The closure of a node of an object of which nothing is known, over the bottom.
    pub(super) fn close_any(
        &mut self,
        program: &Program,
        node: NodeId,
        fuel: &mut Fuel<'_>,
    ) -> Result<(), LimitError> {
        self.clear();
        self.open.push((node, Progresses::ANY, BOTTOM));
        self.close(program, fuel)
    }

    /// The closure of a node that takes the place of a stack's top.
    pub(super) fn close_beside(
        &mut self,
        program: &Program,
        item: StackId,
        node: NodeId,
        fuel: &mut Fuel<'_>,
    ) -> Result<(), LimitError> {
        self.clear();
        let frame = self.frames[item as usize];
        self.open.push((node, frame.count, frame.parent));
        self.close(program, fuel)
    }

    /// What follows `items` on a byte.
    pub(super) fn step(
        &mut self,
        program: &Program,
        items: &[StackId],
        byte: u8,
        fuel: &mut Fuel<'_>,
    ) -> Result<(), LimitError> {
        self.clear();
        for &item in items {
            let frame = self.frames[item as usize];
            self.closed.floor = self.closed.floor.min(frame.height);
            if let Node::Switch(span) = program.nodes[frame.node as usize]
                && let Some(next) = program.follow(span, byte)
            {
                self.open.push((next, frame.count, frame.parent));
            }
        }
        self.close(program, fuel)
    }

    /// What follows `items` on a token that is in the token sets for which `is_in` holds.
    pub(super) fn step_token(
        &mut self,
        program: &Program,
        items: &[StackId],
        is_in: &dyn Fn(u32) -> bool,
        fuel: &mut Fuel<'_>,
    ) -> Result<(), LimitError> {
        self.clear();
        for &item in items {
            let frame = self.frames[item as usize];
            self.closed.floor = self.closed.floor.min(frame.height);
            if let Node::Token { set, next } = program.nodes[frame.node as usize]
                && is_in(set)
            {
                self.open.push((next, frame.count, frame.parent));
            }
        }
        self.close(program, fuel)
    }

    /// Adds the items of another state to the outcome.
    pub(super) fn join(&mut self, items: &[StackId], accepting: bool) {
        self.closed.items.extend_from_slice(items);
        self.closed.items.sort_unstable();
        self.closed.items.dedup();
        self.closed.accepting |= accepting;
    }

    /// Goes on from all open places until each has come to something that consumes.
    fn close(&mut self, program: &Program, fuel: &mut Fuel<'_>) -> Result<(), LimitError> {
        while let Some((node, count, parent)) = self.open.pop() {
            fuel.spend(1)?;
            match program.nodes[node as usize] {
                Node::Return => self.pop_frame(parent),
                Node::Switch(_) | Node::Token { .. } if !program.has_room(node, count) => {}
                Node::Switch(_) | Node::Token { .. } => {
                    let item = self.push_frame(program, node, count, parent)?;
                    self.closed.items.push(item);
                    if self.closed.items.len() > self.items_max {
                        self.settle();
                        if self.closed.items.len() > self.items_max {
                            return Err(LimitError::Items { max: self.items_max });
                        }
                    }
                }
                Node::Split(span) => {
                    if self.visited.insert((node, count, parent)) {
                        let targets = program.targets(span);
                        self.open.extend(targets.iter().map(|&target| (target, count, parent)));
                    }
                }
                Node::Call { start, next } => {
                    let frame = self.push_frame(program, next, count, parent)?;
                    self.open.push((start, 0, frame));
                }
                Node::Enter { start, next, register } => {
                    // What follows a tail call is what follows the caller.
                    let below = match next {
                        Program::RETURN => parent,
                        _ => self.push_frame(program, next, count, parent)?,
                    };
                    self.open.push((start, register, below));
                }
                Node::Hub { next } => self.open.push((next, count, parent)),
                Node::Tick { .. } | Node::Member { .. } | Node::Close { .. } => {
                    if let Some((next, count)) = program.pass(node, count) {
                        self.open.push((next, count, parent));
                    }
                }
                Node::Loop(index) => {
                    if self.visited.insert((node, count, parent)) {
                        let counted = &program.loops[index as usize];
                        if counted.may_end(count) {
                            self.open.push((counted.next, 0, parent));
                        }
                        if let Some(count) = counted.next_round(count) {
                            let frame = self.push_frame(program, node, count, parent)?;
                            self.open.push((counted.body, 0, frame));
                        }
                    }
                }
            }
        }
        self.settle();
        Ok(())
    }

    fn settle(&mut self) {
        self.closed.items.sort_unstable();
        self.closed.items.dedup();
    }

    fn pop_frame(&mut self, stack: StackId) {
        let frame = self.frames[stack as usize];
        self.closed.floor = self.closed.floor.min(frame.height);
        if stack == BOTTOM {
            self.closed.accepting = true;
        } else {
            self.open.push((frame.node, frame.count, frame.parent));
        }
    }

    /// The stack with one more frame.
    pub(crate) fn push_frame(
        &mut self,
        program: &Program,
        node: NodeId,
        count: u32,
        parent: StackId,
    ) -> Result<StackId, LimitError> {
        let hash = hash_of((node, count, parent));
        let frames = &self.frames;
        let same = |&id: &StackId| {
            let frame = &frames[id as usize];
            frame.node == node && frame.count == count && frame.parent == parent
        };
        if let Some(&id) = self.frame_ids.find(hash, same) {
            return Ok(id);
        }
        let below = self.frames[parent as usize];
        if below.height >= HEIGHT_MAX {
            return Err(LimitError::Depth { max: HEIGHT_MAX });
        }
        let id = self.frames.len() as StackId;
        let cost = program.frame_cost(node, count, &mut self.member_costs);
        self.frames.push(Frame {
            node,
            count,
            parent,
            height: below.height + 1,
            finish_bytes: below.finish_bytes.saturating_add(cost),
            has_counts: below.has_counts || program.counts(node),
            has_progress: below.has_progress || program.role(node).is_progress(),
        });
        let frames = &self.frames;
        self.frame_ids.insert_unique(hash, id, |&id| {
            let frame = &frames[id as usize];
            hash_of((frame.node, frame.count, frame.parent))
        });
        Ok(id)
    }

    /// The interned state that equals the outcome.
    pub(super) fn find_config<'c>(
        &self,
        config: impl Fn(ConfigId) -> &'c Config,
    ) -> Option<ConfigId> {
        let hash = hash_of((&*self.closed.items, self.closed.accepting));
        let same = |&id: &ConfigId| {
            let known = config(id);
            known.accepting == self.closed.accepting && *known.items == *self.closed.items
        };
        self.config_ids.find(hash, same).copied()
    }

    /// Remembers a state that was made of the outcome.
    pub(super) fn add_config<'c>(&mut self, id: ConfigId, config: impl Fn(ConfigId) -> &'c Config) {
        let hash_config = |id: ConfigId| {
            let known = config(id);
            hash_of((&*known.items, known.accepting))
        };
        self.config_ids.insert_unique(hash_config(id), id, |&id| hash_config(id));
    }

    pub(super) fn facts(&self, program: &Program) -> ConfigFacts {
        let mut facts = ConfigFacts {
            has_token_items: false,
            has_counts: false,
            has_progress: false,
            opens_object: false,
            finish_bytes: if self.closed.accepting { 0 } else { u32::MAX },
            alive: [0; 4],
        };
        for &item in &self.closed.items {
            let frame = &self.frames[item as usize];
            facts.finish_bytes = facts.finish_bytes.min(frame.finish_bytes);
            facts.has_counts |= frame.has_counts;
            facts.has_progress |= frame.has_progress;
            facts.opens_object |= program.distinct_keys && program.opens_object(frame.node);
            match program.nodes[frame.node as usize] {
                Node::Switch(span) => {
                    for arm in program.arms(span) {
                        set_bytes(&mut facts.alive, arm.low, arm.high);
                    }
                }
                _ => facts.has_token_items = true,
            }
        }
        facts
    }

    /// Bytes of memory taken since the last call, about.
    pub(super) fn new_bytes(&mut self) -> usize {
        /// A frame, its share of the table, and that of the state it belongs to.
        const FRAME_BYTES: usize = size_of::<Frame>() + 12;
        let new = self.frames.len() - self.frames_counted;
        self.frames_counted = self.frames.len();
        new * FRAME_BYTES + 16
    }

    pub(super) fn token_edge(&self, from: ConfigId, token: TokenId) -> Option<ConfigId> {
        self.token_edges.get(&(from, token)).copied()
    }

    pub(super) fn add_token_edge(&mut self, from: ConfigId, token: TokenId, to: ConfigId) {
        self.token_edges.insert((from, token), to);
    }

    /// Nodes and counts of a stack's frames, from the bottom up.
    pub(super) fn frames_of(&self, item: StackId) -> Vec<(NodeId, u32)> {
        let mut frames = Vec::new();
        let mut stack = item;
        while stack != BOTTOM {
            let frame = &self.frames[stack as usize];
            frames.push((frame.node, frame.count));
            stack = frame.parent;
        }
        frames.reverse();
        frames
    }

    /// Makes the next outcome of stacks given by their frames, from the bottom up.
    pub(super) fn restore(
        &mut self,
        program: &Program,
        stacks: &[Vec<(NodeId, u32)>],
        accepting: bool,
    ) -> Result<(), LimitError> {
        self.clear();
        for frames in stacks {
            let mut stack = BOTTOM;
            for &(node, count) in frames {
                stack = self.push_frame(program, node, count, stack)?;
            }
            self.closed.items.push(stack);
        }
        self.closed.accepting = accepting;
        self.settle();
        Ok(())
    }

    /// Replaces every stack of `items` by one whose counts are abstract for up to `bytes` more
    /// bytes, as the next outcome. If it is known what tokens hold of keys, `beginnings`, objects
    /// that no token can tell apart are made the same too.
    pub(super) fn abstract_registers(
        &mut self,
        program: &Program,
        (items, accepting): (&[StackId], bool),
        bytes: u32,
        beginnings: Option<&[Box<[u8]>]>,
    ) -> Result<(), LimitError> {
        self.clear();
        for &item in items {
            let mut above = Vec::new();
            let mut stack = item;
            loop {
                let frame = self.frames[stack as usize];
                if !(frame.has_counts || beginnings.is_some() && frame.has_progress) {
                    break;
                }
                above.push(frame);
                stack = frame.parent;
            }
            for frame in above.into_iter().rev() {
                let (node, count) = match (program.role(frame.node), beginnings) {
                    (Role::ToHub { machine, .. }, Some(beginnings)) => {
                        let place = (frame.node, frame.count);
                        self.hubs.stand_in(program, beginnings, machine, place)
                    }
                    _ => (frame.node, program.abstracted(frame.node, frame.count, bytes)),
                };
                stack = self.push_frame(program, node, count, stack)?;
            }
            self.closed.items.push(stack);
        }
        self.closed.accepting = accepting;
        self.settle();
        Ok(())
    }
}

/// Adds the bytes from `low` to `high` to a set of bytes.
fn set_bytes(set: &mut [u64; 4], low: u8, high: u8) {
    for byte in low..=high {
        set[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }
}
