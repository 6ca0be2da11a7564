//! `{% generation %} … {% endgeneration %}`.
//!
//! Training code marks the assistant's text with this block; for a prompt it only delimits a scope.
//! The engine does not know it, so both tags become the `with` block, which is just that. Trim marks
//! stay, and text that only looks like the tag (in a comment, a raw block or a string) is left alone.

use std::borrow::Cow;

/// The source with both tags replaced; the same source when there are none.
pub(super) fn rewrite(source: &str) -> Cow<'_, str> {
    if !source.contains("generation") {
        return Cow::Borrowed(source);
    }
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    let mut in_raw = false;
    while let Some(at) = find_opener(rest, in_raw) {
        let (before, from_tag) = rest.split_at(at);
        out.push_str(before);
        let length = tag_length(from_tag, in_raw);
        let (tag, after) = from_tag.split_at(length);
        match block_word(tag) {
            Some("raw") if !in_raw => in_raw = true,
            Some("endraw") => in_raw = false,
            Some(word @ ("generation" | "endgeneration")) if !in_raw && is_bare(tag, word) => {
                let replacement = if word == "generation" { "with" } else { "endwith" };
                out.push_str(&tag.replacen(word, replacement, 1));
                rest = after;
                continue;
            }
            _ => {}
        }
        out.push_str(tag);
        rest = after;
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Offset of the next tag; inside a raw block only block tags matter.
fn find_opener(text: &str, in_raw: bool) -> Option<usize> {
    let bytes = text.as_bytes();
    (0..bytes.len()).find(|&at| match bytes.get(at..at + 2) {
        Some(b"{%") => true,
        Some(b"{{" | b"{#") => !in_raw,
        _ => false,
    })
}

/// Length of the tag that `text` starts with, to its closer or to the end where there is none.
fn tag_length(text: &str, in_raw: bool) -> usize {
    if in_raw && block_word(text) != Some("endraw") {
        return 2;
    }
    let (closer, has_strings): (&[u8], bool) = match text.as_bytes().get(1) {
        Some(b'#') => (b"#}", false),
        Some(b'{') => (b"}}", true),
        _ => (b"%}", true),
    };
    let bytes = text.as_bytes();
    let mut at = 2;
    let mut quote: Option<u8> = None;
    while let Some(&byte) = bytes.get(at) {
        match quote {
            Some(_) if byte == b'\\' => at += 1,
            Some(open) if byte == open => quote = None,
            Some(_) => {}
            None if bytes.get(at..at + 2) == Some(closer) => return at + 2,
            None if has_strings && (byte == b'"' || byte == b'\'') => quote = Some(byte),
            None => {}
        }
        at += 1;
    }
    text.len()
}

/// The first word of a block tag.
fn block_word(tag: &str) -> Option<&str> {
    let inner = tag.strip_prefix("{%")?;
    let inner = inner.strip_prefix(['-', '+']).unwrap_or(inner).trim_start();
    let end = inner.find(|ch: char| !(ch.is_alphanumeric() || ch == '_')).unwrap_or(inner.len());
    inner.get(..end)
}

/// Whether the tag holds nothing beside the word and trim marks.
fn is_bare(tag: &str, word: &str) -> bool {
    let Some(inner) = tag.strip_prefix("{%").and_then(|tag| tag.strip_suffix("%}")) else {
        return false;
    };
    inner.trim_matches(|ch: char| ch == '-' || ch == '+' || ch.is_whitespace()) == word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_become_with_blocks_and_keep_their_marks() {
        assert_eq!(
            rewrite(
                "a{%- generation -%} b {%+ endgeneration %}{%generation%}c{% endgeneration +%}"
            ),
            "a{%- with -%} b {%+ endwith %}{%with%}c{% endwith +%}"
        );
    }

    #[test]
    fn look_alikes_stay() {
        for source in [
            "{# {% generation %} #}x",
            "{% raw %}{% generation %}{{ '{% endraw' }}{% endraw %}",
            "{{ '{% generation %}' }}",
            "{% set generation = 1 %}{{ generation }}",
            "{% if x == \"{% endgeneration %}\" %}{% endif %}",
            "{{ add_generation_prompt }}",
            "{% generation",
            "{% generation x %}",
        ] {
            assert_eq!(rewrite(source), source);
        }
    }

    #[test]
    fn tags_after_look_alikes_are_found() {
        assert_eq!(
            rewrite("{# it's #}{% raw %}'{{{% endraw %}{{ \"\\\"%}\" }}{% generation %}"),
            "{# it's #}{% raw %}'{{{% endraw %}{{ \"\\\"%}\" }}{% with %}"
        );
    }

    proptest::proptest! {
        #[test]
        fn text_without_the_word_in_a_tag_is_unchanged(text in "[{}%#'\" a-z\\\\\\n-]{0,60}") {
            let rewritten = rewrite(&text).into_owned();
            if !text.contains("generation") {
                proptest::prop_assert_eq!(&rewritten, &text);
            }
        }

        #[test]
        fn any_text_around_is_kept(a in "\\PC{0,20}", b in "\\PC{0,20}") {
            let text = format!("{a}generation{b}");
            let _ = rewrite(&text);
        }
    }
}
