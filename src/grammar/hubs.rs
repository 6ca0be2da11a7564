//! Objects as tokens see them from outside of their keys.
//!
//! Of how far an object has come, a token that starts in a value can tell little: whether another
//! member may follow, whether the object may end, and whether a key may begin with the few texts
//! that tokens hold after a comma and a quote. Objects that agree in these stand for each other, so
//! the masks of their values are the same.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::expr::{ExprId, Mark};
use super::members::Progresses;
use super::program::{Node, NodeId, Program};

/// What tokens see of a progress.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Seen {
    /// Whether the object may end, whether it may go on, and for each beginning of a key whether
    /// it may come.
    bits: SmallVec<[u64; 1]>,
    /// The object and its progress, where a token sees past a whole key.
    all: Option<(u32, u32)>,
}

/// Where a frame of an object is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// After a value: this is the same in all objects.
    AfterValue {
        close: Mark,
        comma_bytes: u32,
        gap: ExprId,
    },
    At(NodeId),
}

/// The frames that stand for others.
#[derive(Debug, Default)]
pub(super) struct Hubs {
    seen: FxHashMap<(u32, u32), Seen>,
    stand_ins: FxHashMap<(Place, Seen), (NodeId, u32)>,
}

impl Hubs {
    /// The node and register that stand for those of a frame outside of an object's keys.
    /// `beginnings`: what tokens hold of keys.
    pub(super) fn stand_in(
        &mut self,
        program: &Program,
        beginnings: &[Box<[u8]>],
        machine: u32,
        (node, register): (NodeId, u32),
    ) -> (NodeId, u32) {
        let rules = &program.machines[machine as usize];
        let outside = rules.outside();
        let Some(first_key) = outside.first_key else { return (node, register) };
        if register == Progresses::ANY {
            return (node, register);
        }
        let seen = self
            .seen
            .entry((machine, register))
            .or_insert_with(|| Seen::of(program, beginnings, first_key, (machine, register)));
        let place = if node == outside.after_value {
            Place::AfterValue {
                close: outside.close.clone(),
                comma_bytes: rules.comma_bytes(),
                gap: outside.gap,
            }
        } else {
            Place::At(node)
        };
        *self.stand_ins.entry((place, seen.clone())).or_insert((node, register))
    }
}

impl Seen {
    fn of(
        program: &Program,
        beginnings: &[Box<[u8]>],
        first_key: NodeId,
        (machine, register): (u32, u32),
    ) -> Self {
        let facts = program.facts(machine, register);
        let mut seen = Self { bits: SmallVec::new(), all: None };
        let mut answers = vec![facts.may_close, facts.may_go_on()];
        for beginning in beginnings {
            match follow_key(program, first_key, beginning) {
                Begun::Key(node) => answers.push(program.has_room(node, register)),
                Begun::Dead => answers.push(false),
                Begun::More => {
                    seen.all = Some((machine, register));
                }
            }
        }
        for (index, answer) in answers.into_iter().enumerate() {
            if index % 64 == 0 {
                seen.bits.push(0);
            }
            seen.bits[index / 64] |= u64::from(answer) << (index % 64);
        }
        seen
    }
}

/// Where the beginning of a key leads.
enum Begun {
    /// To a node of the key.
    Key(NodeId),
    Dead,
    /// Past the end of the key.
    More,
}

fn follow_key(program: &Program, first: NodeId, bytes: &[u8]) -> Begun {
    let mut at = first;
    for (index, &byte) in bytes.iter().enumerate() {
        let Node::Switch(span) = program.nodes[at as usize] else { return Begun::More };
        let Some(next) = program.follow(span, byte) else { return Begun::Dead };
        if !matches!(program.nodes[next as usize], Node::Switch(_)) {
            // The key has ended, so a colon comes next, if anything.
            let goes_on = bytes.get(index + 1).is_none_or(|byte| b" \t\r\n:".contains(byte));
            return if goes_on { Begun::More } else { Begun::Dead };
        }
        at = next;
    }
    Begun::Key(at)
}
