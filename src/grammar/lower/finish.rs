//! The last passes over a graph: pruning of what cannot end, merging of splits.

use super::Graph;
use super::node_costs::Parts;
use crate::grammar::error::GrammarError;
use crate::grammar::free_places::FreePlaces;
use crate::grammar::limits::Fuel;
use crate::grammar::members::Progresses;
use crate::grammar::program::{Arm, ByteClasses, NO_WAY, Node, NodeId, Program, Role, Span};
use crate::grammar::text_places::TextNodes;

/// Turns a graph into a program that satisfies the invariants of [`Program`].
pub(super) fn finish(mut graph: Graph, fuel: &mut Fuel<'_>) -> Result<Program, GrammarError> {
    debug_assert_eq!(graph.wrong_cost(), None);
    prune(&mut graph);
    merge_splits(&mut graph, fuel)?;
    let classes = ByteClasses::of_arms(&graph.arms);
    let texts = TextNodes::new(std::mem::take(&mut graph.texts), &graph.costs);
    let mut program = Program {
        nodes: graph.nodes,
        arms: graph.arms,
        targets: graph.targets,
        loops: graph.loops,
        token_sets: graph.token_sets,
        start: graph.start,
        costs: graph.costs,
        classes,
        roles: if graph.machines.is_empty() && is_plain(&graph.roles) {
            Vec::new()
        } else {
            graph.roles
        },
        machines: graph.machines,
        texts,
        progresses: Progresses::default(),
        distinct_keys: graph.pool.has_distinct_keys(),
        free: FreePlaces::default(),
    };
    program.free = FreePlaces::new(graph.free_texts, &program);
    Ok(program)
}

fn is_plain(roles: &[Role]) -> bool {
    roles.iter().all(|role| *role == Role::Plain)
}

impl Graph {
    /// A node whose cost is not what follows from the nodes it leads to.
    fn wrong_cost(&self) -> Option<(NodeId, Node)> {
        let Self { arms, targets, loops, costs, .. } = self;
        let parts = Parts { arms, targets, loops, costs };
        let is_wrong = |&(node, kind): &(usize, &Node)| match *kind {
            Node::Enter { .. } => false,
            kind => parts.cost_of(kind) != costs[node],
        };
        let found = self.nodes.iter().enumerate().find(is_wrong);
        found.map(|(node, kind)| (node as NodeId, *kind))
    }
}

/// Takes away every way into a node that cannot reach its end.
fn prune(graph: &mut Graph) {
    let costs = &graph.costs;
    let lives = |node: NodeId| costs[node as usize] != NO_WAY;
    if costs.iter().all(|cost| *cost != NO_WAY) {
        return;
    }
    for index in 0..graph.nodes.len() {
        match graph.nodes[index] {
            Node::Switch(span) => {
                let kept = keep(&mut graph.arms[span.range()], |arm| lives(arm.next));
                graph.nodes[index] = Node::Switch(Span { first: span.first, count: kept });
            }
            Node::Split(span) => {
                let kept = keep(&mut graph.targets[span.range()], |&target| lives(target));
                graph.nodes[index] = Node::Split(Span { first: span.first, count: kept });
            }
            Node::Loop(loop_index) => {
                let counted = graph.loops[loop_index as usize];
                if !lives(counted.body) && lives(counted.next) {
                    // No round can be made, and none need be.
                    let first = graph.targets.len() as u32;
                    graph.targets.push(counted.next);
                    graph.nodes[index] = Node::Split(Span { first, count: 1 });
                }
            }
            _ => {}
        }
    }
}

/// Moves what is kept to the front, in order, and counts it.
fn keep<T: Copy>(items: &mut [T], mut is_kept: impl FnMut(&T) -> bool) -> u32 {
    let mut kept = 0;
    for index in 0..items.len() {
        if is_kept(&items[index]) {
            items[kept] = items[index];
            kept += 1;
        }
    }
    kept as u32
}

/// Leaves of one split, at most; larger ones stay as they are.
const LEAVES_MAX: usize = 256;

/// Turns splits into switches where no byte fits two of their leaves, and flattens the others:
/// then a parse is in one place where it was in several.
fn merge_splits(graph: &mut Graph, fuel: &mut Fuel<'_>) -> Result<(), GrammarError> {
    let (mut open, mut visited, mut leaves) = (Vec::new(), Vec::new(), Vec::new());
    let mut arms = Vec::new();
    for index in 0..graph.nodes.len() {
        let Node::Split(span) = graph.nodes[index] else { continue };
        if span.count == 0 {
            continue;
        }
        let targets = &graph.targets[span.range()];
        let of_kind = |is_it: fn(Node) -> bool| {
            targets.iter().filter(|target| is_it(graph.nodes[**target as usize])).count()
        };
        let is_flat = of_kind(|node| matches!(node, Node::Split(_))) == 0;
        if is_flat && of_kind(|node| matches!(node, Node::Switch(_))) < targets.len() {
            continue;
        }
        open.clear();
        visited.clear();
        leaves.clear();
        fuel.spend(1)?;
        open.push(index as NodeId);
        if !collect_leaves(graph, &mut open, &mut visited, &mut leaves) {
            continue;
        }
        fuel.spend(u32::try_from(visited.len()).unwrap_or(u32::MAX))?;
        graph.nodes[index] = if merge_arms(graph, &leaves, &mut arms) {
            let first = graph.arms.len() as u32;
            graph.arms.extend_from_slice(&arms);
            Node::Switch(Span { first, count: arms.len() as u32 })
        } else {
            let first = graph.targets.len() as u32;
            graph.targets.extend_from_slice(&leaves);
            Node::Split(Span { first, count: leaves.len() as u32 })
        };
    }
    Ok(())
}

/// What open splits reach through splits alone; false if that is too much.
fn collect_leaves(
    graph: &Graph,
    open: &mut Vec<NodeId>,
    visited: &mut Vec<NodeId>,
    leaves: &mut Vec<NodeId>,
) -> bool {
    while let Some(node) = open.pop() {
        if visited.contains(&node) {
            continue;
        }
        if visited.len() >= LEAVES_MAX {
            return false;
        }
        visited.push(node);
        match graph.nodes[node as usize] {
            Node::Split(span) => open.extend(graph.targets[span.range()].iter().rev()),
            _ => leaves.push(node),
        }
    }
    true
}

/// Gathers the arms of the leaves; whether all leaves are switches and no two arms overlap.
fn merge_arms(graph: &Graph, leaves: &[NodeId], arms: &mut Vec<Arm>) -> bool {
    arms.clear();
    for &leaf in leaves {
        let Node::Switch(span) = graph.nodes[leaf as usize] else { return false };
        arms.extend_from_slice(&graph.arms[span.range()]);
    }
    arms.sort_unstable_by_key(|arm| arm.low);
    arms.windows(2).all(|pair| pair[0].high < pair[1].low)
}
