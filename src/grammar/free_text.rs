//! Free text: any bytes, up to texts that mean something.
//!
//! The bytes go through an Aho–Corasick automaton, so that a text is noticed wherever it stands
//! and however many of its beginnings come before it. Bytes that are no UTF-8 are text as well.

use std::collections::BTreeMap;

use aho_corasick::automaton::{Automaton as _, StateID};
use aho_corasick::dfa::DFA;
use aho_corasick::{Anchored, MatchKind};
use rustc_hash::FxHashMap;

use super::error::LimitError;
use super::expr::ExprId;
use super::limits::Fuel;
use crate::TokenId;

/// Any text that holds none of some texts, and what follows where one of them comes.
#[derive(Clone, Debug, Default)]
pub struct FreeText {
    /// What counts wherever it stands.
    pub anywhere: Vec<Trigger>,
    /// What counts where nothing but whitespace comes before it.
    pub at_start: Vec<Trigger>,
    /// Control tokens that may come, with their names: each stands for the letters of its name.
    pub tokens: Vec<(TokenId, Box<[u8]>)>,
    /// Whether the text may end without a trigger.
    pub may_end: bool,
    /// Whether it may end before its first byte.
    pub may_be_empty: bool,
}

/// A text that ends free text.
#[derive(Clone, Debug)]
pub struct Trigger {
    /// The text; it is not empty.
    pub text: Box<[u8]>,
    /// What follows; `None`: the text may not come at all.
    pub then: Option<ExprId>,
}

impl FreeText {
    /// Every expression that may follow.
    pub(super) fn continuations(&self) -> impl Iterator<Item = ExprId> {
        self.anywhere.iter().chain(&self.at_start).filter_map(|it| it.then)
    }
}

/// Where a byte leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FreeTarget {
    State(u32),
    /// A trigger is complete: these may follow. None: the byte may not come.
    Done(Vec<ExprId>),
}

/// A place in free text: where each byte leads, by ranges that cover all of them.
#[derive(Clone, Debug)]
pub(super) struct FreeState {
    pub(super) arms: Vec<(u8, u8, FreeTarget)>,
}

/// The automaton of a [`FreeText`]. Text starts in the first state.
#[derive(Clone, Debug)]
pub(super) struct FreeMachine {
    pub(super) states: Vec<FreeState>,
    /// The state after text that begins no trigger.
    pub(super) plain: u32,
}

/// A product state: the search everywhere, and the place in [`Opening`] while it is not lost.
type Place = (StateID, Option<usize>);

impl FreeMachine {
    pub(super) fn new(text: &FreeText, fuel: &mut Fuel<'_>) -> Result<Self, LimitError> {
        let patterns: Vec<&[u8]> = text.anywhere.iter().map(|trigger| &*trigger.text).collect();
        // What is too large for the search has run out of fuel before.
        fuel.spend(patterns.iter().map(|pattern| pattern.len() as u32 + 1).sum())?;
        let search = DFA::builder().match_kind(MatchKind::Standard).build(&patterns);
        let Ok(search) = search else { return Err(LimitError::Steps) };
        let Ok(begin) = search.start_state(Anchored::No) else { return Err(LimitError::Steps) };
        let opening = Opening::new(&text.at_start);
        let first = (begin, (!text.at_start.is_empty()).then_some(0));
        let mut numbers: FxHashMap<Place, u32> = FxHashMap::default();
        let mut places = vec![first];
        numbers.insert(first, 0);
        let mut number = |place: Place, places: &mut Vec<Place>| {
            *numbers.entry(place).or_insert_with(|| {
                places.push(place);
                places.len() as u32 - 1
            })
        };
        let plain = number((begin, None), &mut places);
        let mut states = Vec::new();
        while let Some(&(at, open)) = places.get(states.len()) {
            fuel.spend(8)?;
            let mut arms: Vec<(u8, u8, FreeTarget)> = Vec::new();
            for byte in 0..=u8::MAX {
                let next = search.next_state(Anchored::No, at, byte);
                let step = open.map_or(Step::Lost, |open| opening.step(open, byte));
                let target = match (search.is_match(next), &step) {
                    (false, Step::Lost) => FreeTarget::State(number((next, None), &mut places)),
                    (false, Step::To(open)) => {
                        FreeTarget::State(number((next, Some(*open)), &mut places))
                    }
                    (is_match, step) => {
                        let matched = if is_match { search.match_len(next) } else { 0 };
                        let found = (0..matched)
                            .map(|index| search.match_pattern(next, index).as_usize())
                            .filter_map(|pattern| text.anywhere.get(pattern)?.then);
                        let opened = match step {
                            Step::Done(trigger) => text.at_start.get(*trigger),
                            _ => None,
                        };
                        FreeTarget::Done(found.chain(opened.and_then(|it| it.then)).collect())
                    }
                };
                match arms.last_mut() {
                    Some((_, high, last)) if *last == target => *high = byte,
                    _ => arms.push((byte, byte, target)),
                }
            }
            states.push(FreeState { arms });
        }
        Ok(Self { states, plain })
    }

    /// Where a byte leads.
    fn target(&self, state: u32, byte: u8) -> Option<&FreeTarget> {
        let arms = &self.states.get(state as usize)?.arms;
        let arm = arms.iter().find(|(low, high, _)| (*low..=*high).contains(&byte))?;
        Some(&arm.2)
    }

