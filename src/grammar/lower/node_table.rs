//! Nodes by the number of what they were made of.

use crate::grammar::program::NodeId;

/// Stands for a number that has no node.
const NONE: NodeId = NodeId::MAX;

/// A node for some of the numbers from zero on.
#[derive(Clone, Default)]
pub(super) struct NodeTable(Vec<NodeId>);

impl NodeTable {
    pub(super) fn get(&self, number: usize) -> Option<NodeId> {
        self.0.get(number).copied().filter(|node| *node != NONE)
    }

    pub(super) fn set(&mut self, number: usize, node: NodeId) {
        if self.0.len() <= number {
            self.0.resize(number + 1, NONE);
        }
        self.0[number] = node;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_node_they_were_given() {
        let mut table = NodeTable::default();
        table.set(5, 7);
        table.set(2, 0);
        table.set(5, 8);
        let found: Vec<Option<NodeId>> = (0..8).map(|number| table.get(number)).collect();
        assert_eq!(found, [None, None, Some(0), None, None, Some(8), None, None]);
    }
}
