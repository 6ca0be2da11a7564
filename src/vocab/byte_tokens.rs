//! The vocabulary of the simulated device: a token for each byte, and a few control tokens.

use std::sync::{Arc, LazyLock};

use super::{Token, TokenKind, Vocabulary};
use crate::TokenId;
use crate::device::simulated::{BOS, CONTROL, END};

/// The vocabulary, made once.
pub fn byte_vocabulary() -> Arc<Vocabulary> {
    static VOCABULARY: LazyLock<Arc<Vocabulary>> = LazyLock::new(|| {
        let bytes = (0..=u8::MAX).map(|byte| Token { bytes: vec![byte], kind: TokenKind::Text });
        let control = CONTROL
            .iter()
            .map(|(_, name)| Token { bytes: name.as_bytes().to_vec(), kind: TokenKind::Control });
        Arc::new(Vocabulary::new(bytes.chain(control).collect(), &[END], Some(BOS)))
    });
    Arc::clone(&VOCABULARY)
}

/// The tokens of a text. `parse_special`: the names of control tokens in it become those tokens.
pub fn encode_bytes(text: &str, parse_special: bool) -> Vec<TokenId> {
    let mut tokens = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.bytes().next() {
        let control = CONTROL.iter().find(|(_, name)| parse_special && rest.starts_with(name));
        if let Some(&(id, name)) = control {
            tokens.push(id);
            rest = &rest[name.len()..];
            continue;
        }
        let length = rest.chars().next().map_or(1, char::len_utf8);
        tokens.push(TokenId::from(first));
        tokens.extend(rest.bytes().take(length).skip(1).map(TokenId::from));
        rest = &rest[length..];
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_its_bytes_and_control_tokens_are_parsed_where_asked() {
        assert_eq!(encode_bytes("é<|end|>", true), [0xC3, 0xA9, END]);
        assert_eq!(encode_bytes("<|end|>", false).len(), "<|end|>".len());
        assert_eq!(byte_vocabulary().bytes(END), b"<|end|>");
        assert!(byte_vocabulary().is_end(END));
    }
}
