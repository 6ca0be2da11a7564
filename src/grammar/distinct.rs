//! No object has a key twice.
//!
//! A grammar of finitely many places cannot remember the keys that were written, so this is kept
//! beside it: the text of the answer is read as JSON from where the grammar opens an object, and a
//! key that was there before may not end. Keys have one spelling in such grammars, so equal keys
//! are equal texts. Declared keys are not remembered here: the register of the object knows them.

use std::sync::{Arc, OnceLock};

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::automaton::{Automaton, Config, ConfigId};
use super::compiled::CompiledGrammar;
use super::error::LimitError;
use super::key_ends::begun_keys;
use super::limits::Fuel;
use super::mask::Mask;
use super::matcher::Matcher;
use super::vocabulary::GrammarVocabulary;
use crate::TokenId;

/// What of an answer's objects is open after some token. Cloning costs two counters.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenObjects {
    innermost: Option<Arc<Level>>,
    string: InString,
    /// Bytes of the text that holds the keys.
    text_len: usize,
}

/// Whether a string is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum InString {
    #[default]
    No,
    Value,
    /// A key that starts at this byte of the text.
    Key(usize),
    /// After a backslash: of a value, or of a key.
    Escaped(Option<usize>),
}

/// An object or array that is open.
#[derive(Clone, Debug)]
struct Level {
    below: Option<Arc<Level>>,
    is_object: bool,
    /// Whether the next string is a key.
    expects_key: bool,
    keys: Option<Arc<Key>>,
    /// Whether a key of this level or one below it could be the whole of a string within a token.
    is_in_tokens: bool,
}

/// A key that was written, by its place in the text, and those before it.
#[derive(Debug)]
struct Key {
    start: usize,
    end: usize,
    before: Option<Arc<Key>>,
}

/// What a byte means to the grammar.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mark {
    /// It may open an object.
    opens: bool,
    /// It may end a key that the grammar itself would take a second time.
    ends_key: bool,
}

impl Mark {
    /// What a byte means that is read in a state.
    pub(crate) fn of(automaton: &Automaton, config: &Config, byte: u8) -> Self {
        Self {
            opens: byte == b'{' && config.opens_object,
            ends_key: byte == b'"' && automaton.ends_free_key(config),
        }
    }
}

/// Marks of the bytes of a token; none are there where they say nothing.
type Marks = SmallVec<[Mark; 32]>;

/// The objects of one answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct DistinctKeys {
    /// Bytes of the answer since the first object was opened.
    text: Vec<u8>,
    /// What was open before the first token, and after each.
    history: Vec<OpenObjects>,
    /// Whether some token of the vocabulary holds two keys.
    tokens_hold_two: bool,
}

impl DistinctKeys {
    /// Takes a token, of which `marks` says what its bytes mean to the grammar.
    /// False: a key comes a second time, and nothing was taken.
    pub(crate) fn accept(&mut self, bytes: &[u8], marks: &[Mark], quotes: &QuotedTokens) -> bool {
        let mut open = self.last();
        self.text.truncate(open.text_len);
        for (index, &byte) in bytes.iter().enumerate() {
            let mark = marks.get(index).copied().unwrap_or_default();
            if !open.read(byte, mark, &mut self.text, quotes) {
                self.text.truncate(self.last().text_len);
                return false;
            }
        }
        self.history.push(open);
        true
    }

    /// Takes the last `count` tokens back.
    pub(crate) fn rollback(&mut self, count: usize) {
        self.history.truncate(self.history.len().saturating_sub(count));
        self.text.truncate(self.last().text_len);
    }

    /// Whether no token whatever could repeat a key; cheap to ask.
    pub(super) fn has_nothing_to_repeat(&self) -> bool {
        let level = self.history.last().and_then(|open| open.innermost.as_ref());
        !self.tokens_hold_two
            && level.is_none_or(|level| {
                !level.is_in_tokens
                    && (level.keys.is_none()
                        || !matches!(
                            self.history.last().map(|it| it.string),
                            Some(InString::Key(_))
                        ))
            })
    }

