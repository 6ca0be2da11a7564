//! Text that the grammar leaves no choice about, as tokens that need not be sampled.

use super::automaton::{ConfigId, DEAD};
use super::error::{LimitError, MatchError};
use super::limits::Fuel;
use super::matcher::Matcher;
use super::program::Node;
use crate::TokenId;

/// Bytes of forced text that are looked for at once.
const FORCED_BYTES_MAX: usize = 512;

/// Splits text into the tokens that the model's tokenizer would make of it.
pub trait Tokenize {
    /// The tokens of `text`; nothing if it cannot tell.
    fn tokenize(&self, text: &str) -> Vec<TokenId>;
}

impl<F: Fn(&str) -> Vec<TokenId>> Tokenize for F {
    fn tokenize(&self, text: &str) -> Vec<TokenId> {
        self(text)
    }
}

impl Matcher {
    /// The tokens that must come next, as the tokenizer would write them. Empty where there is a
    /// choice, and where the text could be the beginning of a token that reaches further. Nothing
    /// is accepted: that is up to the caller, token by token.
    ///
    /// # Errors
    /// [`MatchError::Limit`] if finding out costs more than the grammar's limits allow.
    pub fn forced(&mut self, tokenizer: &dyn Tokenize) -> Result<Vec<TokenId>, MatchError> {
        if self.has_ended() {
            return Ok(Vec::new());
        }
        let mut fuel = self.fuel();
        if let Some(token) = self.forced_by_id()? {
            return Ok(vec![token]);
        }
        let (text, after) = self.forced_text(&mut fuel)?;
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let Some(text) = whole_characters(&text) else { return Ok(Vec::new()) };
        let mut tokens = tokenizer.tokenize(text);
        let vocabulary = self.grammar().vocabulary();
        let written: Vec<u8> =
            tokens.iter().flat_map(|&token| vocabulary.token_bytes(token)).copied().collect();
        if written != text.as_bytes() {
            return Ok(Vec::new());
        }
        tokens.truncate(self.settled_tokens(&tokens, text.as_bytes(), after));
        Ok(tokens)
    }

    /// Bytes that must come next, from here to the first choice; at most a few hundred.
    ///
    /// # Errors
    /// As for [`forced`](Self::forced).
    pub fn forced_bytes(&mut self) -> Result<Vec<u8>, MatchError> {
        if self.has_ended() {
            return Ok(Vec::new());
        }
        let mut fuel = self.fuel();
        Ok(self.forced_text(&mut fuel)?.0)
    }

    /// The token that must come next, if it is one that is only reached by its id.
    fn forced_by_id(&self) -> Result<Option<TokenId>, LimitError> {
        let automaton = &self.generation().automaton;
        let config = automaton.config(self.state());
        if !config.has_token_items || config.accepting || config.alive != [0; 4] {
            return Ok(None);
        }
        let program = self.grammar().program();
        let builder = automaton.lock();
        let mut only = None;
        for &item in &config.items {
            let Node::Token { set, .. } = program.nodes[builder.frame(item).node as usize] else {
                return Ok(None);
            };
            let set = &program.token_sets[set as usize];
            match set.named() {
                [token] if !set.is_negated() && only.is_none_or(|known| known == *token) => {
                    only = Some(*token);
                }
                _ => return Ok(None),
            }
        }
        Ok(only)
    }

    /// The forced bytes and the state after them.
    fn forced_text(&self, fuel: &mut Fuel<'_>) -> Result<(Vec<u8>, ConfigId), LimitError> {
        let automaton = &self.generation().automaton;
        let mut text = Vec::new();
        let mut at = self.state();
        while text.len() < FORCED_BYTES_MAX {
            let config = automaton.config(at);
            if config.accepting || config.has_token_items {
                break;
            }
            let Some(byte) = only_byte(&config.alive) else { break };
            let to = automaton.edge(config, byte, fuel)?.to;
            if to == DEAD {
                break;
            }
            text.push(byte);
            at = to;
        }
        Ok((text, at))
    }

    /// How many of `tokens`, which spell `text`, stay whatever comes after: none of them is
    /// touched by a token that starts in the text and goes on past its end.
    fn settled_tokens(&self, tokens: &[TokenId], text: &[u8], after: ConfigId) -> usize {
        let vocabulary = self.grammar().vocabulary();
        let trie = vocabulary.trie();
        let follows = self.generation().automaton.config(after);
        let reaches_past = |start: &usize| {
            trie.find(&text[*start..]).is_some_and(|node| {
                trie.children(Some(node)).any(|(_, child)| follows.is_alive_on(child.byte))
            })
        };
        let longest = vocabulary.token_bytes_max() as usize;
        let first = text.len().saturating_sub(longest);
        let Some(unsettled) = (first..text.len()).find(reaches_past) else { return tokens.len() };
        let mut end = 0;
        tokens
            .iter()
            .take_while(|&&token| {
                end += vocabulary.token_bytes(token).len();
                end <= unsettled
            })
            .count()
    }
}

/// The only byte of a set.
fn only_byte(set: &[u64; 4]) -> Option<u8> {
    let count: u32 = set.iter().map(|word| word.count_ones()).sum();
    if count != 1 {
        return None;
    }
    let word = set.iter().position(|word| *word != 0)?;
    u8::try_from(word * 64 + set[word].trailing_zeros() as usize).ok()
}

/// The text without a character that is cut off at its end. `None` if it does not begin with a
/// whole one, or holds bytes that are no text.
fn whole_characters(bytes: &[u8]) -> Option<&str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()
        }
        Err(_) => None,
    }
}
