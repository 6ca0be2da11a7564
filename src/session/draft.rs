//! Guesses of what follows, from what was said before (prompt lookup: Saxena 2023). Code, quotations
//! and forms repeat themselves; a guess that is wrong changes nothing but time.

use crate::TokenId;

/// How many of the last tokens have to come again, at most and at least: the longest that does is
/// the best sign.
const MATCH_MAX: usize = 4;
const MATCH_MIN: usize = 2;

/// How far it looks back.
const LOOK_BACK: usize = 4_096;

/// A text and what may follow it.
#[derive(Debug)]
pub(super) struct Drafter {
    history: Vec<TokenId>,
    most: usize,
}

impl Drafter {
    /// Drafts of at most `most` tokens after `prompt` and what is taken after it.
    pub(super) fn new(prompt: &[TokenId], most: u32) -> Self {
        Self { history: prompt.to_vec(), most: most as usize }
    }

    pub(super) fn take(&mut self, tokens: &[TokenId]) {
        self.history.extend_from_slice(tokens);
    }

    /// What followed the last time that the text was as it is now.
    pub(super) fn draft(&self) -> &[TokenId] {
        let text = &self.history[self.history.len().saturating_sub(LOOK_BACK)..];
        let mut best = (MATCH_MIN - 1, 0);
        // The latest place comes first, and only a longer match beats it.
        for end in (1..text.len()).rev() {
            let same = |back: usize| {
                end.checked_sub(back).is_some_and(|at| text[at] == text[text.len() - back])
            };
            if !same(1) {
                continue;
            }
            let length = (1..=MATCH_MAX).take_while(|&back| same(back)).count();
            if length > best.0 {
                best = (length, end);
                if length == MATCH_MAX {
                    break;
                }
            }
        }
        if best.0 < MATCH_MIN {
            return &[];
        }
        let follows = &text[best.1..];
        &follows[..follows.len().min(self.most)]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn draft(text: &[TokenId], most: u32) -> Vec<TokenId> {
        Drafter::new(text, most).draft().to_vec()
    }

    #[test]
    fn what_followed_before_is_guessed() {
        assert_eq!(draft(&[1, 2, 3, 4, 5, 9, 1, 2], 3), [3, 4, 5]);
        assert_eq!(draft(&[1, 2, 3, 4, 5, 9, 1, 2], 1), [3]);
        assert!(draft(&[1, 2, 3, 4], 3).is_empty());
        assert!(draft(&[7, 1, 8, 1], 3).is_empty(), "one token says little");
        assert!(draft(&[], 3).is_empty());
    }

    #[test]
    fn the_longest_match_wins_then_the_latest() {
        assert_eq!(draft(&[9, 1, 2, 7, 0, 1, 2, 8, 9, 1, 2], 1), [7]);
        assert_eq!(draft(&[1, 2, 7, 0, 1, 2, 8, 3, 1, 2], 1), [8]);
    }

    #[test]
    fn a_text_that_repeats_itself_goes_on_so() {
        assert_eq!(draft(&[5, 5, 5, 5, 5], 4), [5]);
        assert_eq!(draft(&[1, 2, 3, 1, 2, 3, 1, 2], 4), [3, 1, 2]);
    }

    proptest! {
        #[test]
        fn a_draft_is_part_of_the_text(text in proptest::collection::vec(0u32..4, 0..60), most in 1u32..9) {
            let found = draft(&text, most);
            prop_assert!(found.len() <= most as usize);
            if let (false, [.., a, b]) = (found.is_empty(), &text[..]) {
                let whole = [&[*a, *b], &found[..]].concat();
                prop_assert!(text.windows(whole.len()).any(|part| part == whole));
            }
        }
    }
}
