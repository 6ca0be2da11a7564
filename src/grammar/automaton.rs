//! The states a parse can be in, built as they are met and shared by all matchers of a grammar.
//!
//! A state is a set of *items*; an item is a stack of frames whose top is a switch or a token
//! node. Stacks are hash-consed, so an item is one number, and sets are too, so a state is one
//! number: [`ConfigId`]. Following a byte is one look-up once the way has been gone before.
//!
//! Reading takes no lock. A way that is not known yet is found under the builder's lock, which is
//! held for that one step only, so a session that walks new states does not stop the others.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::builder::{Builder, Closed, StackId};
use super::error::LimitError;
use super::limits::{Fuel, Limits};
use super::mask_cache::CachedMask;
use super::program::{Node, NodeId, Program};
use super::segments::Segments;
use super::shapes::Class;
use super::vocabulary::GrammarVocabulary;

use crate::TokenId;

mod runs;

pub(crate) use runs::Run;

/// A state of an [`Automaton`].
pub(crate) type ConfigId = u32;

/// The state without items: nothing can follow.
pub(crate) const DEAD: ConfigId = 0;
/// The state before the first byte.
pub(crate) const START: ConfigId = 1;

/// Marks an edge that nobody has followed yet.
const UNKNOWN_EDGE: u64 = u64::MAX;

/// Where a byte leads, and how much of the stack that depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) to: ConfigId,
    /// Height of the lowest frame that was looked at; frames are numbered from 1 at the bottom,
    /// and 0 means that the bottom itself was seen.
    pub(crate) floor: u32,
}

impl Edge {
    const NOWHERE: Self = Self { to: DEAD, floor: u32::MAX };

    fn pack(self) -> u64 {
        u64::from(self.floor) << 32 | u64::from(self.to)
    }

    fn unpack(packed: u64) -> Self {
        Self { to: packed as u32, floor: (packed >> 32) as u32 }
    }
}

/// Everything known of one state.
pub(crate) struct Config {
    /// Stacks whose tops consume, ascending.
    pub(crate) items: SmallVec<[StackId; 4]>,
    /// Whether the text so far is a complete answer.
    pub(crate) accepting: bool,
    /// Whether a token can be consumed by its id.
    pub(crate) has_token_items: bool,
    /// Whether some stack counts rounds, so that the state has a simpler stand-in for masks.
    pub(crate) has_counts: bool,
    /// Whether some stack holds the progress of an object.
    pub(crate) has_progress: bool,
    /// Whether an object may be opened here whose keys must differ.
    pub(crate) opens_object: bool,
    /// Least bytes that complete the answer.
    pub(crate) finish_bytes: u32,
    /// Bytes that some item can consume.
    pub(crate) alive: [u64; 4],
    edges: OnceLock<Box<[AtomicU64]>>,
    /// Where the characters of a class lead, if they all lead to one place.
    runs: [AtomicU64; Class::COUNT],
    /// The state with abstract counts, by which masks are looked up.
    pub(crate) abstracted: OnceLock<ConfigId>,
    pub(crate) mask: OnceLock<Arc<CachedMask>>,
    /// Most bytes that complete the answer after a token of the mask; [`NO_WAY`]: there is no bound.
    ///
    /// [`NO_WAY`]: super::program::NO_WAY
    pub(crate) finish_bytes_after: OnceLock<u32>,
    /// In free text: tokens in which every token of the mask can be taken and the answer completed.
    pub(crate) finish_tokens: OnceLock<u32>,
}

impl Config {
    pub(super) fn new(closed: &Closed, facts: ConfigFacts) -> Self {
        Self {
            items: SmallVec::from_slice(&closed.items),
            accepting: closed.accepting,
            has_token_items: facts.has_token_items,
            has_counts: facts.has_counts,
            has_progress: facts.has_progress,
            opens_object: facts.opens_object,
            finish_bytes: facts.finish_bytes,
            alive: facts.alive,
            edges: OnceLock::new(),
            runs: [const { AtomicU64::new(UNKNOWN_EDGE) }; Class::COUNT],
            abstracted: OnceLock::new(),
            mask: OnceLock::new(),
            finish_bytes_after: OnceLock::new(),
            finish_tokens: OnceLock::new(),
        }
    }