    /// Bytes by which the next key may have to be longer than the shortest, so that it is new.
    pub(super) fn spare_bytes(&self) -> u32 {
        let level = self.history.last().and_then(|open| open.innermost.as_ref());
        let known = level.map_or(0, |level| level.keys().count());
        2 + (known as u32 + 1).ilog2()
    }

    fn last(&self) -> OpenObjects {
        self.history.last().cloned().unwrap_or_default()
    }

    /// The ends of keys that may not come next: for each key that begins as the open one does, the
    /// rest of it and the quote.
    pub(crate) fn forbidden_ends(&self) -> Vec<Vec<u8>> {
        let open = self.last();
        let (Some(level), InString::Key(start)) = (&open.innermost, open.string) else {
            return Vec::new();
        };
        let begun = &self.text[start..open.text_len];
        level
            .keys()
            .filter_map(|key| self.text[key.start..key.end].strip_prefix(begun))
            .map(|rest| [rest, b"\""].concat())
            .collect()
    }

    /// Whether a key is open that so far is just one that was there before.
    fn has_begun_a_known_key(&self) -> bool {
        self.forbidden_ends().iter().any(|end| end == b"\"")
    }

    /// Tokens in which a whole key could come a second time, ascending.
    pub(crate) fn doubtful_tokens(&self, quotes: &QuotedTokens) -> Vec<TokenId> {
        let open = self.last();
        let mut tokens = quotes.with_two_keys.clone();
        let mut level = open.innermost.as_ref().filter(|level| level.is_in_tokens);
        while let Some(here) = level {
            for key in here.keys() {
                tokens.extend(quotes.tokens_with(&self.text[key.start..key.end]));
            }
            level = here.below.as_ref().filter(|level| level.is_in_tokens);
        }
        tokens.sort_unstable();
        tokens.dedup();
        tokens
    }
}

impl Level {
    fn keys(&self) -> impl Iterator<Item = &Key> {
        std::iter::successors(self.keys.as_deref(), |key| key.before.as_deref())
    }
}

impl OpenObjects {
    /// Reads one byte of JSON; false if a key ends that was there before.
    fn read(&mut self, byte: u8, mark: Mark, text: &mut Vec<u8>, quotes: &QuotedTokens) -> bool {
        if self.innermost.is_none() {
            if byte == b'{' && mark.opens {
                self.open_level(true);
            }
            return true;
        }
        text.push(byte);
        self.text_len = text.len();
        match (self.string, byte) {
            (InString::Escaped(key), _) => {
                self.string = key.map_or(InString::Value, InString::Key);
            }
            (InString::Value, b'\\') => self.string = InString::Escaped(None),
            (InString::Key(start), b'\\') => self.string = InString::Escaped(Some(start)),
            (InString::Value, b'"') => self.string = InString::No,
            (InString::Key(start), b'"') => {
                self.string = InString::No;
                return !mark.ends_key || self.end_key(start, text, quotes);
            }
            (InString::Value | InString::Key(_), _) => {}
            (InString::No, _) => self.read_structure(byte),
        }
        true
    }

    fn read_structure(&mut self, byte: u8) {
        match byte {
            b'{' => self.open_level(true),
            b'[' => self.open_level(false),
            b'}' | b']' => {
                self.innermost = self.innermost.take().and_then(|level| level.below.clone());
            }
            b':' => self.expect_key(false),
            b',' => self.expect_key(true),
            b'"' => {
                let is_key = self.innermost.as_ref().is_some_and(|level| level.expects_key);
                self.string = if is_key { InString::Key(self.text_len) } else { InString::Value };
            }
            _ => {}
        }
    }

    fn open_level(&mut self, is_object: bool) {
        let below = self.innermost.take();
        let is_in_tokens = below.as_ref().is_some_and(|below| below.is_in_tokens);
        let level = Level { below, is_object, expects_key: is_object, keys: None, is_in_tokens };
        self.innermost = Some(Arc::new(level));
    }

