//! From expressions to a program.
//!
//! Expressions are lowered back to front: each gets the node that follows it. Small rules that do
//! not recurse are copied to where they are used, which lets neighbouring switches merge; small
//! repetitions are written out; all others become calls and counted loops.

mod finish;
mod free;
mod members;
mod rules;
mod switches;
mod text;

use hashbrown::HashTable;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use super::error::{GrammarError, LimitError};
use super::expr::{Expr, ExprId, ExprPool, RuleId, TokenSet};
use super::free_places::LoweredFree;
use super::free_text::FreeText;
use super::limits::{Fuel, Limits};
use super::members::Machine;
use super::program::{Arm, CountedLoop, Node, NodeId, Program, Role, Span};
use super::text_places::QuotedText;
use rules::RuleFacts;

/// A repetition is written out when that takes at most so many nodes.
const UNROLLED_NODES_MAX: u32 = 16;
/// Depth of expressions within expressions, rules that are copied included.
const DEPTH_MAX: u32 = 600;
/// Depth from which rules are called even if they are small, so that chains of rules end.
const INLINE_DEPTH_MAX: u32 = 40;

/// Lowers what `root` matches.
pub(crate) fn lower(
    mut pool: ExprPool,
    root: RuleId,
    limits: &Limits,
    fuel: &mut Fuel<'_>,
) -> Result<Program, GrammarError> {
    rules::remove_direct_left_recursion(&mut pool);
    let facts = RuleFacts::new(&pool, root, fuel)?;
    rules::refuse_left_recursion(&pool, &facts)?;
    let mut lowering = Lowering::new(pool, facts, limits, fuel);
    let start = lowering.rule_start(root);
    while let Some(rule) = lowering.pending.pop() {
        lowering.lower_rule(rule)?;
    }
    finish::finish(lowering.into_graph(start), root, fuel)
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
    /// Where the nodes of each rule begin, in the order in which they were lowered.
    pub(crate) chunks: Vec<NodeId>,
    /// Start of each rule that is called, with the rule.
    pub(crate) starts: Vec<(RuleId, NodeId)>,
}

struct Lowering<'p, 'f> {
    pool: ExprPool,
    facts: RuleFacts,
    nodes: Vec<Node>,
    arms: Vec<Arm>,
    targets: Vec<NodeId>,
    loops: Vec<CountedLoop>,
    token_sets: Vec<TokenSet>,
    roles: Vec<Role>,
    /// Role of the nodes that are being made.
    role: Role,
    machines: Vec<Machine>,
    texts: Vec<QuotedText>,
    free_texts: Vec<LoweredFree>,
    text_starts: FxHashMap<u32, NodeId>,
    members_starts: FxHashMap<u32, NodeId>,
    starts: FxHashMap<RuleId, NodeId>,
    bodies: FxHashMap<ExprId, NodeId>,
    pending: Vec<RuleId>,
    lowered: FxHashMap<(ExprId, NodeId), NodeId>,
    consumers: FxHashMap<ExprId, ExprId>,
    /// Where a backslash leads, by where all escaped characters do.
    escapes_known: FxHashMap<(NodeId, Role), NodeId>,
    /// The arms of all characters beyond ASCII, by where they lead.
    wide_known: FxHashMap<(NodeId, Role), Rc<[Arm]>>,
    /// Where the nodes of each rule begin.
    chunks: Vec<NodeId>,
    switches: HashTable<NodeId>,
    nodes_max: usize,
    depth: u32,
    fuel: &'p mut Fuel<'f>,
}

impl<'p, 'f> Lowering<'p, 'f> {
    fn new(pool: ExprPool, facts: RuleFacts, limits: &Limits, fuel: &'p mut Fuel<'f>) -> Self {
        Self {
            pool,
            facts,
            nodes: vec![Node::Return],
            arms: Vec::new(),
            targets: Vec::new(),
            loops: Vec::new(),
            token_sets: Vec::new(),
            roles: vec![Role::Plain],
            role: Role::Plain,
            machines: Vec::new(),
            texts: Vec::new(),
            free_texts: Vec::new(),
            text_starts: FxHashMap::default(),
            members_starts: FxHashMap::default(),
            starts: FxHashMap::default(),
            bodies: FxHashMap::default(),
            pending: Vec::new(),
            lowered: FxHashMap::default(),
            consumers: FxHashMap::default(),
            escapes_known: FxHashMap::default(),
            wide_known: FxHashMap::default(),
            chunks: Vec::new(),
            switches: HashTable::new(),
            nodes_max: limits.nodes_max,
            depth: 0,
            fuel,
        }
    }

    fn into_graph(self, start: NodeId) -> Graph {
        Graph {
            pool: self.pool,
            nodes: self.nodes,
            arms: self.arms,
            targets: self.targets,
            loops: self.loops,
            token_sets: self.token_sets,
            roles: self.roles,
            machines: self.machines,
            texts: self.texts,
            free_texts: self.free_texts,
            start,
            chunks: self.chunks,
            starts: self.starts.into_iter().collect(),
        }
    }

    /// The node where a called rule starts; the rule is lowered later.
    fn rule_start(&mut self, rule: RuleId) -> NodeId {
        if let Some(&start) = self.starts.get(&rule) {
            return start;
        }
        // Rules that say the same are one, and so are the states and masks within.
        let body = self.pool.rule(rule).body;
        if let Some(&start) = self.bodies.get(&body) {
            self.starts.insert(rule, start);
            return start;
        }
        let before = std::mem::take(&mut self.role);
        let start = self.reserve();
        self.role = before;
        self.starts.insert(rule, start);
        self.bodies.insert(body, start);
        self.pending.push(rule);
        start
    }

