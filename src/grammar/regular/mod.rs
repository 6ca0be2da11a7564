//! Regular languages of decoded texts, as automata over characters.
//!
//! ```text
//! pattern -> syntax tree -> program of nodes -> automaton by sets of threads -> minimal Dfa
//!            (ecma)         (program)           (threads, lookahead)            (table, minimize)
//! ```
//!
//! A [`Dfa`] reads Unicode scalar values. It is made from texts, character sets, lengths or
//! ECMA-262 patterns, and languages are combined by the Boolean operations, concatenation and
//! repetition. All of it is exact; what would grow beyond bounds is an error.
//!
//! Cost: a pattern as schemas have them takes some tens of microseconds, and an operation time in
//! proportion to the states it makes, of which there are at most [`STATES_MAX`].

mod alphabet;
mod classify;
mod dfa;
mod ecma;
mod ecma_class;
mod lookahead;
mod measure;
mod minimize;
mod nfa;
mod ops;
mod pattern;
mod program;
mod table;
#[cfg(test)]
mod tests;
mod texts;
mod threads;

pub use classify::{Classifier, ClassifierState};
pub use dfa::{Dfa, DfaArm, DfaState};

use super::LimitError;

/// States that one automaton may have while it is made.
pub const STATES_MAX: usize = 50_000;

/// Why a language cannot be made into an automaton.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegularError {
    /// The steps ran out, the work was stopped, or groups nest too deep.
    #[error("the pattern is too expensive: {0}")]
    Limit(#[from] LimitError),
    /// The text is no ECMA-262 pattern.
    #[error("the pattern does not parse: {message}")]
    Syntax {
        /// What is wrong, and at which character, from 1.
        message: String,
    },
    /// The pattern has a meaning that no automaton has, or that ECMA-262 does not define.
    #[error("the pattern uses {feature}, which is not supported")]
    Unsupported {
        /// What is not supported.
        feature: &'static str,
    },
    /// The automaton would be too large.
    #[error("the pattern needs more than {states_max} states")]
    TooLarge {
        /// The limit.
        states_max: usize,
    },
}
