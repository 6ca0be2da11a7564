//! Least bytes of rules and expressions, before any node exists: so a node knows its cost when it
//! is made, whatever is lowered later.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::rules::RuleFacts;
use crate::grammar::error::LimitError;
use crate::grammar::expr::{CharSet, Expr, ExprId, ExprPool, Members, RuleId};
use crate::grammar::free_text::{FreeMachine, FreeTarget, FreeText};
use crate::grammar::key_reach::Keys;
use crate::grammar::limits::Fuel;
use crate::grammar::markers::Segment;
use crate::grammar::members::{Machine, MarkBytes, Progress};
use crate::grammar::program::NO_WAY;

/// What is known of the cost of an expression.
#[derive(Clone, Copy)]
struct Known {
    cost: u32,
    /// The look at a rule it was found in; [`SETTLED`]: no rule can change it.
    look: u32,
}

const SETTLED: u32 = u32::MAX;

/// A free text as an automaton, with the least bytes from each state to an end.
pub(super) struct LoweringFree {
    pub(super) machine: Arc<FreeMachine>,
    pub(super) bytes: Vec<u32>,
}

/// Least bytes of what a grammar is made of. A token counts as one.
#[derive(Default)]
pub(super) struct Costs {
    rules: Vec<u32>,
    exprs: Vec<Known>,
    look: u32,
    texts: FxHashMap<u32, Arc<[u32]>>,
    machines: FxHashMap<u32, Machine>,
    free: FxHashMap<u32, Arc<FreeMachine>>,
}

impl Costs {
    /// The costs of all rules that the root reaches.
    pub(super) fn new(
        pool: &ExprPool,
        facts: &RuleFacts,
        fuel: &mut Fuel<'_>,
    ) -> Result<Self, LimitError> {
        let mut costs = pool.base().map_or_else(Self::default, |base| base.costs().of_exprs(pool));
        // Rules mostly come before those that they call.
        let mut open: std::collections::VecDeque<RuleId> =
            facts.reached().iter().rev().copied().collect();
        costs.make_room(pool);
        let mut is_open = vec![true; pool.rules().len()];
        while let Some(rule) = open.pop_front() {
            is_open[rule.index()] = false;
            if costs.look_at(pool, rule, fuel)? {
                for &user in facts.users(rule) {
                    if !std::mem::replace(&mut is_open[user.index()], true) {
                        open.push_back(user);
                    }
                }
            }
        }
        Ok(costs)
    }

    /// The costs of rules and expressions, with room for those of a pool. Those of texts are looked
    /// up where they are.
    fn of_exprs(&self, pool: &ExprPool) -> Self {
        let mut rules = Vec::with_capacity(pool.rules().len());
        rules.extend_from_slice(&self.rules);
        let mut exprs = Vec::with_capacity(pool.len());
        exprs.extend_from_slice(&self.exprs);
        Self { rules, exprs, look: self.look, ..Self::default() }
    }

    /// Adds rules that only those among them call.
    pub(super) fn add_rules(
        &mut self,
        pool: &ExprPool,
        rules: std::ops::Range<usize>,
        fuel: &mut Fuel<'_>,
    ) -> Result<(), LimitError> {
        self.make_room(pool);
        let added = || pool.rules().skip(rules.start).take(rules.len()).map(|(rule, _)| rule);
        loop {
            let mut changed = false;
            for rule in added() {
                changed |= self.look_at(pool, rule, fuel)?;
            }
            if !changed {
                return Ok(());
            }
        }
    }

    /// Nothing will change any more of what was found.
    pub(super) fn settle(&mut self) {
        let found = self.exprs.iter_mut().filter(|known| known.look > 0);
        found.for_each(|known| known.look = SETTLED);
    }

    fn make_room(&mut self, pool: &ExprPool) {
        self.rules.resize(pool.rules().len(), NO_WAY);
        self.exprs.resize(pool.len(), Known { cost: NO_WAY, look: 0 });
    }

    /// Finds the cost of a rule anew; whether it has changed.
    fn look_at(
        &mut self,
        pool: &ExprPool,
        rule: RuleId,
        fuel: &mut Fuel<'_>,
    ) -> Result<bool, LimitError> {
        self.look += 1;
        let (cost, _) = self.find(pool, pool.rule(rule).body, fuel)?;
        let known = &mut self.rules[rule.index()];
        let changed = cost < *known;
        *known = cost.min(*known);
        Ok(changed)
    }