    fn lower_rule(&mut self, rule: RuleId) -> Result<(), GrammarError> {
        let start = self.rule_start(rule);
        self.chunks.push(self.nodes.len() as NodeId);
        let body = self.pool.rule(rule).body;
        let node = self.lower(body, Program::RETURN)?;
        self.set_split(start, &[node]);
        Ok(())
    }

    fn push(&mut self, node: Node) -> Result<NodeId, LimitError> {
        self.fuel.spend(1)?;
        if self.nodes.len() >= self.nodes_max {
            return Err(LimitError::Nodes { max: self.nodes_max });
        }
        self.nodes.push(node);
        self.roles.push(self.role);
        Ok((self.nodes.len() - 1) as NodeId)
    }

    /// A node to be filled in later; nothing comes of it until then.
    fn reserve(&mut self) -> NodeId {
        self.nodes.push(Node::Split(Span { first: 0, count: 0 }));
        self.roles.push(self.role);
        (self.nodes.len() - 1) as NodeId
    }

    fn span_of_targets(&mut self, targets: &[NodeId]) -> Span {
        let first = self.targets.len() as u32;
        self.targets.extend_from_slice(targets);
        Span { first, count: targets.len() as u32 }
    }

    fn set_split(&mut self, node: NodeId, targets: &[NodeId]) {
        let span = self.span_of_targets(targets);
        self.nodes[node as usize] = Node::Split(span);
    }

    fn set_switch(&mut self, node: NodeId, arms: &[Arm]) {
        let first = self.arms.len() as u32;
        self.arms.extend_from_slice(arms);
        self.nodes[node as usize] = Node::Switch(Span { first, count: arms.len() as u32 });
    }

    fn split(&mut self, targets: &[NodeId]) -> Result<NodeId, LimitError> {
        if let [only] = targets {
            return Ok(*only);
        }
        let span = self.span_of_targets(targets);
        self.push(Node::Split(span))
    }

    /// A switch with these arms, sorted and disjoint; equal switches are one node.
    fn switch(&mut self, arms: &[Arm]) -> Result<NodeId, LimitError> {
        let mut hasher = FxHasher::default();
        arms.hash(&mut hasher);
        let hash = hasher.finish();
        let found = self.switches.find(hash, |&node| match self.nodes[node as usize] {
            Node::Switch(span) => {
                self.roles[node as usize] == self.role && self.arms[span.range()] == *arms
            }
            _ => false,
        });
        if let Some(&node) = found {
            return Ok(node);
        }
        let first = self.arms.len() as u32;
        self.arms.extend_from_slice(arms);
        let node = self.push(Node::Switch(Span { first, count: arms.len() as u32 }))?;
        let (nodes, all) = (&self.nodes, &self.arms);
        self.switches.insert_unique(hash, node, |&node| {
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
        if let Some(&node) = self.lowered.get(&(expr, next)) {
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
        self.lowered.insert((expr, next), node);
        Ok(node)
    }

    fn lower_new(&mut self, expr: ExprId, next: NodeId) -> Result<NodeId, GrammarError> {
        match self.pool.get(expr).clone() {
            Expr::Never => Ok(self.reserve()),
            Expr::Empty => Ok(next),
            Expr::Literal(bytes) => Ok(self.lower_literal(&bytes, next)?),
            Expr::Literals(texts) => Ok(self.lower_literals(&texts, next)?),
            Expr::Chars(set) => Ok(self.lower_chars(&set, next)?),
            Expr::Byte(low, high) => Ok(self.switch(&[Arm { low, high, next }])?),
            Expr::Seq(parts) => {
                parts.iter().rev().try_fold(next, |next, &part| self.lower(part, next))
            }
            Expr::Alt(choices) => {
                let mut targets = Vec::with_capacity(choices.len());
                for choice in choices {
                    targets.push(self.lower(choice, next)?);
                }
                Ok(self.split(&targets)?)
            }
            Expr::Repeat { body, min, max } => self.lower_repeat(body, min, max, next),
            Expr::Rule(rule) => self.lower_call(rule, next),
            Expr::Text(number) => self.lower_text(number, next),
            Expr::Members(number) => self.lower_members(number, next),
            Expr::Free(number) => self.lower_free(number, next),
            Expr::Token(set) => {
                let set = self.token_set(set);
                Ok(self.push(Node::Token { set, next })?)
            }
        }
    }

    /// The number of a token set.
    fn token_set(&mut self, set: TokenSet) -> u32 {
        let index = self.token_sets.iter().position(|known| *known == set);
        let index = index.unwrap_or_else(|| {
            self.token_sets.push(set);
            self.token_sets.len() - 1
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
        let (body, min) = if nullable { (self.consuming(body)?, 0) } else { (body, min) };
        let body = self.lower(body, Program::RETURN)?;
        self.loops.push(CountedLoop { body, next, min, max, body_cost: 0 });
        Ok(self.push(Node::Loop((self.loops.len() - 1) as u32))?)
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
                let again = self.reserve();
                let round = self.lower(body, again)?;
                self.set_split(again, &[round, next]);
                again
            }
            Some(max) => {
                let mut node = next;
                for _ in min..max {
                    let round = self.lower(body, node)?;
                    node = self.split(&[round, next])?;
                }
                node
            }
        };
        for _ in 0..min {
            node = self.lower(body, node)?;
        }
        Ok(node)
    }

    /// What `expr` matches but the empty text.
    ///
    /// A counted loop must consume something in each round: otherwise one place in the text
    /// could be reached with every count.
    fn consuming(&mut self, expr: ExprId) -> Result<ExprId, GrammarError> {
        if !self.facts.is_nullable(&self.pool, expr) {
            return Ok(expr);
        }
        if let Some(&known) = self.consumers.get(&expr) {
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
        self.consumers.insert(expr, consumer);
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
                self.consumers.insert(expr, call);
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
