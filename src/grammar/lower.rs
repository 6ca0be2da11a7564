//! From expressions to a program.
//!
//! Expressions are lowered back to front: each gets the node that follows it. Small rules that do
//! not recurse are copied to where they are used, which lets neighbouring switches merge; small
//! repetitions are written out; all others become calls and counted loops.

mod base;
mod costs;
mod finish;
mod free;
mod made;
mod members;
mod node_costs;
mod node_table;
mod rules;
mod switches;
mod text;

use rustc_hash::{FxBuildHasher, FxHashMap, FxHasher};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};

use super::error::{GrammarError, LimitError};
use super::expr::{Expr, ExprId, ExprPool, RuleId, TokenSet};
use super::free_places::LoweredFree;
use super::free_text::FreeText;
use super::limits::{Fuel, Limits};
use super::members::{Machine, Progress};
use super::program::{Arm, CountedLoop, NO_WAY, Node, NodeId, Program, Role, Span};
use super::text_places::QuotedText;
pub(crate) use base::Base;
use costs::Costs;
use made::{Colon, LOWERED_EXPECTED, Made};
use node_costs::Parts;
use rules::RuleFacts;

/// A repetition is written out when that takes at most so many nodes.
const UNROLLED_NODES_MAX: u32 = 16;
/// Depth of expressions within expressions, rules that are copied included.
const DEPTH_MAX: u32 = 600;
/// Depth from which rules are called even if they are small, so that chains of rules end.
const INLINE_DEPTH_MAX: u32 = 40;
/// Switches side by side that may become one.
const MERGED_MAX: usize = 8;

/// Lowers what `root` matches.
pub(crate) fn lower(
    mut pool: ExprPool,
    root: RuleId,
    limits: &Limits,
    fuel: &mut Fuel<'_>,
) -> Result<Program, GrammarError> {
    let (facts, costs) = read_rules(&mut pool, &[root], fuel)?;
    let made = match facts.base() {
        Some(base) => base.made(&mut pool),
        None => Made::new(),
    };
    let mut lowering = Lowering::new(pool, made, (facts, costs), limits, fuel);
    let start = lowering.rules_from(root)?;
    finish::finish(lowering.into_graph(start), fuel)
}

/// What has to be known of the rules that the roots reach before they are lowered.
fn read_rules(
    pool: &mut ExprPool,
    roots: &[RuleId],
    fuel: &mut Fuel<'_>,
) -> Result<(RuleFacts, Costs), GrammarError> {
    rules::remove_direct_left_recursion(pool);
    let facts = RuleFacts::new(pool, roots, fuel)?;
    rules::refuse_left_recursion(pool, &facts)?;
    let costs = Costs::new(pool, &facts, fuel)?;
    if let Some(&root) = roots.iter().find(|&&root| costs.rule(root) == NO_WAY) {
        return Err(GrammarError::MatchesNothing { rule: culprit(pool, &facts, &costs, root) });
    }
    Ok((facts, costs))
}

/// A rule that can never end, other than the root.
fn culprit(pool: &ExprPool, facts: &RuleFacts, costs: &Costs, root: RuleId) -> Option<String> {
    let stuck = |rule: &RuleId| *rule != root && costs.rule(*rule) == NO_WAY;
    let found = facts.reached().iter().copied().filter(stuck).min();
    found.map(|rule| pool.rule(rule).name.clone())
}

/// Nodes under construction.
pub(crate) struct Graph {
    pub(crate) pool: ExprPool,
    pub(crate) nodes: Vec<Node>,
    pub(crate) arms: Vec<Arm>,
    pub(crate) targets: Vec<NodeId>,
    pub(crate) loops: Vec<CountedLoop>,
    pub(crate) token_sets: Vec<TokenSet>,
    /// What registers mean, by node.
    pub(crate) roles: Vec<Role>,
    pub(crate) machines: Vec<Machine>,
    pub(crate) texts: Vec<QuotedText>,
    pub(crate) free_texts: Vec<LoweredFree>,
    pub(crate) start: NodeId,
    /// Least bytes from each node to the end of its rule.
    pub(crate) costs: Vec<u32>,
}

