//! The ids of calls.

use crate::chat::format::CallIds;

const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// What a call says about its own id.
pub(super) struct Written<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) name: &'a str,
    pub(super) ordinal: Option<&'a str>,
}

/// The id of the call at `index`, which none of `taken` is. The same seed and text give the same id.
pub(super) fn call_id(
    form: CallIds,
    seed: u64,
    index: usize,
    written: &Written,
    taken: &dyn Fn(&str) -> bool,
) -> String {
    let candidate = match form {
        CallIds::Generated => None,
        CallIds::Alphanumeric(length) => written
            .id
            .map(str::to_owned)
            .filter(|id| id.len() == length && id.bytes().all(|byte| byte.is_ascii_alphanumeric())),
        CallIds::Header => {
            let ordinal = written.ordinal.map_or_else(|| index.to_string(), str::to_owned);
            Some(format!("functions.{}:{ordinal}", written.name))
        }
    };
    if let Some(id) = candidate.filter(|id| !taken(id)) {
        return id;
    }
    let mut random = Random::new(seed, index);
    let mut fresh = || match form {
        CallIds::Generated => format!("call_{}", random.letters(24)),
        CallIds::Alphanumeric(length) => random.letters(length),
        CallIds::Header => format!("functions.{}:{}", written.name, random.next() % 1_000_000),
    };
    let mut id = fresh();
    // One in 62^9 at most, and there are few calls: this ends.
    while taken(&id) {
        id = fresh();
    }
    id
}

/// SplitMix64 (Steele, Lea and Flood, 2014): ids must differ, not resist guessing.
struct Random {
    state: u64,
}

impl Random {
    fn new(seed: u64, index: usize) -> Self {
        let mut random = Self { state: seed };
        random.state = random.next() ^ (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        random
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn letters(&mut self, count: usize) -> String {
        let letter = |random: &mut Self| {
            let index = usize::try_from(random.next() % 62).unwrap_or(0);
            LETTERS.get(index).map_or('0', |letter| char::from(*letter))
        };
        (0..count).map(|_| letter(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(form: CallIds, index: usize, id: Option<&str>, taken: &dyn Fn(&str) -> bool) -> String {
        call_id(form, 7, index, &Written { id, name: "dim", ordinal: Some("4") }, taken)
    }

    #[test]
    fn every_form_has_its_shape() {
        let free = |_: &str| false;
        let first = id(CallIds::Generated, 0, Some("x"), &free);
        assert_eq!((first.len(), &first[..5]), (29, "call_"));
        assert_ne!(first, id(CallIds::Generated, 1, None, &free));
        assert_eq!(first, id(CallIds::Generated, 0, None, &free));
        assert_eq!(id(CallIds::Alphanumeric(9), 0, Some("a1b2c3d4e"), &free), "a1b2c3d4e");
        let nine = id(CallIds::Alphanumeric(9), 0, Some("too-short"), &free);
        assert!(nine.len() == 9 && nine.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        assert_eq!(id(CallIds::Header, 0, None, &free), "functions.dim:4");
        let taken = |id: &str| id == "functions.dim:4" || id == "a1b2c3d4e";
        assert_ne!(id(CallIds::Header, 1, None, &taken), "functions.dim:4");
        assert_ne!(id(CallIds::Alphanumeric(9), 1, Some("a1b2c3d4e"), &taken), "a1b2c3d4e");
    }
}
