//! A step's tokens in the form that the library reads.

use llama_cpp_sys_2 as sys;

use crate::TokenId;

/// The arrays behind a `llama_batch`, kept from step to step.
#[derive(Default)]
pub(super) struct Batch {
    tokens: Vec<sys::llama_token>,
    positions: Vec<sys::llama_pos>,
    sequences: Vec<sys::llama_seq_id>,
    sequence_counts: Vec<i32>,
    sequence_pointers: Vec<*mut sys::llama_seq_id>,
    wanted: Vec<i8>,
}

// SAFETY: the pointers point into `sequences` of the same value and are written anew by
// `Batch::raw` each time before they are read.
unsafe impl Send for Batch {}

impl Batch {
    pub(super) fn clear(&mut self) {
        self.tokens.clear();
        self.positions.clear();
        self.sequences.clear();
        self.wanted.clear();
    }

    /// Appends a token and returns its index, by which its row of logits is asked for. The values
    /// fit the library's signed types: the caller has checked them against the vocabulary, the
    /// context and the number of sequences.
    pub(super) fn push(
        &mut self,
        token: TokenId,
        position: u32,
        sequence: u32,
        row: bool,
    ) -> usize {
        let index = self.tokens.len();
        self.tokens.push(token.cast_signed());
        self.positions.push(position.cast_signed());
        self.sequences.push(sequence.cast_signed());
        self.wanted.push(i8::from(row));
        index
    }

    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    /// The view that a call takes. Valid until the next change of this value.
    pub(super) fn raw(&mut self) -> sys::llama_batch {
        self.sequence_counts.clear();
        self.sequence_counts.resize(self.sequences.len(), 1);
        self.sequence_pointers.clear();
        self.sequence_pointers.extend(self.sequences.iter_mut().map(std::ptr::from_mut));
        sys::llama_batch {
            n_tokens: i32::try_from(self.tokens.len()).unwrap_or(i32::MAX),
            token: self.tokens.as_mut_ptr(),
            embd: std::ptr::null_mut(),
            pos: self.positions.as_mut_ptr(),
            n_seq_id: self.sequence_counts.as_mut_ptr(),
            seq_id: self.sequence_pointers.as_mut_ptr(),
            logits: self.wanted.as_mut_ptr(),
        }
    }
}