    fn expect_key(&mut self, expects: bool) {
        if let Some(level) = &mut self.innermost
            && level.is_object
            && level.expects_key != expects
        {
            Arc::make_mut(level).expects_key = expects;
        }
    }

    fn end_key(&mut self, start: usize, text: &[u8], quotes: &QuotedTokens) -> bool {
        let end = text.len() - 1;
        let Some(level) = &mut self.innermost else { return true };
        if level.keys().any(|key| text[key.start..key.end] == text[start..end]) {
            return false;
        }
        let level = Arc::make_mut(level);
        level.is_in_tokens |= quotes.has(&text[start..end]);
        level.keys = Some(Arc::new(Key { start, end, before: level.keys.take() }));
        true
    }
}

/// Tokens of a vocabulary that hold whole strings.
#[derive(Debug, Default)]
pub(crate) struct QuotedTokens {
    /// By what stands between two quotes of a token, or after the last one, the tokens.
    within: FxHashMap<Box<[u8]>, Vec<TokenId>>,
    /// Tokens that could hold two keys.
    with_two_keys: Vec<TokenId>,
}

impl QuotedTokens {
    /// Finds them.
    pub(crate) fn new<'v>(tokens: impl Iterator<Item = (TokenId, &'v [u8])>) -> Self {
        let mut found = Self::default();
        for (token, bytes) in tokens {
            let quotes: Vec<usize> =
                (0..bytes.len()).filter(|&index| bytes[index] == b'"').collect();
            let between: FxHashSet<&[u8]> =
                quotes.windows(2).map(|pair| &bytes[pair[0] + 1..pair[1]]).collect();
            // What comes after the last quote may be the beginning of a key, or all of one.
            let tail = quotes.last().map(|&last| &bytes[last + 1..]);
            for text in between.into_iter().chain(tail) {
                found.within.entry(text.into()).or_default().push(token);
            }
            let ends_begun_key = begun_keys(bytes).any(|rest| rest.contains(&b'"'));
            if ends_begun_key && bytes.contains(&b':') {
                found.with_two_keys.push(token);
            }
        }
        found
    }

    fn has(&self, text: &[u8]) -> bool {
        self.within.contains_key(text)
    }

    fn tokens_with(&self, text: &[u8]) -> impl Iterator<Item = TokenId> {
        self.within.get(text).into_iter().flatten().copied()
    }
}

/// The index of a vocabulary, made when it is first asked for.
#[derive(Debug, Default)]
pub(crate) struct LazyQuotedTokens(OnceLock<QuotedTokens>);

impl LazyQuotedTokens {
    /// The index.
    pub(crate) fn get(&self, vocabulary: &GrammarVocabulary) -> &QuotedTokens {
        self.0.get_or_init(|| {
            let tokens = (0..vocabulary.len() as TokenId)
                .map(|token| (token, vocabulary.token_bytes(token)));
            QuotedTokens::new(tokens)
        })
    }
}

impl Matcher {
    /// Takes a token's keys; false: one of them comes a second time.
    pub(super) fn accept_keys(&mut self, token: TokenId) -> Result<bool, LimitError> {
        let Some(mut keys) = self.distinct.take() else { return Ok(true) };
        let marks = self.marks(token);
        let vocabulary = self.grammar().vocabulary();
        let quotes = vocabulary.quoted.get(vocabulary);
        let accepted =
            marks.map(|marks| keys.accept(vocabulary.token_bytes(token), &marks, quotes));
        self.distinct = Some(keys);
        accepted
    }

    /// What the bytes of a token mean to the grammar.
    fn marks(&self, token: TokenId) -> Result<Marks, LimitError> {
        let bytes = self.grammar().vocabulary().token_bytes(token);
        let mut marks = Marks::new();
        if !bytes.iter().any(|byte| matches!(byte, b'{' | b'"')) {
            return Ok(marks);
        }
        let automaton = &self.generation().automaton;
        let mut fuel = self.fuel();
        let mut at = automaton.config(self.state());
        for &byte in bytes {
            marks.push(Mark::of(automaton, at, byte));
            at = automaton.config(automaton.edge(at, byte, &mut fuel)?.to);
        }
        Ok(marks)
    }

