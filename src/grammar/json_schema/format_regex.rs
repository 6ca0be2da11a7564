//! Patterns of ECMA-262, with groups nested a few levels deep.

use super::explore::{Machine, explore};
use crate::grammar::Fuel;
use crate::grammar::regular::{Dfa, RegularError};

/// Stand for a whole group, and for a whole look-around, in patterns without parentheses.
const GROUP: char = '\u{E000}';
const LOOK: char = '\u{E001}';
/// Groups within groups.
const DEPTH_MAX: usize = 3;

/// Patterns, with groups put into patterns that only have places for them.
struct NestMachine {
    flat: Dfa,
    /// State of `flat` after a group, and after a look-around.
    after: [u32; 2],
}

/// A pattern so far.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Nest {
    /// Whether each open group is a look-around, outermost first.
    open: Vec<bool>,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// In a pattern, or right after the parenthesis of a group.
    At {
        state: u32,
        opened: bool,
    },
    /// After `(?`, after `(?<`.
    Question,
    Less,
}

impl Machine for NestMachine {
    type State = Nest;

    fn start(&self) -> Nest {
        Nest { open: Vec::new(), place: Place::At { state: 0, opened: false } }
    }

    fn accepts(&self, nest: &Nest) -> bool {
        let Place::At { state, .. } = nest.place else { return false };
        nest.open.is_empty() && self.may_end(state)
    }

    fn follow(&self, nest: &Nest, to: &mut dyn FnMut(u32, u32, Nest)) {
        let (state, opened) = match nest.place {
            Place::At { state, opened } => (state, opened),
            Place::Question => return self.follow_question(nest, to),
            Place::Less => return self.look(nest, to),
        };
        let mut arms: Vec<(u32, u32, Nest)> = Vec::new();
        let Some(row) = self.flat.states().get(state as usize) else { return };
        for arm in row.arms.iter().filter(|arm| arm.low != u32::from(GROUP)) {
            let place = Place::At { state: arm.next, opened: false };
            arms.push((arm.low, arm.high, Nest { open: nest.open.clone(), place }));
        }
        if self.flat.step(state, GROUP).is_some() && nest.open.len() < DEPTH_MAX {
            let mut open = nest.open.clone();
            open.push(false);
            let place = Place::At { state: 0, opened: true };
            arms.push(('('.into(), '('.into(), Nest { open, place }));
        }
        if self.may_end(state)
            && let Some((&look, outer)) = nest.open.split_last()
        {
            let place = Place::At { state: self.after[usize::from(look)], opened: false };
            arms.push((')'.into(), ')'.into(), Nest { open: outer.to_vec(), place }));
        }
        if opened {
            arms.push(('?'.into(), '?'.into(), Nest { place: Place::Question, ..nest.clone() }));
        }
        arms.sort_by_key(|arm| arm.0);
        for (low, high, next) in arms {
            to(low, high, next);
        }
    }
}

impl NestMachine {
    fn may_end(&self, state: u32) -> bool {
        self.flat.states().get(state as usize).is_some_and(|state| state.accepting)
    }

    fn follow_question(&self, nest: &Nest, to: &mut dyn FnMut(u32, u32, Nest)) {
        self.look_with('!', nest, to);
        let place = Place::At { state: 0, opened: false };
        to(':'.into(), ':'.into(), Nest { place, ..nest.clone() });
        to('<'.into(), '<'.into(), Nest { place: Place::Less, ..nest.clone() });
        self.look_with('=', nest, to);
    }

    fn look(&self, nest: &Nest, to: &mut dyn FnMut(u32, u32, Nest)) {
        self.look_with('!', nest, to);
        self.look_with('=', nest, to);
    }

    fn look_with(&self, sign: char, nest: &Nest, to: &mut dyn FnMut(u32, u32, Nest)) {
        let mut open = nest.open.clone();
        if let Some(innermost) = open.last_mut() {
            *innermost = true;
        }
        to(sign.into(), sign.into(), Nest { open, place: Place::At { state: 0, opened: false } });
    }
}

/// Patterns that every implementation takes, with the flag `u` or without.
pub(super) fn regex(fuel: &mut Fuel<'_>) -> Result<Dfa, RegularError> {
    let flat = Dfa::whole_pattern(&flat(), fuel)?;
    let after = [flat.step(0, GROUP).unwrap_or(0), flat.step(0, LOOK).unwrap_or(0)];
    explore(&NestMachine { flat, after }, fuel)?.minimize(fuel)
}

/// Patterns without parentheses.
fn flat() -> String {
    let escape = r"\\([dDsSwWfnrtv^$\\.*+?()[\]{}|/]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|c[A-Za-z])";
    let digits: Vec<String> = ('0'..='9').map(|low| format!("{low},[{low}-9]")).collect();
    let ranges = "0-[0-9]|1-[1-9]|a-[a-z]|A-[A-Z]";
    let item = format!(r"({ranges}|[^\\\]\-\uE000\uE001]|{escape}|\\-)");
    let class = format!(r"\[\^?{item}*-?\]");
    let counts = format!(
        "([0-9]{{1,3}},?|{}|[0-9],[1-9][0-9]{{1,2}}|[1-9][0-9],[1-9][0-9]{{2}})",
        digits.join("|")
    );
    let atom = format!(r"([^\^$\\.*+?()[\]{{}}|\uE001]|\.|{class}|{escape})");
    let assertion = r"(\^|\$|\\b|\\B|\uE001)";
    let term = format!(r"({atom}([*+?]\??|\{{{counts}\}}\??)?|{assertion})");
    format!(r"{term}*(\|{term}*)*")
}
