//! Nodes under construction, with what is looked up so that nothing is made twice.

use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::node_table::NodeTable;
use crate::grammar::expr::{ExprId, Mark, TokenSet};
use crate::grammar::free_places::LoweredFree;
use crate::grammar::members::Machine;
use crate::grammar::program::{Arm, CountedLoop, Node, NodeId, Role, Span};
use crate::grammar::text_places::QuotedText;

/// Nodes of a grammar of middle size: room for so many is made at once.
const NODES_EXPECTED: usize = 1_024;
/// Switches and places of such a grammar that are looked up: less, since their tables are copied
/// as they are.
const SWITCHES_EXPECTED: usize = 400;
pub(super) const LOWERED_EXPECTED: usize = 100;

/// What was made of a pool so far.
pub(super) struct Made {
    pub(super) nodes: Vec<Node>,
    /// Least bytes from each node to the end of its rule.
    pub(super) node_costs: Vec<u32>,
    pub(super) arms: Vec<Arm>,
    pub(super) targets: Vec<NodeId>,
    pub(super) loops: Vec<CountedLoop>,
    pub(super) token_sets: Vec<TokenSet>,
    pub(super) roles: Vec<Role>,
    pub(super) machines: Vec<Machine>,
    pub(super) texts: Vec<QuotedText>,
    pub(super) free_texts: Vec<LoweredFree>,
    pub(super) text_starts: NodeTable,
    pub(super) members_starts: NodeTable,
    pub(super) colons: Vec<Colon>,
    /// Where rules start.
    pub(super) starts: NodeTable,
    /// Where expressions start that are the bodies of rules.
    pub(super) bodies: NodeTable,
    pub(super) lowered: FxHashMap<(ExprId, NodeId), NodeId>,
    pub(super) consumers: FxHashMap<ExprId, ExprId>,
    /// Where a backslash leads, by where all escaped characters do.
    pub(super) escapes_known: FxHashMap<(NodeId, Role), NodeId>,
    /// The arms of all characters beyond ASCII, by where they lead, as a part of `wide_arms`.
    pub(super) wide_known: FxHashMap<(NodeId, Role), Span>,
    pub(super) wide_arms: Vec<Arm>,
    pub(super) switches: HashTable<NodeId>,
}

impl Made {
    /// Nothing but the end of a rule.
    pub(super) fn new() -> Self {
        Self {
            nodes: first_of(Node::Return),
            node_costs: first_of(0),
            arms: Vec::with_capacity(2 * NODES_EXPECTED),
            targets: Vec::with_capacity(NODES_EXPECTED),
            loops: Vec::new(),
            token_sets: Vec::new(),
            roles: first_of(Role::Plain),
            machines: Vec::new(),
            texts: Vec::new(),
            free_texts: Vec::new(),
            text_starts: NodeTable::default(),
            members_starts: NodeTable::default(),
            colons: Vec::new(),
            starts: NodeTable::default(),
            bodies: NodeTable::default(),
            lowered: FxHashMap::with_capacity_and_hasher(LOWERED_EXPECTED, FxBuildHasher),
            consumers: FxHashMap::default(),
            escapes_known: FxHashMap::default(),
            wide_known: FxHashMap::default(),
            wide_arms: Vec::new(),
            switches: HashTable::with_capacity(SWITCHES_EXPECTED),
        }
    }
}

impl Clone for Made {
    /// A copy with room for more.
    fn clone(&self) -> Self {
        Self {
            nodes: roomy(&self.nodes, NODES_EXPECTED),
            node_costs: roomy(&self.node_costs, NODES_EXPECTED),
            arms: roomy(&self.arms, 2 * NODES_EXPECTED),
            targets: roomy(&self.targets, NODES_EXPECTED),
            loops: self.loops.clone(),
            token_sets: self.token_sets.clone(),
            roles: roomy(&self.roles, NODES_EXPECTED),
            machines: self.machines.clone(),
            texts: self.texts.clone(),
            free_texts: self.free_texts.clone(),
            text_starts: self.text_starts.clone(),
            members_starts: self.members_starts.clone(),
            colons: self.colons.clone(),
            starts: self.starts.clone(),
            bodies: self.bodies.clone(),
            lowered: self.lowered.clone(),
            consumers: self.consumers.clone(),
            escapes_known: self.escapes_known.clone(),
            wide_known: self.wide_known.clone(),
            wide_arms: self.wide_arms.clone(),
            switches: self.switches.clone(),
        }
    }
}

/// What stands between a key and its value, with the gaps around it, and where it starts.
#[derive(Clone)]
pub(super) struct Colon {
    pub(super) text: Mark,
    pub(super) gap: ExprId,
    pub(super) start: NodeId,
}

/// A list that starts with `item`, with room for more.
fn first_of<T>(item: T) -> Vec<T> {
    let mut list = Vec::with_capacity(NODES_EXPECTED);
    list.push(item);
    list
}

/// A copy of a list, with room for so many more.
fn roomy<T: Copy>(list: &[T], more: usize) -> Vec<T> {
    let mut copy = Vec::with_capacity(list.len() + more);
    copy.extend_from_slice(list);
    copy
}
