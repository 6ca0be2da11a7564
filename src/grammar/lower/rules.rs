//! What is known of the rules before any node exists: which call which, may be empty, recurse.

use std::sync::Arc;

use super::Base;
use crate::grammar::error::GrammarError;
use crate::grammar::expr::{Expr, ExprId, ExprPool, RuleId};
use crate::grammar::grouped::Grouped;
use crate::grammar::limits::Fuel;

/// Rules of at most this many nodes are copied to every use.
const COPIED_NODES_MAX: u32 = 12;

/// Facts about the rules of a pool that its roots reach.
///
/// Where they reach the whole of a base, what is known of its rules is taken over, and only the
/// others are gone through.
pub(super) struct RuleFacts {
    rules: Vec<OfRule>,
    /// Sizes of expressions; 0: not known yet.
    sizes: Vec<u32>,
    reached: Vec<RuleId>,
    /// For each rule those that call it, once a call.
    users: Grouped<RuleId>,
    /// The base that is reached as a whole.
    base: Option<Arc<Base>>,
}

/// What is known of one rule.
#[derive(Clone, Copy, Default)]
struct OfRule {
    is_nullable: bool,
    is_copied: bool,
    /// Whether no rule that calls itself is reached from it.
    is_settled: bool,
}

impl RuleFacts {
    pub(super) fn new(
        pool: &ExprPool,
        roots: &[RuleId],
        fuel: &mut Fuel<'_>,
    ) -> Result<Self, GrammarError> {
        let Reached { rules: reached, uses, base } = reachable(pool, roots, fuel)?;
        let count = pool.rules().len();
        let mut rules = Vec::with_capacity(count);
        rules.extend_from_slice(base.as_ref().map_or(&[], |base| &base.facts().rules));
        rules.resize(count, OfRule::default());
        let mut facts = Self {
            rules,
            sizes: vec![0; pool.len()],
            reached,
            users: Grouped::new(count, &uses),
            base,
        };
        facts.find_nullable(pool, fuel)?;
        facts.find_copied(pool);
        Ok(facts)
    }

    /// Rules reached from the roots, those first; none of [`base`](Self::base).
    pub(super) fn reached(&self) -> &[RuleId] {
        &self.reached
    }

    /// The base that the roots reach as a whole.
    pub(super) fn base(&self) -> Option<&Arc<Base>> {
        self.base.as_ref()
    }

    /// The rules that call a rule, once a call.
    pub(super) fn users(&self, rule: RuleId) -> &[RuleId] {
        self.users.of(rule.index() as u32)
    }

    /// Whether a rule is copied to where it is used, not called.
    pub(super) fn is_copied(&self, rule: RuleId) -> bool {
        self.rules.get(rule.index()).is_some_and(|rule| rule.is_copied)
    }

    /// Makes room for a rule that was derived from another so that it is never empty.
    pub(super) fn add_rule(&mut self, _from: RuleId) {
        self.rules.push(OfRule::default());
    }

    /// Whether the empty text matches.
    pub(super) fn is_nullable(&self, pool: &ExprPool, expr: ExprId) -> bool {
        match pool.get(expr) {
            Expr::Empty => true,
            Expr::Never
            | Expr::Literal(_)
            | Expr::Literals(_)
            | Expr::Chars(_)
            | Expr::Byte(..)
            | Expr::Members(_)
            | Expr::Token(_) => false,
            Expr::Text(number) => pool.text_machine(*number).may_be_empty(),
            Expr::Free(number) => {
                let text = pool.free_text_of(*number);
                text.may_end && text.may_be_empty
            }
            Expr::Seq(parts) => parts.iter().all(|&part| self.is_nullable(pool, part)),
            Expr::Alt(choices) => choices.iter().any(|&choice| self.is_nullable(pool, choice)),
            Expr::Repeat { body, min, .. } => *min == 0 || self.is_nullable(pool, *body),
            Expr::Rule(rule) => self.rules.get(rule.index()).is_some_and(|rule| rule.is_nullable),
        }
    }

