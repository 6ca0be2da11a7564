//! The set of tokens that may come next.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

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
    written: Written,
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

/// A patched mask in whole, kept when it is written out a second time: hundreds of single bits take
/// longer to set than all words to copy, and whoever can use the words themselves copies nothing.
#[derive(Debug, Default)]
struct Written {
    once: AtomicBool,
    bits: OnceLock<Box<[u32]>>,
}

/// Bytes that a mask takes of its vocabulary's budget, given back when it is dropped.
#[derive(Debug)]
struct Held {
    bytes: AtomicUsize,
    total: Arc<AtomicUsize>,
}

impl Held {
    fn new(bytes: usize, total: &Arc<AtomicUsize>) -> Self {
        let held = Self { bytes: AtomicUsize::new(0), total: Arc::clone(total) };
        held.add(bytes);
        held
    }

    fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.total.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.total.fetch_sub(*self.bytes.get_mut(), Ordering::Relaxed);
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
        Self { form, words, count, written: Written::default(), held: Held::new(bytes, total) }
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
        self.held.bytes.load(Ordering::Relaxed)
    }

    /// The tokens, without a copy.
    pub fn view(&self) -> MaskView<'_> {
        match (&self.form, self.written.bits.get()) {
            (Form::List(list), _) => MaskView::List(list),
            (Form::Bits(words), _) | (Form::Patched { .. }, Some(words)) => {
                MaskView::Bits { words, more: &[] }
            }
            (Form::Patched { base, more }, None) => MaskView::Bits { words: base, more },
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
        let (words, list): (&[u32], &[TokenId]) = match self.view() {
            MaskView::List(list) => (&[], list),
            MaskView::Bits { words, more } => (words, more),
        };
        let shared = words.len().min(out.len());
        copy_in_pieces(&words[..shared], &mut out[..shared]);
        out[shared..].fill(0);
        list.iter().for_each(|&token| set_bit(out, token));
        if shared > 0 && !list.is_empty() && out.len() == self.words {
            self.keep_written(out);
        }
    }

    fn keep_written(&self, bits: &[u32]) {
        if self.written.once.swap(true, Ordering::Relaxed) {
            self.written.bits.get_or_init(|| {
                self.held.add(size_of_val(bits));
                bits.into()
            });
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

/// Copies a slice to another of the same length, a piece at a time. A long `memcpy` may become one
/// string instruction, which some processors run twenty times slower where both sides begin at
/// nearly the same place of a page (4,748 words on Zen 3: 11 µs, and 0.5 in pieces).
fn copy_in_pieces(from: &[u32], to: &mut [u32]) {
    const PIECE: usize = 512;
    for (to, from) in to.chunks_mut(PIECE).zip(from.chunks(PIECE)) {
        to.copy_from_slice(from);
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
        for _ in 0..4 {
            let mut out = vec![u32::MAX; 64];
            mask.write(&mut out);
            assert_eq!(tokens_of(&out).collect::<Vec<_>>(), tokens);
            let mut short = vec![u32::MAX; 7];
            mask.write(&mut short);
            assert_eq!(short, out[..7]);
        }
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
        let patched = Mask::new(Some(base), &bits(&few), &total);
        let bytes = patched.bytes();
        check(&patched, &both);
        assert_eq!(patched.bytes(), bytes + 64 * 4, "what is kept written out is counted");
        assert_eq!(total.load(Ordering::Relaxed), patched.bytes());
        drop(patched);
        assert_eq!(total.load(Ordering::Relaxed), 0, "dropped masks give their bytes back");
    }
}
