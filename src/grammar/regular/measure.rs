//! What can be told of a language: emptiness, lengths, the texts of a finite one.

use super::dfa::{Dfa, SCALARS};

impl Dfa {
    /// Whether there is no text in it.
    pub fn is_never(&self) -> bool {
        self.states().is_empty()
    }

    /// Whether every text is in it.
    pub fn is_any(&self) -> bool {
        let all: u32 = SCALARS.iter().map(|(low, high)| high - low + 1).sum();
        let is_open = |arms: &[super::DfaArm]| {
            arms.iter().map(|arm| arm.high - arm.low + 1).sum::<u32>() == all
        };
        !self.is_never() && self.states().iter().all(|s| s.accepting && is_open(&s.arms))
    }

    /// Characters of the shortest text; `None` if there is no text at all.
    pub fn min_chars(&self) -> Option<u32> {
        // States are numbered breadth first, so the first accepting one met is a nearest one.
        let mut depth = vec![u32::MAX; self.states().len()];
        *depth.first_mut()? = 0;
        for (index, state) in self.states().iter().enumerate() {
            let here = depth[index];
            if state.accepting {
                return Some(here);
            }
            for arm in &state.arms {
                let next = &mut depth[arm.next as usize];
                *next = (*next).min(here + 1);
            }
        }
        None
    }

    /// Characters of the longest text; `None` if there is no longest. Of no text at all: 0.
    pub fn max_chars(&self) -> Option<u32> {
        let order = self.topological()?;
        let mut longest = vec![0_u32; self.states().len()];
        for &state in order.iter().rev() {
            let arms = self.states()[state as usize].arms.iter();
            let most = arms.map(|arm| longest[arm.next as usize] + 1).max();
            longest[state as usize] = most.unwrap_or(0);
        }
        Some(longest.first().copied().unwrap_or(0))
    }

    /// All texts in the order of their characters, if there are no more than `at_most`.
    pub fn finite(&self, at_most: usize) -> Option<Vec<String>> {
        self.topological()?;
        let mut texts = Vec::new();
        let mut text = String::new();
        // For each open state the arm and the character that come next.
        let mut path: Vec<(u32, usize, u32)> = Vec::new();
        if let Some(start) = self.states().first() {
            texts.extend(start.accepting.then(String::new));
            path.push((0, 0, 0));
        }
        while let Some((state, arm_index, character)) = path.last_mut() {
            if texts.len() > at_most {
                return None;
            }
            let Some(arm) = self.states()[*state as usize].arms.get(*arm_index) else {
                path.pop();
                text.pop();
                continue;
            };
            let next_char = char::from_u32((*character).max(arm.low))?;
            if u32::from(next_char) == arm.high {
                (*arm_index, *character) = (*arm_index + 1, 0);
            } else {
                *character = u32::from(next_char) + 1;
            }
            text.push(next_char);
            texts.extend(self.states()[arm.next as usize].accepting.then(|| text.clone()));
            path.push((arm.next, 0, 0));
        }
        (texts.len() <= at_most).then_some(texts)
    }

    /// The states, each before those it leads to; `None` if one leads back to itself.
    pub(super) fn topological(&self) -> Option<Vec<u32>> {
        let mut incoming = vec![0_u32; self.states().len()];
        for arm in self.states().iter().flat_map(|state| &state.arms) {
            incoming[arm.next as usize] += 1;
        }
        let mut order = Vec::with_capacity(incoming.len());
        if incoming.first() == Some(&0) {
            order.push(0);
        }
        let mut at = 0;
        while let Some(&state) = order.get(at) {
            at += 1;
            for arm in &self.states()[state as usize].arms {
                incoming[arm.next as usize] -= 1;
                if incoming[arm.next as usize] == 0 {
                    order.push(arm.next);
                }
            }
        }
        (order.len() == incoming.len()).then_some(order)
    }
}
