//! Fixed texts against text that is still arriving.

use crate::chat::format::Text;

/// Most whitespace that is read as the whitespace of a format. Bounds what is held back, and with it
/// how often one letter can be looked at.
pub(super) const SPACE_MAX: usize = 128;

/// How a text stands to what has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    /// It is not there.
    No,
    /// It may become it.
    More,
    /// These first bytes are it.
    Full(usize),
}

/// Matches `pattern` at the start of `held`. Whitespace before it is skipped, a run of whitespace in
/// it stands for any run, and whitespace at its end is left for who reads on.
pub(super) fn match_text(pattern: &str, held: &str) -> Match {
    let mut at = 0;
    for word in pattern.split_whitespace() {
        let rest = held.get(at..).unwrap_or_default();
        let trimmed = rest.trim_start();
        let space = rest.len() - trimmed.len();
        if space > SPACE_MAX {
            return Match::No;
        }
        if trimmed.len() < word.len() {
            return if word.starts_with(trimmed) { Match::More } else { Match::No };
        }
        if !trimmed.starts_with(word) {
            return Match::No;
        }
        at += space + word.len();
    }
    Match::Full(at)
}

/// Matches the longest of several texts. `More` as soon as one of them may still come, and empty
/// texts never match here.
pub(super) fn match_any<'a>(texts: impl IntoIterator<Item = &'a Text>, held: &str) -> Match {
    let mut best = Match::No;
    for text in texts {
        if text.trim().is_empty() {
            continue;
        }
        best = match (match_text(text, held), best) {
            (Match::More, _) | (_, Match::More) => Match::More,
            (Match::Full(one), Match::Full(other)) => Match::Full(one.max(other)),
            (Match::Full(length), Match::No) => Match::Full(length),
            (Match::No, best) => best,
        };
    }
    best
}

/// The first word of a text: what is looked for in free text.
pub(super) fn first_word(text: &str) -> Option<&str> {
    text.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whitespace_is_flexible() {
        let pattern = "\n<tool_call>\n<function=";
        for whole in ["<tool_call><function=", " \n<tool_call>\n\n <function="] {
            assert_eq!(match_text(pattern, whole), Match::Full(whole.len()), "{whole}");
            for (cut, _) in whole.char_indices() {
                assert_eq!(match_text(pattern, &whole[..cut]), Match::More, "{}", &whole[..cut]);
            }
        }
        assert_eq!(match_text(pattern, "<tool_call>x"), Match::No);
        assert_eq!(match_text("]", "] \n"), Match::Full(1));
        assert_eq!(match_text("]", &format!("{}]", " ".repeat(SPACE_MAX + 1))), Match::No);
    }
}
