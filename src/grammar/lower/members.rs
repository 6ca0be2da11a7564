//! Objects: one graph for the keys, whatever was written before; the register tells what is left.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{Colon, Lowering};
use crate::grammar::error::GrammarError;
use crate::grammar::expr::{ExprId, ExprPool, Members};
use crate::grammar::members::{KeyId, Outside, Progresses};
use crate::grammar::program::{Arm, NO_WAY, Node, NodeId, Program, Role};
use crate::grammar::text::TextMachine;

/// What the keys of one object are lowered from.
struct KeyWalk<'k> {
    keys: &'k TextMachine,
    machine: u32,
    /// Where each key leads once it is written.
    member_nodes: &'k [NodeId],
    is_quoted: bool,
}

impl Lowering<'_, '_> {
    /// An object that goes on at `next`.
    pub(super) fn lower_members(
        &mut self,
        number: u32,
        next: NodeId,
    ) -> Result<NodeId, GrammarError> {
        let start = match self.made.members_starts.get(number as usize) {
            Some(start) => start,
            None => {
                let members = Arc::clone(self.pool.members_of(number));
                let before = self.role;
                let start = self.lower_new_members(number, &members)?;
                self.role = before;
                self.made.members_starts.set(number as usize, start);
                start
            }
        };
        Ok(self.push(Node::Enter { start, next, register: Progresses::START })?)
    }

    fn lower_new_members(
        &mut self,
        number: u32,
        members: &Members,
    ) -> Result<NodeId, GrammarError> {
        let machine = self.made.machines.len() as u32;
        let keys = Arc::clone(&members.keys);
        let rules = self.costs.machine(&self.pool, number, self.fuel)?;
        let is_free = rules.is_free_everywhere();
        self.made.machines.push(rules);
        let first_node = self.made.nodes.len() as NodeId;

        self.role = Role::ToHub { machine, is_first: false };
        let hub = self.reserve(0);
        let after_value = self.lower_gap(members.gap, hub)?;
        let mut member_nodes = Vec::with_capacity(members.values.len());
        let mut colons: FxHashMap<NodeId, NodeId> = FxHashMap::default();
        for (key, value) in members.values.iter().enumerate() {
            self.role = Role::ToHub { machine, is_first: false };
            let next = match value {
                None => after_value,
                Some(rule) => {
                    let start = self.rule_start(*rule);
                    self.made.machines[machine as usize].set_value_start(key as KeyId, start);
                    match colons.get(&start) {
                        Some(&known) => known,
                        None => {
                            let colon = self.lower_colon(start, members, after_value)?;
                            colons.insert(start, colon);
                            colon
                        }
                    }
                }
            };
            self.role = Role::InKey { machine };
            let node = self.push(Node::Member { machine, key: key as KeyId, next })?;
            member_nodes.push(node);
        }
        self.role = Role::InKey { machine };
        let is_quoted = members.quoted;
        let walk = KeyWalk { keys: &keys, machine, member_nodes: &member_nodes, is_quoted };
        let (key, states) = self.lower_keys(&walk)?;
        let finals = if states.is_empty() { Vec::new() } else { keys.final_states() };
        let final_keys: Vec<NodeId> = finals.into_iter().map(|state| states[state]).collect();
        self.made.machines[machine as usize].set_outside(Outside {
            close: members.close.clone(),
            gap: members.gap,
            first_key: states.first().copied().filter(|_| members.are_of_json()),
            after_value,
            free_key: final_keys.first().copied().filter(|_| is_free),
            final_keys,
        });
        let another = self.lower(members.gap, key)?;
        let comma = self.lower_marked(&members.comma, another)?;
        self.role = Role::Plain;
        let end = self.lower_marked(&members.close, Program::RETURN)?;
        let end = self.push(Node::Close { machine, next: end })?;
        self.role = Role::InKey { machine };
        let ways = self.split(&[comma, end])?;
        self.made.nodes[hub as usize] = Node::Hub { next: ways };

        let ways = self.split(&[key, end])?;
        self.role = Role::ToHub { machine, is_first: true };
        let first_hub = self.push(Node::Hub { next: ways })?;
        let start = self.lower_gap(members.gap, first_hub)?;
        let start = self.lower_marked(&members.open, start)?;
        self.made.machines[machine as usize].set_nodes(first_node..self.made.nodes.len() as NodeId);
        Ok(start)
    }

