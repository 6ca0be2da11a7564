//! A grammar that the answer cannot leave.

use std::fmt;
use std::sync::Arc;

use super::{Fault, Outcome};
use crate::TokenId;
use crate::grammar::{Mask, MaskView, MatchError, Matcher, Tokenize};

/// What a generation is held to.
#[derive(Clone)]
pub struct Constraint {
    /// Where the answer starts in its grammar: behind what the prompt has written of it.
    pub start: Matcher,
    /// Splits text that the grammar leaves no choice about into tokens, so that they need not be
    /// drawn one by one; `None`: every token is drawn.
    pub forced_by: Option<Arc<dyn Tokenize + Send + Sync>>,
    /// The answer is complete within its token budget: near its end only tokens are allowed from
    /// which the grammar can still finish.
    pub whole: bool,
}

impl fmt::Debug for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Constraint")
            .field("size", &self.start.grammar().size())
            .field("forced_runs", &self.forced_by.is_some())
            .field("whole", &self.whole)
            .finish()
    }
}

/// The place of a session's answer in its grammar, and the mask for its next token.
pub(super) struct Guide {
    matcher: Matcher,
    forced_by: Option<Arc<dyn Tokenize + Send + Sync>>,
    whole: bool,
    /// The mask of the present place, where it is nobody else's.
    own: Vec<u32>,
    /// The same, where it is written out already for all who are there.
    shared: Option<Arc<Mask>>,
    /// Whether they are those of the present place.
    is_prepared: bool,
}

impl Guide {
    /// A guide at the start of an answer. Without `may_force` every token is drawn.
    pub(super) fn new(constraint: &Constraint, may_force: bool) -> Self {
        let matcher = constraint.start.fork();
        let words = matcher.grammar().vocabulary().mask_words();
        Self {
            matcher,
            forced_by: constraint.forced_by.clone().filter(|_| may_force),
            whole: constraint.whole,
            own: vec![0; words],
            shared: None,
            is_prepared: false,
        }
    }

    /// Computes the mask of the next token, if that was not done yet. `tokens_left`: how many may
    /// still be taken, the next one included.
    pub(super) fn prepare(&mut self, tokens_left: u32) -> Result<(), Outcome> {
        if self.is_prepared {
            return Ok(());
        }
        let found = if self.whole {
            self.matcher.mask_within(tokens_left, &mut self.own)
        } else {
            self.matcher.mask().map(Some)
        };
        self.shared = found.map_err(|error| outcome_of(&error))?;
        if let Some(mask) = &self.shared
            && words_of(mask).is_none()
        {
            mask.write(&mut self.own);
            self.shared = None;
        }
        self.is_prepared = true;
        Ok(())
    }

    /// The mask of the next token; see [`Guide::prepare`].
    pub(super) fn mask(&self) -> &[u32] {
        self.shared.as_deref().and_then(words_of).unwrap_or(&self.own)
    }

    /// Takes a token. One that its own mask allowed and that is rejected is a bug: the session ends
    /// with a fault, and never goes on unconstrained.
    pub(super) fn accept(&mut self, token: TokenId) -> Result<(), Outcome> {
        self.is_prepared = false;
        self.matcher.accept(token).map_err(|error| outcome_of(&error))
    }

    /// Takes a token that was not drawn.
    pub(super) fn accept_forced(&mut self, token: TokenId) -> Result<(), Outcome> {
        self.is_prepared = false;
        self.matcher.accept_forced(token).map_err(|error| outcome_of(&error))
    }

    /// How many of these tokens, one after another, it would take now.
    pub(super) fn takes(&self, tokens: &[TokenId]) -> usize {
        let mut after = self.matcher.fork();
        tokens.iter().take_while(|&&token| after.accept(token).is_ok()).count()
    }

    /// Whether an end token was taken as the end, not as text that the grammar asked for.
    pub(super) fn has_ended(&self) -> bool {
        self.matcher.has_ended()
    }

    /// The tokens that must follow, without a choice. They are written as the tokenizer would,
    /// which may take more tokens than the shortest way: none, where a whole answer would then not
    /// fit into `tokens_left`.
    pub(super) fn forced(&mut self, tokens_left: u32) -> Result<Vec<TokenId>, Outcome> {
        let Some(tokenizer) = &self.forced_by else { return Ok(Vec::new()) };
        let failed = |error: MatchError| outcome_of(&error);
        let tokens = self.matcher.forced(&**tokenizer).map_err(failed)?;
        if tokens.is_empty() || !self.whole {
            return Ok(tokens);
        }
        let mut after = self.matcher.fork();
        for &token in &tokens {
            after.accept_forced(token).map_err(failed)?;
        }
        let taken = u32::try_from(tokens.len()).unwrap_or(u32::MAX);
        let needed = after.min_tokens_to_finish().map_err(failed)?.unwrap_or(u32::MAX);
        let fits = taken.saturating_add(needed) <= tokens_left;
        Ok(if fits { tokens } else { Vec::new() })
    }

    /// Whether the answer is complete and nothing but an end token may follow.
    pub(super) fn is_exhausted(
        &mut self,
        is_end: impl Fn(TokenId) -> bool,
    ) -> Result<bool, Outcome> {
        if !self.matcher.is_complete() {
            return Ok(false);
        }
        // The mask is made while the device runs: here nobody should wait for it.
        if let Some(goes_on) = self.matcher.goes_on() {
            return Ok(!goes_on);
        }
        let mask = self.matcher.mask().map_err(|error| outcome_of(&error))?;
        // End tokens are few: a mask with more tokens than that allows something else.
        const END_TOKENS_MAX: usize = 64;
        if mask.count() > END_TOKENS_MAX {
            return Ok(false);
        }
        let mut bits = vec![0; mask.words()];
        mask.write(&mut bits);
        Ok(tokens_of(&bits).all(is_end))
    }
}

/// A mask's bits, where nothing has to be added to them.
fn words_of(mask: &Mask) -> Option<&[u32]> {
    match mask.view() {
        MaskView::Bits { words, more: [] } => Some(words),
        _ => None,
    }
}

fn tokens_of(bits: &[u32]) -> impl Iterator<Item = TokenId> + '_ {
    (0..).zip(bits).filter(|(_, word)| **word != 0).flat_map(|(index, word)| {
        (0..u32::BITS).filter(move |bit| word >> bit & 1 == 1).map(move |bit| index * 32 + bit)
    })
}

fn outcome_of(error: &MatchError) -> Outcome {
    match error {
        MatchError::DeadEnd | MatchError::BudgetTooSmall { .. } => Outcome::GrammarDeadEnd,
        MatchError::Limit(_)
        | MatchError::Rejected { .. }
        | MatchError::NotBegun { .. }
        | MatchError::Ended
        | MatchError::RollbackTooFar { .. }
        | MatchError::MaskSize { .. } => Outcome::Fault(Fault::Grammar(error.to_string())),
    }
}
