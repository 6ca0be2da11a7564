//! What every kind of grammar is lowered to first: hash-consed expressions and named rules.

use hashbrown::HashTable;
use rustc_hash::FxHasher;
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::free_text::FreeText;
use super::lower::Base;
use super::markers::{Markers, Segment};
use super::members::MemberRules;
use super::text::{Spelling, TextMachine};
use crate::TokenId;

/// An expression of an [`ExprPool`]. Equal expressions of a pool have equal ids. By default the one
/// that nothing matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(u32);

impl ExprId {
    /// Position of the expression in its pool.
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A rule of an [`ExprPool`]; the only way for an expression to contain itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleId(u32);

impl RuleId {
    /// Position of the rule, in the order of declaration.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of Unicode scalar values: sorted, disjoint, not adjacent, without surrogates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CharSet(Box<[(u32, u32)]>);

/// First and last surrogate: no scalar values.
const SURROGATES: (u32, u32) = (0xD800, 0xDFFF);
const CHAR_MAX: u32 = 0x10FFFF;

impl CharSet {
    /// The set of all characters in any of the inclusive ranges, surrogates left out.
    pub fn new(ranges: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut split: SmallVec<[(u32, u32); 16]> = SmallVec::new();
        for (low, high) in ranges {
            let high = high.min(CHAR_MAX);
            let below = (low, high.min(SURROGATES.0 - 1));
            let above = (low.max(SURROGATES.1 + 1), high);
            split.extend([below, above].into_iter().filter(|(low, high)| low <= high));
        }
        split.sort_unstable();
        let mut merged: SmallVec<[(u32, u32); 16]> = SmallVec::new();
        for (low, high) in split {
            match merged.last_mut() {
                Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        Self(merged.as_slice().into())
    }

    /// Every character.
    pub fn all() -> Self {
        Self::new([(0, CHAR_MAX)])
    }

    /// Whether all characters of the set are ASCII.
    pub(crate) fn is_ascii(&self) -> bool {
        self.0.last().is_none_or(|&(_, high)| high < 0x80)
    }

    /// Every character that is not in this set.
    pub fn complement(&self) -> Self {
        let mut ranges = Vec::with_capacity(self.0.len() + 1);
        let mut next = 0;
        for &(low, high) in &self.0 {
            if low > next {
                ranges.push((next, low - 1));
            }
            next = high + 1;
        }
        if next <= CHAR_MAX {
            ranges.push((next, CHAR_MAX));
        }
        Self::new(ranges)
    }

    /// The ranges, ascending.
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.0
    }

    /// Whether there is no character in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn single(&self) -> Option<char> {
        match *self.0 {
            [(low, high)] if low == high => char::from_u32(low),
            _ => None,
        }
    }
}

/// A set of tokens, reached by id and never by bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TokenSet {
    ids: Box<[TokenId]>,
    negated: bool,
}

impl TokenSet {
    /// Just `token`.
    pub fn only(token: TokenId) -> Self {
        Self { ids: [token].into(), negated: false }
    }

    /// Every token that stands for text, except these. Control, end and unused tokens are not
    /// in it: they are no text, so "anything but" does not mean them.
    pub fn any_text_but(tokens: &[TokenId]) -> Self {
        let mut ids = tokens.to_vec();
        ids.sort_unstable();
        ids.dedup();
        Self { ids: ids.into(), negated: true }
    }

    /// The tokens named, ascending.
    pub fn named(&self) -> &[TokenId] {
        &self.ids
    }

    /// Whether the set is all text tokens but the named ones.
    pub fn is_negated(&self) -> bool {
        self.negated
    }
}

/// A language, in terms of smaller ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expr {
    /// Nothing matches.
    Never,
    /// The empty text.
    Empty,
    /// These bytes, at least one.
    Literal(Box<[u8]>),
    /// One of these texts: at least two, sorted, distinct, none empty.
    Literals(Box<[Box<[u8]>]>),
    /// One character of the set, as UTF-8.
    Chars(CharSet),
    /// One byte of an inclusive range.
    Byte(u8, u8),
    /// One after the other; at least two.
    Seq(Box<[ExprId]>),
    /// Any one of them; at least two, sorted, distinct.
    Alt(Box<[ExprId]>),
    /// `body`, at least `min` and at most `max` times. Where the body may be empty, `min` is 0.
    Repeat {
        /// What is repeated.
        body: ExprId,
        /// Least number of times.
        min: u32,
        /// Greatest number of times; `None`: any.
        max: Option<u32>,
    },
    /// Whatever the rule matches.
    Rule(RuleId),
    /// One token of the set.
    Token(TokenSet),
    /// A text of the machine, by its number in the pool.
    Text(u32),
    /// An object, or what is written like one, by its number in the pool.
    Members(u32),
    /// Free text, by its number in the pool.
    Free(u32),
}

