//! Where runs of like characters lead from a state, in one step.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use super::{Automaton, Config, ConfigId, DEAD, Edge, UNKNOWN_EDGE};
use crate::grammar::error::LimitError;
use crate::grammar::limits::Fuel;
use crate::grammar::program::Node;
use crate::grammar::shapes::Class;

/// Stands for a state where there are several.
const MIXED: ConfigId = u32::MAX;
/// Rounds after which a bound that still moves is given up.
const BOUND_ROUNDS_MAX: usize = 8;
/// Memory that one more entry of a table takes, about.
const ABSTRACTED_BYTES: usize = 24;

/// Where a run of characters of a class leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    /// None of them is alive.
    Dead,
    /// All of them lead here, however many they are.
    To(Edge),
    /// It depends on the characters, or on how many they are.
    Mixed,
}

/// Where the characters looked at so far lead.
struct Meeting {
    to: Option<ConfigId>,
    floor: u32,
}

impl Automaton {
    /// Where any one character of a class leads.
    pub(crate) fn single(
        &self,
        id: ConfigId,
        class: Class,
        fuel: &mut Fuel<'_>,
    ) -> Result<Run, LimitError> {
        let config = self.config(id);
        let packed = config.runs[class as usize].load(Ordering::Acquire);
        if packed != UNKNOWN_EDGE {
            return Ok(match Edge::unpack(packed) {
                Edge { to: DEAD, .. } => Run::Dead,
                Edge { to: MIXED, .. } => Run::Mixed,
                edge => Run::To(edge),
            });
        }
        let (low, high) = class.first_bytes();
        let found = if config.is_alive_on_all((low, high)) {
            self.meet(config, class, fuel)?
        } else if (low..=high).any(|byte| config.is_alive_on(byte)) {
            Run::Mixed
        } else {
            Run::Dead
        };
        let edge = match found {
            Run::Dead => Edge::NOWHERE,
            Run::Mixed => Edge { to: MIXED, floor: 0 },
            Run::To(edge) => edge,
        };
        config.runs[class as usize].store(edge.pack(), Ordering::Release);
        Ok(found)
    }

    /// The one place that all characters of a class lead to, if there is one.
    fn meet(&self, config: &Config, class: Class, fuel: &mut Fuel<'_>) -> Result<Run, LimitError> {
        let mut met = Meeting { to: None, floor: u32::MAX };
        for ranges in class.sequences() {
            if !self.follow_ranges(config, ranges, &mut met, fuel)? {
                return Ok(Run::Mixed);
            }
        }
        Ok(met.to.map_or(Run::Mixed, |to| Run::To(Edge { to, floor: met.floor })))
    }

