//! DRY, "don't repeat yourself" (P. E. Weidmann, text-generation-webui pull request 5677).
//!
//! A token that would extend a repetition is penalised by
//! `multiplier * base ^ (n - allowed_length)`, where n is the number of tokens that already repeat.
//! A sequence breaker ends every repetition: nothing reaches back across it, and a token that holds
//! a whole breaker is never penalised itself.

use std::sync::Arc;

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{Anchored, MatchKind};
use rustc_hash::FxHashMap;

use super::DryParams;
use super::penalties::change;
use crate::TokenId;
use crate::vocab::Vocabulary;

const BREAKERS_MAX: usize = 128;
const BREAKER_BYTES_MAX: usize = 128;

/// The sequence breakers of one request, ready to be found in tokens. Cheap to clone: the choices
/// of a request share one.
///
/// They are sought in the text that the tokens make together (a control token counts with its
/// name), so a breaker may span tokens however it was tokenised. Building costs microseconds and
/// does not touch the vocabulary; each token of the history is read once.
#[derive(Clone, Debug, Default)]
pub struct DryBreakers {
    finder: Option<Arc<Finder>>,
}

#[derive(Debug)]
struct Finder {
    automaton: NFA,
    start: StateID,
    vocabulary: Arc<Vocabulary>,
}

/// Why the sequence breakers of a request cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DryBreakersError {
    /// A breaker is the empty string, which would be everywhere.
    #[error("a DRY sequence breaker is empty")]
    Empty,
    /// A breaker is longer than the limit.
    #[error("a DRY sequence breaker has {bytes} bytes, at most {BREAKER_BYTES_MAX} are allowed")]
    TooLong {
        /// The breaker's length in bytes.
        bytes: usize,
    },
    /// There are more breakers than the limit.
    #[error("there are {count} DRY sequence breakers, at most {BREAKERS_MAX} are allowed")]
    TooMany {
        /// Breakers in the request.
        count: usize,
    },
    /// The automaton over the breakers could not be built.
    #[error("the DRY sequence breakers cannot be compiled: {0}")]
    Compile(String),
}

impl DryBreakers {
    /// No breaker at all.
    pub fn none() -> Self {
        Self::default()
    }

    /// The breakers of `params`, found in the texts of `vocabulary`. They are checked even where
    /// DRY is off. At most 128 breakers of 1 to 128 bytes.
    pub fn new(params: &DryParams, vocabulary: &Arc<Vocabulary>) -> Result<Self, DryBreakersError> {
        let breakers = &params.sequence_breakers;
        if breakers.len() > BREAKERS_MAX {
            return Err(DryBreakersError::TooMany { count: breakers.len() });
        }
        for breaker in breakers {
            match breaker.len() {
                0 => return Err(DryBreakersError::Empty),
                1..=BREAKER_BYTES_MAX => {}
                bytes => return Err(DryBreakersError::TooLong { bytes }),
            }
        }
        if breakers.is_empty() || !is_on(params) {
            return Ok(Self::none());
        }
        let automaton = NFA::builder()
            .match_kind(MatchKind::Standard)
            .build(breakers)
            .map_err(|error| DryBreakersError::Compile(error.to_string()))?;
        let start = automaton
            .start_state(Anchored::No)
            .map_err(|error| DryBreakersError::Compile(error.to_string()))?;
        let vocabulary = Arc::clone(vocabulary);
        Ok(Self { finder: Some(Arc::new(Finder { automaton, start, vocabulary })) })
    }
}

impl Finder {
    /// Reads a token from `state`. Returns the state after it and whether a breaker ended in it.
    fn read(&self, mut state: StateID, token: TokenId) -> (StateID, bool) {
        let mut broken = false;
        for &byte in self.vocabulary.bytes(token) {
            state = self.automaton.next_state(Anchored::No, state, byte);
            broken |= self.automaton.is_match(state);
        }
        (state, broken)
    }
}

fn is_on(params: &DryParams) -> bool {
    params.multiplier > 0.0 && params.base >= 1.0 && params.penalty_last_n != 0
}

/// The penalty of one generation.
#[derive(Clone, Debug)]
pub(super) struct Dry {
    multiplier: f32,
    base: f32,
    allowed_length: usize,
    /// Tokens that are searched.
    window_max: usize,
    /// The last tokens, oldest first; up to twice the window, so that dropping is rare.
    tokens: Vec<TokenId>,
    breakers: Option<(Arc<Finder>, StateID)>,
    /// Tokens since a breaker last ended.
    unbroken: usize,
    repeats: Vec<u32>,
    longest: FxHashMap<TokenId, usize>,
}

