//! Which characters a switch can consume over and over: the body of a string, an identifier.
//!
//! A token that is spelled with such characters alone is allowed without walking it, and masks
//! of such tokens are the same for every grammar ([`CharSplits`](super::charsplit::CharSplits)).

use super::program::{Node, NodeId, Program, Role};

/// ASCII characters that repeat, below which a loop is not worth a mask of its own.
const ASCII_MIN: u32 = 16;

/// Characters by which one can tell a token that a loop consumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LoopChars {
    /// Bit `c` is set if the ASCII character `c` is in the set.
    pub(crate) ascii: u128,
    /// Whether all characters beyond ASCII are in the set. Otherwise none is taken to be.
    pub(crate) wide: bool,
}

impl LoopChars {
    /// What the strings of JSON consist of, escapes apart: with and without the delete character,
    /// which JSON allows and many grammars do not.
    pub(crate) const STRINGS: [Self; 2] = {
        let controls = (1u128 << 0x20) - 1;
        let plain = !(controls | 1 << b'"' | 1 << b'\\');
        [Self { ascii: plain, wide: true }, Self { ascii: plain & !(1 << 0x7F), wide: true }]
    };

    /// Whether all characters of the other set are in this one.
    pub(crate) fn contains(&self, other: Self) -> bool {
        other.ascii & !self.ascii == 0 && (self.wide || !other.wide)
    }

    /// Whether the byte is an ASCII character of the set, or may begin one beyond ASCII.
    pub(crate) fn may_start(&self, byte: u8) -> bool {
        if byte < 0x80 { self.ascii >> byte & 1 == 1 } else { self.wide }
    }
}

/// A switch that leads to one and the same place by each character of a set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CharLoop {
    pub(crate) chars: LoopChars,
    /// True: the characters end the switch's rule (or may), so that what they repeat is known from
    /// the frame below. False: they lead back to the switch.
    pub(crate) returns: bool,
    /// Whether the characters do nothing but end the rule, so that each makes a round.
    pub(crate) is_round: bool,
}

/// The valid UTF-8 sequences beyond ASCII.
pub(crate) const WIDE_SEQUENCES: [&[(u8, u8)]; 8] = [
    &[(0xC2, 0xDF), (0x80, 0xBF)],
    &[(0xE0, 0xE0), (0xA0, 0xBF), (0x80, 0xBF)],
    &[(0xE1, 0xEC), (0x80, 0xBF), (0x80, 0xBF)],
    &[(0xED, 0xED), (0x80, 0x9F), (0x80, 0xBF)],
    &[(0xEE, 0xEF), (0x80, 0xBF), (0x80, 0xBF)],
    &[(0xF0, 0xF0), (0x90, 0xBF), (0x80, 0xBF), (0x80, 0xBF)],
    &[(0xF1, 0xF3), (0x80, 0xBF), (0x80, 0xBF), (0x80, 0xBF)],
    &[(0xF4, 0xF4), (0x80, 0x8F), (0x80, 0xBF), (0x80, 0xBF)],
];

impl CharLoop {
    /// What a switch repeats, if it is wide enough to matter.
    pub(crate) fn find(program: &Program, node: NodeId) -> Option<Self> {
        let Node::Switch(span) = program.nodes[node as usize] else { return None };
        let arms = program.arms(span);
        let width: u32 = arms.iter().map(|arm| u32::from(arm.high - arm.low) + 1).sum();
        if width < ASCII_MIN {
            return None;
        }
        // Keys do not end by a character, and most of their places lead on to others.
        let is_key = matches!(program.role(node), Role::Key { .. });
        if is_key && arms.iter().all(|arm| arm.next != node) {
            return None;
        }
        [node, Program::RETURN].into_iter().find_map(|goal| {
            // All characters must lead to one and the same node.
            let candidates = arms.iter().filter(|arm| reaches_by_splits(program, arm.next, goal));
            let target = candidates.max_by_key(|arm| arm.high - arm.low)?.next;
            let arrives = |next| next == target;
            let mut ascii = 0u128;
            for arm in arms.iter().filter(|arm| arm.low < 0x80 && arrives(arm.next)) {
                (arm.low..=arm.high.min(0x7F)).for_each(|byte| ascii |= 1 << byte);
            }
            if ascii.count_ones() < ASCII_MIN {
                return None;
            }
            let wide = WIDE_SEQUENCES.iter().all(|ranges| covers(program, node, ranges, &arrives));
            let chars = LoopChars { ascii, wide };
            let is_round = target == Program::RETURN;
            Some(Self { chars, returns: goal == Program::RETURN, is_round })
        })
    }
}

/// Whether `goal` is `from`, or one of the targets of the splits from there.
pub(crate) fn reaches_by_splits(program: &Program, from: NodeId, goal: NodeId) -> bool {
    /// Splits are flat after lowering, so this is enough but for very wide ones.
    const DEPTH_MAX: u32 = 3;
    fn reaches(program: &Program, from: NodeId, goal: NodeId, depth: u32) -> bool {
        from == goal
            || match program.nodes[from as usize] {
                Node::Split(span) if depth > 0 => program
                    .targets(span)
                    .iter()
                    .any(|&target| reaches(program, target, goal, depth - 1)),
                _ => false,
            }
    }
    reaches(program, from, goal, DEPTH_MAX)
}

/// Whether every sequence of bytes in `ranges` leads from `node`, switch by switch, to where
/// `arrives` holds.
fn covers(
    program: &Program,
    node: NodeId,
    ranges: &[(u8, u8)],
    arrives: &dyn Fn(NodeId) -> bool,
) -> bool {
    let Some((&(low, high), rest)) = ranges.split_first() else { return arrives(node) };
    let Node::Switch(span) = program.nodes[node as usize] else { return false };
    let mut uncovered = u32::from(high - low) + 1;
    for arm in program.arms(span) {
        let (from, to) = (arm.low.max(low), arm.high.min(high));
        if from <= to {
            if !covers(program, arm.next, rest, arrives) {
                return false;
            }
            uncovered -= u32::from(to - from) + 1;
        }
    }
    uncovered == 0
}
