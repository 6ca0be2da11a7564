//! ECMA-262 patterns as automata.

use super::super::{CharSet, Fuel};
use super::alphabet::Alphabet;
use super::ecma::{Ast, Pattern};
use super::lookahead::Shared;
use super::program::Program;
use super::threads::Run;
use super::{Dfa, RegularError};

/// Steps to read a pattern that is only asked whether it is of a simple kind.
const GLANCE_STEPS: u64 = 20_000;

impl Dfa {
    /// Texts in which the ECMA-262 pattern (flag `u`) finds a match; the automaton is minimal.
    ///
    /// `^` and `$` are the start and the end of the text. Look-ahead, look-behind and word
    /// boundaries are exact. Refused: back-references, flags within the pattern, and a look-ahead
    /// within a look-behind.
    pub fn pattern(source: &str, fuel: &mut Fuel<'_>) -> Result<Self, RegularError> {
        compile(&Pattern::parse(source, fuel)?, fuel)
    }

    /// Texts that all of the ECMA-262 pattern (flag `u`) matches.
    pub fn whole_pattern(source: &str, fuel: &mut Fuel<'_>) -> Result<Self, RegularError> {
        let mut pattern = Pattern::parse(source, fuel)?;
        pattern.root = Ast::Concat(vec![Ast::Start, pattern.root, Ast::End]);
        compile(&pattern, fuel)
    }

    /// For a pattern that is nothing but a bounded or unbounded number of characters of one set,
    /// such as `^[a-z]{1,100}$`, `^\d+$` or `^.*$`: the set, the least and the greatest number
    /// (`None`: any). Such a pattern can be followed by counting, however large the numbers are.
    pub fn pattern_is_simple_repeat(source: &str) -> Option<(CharSet, u32, Option<u32>)> {
        let pattern = Pattern::parse(source, &mut Fuel::new(GLANCE_STEPS)).ok()?;
        let Ast::Concat(parts) = pattern.root else { return None };
        let [Ast::Start, part, Ast::End] = parts.as_slice() else { return None };
        match part {
            Ast::Repeat { body, min, max } => Some((one_of(body)?, *min, *max)),
            single => Some((one_of(single)?, 1, Some(1))),
        }
    }
}

fn compile(pattern: &Pattern, fuel: &mut Fuel<'_>) -> Result<Dfa, RegularError> {
    let program = Program::new(pattern, fuel)?;
    let alphabet = Alphabet::new(&program.sets, fuel)?;
    let run =
        Run::new(program.start, program.anchored, program.needs, &Run::at_start(program.needs));
    let table = run.table(&mut Shared::new(&program, &alphabet, fuel))?;
    Ok(table.minimize(fuel)?.to_dfa(&alphabet))
}

/// The set of which the part is one character.
fn one_of(part: &Ast) -> Option<CharSet> {
    match part {
        Ast::Char(character) => {
            let code = u32::from(*character);
            Some(CharSet::new([(code, code)]))
        }
        Ast::Set(set) => Some(set.clone()),
        Ast::Alt(choices) => {
            let sets = choices.iter().map(one_of).collect::<Option<Vec<CharSet>>>()?;
            Some(CharSet::new(sets.iter().flat_map(|set| set.ranges().iter().copied())))
        }
        _ => None,
    }
}