/// What stands between the parts of an object: mostly a single byte.
pub type Mark = SmallVec<[u8; 16]>;

/// An object: members between brackets, told apart by their keys. It is never the empty text.
#[derive(Clone, Debug)]
pub struct Members {
    /// What comes first, as `{`; it may be empty.
    pub open: Mark,
    /// What comes last, as `}`; it may be empty.
    pub close: Mark,
    /// What stands between two members, as `,`.
    pub comma: Mark,
    /// What stands between a key and its value, as `:`; it may be empty.
    pub colon: Mark,
    /// The keys, quotes apart; what ends a text is the number of its key.
    pub keys: Arc<TextMachine>,
    /// The value of each key, declared and free ones; `None`: the key is all there is.
    pub values: Box<[Option<RuleId>]>,
    /// Whether keys stand in quotes.
    pub quoted: bool,
    /// What keys there may be.
    pub rules: Arc<MemberRules>,
    /// The whitespace in each place between its parts; it has no repetition that is counted.
    pub gap: ExprId,
}

impl Members {
    /// Whether tokens see of it what they see of an object of JSON.
    pub(super) fn are_of_json(&self) -> bool {
        let is_mark = |mark: &[u8], of: &[u8]| mark == of || mark.strip_suffix(b" ") == Some(of);
        self.quoted
            && self.keys.spelling == Spelling::Json
            && is_mark(&self.comma, b",")
            && is_mark(&self.colon, b":")
            && *self.close == *b"}"
    }
}

/// A named rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Name, for messages.
    pub name: String,
    /// What it matches; `Never` until it is defined.
    pub body: ExprId,
}

/// Expressions and rules of one grammar, each expression once.
///
/// A pool that starts from a base's has all that is in there by the same numbers; its own lists go on
/// from there.
#[derive(Clone, Debug)]
pub struct ExprPool {
    exprs: Vec<Expr>,
    ids: HashTable<ExprId>,
    rules: Vec<Rule>,
    texts: Vec<Arc<TextMachine>>,
    members: Vec<Arc<Members>>,
    free_texts: Vec<Arc<FreeText>>,
    markers: Option<Arc<Markers>>,
    distinct_keys: bool,
    /// What the pool has from the start.
    base: Option<Arc<Base>>,
}

/// Expressions of a grammar of middle size.
const EXPRS_EXPECTED: usize = 64;

fn hash_of(expr: &Expr) -> u64 {
    let mut hasher = FxHasher::default();
    expr.hash(&mut hasher);
    hasher.finish()
}

impl Default for ExprPool {
    fn default() -> Self {
        Self::new()
    }
}

impl ExprPool {
    /// The expression that nothing matches.
    pub const NEVER: ExprId = ExprId(0);
    /// The expression that the empty text matches.
    pub const EMPTY: ExprId = ExprId(1);

    /// A pool without rules.
    pub fn new() -> Self {
        let mut pool = Self {
            exprs: Vec::new(),
            ids: HashTable::new(),
            rules: Vec::new(),
            texts: Vec::new(),
            members: Vec::new(),
            free_texts: Vec::new(),
            markers: None,
            distinct_keys: false,
            base: None,
        };
        pool.intern(Expr::Never);
        pool.intern(Expr::Empty);
        pool
    }

    /// Gives the pool all that a base's has, if nothing was put in yet; whether it was so.
    pub(super) fn start_from(&mut self, base: &Arc<Base>) -> bool {
        let is_new = self.is_empty() && self.rules.is_empty() && self.base.is_none();
        if is_new {
            self.exprs = Vec::with_capacity(EXPRS_EXPECTED);
            self.ids = HashTable::with_capacity(EXPRS_EXPECTED);
            self.base = Some(Arc::clone(base));
        }
        is_new
    }

    /// The base that the pool started from.
    pub(super) fn base(&self) -> Option<&Arc<Base>> {
        self.base.as_ref()
    }

