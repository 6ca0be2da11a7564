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
use super::trie::{NO_TOKEN, Trie};
use crate::TokenId;

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
    depth_max: usize,
}

/// Tokens of one shape from which on it has a mask.
const DENSE_MIN: u32 = 384;

impl Shapes {
    /// The shapes of the tokens of `trie`, for masks of `words` words.
    pub(crate) fn new(trie: &Trie, words: usize) -> Self {
        let mut sketch = Sketch::default();
        sketch.read(trie);
        sketch.finish(trie, words)
    }

    /// The nodes, in walking order.
    #[inline]
    pub(crate) fn nodes(&self) -> &[ShapeNode] {
        &self.nodes
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
    }
}

/// A character beyond ASCII that is under way.
#[derive(Clone, Copy, Debug, Default)]
struct Begun {
    bytes: [u8; 3],
    len: u8,
    missing: u8,
    low: u8,
    high: u8,
}

impl Begun {
    /// The character that `byte` begins, if it may begin one.
    fn new(byte: u8) -> Option<Self> {
        let (missing, low, high) = match byte {
            0xC2..=0xDF => (1, 0x80, 0xBF),
            0xE0 => (2, 0xA0, 0xBF),
            0xED => (2, 0x80, 0x9F),
            0xE1..=0xEF => (2, 0x80, 0xBF),
            0xF0 => (3, 0x90, 0xBF),
            0xF1..=0xF3 => (3, 0x80, 0xBF),
            0xF4 => (3, 0x80, 0x8F),
            _ => return None,
        };
        Some(Self { bytes: [byte, 0, 0], len: 1, missing, low, high })
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Where the bytes so far stand: a shape, and perhaps some bytes of a character.
#[derive(Clone, Copy, Debug)]
struct Place {
    shape: u32,
    /// Characters of the run that ends the shape.
    run: u8,
    begun: Begun,
}

/// A shape as it is met: numbered by that, not yet in walking order.
struct Draft {
    symbol: Symbol,
    parent: u32,
    /// Least bytes before the symbol.
    start: u16,
    /// Bytes of the longest token below.
    longest: u16,
    /// Tokens, after the length of the run that ends them.
    tokens: Vec<(u8, TokenId)>,
    children: Vec<u32>,
}

/// Shapes in the making.
#[derive(Default)]
struct Sketch {
    drafts: Vec<Draft>,
    known: FxHashMap<(u32, Symbol), u32>,
    roots: Vec<u32>,
    of_bytes: Vec<u32>,
    in_tree: Vec<(TokenId, u32)>,
    tokens_before: Vec<u32>,
    starts: FxHashMap<(u32, Class), Vec<u32>>,
    by_length: Vec<(u16, TokenId)>,
}

impl Sketch {
    fn read(&mut self, trie: &Trie) {
        let start = Place { shape: NONE, run: 0, begun: Begun::default() };
        let mut places = vec![start; trie.depth_max() + 1];
        for (index, node) in trie.nodes().iter().enumerate() {
            let depth = usize::from(node.depth);
            let place = self.after(places[depth], node.byte, node.depth);
            places[depth + 1] = place;
            let is_whole = place.begun.missing == 0;
            self.of_bytes.push(if is_whole { place.shape } else { NONE });
            self.tokens_before.push(self.in_tree.len() as u32);
            if let Some(class) = Class::begun_by(node.byte) {
                let before = self.break_off(places[depth], node.depth);
                if !self.goes_on(before, class) {
                    self.starts.entry((before, class)).or_default().push(index as u32);
                }
            }
            if node.token != NO_TOKEN {
                let shape = self.break_off(place, node.depth + 1);
                let run = if shape == place.shape { place.run } else { 0 };
                self.add_token(shape, node.token, run, node.depth + 1);
            }
        }
    }

    /// The place after one more byte, the one at `depth`.
    fn after(&mut self, place: Place, byte: u8, depth: u16) -> Place {
        let Place { shape, mut begun, .. } = place;
        if begun.missing > 0 && begun.low <= byte && byte <= begun.high {
            if begun.missing == 1 {
                let start = depth - u16::from(begun.len);
                return self.place(place, shape, Symbol::Run(Class::Wide), start);
            }
            begun.bytes[usize::from(begun.len)] = byte;
            let begun = Begun {
                len: begun.len + 1,
                missing: begun.missing - 1,
                low: 0x80,
                high: 0xBF,
                ..begun
            };
            return Place { begun, ..place };
        }
        let shape = self.break_off(place, depth);
        if let Some(begun) = Begun::new(byte) {
            let run = if shape == place.shape { place.run } else { 0 };
            return Place { shape, run, begun };
        }
        let symbol = match Class::of_ascii(byte) {
            Some(class) => self.symbol(shape, class),
            None => Symbol::Byte(byte),
        };
        self.place(place, shape, symbol, depth)
    }

    /// The place after a symbol that comes after `shape` and starts `start` bytes in.
    fn place(&mut self, last: Place, shape: u32, symbol: Symbol, start: u16) -> Place {
        let (before, start) = self.before(shape, symbol, start);
        let after = self.child(before, symbol, start);
        let goes_on = shape == last.shape && (after == shape || before != shape);
        let run = if goes_on { last.run.saturating_add(1) } else { 1 };
        Place { shape: after, run, begun: Begun::default() }
    }

    /// The shape if no more of a character comes, `depth` bytes in.
    fn break_off(&mut self, place: Place, depth: u16) -> u32 {
        let mut shape = place.shape;
        let mut start = depth - u16::from(place.begun.len);
        for &byte in place.begun.bytes() {
            shape = self.child(shape, Symbol::Byte(byte), start);
            start += 1;
        }
        shape
    }

    /// Whether a character of the class belongs to the run that ends a shape.
    fn goes_on(&self, shape: u32, class: Class) -> bool {
        let last = self.drafts.get(shape as usize).map(|draft| draft.symbol);
        last == Some(Symbol::One(class)) || last == Some(Symbol::Run(class))
    }

    /// The symbol for one more character of a class.
    fn symbol(&self, shape: u32, class: Class) -> Symbol {
        if class.has_single() && !self.goes_on(shape, class) {
            Symbol::One(class)
        } else {
            Symbol::Run(class)
        }
    }

    /// The shape before `symbol`, and how many bytes that is: a run of two takes the place of the
    /// one character before.
    fn before(&self, shape: u32, symbol: Symbol, depth: u16) -> (u32, u16) {
        match (self.drafts.get(shape as usize), symbol) {
            (Some(draft), Symbol::Run(class)) if draft.symbol == Symbol::One(class) => {
                (draft.parent, depth - 1)
            }
            _ => (shape, depth),
        }
    }

    fn child(&mut self, parent: u32, symbol: Symbol, start: u16) -> u32 {
        if let (Some(draft), Symbol::Run(_)) = (self.drafts.get(parent as usize), symbol)
            && draft.symbol == symbol
        {
            return parent;
        }
        if let Some(&known) = self.known.get(&(parent, symbol)) {
            let draft = &mut self.drafts[known as usize];
            draft.start = draft.start.min(start);
            return known;
        }
        let id = self.drafts.len() as u32;
        let (tokens, children) = (Vec::new(), Vec::new());
        self.drafts.push(Draft { symbol, parent, start, longest: 0, tokens, children });
        self.known.insert((parent, symbol), id);
        match self.drafts.get_mut(parent as usize) {
            Some(draft) => draft.children.push(id),
            None => self.roots.push(id),
        }
        id
    }

    fn add_token(&mut self, shape: u32, token: TokenId, run: u8, len: u16) {
        self.in_tree.push((token, shape));
        self.by_length.push((len, token));
        self.drafts[shape as usize].tokens.push((run, token));
        let mut at = shape;
        while let Some(draft) = self.drafts.get_mut(at as usize) {
            draft.longest = draft.longest.max(len);
            at = draft.parent;
        }
    }

    /// Puts the shapes into walking order.
    fn finish(mut self, trie: &Trie, words: usize) -> Shapes {
        let mut shapes = Shapes::default();
        let mut nodes: Vec<ShapeNode> = Vec::new();
        let (mut tokens, mut last_runs) = (Vec::new(), Vec::new());
        let mut dense = Vec::new();
        let mut order = vec![NONE; self.drafts.len()];
        // What is still to be written, last first; closing a node sets where it ends.
        enum Task {
            Open(u32, u16),
            Close(u32),
        }
        let last_first = |mut ids: Vec<u32>, drafts: &[Draft]| {
            ids.sort_by_key(|&id| std::cmp::Reverse(drafts[id as usize].symbol));
            ids
        };
        let roots = last_first(std::mem::take(&mut self.roots), &self.drafts);
        let mut tasks: Vec<Task> = roots.into_iter().map(|id| Task::Open(id, 0)).collect();
        while let Some(task) = tasks.pop() {
            let (id, depth) = match task {
                Task::Open(id, depth) => (id, depth),
                Task::Close(node) => {
                    nodes[node as usize].skip = nodes.len() as u32;
                    continue;
                }
            };
            let node = nodes.len() as u32;
            order[id as usize] = node;
            let children =
                last_first(std::mem::take(&mut self.drafts[id as usize].children), &self.drafts);
            let draft = &mut self.drafts[id as usize];
            let mut own = std::mem::take(&mut draft.tokens);
            own.sort_unstable();
            let count = own.len() as u32;
            nodes.push(ShapeNode {
                skip: 0,
                symbol: draft.symbol,
                depth,
                height: draft.longest.saturating_sub(draft.start),
                first: tokens.len() as u32,
                count,
                dense: if count >= DENSE_MIN { dense.len() as u32 } else { NONE },
            });
            if count >= DENSE_MIN {
                let mut mask = vec![0; words];
                own.iter().for_each(|&(_, token)| set_bit(&mut mask, token));
                dense.push(mask.into_boxed_slice());
            }
            tokens.extend(own.iter().map(|&(_, token)| token));
            last_runs.extend(own.iter().map(|&(run, _)| run));
            shapes.depth_max = shapes.depth_max.max(usize::from(depth) + 1);
            tasks.push(Task::Close(node));
            tasks.extend(children.into_iter().map(|child| Task::Open(child, depth + 1)));
        }
        let place = |id: u32| order.get(id as usize).copied().unwrap_or(NONE);
        shapes.of_bytes = self.of_bytes.iter().map(|&id| place(id)).collect();
        shapes.in_tree = self.in_tree.iter().map(|&(token, id)| (token, place(id))).collect();
        shapes.tokens_before = self.tokens_before.into();
        shapes.nodes = nodes.into();
        shapes.tokens = tokens.into();
        shapes.last_runs = last_runs.into();
        shapes.dense = dense.into();
        let starts = self.starts.into_iter();
        shapes.starts =
            starts.map(|((shape, class), nodes)| ((place(shape), class), nodes.into())).collect();
        self.by_length.sort_unstable_by_key(|&(length, _)| std::cmp::Reverse(length));
        shapes.by_length = self.by_length.into();
        debug_assert_eq!(shapes.of_bytes.len(), trie.nodes().len());
        shapes
    }
}
