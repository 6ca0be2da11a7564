//! What can go wrong: while a grammar is compiled, and while it is followed.

use super::json_schema::SchemaError;
use crate::TokenId;

/// A bound of [`Limits`](super::Limits) was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// The grammar's text is too long.
    #[error("it has {bytes} bytes, and may have {max}")]
    Source {
        /// How many it has.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// The steps of [`Fuel`](super::Fuel) ran out.
    #[error("it takes more steps than allowed")]
    Steps,
    /// The caller's stop function asked for the end: a deadline, or a client that left.
    #[error("it was stopped before it was done")]
    Stopped,
    /// The lowered grammar is too large.
    #[error("it needs more than {max} nodes")]
    Nodes {
        /// The limit.
        max: usize,
    },
    /// Too many parses are possible at once.
    #[error("it is too ambiguous: more than {max} parses are open at once")]
    Items {
        /// The limit.
        max: usize,
    },
    /// Rules are nested too deep in the text being matched.
    #[error("it nests more than {max} levels deep")]
    Depth {
        /// The limit.
        max: u32,
    },
}

/// Why a grammar does not compile. Each of these is the client's fault and becomes a 400.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrammarError {
    /// The text is no grammar.
    #[error("{message} at line {line}, column {column}")]
    Syntax {
        /// What is wrong, and where it helps what was expected.
        message: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
    },
    /// The JSON Schema is wrong, matches nothing, or cannot be followed exactly.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The regular expression does not parse.
    #[error("the regular expression does not parse: {message}")]
    RegexSyntax {
        /// The parser's words, with the place.
        message: String,
    },
    /// The regular expression uses what cannot be decided byte by byte here.
    #[error("the regular expression uses {feature}, which is not supported")]
    RegexUnsupported {
        /// What is not supported.
        feature: &'static str,
    },
    /// A rule calls itself before it has matched anything.
    #[error(
        "rule `{rule}` is left-recursive ({path}): put what it repeats behind something else, or use `*`"
    )]
    LeftRecursion {
        /// The rule's name.
        rule: String,
        /// The calls from the rule back to itself, as in `a -> b -> a`.
        path: String,
    },
    /// No text at all matches.
    #[error("the grammar matches no text{}", of_rule(.rule))]
    MatchesNothing {
        /// The rule that can never end, where one is to blame.
        rule: Option<String>,
    },
    /// A list of choices with nothing in it.
    #[error("the list of choices is empty")]
    NoChoices,
    /// No token of this vocabulary can begin an answer.
    #[error("no token of this model's vocabulary can spell the start of the grammar")]
    Unspellable,
    /// A limit was hit.
    #[error("the grammar is too expensive to compile: {0}")]
    Limit(#[from] LimitError),
    /// What is wrong is in one part of a structural tag.
    #[error("{error}")]
    Within {
        /// Where the part comes from.
        place: String,
        /// What is wrong with it.
        error: Box<GrammarError>,
    },
}

impl GrammarError {
    /// Whether the caller's stop function ended the work: another time it may be done.
    pub fn is_stopped(&self) -> bool {
        match self {
            Self::Limit(limit) | Self::Schema(SchemaError::Limit(limit)) => {
                *limit == LimitError::Stopped
            }
            Self::Within { error, .. } => error.is_stopped(),
            _ => false,
        }
    }

    /// The same, of a part that comes from `place`; an inner place is nearer.
    pub(super) fn within(self, place: &str) -> Self {
        match self {
            Self::Within { .. } => self,
            error => Self::Within { place: place.to_owned(), error: Box::new(error) },
        }
    }
}

fn of_rule(rule: &Option<String>) -> String {
    rule.as_ref().map_or(String::new(), |name| format!(": rule `{name}` can never end"))
}

/// Why a matcher cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatchError {
    /// The token is not allowed here. The matcher is as it was before.
    #[error("token {token} is not allowed here")]
    Rejected {
        /// The token.
        token: TokenId,
    },
    /// The answer is not complete and no token can continue it.
    #[error("no token of the vocabulary can continue the answer")]
    DeadEnd,
    /// No answer begins with the text that this one has begun with.
    #[error("no answer goes on after what was begun: it fails at byte {at_byte}")]
    NotBegun {
        /// The first byte that cannot come.
        at_byte: usize,
    },
    /// An end token was accepted before: nothing can follow.
    #[error("the answer has ended")]
    Ended,
    /// More tokens to take back than were accepted.
    #[error("cannot take back {asked} tokens of {accepted}")]
    RollbackTooFar {
        /// How many were asked for.
        asked: usize,
        /// How many were accepted.
        accepted: usize,
    },
    /// No complete answer fits the tokens that are left.
    #[error("a complete answer needs at least {needed} more tokens, {left} are left")]
    BudgetTooSmall {
        /// Tokens that the shortest known way to finish takes, the end token not counted.
        needed: u32,
        /// Tokens left.
        left: u32,
    },
    /// The buffer for the mask has the wrong size.
    #[error("a mask of this vocabulary has {expected} words, not {given}")]
    MaskSize {
        /// Words a mask has.
        expected: usize,
        /// Words given.
        given: usize,
    },
    /// A limit was hit.
    #[error("following the grammar is too expensive: {0}")]
    Limit(#[from] LimitError),
}
