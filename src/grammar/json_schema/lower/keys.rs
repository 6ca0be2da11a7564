//! The keys of an object as one automaton: declared names, and what other keys are.

use smallvec::SmallVec;

use crate::grammar::regular::{Classifier, DfaArm};
use crate::grammar::text::{Spelling, TextMachine, TextState};

/// A tree of names, each with its number.
#[derive(Default)]
struct Names {
    nodes: Vec<NameNode>,
}

#[derive(Default)]
struct NameNode {
    /// Characters with the nodes they lead to, ascending.
    children: SmallVec<[(u32, u32); 2]>,
    end: Option<u32>,
}

impl NameNode {
    /// The children by characters of a range.
    fn range(&self, low: u32, high: u32) -> &[(u32, u32)] {
        let from = self.children.partition_point(|child| child.0 < low);
        let to = self.children.partition_point(|child| child.0 <= high);
        &self.children[from..to]
    }
}

impl Names {
    fn new<'n>(names: impl Iterator<Item = &'n str> + Clone) -> Self {
        let characters: usize = names.clone().map(str::len).sum();
        let mut nodes = Vec::with_capacity(1 + characters);
        nodes.push(NameNode::default());
        let mut tree = Self { nodes };
        for (number, name) in names.enumerate() {
            let mut at = 0;
            for character in name.chars() {
                let fresh = tree.nodes.len() as u32;
                let children = &mut tree.nodes[at].children;
                let found = children.binary_search_by_key(&character.into(), |child| child.0);
                at = match found {
                    Ok(known) => children[known].1,
                    Err(place) => {
                        children.insert(place, (character.into(), fresh));
                        tree.nodes.push(NameNode::default());
                        fresh
                    }
                } as usize;
            }
            tree.nodes[at].end = Some(number as u32);
        }
        tree
    }
}

/// Texts that are told apart by their place in the list, written as they are.
pub(super) fn texts(texts: &[String]) -> TextMachine {
    let names = Names::new(texts.iter().map(String::as_str));
    let states = names.nodes.iter().map(|node| TextState {
        arms: node
            .children
            .iter()
            .map(|&(character, next)| DfaArm { low: character, high: character, next })
            .collect(),
        end: node.end,
    });
    let states = states.collect();
    TextMachine { states, spelling: Spelling::Plain, max_chars: None, shared: None }
}

/// What the other keys are: states of an automaton, each with the kind of key that ends there.
pub(super) struct OtherKeys {
    /// Arms of each state.
    arms: Vec<Box<[DfaArm]>>,
    /// The kind of key that ends in each state; `None`: it may not end there.
    ends: Vec<Option<u32>>,
}

impl OtherKeys {
    /// Every other key is of one kind.
    pub(super) fn all(kind: u32) -> Self {
        let any =
            [(0, 0xD7FF), (0xE000, 0x10FFFF)].map(|(low, high)| DfaArm { low, high, next: 0 });
        Self { arms: vec![any.into()], ends: vec![Some(kind)] }
    }

    /// Keys by the languages they are in.
    pub(super) fn of_classes(classes: &Classifier, kind: impl Fn(u32) -> Option<u32>) -> Self {
        Self {
            arms: classes.states().iter().map(|state| state.arms.clone()).collect(),
            ends: classes.states().iter().map(|state| kind(state.label)).collect(),
        }
    }
}

/// Declared names, numbered by their place in the list, and all other keys.
///
/// States are pairs of a place in the tree of names and a state of the other keys; off the tree
/// only the latter counts.
pub(super) fn keys<'n>(
    names: impl Iterator<Item = &'n str> + Clone,
    others: Option<&OtherKeys>,
    spelling: Spelling,
) -> TextMachine {
    let names = Names::new(names);
    // Off the tree, states have the numbers of the other keys' states after those of the tree.
    let first_other = names.nodes.len() as u32;
    let mut other_of: Vec<Option<u32>> = vec![None; names.nodes.len()];
    if others.is_some_and(|others| !others.arms.is_empty()) {
        other_of[0] = Some(0);
    }
    let others_count = others.map_or(0, |others| others.arms.len());
    let mut states = Vec::with_capacity(names.nodes.len() + others_count);
    // A node comes after its parent.
    for (index, node) in names.nodes.iter().enumerate() {
        let mut arms: SmallVec<[DfaArm; 4]> = SmallVec::new();
        let other_arms = match (others, other_of[index]) {
            (Some(others), Some(state)) => &*others.arms[state as usize],
            _ => &[],
        };
        for arm in other_arms {
            let mut from = arm.low;
            for &(character, child) in node.range(arm.low, arm.high) {
                other_of[child as usize] = Some(arm.next);
                if from < character {
                    let next = first_other + arm.next;
                    arms.push(DfaArm { low: from, high: character - 1, next });
                }
                from = character + 1;
            }
            if from <= arm.high {
                arms.push(DfaArm { low: from, high: arm.high, next: first_other + arm.next });
            }
        }
        arms.extend(node.children.iter().map(|&(character, next)| DfaArm {
            low: character,
            high: character,
            next,
        }));
        arms.sort_unstable_by_key(|arm| arm.low);
        let other_end = || others.zip(other_of[index]).and_then(|(all, at)| all.ends[at as usize]);
        states.push(TextState { arms, end: node.end.or_else(other_end) });
    }
    if let Some(others) = others {
        for (arms, end) in others.arms.iter().zip(&others.ends) {
            let arms =
                arms.iter().map(|arm| DfaArm { next: first_other + arm.next, ..*arm }).collect();
            states.push(TextState { arms, end: *end });
        }
    }
    let mut machine = TextMachine { states, spelling, max_chars: None, shared: None };
    machine.trim();
    machine
}
