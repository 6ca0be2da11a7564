//! Texts by an automaton over characters, and how its characters are written.

use smallvec::SmallVec;

use super::regular::{Classifier, Dfa, DfaArm};

/// How a character is written in the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spelling {
    /// As itself.
    Plain,
    /// As itself, but for what JSON demands to be escaped in a string; that has one spelling:
    /// the short escape where there is one, else `\u` and four lower-case digits.
    Json,
    /// As Python writes it between single quotes: as JSON does between its quotes, but that the
    /// apostrophe is escaped and the quote is not.
    SingleQuoted,
}

/// An automaton over characters, written out as text.
///
/// Invariant: every state reaches one where the text may end.
#[derive(Clone, Debug)]
pub struct TextMachine {
    /// The states; a text starts in the first.
    pub states: Vec<TextState>,
    /// How its characters are written.
    pub spelling: Spelling,
    /// Greatest number of characters; `None`: any.
    pub max_chars: Option<u32>,
    /// The number of the language, if it is one that all grammars share.
    pub(super) shared: Option<u32>,
}

/// A place in a text.
#[derive(Clone, Debug)]
pub struct TextState {
    /// Where characters lead: ascending, disjoint.
    pub arms: SmallVec<[DfaArm; 4]>,
    /// What the text is if it ends here; `None`: it may not end.
    pub end: Option<u32>,
}

impl TextMachine {
    /// The texts of a language, all of one kind: 0.
    pub fn of_language(language: &Dfa, spelling: Spelling) -> Self {
        let states = language.states().iter().map(|state| TextState {
            arms: (&*state.arms).into(),
            end: state.accepting.then_some(0),
        });
        Self { states: states.collect(), spelling, max_chars: None, shared: None }
    }

    /// The texts that a classifier tells apart, as far as `end` gives their label a kind.
    pub fn of_classes(
        classes: &Classifier,
        spelling: Spelling,
        end: impl Fn(u32) -> Option<u32>,
    ) -> Self {
        let states = classes
            .states()
            .iter()
            .map(|state| TextState { arms: (&*state.arms).into(), end: end(state.label) });
        let states = states.collect();
        let mut machine = Self { states, spelling, max_chars: None, shared: None };
        machine.trim();
        machine
    }

    /// Least number of characters from each state to an end; `u32::MAX`: there is none.
    pub(super) fn chars_to_end(&self) -> Vec<u32> {
        self.least_to_ends(|_| 0, |_| 1)
    }

    /// Least bytes from each state to an end and on from there, given what it takes after an end of
    /// each kind; `u32::MAX`: there is no way.
    pub(super) fn bytes_to_ends(&self, after: impl Fn(u32) -> u32) -> Vec<u32> {
        self.least_to_ends(after, |arm| self.spelling.least_bytes(arm.low, arm.high))
    }

    /// The least way from each state to an end and on from there, by what arms cost: at least 1.
    fn least_to_ends(&self, after: impl Fn(u32) -> u32, cost: impl Fn(&DfaArm) -> u32) -> Vec<u32> {
        let ends = self.states.iter().map(|state| state.end.map_or(u32::MAX, &after));
        let mut least: Vec<u32> = ends.collect();
        let (mut changed, mut goes_back) = (true, false);
        while changed {
            changed = false;
            // Most arms lead to states that come later; if all do, once is enough.
            for (from, state) in self.states.iter().enumerate().rev() {
                for arm in &state.arms {
                    goes_back |= (arm.next as usize) < from;
                    let rest = least[arm.next as usize];
                    if rest < least[from].saturating_sub(1) {
                        let all = rest.saturating_add(cost(arm));
                        changed |= all < least[from];
                        least[from] = all.min(least[from]);
                    }
                }
            }
            changed &= goes_back;
        }
        least
    }

    /// Whether no arm leads to an earlier state.
    pub(super) fn goes_forward(&self) -> bool {
        let leads_on = |(from, state): (usize, &TextState)| {
            state.arms.iter().all(|arm| arm.next as usize >= from)
        };
        self.states.iter().enumerate().all(leads_on)
    }

