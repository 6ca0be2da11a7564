//! An automaton over the classes of one alphabet, as a table.

use super::super::Fuel;
use super::RegularError;
use super::alphabet::Alphabet;
use super::dfa::{Arms, DEAD, Dfa, DfaState};
use super::minimize::{Edge, equivalent, group};

/// What leads to every text: all of them are accepted from here.
pub(super) const UNIVERSAL: u32 = u32::MAX - 1;

/// States and where each class of characters leads: to a state, [`DEAD`] or [`UNIVERSAL`].
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) class_count: usize,
    /// For each state, for each class.
    pub(super) next: Vec<u32>,
    pub(super) accepting: Vec<bool>,
    /// The first state; it may be [`DEAD`] or [`UNIVERSAL`].
    pub(super) start: u32,
}

impl Table {
    /// Where a state leads, for each class.
    pub(super) fn row(&self, state: u32) -> &[u32] {
        let start = state as usize * self.class_count;
        &self.next[start..start + self.class_count]
    }

    /// All other texts.
    pub(super) fn complement(mut self) -> Self {
        let swap = |state: &mut u32| match *state {
            DEAD => *state = UNIVERSAL,
            UNIVERSAL => *state = DEAD,
            _ => {}
        };
        self.next.iter_mut().for_each(swap);
        swap(&mut self.start);
        for accepting in &mut self.accepting {
            *accepting = !*accepting;
        }
        self
    }

    /// The smallest table of the same language.
    pub(super) fn minimize(self, fuel: &mut Fuel<'_>) -> Result<Self, RegularError> {
        let universal = self.accepting.len() as u32;
        let mut edges = Vec::new();
        for tail in 0..universal {
            fuel.spend(1 + self.class_count as u32 / 4)?;
            for (class, &head) in self.row(tail).iter().enumerate() {
                let head = if head == UNIVERSAL { universal } else { head };
                if head != DEAD {
                    edges.push(Edge { tail, symbol: class as u32, head });
                }
            }
        }
        let alive = self.alive(&edges);
        edges.retain(|edge| alive[edge.head as usize]);
        for class in 0..self.class_count as u32 {
            edges.push(Edge { tail: universal, symbol: class, head: universal });
        }
        // States that are not alive have no edges left and a label of their own.
        let mut labels: Vec<u32> = alive.iter().map(|&alive| u32::from(alive)).collect();
        for (label, &accepting) in labels.iter_mut().zip(&self.accepting) {
            *label += u32::from(accepting);
        }
        labels[universal as usize] = 2;
        let blocks = equivalent(&labels, edges, fuel)?;
        Ok(self.quotient(&blocks, &alive))
    }

    /// Which states reach an accepting one; the last is the universal one.
    fn alive(&self, edges: &[Edge]) -> Vec<bool> {
        let mut alive = self.accepting.clone();
        alive.push(true);
        let heads: Vec<u32> = edges.iter().map(|edge| edge.head).collect();
        let (first, incoming) = group(&heads, alive.len());
        let mut reached: Vec<usize> = (0..alive.len()).filter(|&state| alive[state]).collect();
        while let Some(state) = reached.pop() {
            for &edge in &incoming[first[state] as usize..first[state + 1] as usize] {
                let tail = edges[edge as usize].tail as usize;
                if !alive[tail] {
                    alive[tail] = true;
                    reached.push(tail);
                }
            }
        }
        alive
    }

    /// One state for each block, breadth first.
    fn quotient(self, blocks: &[u32], alive: &[bool]) -> Self {
        let universal = blocks.last().copied();
        let mut renumbered = vec![DEAD; blocks.len()];
        let mut order: Vec<u32> = Vec::new();
        let mut number = |state: u32, order: &mut Vec<u32>| {
            if state == DEAD || state == UNIVERSAL {
                return state;
            }
            if !alive[state as usize] {
                return DEAD;
            }
            let block = blocks[state as usize];
            if Some(block) == universal {
                return UNIVERSAL;
            }
            let slot = &mut renumbered[block as usize];
            if *slot == DEAD {
                *slot = order.len() as u32;
                order.push(state);
            }
            *slot
        };
        let start = number(self.start, &mut order);
        let (mut next, mut accepting) = (Vec::new(), Vec::new());
        while let Some(&state) = order.get(accepting.len()) {
            next.extend(self.row(state).iter().map(|&head| number(head, &mut order)));
            accepting.push(self.accepting[state as usize]);
        }
        Self { class_count: self.class_count, next, accepting, start }
    }

    /// The language over characters. The table must be minimal.
    pub(super) fn to_dfa(&self, alphabet: &Alphabet) -> Dfa {
        match self.start {
            DEAD => return Dfa::never(),
            UNIVERSAL => return Dfa::any(),
            _ => {}
        }
        let universal = self.accepting.len() as u32;
        let mut arms = Arms::default();
        let mut states: Vec<DfaState> = Vec::with_capacity(self.accepting.len() + 1);
        let mut row = Vec::new();
        for (state, &accepting) in self.accepting.iter().enumerate() {
            row.clear();
            row.extend_from_slice(self.row(state as u32));
            for next in row.iter_mut().filter(|next| **next == UNIVERSAL) {
                *next = universal;
            }
            states.push(DfaState { accepting, arms: alphabet.arms(&row, &mut arms) });
        }
        states.push(DfaState { accepting: true, arms: Arms::all(universal).take() });
        Dfa::assemble(states, self.start)
    }
}
