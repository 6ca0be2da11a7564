//! From a grammar to a mask over the vocabulary, exact, at every token.
//!
//! ```text
//! GrammarSource -> rules and expressions -> program -> states, met lazily -> masks, cached
//!  (source,        (expr)                   (lower,    (builder,             (walk, masks,
//!   gbnf, regex)                             program)   automaton)            mask_cache)
//! ```
//!
//! * **Expressions** ([`ExprPool`]) are what every source is lowered to: texts, characters,
//!   sequences, alternatives, repetitions, rules, tokens; hash-consed.
//! * A **program** is a flat graph: switches over bytes, splits, calls, counted loops, token
//!   edges. Every node can reach its rule's end, so whatever is alive can be completed.
//! * A **state** is a set of stacks, both hash-consed, so it is one number. A stack frame holds a
//!   node and a register; a counted loop keeps its count there and is never written out. Edges
//!   between states fill in as they are gone; going them again is one load.
//! * A **mask** is cached for the part of the stacks that a walk over the vocabulary looked at,
//!   with counts made abstract as far as no token can tell. So neither nesting depth nor length
//!   multiplies masks. Equal masks are one for all grammars of a vocabulary.
//! * A **cold walk** goes over the *shapes* of the tokens, with runs of letters, digits and other
//!   like characters drawn together: a 24th of the tree of bytes. It falls back to the bytes where
//!   a state tells the characters of a run apart. Inside strings a mask made once for the
//!   vocabulary stands for most tokens, and the others are told apart by their tails.
//! * A **[`Matcher`]** is a list of state numbers. Rolling back truncates it, forking copies it.
//!
//! Control and end tokens are not matched by bytes: only token edges reach them, and end tokens
//! are allowed exactly where the grammar accepts. Every cost is bounded by [`Limits`] and [`Fuel`];
//! what cannot be done exactly within them is an error, never a wider mask.

mod automaton;
mod builder;
mod cache;
mod charloop;
mod charsplit;
mod compiled;
mod distinct;
mod error;
pub mod explain;
mod expr;
mod finish;
mod forced;
mod free_masks;
mod free_places;
mod free_text;
mod gap;
mod gbnf;
mod grouped;
mod hubs;
mod json_object;
pub mod json_schema;
mod key_ends;
mod key_places;
mod key_reach;
mod limits;
mod lower;
mod markers;
mod mask;
mod mask_cache;
mod mask_walk;
mod masks;
mod matcher;
mod members;
mod program;
mod regex;
pub mod regular;
mod segments;
mod shapes;
mod source;
mod spelling;
pub mod structural_tag;
mod text;
mod text_places;
mod text_survey;
mod trie;
mod vocabulary;
mod walk;

pub use cache::GrammarCache;
pub use compiled::{CompiledGrammar, GrammarSize};
pub use error::{GrammarError, LimitError, MatchError};
pub use expr::{CharSet, Expr, ExprId, ExprPool, Mark, Members, Rule, RuleId, TokenSet};
pub use forced::Tokenize;
pub use free_text::{FreeText, Trigger};
pub use gap::Whitespace;
pub use limits::{Fuel, Limits};
pub use mask::{Mask, MaskView};
pub use matcher::Matcher;
pub use members::{KeyOrder, MemberRules, Presence};
pub use source::GrammarSource;
pub use structural_tag::StructuralTag;
pub use text::{Spelling, TextMachine, TextState};
pub use vocabulary::{GrammarVocabulary, MASK_BYTES_MAX_DEFAULT};