    /// Nodes it takes to write an expression out once, about; a call counts as two.
    pub(super) fn size(&mut self, pool: &ExprPool, expr: ExprId) -> u32 {
        if let Some(&known) = self.sizes.get(expr.index())
            && known != 0
        {
            return known;
        }
        let size = match pool.get(expr) {
            Expr::Never | Expr::Empty => 0,
            Expr::Literal(text) => u32::try_from(text.len()).unwrap_or(u32::MAX),
            Expr::Literals(texts) => texts.iter().fold(0u32, |sum, text| {
                sum.saturating_add(u32::try_from(text.len()).unwrap_or(u32::MAX))
            }),
            // The inner nodes of a character set are shared between its uses for one `next` only.
            Expr::Chars(set) if set.ranges().last().is_none_or(|last| last.1 < 0x80) => 1,
            Expr::Chars(set) => 4 + u32::try_from(set.ranges().len()).unwrap_or(u32::MAX) / 4,
            Expr::Byte(..) | Expr::Token(_) => 1,
            Expr::Seq(parts) | Expr::Alt(parts) => {
                parts.iter().fold(1u32, |sum, &part| sum.saturating_add(self.size(pool, part)))
            }
            Expr::Repeat { body, min, max } => {
                let rounds = max.unwrap_or(*min).max(1);
                // A round that may be left out takes a split.
                let splits = max.map_or(0, |max| max - min);
                let written = self.size(pool, *body).saturating_mul(rounds).saturating_add(splits);
                if written > super::UNROLLED_NODES_MAX { 3 } else { written }
            }
            Expr::Rule(_) | Expr::Members(_) => 2,
            // Never copied: its states are many.
            Expr::Free(_) => super::UNROLLED_NODES_MAX + COPIED_NODES_MAX,
            Expr::Text(number) => {
                let states = pool.text_machine(*number).states.len();
                u32::try_from(states).unwrap_or(u32::MAX).saturating_mul(4)
            }
        };
        if self.sizes.len() < pool.len() {
            self.sizes.resize(pool.len(), 0);
        }
        self.sizes[expr.index()] = size;
        size
    }

    fn find_nullable(&mut self, pool: &ExprPool, fuel: &mut Fuel<'_>) -> Result<(), GrammarError> {
        // Callees mostly come after their callers, so going backwards settles in a few passes.
        let mut changed = true;
        while changed {
            changed = false;
            for index in (0..self.reached.len()).rev() {
                fuel.spend(1)?;
                let rule = self.reached[index];
                let is_known = self.rules[rule.index()].is_nullable;
                if !is_known && self.is_nullable(pool, pool.rule(rule).body) {
                    self.rules[rule.index()].is_nullable = true;
                    changed = true;
                }
            }
        }
        Ok(())
    }

    /// Copied are the rules that reach no recursion and are small or used once.
    fn find_copied(&mut self, pool: &ExprPool) {
        let mut open_calls = vec![0u32; self.rules.len()];
        for user in self.users.all() {
            open_calls[user.index()] += 1;
        }
        let is_new = |rule: &RuleId| open_calls[rule.index()] == 0;
        let mut open: Vec<RuleId> = self.reached.iter().copied().filter(is_new).collect();
        open.extend(self.settled_of_base());
        while let Some(rule) = open.pop() {
            let is_small = self.size(pool, pool.rule(rule).body) <= COPIED_NODES_MAX;
            let users = self.users.of(rule.index() as u32);
            let of_base = self.base.as_ref().map_or(0, |base| base.facts().users(rule).len());
            let of_rule = &mut self.rules[rule.index()];
            of_rule.is_copied = is_small || users.len() + of_base == 1;
            of_rule.is_settled = true;
            for user in users {
                open_calls[user.index()] -= 1;
                if open_calls[user.index()] == 0 {
                    open.push(*user);
                }
            }
        }
    }

