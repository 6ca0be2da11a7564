//! Runs whose states differ, but have much in common: names that may be keywords.

use super::MaskWalk;
use crate::grammar::automaton::{ConfigId, DEAD, Run};
use crate::grammar::error::LimitError;
use crate::grammar::shapes::{Class, ShapeId, ShapeNode, Symbol};

impl MaskWalk<'_, '_, '_> {
    /// Sets the alive tokens of a run and of those below, where the states that the characters of
    /// the run lead to have something in common, as names have that may be keywords: what is alive
    /// from that is alive. The few tokens that may be alive otherwise are followed one by one.
    /// If there is nothing in common, does nothing and returns false.
    pub(super) fn close_in(&mut self, index: ShapeId, state: ConfigId) -> Result<bool, LimitError> {
        let nodes = self.shapes().nodes();
        let first = &nodes[index as usize];
        let lower = self.lower(state, first)?;
        if lower == DEAD {
            return Ok(false);
        }
        let Some(upper) = self.upper(state, first)? else { return Ok(false) };
        let first_depth = usize::from(first.depth);
        let mut between = vec![(lower, upper); self.shapes().depth_max() + 1];
        let mut at = index;
        while at < first.skip {
            let node = &nodes[at as usize];
            self.pay(2)?;
            let depth = usize::from(node.depth) - first_depth;
            if depth > 0 {
                let (lower, upper) = between[depth - 1];
                let Some(upper) = self.step_upper(upper, node)? else {
                    self.walk_each(self.shapes().tokens_from(node))?;
                    at = node.skip;
                    continue;
                };
                if upper == DEAD {
                    at = node.skip;
                    continue;
                }
                between[depth] = (self.step_lower(lower, node)?, upper);
            }
            let (lower, _) = between[depth];
            if lower == DEAD {
                self.walk_each(self.shapes().own(node))?;
            } else if self.shapes().set_own(node, self.bits) {
                self.land(lower);
            }
            at += 1;
        }
        Ok(true)
    }

    /// What all the states that a symbol may lead to have in common.
    fn lower(&mut self, from: ConfigId, node: &ShapeNode) -> Result<ConfigId, LimitError> {
        let Some((class, is_run)) = bounded(node) else { return Ok(DEAD) };
        let bytes = self.bytes_max.min(u32::from(node.height));
        self.maker.automaton.lower_bound(from, class, is_run, bytes, self.fuel)
    }

    /// What the states that a symbol may lead to have together, if that is found.
    fn upper(&mut self, from: ConfigId, node: &ShapeNode) -> Result<Option<ConfigId>, LimitError> {
        let Some((class, is_run)) = bounded(node) else { return Ok(None) };
        let bytes = self.bytes_max.min(u32::from(node.height));
        let edge = self.maker.automaton.upper_bound(from, class, is_run, bytes, self.fuel)?;
        self.floor = self.floor.min(edge.map_or(u32::MAX, |edge| edge.floor));
        Ok(edge.map(|edge| edge.to))
    }

    /// A state that has at least what a symbol leads to from `from`, if one is known.
    fn step_upper(
        &mut self,
        from: ConfigId,
        node: &ShapeNode,
    ) -> Result<Option<ConfigId>, LimitError> {
        match self.step(from, node)? {
            Run::Dead => Ok(Some(DEAD)),
            Run::To(edge) => {
                self.floor = self.floor.min(edge.floor);
                Ok(Some(edge.to))
            }
            Run::Mixed => self.upper(from, node),
        }
    }

    /// A state that has at most what a symbol leads to from `from`.
    fn step_lower(&mut self, from: ConfigId, node: &ShapeNode) -> Result<ConfigId, LimitError> {
        if from == DEAD {
            return Ok(DEAD);
        }
        match self.step(from, node)? {
            Run::Dead => Ok(DEAD),
            Run::To(edge) => {
                self.floor = self.floor.min(edge.floor);
                Ok(edge.to)
            }
            Run::Mixed => self.lower(from, node),
        }
    }
}

/// The class of a symbol and whether it is a run, if bounds are looked for.
fn bounded(node: &ShapeNode) -> Option<(Class, bool)> {
    match node.symbol {
        Symbol::One(class) if class != Class::Wide => Some((class, false)),
        Symbol::Run(class) if class != Class::Wide => Some((class, true)),
        _ => None,
    }
}