    /// Least bytes from the first state to each; `u32::MAX`: there is no way.
    pub(super) fn bytes_from_start(&self) -> Vec<u32> {
        let mut bytes = vec![u32::MAX; self.states.len()];
        bytes.first_mut().into_iter().for_each(|start| *start = 0);
        let (mut changed, mut goes_back) = (true, false);
        while changed {
            changed = false;
            for (from, state) in self.states.iter().enumerate() {
                for arm in &state.arms {
                    goes_back |= (arm.next as usize) < from;
                    let known = bytes[arm.next as usize];
                    if bytes[from] < known.saturating_sub(1) {
                        let least = self.spelling.least_bytes(arm.low, arm.high);
                        let all = bytes[from].saturating_add(least);
                        changed |= all < known;
                        bytes[arm.next as usize] = all.min(known);
                    }
                }
            }
            changed &= goes_back;
        }
        bytes
    }

    /// Takes away the arms to states from which no text ends.
    pub(in crate::grammar) fn trim(&mut self) {
        let alive = self.chars_to_end();
        for state in &mut self.states {
            let is_alive = |arm: &DfaArm| alive[arm.next as usize] != u32::MAX;
            if !state.arms.iter().all(is_alive) {
                state.arms = state.arms.iter().copied().filter(is_alive).collect();
            }
        }
    }

    /// All texts with their kinds, if there are no more than `at_most`.
    pub(in crate::grammar) fn texts(&self, at_most: usize) -> Option<Vec<(String, u32)>> {
        let mut texts = Vec::new();
        let mut open = vec![(String::new(), 0u32)];
        while let Some((text, state)) = open.pop() {
            // A text as long as there are states has gone round in a circle.
            if open.len() + texts.len() > at_most || text.chars().count() > self.states.len() {
                return None;
            }
            let Some(state) = self.states.get(state as usize) else { continue };
            if let Some(kind) = state.end {
                texts.push((text.clone(), kind));
            }
            for arm in &state.arms {
                if (arm.high - arm.low) as usize > at_most {
                    return None;
                }
                for character in (arm.low..=arm.high).filter_map(char::from_u32) {
                    let mut longer = text.clone();
                    longer.push(character);
                    open.push((longer, arm.next));
                }
            }
        }
        texts.sort_unstable();
        (texts.len() <= at_most).then_some(texts)
    }

    /// The characters that may come, if they are the same at all places.
    pub(super) fn takes(&self) -> Option<CharRanges> {
        let takes = covered(&self.states.first()?.arms);
        self.states.iter().all(|state| covered(&state.arms) == takes).then_some(takes)
    }

    /// The states from which nothing leads elsewhere, those that more characters lead to first, if
    /// the same characters may come at all places.
    pub(super) fn final_states(&self) -> Vec<usize> {
        if self.takes().is_none() {
            return Vec::new();
        }
        let is_final = |state: &usize| {
            let arms = &self.states[*state].arms;
            !arms.is_empty() && arms.iter().all(|arm| arm.next as usize == *state)
        };
        let mut finals: Vec<usize> = (0..self.states.len()).filter(is_final).collect();
        let width = |state: &usize| {
            let arms = self.states[0].arms.iter().filter(|arm| arm.next as usize == *state);
            std::cmp::Reverse(arms.map(|arm| arm.high - arm.low + 1).sum::<u32>())
        };
        finals.sort_by_key(width);
        finals
    }

    /// Whether the empty text is in it.
    pub fn may_be_empty(&self) -> bool {
        self.states.first().is_some_and(|start| start.end.is_some())
    }

    /// Whether no text is in it.
    pub fn is_never(&self) -> bool {
        self.states.is_empty() || self.chars_to_end()[0] == u32::MAX
    }
}

/// Characters: ascending, disjoint, apart.
pub(super) type CharRanges = SmallVec<[(u32, u32); 4]>;

/// The characters that some arms take.
pub(super) fn covered(arms: &[DfaArm]) -> CharRanges {
    let mut ranges = CharRanges::new();
    for arm in arms {
        match ranges.last_mut() {
            Some(last) if last.1 + 1 == arm.low => last.1 = arm.high,
            _ => ranges.push((arm.low, arm.high)),
        }
    }
    ranges
}

/// Characters that JSON escapes by a letter, and the letter.
const SHORT_ESCAPES: [(u8, u8); 7] = [
    (0x08, b'b'),
    (0x09, b't'),
    (0x0A, b'n'),
    (0x0C, b'f'),
    (0x0D, b'r'),
    (b'"', b'"'),
    (b'\\', b'\\'),
];

impl Spelling {
    /// The letter after a backslash that stands for a character, if it is escaped so.
    pub(super) fn short_escape(self, character: u32) -> Option<u8> {
        match (self, character) {
            (Self::Plain, _) | (Self::SingleQuoted, 0x22) => None,
            (Self::SingleQuoted, 0x27) => Some(b'\''),
            _ => SHORT_ESCAPES
                .iter()
                .find(|&&(short, _)| u32::from(short) == character)
                .map(|&(_, letter)| letter),
        }
    }

