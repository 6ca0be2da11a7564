//! What one session has to do.

use std::sync::Arc;

use super::{ChatReading, Constraint};
use crate::TokenId;
use crate::sampling::{DryBreakers, SamplingParams};

/// One choice of one request, checked and in tokens. A request with `n` choices over `p` prompts
/// becomes `n * p` generations, which share nothing but the prompt's memory.
#[derive(Clone, Debug)]
pub struct Generation {
    /// Index of the choice in the answer.
    pub choice: u32,
    /// The prompt; never empty.
    pub prompt: Arc<[TokenId]>,
    /// Tokens that may be generated; 0 only with `echo`.
    pub max_tokens: u32,
    /// Tokens before an end token or a stop may end the answer.
    pub min_tokens: u32,
    /// The sampler chain.
    pub sampling: SamplingParams,
    /// The sequence breakers of `sampling.dry`, compiled.
    pub dry_breakers: DryBreakers,
    /// Seed of this choice's draws, already different for each choice.
    pub seed: u64,
    /// Report log-probabilities.
    pub logprobs: Option<LogprobsRequest>,
    /// What ends the answer.
    pub stop: StopRules,
    /// What the answer cannot leave.
    pub constraint: Option<Constraint>,
    /// How the answer is read as a chat message; none: it is text.
    pub reading: Option<ChatReading>,
    /// The answer starts with the prompt's own text (and, with `logprobs`, its log-probabilities).
    pub echo: bool,
}

/// How log-probabilities are reported: of the model's own distribution, before the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogprobsRequest {
    /// Alternatives to name at each position, most probable first; 0 to 20.
    pub top: u8,
}

/// What ends an answer, beside its token budget.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StopRules {
    /// Strings, matched across token boundaries; none of them empty.
    pub strings: Vec<String>,
    /// Further tokens that end the answer as the model's end tokens do.
    pub token_ids: Vec<TokenId>,
    /// The matched stop string stays in the text.
    pub include_in_output: bool,
    /// The model's end tokens cannot be sampled.
    pub ignore_eos: bool,
}
