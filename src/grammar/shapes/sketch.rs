//! Finds the shapes of a vocabulary.

use rustc_hash::FxHashMap;

use super::{Class, DENSE_MIN, NONE, ShapeNode, Shapes, Symbol};
use crate::TokenId;
use crate::grammar::mask::set_bit;
use crate::grammar::trie::{NO_TOKEN, Trie};

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
pub(super) struct Sketch {
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
    pub(super) fn read(&mut self, trie: &Trie) {
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
        for (start, &byte) in (depth - u16::from(place.begun.len)..).zip(place.begun.bytes()) {
            shape = self.child(shape, Symbol::Byte(byte), start);
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
    pub(super) fn finish(mut self, trie: &Trie, words: usize) -> Shapes {
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