    /// Whether a character is not written as itself.
    pub(super) fn is_escaped(self, character: u32) -> bool {
        self != Self::Plain && (character < 0x20 || self.short_escape(character).is_some())
    }

    /// Bytes that a character takes.
    pub(super) fn bytes_of(self, character: u32) -> u32 {
        match (self.is_escaped(character), character) {
            (true, _) if self.short_escape(character).is_some() => 2,
            (true, _) => 6,
            (_, 0..0x80) => 1,
            (_, 0x80..0x800) => 2,
            (_, 0x800..0x1_0000) => 3,
            _ => 4,
        }
    }

    /// A text as it is written.
    pub(in crate::grammar) fn spelled(self, text: &str) -> String {
        let mut spelled = String::with_capacity(text.len());
        for character in text.chars() {
            let code = u32::from(character);
            match (self.short_escape(code), self.is_escaped(code)) {
                (Some(letter), _) => {
                    spelled.push('\\');
                    spelled.push(char::from(letter));
                }
                (None, true) => spelled.push_str(&format!("\\u{code:04x}")),
                (None, false) => spelled.push(character),
            }
        }
        spelled
    }

    /// Fewest bytes that a character of a range takes.
    pub(super) fn least_bytes(self, low: u32, high: u32) -> u32 {
        // Few characters of ASCII that can be printed are escaped.
        if (low.max(0x20)..=high.min(0x7F)).any(|character| self.bytes_of(character) == 1) {
            return 1;
        }
        // Characters beyond ASCII never get shorter, so so many tell.
        let last = high.min(low.max(0x80));
        (low..=last).map(|character| self.bytes_of(character)).min().unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::{DfaArm, Spelling, TextMachine, TextState};

    /// `"`, then `é`s, or a control character and `x`; the quote and the control are escaped.
    fn machine() -> TextMachine {
        let arm = |character: u32, next| DfaArm { low: character, high: character, next };
        let state = |arms: &[DfaArm], end| TextState { arms: arms.into(), end };
        let states = vec![
            state(&[arm(0x22, 1), arm(0x01, 2)], None),
            state(&[arm(0xE9, 1)], Some(0)),
            state(&[arm(0x78, 3)], None),
            state(&[], Some(1)),
        ];
        TextMachine { states, spelling: Spelling::Json, max_chars: None, shared: None }
    }

    #[test]
    fn ways_are_counted_in_bytes() {
        let machine = machine();
        assert_eq!(machine.bytes_from_start(), [0, 2, 6, 7]);
        assert_eq!(machine.bytes_to_ends(|_| 0), [2, 0, 1, 0]);
        assert_eq!(machine.bytes_to_ends(|kind| if kind == 0 { 9 } else { 0 }), [7, 9, 1, 0]);
        let only_first = |kind| if kind == 0 { 3 } else { u32::MAX };
        assert_eq!(machine.bytes_to_ends(only_first), [5, 3, u32::MAX, u32::MAX]);
        assert_eq!(machine.chars_to_end(), [1, 0, 1, 0]);
    }

    #[test]
    fn spellings_escape_their_own_quote() {
        let text = "a'\"\\\n\u{1}\u{7F}ü";
        for (spelling, spelled) in [
            (Spelling::Plain, text),
            (Spelling::Json, "a'\\\"\\\\\\n\\u0001\u{7F}ü"),
            (Spelling::SingleQuoted, "a\\'\"\\\\\\n\\u0001\u{7F}ü"),
        ] {
            assert_eq!(spelling.spelled(text), spelled);
            let bytes = text.chars().map(|character| spelling.bytes_of(character.into()));
            assert_eq!(bytes.sum::<u32>() as usize, spelled.len(), "{spelling:?}");
        }
    }

    #[test]
    fn the_cheapest_of_a_range_counts() {
        for spelling in [Spelling::Plain, Spelling::Json, Spelling::SingleQuoted] {
            for (low, high) in
                [(0, 0x1F), (0x22, 0x22), (0x20, 0x22), (0x27, 0x27), (1, 0x10FFFF), (0x5C, 0x900)]
            {
                let least = (low..=high).map(|character| spelling.bytes_of(character)).min();
                assert_eq!(Some(spelling.least_bytes(low, high)), least, "{low} {high}");
            }
        }
    }
}
