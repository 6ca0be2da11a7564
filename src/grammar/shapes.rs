//! The tokens of a vocabulary by their shapes: with runs of like characters drawn together.
//!
//! Most tokens are words, and most states treat all letters alike, or all digits, or all
//! characters beyond ASCII. So `foo(` and `bar(` are of one shape, a run of small letters and a
//! parenthesis, and a vocabulary of 128,000 tokens has 7,500 shapes with 11,500 nodes, where its
//! tree of bytes has 275,000. A walk goes over the shapes and falls back to the bytes only where
//! a state tells the characters of a run apart.

use rustc_hash::FxHashMap;

use super::charloop::WIDE_SEQUENCES;
use super::mask::set_bit;
use super::trie::Trie;
use crate::TokenId;

mod sketch;

/// Characters that are drawn together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Class {
    /// `a` to `z`.
    Lower,
    /// `A` to `Z`.
    Upper,
    /// `0` to `9`.
    Digit,
    /// Whole characters beyond ASCII.
    Wide,
}

impl Class {
    /// How many there are.
    pub(crate) const COUNT: usize = 4;

    /// The bytes that a character of the class may start with.
    pub(crate) fn first_bytes(self) -> (u8, u8) {
        match self {
            Self::Lower => (b'a', b'z'),
            Self::Upper => (b'A', b'Z'),
            Self::Digit => (b'0', b'9'),
            Self::Wide => (0xC2, 0xF4),
        }
    }

    /// The bytes of its characters.
    pub(crate) fn sequences(self) -> &'static [&'static [(u8, u8)]] {
        match self {
            Self::Lower => &[&[(b'a', b'z')]],
            Self::Upper => &[&[(b'A', b'Z')]],
            Self::Digit => &[&[(b'0', b'9')]],
            Self::Wide => &WIDE_SEQUENCES,
        }
    }

    /// The class of the characters that a byte begins.
    fn begun_by(byte: u8) -> Option<Self> {
        match byte {
            0xC2..=0xF4 => Some(Self::Wide),
            _ => Self::of_ascii(byte),
        }
    }

    /// Whether a single character has a symbol of its own: names and words begin with one capital.
    pub(crate) fn has_single(self) -> bool {
        self == Self::Upper
    }

    fn of_ascii(byte: u8) -> Option<Self> {
        match byte {
            b'a'..=b'z' => Some(Self::Lower),
            b'A'..=b'Z' => Some(Self::Upper),
            b'0'..=b'9' => Some(Self::Digit),
            _ => None,
        }
    }
}

/// A part of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Symbol {
    /// Just this byte.
    Byte(u8),
    /// Just one character of a class.
    One(Class),
    /// One or more characters of a class; two or more where one has a symbol of its own.
    Run(Class),
}

/// Index of a [`ShapeNode`].
pub(crate) type ShapeId = u32;

/// Marks that there is no such node.
pub(crate) const NONE: u32 = u32::MAX;

/// One symbol of one or more shapes. A node's first child follows it directly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShapeNode {
    /// Index of the first node that is not below this one.
    pub(crate) skip: ShapeId,
    pub(crate) symbol: Symbol,
    /// Symbols before this one.
    pub(crate) depth: u16,
    /// Bytes that a token of one of the shapes below has from this symbol on, at most.
    pub(crate) height: u16,
    /// The tokens of this shape, and then those below, start here in the list.
    first: u32,
    /// Tokens of this very shape.
    count: u32,
    /// Where their mask is, if there are many.
    dense: u32,
}

/// The shapes of a vocabulary.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    /// In walking order, as in [`Trie`].
    nodes: Box<[ShapeNode]>,
    /// Tokens by their shapes, and those of one shape by the length of the run that ends it.
    tokens: Box<[TokenId]>,
    /// For each of them, characters of the run that ends it; 255: as many or more.
    last_runs: Box<[u8]>,
    /// Masks of shapes with many tokens.
    dense: Box<[Box<[u32]>]>,
    /// For each node of the tree of bytes, the shape of the bytes up to it; [`NONE`] in the
    /// middle of a character.
    of_bytes: Box<[ShapeId]>,
    /// Nodes of the tree of bytes where a character of a class begins after a shape, or after
    /// nothing, and is not of a run before.
    starts: FxHashMap<(ShapeId, Class), Box<[u32]>>,
    /// Tokens by their lengths in bytes, the longest first.
    by_length: Box<[(u16, TokenId)]>,
    /// Tokens and their shapes in the order of the tree of bytes.
    in_tree: Box<[(TokenId, ShapeId)]>,
    /// For each node of the tree of bytes, the tokens before it.
    tokens_before: Box<[u32]>,
    /// The nodes of first symbols.
    roots: Box<[Root]>,
    depth_max: usize,
}

/// A first symbol of shapes. Kept apart from its node: most are dead, and their nodes lie far
/// apart.
#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) index: ShapeId,
    /// The bytes that it may start with, first and last.
    pub(crate) first_bytes: (u8, u8),
}

