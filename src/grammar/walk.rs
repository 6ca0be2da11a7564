//! Which tokens lead somewhere from a state, and where.

use super::automaton::{Automaton, Config, ConfigId, DEAD};
use super::error::LimitError;
use super::limits::Fuel;
use super::trie::{NO_TOKEN, Trie};
use crate::TokenId;

/// Nodes between two payments of fuel.
const NODES_PER_PAYMENT: u32 = 512;

/// Walks `trie` from the state `start` and calls `landed` with each token whose bytes are alive to the end,
/// and with the state it leads to. Returns the height of the lowest frame that was looked at.
pub(crate) fn walk(
    automaton: &Automaton,
    trie: &Trie,
    start: &Config,
    fuel: &mut Fuel<'_>,
    mut landed: impl FnMut(TokenId, ConfigId, &Config) -> Result<(), LimitError>,
) -> Result<u32, LimitError> {
    let mut floor = u32::MAX;
    // The state after each byte of the path; the first entry is the one before any.
    let mut states: Vec<&Config> = vec![start; trie.depth_max() + 1];
    let nodes = trie.nodes();
    let mut index = 0;
    let mut unpaid = 0;
    while let Some(node) = nodes.get(index) {
        unpaid += 1;
        if unpaid == NODES_PER_PAYMENT {
            fuel.spend(unpaid)?;
            unpaid = 0;
        }
        let depth = usize::from(node.depth);
        let edge = automaton.edge(states[depth], node.byte, fuel)?;
        if edge.to == DEAD {
            index = node.skip as usize;
            continue;
        }
        floor = floor.min(edge.floor);
        let config = automaton.config(edge.to);
        states[depth + 1] = config;
        if node.token != NO_TOKEN {
            landed(node.token, edge.to, config)?;
        }
        index += 1;
    }
    fuel.spend(unpaid)?;
    Ok(floor)
}
