//! Which tokens end an answer, and the kinds that files are known to get wrong.

use super::{Token, TokenKind, Vocabulary};
use crate::TokenId;

/// Tokens that end a turn or a text in every model that has one of that name. Files often name
/// only one of several, as llama.cpp found; its list is followed, since a model is tested there.
const END_MARKERS: [&str; 21] = [
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
    "<|fim_pad|>",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<|file_sep|>",
    "_<EOT>",
];

/// Names that end an answer only where the file marks the token as an added one. Elsewhere it is
/// ordinary text: Qwen's vocabularies hold HTML's `</s>`, at which no answer may end. (llama.cpp
/// does not make that difference.)
const END_NAMES: [&str; 12] = [
    "</s>",
    "<EOT>",
    "[EOT]",
    "[EOS]",
    "<eos>",
    "<fim-pad>",
    "<fim_pad>",
    "<PAD>",
    "[PAD]",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
];

/// The names above that are ordinary text in this vocabulary.
pub(super) fn ordinary_names(vocabulary: &Vocabulary) -> Vec<&'static str> {
    let mut names = Vec::new();
    for id in 0..vocabulary.len() {
        let token = TokenId::try_from(id).ok().and_then(|id| vocabulary.get(id));
        let ordinary = token.filter(|token| token.kind == TokenKind::Text);
        names.extend(END_NAMES.iter().filter(|name| ordinary.is_some_and(|t| is(t, name))));
    }
    names
}

/// Markers of the Harmony format that the chat parser must see in the text.
const VISIBLE_TEXTS: [&str; 4] = ["<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"];

/// Corrects kinds and gives every token that ends an answer: `named` by the model's files, and
/// those known by their text.
pub(super) fn settle(tokens: &mut [Token], named: &[TokenId]) -> Vec<TokenId> {
    let id_of = |tokens: &[Token], text: &str| {
        let found = tokens.iter().position(|token| is(token, text));
        found.and_then(|index| TokenId::try_from(index).ok())
    };
    let mut ends = named.to_vec();
    for (id, token) in (0..).zip(tokens.iter_mut()) {
        let added = matches!(token.kind, TokenKind::Control | TokenKind::UserDefined);
        let named = |names: &[&str]| names.iter().any(|name| is(token, name));
        if named(&END_MARKERS) || (added && named(&END_NAMES)) {
            token.kind = TokenKind::Control;
            ends.push(id);
        } else if named(&VISIBLE_TEXTS) {
            token.kind = TokenKind::UserDefined;
        }
    }
    // In Harmony and its kin `<|end|>` ends a message, and the answer goes on with the next.
    let has = |tokens: &[Token], text: &str| id_of(tokens, text).is_some();
    let messages_go_on = (has(tokens, "<|return|>") && has(tokens, "<|call|>"))
        || (has(tokens, "<|flush|>") && (has(tokens, "<|call|>") || has(tokens, "<|calls|>")));
    if messages_go_on {
        take_back(tokens, &mut ends, id_of(tokens, "<|end|>"), TokenKind::UserDefined);
    }
    // Gemma 4 and PLaMo hold a `</s>` that is ordinary text (HTML's struck-out text).
    if has(tokens, "<|tool_response>") || has(tokens, "<|plamo:eos|>") {
        take_back(tokens, &mut ends, id_of(tokens, "</s>"), TokenKind::Text);
    }
    ends.sort_unstable();
    ends.dedup();
    ends
}

fn is(token: &Token, text: &str) -> bool {
    token.bytes == text.as_bytes()
}

fn take_back(tokens: &mut [Token], ends: &mut Vec<TokenId>, id: Option<TokenId>, kind: TokenKind) {
    let Some(id) = id else { return };
    ends.retain(|end| *end != id);
    if let Some(token) = tokens.get_mut(id as usize) {
        token.kind = kind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settle_texts(texts: &[&str], named: &[TokenId]) -> (Vec<TokenId>, Vec<TokenKind>) {
        let token = |text: &&str| Token { bytes: text.as_bytes().to_vec(), kind: TokenKind::Text };
        let mut tokens: Vec<Token> = texts.iter().map(token).collect();
        let ends = settle(&mut tokens, named);
        (ends, tokens.into_iter().map(|token| token.kind).collect())
    }

    #[test]
    fn turn_ends_are_found_by_text_and_become_control_tokens() {
        let (ends, kinds) = settle_texts(&["a", "<|im_end|>", "</eos>", "<|endoftext|>"], &[2]);
        assert_eq!(ends, [1, 2, 3]);
        assert_eq!(kinds[1], TokenKind::Control);
        assert_eq!(kinds[0], TokenKind::Text);
    }

    #[test]
    fn in_harmony_the_end_of_a_message_is_not_the_end() {
        let (ends, kinds) =
            settle_texts(&["<|end|>", "<|return|>", "<|call|>", "<|channel|>"], &[1]);
        assert_eq!(ends, [1, 2]);
        assert_eq!(kinds[0], TokenKind::UserDefined);
        assert_eq!(kinds[3], TokenKind::UserDefined);
        let (ends, _) = settle_texts(&["<|end|>", "<|endoftext|>"], &[]);
        assert_eq!(ends, [0, 1]);
    }

    #[test]
    fn an_ordinary_s_tag_ends_nothing() {
        let (ends, kinds) = settle_texts(&["</s>", "<|im_end|>"], &[]);
        assert_eq!(ends, [1]);
        assert_eq!(kinds[0], TokenKind::Text);
        let token = |kind| Token { bytes: b"</s>".to_vec(), kind };
        let mut added = [token(TokenKind::UserDefined)];
        assert_eq!(settle(&mut added, &[]), [0]);
        assert_eq!(added[0].kind, TokenKind::Control);
        let vocabulary = |kind| Vocabulary::new(vec![token(kind)], &[], None);
        assert_eq!(ordinary_names(&vocabulary(TokenKind::Text)), ["</s>"]);
        assert_eq!(ordinary_names(&vocabulary(TokenKind::Control)), [""; 0]);
    }

    #[test]
    fn gemma_4_keeps_its_ordinary_s_tag() {
        let token = |text: &str| Token { bytes: text.into(), kind: TokenKind::Control };
        let mut tokens = ["</s>", "<|tool_response>", "<turn|>"].map(token);
        assert_eq!(settle(&mut tokens, &[2]), [1, 2]);
        assert_eq!(tokens[0].kind, TokenKind::Text);
    }
}
