//! One sequence of the simulated device: its tokens, and what its source knows of them.

use super::source::{SequenceState, TokenSource};
use crate::TokenId;

/// Marks a saved sequence.
const MAGIC: &[u8; 8] = b"PLCHSIM1";
const TOKEN_BYTES: usize = size_of::<TokenId>();

#[derive(Clone, Debug, Default)]
pub(super) struct Sequence {
    tokens: Vec<TokenId>,
    pub(super) state: SequenceState,
}

impl Sequence {
    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    pub(super) fn push(&mut self, token: TokenId, source: &TokenSource) {
        source.advance(&mut self.state, token);
        self.tokens.push(token);
    }

    /// Cuts it back; what the source knows is worked out anew.
    pub(super) fn trim(&mut self, length: usize, source: &TokenSource) {
        self.tokens.truncate(length);
        self.state = SequenceState::default();
        self.tokens.iter().for_each(|&token| source.advance(&mut self.state, token));
    }

    pub(super) fn save(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.tokens.iter().flat_map(|token| token.to_le_bytes()));
        bytes
    }

    /// The sequence that [`Sequence::save`] wrote; `None` of other bytes.
    pub(super) fn load(bytes: &[u8], source: &TokenSource) -> Option<Self> {
        let (chunks, rest) = bytes.strip_prefix(MAGIC)?.as_chunks::<TOKEN_BYTES>();
        let mut sequence = Self::default();
        chunks.iter().for_each(|&four| sequence.push(TokenId::from_le_bytes(four), source));
        rest.is_empty().then_some(sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_and_cut_goes_on_like_the_original() {
        let source = TokenSource::Seeded(3);
        let mut whole = Sequence::default();
        (0..9).for_each(|token| whole.push(token, &source));
        let mut loaded = Sequence::load(&whole.save(), &source).unwrap();
        assert_eq!((loaded.len(), loaded.state), (9, whole.state));
        loaded.trim(4, &source);
        (4..9).for_each(|token| loaded.push(token, &source));
        assert_eq!(loaded.state, whole.state);
        assert!(Sequence::load(b"something", &source).is_none());
        assert!(Sequence::load(&whole.save()[..11], &source).is_none());
    }
}
