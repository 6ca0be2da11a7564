//! Automata over characters as switches over bytes.

use std::sync::{Arc, LazyLock};

use regex_syntax::utf8::{Utf8Range, Utf8Sequences};
use smallvec::SmallVec;

use super::Lowering;
use crate::grammar::error::{GrammarError, LimitError};
use crate::grammar::program::{Arm, NO_WAY, Node, NodeId, Program, Role, Span};
use crate::grammar::regular::DfaArm;
use crate::grammar::text::{Spelling, TextMachine};
use crate::grammar::text_places::QuotedText;

/// Arms of most switches for the characters of a state.
pub(super) const ARMS_EXPECTED: usize = 32;

/// The bytes of some characters beyond ASCII.
type Bytes = SmallVec<[Utf8Range; 4]>;

/// Such bytes, and where they lead.
type Sequence = (Bytes, NodeId);

/// The bytes of all characters beyond ASCII, ascending.
static BEYOND: LazyLock<Vec<Bytes>> = LazyLock::new(|| {
    let ranges = [('\u{80}', '\u{D7FF}'), ('\u{E000}', '\u{10FFFF}')];
    let sequences = ranges.into_iter().flat_map(|(low, high)| Utf8Sequences::new(low, high));
    sequences.map(|sequence| sequence.as_slice().into()).collect()
});

/// Where the arms of one state lead, by the way their characters are written.
#[derive(Default)]
struct Spelled {
    ascii: Vec<Arm>,
    beyond: Vec<Sequence>,
    /// Short escapes, by letter.
    escapes: SmallVec<[Arm; 8]>,
    /// Control characters without a short escape.
    controls: SmallVec<[(u8, NodeId); 32]>,
    /// Whether what JSON escapes is seen to elsewhere.
    skips_escapes: bool,
}

impl Lowering<'_, '_> {
    /// A text that goes on at `next`.
    pub(super) fn lower_text(&mut self, number: u32, next: NodeId) -> Result<NodeId, GrammarError> {
        let machine = Arc::clone(self.pool.text_machine(number));
        if machine.states.is_empty() {
            return Ok(self.reserve(NO_WAY));
        }
        let bytes = self.costs.text(&self.pool, number);
        let Some(max) = machine.max_chars else {
            let after = self.made.node_costs[next as usize];
            let cost = |state: usize| bytes[state].saturating_add(after);
            let nodes = self.reserve_states(&machine, |_| Role::Plain, cost);
            self.lower_states(&machine, &nodes, &|to| nodes[to as usize], next)?;
            let start = nodes[0];
            if machine.spelling == Spelling::Json && self.is_quote(next) {
                let (shared, takes) = (machine.shared, machine.takes());
                self.made.texts.push(QuotedText { nodes, quote: next, shared, takes });
            }
            return Ok(start);
        };
        let needs = machine.chars_to_end();
        if needs[0] > max {
            return Ok(self.reserve(NO_WAY));
        }
        let start = match self.made.text_starts.get(number as usize) {
            Some(start) => start,
            None => {
                let start = self.lower_counted_text(&machine, &needs, &bytes)?;
                self.made.text_starts.set(number as usize, start);
                start
            }
        };
        Ok(self.push(Node::Enter { start, next, register: max })?)
    }

    /// Whether a node takes a quote and nothing else.
    fn is_quote(&self, node: NodeId) -> bool {
        let Node::Switch(span) = self.made.nodes[node as usize] else { return false };
        matches!(&self.made.arms[span.range()], [Arm { low: b'"', high: b'"', .. }])
    }

    /// A text whose characters are counted, as a rule of its own.
    fn lower_counted_text(
        &mut self,
        machine: &TextMachine,
        needs: &[u32],
        bytes: &[u32],
    ) -> Result<NodeId, GrammarError> {
        let known = needs.iter().copied().filter(|needs| *needs != u32::MAX);
        let role = Role::Characters { needs_max: known.max().unwrap_or(0) };
        let before = std::mem::replace(&mut self.role, role);
        let nodes = self.reserve_states(machine, |_| role, |state| bytes[state]);
        let mut ticks = Vec::with_capacity(nodes.len());
        for (&next, &needs) in nodes.iter().zip(needs) {
            ticks.push(self.push(Node::Tick { next, needs })?);
        }
        self.lower_states(machine, &nodes, &|to| ticks[to as usize], Program::RETURN)?;
        self.role = before;
        Ok(nodes[0])
    }

    /// A node for each state, given what it will cost.
    pub(super) fn reserve_states(
        &mut self,
        machine: &TextMachine,
        role: impl Fn(u32) -> Role,
        cost: impl Fn(usize) -> u32,
    ) -> Vec<NodeId> {
        let before = self.role;
        let nodes = (0..machine.states.len() as u32)
            .map(|state| {
                self.role = role(state);
                self.reserve(cost(state as usize))
            })
            .collect();
        self.role = before;
        nodes
    }

