//! The last passes over a graph: costs, pruning of what cannot end, merging of splits.

use super::Graph;
use crate::grammar::charloop::CharLoop;
use crate::grammar::error::GrammarError;
use crate::grammar::expr::RuleId;
use crate::grammar::free_places::FreePlaces;
use crate::grammar::limits::Fuel;
use crate::grammar::members::{KeySet, Machine, Progress, Progresses, insert};
use crate::grammar::program::{Arm, ByteClasses, NO_WAY, Node, NodeId, Program, Role, Span};
use crate::grammar::text_places::TextNodes;

/// Turns a graph into a program that satisfies the invariants of [`Program`].
pub(super) fn finish(
    mut graph: Graph,
    root: RuleId,
    fuel: &mut Fuel<'_>,
) -> Result<Program, GrammarError> {
    let costs = least_costs(&mut graph, fuel)?;
    if costs[graph.start as usize] == NO_WAY {
        return Err(GrammarError::MatchesNothing { rule: culprit(&graph, root, &costs) });
    }
    prune(&mut graph, &costs);
    merge_splits(&mut graph, fuel)?;
    for counted in &mut graph.loops {
        counted.body_cost = costs[counted.body as usize];
    }
    let classes = ByteClasses::of_arms(&graph.arms);
    let texts = TextNodes::new(std::mem::take(&mut graph.texts), &costs);
    let mut program = Program {
        nodes: graph.nodes,
        arms: graph.arms,
        targets: graph.targets,
        loops: graph.loops,
        token_sets: graph.token_sets,
        start: graph.start,
        costs,
        classes,
        char_loops: Vec::new(),
        roles: if graph.machines.is_empty() && is_plain(&graph.roles) {
            Vec::new()
        } else {
            graph.roles
        },
        machines: graph.machines,
        texts,
        key_sets: Vec::new(),
        progresses: Progresses::default(),
        distinct_keys: graph.pool.has_distinct_keys(),
        free: FreePlaces::default(),
    };
    program.free = FreePlaces::new(graph.free_texts, &program);
    program.char_loops = CharLoop::find_all(&program);
    find_key_sets(&mut program, fuel)?;
    Ok(program)
}

/// Finds out which keys may come of the nodes on the way to one and in one.
fn find_key_sets(program: &mut Program, fuel: &mut Fuel<'_>) -> Result<(), GrammarError> {
    program.machines.iter_mut().for_each(Machine::settle_free_key);
    program.key_sets = vec![NO_SET; program.roles.len()];
    for node in 0..program.roles.len() {
        let of_state = match program.roles[node] {
            Role::Key { machine, state } => Some((machine, state)),
            _ => None,
        };
        if let Some((machine, state)) = of_state {
            let machine = &mut program.machines[machine as usize];
            let keys = machine.keys_from(state);
            fuel.spend(1 + keys.len() as u32)?;
            program.key_sets[node] = machine.set(keys);
        }
    }
    for node in 0..program.roles.len() as NodeId {
        find_key_set(program, node, fuel)?;
    }
    Ok(())
}

/// Stands for the set of a node that is not known yet.
const NO_SET: u32 = u32::MAX;

/// The set of one node, if it is on the way to a key: what lies between two states has no cycle.
fn find_key_set(
    program: &mut Program,
    node: NodeId,
    fuel: &mut Fuel<'_>,
) -> Result<Option<u32>, GrammarError> {
    let machine = match program.roles[node as usize] {
        Role::Key { .. } => return Ok(Some(program.key_sets[node as usize])),
        Role::InKey { machine } => machine,
        _ => return Ok(None),
    };
    if program.key_sets[node as usize] != NO_SET {
        return Ok(Some(program.key_sets[node as usize]));
    }
    fuel.spend(1)?;
    let nexts: Vec<NodeId> = match program.nodes[node as usize] {
        Node::Switch(span) => program.arms(span).iter().map(|arm| arm.next).collect(),
        Node::Split(span) => program.targets(span).to_vec(),
        Node::Token { next, .. } => vec![next],
        _ => Vec::new(),
    };
    let mut keys = KeySet::new();
    if let Node::Member { key, .. } = program.nodes[node as usize] {
        insert(&mut keys, key);
    }
    for next in nexts {
        let Some(set) = find_key_set(program, next, fuel)? else { continue };
        let more = program.machines[machine as usize].key_set(set);
        if keys.len() < more.len() {
            keys.resize(more.len(), 0);
        }
        keys.iter_mut().zip(more).for_each(|(word, more)| *word |= more);
    }
    let set = program.machines[machine as usize].set(keys);
    program.key_sets[node as usize] = set;
    Ok(Some(set))
}