impl Dry {
    /// `None` where DRY is off.
    pub(super) fn new(
        params: &DryParams,
        prompt: &[TokenId],
        breakers: DryBreakers,
    ) -> Option<Self> {
        if !is_on(params) {
            return None;
        }
        let mut dry = Self {
            multiplier: params.multiplier,
            base: params.base,
            allowed_length: params.allowed_length as usize,
            window_max: usize::try_from(params.penalty_last_n).unwrap_or(usize::MAX),
            tokens: Vec::new(),
            breakers: breakers.finder.map(|finder| {
                let start = finder.start;
                (finder, start)
            }),
            unbroken: 0,
            repeats: Vec::new(),
            longest: FxHashMap::default(),
        };
        prompt.iter().for_each(|&token| dry.push(token));
        Some(dry)
    }

    /// Adds a token to the history.
    pub(super) fn push(&mut self, token: TokenId) {
        if self.tokens.len() >= self.window_max.saturating_mul(2) {
            let surplus = self.tokens.len() - self.window_max;
            self.tokens.drain(..surplus);
        }
        self.tokens.push(token);
        self.unbroken += 1;
        if let Some((finder, state)) = &mut self.breakers {
            let (after, broken) = finder.read(*state, token);
            *state = after;
            if broken {
                self.unbroken = 0;
            }
        }
    }

    /// Penalises the tokens that would extend a repetition. Linear in the window.
    pub(super) fn apply(&mut self, logits: &mut [f32]) {
        self.find_longest();
        for (&token, &repeated) in &self.longest {
            let is_breaker = self
                .breakers
                .as_ref()
                .is_some_and(|(finder, _)| finder.read(finder.start, token).1);
            if is_breaker {
                continue;
            }
            let exponent = (repeated - self.allowed_length) as f32;
            let penalty = (self.multiplier * self.base.powf(exponent)).min(f32::MAX);
            change(logits, token, |logit| logit - penalty);
        }
    }

    /// Fills `longest`: for each token that once followed what is now the end of the history, the
    /// longest such end, where it is long enough to be penalised.
    fn find_longest(&mut self) {
        self.longest.clear();
        let start = self.tokens.len().saturating_sub(self.window_max);
        let window = self.tokens.get(start..).unwrap_or_default();
        let reach = self.unbroken.min(window.len());
        if reach < self.allowed_length {
            return;
        }
        repeats_of_the_end(window, &mut self.repeats);
        // `repeats` goes back from the end, so the token that followed is one place before.
        for (&repeated, &follower) in self.repeats.iter().skip(1).zip(window.iter().rev()) {
            let repeated = reach.min(repeated as usize);
            if repeated >= self.allowed_length {
                let longest = self.longest.entry(follower).or_insert(0);
                *longest = repeated.max(*longest);
            }
        }
    }
}