    /// The tokens of a mask that would write a key a second time.
    pub(super) fn repeating_tokens(
        &mut self,
        allowed: &Mask,
        fuel: &mut Fuel<'_>,
    ) -> Result<Vec<TokenId>, LimitError> {
        let Some(keys) = &self.distinct else { return Ok(Vec::new()) };
        if keys.has_nothing_to_repeat() {
            return Ok(Vec::new());
        }
        let grammar = Arc::clone(self.grammar());
        let vocabulary = grammar.vocabulary();
        let mut tokens = Vec::new();
        for end in keys.forbidden_ends() {
            fuel.spend(end.len() as u32)?;
            let Some((_, rest)) = end.split_last() else { continue };
            let before_quote = self.after(rest, fuel)?;
            if !self.generation().automaton.config(before_quote).is_alive_on(b'"') {
                continue;
            }
            let trie = vocabulary.trie();
            if let Some(node) = trie.find(&end) {
                tokens.extend(trie.tokens_from(node));
            }
            // A key that can only end must not be written up to there either.
            if self.only_ends_a_string(before_quote)
                && let Some(token) = trie.find(rest).and_then(|node| trie.token_at(node))
            {
                tokens.push(token);
            }
        }
        for token in keys.doubtful_tokens(vocabulary.quoted.get(vocabulary)) {
            if allowed.contains(token) && !self.takes_keys_of(token, fuel)? {
                tokens.push(token);
            }
        }
        let twins = vocabulary.twins().iter().filter(|(token, _)| tokens.contains(token));
        let twins: Vec<TokenId> = twins.map(|&(_, twin)| twin).collect();
        tokens.extend(twins);
        tokens.retain(|&token| allowed.contains(token));
        Ok(tokens)
    }

    /// Whether a token that the grammar allows repeats no key.
    fn takes_keys_of(&mut self, token: TokenId, fuel: &mut Fuel<'_>) -> Result<bool, LimitError> {
        let next = self.grammar().follow(self.generation(), self.state(), token, fuel)?;
        if !self.accept_keys(token)? {
            return Ok(false);
        }
        let is_stuck = self.is_stuck(next);
        self.distinct.iter_mut().for_each(|keys| keys.rollback(1));
        Ok(!is_stuck)
    }

    /// Where bytes lead, as far as the grammar alone is concerned.
    fn after(&self, bytes: &[u8], fuel: &mut Fuel<'_>) -> Result<ConfigId, LimitError> {
        let automaton = &self.generation().automaton;
        let mut at = self.state();
        for &byte in bytes {
            at = automaton.edge(automaton.config(at), byte, fuel)?.to;
        }
        Ok(at)
    }

    /// Whether nothing but a quote can come next.
    fn only_ends_a_string(&self, state: ConfigId) -> bool {
        let config = self.generation().automaton.config(state);
        config.is_alive_on(b'"')
            && config.alive.iter().map(|word| word.count_ones()).sum::<u32>() == 1
    }

    /// Whether a key that is written up to a state can only become one that is there already.
    pub(super) fn is_stuck(&self, state: ConfigId) -> bool {
        // Asked after every token, so what is rarely true comes first.
        self.only_ends_a_string(state)
            && self.distinct.as_ref().is_some_and(|keys| keys.has_begun_a_known_key())
    }
}

impl CompiledGrammar {
    /// What keeps the keys of an answer apart, if the grammar asks for it.
    pub(super) fn distinct_keys(&self) -> Option<Box<DistinctKeys>> {
        let vocabulary = self.vocabulary();
        self.program().distinct_keys.then(|| {
            let tokens_hold_two = !vocabulary.quoted.get(vocabulary).with_two_keys.is_empty();
            Box::new(DistinctKeys { tokens_hold_two, ..DistinctKeys::default() })
        })
    }
}
