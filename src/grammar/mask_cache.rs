//! Masks of states, found by the part of the stacks that they depend on.
//!
//! A walk over the vocabulary looks at the top of the stacks and at so many frames below as a
//! token can close. What lies deeper makes no difference, so states that agree down to there
//! share a mask: nesting depth does not multiply masks. How deep a walk looks is not known before
//! it is done, so the cache is asked with one frame more at a time, for as long as it says that
//! this is not enough.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::automaton::{Automaton, ConfigId};
use super::builder::{BOTTOM, Builder, StackId};
use super::key_places::KeyPlaces;
use super::mask::Mask;
use super::text_places::TextPlaces;

/// A mask, and what else the walk has found out.
#[derive(Debug)]
pub(crate) struct CachedMask {
    pub(crate) mask: Arc<Mask>,
    /// Most bytes by which one of the tokens changes the least that is needed to finish, counted
    /// from the frames below the cut; `None` if the walk saw a count too low to know.
    pub(crate) finish_bytes_over_cut: Option<u32>,
    /// Height, over the lowest of the items, of the cut: how many more frames count.
    pub(crate) floor_below_items: u32,
}

enum Entry {
    /// The frames of the key are all that the mask depends on.
    Mask(Arc<CachedMask>),
    /// They are not enough.
    Deeper,
}

type Key = Box<[u32]>;

/// The masks of one automaton.
#[derive(Default)]
pub(crate) struct MaskCache {
    entries: Mutex<FxHashMap<Key, Entry>>,
    /// Those of places in keys.
    pub(super) keys: KeyPlaces,
    /// Those of places in texts.
    pub(super) texts: TextPlaces,
}

/// Ends the frames of an item that go on below the cut.
const CUT: u32 = u32::MAX;
/// Ends the frames of an item when the bottom itself counts.
const AT_BOTTOM: u32 = u32::MAX - 1;

impl MaskCache {
    /// The mask of a state, if one like it was walked before.
    pub(crate) fn find(&self, automaton: &Automaton, config: ConfigId) -> Option<Arc<CachedMask>> {
        let config = automaton.config(config);
        let builder = automaton.lock();
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let mut floor = lowest(&builder, &config.items)?;
        loop {
            match entries.get(&*key(&builder, &config.items, config.accepting, floor))? {
                Entry::Mask(mask) => return Some(Arc::clone(mask)),
                Entry::Deeper => floor = floor.checked_sub(1)?,
            }
        }
    }

    /// Keeps the mask of a state, given the height of the lowest frame that its walk looked at.
    pub(crate) fn insert(
        &self,
        automaton: &Automaton,
        config: ConfigId,
        floor: u32,
        mask: &Arc<CachedMask>,
    ) {
        let config = automaton.config(config);
        let builder = automaton.lock();
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(lowest) = lowest(&builder, &config.items) else { return };
        let floor = floor.min(lowest);
        let key_at = |floor| key(&builder, &config.items, config.accepting, floor);
        for height in floor + 1..=lowest {
            entries.insert(key_at(height), Entry::Deeper);
        }
        entries.insert(key_at(floor), Entry::Mask(Arc::clone(mask)));
    }

    /// Masks kept.
    pub(crate) fn len(&self) -> usize {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.values().filter(|entry| matches!(entry, Entry::Mask(_))).count()
    }
}

/// Height of the lowest item: all tops are looked at by every walk.
fn lowest(builder: &Builder, items: &[StackId]) -> Option<u32> {
    items.iter().map(|&item| builder.frame(item).height).min()
}

/// The frames of `items` from their tops down to the height `floor`.
fn key(builder: &Builder, items: &[StackId], accepting: bool, floor: u32) -> Key {
    let mut parts: Vec<SmallVec<[u32; 16]>> = Vec::with_capacity(items.len());
    for &item in items {
        let mut part = SmallVec::new();
        let mut stack = item;
        while stack != BOTTOM && builder.frame(stack).height >= floor {
            let frame = builder.frame(stack);
            part.extend([frame.node, frame.count]);
            stack = frame.parent;
        }
        part.push(if floor == 0 { AT_BOTTOM } else { CUT });
        parts.push(part);
    }
    // Items are sorted by when their stacks were met, which says nothing.
    parts.sort_unstable();
    let mut key = Vec::with_capacity(1 + parts.iter().map(SmallVec::len).sum::<usize>());
    key.push(u32::from(accepting));
    parts.iter().for_each(|part| key.extend_from_slice(part));
    key.into()
}

/// Least and most bytes that finish what lies below the cut, over all items.
pub(crate) fn finish_below(
    automaton: &Automaton,
    config: ConfigId,
    floor: u32,
) -> Option<(u32, u32)> {
    let config = automaton.config(config);
    let builder = automaton.lock();
    let below = config.items.iter().map(|&item| {
        let mut stack = item;
        while stack != BOTTOM && builder.frame(stack).height >= floor {
            stack = builder.frame(stack).parent;
        }
        builder.frame(stack).finish_bytes
    });
    below.fold(None, |bounds: Option<(u32, u32)>, bytes| {
        Some(bounds.map_or((bytes, bytes), |(low, high)| (low.min(bytes), high.max(bytes))))
    })
}

/// Height of the cut that a cached mask was found at, for this state.
pub(crate) fn floor_of(automaton: &Automaton, config: ConfigId, cached: &CachedMask) -> u32 {
    let builder = automaton.lock();
    let lowest = lowest(&builder, &automaton.config(config).items).unwrap_or(0);
    lowest.saturating_sub(cached.floor_below_items)
}