/// For each k above 0, how many tokens before `tokens.len() - k` equal those at the end: the Z function of
/// the reversed sequence, in linear time.
fn repeats_of_the_end(tokens: &[TokenId], repeats: &mut Vec<u32>) {
    let at = |place: usize| tokens.iter().rev().nth(place);
    repeats.clear();
    repeats.push(0);
    // The known match that reaches furthest back covers `left..right`.
    let (mut left, mut right) = (0, 0_usize);
    for k in 1..tokens.len() {
        let known = repeats.get(k - left).map_or(0, |&length| length as usize);
        let mut length = known.min(right.saturating_sub(k));
        while k + length < tokens.len() && at(length) == at(k + length) {
            length += 1;
        }
        if k + length > right {
            (left, right) = (k, k + length);
        }
        repeats.push(length as u32);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::vocab::{Token, TokenKind};

    /// A vocabulary of the given texts.
    fn vocabulary(texts: &[&str]) -> Arc<Vocabulary> {
        let token = |text: &&str| Token { bytes: text.as_bytes().to_vec(), kind: TokenKind::Text };
        Arc::new(Vocabulary::new(texts.iter().map(token).collect(), &[], None))
    }

    fn params(breakers: &[&str]) -> DryParams {
        DryParams {
            multiplier: 1.0,
            base: 2.0,
            allowed_length: 2,
            penalty_last_n: -1,
            sequence_breakers: breakers.iter().map(|b| b.to_string()).collect(),
        }
    }

    const A: TokenId = 0;
    const B: TokenId = 1;
    const C: TokenId = 2;
    const Y: TokenId = 3;
    const NEWLINE: TokenId = 4;

    fn penalties(params: &DryParams, history: &[TokenId]) -> Vec<f32> {
        let vocabulary = vocabulary(&["a", "b", "c", "y", "x\nx", "<", "br>"]);
        let breakers = DryBreakers::new(params, &vocabulary).unwrap();
        let (prompt, answer) = history.split_at(history.len() / 2);
        let mut dry = Dry::new(params, prompt, breakers).unwrap();
        answer.iter().for_each(|&token| dry.push(token));
        let mut logits = vec![0.0; vocabulary.len()];
        dry.apply(&mut logits);
        logits.iter().map(|logit| 0.0 - logit).collect()
    }

    #[test]
    fn a_hand_worked_example() {
        // History "abccbcyabc": "abc" was followed by c (3 repeat), "bc" by y (2 repeat), "c" by
        // c and b (1 repeats, which is allowed).
        let history = [A, B, C, C, B, C, Y, A, B, C];
        assert_eq!(penalties(&params(&[]), &history), [0.0, 0.0, 2.0, 1.0, 0.0, 0.0, 0.0]);
        let strict = DryParams { allowed_length: 1, ..params(&[]) };
        assert_eq!(penalties(&strict, &history), [0.0, 1.0, 4.0, 2.0, 0.0, 0.0, 0.0]);
        // Seven tokens "cbcyabc" hold only the repetition of "bc".
        let near = DryParams { penalty_last_n: 7, ..params(&[]) };
        assert_eq!(penalties(&near, &history), [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn a_breaker_limits_the_reach() {
        // Four tokens repeat, two of them since the newline.
        let history = [A, NEWLINE, B, C, Y, A, NEWLINE, B, C];
        assert_eq!(penalties(&params(&[]), &history)[Y as usize], 4.0);
        assert_eq!(penalties(&params(&["\n"]), &history)[Y as usize], 1.0);
        let later = [A, B, C, Y, A, B, NEWLINE, C];
        assert_eq!(penalties(&params(&["\n"]), &later), [0.0; 7]);
    }

    #[test]
    fn a_breaker_may_span_tokens() {
        let history = [A, 5, 6, B, C, Y, A, 5, 6, B, C];
        assert_eq!(penalties(&params(&["zz"]), &history)[Y as usize], 8.0);
        assert_eq!(penalties(&params(&["zz", "<br>"]), &history)[Y as usize], 1.0);
    }

    #[test]
    fn a_token_that_breaks_is_not_penalised() {
        let history = [A, B, NEWLINE, A, B];
        assert_eq!(penalties(&params(&[]), &history)[NEWLINE as usize], 1.0);
        assert_eq!(penalties(&params(&["\n"]), &history)[NEWLINE as usize], 0.0);
    }

    #[test]
    fn a_huge_repetition_stays_finite() {
        let params = DryParams { base: 1e9, ..params(&[]) };
        let penalty = penalties(&params, &[A; 500])[A as usize];
        assert_eq!(penalty, f32::MAX);
    }

    #[test]
    fn bad_breakers_are_refused() {
        let vocabulary = vocabulary(&["a"]);
        let build = |params: &DryParams| DryBreakers::new(params, &vocabulary).map(|_| ());
        assert_eq!(build(&params(&["\n", ""])), Err(DryBreakersError::Empty));
        let long = "x".repeat(129);
        assert_eq!(build(&params(&[&long])), Err(DryBreakersError::TooLong { bytes: 129 }));
        let off = DryParams { multiplier: 0.0, ..params(&["x"; 129]) };
        assert_eq!(build(&off), Err(DryBreakersError::TooMany { count: 129 }));
        assert_eq!(build(&params(&["x"; 128])), Ok(()));
    }

    proptest! {
        #[test]
        fn repeats_agree_with_counting(tokens in proptest::collection::vec(0..3_u32, 1..40)) {
            let mut repeats = Vec::new();
            repeats_of_the_end(&tokens, &mut repeats);
            let backwards: Vec<_> = tokens.iter().rev().collect();
            let counted: Vec<u32> = (0..tokens.len())
                .map(|k| {
                    let pairs = backwards.iter().zip(&backwards[k..]);
                    pairs.take_while(|(a, b)| a == b).count() as u32
                })
                .collect();
            prop_assert_eq!(repeats.get(1..), counted.get(1..));
        }

        #[test]
        fn the_window_agrees_with_a_short_history(
            tokens in proptest::collection::vec(0..3_u32, 6..80),
            window in 1..6_usize,
        ) {
            let bounded = DryParams { penalty_last_n: window as i32, ..params(&[]) };
            let tail = &tokens[tokens.len() - window..];
            prop_assert_eq!(penalties(&bounded, &tokens), penalties(&params(&[]), tail));
        }
    }
}
