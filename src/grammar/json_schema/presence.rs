//! Which properties are there: disjunctions of partial assignments.

use smallvec::SmallVec;

use crate::grammar::LimitError;

use super::atom::{Atom, NameId, Types};
use super::conj::{Literal, NodeId};
use super::expand::{Disjunction, Goal};
use super::graph::Graph;
use super::shaper::Shaper;

/// Assignments beyond this are not kept in one list.
pub(super) const ENTRIES_MAX: usize = 256;

/// Properties that are there (true) or not, by name; ascending, each once.
pub(super) type Entry = SmallVec<[(NameId, bool); 4]>;

/// Any of the entries; none is implied by another. Empty: impossible.
pub(super) type Entries = Vec<Entry>;

/// Both entries. `None`: they contradict each other.
fn join(first: &Entry, second: &Entry) -> Option<Entry> {
    let mut out = Entry::with_capacity(first.len() + second.len());
    let (mut left, mut right) = (first.iter().peekable(), second.iter().peekable());
    loop {
        let next = match (left.peek(), right.peek()) {
            (Some(&&a), Some(&&b)) if a.0 == b.0 => {
                if a.1 != b.1 {
                    return None;
                }
                left.next();
                right.next()
            }
            (Some(a), Some(b)) => {
                if a.0 < b.0 {
                    left.next()
                } else {
                    right.next()
                }
            }
            (Some(_), None) => left.next(),
            (None, _) => right.next(),
        };
        match next {
            Some(&assignment) => out.push(assignment),
            None => return Some(out),
        }
    }
}

/// Whether every assignment of `weaker` is in `stronger`.
fn implies(stronger: &Entry, weaker: &Entry) -> bool {
    weaker.len() <= stronger.len()
        && weaker.iter().all(|assignment| stronger.binary_search(assignment).is_ok())
}

/// The entry that two leave together, if they differ only in whether one property is there.
fn resolve(first: &Entry, second: &Entry) -> Option<Entry> {
    let mut differing = first.iter().zip(second).filter(|(a, b)| a != b);
    let (one, other) = differing.next()?;
    let resolves = first.len() == second.len() && one.0 == other.0 && differing.next().is_none();
    resolves.then(|| first.iter().copied().filter(|assignment| assignment != one).collect())
}

/// Adds an entry, unless another one implies it; drops those that it implies.
pub(super) fn add(entries: &mut Entries, mut entry: Entry) {
    loop {
        if entries.iter().any(|other| implies(&entry, other)) {
            return;
        }
        let resolved =
            entries.iter().enumerate().find_map(|(at, other)| Some((at, resolve(other, &entry)?)));
        match resolved {
            Some((at, resolved)) => {
                entries.remove(at);
                entry = resolved;
            }
            None => break,
        }
    }
    entries.retain(|other| !implies(other, &entry));
    entries.push(entry);
}

/// One of `first` and one of `second`. `None`: too many.
pub(super) fn product(first: &Entries, second: &Entries) -> Option<Entries> {
    let mut out = Entries::new();
    for a in first {
        for b in second {
            if let Some(joined) = join(a, b) {
                add(&mut out, joined);
            }
        }
        if out.len() > ENTRIES_MAX {
            return None;
        }
    }
    Some(out)
}

/// One of either. `None`: too many.
fn union(mut first: Entries, second: Entries) -> Option<Entries> {
    second.into_iter().for_each(|entry| add(&mut first, entry));
    (first.len() <= ENTRIES_MAX).then_some(first)
}

fn always() -> Entries {
    vec![Entry::new()]
}

fn single(name: NameId, there: bool) -> Entries {
    vec![Entry::from_slice(&[(name, there)])]
}

/// All of the names.
fn all(names: &[NameId]) -> Entries {
    let mut entry: Entry = names.iter().map(|&name| (name, true)).collect();
    entry.sort_unstable();
    vec![entry]
}

/// What a disjunction says, if it is about nothing but which properties an object has.
pub(super) struct PresenceReader<'s, 'a, 'f> {
    pub(super) shaper: &'s mut Shaper<'a, 'f>,
}

/// `Ok(None)`: it is about something else, or takes too many entries.
type Read = Result<Option<Entries>, LimitError>;