    /// Least bytes of a rule.
    pub(super) fn rule(&self, rule: RuleId) -> u32 {
        self.rules[rule.index()]
    }

    /// Least bytes from each state of a text to an end.
    pub(super) fn text(&mut self, pool: &ExprPool, number: u32) -> Arc<[u32]> {
        if let Some(known) = pool.base().and_then(|base| base.costs().texts.get(&number)) {
            return Arc::clone(known);
        }
        let bytes = || pool.text_machine(number).bytes_to_ends(|_| 0).into();
        Arc::clone(self.texts.entry(number).or_insert_with(bytes))
    }

    /// The machine of an object. Its costs are those of the rules as they are now.
    pub(super) fn machine(
        &mut self,
        pool: &ExprPool,
        number: u32,
        fuel: &mut Fuel<'_>,
    ) -> Result<Machine, LimitError> {
        self.settle_machine(pool, number, fuel)?;
        let machine = self.machines.remove(&number);
        machine.map_or_else(|| new_machine(pool.members_of(number), fuel), Ok)
    }

    /// A free text.
    pub(super) fn free(
        &mut self,
        pool: &ExprPool,
        number: u32,
        fuel: &mut Fuel<'_>,
    ) -> Result<LoweringFree, LimitError> {
        self.make_room(pool);
        self.look += 1;
        Ok(self.settle_free(pool, number, fuel)?.0)
    }

    /// The cost of an expression, and whether it is settled.
    fn find(
        &mut self,
        pool: &ExprPool,
        expr: ExprId,
        fuel: &mut Fuel<'_>,
    ) -> Result<(u32, bool), LimitError> {
        let known = self.exprs[expr.index()];
        if known.look == SETTLED || known.look == self.look {
            return Ok((known.cost, known.look == SETTLED));
        }
        fuel.spend(1)?;
        let (cost, is_settled) = self.find_new(pool, expr, fuel)?;
        let look = if is_settled { SETTLED } else { self.look };
        self.exprs[expr.index()] = Known { cost, look };
        Ok((cost, is_settled))
    }

    fn find_new(
        &mut self,
        pool: &ExprPool,
        expr: ExprId,
        fuel: &mut Fuel<'_>,
    ) -> Result<(u32, bool), LimitError> {
        Ok(match pool.get(expr) {
            Expr::Never => (NO_WAY, true),
            Expr::Empty => (0, true),
            Expr::Literal(text) => (text.len() as u32, true),
            Expr::Literals(texts) => {
                (texts.iter().map(|text| text.len() as u32).min().unwrap_or(NO_WAY), true)
            }
            Expr::Chars(set) => (least_bytes(set), true),
            Expr::Byte(..) | Expr::Token(_) => (1, true),
            Expr::Seq(parts) => {
                let mut sum = (0u32, true);
                for &part in parts {
                    let (cost, is_settled) = self.find(pool, part, fuel)?;
                    sum = (sum.0.saturating_add(cost), sum.1 && is_settled);
                }
                sum
            }
            Expr::Alt(choices) => {
                let mut least = (NO_WAY, true);
                for &choice in choices {
                    let (cost, is_settled) = self.find(pool, choice, fuel)?;
                    least = (least.0.min(cost), least.1 && is_settled);
                }
                least
            }
            Expr::Repeat { min: 0, .. } => (0, true),
            &Expr::Repeat { body, min, .. } => {
                let (cost, is_settled) = self.find(pool, body, fuel)?;
                (cost.saturating_mul(min), is_settled)
            }
            Expr::Rule(rule) => (self.rules[rule.index()], false),
            &Expr::Text(number) => {
                let machine = pool.text_machine(number);
                let is_short = |max: u32| machine.chars_to_end()[0] <= max;
                let may_come = !machine.states.is_empty() && machine.max_chars.is_none_or(is_short);
                (if may_come { self.text(pool, number)[0] } else { NO_WAY }, true)
            }
            &Expr::Members(number) => {
                self.settle_machine(pool, number, fuel)?;
                let start = Progress::default();
                let members = self.machines[&number].finish_bytes(&start, true);
                let open = least_bytes_marked(pool, &pool.members_of(number).open);
                (members.saturating_add(open), false)
            }
            &Expr::Free(number) => (self.settle_free(pool, number, fuel)?.1, false),
        })
    }

