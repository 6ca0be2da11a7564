//! Where a program is in free text, and the tokens that are worth a look there.
//!
//! Nearly every token is free text. What is not holds a trigger, or ends one that has begun: these
//! few *doubtful* tokens are found once for each place, and all others are allowed without a walk.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use aho_corasick::AhoCorasick;
use rustc_hash::FxHashMap;

use super::free_text::FreeMachine;
use super::program::{Arm, Node, NodeId, Program};
use super::trie::NO_TOKEN;
use super::vocabulary::GrammarVocabulary;
use crate::TokenId;

/// A free text as it was lowered.
#[derive(Clone)]
pub(crate) struct LoweredFree {
    pub(super) machine: Arc<FreeMachine>,
    /// The triggers that count anywhere.
    pub(super) texts: Vec<Box<[u8]>>,
    /// The tokens that are taken by id.
    pub(super) tokens: Vec<TokenId>,
    /// The node of each state, and the one of its switch.
    pub(super) states: Vec<NodeId>,
    pub(super) switches: Vec<NodeId>,
}

/// A free text of a program.
#[derive(Debug)]
struct FreeInfo {
    machine: Arc<FreeMachine>,
    texts: Vec<Box<[u8]>>,
    tokens: Vec<TokenId>,
    /// Most bytes that it takes to its rule's end from any of its states.
    cost_max: u32,
    doubtful: Vec<OnceLock<Arc<[TokenId]>>>,
}

/// A place in a free text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FreePlace {
    text: u32,
    state: u32,
}

/// The free texts of a program.
#[derive(Debug, Default)]
pub(crate) struct FreePlaces {
    texts: Vec<FreeInfo>,
    by_switch: FxHashMap<NodeId, FreePlace>,
}

impl FreePlaces {
    /// Finds the switches of free texts: also those that were copied into a split.
    pub(super) fn new(lowered: Vec<LoweredFree>, program: &Program) -> Self {
        if lowered.is_empty() {
            return Self::default();
        }
        let arms = |node: NodeId| match program.nodes[node as usize] {
            Node::Switch(span) => Some(program.arms(span)),
            _ => None,
        };
        let mut by_arms: FxHashMap<&[Arm], FreePlace> = FxHashMap::default();
        for (text, free) in lowered.iter().enumerate() {
            for (state, &switch) in free.switches.iter().enumerate() {
                if let Some(arms) = arms(switch) {
                    let place = FreePlace { text: text as u32, state: state as u32 };
                    by_arms.entry(arms).or_insert(place);
                }
            }
        }
        let by_switch = (0..program.nodes.len() as NodeId)
            .filter_map(|node| Some((node, *by_arms.get(arms(node)?)?)))
            .collect();
        let info = |free: LoweredFree| FreeInfo {
            cost_max: free
                .states
                .iter()
                .map(|&node| program.costs[node as usize])
                .max()
                .unwrap_or(0),
            doubtful: free.states.iter().map(|_| OnceLock::new()).collect(),
            machine: free.machine,
            texts: free.texts,
            tokens: free.tokens,
        };
        Self { texts: lowered.into_iter().map(info).collect(), by_switch }
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.by_switch.is_empty()
    }

    /// The tokens that are taken by id at a place.
    pub(super) fn tokens(&self, place: FreePlace) -> &[TokenId] {
        &self.texts[place.text as usize].tokens
    }

    /// The place that a switch is.
    #[inline]
    pub(super) fn get(&self, node: NodeId) -> Option<FreePlace> {
        self.by_switch.get(&node).copied()
    }

    /// Most bytes that it takes to the end of the rule after a token that is not doubtful.
    pub(super) fn cost_max(&self, place: FreePlace) -> u32 {
        self.texts[place.text as usize].cost_max
    }

    /// The tokens that may not come at a place or complete a trigger, and maybe a few more.
    pub(super) fn doubtful(
        &self,
        place: FreePlace,
        vocabulary: &GrammarVocabulary,
    ) -> Arc<[TokenId]> {
        let info = &self.texts[place.text as usize];
        let found = info.doubtful[place.state as usize].get_or_init(|| {
            let plain = info.machine.plain;
            let mut tokens: Vec<TokenId> = if place.state == plain {
                let holding = info.texts.iter().map(|text| vocabulary.tokens_with(text));
                holding.flat_map(|tokens| tokens.to_vec()).collect()
            } else {
                let plain = FreePlace { state: plain, ..place };
                self.doubtful(plain, vocabulary).to_vec()
            };
            info.add_differing(place.state, vocabulary, &mut tokens);
            let twins = vocabulary.twins().iter();
            let twins = twins.filter(|(token, _)| tokens.contains(token)).map(|&(_, twin)| twin);
            let twins: Vec<TokenId> = twins.collect();
            tokens.extend(twins);
            tokens.sort_unstable();
            tokens.dedup();
            tokens.into()
        });
        Arc::clone(found)
    }
}

impl FreeInfo {
    /// Adds the tokens that end the text from a state by bytes along which it differs from the
    /// plain one.
    fn add_differing(&self, state: u32, vocabulary: &GrammarVocabulary, tokens: &mut Vec<TokenId>) {
        let trie = vocabulary.trie();
        let nodes = trie.nodes();
        let mut open = vec![(None, state, self.machine.plain)];
        while let Some((node, ours, theirs)) = open.pop() {
            if ours == theirs {
                continue;
            }
            for (index, child) in trie.children(node) {
                let Some(ours) = self.machine.after(ours, child.byte) else {
                    let below = &nodes[index as usize..child.skip as usize];
                    tokens.extend(below.iter().map(|it| it.token).filter(|it| *it != NO_TOKEN));
                    continue;
                };
                // Where the plain state ends, its own list has the tokens.
                if let Some(theirs) = self.machine.after(theirs, child.byte) {
                    open.push((Some(index), ours, theirs));
                }
            }
        }
    }
}

/// Texts whose tokens are kept, at most.
const TEXTS_MAX: usize = 256;

/// Tokens, ascending.
type Tokens = Arc<[TokenId]>;

/// The tokens of a vocabulary that hold some text, by the text.
#[derive(Debug, Default)]
pub(crate) struct TokensByText(Mutex<FxHashMap<Box<[u8]>, Tokens>>);

impl GrammarVocabulary {
    /// The tokens that are matched by bytes and hold `text`, ascending.
    fn tokens_with(&self, text: &[u8]) -> Arc<[TokenId]> {
        let lock = || self.holding.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(text) {
            return Arc::clone(known);
        }
        let finder = AhoCorasick::new([text]).ok();
        let holds = |token: &TokenId| {
            let bytes = self.token_bytes(*token);
            // Who cannot search takes every token to be worth a look.
            finder.as_ref().is_none_or(|finder| finder.is_match(bytes))
        };
        let tokens: Arc<[TokenId]> = (0..self.len() as TokenId).filter(holds).collect();
        let mut known = lock();
        if known.len() >= TEXTS_MAX {
            known.clear();
        }
        known.insert(text.into(), Arc::clone(&tokens));
        tokens
    }
}