impl PresenceReader<'_, '_, '_> {
    pub(super) fn disjunction(&mut self, open: &Disjunction) -> Read {
        let mut out = Entries::new();
        for choice in &open.choices {
            let mut entries = always();
            for goal in choice {
                let Some(read) = self.goal(goal)? else { return Ok(None) };
                let Some(joined) = product(&entries, &read) else { return Ok(None) };
                entries = joined;
            }
            let Some(joined) = union(out, entries) else { return Ok(None) };
            out = joined;
        }
        Ok(Some(out))
    }

    fn goal(&mut self, goal: &Goal) -> Read {
        match goal {
            Goal::Literal(literal) => self.literal(*literal),
            Goal::Atom { node, atom, positive } => {
                let graph = self.shaper.graph;
                match graph.atoms(*node).get(*atom as usize) {
                    Some(atom) => self.atom(atom, *positive),
                    None => Ok(None),
                }
            }
            Goal::Present(name) => Ok(Some(single(*name, true))),
            Goal::Absent(name) => Ok(Some(single(*name, false))),
            _ => Ok(None),
        }
    }

    fn literal(&mut self, literal: Literal) -> Read {
        self.shaper.fuel.spend(1)?;
        let graph = self.shaper.graph;
        if !graph.upper(literal).meets(Types::OBJECT) {
            return Ok(Some(Entries::new()));
        }
        if graph.lower(literal).meets(Types::OBJECT) {
            return Ok(Some(always()));
        }
        let atoms = graph.atoms(literal.node);
        let relevant = atoms.iter().filter(|atom| atom.domain().meets(Types::OBJECT));
        self.fold(relevant, literal.positive, |reader, atom| reader.atom(atom, literal.positive))
    }

    /// All of the parts if `conjunctive`, else any of them.
    fn fold<T>(
        &mut self,
        parts: impl IntoIterator<Item = T>,
        conjunctive: bool,
        read: impl Fn(&mut Self, T) -> Read,
    ) -> Read {
        let mut out = if conjunctive { always() } else { Entries::new() };
        for part in parts {
            let Some(entries) = read(self, part)? else { return Ok(None) };
            self.shaper.fuel.spend((out.len() * entries.len()) as u32)?;
            let joined = if conjunctive { product(&out, &entries) } else { union(out, entries) };
            match joined {
                Some(joined) => out = joined,
                None => return Ok(None),
            }
        }
        Ok(Some(out))
    }

    fn nodes(&mut self, nodes: &[NodeId], positive: bool, conjunctive: bool) -> Read {
        self.fold(nodes, conjunctive, |reader, &node| reader.literal(Literal { node, positive }))
    }

    fn atom(&mut self, atom: &Atom, positive: bool) -> Read {
        match atom {
            Atom::Type(types) => Ok(Some(if types.meets(Types::OBJECT) == positive {
                always()
            } else {
                Entries::new()
            })),
            Atom::Required(names) if positive => Ok(Some(all(names))),
            Atom::Required(names) => {
                self.fold(names.iter(), false, |_, &name| Ok(Some(single(name, false))))
            }
            Atom::DependentRequired(list) => self.fold(list.iter(), positive, |_, (key, names)| {
                if positive {
                    return Ok(union(single(*key, false), all(names)));
                }
                let missing = names.iter().fold(Entries::new(), |mut missing, &name| {
                    add(&mut missing, Entry::from_slice(&[(name, false)]));
                    missing
                });
                Ok(product(&single(*key, true), &missing))
            }),
            Atom::DependentSchemas(list) => {
                self.fold(list.iter(), positive, |reader, &(key, node)| {
                    let Some(entries) = reader.literal(Literal { node, positive })? else {
                        return Ok(None);
                    };
                    Ok(if positive {
                        union(single(key, false), entries)
                    } else {
                        product(&single(key, true), &entries)
                    })
                })
            }
            Atom::All(_, nodes) => self.nodes(nodes, positive, positive),
            Atom::Any(nodes) => self.nodes(nodes, positive, !positive),
            Atom::Not(node) => self.literal(Literal { node: *node, positive: !positive }),
            Atom::One(nodes) if positive => {
                let indices = 0..nodes.len();
                self.fold(indices, false, |reader, chosen| {
                    reader.fold(nodes.iter().enumerate(), true, |reader, (index, &node)| {
                        reader.literal(Literal { node, positive: index == chosen })
                    })
                })
            }
            Atom::If(condition) => {
                let branches = [(true, condition.then), (false, condition.otherwise)];
                self.fold(branches, false, |reader, (held, branch)| {
                    let test = Literal { node: condition.test, positive: held };
                    let branch = Literal { node: branch, positive };
                    reader.fold([test, branch], true, |reader, literal| reader.literal(literal))
                })
            }
            Atom::Properties(rule) if rule.leaves_free() => {
                // Declared without demands, or never there.
                let decided =
                    |&(_, node): &(NameId, NodeId)| [Graph::ANY, Graph::NEVER].contains(&node);
                if !rule.declared.iter().all(decided) {
                    return Ok(None);
                }
                let never = rule.declared.iter().filter(|declared| declared.1 == Graph::NEVER);
                self.fold(never, positive, |_, &(name, _)| Ok(Some(single(name, !positive))))
            }
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str) -> Entry {
        let mut entry: Entry = text
            .split_whitespace()
            .map(|name| match name.strip_prefix('!') {
                Some(name) => (NameId(u32::from(name.as_bytes()[0])), false),
                None => (NameId(u32::from(name.as_bytes()[0])), true),
            })
            .collect();
        entry.sort_unstable();
        entry
    }

    fn entries(texts: &[&str]) -> Entries {
        texts.iter().map(|text| entry(text)).collect()
    }

    #[test]
    fn products_drop_contradictions_and_what_is_implied() {
        let product = product(&entries(&["a", "!a b"]), &entries(&["a c", "b"])).unwrap();
        assert_eq!(product, entries(&["a c", "b"]));
        assert_eq!(super::product(&entries(&["a"]), &entries(&["!a"])), Some(Entries::new()));
    }

    #[test]
    fn adding_keeps_the_weakest() {
        let mut all = entries(&["a b", "c"]);
        add(&mut all, entry("c d"));
        assert_eq!(all, entries(&["a b", "c"]));
        add(&mut all, entry("b"));
        assert_eq!(all, entries(&["c", "b"]));
        add(&mut all, entry("!b"));
        assert_eq!(all, entries(&[""]));
    }

    #[test]
    fn too_many_are_refused() {
        // Either both of a pair or none: nothing implies anything.
        let pair = |pair: u32| {
            vec![
                Entry::from_slice(&[(NameId(2 * pair), true), (NameId(2 * pair + 1), true)]),
                Entry::from_slice(&[(NameId(2 * pair), false), (NameId(2 * pair + 1), false)]),
            ]
        };
        let mut all = always();
        for number in 0..8 {
            all = product(&all, &pair(number)).unwrap();
        }
        assert_eq!(all.len(), ENTRIES_MAX);
        assert_eq!(product(&all, &pair(8)), None);
    }
}
