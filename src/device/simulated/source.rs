//! What the simulated device says next, as a function of the sequence so far.

use super::tokens::END;
use crate::TokenId;

/// Where the simulated device's tokens come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenSource {
    /// Lower-case letters and spaces that depend on the seed and the sequence; it never ends by
    /// itself.
    Seeded(u64),
    /// The text, then the end token. Where a sequence ends with a beginning of the text, it is
    /// continued.
    Scripted(Script),
}

/// A text with its failure function (Knuth, Morris, Pratt 1977).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    text: Vec<u8>,
    /// For each length of a matched beginning, the next shorter one that is also matched.
    shorter: Vec<usize>,
}

/// What has to be known of a sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SequenceState {
    history_hash: u64,
    matched: usize,
}

impl TokenSource {
    /// Says `text`, which must not be empty to say anything but the end.
    pub fn script(text: &str) -> Self {
        let text = text.as_bytes().to_vec();
        let mut shorter = vec![0; text.len() + 1];
        let mut length = 0;
        for index in 1..text.len() {
            while length > 0 && text[index] != text[length] {
                length = shorter[length];
            }
            length += usize::from(text[index] == text[length]);
            shorter[index + 1] = length;
        }
        Self::Scripted(Script { text, shorter })
    }

    /// Takes one more token of a sequence.
    pub(super) fn advance(&self, state: &mut SequenceState, token: TokenId) {
        match self {
            Self::Seeded(_) => state.history_hash = mix(state.history_hash ^ u64::from(token)),
            Self::Scripted(script) => state.matched = script.advance(state.matched, token),
        }
    }

    /// The token that follows.
    pub(super) fn choose(&self, state: &SequenceState) -> TokenId {
        match self {
            Self::Seeded(seed) => {
                const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyzetao  ";
                let pick = mix(seed ^ state.history_hash) % LETTERS.len() as u64;
                TokenId::from(LETTERS[pick as usize])
            }
            Self::Scripted(script) => {
                script.text.get(state.matched).map_or(END, |&byte| TokenId::from(byte))
            }
        }
    }
}

impl Script {
    fn advance(&self, mut matched: usize, token: TokenId) -> usize {
        let continues = |matched: usize| {
            self.text.get(matched).is_some_and(|&byte| TokenId::from(byte) == token)
        };
        while matched > 0 && !continues(matched) {
            matched = self.shorter[matched];
        }
        if continues(matched) { matched + 1 } else { 0 }
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(source: &TokenSource, prompt: &[u8]) -> String {
        let mut state = SequenceState::default();
        prompt.iter().for_each(|&byte| source.advance(&mut state, TokenId::from(byte)));
        let mut said = String::new();
        loop {
            let token = source.choose(&state);
            if token == END || said.len() > 50 {
                return said;
            }
            said.push(char::from(token as u8));
            source.advance(&mut state, token);
        }
    }

    #[test]
    fn a_script_that_repeats_itself_is_said_whole() {
        let source = TokenSource::script("abababac");
        assert_eq!(say(&source, b"x"), "abababac");
        assert_eq!(say(&source, b"xaba"), "babac");
    }

    #[test]
    fn seeds_differ_and_do_not_end() {
        let one = say(&TokenSource::Seeded(1), b"p");
        assert_ne!(one, say(&TokenSource::Seeded(2), b"p"));
        assert!(one.len() > 50);
    }
}
