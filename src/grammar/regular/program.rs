//! A pattern as nodes that threads run through.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::super::{CharSet, Fuel};
use super::ecma::{Ast, Pattern};
use super::ecma_class::WORD;
use super::{Dfa, RegularError, STATES_MAX};

/// Nodes of one program: a counted repetition takes one or two for each time.
const NODES_MAX: usize = 2 * STATES_MAX;

/// Texts of one choice from which on their common starts and ends are shared.
const SHARED_TEXTS_MIN: usize = 3;

/// A place in a pattern.
#[derive(Clone, Copy, Debug)]
pub(super) enum Node {
    /// A match, of the whole or of what is looked at.
    Done,
    /// A character of a set.
    Set { set: u32, next: u32 },
    /// Both ways.
    Split { first: u32, second: u32 },
    /// Something about this place in the text, no character.
    Assert { assertion: Assertion, next: u32 },
}

/// What may be asked about a place in a text.
#[derive(Clone, Copy, Debug)]
pub(super) enum Assertion {
    Start,
    End,
    Word { negated: bool },
    Look { index: u32 },
}

/// The node that is a match of the pattern or of a look-ahead.
pub(super) const DONE: u32 = 0;

/// The nodes of what is looked at.
#[derive(Clone, Debug)]
pub(super) struct LookNodes {
    pub(super) behind: bool,
    pub(super) negated: bool,
    pub(super) start: u32,
    pub(super) nodes: Range<u32>,
    pub(super) needs: Needs,
}

/// What must be known of the text before, for a part of a pattern to be followed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Needs {
    /// Whether this is the start.
    pub(super) start: bool,
    /// Whether the character before is a word character.
    pub(super) word: bool,
    /// Which look-behinds have been matched how far.
    pub(super) behind: bool,
}

impl Needs {
    fn add(&mut self, other: Self) {
        self.start |= other.start;
        self.word |= other.word;
        self.behind |= other.behind;
    }
}

/// A pattern, compiled.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) nodes: Vec<Node>,
    pub(super) sets: Vec<CharSet>,
    /// Each after those within it.
    pub(super) looks: Vec<LookNodes>,
    /// The look-behind that each node belongs to; empty if there is none.
    pub(super) behind_of: Vec<u32>,
    /// Where the pattern itself starts.
    pub(super) start: u32,
    pub(super) needs: Needs,
    /// The set of word characters, if it matters whether characters are of it.
    pub(super) word_set: Option<u32>,
    /// Whether a match can start at the start of the text only.
    pub(super) anchored: bool,
}

/// "No look-behind", in [`Program::behind_of`].
pub(super) const NO_LOOK: u32 = u32::MAX;

struct Compiler<'f, 'a> {
    nodes: Vec<Node>,
    sets: Vec<CharSet>,
    set_ids: FxHashMap<CharSet, u32>,
    char_ids: FxHashMap<char, u32>,
    looks: Vec<LookNodes>,
    /// What the part being compiled needs.
    needs: Needs,
    /// Whether the part being compiled is a look-behind.
    in_behind: bool,
    uses_word: bool,
    fuel: &'f mut Fuel<'a>,
}