struct Lowering<'p, 'f> {
    pool: ExprPool,
    facts: RuleFacts,
    costs: Costs,
    made: Made,
    /// Where one more round of a body starts, by what comes after all and where the others start.
    rounds: FxHashMap<(ExprId, NodeId, NodeId), NodeId>,
    /// Role of the nodes that are being made.
    role: Role,
    pending: Vec<RuleId>,
    nodes_max: usize,
    depth: u32,
    fuel: &'p mut Fuel<'f>,
}

impl<'p, 'f> Lowering<'p, 'f> {
    fn new(
        pool: ExprPool,
        made: Made,
        (facts, costs): (RuleFacts, Costs),
        limits: &Limits,
        fuel: &'p mut Fuel<'f>,
    ) -> Self {
        Self {
            pool,
            facts,
            costs,
            made,
            rounds: FxHashMap::with_capacity_and_hasher(LOWERED_EXPECTED, FxBuildHasher),
            role: Role::Plain,
            pending: Vec::new(),
            nodes_max: limits.nodes_max,
            depth: 0,
            fuel,
        }
    }

    fn into_graph(self, start: NodeId) -> Graph {
        Graph {
            pool: self.pool,
            nodes: self.made.nodes,
            arms: self.made.arms,
            targets: self.made.targets,
            loops: self.made.loops,
            token_sets: self.made.token_sets,
            roles: self.made.roles,
            machines: self.made.machines,
            texts: self.made.texts,
            free_texts: self.made.free_texts,
            start,
            costs: self.made.node_costs,
        }
    }

    /// Lowers a rule and all that it calls; the node where it starts.
    fn rules_from(&mut self, root: RuleId) -> Result<NodeId, GrammarError> {
        let start = self.rule_start(root);
        while let Some(rule) = self.pending.pop() {
            self.lower_rule(rule)?;
        }
        Ok(start)
    }

    /// The node where a called rule starts; the rule is lowered later.
    fn rule_start(&mut self, rule: RuleId) -> NodeId {
        if let Some(start) = self.made.starts.get(rule.index()) {
            return start;
        }
        // Rules that say the same are one, and so are the states and masks within.
        let body = self.pool.rule(rule).body;
        if let Some(start) = self.made.bodies.get(body.index()) {
            self.made.starts.set(rule.index(), start);
            return start;
        }
        let before = std::mem::take(&mut self.role);
        let start = self.reserve(self.costs.rule(rule));
        self.role = before;
        self.made.starts.set(rule.index(), start);
        self.made.bodies.set(body.index(), start);
        self.pending.push(rule);
        start
    }

    fn lower_rule(&mut self, rule: RuleId) -> Result<(), GrammarError> {
        let start = self.rule_start(rule);
        let body = self.pool.rule(rule).body;
        let node = self.lower(body, Program::RETURN)?;
        self.set_split(start, &[node]);
        Ok(())
    }

    fn push(&mut self, node: Node) -> Result<NodeId, LimitError> {
        self.fuel.spend(1)?;
        if self.made.nodes.len() >= self.nodes_max {
            return Err(LimitError::Nodes { max: self.nodes_max });
        }
        let cost = self.cost_of(node);
        self.made.nodes.push(node);
        self.made.node_costs.push(cost);
        self.made.roles.push(self.role);
        Ok((self.made.nodes.len() - 1) as NodeId)
    }

    /// Least bytes from a node to the end of its rule, given those of the nodes it leads to.
    ///
    /// Of an object, costs lead to the hub; from there its rules know how much there is to come.
    fn cost_of(&self, node: Node) -> u32 {
        let costs = &self.made.node_costs;
        let parts = Parts {
            arms: &self.made.arms,
            targets: &self.made.targets,
            loops: &self.made.loops,
            costs,
        };
        match node {
            Node::Enter { start, .. } => {
                let object = match self.made.roles[start as usize] {
                    Role::ToHub { machine, .. } => self.made.machines[machine as usize]
                        .finish_bytes(&Progress::default(), true),
                    _ => 0,
                };
                object.saturating_add(parts.cost_of(node))
            }
            _ => parts.cost_of(node),
        }
    }

