//! Alternatives of numbers and of strings.

use std::sync::Arc;

use super::atom::{Atom, Types};
use super::conj::NodeId;
use super::decimal::Decimal;
use super::error::SchemaError;
use super::expand::{Next, Term};
use super::json::Json;
use super::shape::{Bound, NumberSet, StringSet};
use super::shaper::Shaper;

impl Term for NumberSet {
    const TYPES: Types = Types::NUMBER;

    fn assume(
        &mut self,
        _at: (NodeId, u32),
        atom: &Atom,
        positive: bool,
        _next: &mut Next,
        _shaper: &mut Shaper<'_, '_>,
    ) -> Result<bool, SchemaError> {
        let turned =
            |bound: &Bound| Bound { value: bound.value.clone(), exclusive: !bound.exclusive };
        match (atom, positive) {
            (Atom::Minimum(bound), true) => self.raise_min(bound),
            (Atom::Maximum(bound), true) => self.lower_max(bound),
            (Atom::Minimum(bound), false) => self.lower_max(&turned(bound)),
            (Atom::Maximum(bound), false) => self.raise_min(&turned(bound)),
            (Atom::MultipleOf(divisor), true) => add(&mut self.multiples_of, divisor),
            (Atom::MultipleOf(divisor), false) => add(&mut self.not_multiples_of, divisor),
            (Atom::Enum(values), _) => {
                for value in &values.list {
                    if let Json::Number(number) = value {
                        add(&mut self.excluded, number);
                    }
                }
            }
            _ => {}
        }
        Ok(true)
    }

    fn restrict(&mut self, types: Types) -> bool {
        self.integer |= !types.meets(Types::FRACTION);
        self.not_integer |= !types.meets(Types::INTEGER);
        types.meets(Types::NUMBER) && !(self.integer && self.not_integer)
    }

    fn is_dead(&mut self, _shaper: &mut Shaper<'_, '_>) -> Result<bool, SchemaError> {
        Ok(self.is_contradiction())
    }
}

impl NumberSet {
    /// Whether a number is in the set.
    pub fn contains(&self, number: &Decimal) -> bool {
        let above =
            |bound: &Bound| *number > bound.value || (*number == bound.value && !bound.exclusive);
        let below =
            |bound: &Bound| *number < bound.value || (*number == bound.value && !bound.exclusive);
        let is_integer = number.is_integer();
        (is_integer || !self.integer)
            && !(is_integer && self.not_integer)
            && self.min.as_ref().is_none_or(above)
            && self.max.as_ref().is_none_or(below)
            && self.multiples_of.iter().all(|divisor| number.is_multiple_of(divisor))
            && !self.not_multiples_of.iter().any(|divisor| number.is_multiple_of(divisor))
            && !self.excluded.contains(number)
    }

    fn raise_min(&mut self, bound: &Bound) {
        let stronger =
            |old: &Bound| bound.value > old.value || (bound.value == old.value && bound.exclusive);
        if self.min.as_ref().is_none_or(stronger) {
            self.min = Some(bound.clone());
        }
    }

    fn lower_max(&mut self, bound: &Bound) {
        let stronger =
            |old: &Bound| bound.value < old.value || (bound.value == old.value && bound.exclusive);
        if self.max.as_ref().is_none_or(stronger) {
            self.max = Some(bound.clone());
        }
    }

    /// Whether it is plain that nothing is in it.
    fn is_contradiction(&self) -> bool {
        if self.multiples_of.iter().any(|divisor| self.not_multiples_of.contains(divisor)) {
            return true;
        }
        if self.not_integer && self.multiples_of.iter().any(Decimal::is_integer) {
            return true;
        }
        let (Some(min), Some(max)) = (&self.min, &self.max) else { return false };
        match min.value.cmp(&max.value) {
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Equal => !self.contains(&min.value),
            // Between two integers that do not belong to it, as in 0 < x < 1.
            std::cmp::Ordering::Less => {
                self.integer && !min.value.is_integer() && {
                    let first = min.value.ceil();
                    first > max.value || (first == max.value && max.exclusive)
                }
            }
        }
    }