impl Program {
    pub(super) fn new(pattern: &Pattern, fuel: &mut Fuel<'_>) -> Result<Self, RegularError> {
        let mut compiler = Compiler {
            nodes: vec![Node::Done],
            sets: Vec::new(),
            set_ids: FxHashMap::default(),
            char_ids: FxHashMap::default(),
            looks: Vec::with_capacity(pattern.looks.len()),
            needs: Needs::default(),
            in_behind: false,
            uses_word: false,
            fuel,
        };
        for look in &pattern.looks {
            let first = compiler.nodes.len() as u32;
            compiler.in_behind = look.behind;
            // A look-behind's threads are known by their nodes, so its match is a node of its own.
            let done = if look.behind { compiler.push(Node::Done)? } else { DONE };
            let start = compiler.emit(&look.body, done)?;
            compiler.looks.push(LookNodes {
                behind: look.behind,
                negated: look.negated,
                start,
                nodes: first..compiler.nodes.len() as u32,
                needs: std::mem::take(&mut compiler.needs),
            });
        }
        compiler.in_behind = false;
        let start = compiler.emit(&pattern.root, DONE)?;
        let word_set = compiler.uses_word.then(|| compiler.set(&CharSet::new(WORD)));
        let Compiler { nodes, sets, looks, mut needs, uses_word, .. } = compiler;
        needs.word |= uses_word;
        for look in &looks {
            needs.add(look.needs);
        }
        let mut behind_of = Vec::new();
        if needs.behind {
            behind_of = vec![NO_LOOK; nodes.len()];
            for (index, look) in looks.iter().enumerate().filter(|(_, look)| look.behind) {
                let range = look.nodes.start as usize..look.nodes.end as usize;
                behind_of[range].fill(index as u32);
            }
        }
        let anchored = starts_at_start(&pattern.root);
        Ok(Self { nodes, sets, looks, behind_of, start, needs, word_set, anchored })
    }

    /// Whether a node is part of a look-behind.
    pub(super) fn is_behind(&self, node: u32) -> bool {
        self.behind_of.get(node as usize).is_some_and(|&look| look != NO_LOOK)
    }
}

/// Whether every match starts at the start of the text.
fn starts_at_start(ast: &Ast) -> bool {
    match ast {
        Ast::Start => true,
        Ast::Concat(parts) => parts.first().is_some_and(starts_at_start),
        Ast::Alt(choices) => choices.iter().all(starts_at_start),
        Ast::Repeat { body, min, .. } => *min > 0 && starts_at_start(body),
        _ => false,
    }
}

impl Compiler<'_, '_> {
    /// Adds the nodes of `ast`, which lead to `next`; the node to enter them by.
    fn emit(&mut self, ast: &Ast, next: u32) -> Result<u32, RegularError> {
        match ast {
            Ast::Empty => Ok(next),
            Ast::Char(character) => {
                let set = self.character(*character);
                self.push(Node::Set { set, next })
            }
            Ast::Set(set) => {
                let set = self.set(set);
                self.push(Node::Set { set, next })
            }
            Ast::Concat(parts) => {
                parts.iter().rev().try_fold(next, |next, part| self.emit(part, next))
            }
            Ast::Alt(choices) => self.choices(choices, next),
            Ast::Repeat { body, min, max } => self.repeat(body, *min, *max, next),
            Ast::Start => {
                self.needs.start = true;
                self.push(Node::Assert { assertion: Assertion::Start, next })
            }
            Ast::End => self.push(Node::Assert { assertion: Assertion::End, next }),
            Ast::Word { negated } => {
                self.needs.word = true;
                self.uses_word = true;
                let assertion = Assertion::Word { negated: *negated };
                self.push(Node::Assert { assertion, next })
            }
            Ast::Look(index) => self.look(*index, next),
        }
    }

    fn choices(&mut self, choices: &[Ast], next: u32) -> Result<u32, RegularError> {
        let texts: Vec<String> = choices.iter().filter_map(text_of).collect();
        let shares = texts.len() >= SHARED_TEXTS_MIN;
        let mut rest = if shares { Some(self.texts(&texts, next)?) } else { None };
        for choice in choices.iter().rev().filter(|choice| !shares || text_of(choice).is_none()) {
            let first = self.emit(choice, next)?;
            rest = Some(match rest {
                Some(second) => self.push(Node::Split { first, second })?,
                None => first,
            });
        }
        Ok(rest.unwrap_or(next))
    }