    /// Things of a list that are the base's.
    fn of_base<T>(&self, list: fn(&Self) -> &Vec<T>) -> usize {
        self.base.as_ref().map_or(0, |base| list(base.pool()).len())
    }

    /// Things of a list in all.
    fn count<T>(&self, list: fn(&Self) -> &Vec<T>) -> usize {
        self.of_base(list) + list(self).len()
    }

    /// One thing of a list.
    fn at<T>(&self, list: fn(&Self) -> &Vec<T>, index: usize) -> &T {
        let Some(base) = &self.base else { return &list(self)[index] };
        let of_base = list(base.pool());
        of_base.get(index).unwrap_or_else(|| &list(self)[index - of_base.len()])
    }

    /// The expression behind an id.
    pub fn get(&self, id: ExprId) -> &Expr {
        self.at(|pool| &pool.exprs, id.index())
    }

    /// The rule behind an id.
    pub fn rule(&self, id: RuleId) -> &Rule {
        self.at(|pool| &pool.rules, id.index())
    }

    /// All rules, in the order of declaration.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = (RuleId, &Rule)> {
        let count = self.count(|pool| &pool.rules) as u32;
        (0..count).map(|index| (RuleId(index), self.rule(RuleId(index))))
    }

    /// Expressions in the pool.
    pub fn len(&self) -> usize {
        self.count(|pool| &pool.exprs)
    }

    /// Whether there is nothing but the two constants.
    pub fn is_empty(&self) -> bool {
        self.len() == 2
    }

    /// A new rule that matches nothing until [`define`](Self::define) is called.
    pub fn declare(&mut self, name: impl Into<String>) -> RuleId {
        let id = RuleId(self.rules().len() as u32);
        self.rules.push(Rule { name: name.into(), body: Self::NEVER });
        id
    }

    /// Says what the rule matches, in place of what was said before. Those of the base stay as they
    /// are.
    pub fn define(&mut self, rule: RuleId, body: ExprId) {
        let first = self.of_base(|pool| &pool.rules);
        self.rules[rule.index() - first].body = body;
    }

    fn intern(&mut self, expr: Expr) -> ExprId {
        let hash = hash_of(&expr);
        let known = self.base.as_ref().and_then(|base| base.pool().find(hash, &expr));
        if let Some(id) = known.or_else(|| self.find(hash, &expr)) {
            return id;
        }
        let first = self.of_base(|pool| &pool.exprs);
        let id = ExprId(self.len() as u32);
        self.exprs.push(expr);
        self.ids.insert_unique(hash, id, |id| hash_of(&self.exprs[id.index() - first]));
        id
    }

    /// An expression that is not the base's.
    fn find(&self, hash: u64, expr: &Expr) -> Option<ExprId> {
        self.ids.find(hash, |id| self.get(*id) == expr).copied()
    }

    /// Exactly these bytes.
    pub fn literal(&mut self, bytes: &[u8]) -> ExprId {
        if bytes.is_empty() { Self::EMPTY } else { self.intern(Expr::Literal(bytes.into())) }
    }

    /// A text that a model writes with its control tokens: each may come as the token or be spelled.
    pub(crate) fn marked(&mut self, text: &[u8]) -> ExprId {
        let mut parts = Vec::new();
        for segment in self.segments(text) {
            parts.push(match segment {
                Segment::Bytes(bytes) => self.literal(bytes),
                Segment::Marker(token, name) => {
                    let (spelled, token) = (self.literal(name), self.token(TokenSet::only(token)));
                    self.alt(&[spelled, token])
                }
            });
        }
        self.seq(&parts)
    }

    /// A text, parted where control tokens stand.
    pub(super) fn segments<'t>(&self, text: &'t [u8]) -> SmallVec<[Segment<'t>; 1]> {
        match &self.markers {
            Some(markers) => markers.split(text),
            None => [Segment::Bytes(text)].into(),
        }
    }

    /// Says which control tokens there are.
    pub(super) fn set_markers(&mut self, markers: &Arc<Markers>) {
        self.markers = Some(Arc::clone(markers));
    }

    /// Any one of these texts.
    pub fn literals<T: AsRef<[u8]>>(&mut self, texts: &[T]) -> ExprId {
        let alternatives: Vec<ExprId> =
            texts.iter().map(|text| self.literal(text.as_ref())).collect();
        self.alt(&alternatives)
    }

    /// One character of the set.
    pub fn chars(&mut self, set: CharSet) -> ExprId {
        if let Some(only) = set.single() {
            return self.literal(only.encode_utf8(&mut [0; 4]).as_bytes());
        }
        if set.is_empty() { Self::NEVER } else { self.intern(Expr::Chars(set)) }
    }

    /// One byte from `low` to `high`.
    pub fn byte(&mut self, low: u8, high: u8) -> ExprId {
        match low.cmp(&high) {
            std::cmp::Ordering::Less => self.intern(Expr::Byte(low, high)),
            std::cmp::Ordering::Equal => self.literal(&[low]),
            std::cmp::Ordering::Greater => Self::NEVER,
        }
    }

    /// Whatever `rule` matches.
    pub fn call(&mut self, rule: RuleId) -> ExprId {
        self.intern(Expr::Rule(rule))
    }

    /// One token of the set.
    pub fn token(&mut self, set: TokenSet) -> ExprId {
        self.intern(Expr::Token(set))
    }

    /// A text of the machine.
    pub fn text(&mut self, machine: Arc<TextMachine>) -> ExprId {
        let number = self.count(|pool| &pool.texts);
        self.texts.push(machine);
        self.intern(Expr::Text(number as u32))
    }

    /// The machine with a number.
    pub(super) fn text_machine(&self, number: u32) -> &Arc<TextMachine> {
        self.at(|pool| &pool.texts, number as usize)
    }

    /// An object.
    pub fn members(&mut self, members: Members) -> ExprId {
        let number = self.count(|pool| &pool.members);
        self.members.push(Arc::new(members));
        self.intern(Expr::Members(number as u32))
    }

    /// The object with a number.
    pub(super) fn members_of(&self, number: u32) -> &Arc<Members> {
        self.at(|pool| &pool.members, number as usize)
    }

    /// Free text.
    pub fn free_text(&mut self, text: FreeText) -> ExprId {
        let number = self.count(|pool| &pool.free_texts);
        self.free_texts.push(Arc::new(text));
        self.intern(Expr::Free(number as u32))
    }

    /// The free text with a number.
    pub(super) fn free_text_of(&self, number: u32) -> &Arc<FreeText> {
        self.at(|pool| &pool.free_texts, number as usize)
    }

    /// Says that no object of an answer may have a key twice, free keys included.
    pub fn distinguish_keys(&mut self) {
        self.distinct_keys = true;
    }

    /// Whether no object may have a key twice.
    pub(super) fn has_distinct_keys(&self) -> bool {
        self.distinct_keys
    }

    /// One after the other.
    pub fn seq(&mut self, parts: &[ExprId]) -> ExprId {
        let mut flat: SmallVec<[ExprId; 16]> = SmallVec::new();
        let mut text: SmallVec<[u8; 32]> = SmallVec::new();
        for &part in parts {
            let inner: SmallVec<[ExprId; 8]> = match self.get(part) {
                Expr::Seq(inner) => inner[..].into(),
                _ => [part].as_slice().into(),
            };
            for part in inner {
                match self.get(part) {
                    Expr::Never => return Self::NEVER,
                    Expr::Empty => {}
                    Expr::Literal(bytes) => text.extend_from_slice(bytes),
                    _ => {
                        if !text.is_empty() {
                            flat.push(self.literal(&text));
                            text.clear();
                        }
                        flat.push(part);
                    }
                }
            }
        }
        if !text.is_empty() {
            flat.push(self.literal(&text));
        }
        match *flat {
            [] => Self::EMPTY,
            [only] => only,
            _ => self.intern(Expr::Seq(flat.as_slice().into())),
        }
    }

    /// Any one of them.
    pub fn alt(&mut self, choices: &[ExprId]) -> ExprId {
        if let [only] = *choices {
            return only;
        }
        let mut others: SmallVec<[ExprId; 8]> = SmallVec::new();
        let mut texts: Vec<Box<[u8]>> = Vec::new();
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for &choice in choices {
            let inner: SmallVec<[ExprId; 8]> = match self.get(choice) {
                Expr::Alt(inner) => inner[..].into(),
                _ => [choice].as_slice().into(),
            };
            for choice in inner {
                match self.get(choice) {
                    Expr::Never => {}
                    Expr::Literal(text) => texts.push(text.clone()),
                    Expr::Literals(more) => texts.extend(more.iter().cloned()),
                    Expr::Chars(set) => ranges.extend_from_slice(set.ranges()),
                    _ => others.push(choice),
                }
            }
        }
        texts.sort_unstable();
        texts.dedup();
        let singles = texts.iter().filter(|text| single_character(text).is_some()).count();
        if !ranges.is_empty() || singles > 1 {
            move_single_characters(&mut texts, &mut ranges);
            let set = self.chars(CharSet::new(ranges));
            others.push(set);
        }
        match texts.len() {
            0 => {}
            1 => others.push(self.literal(&texts[0])),
            _ => others.push(self.intern(Expr::Literals(texts.into()))),
        }
        others.sort_unstable();
        others.dedup();
        match *others {
            [] => Self::NEVER,
            [only] => only,
            _ => self.intern(Expr::Alt(others.as_slice().into())),
        }
    }

    /// `body` or nothing.
    pub fn optional(&mut self, body: ExprId) -> ExprId {
        self.alt(&[body, Self::EMPTY])
    }

    /// `body`, at least `min` and at most `max` times.
    pub fn repeat(&mut self, body: ExprId, min: u32, max: Option<u32>) -> ExprId {
        if max.is_some_and(|max| max < min) {
            return Self::NEVER;
        }
        match (self.get(body), min, max) {
            (_, _, Some(0)) | (Expr::Empty, _, _) => Self::EMPTY,
            (_, 1, Some(1)) => body,
            (_, 0, Some(1)) => self.optional(body),
            (Expr::Never, 0, _) => Self::EMPTY,
            (Expr::Never, _, _) => Self::NEVER,
            // (x*)* and (x*)+ are x*.
            (Expr::Repeat { min: 0, max: None, .. }, _, _) => body,
            _ => self.intern(Expr::Repeat { body, min, max }),
        }
    }
}