    /// The state after a byte; `None`: a trigger is complete, or the byte may not come.
    pub(super) fn after(&self, state: u32, byte: u8) -> Option<u32> {
        match self.target(state, byte)? {
            FreeTarget::State(next) => Some(*next),
            FreeTarget::Done(_) => None,
        }
    }

    /// Where a name leads, all of it; `None`: a trigger is complete before its end.
    pub(super) fn after_name(&self, state: u32, name: &[u8]) -> Option<&FreeTarget> {
        let (&last, before) = name.split_last()?;
        let state = before.iter().try_fold(state, |state, &byte| self.after(state, byte))?;
        self.target(state, last)
    }
}

/// What a byte does at the beginning of a text.
enum Step {
    Lost,
    To(usize),
    Done(usize),
}

/// The triggers that only count at the start, behind any whitespace, as a tree.
struct Opening {
    children: Vec<BTreeMap<u8, usize>>,
    /// The trigger that is complete at a node.
    ends: Vec<Option<usize>>,
}

/// Every character that is whitespace.
const WHITESPACE: [char; 25] = [
    '\t', '\n', '\u{B}', '\u{C}', '\r', ' ', '\u{85}', '\u{A0}', '\u{1680}', '\u{2000}',
    '\u{2001}', '\u{2002}', '\u{2003}', '\u{2004}', '\u{2005}', '\u{2006}', '\u{2007}', '\u{2008}',
    '\u{2009}', '\u{200A}', '\u{2028}', '\u{2029}', '\u{202F}', '\u{205F}', '\u{3000}',
];

impl Opening {
    fn new(triggers: &[Trigger]) -> Self {
        let mut opening = Self { children: vec![BTreeMap::new()], ends: vec![None] };
        for (index, trigger) in triggers.iter().enumerate() {
            let node = opening.add(&trigger.text);
            opening.ends[node].get_or_insert(index);
        }
        for space in WHITESPACE {
            let mut bytes = [0; 4];
            let bytes = space.encode_utf8(&mut bytes).as_bytes();
            if let Some((&last, before)) = bytes.split_last() {
                let node = opening.add(before);
                opening.children[node].entry(last).or_insert(0);
            }
        }
        opening
    }

    fn add(&mut self, text: &[u8]) -> usize {
        let mut node = 0;
        for &byte in text {
            let next = self.children.len();
            let known = *self.children[node].entry(byte).or_insert(next);
            if known == next {
                self.children.push(BTreeMap::new());
                self.ends.push(None);
            }
            node = known;
        }
        node
    }

    fn step(&self, node: usize, byte: u8) -> Step {
        let Some(&next) = self.children[node].get(&byte) else { return Step::Lost };
        match self.ends[next] {
            Some(trigger) => Step::Done(trigger),
            None => Step::To(next),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::expr::ExprPool;

    /// Where a text leads: the trigger that it completes last, if any, and how many bytes before.
    fn run(text: &FreeText, bytes: &[u8]) -> Option<(usize, Vec<ExprId>)> {
        let machine = FreeMachine::new(text, &mut Fuel::new(100_000)).unwrap();
        let mut state = 0;
        for (index, &byte) in bytes.iter().enumerate() {
            match machine.after(state, byte) {
                Some(next) => state = next,
                None => {
                    let arms = &machine.states[state as usize].arms;
                    let arm = arms.iter().find(|arm| arm.0 <= byte && byte <= arm.1).unwrap();
                    let FreeTarget::Done(then) = &arm.2 else { unreachable!() };
                    return Some((index + 1, then.clone()));
                }
            }
        }
        None
    }

    fn trigger(text: &str, then: Option<ExprId>) -> Trigger {
        Trigger { text: text.as_bytes().into(), then }
    }

    #[test]
    fn a_trigger_is_noticed_wherever_it_stands() {
        let mut pool = ExprPool::new();
        let (a, b) = (pool.literal(b"a"), pool.literal(b"b"));
        let text = FreeText {
            anywhere: vec![trigger("<t>", Some(a)), trigger("</", None), trigger("t>", Some(b))],
            may_end: true,
            may_be_empty: true,
            ..FreeText::default()
        };
        assert_eq!(run(&text, b"x < y <<t > \xFF\xC3"), None);
        assert_eq!(run(&text, b"<<<t>"), Some((5, vec![a, b])));
        assert_eq!(run(&text, b"in </"), Some((5, Vec::new())));
        assert_eq!(run(&text, b"t>"), Some((2, vec![b])));
    }

    #[test]
    fn some_triggers_only_count_at_the_start() {
        let mut pool = ExprPool::new();
        let (a, b) = (pool.literal(b"a"), pool.literal(b"b"));
        let text = FreeText {
            anywhere: vec![trigger("<t>", Some(a))],
            at_start: vec![trigger("[", Some(b)), trigger("name\n", Some(b))],
            may_end: true,
            may_be_empty: true,
            ..FreeText::default()
        };
        let spaces = " \n\u{3000}\u{A0}[".as_bytes();
        assert_eq!(run(&text, spaces), Some((spaces.len(), vec![b])));
        assert_eq!(run(&text, b"a [ name\n"), None);
        assert_eq!(run(&text, b"name [ <t>"), Some((10, vec![a])));
        assert_eq!(run(&text, b" name\n"), Some((6, vec![b])));
        assert_eq!(run(&text, b" <t>"), Some((4, vec![a])));
    }
}