    /// A node to be filled in later, with what it will cost; nothing comes of it until then.
    fn reserve(&mut self, cost: u32) -> NodeId {
        self.made.nodes.push(Node::Split(Span { first: 0, count: 0 }));
        self.made.node_costs.push(cost);
        self.made.roles.push(self.role);
        (self.made.nodes.len() - 1) as NodeId
    }

    fn span_of_targets(&mut self, targets: &[NodeId]) -> Span {
        let first = self.made.targets.len() as u32;
        self.made.targets.extend_from_slice(targets);
        Span { first, count: targets.len() as u32 }
    }

    fn set_split(&mut self, node: NodeId, targets: &[NodeId]) {
        let span = self.span_of_targets(targets);
        self.made.nodes[node as usize] = Node::Split(span);
    }

    fn set_switch(&mut self, node: NodeId, arms: &[Arm]) {
        let first = self.made.arms.len() as u32;
        self.made.arms.extend_from_slice(arms);
        self.made.nodes[node as usize] = Node::Switch(Span { first, count: arms.len() as u32 });
    }

    fn split(&mut self, targets: &[NodeId]) -> Result<NodeId, LimitError> {
        if let [only] = *targets {
            return Ok(only);
        }
        let is_switch =
            |&&node: &&NodeId| matches!(self.made.nodes[node as usize], Node::Switch(_));
        let switches: SmallVec<[NodeId; 8]> =
            targets.iter().filter(is_switch).copied().take(MERGED_MAX + 1).collect();
        let merged = if switches.len() <= MERGED_MAX { self.merged(&switches)? } else { None };
        let span = match merged {
            Some(switch) if switches.len() == targets.len() => return Ok(switch),
            Some(switch) => {
                let others = targets.iter().filter(|target| !switches.contains(target)).copied();
                let targets: SmallVec<[NodeId; 8]> =
                    std::iter::once(switch).chain(others).collect();
                self.span_of_targets(&targets)
            }
            None => self.span_of_targets(targets),
        };
        self.push(Node::Split(span))
    }

    /// A switch with the arms of all of these, if there are several and no two arms overlap: then a
    /// parse is in one place where it would be in several.
    fn merged(&mut self, switches: &[NodeId]) -> Result<Option<NodeId>, LimitError> {
        if switches.len() < 2 {
            return Ok(None);
        }
        let mut all: SmallVec<[Arm; 32]> = SmallVec::new();
        for &node in switches {
            if let Node::Switch(span) = self.made.nodes[node as usize] {
                all.extend_from_slice(&self.made.arms[span.range()]);
            }
        }
        all.sort_unstable_by_key(|arm| arm.low);
        if all.windows(2).any(|pair| pair[0].high >= pair[1].low) {
            return Ok(None);
        }
        self.switch(&all).map(Some)
    }

    /// A switch with these arms, sorted and disjoint; equal switches are one node.
    fn switch(&mut self, arms: &[Arm]) -> Result<NodeId, LimitError> {
        let mut hasher = FxHasher::default();
        arms.hash(&mut hasher);
        let hash = hasher.finish();
        let found = self.made.switches.find(hash, |&node| match self.made.nodes[node as usize] {
            Node::Switch(span) => {
                self.made.roles[node as usize] == self.role && self.made.arms[span.range()] == *arms
            }
            _ => false,
        });
        if let Some(&node) = found {
            return Ok(node);
        }
        let first = self.made.arms.len() as u32;
        self.made.arms.extend_from_slice(arms);
        let node = self.push(Node::Switch(Span { first, count: arms.len() as u32 }))?;
        let (nodes, all) = (&self.made.nodes, &self.made.arms);
        self.made.switches.insert_unique(hash, node, |&node| {
            let mut hasher = FxHasher::default();
            if let Node::Switch(span) = nodes[node as usize] {
                all[span.range()].hash(&mut hasher);
            }
            hasher.finish()
        });
        Ok(node)
    }