/// Moves texts of one character over to the ranges of a character set.
fn move_single_characters(texts: &mut Vec<Box<[u8]>>, ranges: &mut Vec<(u32, u32)>) {
    texts.retain(|text| match single_character(text) {
        Some(only) => {
            ranges.push((u32::from(only), u32::from(only)));
            false
        }
        None => true,
    });
}

/// The character that a text consists of, if it is one.
fn single_character(text: &[u8]) -> Option<char> {
    let mut characters = std::str::from_utf8(text).ok()?.chars();
    let only = characters.next()?;
    characters.next().is_none().then_some(only)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_set_is_canonical() {
        let set = CharSet::new([(5, 9), (1, 2), (3, 4), (0xD000, 0xE001)]);
        assert_eq!(set.ranges(), [(1, 9), (0xD000, 0xD7FF), (0xE000, 0xE001)]);
        assert_eq!(set.complement().complement(), set);
        assert!(CharSet::all().complement().is_empty());
    }

    #[test]
    fn sequences_join_their_texts() {
        let mut pool = ExprPool::new();
        let (a, b) = (pool.literal(b"a"), pool.literal(b"b"));
        let ab = pool.seq(&[a, ExprPool::EMPTY, b]);
        assert_eq!(pool.get(ab), &Expr::Literal(b"ab".as_slice().into()));
        assert_eq!(pool.seq(&[a, ExprPool::NEVER]), ExprPool::NEVER);
    }

    #[test]
    fn alternatives_are_a_set() {
        let mut pool = ExprPool::new();
        let (a, b) = (pool.literal(b"aa"), pool.literal(b"b"));
        assert_eq!(pool.alt(&[a, b, ExprPool::NEVER]), pool.alt(&[b, a, b]));
        assert_eq!(pool.alt(&[a, a]), a);
        let digits = pool.chars(CharSet::new([(0x30, 0x39)]));
        let more = pool.alt(&[digits, b]);
        assert_eq!(pool.get(more), &Expr::Chars(CharSet::new([(0x30, 0x39), (0x62, 0x62)])));
    }

    #[test]
    fn repeats_simplify() {
        let mut pool = ExprPool::new();
        let a = pool.literal(b"a");
        assert_eq!(pool.repeat(a, 1, Some(1)), a);
        assert_eq!(pool.repeat(a, 0, Some(0)), ExprPool::EMPTY);
        assert_eq!(pool.repeat(a, 3, Some(2)), ExprPool::NEVER);
        let star = pool.repeat(a, 0, None);
        assert_eq!(pool.repeat(star, 5, None), star);
    }
}
