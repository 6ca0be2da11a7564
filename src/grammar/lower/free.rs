//! Free text as switches over bytes.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Lowering;
use super::costs::LoweringFree;
use crate::TokenId;
use crate::grammar::error::GrammarError;
use crate::grammar::expr::{ExprId, TokenSet};
use crate::grammar::free_places::LoweredFree;
use crate::grammar::free_text::FreeTarget;
use crate::grammar::program::{Arm, Node, NodeId, Span};

impl Lowering<'_, '_> {
    /// Free text that goes on at `next` where it ends.
    pub(super) fn lower_free(&mut self, number: u32, next: NodeId) -> Result<NodeId, GrammarError> {
        let text = Arc::clone(self.pool.free_text_of(number));
        let LoweringFree { machine, bytes } = self.costs.free(&self.pool, number, self.fuel)?;
        let after = self.made.node_costs[next as usize];
        let states = bytes.iter().map(|bytes| self.reserve(bytes.saturating_add(after)));
        let states: Vec<NodeId> = states.collect();
        let mut followers = Followers { states: &states, next, known: FxHashMap::default() };
        let mut tokens: FxHashMap<(TokenId, NodeId), NodeId> = FxHashMap::default();
        let mut leaves = Vec::with_capacity(states.len());
        for (number, state) in machine.states.iter().enumerate() {
            let mut arms = Vec::with_capacity(state.arms.len());
            for (low, high, target) in &state.arms {
                if let Some(next) = self.follower(&mut followers, target)? {
                    arms.push(Arm { low: *low, high: *high, next });
                }
            }
            let mut by_id = Vec::with_capacity(text.tokens.len());
            for (token, name) in &text.tokens {
                let Some(target) = machine.after_name(number as u32, name) else { continue };
                let Some(next) = self.follower(&mut followers, target)? else { continue };
                let node = match tokens.get(&(*token, next)) {
                    Some(&known) => known,
                    None => {
                        let set = self.token_set(TokenSet::only(*token));
                        self.push(Node::Token { set, next })?
                    }
                };
                tokens.insert((*token, next), node);
                by_id.push(node);
            }
            let end = text.may_end.then_some(next);
            leaves.push(self.set_free_state(states[number], &arms, by_id, end)?);
        }
        let mut start = states[0];
        if text.may_end && !text.may_be_empty {
            start = self.split(&leaves[0])?;
        }
        let switches = leaves.iter().filter_map(|leaves| leaves.first()).copied().collect();
        let texts = text.anywhere.iter().map(|trigger| trigger.text.clone()).collect();
        let tokens = text.tokens.iter().map(|(token, _)| *token).collect();
        self.made.free_texts.push(LoweredFree { machine, texts, tokens, states, switches });
        Ok(start)
    }

    /// The node that a target is; `None`: it may not come.
    fn follower(
        &mut self,
        followers: &mut Followers<'_>,
        target: &FreeTarget,
    ) -> Result<Option<NodeId>, GrammarError> {
        let then = match target {
            FreeTarget::State(state) => return Ok(Some(followers.states[*state as usize])),
            FreeTarget::Done(then) if then.is_empty() => return Ok(None),
            FreeTarget::Done(then) => then,
        };
        if let Some(&known) = followers.known.get(then) {
            return Ok(Some(known));
        }
        let any = self.pool.alt(then);
        let node = self.lower(any, followers.next)?;
        followers.known.insert(then.clone(), node);
        Ok(Some(node))
    }

    /// Fills in a state; the nodes that consume there, its switch first.
    fn set_free_state(
        &mut self,
        node: NodeId,
        arms: &[Arm],
        tokens: Vec<NodeId>,
        end: Option<NodeId>,
    ) -> Result<Vec<NodeId>, GrammarError> {
        if tokens.is_empty() && end.is_none() {
            self.set_switch(node, arms);
            return Ok(vec![node]);
        }
        let first = self.made.arms.len() as u32;
        self.made.arms.extend_from_slice(arms);
        let switch = self.push(Node::Switch(Span { first, count: arms.len() as u32 }))?;
        let leaves: Vec<NodeId> = [switch].into_iter().chain(tokens).collect();
        let targets: Vec<NodeId> = leaves.iter().copied().chain(end).collect();
        self.set_split(node, &targets);
        Ok(leaves)
    }
}

/// What follows a free text.
struct Followers<'s> {
    /// The node of each state.
    states: &'s [NodeId],
    /// What follows where a trigger has led to an end.
    next: NodeId,
    /// The nodes of what may follow triggers.
    known: FxHashMap<Vec<ExprId>, NodeId>,
}
