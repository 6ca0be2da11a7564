//! GBNF, llama.cpp's grammar format.
//!
//! All of it: rules over several lines, comments, literals, character classes and `.`, groups,
//! alternation, `*` `+` `?` `{m}` `{m,}` `{m,n}`, escapes `\n \r \t \\ \" \[ \] \xNN \uNNNN
//! \UNNNNNNNN`, and tokens: `<[id]>`, `<name>` (the brackets are part of the name, as in
//! `<think>` or `<|im_end|>`) and `!` before either for any other token of text. Beyond llama.cpp,
//! names may hold `_`, a line may begin with `|`, and direct left recursion works. A rule that is
//! defined twice is an error.

mod cursor;
mod parser;

use super::error::GrammarError;
use super::expr::{ExprPool, RuleId};
use crate::TokenId;

/// Reads a grammar into a pool: its rule `root` is the answer. `token_by_name` finds the token that
/// a name with its brackets stands for; ids must be below `vocabulary_len`.
pub(crate) fn parse(
    pool: &mut ExprPool,
    text: &str,
    token_by_name: &dyn Fn(&str) -> Option<TokenId>,
    vocabulary_len: usize,
) -> Result<RuleId, GrammarError> {
    parser::Parser::new(pool, text, token_by_name, vocabulary_len).parse()
}

#[cfg(test)]
mod tests;
