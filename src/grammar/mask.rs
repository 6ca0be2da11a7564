//! The set of tokens that may come next.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustc_hash::FxHasher;

use crate::TokenId;

/// Tokens up to which a mask is a list: below, a list takes less memory than a bit for each
/// token of the vocabulary, and is faster to apply.
fn listed_max(words: usize) -> usize {
    words / 8
}

/// Which tokens may come next: immutable and shared.
#[derive(Debug)]
pub struct Mask {
    form: Form,
    words: usize,
    count: usize,
    held: Held,
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum Form {
    /// Just these, ascending.
    List(Box<[TokenId]>),
    /// Those of a mask that many share, and these, ascending.
    Patched { base: Arc<[u32]>, more: Box<[TokenId]> },
    /// A bit for each.
    Bits(Box<[u32]>),
}

/// Bytes that a mask takes of its vocabulary's budget, given back when it is dropped.
#[derive(Debug)]
struct Held {
    bytes: usize,
    total: Arc<AtomicUsize>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A borrowed view, for a sampler that would rather look at few tokens than at all.
#[derive(Clone, Copy, Debug)]
pub enum MaskView<'m> {
    /// Just these tokens, ascending.
    List(&'m [TokenId]),
    /// The tokens whose bits are set (bit `t % 32` of word `t / 32`), and those of the list.
    Bits {
        /// A bit for each token.
        words: &'m [u32],
        /// More tokens, ascending.
        more: &'m [TokenId],
    },
}

impl Mask {
    /// The mask of the tokens set in `bits` and in `base`. Counts its bytes in `total`.
    pub(crate) fn new(base: Option<Arc<[u32]>>, bits: &[u32], total: &Arc<AtomicUsize>) -> Self {
        let words = bits.len();
        let set: usize = bits.iter().map(|word| word.count_ones() as usize).sum();
        let form = match base {
            None if set <= listed_max(words) => Form::List(tokens_of(bits).collect()),
            None => Form::Bits(bits.into()),
            Some(base) => {
                let more = tokens_of(bits).filter(|&token| !has_bit(&base, token));
                let more: Vec<TokenId> = more.collect();
                if more.len() <= listed_max(words) {
                    Form::Patched { base, more: more.into() }
                } else {
                    Form::Bits(bits.iter().zip(&*base).map(|(a, b)| a | b).collect())
                }
            }
        };
        Self::of_form(form, words, total)
    }

    /// The mask of some tokens, ascending and distinct, and of `base`, which has none of them.
    /// Counts its bytes in `total`.
    pub(crate) fn of_tokens(
        base: Option<Arc<[u32]>>,
        tokens: Vec<TokenId>,
        words: usize,
        total: &Arc<AtomicUsize>,
    ) -> Self {
        let form = match base {
            _ if tokens.len() > listed_max(words) => {
                let mut bits = base.map_or_else(|| vec![0; words], |base| base.to_vec());
                tokens.iter().for_each(|&token| set_bit(&mut bits, token));
                Form::Bits(bits.into())
            }
            None => Form::List(tokens.into()),
            Some(base) => Form::Patched { base, more: tokens.into() },
        };
        Self::of_form(form, words, total)
    }

    fn of_form(form: Form, words: usize, total: &Arc<AtomicUsize>) -> Self {
        let count = match &form {
            Form::List(list) => list.len(),
            Form::Patched { base, more } => count_bits(base) + more.len(),
            Form::Bits(bits) => count_bits(bits),
        };
        let bytes = size_of::<Self>()
            + match &form {
                Form::List(list) | Form::Patched { more: list, .. } => size_of_val(&**list),
                Form::Bits(bits) => size_of_val(&**bits),
            };
        total.fetch_add(bytes, Ordering::Relaxed);
        Self { form, words, count, held: Held { bytes, total: Arc::clone(total) } }
    }

    /// Words of 32 tokens that the mask has when written out.
    pub fn words(&self) -> usize {
        self.words
    }

    /// Tokens in the mask.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Bytes that the mask takes of its vocabulary's budget.
    pub fn bytes(&self) -> usize {
        self.held.bytes
    }

    /// The tokens, without a copy.
    pub fn view(&self) -> MaskView<'_> {
        match &self.form {
            Form::List(list) => MaskView::List(list),
            Form::Patched { base, more } => MaskView::Bits { words: base, more },
            Form::Bits(words) => MaskView::Bits { words, more: &[] },
        }
    }