fn is_plain(roles: &[Role]) -> bool {
    roles.iter().all(|role| *role == Role::Plain)
}

/// A rule that can never end, other than the root, if one is called.
fn culprit(graph: &Graph, root: RuleId, costs: &[u32]) -> Option<String> {
    let stuck = |&(rule, start): &(RuleId, NodeId)| rule != root && costs[start as usize] == NO_WAY;
    let found = graph.starts.iter().filter(|start| stuck(start)).min_by_key(|(rule, _)| *rule);
    found.map(|&(rule, _)| graph.pool.rule(rule).name.clone())
}

/// Rounds over all nodes, before the users of what has changed are looked up.
const SWEEPS_MAX: u32 = 4;

/// Least bytes from each node to the end of its rule.
///
/// Of an object, costs lead to the hub; from there its rules know how much there is to come.
fn least_costs(graph: &mut Graph, fuel: &mut Fuel<'_>) -> Result<Vec<u32>, GrammarError> {
    let mut costs = vec![NO_WAY; graph.nodes.len()];
    for (node, kind) in graph.nodes.iter().enumerate() {
        if matches!(kind, Node::Return | Node::Hub { .. }) {
            costs[node] = 0;
        }
    }
    for _ in 0..SWEEPS_MAX {
        fuel.spend(2 * graph.nodes.len() as u32)?;
        if !sweep(graph, &mut costs) {
            return Ok(costs);
        }
    }
    relax(graph, &mut costs, fuel)?;
    Ok(costs)
}

/// Lowers the cost of a node to what follows from those after it; false if it was right.
fn lower_cost(graph: &mut Graph, node: NodeId, costs: &mut [u32]) -> bool {
    let cost = cost_of(graph, node, costs);
    if cost >= costs[node as usize] {
        return false;
    }
    costs[node as usize] = cost;
    if let Node::Member { machine, key, .. } = graph.nodes[node as usize] {
        graph.machines[machine as usize].set_rest(key, cost);
    }
    true
}

/// Goes over all nodes, rules that are called before those that call them, and each rule from its
/// end and from its start. False if nothing changed.
fn sweep(graph: &mut Graph, costs: &mut [u32]) -> bool {
    let mut changed = false;
    let mut end = graph.nodes.len() as NodeId;
    for index in (0..graph.chunks.len()).rev() {
        let start = graph.chunks[index];
        for node in (start..end).chain((start..end).rev()) {
            changed |= lower_cost(graph, node, costs);
        }
        end = start;
    }
    for node in 0..end {
        changed |= lower_cost(graph, node, costs);
    }
    changed
}

/// Goes on from all nodes to the users of those whose cost changes.
fn relax(graph: &mut Graph, costs: &mut [u32], fuel: &mut Fuel<'_>) -> Result<(), GrammarError> {
    let users = Users::new(graph);
    // First in, first out, with each node in the queue at most once.
    let mut queue: std::collections::VecDeque<NodeId> = (0..graph.nodes.len() as NodeId).collect();
    let mut queued = vec![true; graph.nodes.len()];
    while let Some(node) = queue.pop_front() {
        queued[node as usize] = false;
        for &user in users.of(node) {
            fuel.spend(1)?;
            if lower_cost(graph, user, costs)
                && !std::mem::replace(&mut queued[user as usize], true)
            {
                queue.push_back(user);
            }
        }
    }
    Ok(())
}

fn cost_of(graph: &Graph, node: NodeId, costs: &[u32]) -> u32 {
    let cost = |node: NodeId| costs[node as usize];
    let least = |costs: &mut dyn Iterator<Item = u32>| costs.min().unwrap_or(NO_WAY);
    match graph.nodes[node as usize] {
        Node::Return | Node::Hub { .. } => 0,
        Node::Enter { start, next, .. } => {
            let object = match graph.roles[start as usize] {
                Role::ToHub { machine, .. } => {
                    graph.machines[machine as usize].finish_bytes(&Progress::default(), true)
                }
                _ => 0,
            };
            object.saturating_add(cost(start)).saturating_add(cost(next))
        }
        Node::Tick { next, .. } | Node::Member { next, .. } | Node::Close { next, .. } => {
            cost(next)
        }
        Node::Switch(span) => {
            let arms = &graph.arms[span.range()];
            least(&mut arms.iter().map(|arm| cost(arm.next))).saturating_add(1)
        }
        Node::Split(span) => {
            least(&mut graph.targets[span.range()].iter().map(|&target| cost(target)))
        }
        Node::Call { start, next } => cost(start).saturating_add(cost(next)),
        Node::Loop(index) => {
            let counted = &graph.loops[index as usize];
            let rounds = match counted.min {
                0 => 0,
                min => min.saturating_mul(cost(counted.body)),
            };
            rounds.saturating_add(cost(counted.next))
        }
        Node::Token { next, .. } => cost(next).saturating_add(1),
    }
}