    /// Whether some item can consume the byte.
    #[inline]
    pub(crate) fn is_alive_on(&self, byte: u8) -> bool {
        self.alive[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
    }

    /// Whether some item can consume one of the bytes, from the first to the last.
    pub(crate) fn is_alive_on_any(&self, (low, high): (u8, u8)) -> bool {
        (low..=high).any(|byte| self.is_alive_on(byte))
    }

    /// Whether some item can consume each of the bytes, from the first to the last.
    fn is_alive_on_all(&self, (low, high): (u8, u8)) -> bool {
        (low..=high).all(|byte| self.is_alive_on(byte))
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
            + if self.items.spilled() { self.items.len() * size_of::<StackId>() } else { 0 }
    }
}

/// What the builder knows of a new state, besides its items.
pub(super) struct ConfigFacts {
    pub(super) has_token_items: bool,
    pub(super) has_counts: bool,
    pub(super) has_progress: bool,
    pub(super) opens_object: bool,
    pub(super) finish_bytes: u32,
    pub(super) alive: [u64; 4],
}

/// The states of one program met so far.
pub(crate) struct Automaton {
    program: Arc<Program>,
    configs: Segments<Config>,
    builder: Mutex<Builder>,
    /// States with abstract counts, by state and by the bytes that may still come.
    abstracted_for: Mutex<FxHashMap<(ConfigId, u32), ConfigId>>,
    bytes: AtomicUsize,
}

impl Automaton {
    /// An automaton that knows its dead and its start state.
    pub(crate) fn new(
        program: Arc<Program>,
        limits: &Limits,
        fuel: &mut Fuel<'_>,
    ) -> Result<Self, LimitError> {
        let automaton = Self {
            builder: Mutex::new(Builder::new(limits)),
            program,
            configs: Segments::new(),
            abstracted_for: Mutex::default(),
            bytes: AtomicUsize::new(0),
        };
        let mut builder = automaton.lock();
        builder.clear();
        automaton.intern(&mut builder);
        builder.start(&automaton.program, fuel)?;
        automaton.intern(&mut builder);
        drop(builder);
        Ok(automaton)
    }

    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    /// Bytes of memory that the states take, about.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Counts memory that is kept beside the states and goes with them.
    pub(crate) fn add_bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// States met so far.
    pub(crate) fn len(&self) -> usize {
        self.configs.len()
    }

    /// The state behind an id.
    #[inline]
    pub(crate) fn config(&self, id: ConfigId) -> &Config {
        self.configs.get(id)
    }

    /// A panic elsewhere cannot leave the builder half-changed in a way that matters: interned
    /// entries are only ever added, each in one step. So a poisoned lock is taken all the same.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Builder> {
        self.builder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where `byte` leads from `config`.
    #[inline]
    pub(crate) fn edge(
        &self,
        config: &Config,
        byte: u8,
        fuel: &mut Fuel<'_>,
    ) -> Result<Edge, LimitError> {
        if !config.is_alive_on(byte) {
            return Ok(Edge::NOWHERE);
        }
        let class = self.program.classes.of(byte);
        if let Some(edges) = config.edges.get() {
            let packed = edges[class].load(Ordering::Acquire);
            if packed != UNKNOWN_EDGE {
                return Ok(Edge::unpack(packed));
            }
        }
        self.find_edge(config, byte, class, fuel)
    }

    #[cold]
    fn find_edge(
        &self,
        config: &Config,
        byte: u8,
        class: usize,
        fuel: &mut Fuel<'_>,
    ) -> Result<Edge, LimitError> {
        let edges = config.edges.get_or_init(|| {
            let count = self.program.classes.len();
            self.bytes.fetch_add(count * size_of::<AtomicU64>(), Ordering::Relaxed);
            (0..count).map(|_| AtomicU64::new(UNKNOWN_EDGE)).collect()
        });
        let mut builder = self.lock();
        builder.step(&self.program, &config.items, byte, fuel)?;
        let edge = Edge { floor: builder.closed().floor, to: self.intern(&mut builder) };
        drop(builder);
        edges[class].store(edge.pack(), Ordering::Release);
        Ok(edge)
    }

    /// The state of what the builder has just closed.
    pub(crate) fn intern(&self, builder: &mut Builder) -> ConfigId {
        let known = builder.find_config(|id| self.config(id));
        if let Some(id) = known {
            return id;
        }
        let facts = builder.facts(&self.program);
        let config = Config::new(builder.closed(), facts);
        self.bytes.fetch_add(config.bytes() + builder.new_bytes(), Ordering::Relaxed);
        let id = self.configs.push(config);
        builder.add_config(id, |id| self.config(id));
        id
    }

