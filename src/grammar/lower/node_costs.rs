//! What a node costs, given what those cost that it leads to.

use crate::grammar::program::{Arm, CountedLoop, NO_WAY, Node, NodeId};

/// What nodes refer to.
pub(super) struct Parts<'g> {
    pub(super) arms: &'g [Arm],
    pub(super) targets: &'g [NodeId],
    pub(super) loops: &'g [CountedLoop],
    pub(super) costs: &'g [u32],
}

impl Parts<'_> {
    /// Least bytes from a node to the end of its rule; of an object that is entered, its members
    /// apart.
    pub(super) fn cost_of(&self, node: Node) -> u32 {
        let cost = |node: NodeId| self.costs[node as usize];
        match node {
            Node::Return | Node::Hub { .. } => 0,
            Node::Tick { next, .. } | Node::Member { next, .. } | Node::Close { next, .. } => {
                cost(next)
            }
            Node::Switch(span) => {
                let ways = self.arms[span.range()].iter().map(|arm| cost(arm.next));
                ways.min().unwrap_or(NO_WAY).saturating_add(1)
            }
            Node::Split(span) => {
                let ways = self.targets[span.range()].iter().map(|&target| cost(target));
                ways.min().unwrap_or(NO_WAY)
            }
            Node::Enter { start, next, .. } | Node::Call { start, next } => {
                cost(start).saturating_add(cost(next))
            }
            Node::Loop(index) => {
                let counted = &self.loops[index as usize];
                let rounds = match counted.min {
                    0 => 0,
                    min => min.saturating_mul(counted.body_cost),
                };
                rounds.saturating_add(cost(counted.next))
            }
            Node::Token { next, .. } => cost(next).saturating_add(1),
        }
    }
}
