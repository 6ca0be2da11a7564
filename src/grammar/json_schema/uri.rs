//! As much of RFC 3986 as identifiers and references of schemas need.

/// A reference resolved against a base, both without fragment (RFC 3986, section 5.2).
pub(super) fn resolve(base: &str, reference: &str) -> String {
    if scheme_length(reference).is_some() || base.is_empty() {
        return reference.to_owned();
    }
    let scheme_end = scheme_length(base).map_or(0, |length| length + 1);
    let (scheme, rest) = base.split_at(scheme_end);
    if reference.starts_with("//") {
        return format!("{scheme}{reference}");
    }
    let authority_end = match rest.strip_prefix("//") {
        Some(after) => after.find(['/', '?']).map_or(rest.len(), |at| at + 2),
        None => 0,
    };
    let (authority, path_and_query) = rest.split_at(authority_end);
    let base_path = path_and_query.split('?').next().unwrap_or("");
    let (path, query) = match reference.find('?') {
        Some(at) => reference.split_at(at),
        None => (reference, ""),
    };
    let path = if path.is_empty() {
        base_path.to_owned()
    } else if path.starts_with('/') {
        remove_dots(path)
    } else {
        let directory = base_path.rfind('/').map_or("", |at| base_path.split_at(at + 1).0);
        let slash = if directory.is_empty() && !authority.is_empty() { "/" } else { "" };
        remove_dots(&format!("{directory}{slash}{path}"))
    };
    format!("{scheme}{authority}{path}{query}")
}

/// Bytes of the scheme, the colon not counted.
fn scheme_length(uri: &str) -> Option<usize> {
    let length = uri.find(':')?;
    let scheme = uri.get(..length)?;
    let valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    (scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.bytes().all(valid))
        .then_some(length)
}

fn remove_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut steps = path.split('/').peekable();
    while let Some(step) = steps.next() {
        let last = steps.peek().is_none();
        match step {
            "." if last => kept.push(""),
            "." => {}
            ".." => {
                if kept.len() > 1 || kept.first().is_some_and(|first| !first.is_empty()) {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            step => kept.push(step),
        }
    }
    kept.join("/")
}

/// The text with `%xx` decoded. `None`: no UTF-8, or no two digits after a `%`.
pub(super) fn percent_decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let (high, low) = (digit(bytes.next()?)?, digit(bytes.next()?)?);
        out.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_resolve_as_in_the_standard() {
        for (base, reference, expected) in [
            ("http://a/b/c/d;p?q", "g", "http://a/b/c/g"),
            ("http://a/b/c/d;p?q", "./g/", "http://a/b/c/g/"),
            ("http://a/b/c/d;p?q", "/g", "http://a/g"),
            ("http://a/b/c/d;p?q", "//g", "http://g"),
            ("http://a/b/c/d;p?q", "?y", "http://a/b/c/d;p?y"),
            ("http://a/b/c/d;p?q", "..", "http://a/b/"),
            ("http://a/b/c/d;p?q", "../../g", "http://a/g"),
            ("http://a/b/c/d;p?q", "../../../g", "http://a/g"),
            ("http://a/b/c/d;p?q", "g:h", "g:h"),
            ("http://a", "b.json", "http://a/b.json"),
            ("urn:x:y", "urn:z", "urn:z"),
            ("", "b.json", "b.json"),
            ("dir/a.json", "b.json", "dir/b.json"),
        ] {
            assert_eq!(resolve(base, reference), expected, "{base} {reference}");
        }
    }

    #[test]
    fn percent_escapes_are_decoded() {
        assert_eq!(percent_decode("/a%20b%25"), Some("/a b%".to_owned()));
        assert_eq!(percent_decode("%c3%a9"), Some("é".to_owned()));
        assert_eq!(percent_decode("%c3"), None);
        assert_eq!(percent_decode("%g0"), None);
        assert_eq!(percent_decode("%2"), None);
    }
}