impl Root {
    fn all(nodes: &[ShapeNode]) -> Box<[Self]> {
        let mut roots = Vec::new();
        let mut index = 0;
        while let Some(node) = nodes.get(index as usize) {
            let first_bytes = match node.symbol {
                Symbol::Byte(byte) => (byte, byte),
                Symbol::One(class) | Symbol::Run(class) => class.first_bytes(),
            };
            roots.push(Self { index, first_bytes });
            index = node.skip;
        }
        roots.into()
    }
}

/// Tokens of one shape from which on it has a mask.
const DENSE_MIN: u32 = 384;

impl Shapes {
    /// The shapes of the tokens of `trie`, for masks of `words` words.
    pub(crate) fn new(trie: &Trie, words: usize) -> Self {
        let mut sketch = sketch::Sketch::default();
        sketch.read(trie);
        let shapes = sketch.finish(trie, words);
        Self { roots: Root::all(&shapes.nodes), ..shapes }
    }

    /// The nodes, in walking order.
    #[inline]
    pub(crate) fn nodes(&self) -> &[ShapeNode] {
        &self.nodes
    }

    /// The nodes of first symbols, in walking order.
    pub(crate) fn roots(&self) -> &[Root] {
        &self.roots
    }

    /// Symbols of the longest shape.
    pub(crate) fn depth_max(&self) -> usize {
        self.depth_max
    }

    /// Sets the tokens of this very shape; false if there are none.
    #[inline]
    pub(crate) fn set_own(&self, node: &ShapeNode, bits: &mut [u32]) -> bool {
        if let Some(mask) = self.dense.get(node.dense as usize) {
            bits.iter_mut().zip(mask).for_each(|(word, more)| *word |= more);
            return true;
        }
        let own = self.own(node);
        own.iter().for_each(|&token| set_bit(bits, token));
        !own.is_empty()
    }

    /// The tokens of this very shape.
    pub(crate) fn own(&self, node: &ShapeNode) -> &[TokenId] {
        let own = node.first as usize..(node.first + node.count) as usize;
        self.tokens.get(own).unwrap_or(&[])
    }

    /// The tokens of this very shape, with the lengths of the runs that end them, ascending.
    pub(crate) fn own_runs(&self, node: &ShapeNode) -> impl Iterator<Item = (TokenId, u8)> {
        let own = node.first as usize..(node.first + node.count) as usize;
        self.own(node).iter().copied().zip(self.last_runs.get(own).unwrap_or(&[]).iter().copied())
    }

    /// The tokens of a shape and of those below it.
    pub(crate) fn tokens_from(&self, node: &ShapeNode) -> &[TokenId] {
        let end = self
            .nodes
            .get(node.skip as usize)
            .map_or(self.tokens.len(), |next| next.first as usize);
        self.tokens.get(node.first as usize..end).unwrap_or(&[])
    }

    /// The shape of the bytes up to a node of the tree of bytes, unless that is in the middle of
    /// a character.
    #[inline]
    pub(crate) fn of_bytes(&self, node: usize) -> Option<ShapeId> {
        self.of_bytes.get(node).copied().filter(|&shape| shape != NONE)
    }

    /// Where, in the tree of bytes, a character of a class begins that comes after `shape`, or
    /// first, and goes on no run. All tokens of shapes below are below these nodes.
    pub(crate) fn starts(&self, shape: Option<ShapeId>, class: Class) -> &[u32] {
        self.starts.get(&(shape.unwrap_or(NONE), class)).map_or(&[], |nodes| nodes)
    }

    /// The tokens of more than `bytes` bytes.
    pub(crate) fn longer_than(&self, bytes: u32) -> impl Iterator<Item = TokenId> {
        self.by_length
            .iter()
            .take_while(move |(length, _)| u32::from(*length) > bytes)
            .map(|&(_, token)| token)
    }

    /// Tokens of the nodes `from` to `to` of the tree of bytes, with their shapes.
    pub(crate) fn tokens_between(&self, from: usize, to: usize) -> &[(TokenId, ShapeId)] {
        let before = |node: usize| {
            self.tokens_before.get(node).map_or(self.in_tree.len(), |&count| count as usize)
        };
        self.in_tree.get(before(from)..before(to)).unwrap_or(&[])
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        let dense: usize = self.dense.iter().map(|mask| size_of_val(&**mask)).sum();
        size_of_val(&*self.nodes)
            + size_of_val(&*self.tokens)
            + size_of_val(&*self.last_runs)
            + dense
            + size_of_val(&*self.of_bytes)
            + size_of_val(&*self.by_length)
            + self.starts.values().map(|nodes| size_of_val(&**nodes) + 32).sum::<usize>()
            + size_of_val(&*self.in_tree)
            + size_of_val(&*self.tokens_before)
            + size_of_val(&*self.roots)
    }
}
