//! Mutated grammars: an answer or an error, within the budget, and never a panic.

mod grammar_support;

use grammar_support::vocabulary_of;
use pleach::grammar::{CompiledGrammar, Fuel, GrammarSource, Limits};

const SEEDS: [&str; 8] = [
    include_str!("../loadtests/grammars/json.gbnf"),
    include_str!("../loadtests/grammars/clike.gbnf"),
    include_str!("../loadtests/grammars/sql.gbnf"),
    include_str!("../loadtests/grammars/csv.gbnf"),
    include_str!("../loadtests/grammars/chess.gbnf"),
    include_str!("../loadtests/grammars/dates.gbnf"),
    include_str!("../loadtests/grammars/optional.gbnf"),
    "root ::= \"🙂\" [^é-中]{2,} !<extra> <[3]> | (root \"a\"{,}\n# x\n)? .",
];

const PIECES: [&str; 24] = [
    "{0,100000}",
    "{2,}",
    "{1000000000}",
    "*",
    "+",
    "?",
    "(",
    ")",
    "|",
    "\"",
    "[",
    "]",
    "::=",
    "\n",
    "root",
    "ws",
    "\\x00",
    "\\U0010FFFF",
    "[^]",
    "!<extra>",
    "<[1]>",
    "(((((",
    "\"\" ",
    "é",
];

struct Random(u64);

impl Random {
    fn below(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % below.max(1)
    }
}

fn mutate(text: &mut Vec<char>, random: &mut Random) {
    let at = random.below(text.len() + 1);
    let to = (at + random.below(12)).min(text.len());
    match random.below(5) {
        0 => drop(text.drain(at..to)),
        1 => {
            let piece = PIECES[random.below(PIECES.len())];
            text.splice(at..at, piece.chars());
        }
        2 => {
            let copied = text[at..to].to_vec();
            let into = random.below(text.len() + 1);
            text.splice(into..into, copied);
        }
        3 if at < text.len() => {
            let other = random.below(text.len());
            text.swap(at, other);
        }
        _ => {
            let piece = PIECES[random.below(PIECES.len())];
            text.splice(at..to, piece.chars());
        }
    }
}

/// `PLEACH_FUZZ_CASES=100000` for the long run.
#[test]
fn mutated_grammars_never_break_anything() {
    let cases = std::env::var("PLEACH_FUZZ_CASES").ok().and_then(|text| text.parse().ok());
    let vocabulary = vocabulary_of(&["ab", "\":", "  ", "é中", "select", "(("]);
    let limits = Limits {
        compile_steps_max: 300_000,
        nodes_max: 100_000,
        walk_steps_max: 200_000,
        items_max: 512,
        ..Limits::default()
    };
    let mut random = Random(11);
    let (mut compiled, mut ended) = (0usize, 0usize);
    let cases: usize = cases.unwrap_or(3_000);
    for case in 0..cases {
        let mut text: Vec<char> = SEEDS[case % SEEDS.len()].chars().collect();
        for _ in 0..1 + random.below(3) {
            mutate(&mut text, &mut random);
        }
        let source = GrammarSource::Gbnf(text.into_iter().collect());
        let mut fuel = Fuel::new(limits.compile_steps_max);
        let Ok(grammar) = CompiledGrammar::compile(&source, &vocabulary, &limits, &mut fuel) else {
            continue;
        };
        compiled += 1;
        let mut matcher = grammar.matcher();
        let mut bits = vec![0; vocabulary.mask_words()];
        for _ in 0..12 {
            if matcher.fill_mask(&mut bits).is_err() {
                break;
            }
            let count: usize = bits.iter().map(|word| word.count_ones() as usize).sum();
            let nth = random.below(count);
            let ids = 0..vocabulary.len() as u32;
            let mut set = ids.filter(|id| bits[*id as usize / 32] >> (id % 32) & 1 == 1);
            let Some(token) = set.nth(nth) else { break };
            match matcher.accept(token) {
                Ok(()) => {}
                Err(pleach::grammar::MatchError::Limit(_)) => break,
                Err(error) => panic!("{error}: the mask allowed it, in {source:?}"),
            }
        }
        ended += usize::from(matcher.is_complete());
        assert!(grammar.size().bytes < 64 << 20, "{:?} for {source:?}", grammar.size());
    }
    assert!(compiled > cases / 20, "{compiled} of {cases} grammars compile");
    assert!(ended > 0);
}