/// For each node, the nodes whose cost depends on it.
struct Users {
    first: Vec<u32>,
    users: Vec<NodeId>,
}

impl Users {
    fn new(graph: &Graph) -> Self {
        let mut first = vec![0u32; graph.nodes.len() + 1];
        for node in 0..graph.nodes.len() {
            for_each_successor(graph, node as NodeId, |next| first[next as usize + 1] += 1);
        }
        for index in 1..first.len() {
            first[index] += first[index - 1];
        }
        let mut users = vec![0; first.last().copied().unwrap_or(0) as usize];
        let mut filled = first.clone();
        for node in 0..graph.nodes.len() {
            for_each_successor(graph, node as NodeId, |next| {
                users[filled[next as usize] as usize] = node as NodeId;
                filled[next as usize] += 1;
            });
        }
        Self { first, users }
    }

    fn of(&self, node: NodeId) -> &[NodeId] {
        &self.users[self.first[node as usize] as usize..self.first[node as usize + 1] as usize]
    }
}

fn for_each_successor(graph: &Graph, node: NodeId, mut visit: impl FnMut(NodeId)) {
    match graph.nodes[node as usize] {
        Node::Return => {}
        Node::Switch(span) => graph.arms[span.range()].iter().for_each(|arm| visit(arm.next)),
        Node::Split(span) => graph.targets[span.range()].iter().for_each(|&next| visit(next)),
        Node::Call { start, next } => {
            visit(start);
            visit(next);
        }
        Node::Loop(index) => {
            visit(graph.loops[index as usize].body);
            visit(graph.loops[index as usize].next);
        }
        Node::Token { next, .. }
        | Node::Tick { next, .. }
        | Node::Member { next, .. }
        | Node::Hub { next }
        | Node::Close { next, .. } => visit(next),
        Node::Enter { start, next, .. } => {
            visit(start);
            visit(next);
            if let Role::ToHub { machine, .. } = graph.roles[start as usize] {
                let members = graph.machines[machine as usize].member_nodes();
                members.for_each(|(_, node)| visit(node));
            }
        }
    }
}

/// Takes away every way into a node that cannot reach its end.
fn prune(graph: &mut Graph, costs: &[u32]) {
    let lives = |node: NodeId| costs[node as usize] != NO_WAY;
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
    let mut leaves = Vec::new();
    let mut visited = Vec::new();
    for index in 0..graph.nodes.len() {
        let Node::Split(span) = graph.nodes[index] else { continue };
        if span.count == 0 {
            continue;
        }
        leaves.clear();
        visited.clear();
        fuel.spend(1)?;
        if !collect_leaves(graph, index as NodeId, &mut visited, &mut leaves) {
            continue;
        }
        fuel.spend(u32::try_from(visited.len()).unwrap_or(u32::MAX))?;
        let merged = merged_arms(graph, &leaves);
        let all_switches =
            leaves.iter().all(|&leaf| matches!(graph.nodes[leaf as usize], Node::Switch(_)));
        match merged {
            Some(arms) if all_switches => {
                let first = graph.arms.len() as u32;
                graph.arms.extend_from_slice(&arms);
                graph.nodes[index] = Node::Switch(Span { first, count: arms.len() as u32 });
            }
            _ => {
                let first = graph.targets.len() as u32;
                graph.targets.extend_from_slice(&leaves);
                graph.nodes[index] = Node::Split(Span { first, count: leaves.len() as u32 });
            }
        }
    }
    Ok(())
}

/// What a split reaches through splits alone; false if that is too much.
fn collect_leaves(
    graph: &Graph,
    split: NodeId,
    visited: &mut Vec<NodeId>,
    leaves: &mut Vec<NodeId>,
) -> bool {
    let mut open = vec![split];
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

/// The arms of all switches among the leaves, if no two overlap.
fn merged_arms(graph: &Graph, leaves: &[NodeId]) -> Option<Vec<Arm>> {
    let mut arms: Vec<Arm> = Vec::new();
    for &leaf in leaves {
        if let Node::Switch(span) = graph.nodes[leaf as usize] {
            arms.extend_from_slice(&graph.arms[span.range()]);
        }
    }
    arms.sort_unstable_by_key(|arm| arm.low);
    let disjoint = arms.windows(2).all(|pair| pair[0].high < pair[1].low);
    disjoint.then_some(arms)
}
