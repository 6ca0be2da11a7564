//! A list that grows while others read it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Entries of the first segment; each one after holds as many as all before it.
const FIRST: u32 = 8;
/// Segments that reach 2^32 entries.
const SEGMENTS: usize = 30;

/// An append-only list whose entries never move. Reading is two loads and no lock.
///
/// Only one thread may push at a time; the automaton's builder lock sees to that.
pub(crate) struct Segments<T> {
    segments: [OnceLock<Box<[OnceLock<T>]>>; SEGMENTS],
    len: AtomicU32,
}

impl<T> Segments<T> {
    pub(crate) fn new() -> Self {
        Self { segments: [const { OnceLock::new() }; SEGMENTS], len: AtomicU32::new(0) }
    }

    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed) as usize
    }

    /// Segment and position of an index, and the segment's size.
    #[inline]
    fn place(index: u32) -> (usize, usize, u32) {
        if index < FIRST {
            return (0, index as usize, FIRST);
        }
        let segment = (index / FIRST).ilog2();
        let first = FIRST << segment;
        (segment as usize + 1, (index - first) as usize, first)
    }

    /// Appends an entry and says at which index.
    pub(crate) fn push(&self, entry: T) -> u32 {
        let index = self.len.load(Ordering::Relaxed);
        let (segment, position, size) = Self::place(index);
        let entries =
            self.segments[segment].get_or_init(|| (0..size).map(|_| OnceLock::new()).collect());
        // The entry is new: nobody else pushes.
        let _ = entries[position].set(entry);
        self.len.store(index + 1, Ordering::Release);
        index
    }

    /// The entry at an index that [`push`](Self::push) has returned.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> &T {
        let (segment, position, _) = Self::place(index);
        let entry = self.segments[segment].get().and_then(|entries| entries[position].get());
        match entry {
            Some(entry) => entry,
            None => not_pushed(index),
        }
    }
}

/// Indices come from `push` alone, so this is a bug of ours; the session that meets it ends.
#[cold]
fn not_pushed(index: u32) -> ! {
    unreachable!("no state {index} was ever made")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_keep_their_index() {
        let list = Segments::new();
        for number in 0..10_000u32 {
            assert_eq!(list.push(number), number);
        }
        assert!((0..10_000).all(|index| *list.get(index) == index));
        assert_eq!(list.len(), 10_000);
    }
}