    /// Tells a machine what the values of its keys cost.
    fn settle_machine(
        &mut self,
        pool: &ExprPool,
        number: u32,
        fuel: &mut Fuel<'_>,
    ) -> Result<(), LimitError> {
        let members = pool.members_of(number);
        fuel.spend(1 + members.values.len() as u32)?;
        let colon = least_bytes_marked(pool, &members.colon);
        let machine = match self.machines.entry(number) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(new_machine(members, fuel)?),
        };
        for (key, value) in members.values.iter().enumerate() {
            let rest = value.map_or(0, |rule| self.rules[rule.index()].saturating_add(colon));
            machine.set_rest(key as u32, rest);
        }
        Ok(())
    }

    /// Finds the costs of a free text with those of what may follow it, and that of all of it.
    fn settle_free(
        &mut self,
        pool: &ExprPool,
        number: u32,
        fuel: &mut Fuel<'_>,
    ) -> Result<(LoweringFree, u32), LimitError> {
        let text = pool.free_text_of(number);
        let machine = match self.free.get(&number) {
            Some(known) => Arc::clone(known),
            None => {
                let machine = Arc::new(FreeMachine::new(text, fuel)?);
                self.free.insert(number, Arc::clone(&machine));
                machine
            }
        };
        let mut ways = Vec::with_capacity(machine.states.len());
        for (state, arms) in machine.states.iter().enumerate() {
            let by_id =
                text.tokens.iter().filter_map(|(_, name)| machine.after_name(state as u32, name));
            let mut of_state = Ways { end: NO_WAY, next: Vec::new() };
            for target in arms.arms.iter().map(|(_, _, target)| target).chain(by_id) {
                match target {
                    FreeTarget::State(next) => of_state.next.push(*next),
                    FreeTarget::Done(then) => {
                        for &then in then {
                            let cost = self.find(pool, then, fuel)?.0.saturating_add(1);
                            of_state.end = of_state.end.min(cost);
                        }
                    }
                }
            }
            of_state.next.sort_unstable();
            of_state.next.dedup();
            fuel.spend(1 + of_state.next.len() as u32)?;
            ways.push(of_state);
        }
        let bytes = free_bytes(&ways, text.may_end, fuel)?;
        let cost = match text.as_ref() {
            FreeText { may_end: true, may_be_empty: false, .. } => ways[0].least(&bytes),
            _ => bytes[0],
        };
        Ok((LoweringFree { machine, bytes }, cost))
    }
}

/// How a free text may go on from a state, by a byte or token.
struct Ways {
    /// Least bytes to the end by a trigger that is complete.
    end: u32,
    next: Vec<u32>,
}

impl Ways {
    /// Least bytes if something has to come, given those of the states.
    fn least(&self, bytes: &[u32]) -> u32 {
        let by_states = self.next.iter().map(|next| bytes[*next as usize].saturating_add(1));
        by_states.min().unwrap_or(NO_WAY).min(self.end)
    }
}

/// Least bytes from each state to the end.
fn free_bytes(ways: &[Ways], may_end: bool, fuel: &mut Fuel<'_>) -> Result<Vec<u32>, LimitError> {
    if may_end {
        return Ok(vec![0; ways.len()]);
    }
    let mut bytes = vec![NO_WAY; ways.len()];
    loop {
        let mut changed = false;
        for (state, of_state) in ways.iter().enumerate().rev() {
            let least = of_state.least(&bytes);
            changed |= least < bytes[state];
            bytes[state] = least.min(bytes[state]);
        }
        fuel.spend(ways.len() as u32)?;
        if !changed {
            return Ok(bytes);
        }
    }
}

fn new_machine(members: &Members, fuel: &mut Fuel<'_>) -> Result<Machine, LimitError> {
    let marks = MarkBytes {
        quote: u32::from(members.quoted),
        comma: members.comma.len() as u32,
        close: members.close.len() as u32,
    };
    let keys = Keys::new(&members.keys, members.quoted, members.values.len(), fuel)?;
    Ok(Machine::new(Arc::clone(&members.rules), keys, marks))
}

/// Least bytes of a character of a set.
fn least_bytes(set: &CharSet) -> u32 {
    let first = set.ranges().first().and_then(|range| char::from_u32(range.0));
    first.map_or(NO_WAY, |first| first.len_utf8() as u32)
}

/// Least bytes of a text in which control tokens may come as such.
fn least_bytes_marked(pool: &ExprPool, text: &[u8]) -> u32 {
    let bytes = pool.segments(text).into_iter().map(|segment| match segment {
        Segment::Bytes(bytes) => bytes.len() as u32,
        Segment::Marker(..) => 1,
    });
    bytes.sum()
}
