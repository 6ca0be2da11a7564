//! What many grammars have in common, lowered once.
//!
//! Most schemas allow some value of any kind somewhere, and what that may be takes more rules than
//! many a schema. A pool that starts as a copy of the base's knows these rules by the same numbers,
//! so what was made of them is taken as it is.

use std::fmt;

use super::costs::Costs;
use super::rules::RuleFacts;
use super::{Lowering, Made};
use crate::grammar::error::GrammarError;
use crate::grammar::expr::{ExprPool, RuleId};
use crate::grammar::limits::{Fuel, Limits};

/// A rule with all that it calls, as expressions and as nodes.
pub(crate) struct Base {
    pool: ExprPool,
    rule: RuleId,
    facts: RuleFacts,
    costs: Costs,
    made: Made,
}

impl Base {
    /// Lowers a rule of a pool, and others that come with it.
    pub(crate) fn new(
        mut pool: ExprPool,
        rule: RuleId,
        others: &[RuleId],
        limits: &Limits,
        fuel: &mut Fuel<'_>,
    ) -> Result<Self, GrammarError> {
        let roots = [&[rule], others].concat();
        let known = super::read_rules(&mut pool, &roots, fuel)?;
        let mut lowering = Lowering::new(pool, Made::new(), known, limits, fuel);
        for root in roots {
            lowering.rules_from(root)?;
        }
        let Lowering { pool, facts, mut costs, made, .. } = lowering;
        costs.settle();
        Ok(Self { pool, rule, facts, costs, made })
    }

    /// The pool that further rules are added to.
    pub(crate) fn pool(&self) -> &ExprPool {
        &self.pool
    }

    /// What is known of the rules of the pool.
    pub(super) fn facts(&self) -> &RuleFacts {
        &self.facts
    }

    /// The least bytes of all that is in the pool.
    pub(super) fn costs(&self) -> &Costs {
        &self.costs
    }

    /// The rule that was lowered.
    pub(super) fn rule(&self) -> RuleId {
        self.rule
    }

    /// What was made of the rules, for a pool that has them and uses them.
    pub(super) fn made(&self, pool: &mut ExprPool) -> Made {
        if self.pool.has_distinct_keys() {
            pool.distinguish_keys();
        }
        self.made.clone()
    }
}

impl fmt::Debug for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Base").field("rule", &self.rule).finish_non_exhaustive()
    }
}