    /// Whitespace that a hub comes after, as a rule of its own: one for all objects.
    fn lower_gap(&mut self, gap: ExprId, hub: NodeId) -> Result<NodeId, GrammarError> {
        if gap == ExprPool::EMPTY {
            return Ok(hub);
        }
        let before = std::mem::take(&mut self.role);
        let start = self.lower(gap, Program::RETURN)?;
        self.role = before;
        Ok(self.push(Node::Call { start, next: hub })?)
    }

    /// What comes after a key: the colon, and the value that starts at a node. The colon with its
    /// gaps is a rule of its own: one for all keys.
    fn lower_colon(
        &mut self,
        start: NodeId,
        members: &Members,
        after_value: NodeId,
    ) -> Result<NodeId, GrammarError> {
        let value = self.push(Node::Call { start, next: after_value })?;
        if members.gap == ExprPool::EMPTY {
            return Ok(self.lower_marked(&members.colon, value)?);
        }
        let is_like = |colon: &&Colon| colon.text == members.colon && colon.gap == members.gap;
        let colon = match self.made.colons.iter().find(is_like) {
            Some(known) => known.start,
            None => {
                let before = std::mem::take(&mut self.role);
                let end = self.lower(members.gap, Program::RETURN)?;
                let colon = self.lower_marked(&members.colon, end)?;
                let colon = self.lower(members.gap, colon)?;
                self.role = before;
                let (text, gap) = (members.colon.clone(), members.gap);
                self.made.colons.push(Colon { text, gap, start: colon });
                colon
            }
        };
        Ok(self.push(Node::Call { start: colon, next: value })?)
    }

    /// The keys: the node before the first byte of one, the quote included, and those of the states.
    /// Which of them may come the register says, at every byte ([`Program::has_room`]).
    fn lower_keys(&mut self, walk: &KeyWalk<'_>) -> Result<(NodeId, Vec<NodeId>), GrammarError> {
        if walk.keys.states.is_empty() {
            return Ok((self.reserve(NO_WAY), Vec::new()));
        }
        let machine = walk.machine;
        let quote = u32::from(walk.is_quoted);
        let costs = walk.keys.bytes_to_ends(|key| {
            self.made.node_costs[walk.member_nodes[key as usize] as usize].saturating_add(quote)
        });
        let role = |state| Role::Key { machine, state };
        let nodes = self.reserve_states(walk.keys, role, |state| costs[state]);
        let mut arms = Vec::with_capacity(super::text::ARMS_EXPECTED);
        for (from, state) in walk.keys.states.iter().enumerate() {
            let entry = |to: u32| nodes[to as usize];
            self.char_arms(&state.arms, &entry, walk.keys.spelling, &mut arms)?;
            let end = state.end.map(|key| walk.member_nodes[key as usize]);
            self.finish_key_state(nodes[from], &mut arms, end, walk.is_quoted)?;
        }
        Ok((self.key_start(nodes[0], walk.is_quoted)?, nodes))
    }

    /// Fills in the node of a state, given where its characters lead and what it is if it ends.
    fn finish_key_state(
        &mut self,
        node: NodeId,
        arms: &mut Vec<Arm>,
        end: Option<NodeId>,
        is_quoted: bool,
    ) -> Result<(), GrammarError> {
        match end {
            None => self.set_switch(node, arms),
            Some(end) if is_quoted => {
                let at = arms.partition_point(|arm| arm.low < b'"');
                arms.insert(at, Arm { low: b'"', high: b'"', next: end });
                self.set_switch(node, arms);
            }
            Some(end) if arms.is_empty() => self.set_split(node, &[end]),
            Some(end) => {
                let switch = self.switch(arms)?;
                self.set_split(node, &[switch, end]);
            }
        }
        Ok(())
    }

