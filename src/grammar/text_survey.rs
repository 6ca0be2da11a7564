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
    /// Looks at the tokens; returns the steps taken, too. `None`: they were not enough, or the text
    /// has too many states.
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
            steps: 0,
        };
        let done = walk.run(self);
        (walk.steps, done.map(|()| walk.finish()))
    }
}

struct Walk<'s> {
    vocabulary: &'s GrammarVocabulary,
    rows: Rows<'s>,
    inside: Vec<u32>,
    quoted: Vec<(RestId, TokenId)>,
    steps: u32,
}

impl Walk<'_> {
    /// Notes the tokens; `None` if that is too much.
    fn run(&mut self, survey: Survey) -> Option<()> {
        let (trie, key_ends) = (self.vocabulary.trie(), self.vocabulary.key_ends());
        let nodes = trie.nodes();
        // Rows along the path; the first is that of the place.
        let mut path = vec![0; trie.depth_max() + 1];
        path[0] = self.rows.enter(survey.node)?;
        let mut index = 0;
        while let Some(node) = nodes.get(index as usize) {
            if self.steps == survey.steps_max {
                return None;
            }
            self.steps += 1;
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
        Some(())
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
/// Rows at once, at most: 4 MiB.
const ROWS_MAX: usize = 8_192;

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

    /// The row of a state. `None`: there are too many.
    #[inline]
    fn row(&mut self, state: State) -> Option<u32> {
        match self.row_of[usize::from(state)] {
            NO_ROW => self.add_row(state),
            row => Some(row),
        }
    }

    #[cold]
    fn add_row(&mut self, state: State) -> Option<u32> {
        if self.rows.len() == ROWS_MAX {
            return None;
        }
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::grammar::mask::tokens_of;
    use crate::grammar::{CompiledGrammar, Fuel, GrammarSource, Limits};
    use crate::vocab::{Token, TokenKind, Vocabulary};

    /// Two of them twice.
    const TOKENS: [&str; 10] = ["a", "ab", "ab1", "1", "a\"", "a\",", "ab", "a\"", "b", "\""];
    const GBNF: &str = r#"root ::= "a" ("\"" "," | "b" "2")"#;

    fn vocabulary<'t>(texts: impl IntoIterator<Item = &'t str>) -> Arc<GrammarVocabulary> {
        let token = |text: &str| Token { bytes: text.into(), kind: TokenKind::Text };
        let tokens = texts.into_iter().map(token).collect();
        GrammarVocabulary::new(&Vocabulary::new(tokens, &[], None))
    }

    fn compile(gbnf: &str, vocabulary: &Arc<GrammarVocabulary>) -> Arc<CompiledGrammar> {
        let limits = Limits::default();
        let mut fuel = Fuel::new(limits.compile_steps_max);
        let source = GrammarSource::Gbnf(gbnf.to_owned());
        CompiledGrammar::compile(&source, vocabulary, &limits, &mut fuel).unwrap()
    }

    /// A survey from the start of a program, of a text that ends with the quote after `bytes`.
    fn from_start(program: &Program, bytes: &[u8]) -> Survey {
        let step = |node: NodeId, byte: &u8| match program.nodes[node as usize] {
            Node::Switch(span) => program.follow(span, *byte).unwrap(),
            _ => panic!("no switch before {byte}"),
        };
        let end = |node: NodeId| match program.nodes[node as usize] {
            Node::Split(span) => program.targets(span)[0],
            _ => node,
        };
        let after = bytes.iter().fold(end(program.start), step);
        Survey { node: end(program.start), after, only_quoted: false, steps_max: u32::MAX }
    }

    fn tokens(place: &TextPlace) -> (Vec<TokenId>, Vec<TokenId>) {
        let many = place.many.iter().flat_map(|many| tokens_of(many));
        let mut quoted: Vec<TokenId> = place.quoted.iter().map(|(_, token)| *token).collect();
        quoted.sort_unstable();
        (many.chain(place.few.iter().copied()).collect(), quoted)
    }

    #[test]
    fn tokens_stay_within_or_end_the_text_and_twins_do_as_they_do() {
        let vocabulary = vocabulary(TOKENS);
        let grammar = compile(GBNF, &vocabulary);
        let survey = from_start(grammar.program(), b"a\"");
        let (_, place) = survey.run(grammar.program(), &vocabulary);
        assert_eq!(tokens(&place.unwrap()), (vec![0, 1, 6], vec![4, 5, 7]));
        let only_quoted = Survey { only_quoted: true, ..survey };
        let (_, place) = only_quoted.run(grammar.program(), &vocabulary);
        assert_eq!(tokens(&place.unwrap()), (vec![], vec![4, 5, 7]));
    }

    #[test]
    fn too_few_steps_are_told_and_counted() {
        let vocabulary = vocabulary(TOKENS);
        let grammar = compile(GBNF, &vocabulary);
        let survey = |steps_max| {
            let survey = Survey { steps_max, ..from_start(grammar.program(), b"a\"") };
            let (steps, place) = survey.run(grammar.program(), &vocabulary);
            (steps, place.is_some())
        };
        let (needed, is_found) = survey(u32::MAX);
        assert!(is_found && needed > 1);
        assert_eq!(survey(needed), (needed, true));
        assert_eq!(survey(needed - 1), (needed - 1, false));
    }

    #[test]
    fn too_many_states_are_told_and_count_as_the_steps_taken() {
        let texts: Vec<String> = (0..ROWS_MAX).map(|n| format!("{n:04}{n:04}")).collect();
        let vocabulary = vocabulary(texts.iter().map(String::as_str));
        for (count, is_found) in [(ROWS_MAX / 16, true), (ROWS_MAX, false)] {
            let choices: Vec<String> =
                texts[..count].iter().map(|text| format!("\"{text}\"")).collect();
            let grammar = compile(&format!("root ::= {}", choices.join(" | ")), &vocabulary);
            let survey = from_start(grammar.program(), b"");
            let survey = Survey { after: NodeId::MAX, ..survey };
            let (steps, place) = survey.run(grammar.program(), &vocabulary);
            assert!(steps as usize <= vocabulary.trie().nodes().len());
            assert_eq!(place.map(|place| tokens(&place).0.len()), is_found.then_some(count));
        }
    }
}
