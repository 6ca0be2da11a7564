//! Which characters a state need not tell apart, so that each kind is followed once.

use super::alphabet::Alphabet;
use super::lookahead::Duty;

/// Classes that the sets of one state do not tell apart.
#[derive(Default)]
pub(super) struct Groups {
    /// The group of each class.
    pub(super) of: Vec<u32>,
    /// Where the characters of each group lead, once that is known.
    pub(super) next: Vec<Option<u32>>,
    /// For each group the one that its members move to, and the set because of which they do.
    moves: Vec<(u32, u32)>,
    /// For each set the round that it was last dealt with in.
    done: Vec<u32>,
    round: u32,
}

impl Groups {
    /// Divides the classes anew; how often one was moved to another group.
    pub(super) fn divide(
        &mut self,
        sets: &[(u32, u32, Duty)],
        has_duties: bool,
        is_word: &[bool],
        alphabet: &Alphabet,
    ) -> u32 {
        self.of.clear();
        self.next.clear();
        if has_duties {
            self.of.extend(0..is_word.len() as u32);
            self.next.resize(is_word.len(), None);
            return 0;
        }
        self.of.extend(is_word.iter().map(|&is_word| u32::from(is_word)));
        self.moves.clear();
        self.moves.resize(2, (0, u32::MAX));
        self.done.resize(alphabet.set_count(), 0);
        self.round += 1;
        let mut moved = 0;
        for &(set, ..) in sets {
            if std::mem::replace(&mut self.done[set as usize], self.round) == self.round {
                continue;
            }
            moved += alphabet.classes(set).len() as u32;
            for &class in alphabet.classes(set) {
                let group = &mut self.of[class as usize];
                if self.moves[*group as usize].1 != set {
                    self.moves[*group as usize] = (self.moves.len() as u32, set);
                    self.moves.push((0, u32::MAX));
                }
                *group = self.moves[*group as usize].0;
            }
        }
        self.next.resize(self.moves.len(), None);
        moved
    }
}