    /// The state whose registers are abstract, as far as no token of a vocabulary can tell.
    pub(crate) fn abstracted(
        &self,
        id: ConfigId,
        vocabulary: &GrammarVocabulary,
    ) -> Result<ConfigId, LimitError> {
        let config = self.config(id);
        if !config.has_counts && !config.has_progress {
            return Ok(id);
        }
        if let Some(&known) = config.abstracted.get() {
            return Ok(known);
        }
        let mut builder = self.lock();
        let bytes = vocabulary.token_bytes_max();
        let beginnings = &*vocabulary.key_ends().beginnings;
        let of = (&*config.items, config.accepting);
        builder.abstract_registers(&self.program, of, bytes, Some(beginnings))?;
        let abstracted = self.intern(&mut builder);
        Ok(*config.abstracted.get_or_init(|| abstracted))
    }

    /// The state at a node of an object of which nothing is known, with nothing below.
    pub(crate) fn after_any(
        &self,
        node: NodeId,
        fuel: &mut Fuel<'_>,
    ) -> Result<ConfigId, LimitError> {
        let mut builder = self.lock();
        builder.close_any(&self.program, node, fuel)?;
        Ok(self.intern(&mut builder))
    }

    /// Where a node leads that takes the place of a stack's top.
    pub(crate) fn beside(
        &self,
        item: StackId,
        node: NodeId,
        fuel: &mut Fuel<'_>,
    ) -> Result<Edge, LimitError> {
        let mut builder = self.lock();
        let height = builder.frame(item).height;
        builder.close_beside(&self.program, item, node, fuel)?;
        let floor = builder.closed().floor.min(height);
        Ok(Edge { floor, to: self.intern(&mut builder) })
    }

    /// Where a token leads by its id, if an item consumes it so; `by_bytes` is where its bytes
    /// lead, and is part of the answer.
    pub(crate) fn follow_token(
        &self,
        from: ConfigId,
        token: TokenId,
        by_bytes: ConfigId,
        is_in: &dyn Fn(u32) -> bool,
        fuel: &mut Fuel<'_>,
    ) -> Result<ConfigId, LimitError> {
        let mut builder = self.lock();
        if let Some(known) = builder.token_edge(from, token) {
            return Ok(known);
        }
        let by_bytes_config = self.config(by_bytes);
        builder.step_token(&self.program, &self.config(from).items, is_in, fuel)?;
        builder.join(&by_bytes_config.items, by_bytes_config.accepting);
        let to = self.intern(&mut builder);
        builder.add_token_edge(from, token, to);
        Ok(to)
    }

    /// The item of a state that consumes a token by its id and is nearest to the end.
    pub(crate) fn nearest_token_item(&self, id: ConfigId) -> Option<StackId> {
        let builder = self.lock();
        let items = self.config(id).items.iter().copied();
        items
            .filter(|&item| self.token_node(&builder, item).is_some())
            .min_by_key(|&item| builder.frame(item).finish_bytes)
    }

    /// Whether a quote may end a key here that is not declared.
    pub(crate) fn ends_free_key(&self, config: &Config) -> bool {
        let builder = self.lock();
        config.items.iter().any(|&item| self.program.ends_free_key(builder.frame(item).node))
    }

    /// The token set that an item consumes, and the state that it alone leads to.
    pub(crate) fn follow_item(
        &self,
        item: StackId,
        fuel: &mut Fuel<'_>,
    ) -> Result<Option<(u32, ConfigId)>, LimitError> {
        let mut builder = self.lock();
        let Some((set, next)) = self.token_node(&builder, item) else { return Ok(None) };
        let frame = *builder.frame(item);
        builder.close_at(&self.program, (next, frame.count, frame.parent), fuel)?;
        Ok(Some((set, self.intern(&mut builder))))
    }

    fn token_node(&self, builder: &Builder, item: StackId) -> Option<(u32, NodeId)> {
        match self.program.nodes[builder.frame(item).node as usize] {
            Node::Token { set, next } => Some((set, next)),
            _ => None,
        }
    }

    /// The states of another automaton of the same program, as states of this one.
    pub(crate) fn adopt(
        &self,
        other: &Self,
        states: &[ConfigId],
    ) -> Result<Vec<ConfigId>, LimitError> {
        let mut known: FxHashMap<ConfigId, ConfigId> = FxHashMap::default();
        let mut adopted = Vec::with_capacity(states.len());
        for &state in states {
            if let Some(&state) = known.get(&state) {
                adopted.push(state);
                continue;
            }
            let config = other.config(state);
            // One lock at a time: two moves in opposite directions must not wait on each other.
            let stacks: Vec<Vec<(NodeId, u32)>> = {
                let builder = other.lock();
                config.items.iter().map(|&item| builder.frames_of(item)).collect()
            };
            let mut builder = self.lock();
            builder.restore(&self.program, &stacks, config.accepting)?;
            let id = self.intern(&mut builder);
            known.insert(state, id);
            adopted.push(id);
        }
        Ok(adopted)
    }
}