    fn key_start(&mut self, first: NodeId, is_quoted: bool) -> Result<NodeId, GrammarError> {
        if !is_quoted {
            return Ok(first);
        }
        Ok(self.switch(&[Arm { low: b'"', high: b'"', next: first }])?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::grammar::explain::check_text;
    use crate::grammar::gap;
    use crate::grammar::members::{KeyOrder, MemberRules, Presence};
    use crate::grammar::regular::DfaArm;
    use crate::grammar::text::{Spelling, TextMachine, TextState};
    use crate::grammar::{
        CharSet, CompiledGrammar, ExprPool, Fuel, GrammarVocabulary, Limits, Members,
    };
    use crate::vocab::byte_vocabulary;

    /// Keys `a`, `b`, `c` and any other, whose values are a digit; other keys have `x`.
    fn grammar(rules: MemberRules, free: bool) -> Arc<CompiledGrammar> {
        let mut pool = ExprPool::new();
        let digits = pool.chars(CharSet::new([(0x30, 0x39)]));
        let digit = pool.declare("digit");
        pool.define(digit, digits);
        let letter = pool.literal(b"x");
        let x = pool.declare("x");
        pool.define(x, letter);
        let arm = |low: char, high: char, next| DfaArm { low: low.into(), high: high.into(), next };
        let any = [DfaArm { low: 0, high: 0x10FFFF, next: 4 }];
        let rest: &[DfaArm] = if free { &any } else { &[] };
        let mut start = vec![arm('a', 'a', 1), arm('b', 'b', 2), arm('c', 'c', 3)];
        let mut states = Vec::new();
        if free {
            start.insert(0, DfaArm { low: 0, high: 'a' as u32 - 1, next: 4 });
            start.push(DfaArm { low: 'd' as u32, high: 0x10FFFF, next: 4 });
        }
        states.push(TextState { arms: start.into(), end: free.then_some(3) });
        for key in 0..3 {
            states.push(TextState { arms: rest.into(), end: Some(key) });
        }
        states.push(TextState { arms: rest.into(), end: Some(3) });
        if !free {
            states.pop();
        }
        let spelling = Spelling::Json;
        let keys = TextMachine { states, spelling, max_chars: None, shared: None };
        let values = [Some(digit), Some(digit), Some(digit), Some(x)];
        pool.distinguish_keys();
        let gap = gap::any(&mut pool, 1);
        let object = pool.members(Members {
            open: b"{".as_slice().into(),
            close: b"}".as_slice().into(),
            comma: b",".as_slice().into(),
            colon: b":".as_slice().into(),
            keys: Arc::new(keys),
            values: values[..3 + usize::from(free)].into(),
            quoted: true,
            rules: rules.into(),
            gap,
        });
        let root = pool.declare("root");
        pool.define(root, object);
        let vocabulary = GrammarVocabulary::new(&byte_vocabulary());
        let mut fuel = Fuel::new(1_000_000);
        CompiledGrammar::from_rules(pool, root, &vocabulary, &Limits::default(), &mut fuel).unwrap()
    }

    fn rules(order: KeyOrder, required: &[u32], min: u32, max: Option<u32>) -> MemberRules {
        let presence = Presence { required: required.into(), forbidden: [].into() };
        MemberRules { declared: 3, order, presence: [presence].into(), min, max }
    }

    #[track_caller]
    fn check(grammar: &Arc<CompiledGrammar>, good: &[&str], bad: &[&str]) {
        for text in good {
            let report = check_text(grammar, text.as_bytes()).unwrap();
            assert!(report.accepted, "{text}: {report:?}");
        }
        for text in bad {
            let report = check_text(grammar, text.as_bytes()).unwrap();
            assert!(!report.accepted, "{text}");
            // What is alive can be completed.
            let mut matcher = grammar.matcher();
            for &byte in &text.as_bytes()[..report.at_byte] {
                matcher.accept(byte.into()).unwrap();
            }
            assert!(matcher.is_complete() || matcher.mask().is_ok(), "{text}");
        }
    }

    #[test]
    fn declared_order_is_kept() {
        let grammar = grammar(rules(KeyOrder::Declared, &[1], 0, None), false);
        check(
            &grammar,
            &[r#"{"b":1}"#, r#"{"a":1,"b":2}"#, r#"{ "a" : 1 , "b":2,"c":3 }"#],
            &[
                "{}",
                r#"{"a":1}"#,
                r#"{"b":1,"a":2}"#,
                r#"{"b":1,"b":2}"#,
                r#"{"c":1"#,
                r#"{"b":1,}"#,
            ],
        );
        let matcher = &mut grammar.matcher();
        assert_eq!(matcher.min_tokens_to_finish(), Ok(Some(7)));
        for (byte, left) in [(b'{', 6), (b'"', 5), (b'a', 10)] {
            matcher.accept(byte.into()).unwrap();
            assert_eq!(matcher.min_tokens_to_finish(), Ok(Some(left)));
        }
    }

    #[test]
    fn any_order_lets_keys_come_as_they_like() {
        let grammar = grammar(rules(KeyOrder::Any, &[0, 1], 0, None), true);
        check(
            &grammar,
            &[r#"{"b":1,"a":2}"#, r#"{"z":x,"b":2,"aa":x,"a":3,"c":4}"#],
            &[r#"{"b":1}"#, r#"{"a":1,"b":2,"a":3}"#, r#"{"a":x"#],
        );
    }

    #[test]
    fn members_are_counted() {
        let grammar = grammar(rules(KeyOrder::Declared, &[2], 2, Some(2)), false);
        check(
            &grammar,
            &[r#"{"a":1,"c":2}"#, r#"{"b":1,"c":2}"#],
            &[r#"{"c":1}"#, r#"{"a":1,"b":2"#, r#"{"a":1,"b":2,"c":3}"#],
        );
    }

    #[test]
    fn one_way_of_several_is_enough() {
        let ways = [(vec![0], vec![1]), (vec![1], vec![0])];
        let presence = ways.map(|(required, forbidden)| Presence {
            required: required.into(),
            forbidden: forbidden.into(),
        });
        let rules = MemberRules {
            declared: 3,
            order: KeyOrder::Declared,
            presence: presence.into(),
            min: 0,
            max: None,
        };
        check(
            &grammar(rules, true),
            &[r#"{"a":1}"#, r#"{"b":1,"c":2}"#, r#"{"a":1,"cc":x}"#],
            &["{}", r#"{"c":1}"#, r#"{"a":1,"b":2"#, r#"{"zz":x"#],
        );
    }

    #[test]
    fn a_key_never_comes_twice() {
        let grammar = grammar(rules(KeyOrder::Declared, &[], 0, None), true);
        let mut matcher = grammar.matcher();
        for byte in br#"{"b":1,"zz":x,"z"# {
            matcher.accept((*byte).into()).unwrap();
        }
        assert!(matcher.mask().unwrap().contains(b'"'.into()));
        matcher.accept(b'z'.into()).unwrap();
        assert!(!matcher.mask().unwrap().contains(b'"'.into()), "the key is there already");
        assert!(matcher.accept(b'"'.into()).is_err());
        matcher.rollback(1).unwrap();
        matcher.accept(b'"'.into()).unwrap();
        for byte in br#":x,"a"# {
            matcher.accept((*byte).into()).unwrap();
        }
        // `a` may not come after `b`, so its name must go on.
        let mask = matcher.mask().unwrap();
        assert!(!mask.contains(b'"'.into()) && mask.contains(b'a'.into()));
    }
}
