//! Which tokens stay within a text from a place on, and which end it.
//!
//! The text's states are nodes of a program, each a switch. A walk over the vocabulary asks for
//! the same few of them again and again, so they become rows of a table as they are met.

use rustc_hash::FxHashMap;

use super::key_ends::RestId;
use super::mask::{has_bit, set_bit};
use super::program::{Node, NodeId, Program};
use super::text_places::TextPlace;
use super::trie::{NO_TOKEN, Trie};
use super::vocabulary::GrammarVocabulary;
use crate::TokenId;

/// What is looked for.
#[derive(Clone, Copy)]
pub(super) struct Survey {
    /// The place in the text.
    pub(super) node: NodeId,
    /// Where the closing quote leads.
    pub(super) after: NodeId,
    /// Whether only tokens with a quote are looked at.
    pub(super) only_quoted: bool,
    /// Nodes of the vocabulary's tree that are looked at, at most.
    pub(super) steps_max: u32,
}

impl Survey {
    /// Looks at the tokens; returns the steps taken, too. `None`: they were not enough.
    pub(super) fn run(
        self,
        program: &Program,
        vocabulary: &GrammarVocabulary,
    ) -> (u32, Option<TextPlace>) {
        let mut walk = Walk {
            vocabulary,
            rows: Rows::new(program, self.after),
            inside: vec![0; vocabulary.mask_words()],
            quoted: Vec::new(),
        };
        match walk.run(self) {
            Some(steps) => (steps, Some(walk.finish())),
            None => (self.steps_max, None),
        }
    }
}

struct Walk<'s> {
    vocabulary: &'s GrammarVocabulary,
    rows: Rows<'s>,
    inside: Vec<u32>,
    quoted: Vec<(RestId, TokenId)>,
}

impl Walk<'_> {
    /// Notes the tokens; the steps taken, or `None` if they were not enough.
    fn run(&mut self, survey: Survey) -> Option<u32> {
        let (trie, key_ends) = (self.vocabulary.trie(), self.vocabulary.key_ends());
        let nodes = trie.nodes();
        // Rows along the path; the first is that of the place.
        let mut path = vec![0; trie.depth_max() + 1];
        path[0] = self.rows.enter(survey.node)?;
        let (mut index, mut steps) = (0, 0);
        while let Some(node) = nodes.get(index as usize) {
            steps += 1;
            if steps > survey.steps_max {
                return None;
            }
            let depth = usize::from(node.depth);
            let next = self.rows.follow(path[depth], node.byte);
            if next == NOWHERE || survey.only_quoted && !key_ends.has_quote_below(index) {
                index = node.skip;
                continue;
            }
            if node.byte == b'"' && next == AFTER {
                self.note_quoted(trie, index);
                index = node.skip;
                continue;
            }
            if node.token != NO_TOKEN && !survey.only_quoted {
                set_bit(&mut self.inside, node.token);
            }
            index += 1;
            if index < node.skip {
                path[depth + 1] = self.rows.row(next)?;
            }
        }
        Some(steps)
    }

    /// Notes the tokens that end the text with the quote at a node of the tree.
    fn note_quoted(&mut self, trie: &Trie, quote: u32) {
        let key_ends = self.vocabulary.key_ends();
        let rest_of = |token| Some((key_ends.rest_of(token)?, token));
        self.quoted.extend(trie.tokens_from(quote).filter_map(rest_of));
    }

    fn finish(mut self) -> TextPlace {
        let key_ends = self.vocabulary.key_ends();
        self.quoted.sort_unstable();
        let quoted = self.quoted.len();
        for &(token, twin) in self.vocabulary.twins() {
            if has_bit(&self.inside, token) {
                set_bit(&mut self.inside, twin);
            }
            if let Some(rest) = key_ends.rest_of(token)
                && self.quoted[..quoted].binary_search(&(rest, token)).is_ok()
            {
                self.quoted.push((rest, twin));
            }
        }
        if self.quoted.len() > quoted {
            self.quoted.sort_unstable();
        }
        TextPlace::new(self.inside, self.quoted.into())
    }
}

/// A state of the text, by the order in which it is met.
type State = u16;
/// Stands for no state.
const NOWHERE: State = State::MAX;
/// The state after the closing quote.
const AFTER: State = 0;
/// A state that has no row yet.
const NO_ROW: u32 = u32::MAX;

/// Where bytes lead, for the states that were asked for.
struct Rows<'p> {
    program: &'p Program,
    rows: Vec<[State; 256]>,
    /// By state.
    nodes: Vec<NodeId>,
    /// The row of each state.
    row_of: Vec<u32>,
    state_of: FxHashMap<NodeId, State>,
}

impl<'p> Rows<'p> {
    fn new(program: &'p Program, after: NodeId) -> Self {
        Self {
            program,
            rows: Vec::new(),
            nodes: vec![after],
            row_of: vec![NO_ROW],
            state_of: [(after, AFTER)].into_iter().collect(),
        }
    }

    #[inline]
    fn follow(&self, row: u32, byte: u8) -> State {
        self.rows[row as usize][usize::from(byte)]
    }

    /// The row of a node. `None`: there are too many states.
    fn enter(&mut self, node: NodeId) -> Option<u32> {
        let state = self.number(node)?;
        self.row(state)
    }

    #[inline]
    fn row(&mut self, state: State) -> Option<u32> {
        match self.row_of[usize::from(state)] {
            NO_ROW => self.add_row(state),
            row => Some(row),
        }
    }

    #[cold]
    fn add_row(&mut self, state: State) -> Option<u32> {
        let mut row = [NOWHERE; 256];
        if let Node::Switch(span) = self.program.nodes[self.nodes[usize::from(state)] as usize] {
            for arm in self.program.arms(span) {
                let next = self.number(arm.next)?;
                row[usize::from(arm.low)..=usize::from(arm.high)].fill(next);
            }
        }
        let number = self.rows.len() as u32;
        self.rows.push(row);
        self.row_of[usize::from(state)] = number;
        Some(number)
    }

    /// The state of a node. `None`: there are too many.
    fn number(&mut self, node: NodeId) -> Option<State> {
        if let Some(&state) = self.state_of.get(&node) {
            return Some(state);
        }
        let state = State::try_from(self.nodes.len()).ok().filter(|&state| state != NOWHERE)?;
        self.nodes.push(node);
        self.row_of.push(NO_ROW);
        self.state_of.insert(node, state);
        Some(state)
    }
}