    /// Follows all sequences of bytes in `ranges`; false if one of them is dead, or leads to
    /// another place than the one that is met.
    fn follow_ranges(
        &self,
        config: &Config,
        ranges: &[(u8, u8)],
        met: &mut Meeting,
        fuel: &mut Fuel<'_>,
    ) -> Result<bool, LimitError> {
        let Some((&(low, high), rest)) = ranges.split_first() else { return Ok(true) };
        let mut last_class = None;
        for byte in low..=high {
            let class = Some(self.program.classes.of(byte));
            if last_class == class {
                continue;
            }
            last_class = class;
            let edge = self.edge(config, byte, fuel)?;
            met.floor = met.floor.min(edge.floor);
            let goes_on = if edge.to == DEAD {
                false
            } else if rest.is_empty() {
                *met.to.get_or_insert(edge.to) == edge.to
            } else {
                self.follow_ranges(self.config(edge.to), rest, met, fuel)?
            };
            if !goes_on {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Where a run of one or more characters of a class leads, when at most `bytes` bytes are
    /// left to consume, the run included: counts are made abstract as far as these cannot tell.
    #[inline]
    pub(crate) fn run(
        &self,
        id: ConfigId,
        class: Class,
        bytes: u32,
        fuel: &mut Fuel<'_>,
    ) -> Result<Run, LimitError> {
        let first = match self.single(id, class, fuel)? {
            Run::To(first) => first,
            other => return Ok(other),
        };
        let to = if first.to == id { id } else { self.abstracted_for(first.to, bytes)? };
        Ok(match self.single(to, class, fuel)? {
            Run::To(again) if again.to == to => {
                Run::To(Edge { to, floor: first.floor.min(again.floor) })
            }
            _ => Run::Mixed,
        })
    }

    /// Where a run that has begun leads on: the state with abstract counts, if it is one that
    /// characters of the class lead back to. `bytes` are left.
    pub(crate) fn run_on(
        &self,
        id: ConfigId,
        class: Class,
        bytes: u32,
        fuel: &mut Fuel<'_>,
    ) -> Result<Option<Edge>, LimitError> {
        let to = self.abstracted_for(id, bytes)?;
        Ok(match self.single(to, class, fuel)? {
            Run::To(again) if again.to == to => Some(again),
            _ => None,
        })
    }

    /// What all the states have in common that characters of a class lead to: one character, or
    /// if `is_run` any number. Whatever is alive from there is alive from each of them. As in
    /// [`run`](Self::run), at most `bytes` bytes are left. The dead state if there is nothing.
    pub(crate) fn lower_bound(
        &self,
        id: ConfigId,
        class: Class,
        is_run: bool,
        bytes: u32,
        fuel: &mut Fuel<'_>,
    ) -> Result<ConfigId, LimitError> {
        let mut floor = u32::MAX;
        if !self.config(id).is_alive_on_all(class.first_bytes()) {
            return Ok(DEAD);
        }
        let mut bound = self.common(&self.targets(id, class, bytes, &mut floor, fuel)?);
        for _ in 0..BOUND_ROUNDS_MAX {
            if !is_run || bound == DEAD {
                return Ok(bound);
            }
            let mut after = self.targets(bound, class, u32::MAX, &mut floor, fuel)?;
            after.push(bound);
            let less = self.common(&after);
            if less == bound {
                return Ok(bound);
            }
            bound = less;
        }
        Ok(DEAD)
    }

    /// A state from which everything is alive that is alive from one of the states that characters
    /// of a class lead to, as in [`lower_bound`](Self::lower_bound). `None` if it is not found in
    /// reasonable time.
    pub(crate) fn upper_bound(
        &self,
        id: ConfigId,
        class: Class,
        is_run: bool,
        bytes: u32,
        fuel: &mut Fuel<'_>,
    ) -> Result<Option<Edge>, LimitError> {
        let mut floor = u32::MAX;
        let mut to = self.joined(&self.targets(id, class, bytes, &mut floor, fuel)?);
        for _ in 0..BOUND_ROUNDS_MAX {
            if !is_run {
                return Ok(Some(Edge { to, floor }));
            }
            let mut after = self.targets(to, class, u32::MAX, &mut floor, fuel)?;
            after.push(to);
            let more = self.joined(&after);
            if more == to {
                return Ok(Some(Edge { to, floor }));
            }
            to = more;
        }
        Ok(None)
    }

    /// The states that the characters of a class lead to, the dead state among them.
    fn targets(
        &self,
        id: ConfigId,
        class: Class,
        bytes: u32,
        floor: &mut u32,
        fuel: &mut Fuel<'_>,
    ) -> Result<SmallVec<[ConfigId; 8]>, LimitError> {
        let config = self.config(id);
        let (low, high) = class.first_bytes();
        let mut last_class = None;
        let mut targets = SmallVec::new();
        for byte in low..=high {
            let class = Some(self.program.classes.of(byte));
            if last_class == class {
                continue;
            }
            last_class = class;
            let edge = self.edge(config, byte, fuel)?;
            *floor = edge.floor.min(*floor);
            let to = if bytes == u32::MAX { edge.to } else { self.abstracted_for(edge.to, bytes)? };
            if !targets.contains(&to) {
                targets.push(to);
            }
        }
        Ok(targets)
    }

    /// The state of the stacks that all of some states have.
    fn common(&self, states: &[ConfigId]) -> ConfigId {
        let Some((&first, others)) = states.split_first() else { return DEAD };
        let mut items = self.config(first).items.clone();
        for &other in others {
            let other = self.config(other);
            items.retain(|item| other.items.binary_search(item).is_ok());
        }
        let mut builder = self.lock();
        builder.clear();
        builder.join(&items, false);
        self.intern(&mut builder)
    }

    /// The state of the stacks that any of some states have.
    fn joined(&self, states: &[ConfigId]) -> ConfigId {
        let mut builder = self.lock();
        builder.clear();
        for &state in states {
            builder.join(&self.config(state).items, false);
        }
        self.intern(&mut builder)
    }

    /// Rounds that the counted loops of a state may all still make, if one of them has an end.
    pub(crate) fn rounds_left(&self, id: ConfigId) -> Option<u32> {
        let config = self.config(id);
        if !config.has_counts {
            return None;
        }
        let builder = self.lock();
        let mut least = None;
        for &item in &config.items {
            let mut stack = item;
            while builder.frame(stack).has_counts {
                let frame = builder.frame(stack);
                if let Node::Loop(index) = self.program.nodes[frame.node as usize] {
                    let left = self.program.loops[index as usize].rounds_left(frame.count);
                    least = least.into_iter().chain(left).min();
                }
                stack = frame.parent;
            }
        }
        least
    }

    /// As [`abstracted`](Self::abstracted), for what is left of a token.
    pub(crate) fn abstracted_for(&self, id: ConfigId, bytes: u32) -> Result<ConfigId, LimitError> {
        let config = self.config(id);
        if !config.has_counts {
            return Ok(id);
        }
        // Few different numbers, so that few states are made.
        let bytes = bytes.checked_next_multiple_of(4).unwrap_or(bytes);
        let known = {
            let known = self.abstracted_for.lock().unwrap_or_else(PoisonError::into_inner);
            known.get(&(id, bytes)).copied()
        };
        if let Some(known) = known {
            return Ok(known);
        }
        let mut builder = self.lock();
        let of = (&*config.items, config.accepting);
        builder.abstract_registers(&self.program, of, bytes, None)?;
        let abstracted = self.intern(&mut builder);
        drop(builder);
        let mut known = self.abstracted_for.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert((id, bytes), abstracted);
        self.bytes.fetch_add(ABSTRACTED_BYTES, Ordering::Relaxed);
        Ok(abstracted)
    }
}