    /// Adds nodes for any one of `texts`, with what they start and end with in common once.
    fn texts(&mut self, texts: &[String], next: u32) -> Result<u32, RegularError> {
        let length: usize = texts.iter().map(String::len).sum();
        self.fuel.spend(u32::try_from(length).unwrap_or(u32::MAX))?;
        let dfa = Dfa::literals(texts);
        let mut entries = vec![next; dfa.states().len()];
        for &index in dfa.topological().unwrap_or_default().iter().rev() {
            let state = &dfa.states()[index as usize];
            let mut entry = state.accepting.then_some(next);
            for arm in state.arms.iter().rev() {
                let set = self.set(&CharSet::new([(arm.low, arm.high)]));
                let first = self.push(Node::Set { set, next: entries[arm.next as usize] })?;
                entry = Some(match entry {
                    Some(second) => self.push(Node::Split { first, second })?,
                    None => first,
                });
            }
            entries[index as usize] = entry.unwrap_or(next);
        }
        Ok(entries.first().copied().unwrap_or(next))
    }

    fn look(&mut self, index: u32, next: u32) -> Result<u32, RegularError> {
        let look = &self.looks[index as usize];
        if self.in_behind && !look.behind {
            return Err(RegularError::Unsupported { feature: "a look-ahead within a look-behind" });
        }
        self.needs.behind |= look.behind;
        self.needs.add(look.needs);
        self.push(Node::Assert { assertion: Assertion::Look { index }, next })
    }

    fn repeat(
        &mut self,
        body: &Ast,
        min: u32,
        max: Option<u32>,
        next: u32,
    ) -> Result<u32, RegularError> {
        // What takes no character holds the second time if it holds the first.
        let (min, max) = if is_empty(body) { (min.min(1), Some(1)) } else { (min, max) };
        let mut entry = next;
        match max {
            None => {
                let split = self.push(Node::Split { first: next, second: next })?;
                let first = self.emit(body, split)?;
                self.nodes[split as usize] = Node::Split { first, second: next };
                entry = split;
            }
            Some(max) => {
                for _ in min..max {
                    let first = self.emit(body, entry)?;
                    entry = self.push(Node::Split { first, second: next })?;
                }
            }
        }
        for _ in 0..min {
            entry = self.emit(body, entry)?;
        }
        Ok(entry)
    }

    fn push(&mut self, node: Node) -> Result<u32, RegularError> {
        self.fuel.spend(1)?;
        if self.nodes.len() >= NODES_MAX {
            return Err(RegularError::TooLarge { states_max: STATES_MAX });
        }
        self.nodes.push(node);
        Ok(self.nodes.len() as u32 - 1)
    }

    fn character(&mut self, character: char) -> u32 {
        if let Some(&id) = self.char_ids.get(&character) {
            return id;
        }
        let code = u32::from(character);
        let id = self.set(&CharSet::new([(code, code)]));
        self.char_ids.insert(character, id);
        id
    }

    fn set(&mut self, set: &CharSet) -> u32 {
        if let Some(&id) = self.set_ids.get(set) {
            return id;
        }
        let id = self.sets.len() as u32;
        self.sets.push(set.clone());
        self.set_ids.insert(set.clone(), id);
        id
    }
}

/// The text that is all it matches.
fn text_of(ast: &Ast) -> Option<String> {
    let character = |ast: &Ast| match ast {
        Ast::Char(character) => Some(*character),
        _ => None,
    };
    match ast {
        Ast::Concat(parts) => parts.iter().map(character).collect(),
        Ast::Empty => Some(String::new()),
        single => character(single).map(String::from),
    }
}

/// Whether it never takes a character.
fn is_empty(ast: &Ast) -> bool {
    match ast {
        Ast::Char(_) | Ast::Set(_) => false,
        Ast::Concat(parts) | Ast::Alt(parts) => parts.iter().all(is_empty),
        Ast::Repeat { body, .. } => is_empty(body),
        Ast::Empty | Ast::Start | Ast::End | Ast::Word { .. } | Ast::Look(_) => true,
    }
}