    /// The rules of the base that are called from outside and reach no recursion.
    fn settled_of_base(&self) -> Vec<RuleId> {
        let Some(base) = &self.base else { return Vec::new() };
        let is_called = |rule: &RuleId| !self.users.of(rule.index() as u32).is_empty();
        let rules = base.facts().reached().iter().copied();
        rules.filter(|rule| self.rules[rule.index()].is_settled && is_called(rule)).collect()
    }
}

/// What roots reach.
struct Reached {
    /// Rules, the roots first; none of `base`.
    rules: Vec<RuleId>,
    /// Called rules, by number, and what calls them, once a call.
    uses: Vec<(u32, RuleId)>,
    /// The base that is reached as a whole.
    base: Option<Arc<Base>>,
}

/// The rules that the roots reach, and those that call them.
fn reachable(
    pool: &ExprPool,
    roots: &[RuleId],
    fuel: &mut Fuel<'_>,
) -> Result<Reached, GrammarError> {
    let base = pool.base();
    // Rules of the base are gone into only if it is not reached as a whole.
    let mut base_end = base.map_or(0, |base| base.pool().rules().len());
    let (mut of_base, mut rules): (Vec<RuleId>, Vec<RuleId>) =
        roots.iter().partition(|root| root.index() < base_end);
    let mut uses: Vec<(u32, RuleId)> = Vec::with_capacity(2 * pool.rules().len());
    let mut calls = Vec::with_capacity(pool.rules().len());
    let mut seen = vec![false; pool.rules().len()];
    roots.iter().for_each(|root| seen[root.index()] = true);
    let mut next = 0;
    loop {
        while let Some(&rule) = rules.get(next) {
            next += 1;
            calls_of(pool, pool.rule(rule).body, false, &|_| true, &mut calls);
            fuel.spend(1 + u32::try_from(calls.len()).unwrap_or(u32::MAX))?;
            for call in calls.drain(..) {
                uses.push((call.index() as u32, rule));
                if !std::mem::replace(&mut seen[call.index()], true) {
                    let list = if call.index() < base_end { &mut of_base } else { &mut rules };
                    list.push(call);
                }
            }
        }
        if let Some(base) = base.filter(|base| of_base.contains(&base.rule())) {
            return Ok(Reached { rules, uses, base: Some(Arc::clone(base)) });
        }
        if of_base.is_empty() {
            return Ok(Reached { rules, uses, base: None });
        }
        rules.append(&mut of_base);
        base_end = 0;
    }
}

/// The rules an expression calls; if `leading`, only those before which nothing need be consumed.
fn calls_of(
    pool: &ExprPool,
    expr: ExprId,
    leading: bool,
    is_nullable: &dyn Fn(ExprId) -> bool,
    calls: &mut Vec<RuleId>,
) {
    match pool.get(expr) {
        Expr::Rule(rule) => calls.push(*rule),
        Expr::Members(number) if !leading => {
            calls.extend(pool.members_of(*number).values.iter().flatten());
        }
        Expr::Free(number) if !leading => {
            for then in pool.free_text_of(*number).continuations() {
                calls_of(pool, then, leading, is_nullable, calls);
            }
        }
        Expr::Repeat { body, .. } => calls_of(pool, *body, leading, is_nullable, calls),
        Expr::Alt(choices) => {
            for &choice in choices {
                calls_of(pool, choice, leading, is_nullable, calls);
            }
        }
        Expr::Seq(parts) => {
            for &part in parts {
                calls_of(pool, part, leading, is_nullable, calls);
                if leading && !is_nullable(part) {
                    break;
                }
            }
        }
        _ => {}
    }
}

