//! Why no token could be sampled.

/// A row that no token can be taken from. It concerns one session alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SampleError {
    /// The row holds a NaN or a positive infinity, or a bias or penalty made one.
    #[error("the logits are not finite")]
    NonFinite,
    /// The mask, the banned tokens and the row together leave no token.
    #[error("no token is left to sample")]
    EmptyMask,
    /// The row is not as long as the vocabulary.
    #[error("the row of logits has {found} entries, expected {expected}")]
    RowLength {
        /// Entries that the row must have.
        expected: usize,
        /// Entries that it has.
        found: usize,
    },
}
