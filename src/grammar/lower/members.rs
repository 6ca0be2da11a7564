//! Objects: one graph for the keys, whatever was written before; the register tells what is left.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Lowering;
use crate::grammar::error::{GrammarError, LimitError};
use crate::grammar::expr::Members;
use crate::grammar::members::{KeyId, Machine, Progresses};
use crate::grammar::program::{Arm, Node, NodeId, Program, Role};
use crate::grammar::text::TextMachine;

/// What JSON takes for whitespace.
const WHITESPACE: [(u8, u8); 3] = [(b'\t', b'\n'), (b'\r', b'\r'), (b' ', b' ')];

/// Keys that the states of a key may become, and the least bytes to their ends.
type Reaches = Vec<Box<[(KeyId, u32)]>>;

impl Lowering<'_, '_> {
    /// An object that goes on at `next`.
    pub(super) fn lower_members(
        &mut self,
        number: u32,
        next: NodeId,
    ) -> Result<NodeId, GrammarError> {
        let start = match self.members_starts.get(&number) {
            Some(&start) => start,
            None => {
                let members = self.pool.members_of(number).clone();
                let before = self.role;
                let start = self.lower_new_members(&members)?;
                self.role = before;
                self.members_starts.insert(number, start);
                start
            }
        };
        Ok(self.push(Node::Enter { start, next, register: Progresses::START })?)
    }

    fn lower_new_members(&mut self, members: &Members) -> Result<NodeId, GrammarError> {
        let machine = self.machines.len() as u32;
        let keys = Arc::clone(&members.keys);
        let reaches = reaches(&keys, members.quoted, self.fuel)?;
        let is_quoted = members.quoted;
        let rules = Machine::new(members.rules.clone(), reaches, members.values.len(), is_quoted);
        self.machines.push(rules);

        self.role = Role::ToHub { machine, is_first: false };
        let hub = self.reserve();
        let after_value = self.gap(members.gap_max, hub)?;
        let mut member_nodes = Vec::with_capacity(members.values.len());
        for (key, value) in members.values.iter().enumerate() {
            self.role = Role::ToHub { machine, is_first: false };
            let next = match value {
                None => after_value,
                Some(rule) => {
                    let start = self.rule_start(*rule);
                    let value = self.push(Node::Call { start, next: after_value })?;
                    let value = self.gap(members.gap_max, value)?;
                    let colon = self.switch(&[Arm { low: b':', high: b':', next: value }])?;
                    self.gap(members.gap_max, colon)?
                }
            };
            self.role = Role::InKey { machine };
            let node = self.push(Node::Member { machine, key: key as KeyId, next })?;
            self.machines[machine as usize].set_member_node(key as KeyId, node);
            member_nodes.push(node);
        }
        self.role = Role::InKey { machine };
        let key = self.lower_keys(&keys, members.quoted, machine, &member_nodes)?;
        let another = self.gap(members.gap_max, key)?;
        let comma = self.switch(&[Arm { low: b',', high: b',', next: another }])?;

        let any = self.machines[machine as usize].keys_from(0);
        let set = self.machines[machine as usize].set(&any);
        self.role = Role::Plain;
        let end = self.lower_literal(&members.close, Program::RETURN)?;
        let end = self.push(Node::Close { machine, next: end })?;
        self.role = Role::InKey { machine };
        let more = self.push(Node::Guard { machine, set, next: comma })?;
        let ways = self.split(&[more, end])?;
        self.nodes[hub as usize] = Node::Hub { next: ways };

        let first = self.push(Node::Guard { machine, set, next: key })?;
        let ways = self.split(&[first, end])?;
        self.role = Role::ToHub { machine, is_first: true };
        let first_hub = self.push(Node::Hub { next: ways })?;
        let start = self.gap(members.gap_max, first_hub)?;
        Ok(self.lower_literal(&members.open, start)?)
    }