/// `a ::= a x | y` says the same as `a ::= y x*`.
pub(super) fn remove_direct_left_recursion(pool: &mut ExprPool) {
    let is_recursive = |(rule, body): &(RuleId, ExprId)| match pool.get(*body) {
        Expr::Alt(choices) => choices.iter().any(|&choice| starts_with(pool, choice, *rule)),
        _ => starts_with(pool, *body, *rule),
    };
    // Those of a base have none.
    let base_end = pool.base().map_or(0, |base| base.pool().rules().len());
    let rules = pool.rules().skip(base_end).map(|(id, rule)| (id, rule.body));
    let rules: Vec<(RuleId, ExprId)> = rules.filter(is_recursive).collect();
    for (rule, body) in rules {
        let choices: Vec<ExprId> = match pool.get(body) {
            Expr::Alt(choices) => choices.to_vec(),
            _ => vec![body],
        };
        let itself = pool.call(rule);
        let (mut starts, mut repeated) = (Vec::new(), Vec::new());
        for &choice in &choices {
            match pool.get(choice) {
                Expr::Seq(parts) if parts.first() == Some(&itself) => {
                    let rest = parts[1..].to_vec();
                    repeated.push(pool.seq(&rest));
                }
                // Adds nothing.
                _ if choice == itself => repeated.push(ExprPool::EMPTY),
                _ => starts.push(choice),
            }
        }
        let start = pool.alt(&starts);
        let round = pool.alt(&repeated);
        let rounds = pool.repeat(round, 0, None);
        let body = pool.seq(&[start, rounds]);
        pool.define(rule, body);
    }
}

/// Whether an expression is a call of a rule, or parts of which the first is.
fn starts_with(pool: &ExprPool, expr: ExprId, rule: RuleId) -> bool {
    let calls = |expr: ExprId| matches!(pool.get(expr), Expr::Rule(called) if *called == rule);
    match pool.get(expr) {
        Expr::Seq(parts) => parts.first().is_some_and(|&first| calls(first)),
        _ => calls(expr),
    }
}

/// Finds a rule that reaches itself before anything is consumed.
pub(super) fn refuse_left_recursion(
    pool: &ExprPool,
    facts: &RuleFacts,
) -> Result<(), GrammarError> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let leading = |rule: RuleId| {
        let mut calls = Vec::new();
        let is_nullable = |expr| facts.is_nullable(pool, expr);
        calls_of(pool, pool.rule(rule).body, true, &is_nullable, &mut calls);
        calls
    };
    let base_end = facts.base().map_or(0, |base| base.pool().rules().len());
    let mut marks = vec![Mark::New; pool.rules().len()];
    marks[..base_end].fill(Mark::Done);
    let mut path = Vec::new();
    for &from in facts.reached() {
        if marks[from.index()] != Mark::New {
            continue;
        }
        marks[from.index()] = Mark::Open;
        path.push((from, leading(from)));
        while let Some((rule, calls)) = path.last_mut() {
            let Some(call) = calls.pop() else {
                marks[rule.index()] = Mark::Done;
                path.pop();
                continue;
            };
            match marks[call.index()] {
                Mark::Done => {}
                Mark::New => {
                    marks[call.index()] = Mark::Open;
                    path.push((call, leading(call)));
                }
                Mark::Open => return Err(left_recursion(pool, &path, call)),
            }
        }
    }
    Ok(())
}

fn left_recursion(pool: &ExprPool, path: &[(RuleId, Vec<RuleId>)], call: RuleId) -> GrammarError {
    /// Rules named in the message at most.
    const NAMED_MAX: usize = 8;
    let name = |rule: RuleId| pool.rule(rule).name.clone();
    let mut names: Vec<String> =
        path.iter().skip_while(|(rule, _)| *rule != call).map(|(rule, _)| name(*rule)).collect();
    if names.len() > NAMED_MAX {
        names.truncate(NAMED_MAX);
        names.push("…".to_owned());
    }
    names.push(name(call));
    GrammarError::LeftRecursion { rule: name(call), path: names.join(" -> ") }
}