    /// The node that matches `expr` and then goes on at `next`.
    fn lower(&mut self, expr: ExprId, next: NodeId) -> Result<NodeId, GrammarError> {
        // Equal switches are one node without being remembered here.
        match self.pool.get(expr) {
            Expr::Empty => return Ok(next),
            &Expr::Byte(low, high) => return Ok(self.switch(&[Arm { low, high, next }])?),
            Expr::Chars(set) if set.is_ascii() => {
                let arms: SmallVec<[Arm; 8]> = switches::ascii_arms(set, next).collect();
                return Ok(self.switch(&arms)?);
            }
            _ => {}
        }
        if let Some(&node) = self.made.lowered.get(&(expr, next)) {
            return Ok(node);
        }
        if self.depth >= DEPTH_MAX {
            return Err(LimitError::Depth { max: DEPTH_MAX }.into());
        }
        self.fuel.spend(1)?;
        self.depth += 1;
        let node = self.lower_new(expr, next);
        self.depth -= 1;
        let node = node?;
        self.made.lowered.insert((expr, next), node);
        Ok(node)
    }

    fn lower_new(&mut self, expr: ExprId, next: NodeId) -> Result<NodeId, GrammarError> {
        match self.pool.get(expr) {
            Expr::Never => Ok(self.reserve(NO_WAY)),
            Expr::Empty => Ok(next),
            &Expr::Byte(low, high) => Ok(self.switch(&[Arm { low, high, next }])?),
            Expr::Seq(parts) => {
                let parts: SmallVec<[ExprId; 8]> = parts[..].into();
                parts.into_iter().rev().try_fold(next, |next, part| self.lower(part, next))
            }
            Expr::Alt(choices) => {
                let choices: SmallVec<[ExprId; 8]> = choices[..].into();
                let mut targets: SmallVec<[NodeId; 8]> = SmallVec::new();
                for choice in choices {
                    targets.push(self.lower(choice, next)?);
                }
                Ok(self.split(&targets)?)
            }
            &Expr::Repeat { body, min, max } => self.lower_repeat(body, min, max, next),
            &Expr::Rule(rule) => self.lower_call(rule, next),
            &Expr::Text(number) => self.lower_text(number, next),
            &Expr::Members(number) => self.lower_members(number, next),
            &Expr::Free(number) => self.lower_free(number, next),
            Expr::Literal(bytes) => {
                let bytes: SmallVec<[u8; 32]> = bytes[..].into();
                Ok(self.lower_literal(&bytes, next)?)
            }
            Expr::Literals(texts) => {
                let texts = texts.clone();
                Ok(self.lower_literals(&texts, next)?)
            }
            Expr::Chars(set) => {
                let set = set.clone();
                Ok(self.lower_chars(&set, next)?)
            }
            Expr::Token(set) => {
                let set = set.clone();
                let set = self.token_set(set);
                Ok(self.push(Node::Token { set, next })?)
            }
        }
    }

    /// The number of a token set.
    fn token_set(&mut self, set: TokenSet) -> u32 {
        let index = self.made.token_sets.iter().position(|known| *known == set);
        let index = index.unwrap_or_else(|| {
            self.made.token_sets.push(set);
            self.made.token_sets.len() - 1
        });
        index as u32
    }

    fn lower_call(&mut self, rule: RuleId, next: NodeId) -> Result<NodeId, GrammarError> {
        let copied = self.facts.is_copied(rule) && self.depth < INLINE_DEPTH_MAX;
        if copied {
            return self.lower(self.pool.rule(rule).body, next);
        }
        let start = self.rule_start(rule);
        // What follows a tail call is what follows the caller: no frame is needed.
        if next == Program::RETURN {
            return Ok(start);
        }
        Ok(self.push(Node::Call { start, next })?)
    }

    fn lower_repeat(
        &mut self,
        body: ExprId,
        min: u32,
        max: Option<u32>,
        next: NodeId,
    ) -> Result<NodeId, GrammarError> {
        let size = self.facts.size(&self.pool, body);
        let rounds_written = max.unwrap_or(min);
        if size.saturating_mul(rounds_written) <= UNROLLED_NODES_MAX {
            return self.lower_unrolled(body, min, max, next);
        }
        let nullable = self.facts.is_nullable(&self.pool, body);
        let (body, min) = if nullable { (self.consuming_body(body)?, 0) } else { (body, min) };
        let body = self.lower(body, Program::RETURN)?;
        let body_cost = self.made.node_costs[body as usize];
        self.made.loops.push(CountedLoop { body, next, min, max, body_cost });
        Ok(self.push(Node::Loop((self.made.loops.len() - 1) as u32))?)
    }