    /// The keys; the node before the first byte of one, the quote included.
    fn lower_keys(
        &mut self,
        keys: &TextMachine,
        is_quoted: bool,
        machine: u32,
        member_nodes: &[NodeId],
    ) -> Result<NodeId, GrammarError> {
        if keys.states.is_empty() {
            return Ok(self.reserve());
        }
        let nodes = self.reserve_states(keys, |state| Role::Key { machine, state });
        // A state is guarded where it can become fewer keys than the one before it.
        let mut guarded: Vec<Option<NodeId>> = vec![None; nodes.len()];
        let mut sets = Vec::with_capacity(nodes.len());
        for state in 0..nodes.len() as u32 {
            let rules = &mut self.machines[machine as usize];
            let keys = rules.keys_from(state);
            sets.push(rules.set(&keys));
            self.fuel.spend(1 + keys.len() as u32)?;
        }
        for (from, state) in keys.states.iter().enumerate() {
            for arm in &state.arms {
                let to = arm.next as usize;
                if sets[from] != sets[to] && guarded[to].is_none() {
                    let (set, next) = (sets[to], nodes[to]);
                    guarded[to] = Some(self.push(Node::Guard { machine, set, next })?);
                }
            }
            let entry = |to: u32| match guarded[to as usize] {
                Some(guard) if sets[from] != sets[to as usize] => guard,
                _ => nodes[to as usize],
            };
            let mut arms = self.char_arms(&state.arms, &entry, keys.spelling)?;
            let Some(key) = state.end else {
                self.set_switch(nodes[from], &arms);
                continue;
            };
            let member = member_nodes[key as usize];
            if is_quoted {
                let at = arms.partition_point(|arm| arm.low < b'"');
                arms.insert(at, Arm { low: b'"', high: b'"', next: member });
                self.set_switch(nodes[from], &arms);
            } else if arms.is_empty() {
                self.set_split(nodes[from], &[member]);
            } else {
                let switch = self.switch(&arms)?;
                self.set_split(nodes[from], &[switch, member]);
            }
        }
        if !is_quoted {
            return Ok(nodes[0]);
        }
        Ok(self.switch(&[Arm { low: b'"', high: b'"', next: nodes[0] }])?)
    }

    /// At most `max` whitespace characters, then `next`.
    fn gap(&mut self, max: u32, next: NodeId) -> Result<NodeId, LimitError> {
        let mut node = next;
        for _ in 0..max {
            let arms = WHITESPACE.map(|(low, high)| Arm { low, high, next: node });
            let white = self.switch(&arms)?;
            node = self.split(&[white, next])?;
        }
        Ok(node)
    }
}

/// For each state of the keys: which keys it may become, with the least bytes to the end of each,
/// the closing quote included.
fn reaches(
    keys: &TextMachine,
    is_quoted: bool,
    fuel: &mut crate::grammar::Fuel<'_>,
) -> Result<Reaches, LimitError> {
    let mut users: Vec<Vec<(u32, u32)>> = vec![Vec::new(); keys.states.len()];
    let mut ends: Vec<(KeyId, u32)> = Vec::new();
    for (from, state) in keys.states.iter().enumerate() {
        for arm in &state.arms {
            let bytes = keys.spelling.least_bytes(arm.low, arm.high);
            users[arm.next as usize].push((from as u32, bytes));
        }
        ends.extend(state.end.map(|key| (key, from as u32)));
    }
    ends.sort_unstable();
    let mut reaches: Vec<Vec<(KeyId, u32)>> = vec![Vec::new(); keys.states.len()];
    // Keys come in ascending order, so the one at hand is the last of each list, if it is there.
    for group in ends.chunk_by(|a, b| a.0 == b.0) {
        let Some(&(key, _)) = group.first() else { continue };
        let mut queue: VecDeque<u32> = VecDeque::new();
        for &(_, state) in group {
            reaches[state as usize].push((key, u32::from(is_quoted)));
            queue.push_back(state);
        }
        while let Some(state) = queue.pop_front() {
            fuel.spend(1)?;
            let Some(&(_, bytes)) = reaches[state as usize].last() else { continue };
            for &(user, more) in &users[state as usize] {
                let bytes = bytes + more;
                match reaches[user as usize].last_mut() {
                    Some((known, least)) if *known == key => {
                        if bytes >= *least {
                            continue;
                        }
                        *least = bytes;
                    }
                    _ => reaches[user as usize].push((key, bytes)),
                }
                queue.push_back(user);
            }
        }
    }
    Ok(reaches.into_iter().map(Vec::into_boxed_slice).collect())
}
