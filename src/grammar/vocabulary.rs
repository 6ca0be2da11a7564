//! What the engine needs of a model's vocabulary, built once for each model.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustc_hash::FxHashMap;

use super::charloop::LoopChars;
use super::charsplit::CharSplit;
use super::compiled::CompiledGrammar;
use super::distinct::LazyQuotedTokens;
use super::free_places::TokensByText;
use super::key_ends::{KeyEnds, LazyKeyEnds};
use super::markers::Markers;
use super::mask::{Mask, set_bit};
use super::shapes::Shapes;
use super::text_places::{SharedPlaces, StringPlaces, TextsOf};
use super::trie::{TOKEN_BYTES_MAX, Trie};
use crate::TokenId;
use crate::vocab::{Token, TokenKind, Vocabulary};

/// Bytes that the masks of all grammars of a vocabulary take together, by default.
pub const MASK_BYTES_MAX_DEFAULT: usize = 64 << 20;

/// A vocabulary, prepared for masks, with what its grammars share.
///
/// Text tokens, user-defined ones too, are matched by their bytes. Control and end tokens are
/// not: a grammar reaches them by id alone.
pub struct GrammarVocabulary {
    trie: Trie,
    shapes: Shapes,
    words: usize,
    len: usize,
    end_tokens: Box<[TokenId]>,
    /// Tokens with the same bytes as one in the trie: (that one, the other).
    twins: Box<[(TokenId, TokenId)]>,
    token_bytes: Box<[Box<[u8]>]>,
    names: FxHashMap<Box<[u8]>, TokenId>,
    text_tokens: Arc<[u32]>,
    single_bytes: [u64; 4],
    pub(super) quoted: LazyQuotedTokens,
    key_ends: LazyKeyEnds,
    pub(super) text_places: SharedPlaces,
    pub(super) string_places: StringPlaces,
    pub(super) texts_of: TextsOf,
    pub(super) holding: TokensByText,
    markers: Arc<Markers>,
    /// What is inside strings, and what is not: nearly every grammar has some.
    splits: Vec<Arc<CharSplit>>,
    masks: Mutex<FxHashMap<u64, Weak<Mask>>>,
    mask_bytes: Arc<AtomicUsize>,
    mask_bytes_max: usize,
    grammars: Mutex<Vec<Weak<CompiledGrammar>>>,
    ticks: AtomicU64,
}

impl GrammarVocabulary {
    /// Prepares a vocabulary. Takes about 0.1 s for 128,000 tokens.
    pub fn new(vocabulary: &Vocabulary) -> Arc<Self> {
        Self::with_budget(vocabulary, MASK_BYTES_MAX_DEFAULT)
    }

    /// As [`new`](Self::new), with another budget for the masks of all grammars together.
    pub fn with_budget(vocabulary: &Vocabulary, mask_bytes_max: usize) -> Arc<Self> {
        let len = vocabulary.len();
        let words = len.div_ceil(32);
        let tokens = || (0..len as TokenId).filter_map(|id| Some((id, vocabulary.get(id)?)));
        let mut texts: Vec<(&[u8], TokenId)> = tokens()
            .filter(|&(id, token)| is_text(token) && !vocabulary.is_end(id))
            .map(|(id, token)| (&*token.bytes, id))
            .collect();
        texts.sort_unstable();
        let mut text_tokens = vec![0; words];
        texts.iter().for_each(|&(_, id)| set_bit(&mut text_tokens, id));
        let mut twins = Vec::new();
        texts.dedup_by(|other, kept| {
            let is_twin = other.0 == kept.0;
            if is_twin {
                twins.push((kept.1, other.1));
            }
            is_twin
        });
        let mut single_bytes = [0; 4];
        for (bytes, _) in &texts {
            if let [byte] = **bytes {
                single_bytes[usize::from(byte >> 6)] |= 1 << (byte & 63);
            }
        }
        let mut names: FxHashMap<Box<[u8]>, TokenId> = FxHashMap::default();
        let named = tokens().filter(|(_, token)| token.bytes.first() == Some(&b'<'));
        for (id, token) in named {
            // A marker is rather meant than a text token that happens to be spelled the same.
            let is_marker = token.kind != TokenKind::Text;
            if is_marker || !names.contains_key(&*token.bytes) {
                names.insert(token.bytes.as_slice().into(), id);
            }
        }
        let trie = Trie::new(&texts);
        let split = |chars| Arc::new(CharSplit::new(chars, &texts, &trie, words, &twins));
        let prepared = Self {
            shapes: Shapes::new(&trie, words),
            splits: LoopChars::STRINGS.map(split).into(),
            trie,
            words,
            len,
            end_tokens: vocabulary.end_tokens().into(),
            twins: twins.into(),
            token_bytes: (0..len as TokenId)
                .map(|id| match vocabulary.is_end(id) {
                    true => Box::default(),
                    false => vocabulary.text_bytes(id).into(),
                })
                .collect(),
            names,
            text_tokens: text_tokens.into(),
            single_bytes,
            quoted: LazyQuotedTokens::default(),
            key_ends: LazyKeyEnds::default(),
            text_places: SharedPlaces::default(),
            string_places: StringPlaces::default(),
            texts_of: TextsOf::default(),
            holding: TokensByText::default(),
            markers: Arc::new(Markers::new(vocabulary)),
            masks: Mutex::default(),
            mask_bytes: Arc::default(),
            mask_bytes_max,
            grammars: Mutex::default(),
            ticks: AtomicU64::new(0),
        };
        Arc::new(prepared)
    }

