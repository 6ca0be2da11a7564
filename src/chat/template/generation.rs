//! `{% generation %} … {% endgeneration %}`.
//!
//! Training code marks the assistant's text with this block; for a prompt it only delimits a scope.
//! The engine does not know it, so both tags become the `with` block, which is just that. Trim marks
//! stay, and text that only looks like the tag (in a comment, a raw block or a string) is left alone.

//!
//! The same walk refuses tags of absurd length and endless `elif` chains: the engine parses a chain of operators by recursion
//! and bounds only brackets and blocks, so a tag of ten thousand minus signs would take the process down.

/// Most bytes of a tag outside of its strings, blanks not counted. Real templates stay below 300;
/// the engine's parser was seen to overflow 2 MiB of stack, unoptimised, between 4,000 and 8,000.
const TAG_BYTES_MAX: usize = 2048;

/// Most `elif` tags of one source. Real templates have fewer than 100; the parser recurses here too.
const BRANCHES_MAX: usize = 500;

/// A source that the engine's parser would overflow the stack on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SourceTooDeep {
    /// Line of the tag that is too much, from 1.
    pub(super) line: usize,
    /// What there is too much of.
    pub(super) reason: &'static str,
}

/// The source with both tags replaced.
pub(super) fn rewrite(source: &str) -> Result<String, SourceTooDeep> {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    let mut in_raw = false;
    let mut branches = 0;
    while let Some(at) = find_opener(rest, in_raw) {
        let (before, from_tag) = rest.split_at(at);
        out.push_str(before);
        let (length, code_bytes) = measure_tag(from_tag, in_raw);
        if code_bytes > TAG_BYTES_MAX {
            return Err(too_deep(&out, "a tag is too long"));
        }
        let (tag, after) = from_tag.split_at(length);
        rest = after;
        match block_word(tag) {
            Some("raw") if !in_raw => in_raw = true,
            Some("endraw") => in_raw = false,
            Some("elif") if !in_raw => {
                branches += 1;
                if branches > BRANCHES_MAX {
                    return Err(too_deep(&out, "there are too many elif branches"));
                }
            }
            Some(word @ ("generation" | "endgeneration")) if !in_raw && is_bare(tag, word) => {
                let replacement = if word == "generation" { "with" } else { "endwith" };
                out.push_str(&tag.replacen(word, replacement, 1));
                continue;
            }
            _ => {}
        }
        out.push_str(tag);
    }
    out.push_str(rest);
    Ok(out)
}

/// The error of a tag that comes after `before`.
fn too_deep(before: &str, reason: &'static str) -> SourceTooDeep {
    SourceTooDeep { line: 1 + before.matches('\n').count(), reason }
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

/// Length of the tag that `text` starts with, to its closer or to the end where there is none, and how
/// many of its bytes are code: neither in a string nor blank nor in a comment.
fn measure_tag(text: &str, in_raw: bool) -> (usize, usize) {
    if in_raw && block_word(text) != Some("endraw") {
        return (2, 0);
    }
    let (closer, is_code): (&[u8], bool) = match text.as_bytes().get(1) {
        Some(b'#') => (b"#}", false),
        Some(b'{') => (b"}}", true),
        _ => (b"%}", true),
    };
    let bytes = text.as_bytes();
    let mut at = 2;
    let mut code_bytes = 0;
    let mut quote: Option<u8> = None;
    while let Some(&byte) = bytes.get(at) {
        match quote {
            Some(_) if byte == b'\\' => at += 1,
            Some(open) if byte == open => quote = None,
            Some(_) => {}
            None if bytes.get(at..at + 2) == Some(closer) => return (at + 2, code_bytes),
            None if is_code && (byte == b'"' || byte == b'\'') => quote = Some(byte),
            None if is_code && !byte.is_ascii_whitespace() => code_bytes += 1,
            None => {}
        }
        at += 1;
    }
    (text.len(), code_bytes)
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

    fn rewritten(source: &str) -> String {
        rewrite(source).unwrap()
    }

    #[test]
    fn an_absurd_tag_is_refused_and_its_line_named() {
        let minus = format!("a\n{{{{ {}1 }}}}", "-".repeat(TAG_BYTES_MAX));
        assert_eq!(rewrite(&minus), Err(SourceTooDeep { line: 2, reason: "a tag is too long" }));
        let text = format!("{{{{ '{}' }}}}{{# {} #}}", "-".repeat(9999), "-".repeat(9999));
        assert_eq!(rewritten(&text), text);
        let raw = format!("{{% raw %}}{{{{ {} }}}}{{% endraw %}}", "-".repeat(9999));
        assert_eq!(rewritten(&raw), raw);
    }

    #[test]
    fn tags_become_with_blocks_and_keep_their_marks() {
        assert_eq!(
            rewritten(
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
            assert_eq!(rewritten(source), source);
        }
    }

    #[test]
    fn tags_after_look_alikes_are_found() {
        assert_eq!(
            rewritten("{# it's #}{% raw %}'{{{% endraw %}{{ \"\\\"%}\" }}{% generation %}"),
            "{# it's #}{% raw %}'{{{% endraw %}{{ \"\\\"%}\" }}{% with %}"
        );
    }

    proptest::proptest! {
        #[test]
        fn text_without_the_word_in_a_tag_is_unchanged(text in "[{}%#'\" a-z\\\\\\n-]{0,60}") {
            proptest::prop_assert_eq!(rewrite(&text), Ok(text));
        }
    }
}
