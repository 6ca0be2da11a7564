//! What the rest of a text must be, for the look-aheads that a thread has passed.

use rustc_hash::FxHashMap;

use super::super::Fuel;
use super::RegularError;
use super::alphabet::Alphabet;
use super::dfa::DEAD;
use super::program::{LookNodes, Program};
use super::table::{Table, UNIVERSAL};
use super::threads::Run;

/// A set of obligations: places in automata that must all accept the rest of the text. The empty
/// one is 0.
pub(super) type Duty = u32;

/// No obligation.
pub(super) const FREE: Duty = 0;

/// Everything that the runs of one pattern share.
pub(super) struct Shared<'p, 'f, 'a> {
    pub(super) program: &'p Program,
    pub(super) alphabet: &'p Alphabet,
    pub(super) fuel: &'f mut Fuel<'a>,
    duties: Duties,
    /// The automata that were made: by look-ahead and what was known of the text before.
    known: FxHashMap<(u32, Box<[u64]>), u32>,
}

/// Sets of obligations, each once.
#[derive(Default)]
struct Duties {
    tables: Vec<Table>,
    sets: Vec<Box<[(u32, u32)]>>,
    ids: FxHashMap<Box<[(u32, u32)]>, Duty>,
}

impl<'p, 'f, 'a> Shared<'p, 'f, 'a> {
    pub(super) fn new(
        program: &'p Program,
        alphabet: &'p Alphabet,
        fuel: &'f mut Fuel<'a>,
    ) -> Self {
        let mut duties = Duties::default();
        duties.id(Vec::new());
        Self { program, alphabet, fuel, duties, known: FxHashMap::default() }
    }

    /// `duty` and the look-ahead `index` besides, at a place of which `key` (as in [`Run`]) is
    /// known; `None` if no text fulfils it.
    pub(super) fn look_ahead(
        &mut self,
        duty: Duty,
        index: u32,
        key: &[u64],
    ) -> Result<Option<Duty>, RegularError> {
        let program = self.program;
        let look = &program.looks[index as usize];
        let before = Run::context(program, look.needs, key);
        let table = match self.known.get(&(index, before.as_slice().into())) {
            Some(&table) => table,
            None => {
                let table = self.table(look, &before)?;
                self.duties.tables.push(table);
                let id = self.duties.tables.len() as u32 - 1;
                self.known.insert((index, before.into()), id);
                id
            }
        };
        let start = self.duties.tables[table as usize].start;
        Ok(self.duties.with(duty, table, start))
    }

    fn table(&mut self, look: &LookNodes, before: &[u64]) -> Result<Table, RegularError> {
        let run = Run::new(look.start, true, look.needs, before);
        let table = run.table(self)?.minimize(self.fuel)?;
        Ok(if look.negated { table.complement() } else { table })
    }

    /// The obligations after a character of `class`; `None` if they cannot be fulfilled.
    pub(super) fn step(&mut self, duty: Duty, class: u32) -> Result<Option<Duty>, RegularError> {
        if duty == FREE {
            return Ok(Some(FREE));
        }
        let set = &self.duties.sets[duty as usize];
        self.fuel.spend(1 + set.len() as u32)?;
        let mut after = Vec::with_capacity(set.len());
        for &(table, state) in set {
            match self.duties.tables[table as usize].row(state)[class as usize] {
                DEAD => return Ok(None),
                UNIVERSAL => {}
                next => after.push((table, next)),
            }
        }
        Ok(Some(self.duties.id(after)))
    }

    /// Whether the text may end with these obligations.
    pub(super) fn may_end(&self, duty: Duty) -> bool {
        let set = self.duties.sets[duty as usize].iter();
        set.copied()
            .all(|(table, state)| self.duties.tables[table as usize].accepting[state as usize])
    }
}

impl Duties {
    fn with(&mut self, duty: Duty, table: u32, state: u32) -> Option<Duty> {
        match state {
            DEAD => return None,
            UNIVERSAL => return Some(duty),
            _ => {}
        }
        let mut set = self.sets[duty as usize].to_vec();
        set.push((table, state));
        Some(self.id(set))
    }

    fn id(&mut self, mut set: Vec<(u32, u32)>) -> Duty {
        set.sort_unstable();
        set.dedup();
        let set: Box<[(u32, u32)]> = set.into();
        if let Some(&id) = self.ids.get(&set) {
            return id;
        }
        let id = self.sets.len() as Duty;
        self.sets.push(set.clone());
        self.ids.insert(set, id);
        id
    }
}