    /// Tokens in the vocabulary, unused ids included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no token at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// 32-bit words of a mask.
    pub fn mask_words(&self) -> usize {
        self.words
    }

    /// The token with this name or text, as in `<|im_end|>`; only what starts with `<` is found.
    pub fn token_by_name(&self, name: &[u8]) -> Option<TokenId> {
        self.names.get(name).copied()
    }

    /// The names of its control tokens.
    pub(crate) fn markers(&self) -> &Arc<Markers> {
        &self.markers
    }

    /// Bytes of memory that the masks of all grammars take at the moment.
    pub fn mask_bytes(&self) -> usize {
        self.mask_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of memory that the vocabulary itself takes, about: the token tree, the bytes, and
    /// the splits that grammars share.
    pub fn bytes(&self) -> usize {
        let text: usize = self.token_bytes.iter().map(|bytes| bytes.len() + 16).sum();
        self.trie.bytes()
            + self.shapes.bytes()
            + text
            + self.splits.iter().map(|split| split.bytes()).sum::<usize>()
    }

    /// Every token that ends an answer, ascending.
    pub(crate) fn end_tokens(&self) -> &[TokenId] {
        &self.end_tokens
    }

    /// The bytes by which a token is matched; empty for those that are reached by id alone.
    pub(crate) fn token_bytes(&self, token: TokenId) -> &[u8] {
        self.token_bytes.get(token as usize).map_or(&[], |bytes| bytes)
    }

    pub(crate) fn trie(&self) -> &Trie {
        &self.trie
    }

    pub(crate) fn twins(&self) -> &[(TokenId, TokenId)] {
        &self.twins
    }

    /// A bit for each token that is matched by its bytes.
    pub(crate) fn text_tokens(&self) -> &[u32] {
        &self.text_tokens
    }

    /// The bytes that are tokens by themselves, a bit for each.
    pub(crate) fn single_bytes(&self) -> &[u64; 4] {
        &self.single_bytes
    }

    /// Bytes of the longest token.
    pub(crate) fn token_bytes_max(&self) -> u32 {
        self.trie.depth_max() as u32
    }

    /// The tokens by their shapes.
    pub(crate) fn shapes(&self) -> &Shapes {
        &self.shapes
    }

    /// The split of the vocabulary by most of the characters of a set.
    pub(crate) fn split(&self, chars: LoopChars) -> Option<&Arc<CharSplit>> {
        self.splits.iter().find(|split| chars.contains(split.chars))
    }

    /// The mask of `bits` and `base`; the same for all grammars that ask for the same.
    pub(crate) fn mask(&self, base: Option<Arc<[u32]>>, bits: &[u32]) -> Arc<Mask> {
        let mask = Arc::new(Mask::new(base, bits, &self.mask_bytes));
        let mut masks = self.masks.lock().unwrap_or_else(PoisonError::into_inner);
        let fingerprint = mask.fingerprint();
        if let Some(known) = masks.get(&fingerprint).and_then(Weak::upgrade)
            && known.is_same(&mask)
        {
            return known;
        }
        masks.insert(fingerprint, Arc::downgrade(&mask));
        /// Entries from which on those of dropped masks are cleared away, when they have doubled.
        const ENTRIES_MIN: usize = 4_096;
        if masks.len() >= ENTRIES_MIN && masks.len().is_power_of_two() {
            masks.retain(|_, mask| mask.strong_count() > 0);
        }
        mask
    }

    /// The mask of some tokens, ascending and distinct, and of a base that has none of them.
    pub(crate) fn mask_of_tokens(
        &self,
        base: Option<Arc<[u32]>>,
        tokens: Vec<TokenId>,
    ) -> Arc<Mask> {
        Arc::new(Mask::of_tokens(base, tokens, self.words, &self.mask_bytes))
    }

    /// What tokens hold of the ends and beginnings of keys.
    pub(crate) fn key_ends(&self) -> &KeyEnds {
        self.key_ends.get(self)
    }

    pub(super) fn register(&self, grammar: &Arc<CompiledGrammar>) {
        let mut grammars = self.grammars.lock().unwrap_or_else(PoisonError::into_inner);
        grammars.retain(|known| known.strong_count() > 0);
        grammars.push(Arc::downgrade(grammar));
    }

    /// A number that grows with each call: the time, as far as the caches care.
    pub(super) fn tick(&self) -> u64 {
        self.ticks.fetch_add(1, Ordering::Relaxed)
    }

    /// Has the grammars that were used the longest ago forget their masks until the budget holds.
    pub(super) fn keep_budget(&self) {
        if self.mask_bytes() <= self.mask_bytes_max {
            return;
        }
        let mut grammars: Vec<Arc<CompiledGrammar>> = {
            let grammars = self.grammars.lock().unwrap_or_else(PoisonError::into_inner);
            grammars.iter().filter_map(Weak::upgrade).collect()
        };
        grammars.sort_by_key(|grammar| grammar.last_used());
        for grammar in grammars {
            grammar.forget();
            if self.mask_bytes() <= self.mask_bytes_max / 2 {
                break;
            }
        }
    }
}

impl std::fmt::Debug for GrammarVocabulary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GrammarVocabulary").field("len", &self.len).finish_non_exhaustive()
    }
}

fn is_text(token: &Token) -> bool {
    let is_text = matches!(token.kind, TokenKind::Text | TokenKind::UserDefined);
    is_text && !token.bytes.is_empty() && token.bytes.len() <= TOKEN_BYTES_MAX
}