    fn lower_states(
        &mut self,
        machine: &TextMachine,
        nodes: &[NodeId],
        entry: &dyn Fn(u32) -> NodeId,
        next: NodeId,
    ) -> Result<(), GrammarError> {
        let mut arms = Vec::with_capacity(ARMS_EXPECTED);
        for (state, &node) in machine.states.iter().zip(nodes) {
            self.char_arms(&state.arms, entry, machine.spelling, &mut arms)?;
            match (arms.is_empty(), state.end) {
                (_, None) => self.set_switch(node, &arms),
                (true, Some(_)) => self.set_split(node, &[next]),
                (false, Some(_)) => {
                    let switch = self.switch(&arms)?;
                    self.set_split(node, &[switch, next]);
                }
            }
        }
        Ok(())
    }

    /// Makes `all` the arms of a switch for the characters of one state.
    pub(super) fn char_arms(
        &mut self,
        arms: &[DfaArm],
        entry: &dyn Fn(u32) -> NodeId,
        spelling: Spelling,
        all: &mut Vec<Arm>,
    ) -> Result<(), LimitError> {
        all.clear();
        // Most states treat all characters alike beyond ASCII, and all that are escaped.
        let wide = wide_target(arms).map(entry);
        let escaped = match spelling {
            Spelling::Json => escaped_target(arms).map(entry),
            Spelling::Plain | Spelling::SingleQuoted => None,
        };
        let mut spelled = Spelled {
            ascii: std::mem::take(all),
            skips_escapes: escaped.is_some(),
            ..Spelled::default()
        };
        for arm in arms {
            self.fuel.spend(1)?;
            let high = if wide.is_some() { arm.high.min(0x7F) } else { arm.high };
            if arm.low <= high {
                spelled.add(arm.low, high, entry(arm.next), spelling);
            }
        }
        *all = std::mem::take(&mut spelled.ascii);
        let escapes = match escaped {
            Some(next) => Some(self.escapes_to(next)?),
            None if spelled.escapes.is_empty() && spelled.controls.is_empty() => None,
            None => Some(self.escapes(spelled.escapes, &spelled.controls)?),
        };
        if let Some(next) = escapes {
            let at = all.partition_point(|arm| arm.low < b'\\');
            all.insert(at, Arm { low: b'\\', high: b'\\', next });
        }
        match wide {
            Some(next) => {
                let span = self.wide_arms(next)?;
                all.extend_from_slice(&self.made.wide_arms[span.range()]);
            }
            None => {
                spelled.beyond.sort_unstable_by(|a, b| starts(a).cmp(starts(b)));
                self.fuel.spend(spelled.beyond.len() as u32)?;
                all.extend(self.sequence_arms(&spelled.beyond, 0)?);
            }
        }
        Ok(())
    }

    /// Where a backslash leads, if all characters that are escaped lead to one node.
    fn escapes_to(&mut self, next: NodeId) -> Result<NodeId, LimitError> {
        if let Some(&known) = self.made.escapes_known.get(&(next, self.role)) {
            return Ok(known);
        }
        let mut spelled = Spelled::default();
        spelled.add(0, 0x1F, next, Spelling::Json);
        spelled.add(0x22, 0x22, next, Spelling::Json);
        spelled.add(0x5C, 0x5C, next, Spelling::Json);
        let escapes = self.escapes(spelled.escapes, &spelled.controls)?;
        self.made.escapes_known.insert((next, self.role), escapes);
        Ok(escapes)
    }

    /// The arms of all characters beyond ASCII, if they lead to one node.
    fn wide_arms(&mut self, next: NodeId) -> Result<Span, LimitError> {
        if let Some(&known) = self.made.wide_known.get(&(next, self.role)) {
            return Ok(known);
        }
        let sequences = BEYOND.iter().map(|bytes| (bytes.clone(), next));
        let sequences: SmallVec<[Sequence; 8]> = sequences.collect();
        let arms = self.sequence_arms(&sequences, 0)?;
        let first = self.made.wide_arms.len() as u32;
        self.made.wide_arms.extend_from_slice(&arms);
        let span = Span { first, count: arms.len() as u32 };
        self.made.wide_known.insert((next, self.role), span);
        Ok(span)
    }

    /// Where a backslash leads.
    fn escapes(
        &mut self,
        mut letters: SmallVec<[Arm; 8]>,
        controls: &[(u8, NodeId)],
    ) -> Result<NodeId, LimitError> {
        if !controls.is_empty() {
            let mut tens: SmallVec<[Arm; 2]> = SmallVec::new();
            for ten in 0..2u8 {
                let mut digits: SmallVec<[Arm; 16]> = SmallVec::new();
                for &(control, next) in controls.iter().filter(|(control, _)| control >> 4 == ten) {
                    let digit = b"0123456789abcdef"[usize::from(control & 15)];
                    digits.push(Arm { low: digit, high: digit, next });
                }
                if !digits.is_empty() {
                    let next = self.inner_switch(&digits)?;
                    tens.push(Arm { low: b'0' + ten, high: b'0' + ten, next });
                }
            }
            let mut next = self.inner_switch(&tens)?;
            for _ in 0..2 {
                next = self.inner_switch(&[Arm { low: b'0', high: b'0', next }])?;
            }
            letters.push(Arm { low: b'u', high: b'u', next });
        }
        letters.sort_unstable_by_key(|arm| arm.low);
        self.inner_switch(&letters)
    }