    /// Whether all of `other` is in it, as far as can be told from the parts.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let mut joined = other.clone();
        joined.integer |= self.integer;
        joined.not_integer |= self.not_integer;
        self.min.iter().for_each(|bound| joined.raise_min(bound));
        self.max.iter().for_each(|bound| joined.lower_max(bound));
        joined == *other
            && self.multiples_of.iter().all(|divisor| other.multiples_of.contains(divisor))
            && self.not_multiples_of.iter().all(|divisor| other.not_multiples_of.contains(divisor))
            && self.excluded.iter().all(|number| !other.contains(number))
    }

    /// Drops what changes nothing.
    pub(super) fn tidy(&mut self) {
        let excluded = std::mem::take(&mut self.excluded);
        self.excluded = excluded.into_iter().filter(|number| self.contains(number)).collect();
        let integer = self.integer;
        self.multiples_of.retain(|divisor| !(integer && divisor.is_one()));
    }
}

fn add<T: Clone + PartialEq>(list: &mut Vec<T>, item: &T) {
    if !list.contains(item) {
        list.push(item.clone());
    }
}

impl Term for StringSet {
    const TYPES: Types = Types::STRING;

    fn assume(
        &mut self,
        _at: (NodeId, u32),
        atom: &Atom,
        positive: bool,
        _next: &mut Next,
        _shaper: &mut Shaper<'_, '_>,
    ) -> Result<bool, SchemaError> {
        match (atom, positive) {
            (Atom::MinLength(min), true) => self.min_chars = self.min_chars.max(*min),
            (Atom::MaxLength(max), true) => self.lower_max(*max),
            (Atom::MinLength(min), false) => match min.checked_sub(1) {
                Some(max) => self.lower_max(max),
                None => return Ok(false),
            },
            (Atom::MaxLength(max), false) => {
                self.min_chars = self.min_chars.max(max.saturating_add(1));
            }
            (Atom::Pattern(pattern), _) => {
                add(&mut self.patterns, &(Arc::clone(pattern), positive))
            }
            (Atom::Format(format), _) => add(&mut self.formats, &(*format, positive)),
            (Atom::Enum(values), _) => {
                for value in &values.list {
                    if let Json::String(text) = value {
                        add(&mut self.excluded, text);
                    }
                }
            }
            _ => {}
        }
        Ok(true)
    }

    fn is_dead(&mut self, _shaper: &mut Shaper<'_, '_>) -> Result<bool, SchemaError> {
        let opposed = |index: usize, positive: bool| {
            self.patterns.iter().skip(index).any(|(pattern, other)| {
                *other != positive && self.patterns.get(index).is_some_and(|one| one.0 == *pattern)
            })
        };
        Ok(self.max_chars.is_some_and(|max| max < self.min_chars)
            || self
                .patterns
                .iter()
                .enumerate()
                .any(|(index, &(_, positive))| opposed(index, positive))
            || self
                .formats
                .iter()
                .any(|&(format, positive)| self.formats.contains(&(format, !positive))))
    }
}

impl StringSet {
    fn lower_max(&mut self, max: u32) {
        self.max_chars = Some(self.max_chars.map_or(max, |old| old.min(max)));
    }

    /// Whether all of `other` is in it, as far as can be told from the parts.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.min_chars <= other.min_chars
            && self.max_chars.is_none_or(|max| other.max_chars.is_some_and(|other| other <= max))
            && self.patterns.iter().all(|pattern| other.patterns.contains(pattern))
            && self.formats.iter().all(|format| other.formats.contains(format))
            && self.excluded.iter().all(|text| other.excluded.contains(text) || !other.fits(text))
    }

    /// Whether the length of a text is allowed.
    fn fits(&self, text: &str) -> bool {
        let count = text.chars().count();
        count >= self.min_chars as usize && self.max_chars.is_none_or(|max| count <= max as usize)
    }

    /// Drops what changes nothing.
    pub(super) fn tidy(&mut self) {
        let excluded = std::mem::take(&mut self.excluded);
        self.excluded = excluded.into_iter().filter(|text| self.fits(text)).collect();
    }
}

/// Drops sets that are in another one.
pub(super) fn drop_covered<T: PartialEq>(sets: Vec<T>, covers: impl Fn(&T, &T) -> bool) -> Vec<T> {
    let mut kept: Vec<T> = Vec::with_capacity(sets.len());
    for set in sets {
        if kept.iter().any(|other| covers(other, &set)) {
            continue;
        }
        kept.retain(|other| !covers(&set, other));
        kept.push(set);
    }
    kept
}
