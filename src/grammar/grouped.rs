//! Lists by small numbers, all in one piece of memory.

/// For each number below some count, a list.
///
/// Invariant: `starts` ascends, begins with 0 and ends with the length of `items`; or both are
/// empty.
#[derive(Clone, Debug)]
pub(super) struct Grouped<T> {
    items: Vec<T>,
    /// Where the list of each number starts, and where the last ends.
    starts: Vec<u32>,
}

impl<T> Default for Grouped<T> {
    fn default() -> Self {
        Self { items: Vec::new(), starts: Vec::new() }
    }
}

impl<T: Copy> Grouped<T> {
    /// Items with their numbers, all below `count`. Lists keep the order of the items.
    pub(super) fn new(count: usize, numbered: &[(u32, T)]) -> Self {
        let mut starts = vec![0_u32; count + 1];
        for &(number, _) in numbered {
            starts[number as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut items: Vec<T> = numbered.iter().map(|&(_, item)| item).collect();
        for &(number, item) in numbered {
            let slot = &mut next[number as usize];
            items[*slot as usize] = item;
            *slot += 1;
        }
        Self { items, starts }
    }

    /// Lists one after the other, given where each starts: ascending, from 0 on.
    pub(super) fn of_lists(items: Vec<T>, starts: impl Iterator<Item = u32>) -> Self {
        let end = items.len() as u32;
        Self { items, starts: starts.chain([end]).collect() }
    }

    /// The list of a number; none past the last.
    pub(super) fn of(&self, number: u32) -> &[T] {
        let at = number as usize;
        let bounds = self.starts.get(at).zip(self.starts.get(at + 1));
        bounds.map_or(&[], |(&start, &end)| &self.items[start as usize..end as usize])
    }

    /// All lists, one after the other.
    pub(super) fn all(&self) -> &[T] {
        &self.items
    }

    /// Bytes of memory it takes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.items) + size_of_val(&*self.starts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_the_order_of_their_items() {
        let grouped = Grouped::new(4, &[(2, 'a'), (0, 'b'), (2, 'c'), (3, 'd'), (0, 'e')]);
        let lists: Vec<&[char]> = (0..5).map(|number| grouped.of(number)).collect();
        assert_eq!(lists, [&['b', 'e'][..], &[], &['a', 'c'], &['d'], &[]]);
        assert_eq!(grouped.all(), ['b', 'e', 'a', 'c', 'd']);
        assert!(Grouped::<u8>::default().of(0).is_empty());
    }
}