    fn lower_unrolled(
        &mut self,
        body: ExprId,
        min: u32,
        max: Option<u32>,
        next: NodeId,
    ) -> Result<NodeId, GrammarError> {
        let mut node = match max {
            None => {
                let again = self.reserve(self.made.node_costs[next as usize]);
                let round = self.lower(body, again)?;
                self.set_split(again, &[round, next]);
                again
            }
            Some(max) => self.lower_at_most(body, max - min, next)?,
        };
        for _ in 0..min {
            node = self.lower(body, node)?;
        }
        Ok(node)
    }

    /// Up to `max` rounds. What fewer of them made is a part of what more do.
    fn lower_at_most(
        &mut self,
        body: ExprId,
        max: u32,
        next: NodeId,
    ) -> Result<NodeId, GrammarError> {
        let mut node = next;
        for _ in 0..max {
            let fewer = node;
            node = match self.rounds.get(&(body, next, fewer)) {
                Some(&more) => more,
                None => {
                    let round = self.lower(body, fewer)?;
                    self.split(&[round, next])?
                }
            };
            self.rounds.insert((body, next, fewer), node);
        }
        Ok(node)
    }

    /// What the body of a counted loop matches but the empty text.
    fn consuming_body(&mut self, body: ExprId) -> Result<ExprId, GrammarError> {
        let known = self.pool.rules().len();
        let body = self.consuming(body)?;
        self.costs.add_rules(&self.pool, known..self.pool.rules().len(), self.fuel)?;
        Ok(body)
    }

    /// What `expr` matches but the empty text.
    ///
    /// A counted loop must consume something in each round: otherwise one place in the text
    /// could be reached with every count.
    fn consuming(&mut self, expr: ExprId) -> Result<ExprId, GrammarError> {
        if !self.facts.is_nullable(&self.pool, expr) {
            return Ok(expr);
        }
        if let Some(&known) = self.made.consumers.get(&expr) {
            return Ok(known);
        }
        self.fuel.spend(1)?;
        if self.depth >= DEPTH_MAX {
            return Err(LimitError::Depth { max: DEPTH_MAX }.into());
        }
        self.depth += 1;
        let consumer = self.consuming_new(expr);
        self.depth -= 1;
        let consumer = consumer?;
        self.made.consumers.insert(expr, consumer);
        Ok(consumer)
    }

    fn consuming_new(&mut self, expr: ExprId) -> Result<ExprId, GrammarError> {
        match self.pool.get(expr).clone() {
            Expr::Seq(parts) => {
                // The first part that consumes is any of them; all before it are empty.
                let mut choices = Vec::with_capacity(parts.len());
                for (index, &part) in parts.iter().enumerate() {
                    let mut rest = vec![self.consuming(part)?];
                    rest.extend_from_slice(&parts[index + 1..]);
                    choices.push(self.pool.seq(&rest));
                }
                Ok(self.pool.alt(&choices))
            }
            Expr::Alt(choices) => {
                let mut consuming = Vec::with_capacity(choices.len());
                for choice in choices {
                    consuming.push(self.consuming(choice)?);
                }
                Ok(self.pool.alt(&consuming))
            }
            Expr::Repeat { body, min, max } => {
                let first = self.consuming(body)?;
                let rest = self.pool.repeat(
                    body,
                    min.saturating_sub(1),
                    max.map(|max| max.saturating_sub(1)),
                );
                Ok(self.pool.seq(&[first, rest]))
            }
            Expr::Rule(rule) => {
                let name = format!("{} (not empty)", self.pool.rule(rule).name);
                let consuming = self.pool.declare(name);
                let call = self.pool.call(consuming);
                self.facts.add_rule(rule);
                // Known before its body, which may contain it.
                self.made.consumers.insert(expr, call);
                let body = self.consuming(self.pool.rule(rule).body)?;
                self.pool.define(consuming, body);
                Ok(call)
            }
            Expr::Free(number) => {
                let text = self.pool.free_text_of(number).as_ref().clone();
                Ok(self.pool.free_text(FreeText { may_be_empty: false, ..text }))
            }
            _ => Ok(ExprPool::NEVER),
        }
    }
}
