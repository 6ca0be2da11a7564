//! From a token as a file spells it to the bytes it stands for.

/// How a vocabulary spells the bytes of its ordinary tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spelling {
    /// One character a byte, in the alphabet that GPT-2 introduced.
    ByteLevel,
    /// Text with `▁` for a space, and `<0x0A>` for a byte that has no token of its own.
    SentencePiece,
}

impl Spelling {
    /// The bytes of an ordinary token.
    ///
    /// A byte-level token with a character outside of the alphabet is taken as it stands, which
    /// is what every reader of these vocabularies does with padding entries.
    pub(super) fn bytes(self, token: &str) -> Vec<u8> {
        match self {
            Self::ByteLevel => token
                .chars()
                .map(byte_of_char)
                .collect::<Option<Vec<u8>>>()
                .unwrap_or_else(|| token.as_bytes().to_vec()),
            Self::SentencePiece => token.replace('▁', " ").into_bytes(),
        }
    }
}

/// The byte that a token such as `<0x0A>` names.
pub(super) fn fallback_byte(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    let well_formed = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if well_formed { u8::from_str_radix(digits, 16).ok() } else { None }
}

/// The character that stands for a byte in a byte-level vocabulary: itself where it is printable
/// in Latin-1, else the next free one from U+0100 on.
#[cfg(any(test, feature = "ggml"))]
pub(super) fn char_of_byte(byte: u8) -> char {
    let code = u32::from(byte);
    let shifted = match byte {
        b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff => code,
        0x00..=0x20 => 0x100 + code,
        0x7f..=0xa0 => 0x100 + 0x21 + (code - 0x7f),
        0xad => 0x100 + 0x43,
    };
    char::from_u32(shifted).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// The inverse of [`char_of_byte`].
fn byte_of_char(c: char) -> Option<u8> {
    let code = u32::from(c);
    let byte = match code {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => code,
        0x100..=0x120 => code - 0x100,
        0x121..=0x142 => code - 0x121 + 0x7f,
        0x143 => 0xad,
        _ => return None,
    };
    u8::try_from(byte).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alphabet_is_a_bijection_over_all_bytes() {
        let chars: std::collections::HashSet<char> = (0..=255).map(char_of_byte).collect();
        assert_eq!(chars.len(), 256);
        for byte in 0..=255u8 {
            assert_eq!(byte_of_char(char_of_byte(byte)), Some(byte), "byte {byte:#x}");
        }
        assert_eq!(char_of_byte(b' '), 'Ġ');
        assert_eq!(char_of_byte(b'\n'), 'Ċ');
    }

    #[test]
    fn tokens_become_bytes() {
        assert_eq!(Spelling::ByteLevel.bytes("Ġthe"), b" the");
        assert_eq!(Spelling::ByteLevel.bytes("Ã©"), "é".as_bytes());
        assert_eq!(Spelling::ByteLevel.bytes("a b"), b"a b");
        assert_eq!(Spelling::SentencePiece.bytes("▁▁the"), b"  the");
    }

    #[test]
    fn byte_tokens_are_read_strictly() {
        assert_eq!(fallback_byte("<0x0A>"), Some(10));
        assert_eq!(fallback_byte("<0xff>"), Some(255));
        for token in ["<0x0A", "0x0A>", "<0x0AB>", "<0x+A>", "<0x>", "<s>", ""] {
            assert_eq!(fallback_byte(token), None, "{token}");
        }
    }
}