    /// A switch within a character: where characters are counted, it is entered only if there is
    /// room for one of the characters it leads to.
    fn inner_switch(&mut self, arms: &[Arm]) -> Result<NodeId, LimitError> {
        let before = self.role;
        if let Role::Characters { needs_max } = before {
            let least = arms.iter().map(|arm| self.least_characters(arm.next)).min().unwrap_or(0);
            self.role = Role::InCharacter { least, needs_max };
        }
        let switch = self.switch(arms);
        self.role = before;
        switch
    }

    /// Characters that there must be room for at a node of a counted text.
    fn least_characters(&self, node: NodeId) -> u32 {
        match (self.made.nodes[node as usize], self.made.roles[node as usize]) {
            (Node::Tick { needs, .. }, _) => needs.saturating_add(1),
            (_, Role::InCharacter { least, .. }) => least,
            _ => 0,
        }
    }

    /// The arms for sequences that agree before `depth`. Their ranges at `depth` are equal or
    /// disjoint, because the sequences come from disjoint ranges of characters.
    fn sequence_arms(
        &mut self,
        sequences: &[Sequence],
        depth: usize,
    ) -> Result<SmallVec<[Arm; 8]>, LimitError> {
        let mut arms: SmallVec<[Arm; 8]> = SmallVec::new();
        for group in sequences.chunk_by(|a, b| a.0.get(depth) == b.0.get(depth)) {
            let Some((first, target)) = group.first() else { continue };
            let Some(range) = first.get(depth) else { continue };
            let next = if first.len() == depth + 1 {
                *target
            } else {
                let inner = self.sequence_arms(group, depth + 1)?;
                self.inner_switch(&inner)?
            };
            super::switches::push_arm(&mut arms, Arm { low: range.start, high: range.end, next });
        }
        Ok(arms)
    }
}

/// The state that all characters beyond ASCII lead to, if there is one.
fn wide_target(arms: &[DfaArm]) -> Option<u32> {
    match arms {
        [.., below, above] => (below.low <= 0x80
            && (below.high, above.low, above.high) == (0xD7FF, 0xE000, 0x10FFFF)
            && below.next == above.next)
            .then_some(above.next),
        _ => None,
    }
}

/// The state that all characters lead to that JSON escapes, if there is one.
fn escaped_target(arms: &[DfaArm]) -> Option<u32> {
    let controls = arms.first().filter(|arm| arm.low == 0 && arm.high >= 0x1F)?.next;
    let leads = |character: u32| {
        let at = arms.partition_point(|arm| arm.high < character);
        arms.get(at).is_some_and(|arm| arm.low <= character && arm.next == controls)
    };
    (leads(0x22) && leads(0x5C)).then_some(controls)
}

impl Spelled {
    fn add(&mut self, low: u32, high: u32, next: NodeId, spelling: Spelling) {
        if spelling == Spelling::Plain {
            return self.add_plain(low, high, next);
        }
        if self.skips_escapes {
            for (first, last) in [(0x20, 0x21), (0x23, 0x5B), (0x5D, 0x10FFFF)] {
                if low.max(first) <= high.min(last) {
                    self.add_plain(low.max(first), high.min(last), next);
                }
            }
            return;
        }
        let mut from = low;
        // What may be escaped: control characters, both quotes, the backslash.
        let specials = (low..0x20).chain([0x22, 0x27, 0x5C]);
        let specials = specials.filter(|special| (low..=high).contains(special));
        for special in specials.filter(|special| spelling.is_escaped(*special)) {
            if from < special {
                self.add_plain(from, special - 1, next);
            }
            from = special + 1;
            self.add_escaped(special as u8, next, spelling);
        }
        if from <= high {
            self.add_plain(from, high, next);
        }
    }

    fn add_escaped(&mut self, character: u8, next: NodeId, spelling: Spelling) {
        match spelling.short_escape(character.into()) {
            Some(letter) => self.escapes.push(Arm { low: letter, high: letter, next }),
            None => self.controls.push((character, next)),
        }
    }

    fn add_plain(&mut self, low: u32, high: u32, next: NodeId) {
        if low < 0x80 {
            let arm = Arm { low: low as u8, high: high.min(0x7F) as u8, next };
            super::switches::push_arm(&mut self.ascii, arm);
        }
        let (Some(low), Some(high)) = (char::from_u32(low.max(0x80)), char::from_u32(high)) else {
            return;
        };
        if low <= high {
            let sequences = Utf8Sequences::new(low, high);
            self.beyond.extend(sequences.map(|sequence| (sequence.as_slice().into(), next)));
        }
    }
}

fn starts(sequence: &Sequence) -> impl Iterator<Item = u8> + '_ {
    sequence.0.iter().map(|range| range.start)
}
