//! From token bytes, which may end inside a character, to text that never does.

/// Turns a stream of bytes into text, piece by piece.
///
/// The pieces put together equal [`String::from_utf8_lossy`] of all bytes, however they were cut:
/// bytes that can no longer become a character turn into U+FFFD, one for each maximal subpart
/// (The Unicode Standard, section 3.9), and the start of a character waits for its rest.
#[derive(Clone, Debug, Default)]
pub struct TextAssembler {
    /// The start of a character that is not complete yet: at most 3 bytes.
    held: Vec<u8>,
}

impl TextAssembler {
    /// An assembler that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes and gives out all text that is certain now.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let mut pending = std::mem::take(&mut self.held);
        pending.extend_from_slice(bytes);
        let mut text = String::with_capacity(pending.len());
        let mut rest = pending.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    return text;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    let Some(broken) = error.error_len() else {
                        self.held = after.to_vec();
                        return text;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    rest = after.get(broken..).unwrap_or_default();
                }
            }
        }
    }

    /// Ends the stream: an incomplete character becomes one U+FFFD. The assembler is empty after.
    pub fn finish(&mut self) -> String {
        if self.held.is_empty() {
            return String::new();
        }
        self.held.clear();
        char::REPLACEMENT_CHARACTER.to_string()
    }

    /// The bytes that wait for the rest of their character.
    pub fn held(&self) -> &[u8] {
        &self.held
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn assemble(chunks: &[&[u8]]) -> String {
        let mut assembler = TextAssembler::new();
        let mut text = String::new();
        for chunk in chunks {
            text.push_str(&assembler.push(chunk));
            assert!(assembler.held().len() <= 3);
        }
        text.push_str(&assembler.finish());
        assert!(assembler.held().is_empty());
        text
    }

    #[test]
    fn a_character_waits_for_its_last_byte() {
        let mut assembler = TextAssembler::new();
        assert_eq!(assembler.push(b"a\xf0"), "a");
        assert_eq!(assembler.push(b"\x9f\x98"), "");
        assert_eq!(assembler.held(), b"\xf0\x9f\x98");
        assert_eq!(assembler.push(b"\x80!"), "😀!");
        assert_eq!(assembler.finish(), "");
    }

    #[test]
    fn broken_bytes_are_replaced_as_soon_as_they_are_certain() {
        let mut assembler = TextAssembler::new();
        assert_eq!(assembler.push(b"\xff"), "\u{fffd}");
        assert_eq!(assembler.push(b"\xe2\x82"), "");
        assert_eq!(assembler.push(b"x"), "\u{fffd}x");
        assert_eq!(assembler.push(b"\xe2"), "");
        assert_eq!(assembler.finish(), "\u{fffd}");
        assert_eq!(assembler.finish(), "");
    }

    #[test]
    fn surrogates_and_overlong_forms_follow_the_maximal_subpart_rule() {
        for bytes in [&b"\xed\xa0\x80"[..], b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\xe0\x80\x80"] {
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(assemble(&single), String::from_utf8_lossy(bytes));
        }
    }

    /// Bytes that are often nearly valid: characters of every length, cut and mixed with noise.
    fn awkward_bytes() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            any::<char>().prop_map(|c| c.to_string().into_bytes()),
            (any::<char>(), 0usize..4).prop_map(|(c, keep)| {
                let mut bytes = c.to_string().into_bytes();
                bytes.truncate(keep);
                bytes
            }),
            proptest::collection::vec(any::<u8>(), 0..4),
            proptest::collection::vec(0x80u8..=0xff, 0..4),
        ];
        proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn every_chunking_gives_the_lossy_text(
            bytes in awkward_bytes(),
            cuts in proptest::collection::vec(0usize..96, 0..16),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
            prop_assert_eq!(assemble(&chunks), String::from_utf8_lossy(&bytes));
        }
    }
}
