//! The text that ends the assistant's turn.

/// The marker that `tail`, the text a template writes after an assistant's content, starts with.
///
/// Only what looks like a marker counts: `<|im_end|>`, `[e~[`, `</assistant>`; a template that ends a
/// turn with prose or a newline has no such token. Tool results may follow the turn in the same tail.
pub(crate) fn turn_end(tail: &str) -> Option<&str> {
    let tail = tail.trim_start();
    let closer = match tail.chars().next()? {
        '<' => ">",
        '[' => "[]",
        '〈' => "〉",
        _ => return None,
    };
    for (at, letter) in tail.char_indices() {
        if letter.is_whitespace() || at > 64 {
            return None;
        }
        if at > 1 && closer.contains(letter) {
            // `[|endofturn|]` and `[e~[` end with either bracket, `<|im_end|>` only with its own.
            return tail.get(..at + letter.len_utf8());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::turn_end;

    #[test]
    fn markers_are_found_and_prose_is_not() {
        assert_eq!(turn_end("<|im_end|>\n<|im_start|>user"), Some("<|im_end|>"));
        assert_eq!(turn_end("\n<end_of_turn>\n"), Some("<end_of_turn>"));
        assert_eq!(turn_end("[e~[\n]~b]user"), Some("[e~["));
        assert_eq!(turn_end("[|endofturn|]\n"), Some("[|endofturn|]"));
        assert_eq!(turn_end("</assistant>\n<user>"), Some("</assistant>"));
        assert_eq!(turn_end("<｜end▁of▁sentence｜><｜User｜>"), Some("<｜end▁of▁sentence｜>"));
        for none in ["", "\n\nUser: ", " USER: ", "<not a marker>", "<open", "\n[Round 1]\n问"] {
            assert_eq!(turn_end(none), None, "{none}");
        }
    }
}
