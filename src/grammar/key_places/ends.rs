//! What tokens may go on with after the quote that ends a key.

use std::sync::{Arc, PoisonError};

use super::MaskMaker;
use crate::grammar::automaton::{Config, ConfigId, DEAD};
use crate::grammar::error::LimitError;
use crate::grammar::key_ends::{KeyEnds, RestId};
use crate::grammar::limits::Fuel;
use crate::grammar::members::KeyId;
use crate::grammar::program::{Node, NodeId};

/// What a token sees of the object after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sees {
    /// It is not allowed.
    Dead,
    /// Nothing: it ends in the member.
    Nothing,
    /// That another member follows.
    More,
    /// The same, and the quote that opens its key.
    MoreAndQuote,
    /// That the object ends.
    End,
    /// More than that.
    All,
}

/// What tokens may go on with after a key whose value starts at some node.
#[derive(Debug)]
pub(crate) struct Ends {
    sees: Box<[Sees]>,
    /// Most bytes that finish the value within which a token ends.
    pub(super) value_bytes: u32,
}

impl Ends {
    /// All that tokens may go on with, and what they see.
    pub(super) fn alive(&self) -> impl Iterator<Item = (RestId, Sees)> {
        let alive = self.sees.iter().enumerate().filter(|(_, sees)| **sees != Sees::Dead);
        alive.map(|(rest, sees)| (rest as RestId, *sees))
    }

    /// What a token sees that goes on with a text.
    pub(super) fn sees(&self, rest: RestId) -> Sees {
        self.sees.get(rest as usize).copied().unwrap_or(Sees::Dead)
    }
}

impl MaskMaker<'_> {
    /// What may follow a key; `next` is where it leads. `None`: it has no value.
    pub(super) fn ends_of(
        &self,
        (machine, key): (u32, KeyId),
        next: NodeId,
        fuel: &mut Fuel<'_>,
    ) -> Result<Option<Arc<Ends>>, LimitError> {
        let rules = &self.automaton.program().machines[machine as usize];
        let start = rules.value_start(key);
        if start == 0 {
            return Ok(None);
        }
        // Nothing else makes a difference.
        let like = (start, rules.outside().gap, rules.comma_bytes());
        let all = &self.cache.keys.ends;
        if let Some(known) = all.lock().unwrap_or_else(PoisonError::into_inner).get(&like) {
            return Ok(Some(Arc::clone(known)));
        }
        let key_ends = self.vocabulary.key_ends();
        let mut walk = RestWalk {
            maker: self,
            key_ends,
            close: rules.outside().close.first().copied(),
            ends: Ends { sees: vec![Sees::Dead; key_ends.count].into(), value_bytes: 0 },
        };
        let state = self.automaton.after_any(next, fuel)?;
        walk.ends.sees[0] = Sees::Nothing;
        walk.ends.value_bytes = self.automaton.config(state).finish_bytes;
        walk.follow(state, None, Sees::Nothing, fuel)?;
        let ends = Arc::new(walk.ends);
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Some(Arc::clone(all.entry(like).or_insert(ends))))
    }
}

struct RestWalk<'w> {
    maker: &'w MaskMaker<'w>,
    key_ends: &'w KeyEnds,
    /// The first byte of what ends the object.
    close: Option<u8>,
    ends: Ends,
}

impl RestWalk<'_> {
    fn follow(
        &mut self,
        state: ConfigId,
        node: Option<u32>,
        sees: Sees,
        fuel: &mut Fuel<'_>,
    ) -> Result<(), LimitError> {
        let automaton = self.maker.automaton;
        let config = automaton.config(state);
        for (index, child) in self.key_ends.rests.children(node) {
            fuel.spend(1)?;
            let to = automaton.edge(config, child.byte, fuel)?.to;
            if to == DEAD {
                continue;
            }
            let sees = self.after(sees, config, child.byte);
            if let Some(rest) = self.key_ends.rests.token_at(index) {
                self.ends.sees[rest as usize] = sees;
                let bytes = automaton.config(to).finish_bytes;
                self.ends.value_bytes = self.ends.value_bytes.max(bytes);
            }
            self.follow(to, Some(index), sees, fuel)?;
        }
        Ok(())
    }

    fn after(&self, sees: Sees, config: &Config, byte: u8) -> Sees {
        let is_white = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        match sees {
            Sees::Nothing if byte == b',' && self.is_of_object(config, byte) => Sees::More,
            Sees::Nothing if Some(byte) == self.close && self.is_of_object(config, byte) => {
                Sees::End
            }
            Sees::Nothing => Sees::Nothing,
            Sees::More if is_white => Sees::More,
            Sees::More if byte == b'"' => Sees::MoreAndQuote,
            _ => Sees::All,
        }
    }

    /// Whether the byte is consumed by the object itself, and not by the value.
    fn is_of_object(&self, config: &Config, byte: u8) -> bool {
        let program = self.maker.automaton.program();
        let builder = self.maker.automaton.lock();
        config.items.iter().any(|&item| {
            let frame = builder.frame(item);
            let Node::Switch(span) = program.nodes[frame.node as usize] else { return false };
            frame.height == 1 && program.follow(span, byte).is_some()
        })
    }
}