    /// Whether the token is in the mask.
    pub fn contains(&self, token: TokenId) -> bool {
        match self.view() {
            MaskView::List(list) => list.binary_search(&token).is_ok(),
            MaskView::Bits { words, more } => {
                has_bit(words, token) || more.binary_search(&token).is_ok()
            }
        }
    }

    /// The only token in the mask, if there is just one.
    pub fn single(&self) -> Option<TokenId> {
        match self.view() {
            MaskView::List([only]) => Some(*only),
            _ => None,
        }
    }

    /// Writes the mask out, over all of `out`, as far as `out` reaches.
    pub fn write(&self, out: &mut [u32]) {
        let list = match self.view() {
            MaskView::List(list) => {
                out.fill(0);
                list
            }
            MaskView::Bits { words, more } => {
                let shared = words.len().min(out.len());
                out[..shared].copy_from_slice(&words[..shared]);
                out[shared..].fill(0);
                more
            }
        };
        for &token in list {
            set_bit(out, token);
        }
    }

    /// Whether both masks are of the same form and have the same tokens.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.form == other.form
    }

    /// Equal for masks that are the same.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = FxHasher::default();
        match &self.form {
            Form::Patched { base, more } => (base.as_ptr() as usize, more).hash(&mut hasher),
            form => form.hash(&mut hasher),
        }
        hasher.finish()
    }
}

fn count_bits(words: &[u32]) -> usize {
    words.iter().map(|word| word.count_ones() as usize).sum()
}

/// The tokens whose bits are set, ascending.
pub(crate) fn tokens_of(words: &[u32]) -> impl Iterator<Item = TokenId> + '_ {
    // Most masks are few tokens: words without any are passed over many at a time.
    const TOGETHER: usize = 16;
    let some = words
        .chunks(TOGETHER)
        .enumerate()
        .filter(|(_, words)| words.iter().fold(0, |all, word| all | word) != 0);
    let words = some.flat_map(|(chunk, words)| {
        words.iter().enumerate().map(move |(index, &word)| (chunk * TOGETHER + index, word))
    });
    words.flat_map(|(index, word)| {
        let mut left = word;
        std::iter::from_fn(move || {
            let bit = (left != 0).then(|| left.trailing_zeros())?;
            left &= left - 1;
            Some(index as TokenId * 32 + bit)
        })
    })
}

/// Whether the token's bit is set; false past the end.
#[inline]
pub(crate) fn has_bit(words: &[u32], token: TokenId) -> bool {
    words.get((token / 32) as usize).is_some_and(|word| word >> (token % 32) & 1 == 1)
}

/// Sets the token's bit; does nothing past the end.
#[inline]
pub(crate) fn set_bit(words: &mut [u32], token: TokenId) {
    if let Some(word) = words.get_mut((token / 32) as usize) {
        *word |= 1 << (token % 32);
    }
}

/// Clears the token's bit; does nothing past the end.
#[inline]
pub(crate) fn clear_bit(words: &mut [u32], token: TokenId) {
    if let Some(word) = words.get_mut((token / 32) as usize) {
        *word &= !(1 << (token % 32));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(tokens: &[TokenId]) -> Vec<u32> {
        let mut words = vec![0; 64];
        tokens.iter().for_each(|&token| set_bit(&mut words, token));
        words
    }

    fn check(mask: &Mask, tokens: &[TokenId]) {
        let mut out = vec![u32::MAX; 64];
        mask.write(&mut out);
        assert_eq!(tokens_of(&out).collect::<Vec<_>>(), tokens);
        assert_eq!(mask.count(), tokens.len());
        assert!((0..2_048).all(|token| mask.contains(token) == tokens.contains(&token)));
    }

    #[test]
    fn every_form_says_the_same() {
        let total = Arc::new(AtomicUsize::new(0));
        let few = [3, 31, 32, 2_047];
        let many: Vec<TokenId> = (0..2_048).step_by(3).collect();
        check(&Mask::new(None, &bits(&few), &total), &few);
        check(&Mask::new(None, &bits(&many), &total), &many);
        let base: Arc<[u32]> = bits(&many).into();
        let mut both: Vec<TokenId> = many.iter().chain(&few).copied().collect();
        both.sort_unstable();
        both.dedup();
        check(&Mask::new(Some(base), &bits(&few), &total), &both);
        assert_eq!(total.load(Ordering::Relaxed), 0, "dropped masks give their bytes back");
    }
}
