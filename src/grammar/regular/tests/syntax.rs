//! Each feature of the syntax, with texts that match and texts that do not.

use super::super::super::Fuel;
use super::super::{Dfa, RegularError};
use super::{compile, try_compile};

/// A pattern, texts in which it is found, and texts in which it is not.
type Row = (&'static str, &'static [&'static str], &'static [&'static str]);

#[test]
fn plain_syntax() {
    check(&[
        ("", &["", "x"], &[]),
        ("abc", &["abc", "xxabcxx"], &["", "ab", "acb"]),
        ("^abc$", &["abc"], &["xabc", "abcx"]),
        ("^a|b$", &["a", "ax", "xb"], &["xa", "bx", ""]),
        ("^(a|b)$", &["a", "b"], &["ab", ""]),
        ("(^[^5]*$)|7", &["", "123", "57"], &["5"]),
        ("a.c", &["abc", "a🙂c", "a\u{85}c"], &["a\nc", "a\rc", "a\u{2028}c", "a\u{2029}c", "ac"]),
        ("^$", &[""], &["\n", "x"]),
        ("a^b|a$b", &[], &["ab", "a", "b"]),
    ]);
}

#[test]
fn quantifiers() {
    check(&[
        ("^a*$", &["", "aaa"], &["b"]),
        ("^a+?$", &["a", "aa"], &[""]),
        ("^ab??$", &["a", "ab"], &["abb"]),
        ("^a{2}$", &["aa"], &["a", "aaa"]),
        ("^a{2,}$", &["aa", "aaaa"], &["a"]),
        ("^a{1,3}?$", &["a", "aaa"], &["", "aaaa"]),
        ("^(?:ab){0}c$", &["c"], &["abc"]),
        ("^(?:a?){3}$", &["", "aaa"], &["aaaa"]),
        ("^(a*)*$", &["", "aa"], &["b"]),
        ("^(?:a|ab){2}$", &["aa", "aab", "aba", "abab"], &["a", "abb"]),
        ("^a{,2}$", &["a{,2}"], &["aa", ""]),
        ("^a{x}{$", &["a{x}{"], &["a"]),
        ("^{}]}$", &["{}]}"], &["{}"]),
        ("^(?=a)*b$", &["b"], &["ab"]),
        ("^(?=a)+a$", &["a"], &["b"]),
    ]);
}

#[test]
fn classes() {
    check(&[
        ("^[abc]$", &["a", "c"], &["d", "ab"]),
        ("^[^abc]$", &["d", "\n", "🙂"], &["a", ""]),
        ("^[a-c-]$", &["b", "-"], &["d"]),
        ("^[-a]$", &["-", "a"], &["b"]),
        (r"^[\w-.]$", &["a", "-", "."], &["/"]),
        (r"^[a-\d]$", &["a", "-", "5"], &["b"]),
        (r"^[\]\[\\^]$", &["]", "[", "\\", "^"], &["a"]),
        ("^[[:alpha:]]$", &["a]", ":]", "[]"], &["a", "b]"]),
        (r"^[\b]$", &["\u{8}"], &["b"]),
        ("^[]$", &[], &["", "]"]),
        ("^[^]$", &["a", "\n"], &["", "ab"]),
        (r"^[\d\s]+$", &["1 2\t"], &["a"]),
        (r"^[^\d\s]$", &["a"], &["1", " "]),
        (r"^[\D]$", &["a"], &["1"]),
        ("^[a&&b]+$", &["&ab"], &["c"]),
        (r"^[\u{1F600}-\u{1F64F}]$", &["😀"], &["a"]),
        ("^[😀-🙏]$", &["😀"], &["a", "😀😀"]),
        (r"^[\uD83D\uDE00-\uD83D\uDE4F]$", &["😀"], &["a"]),
        (r"^[\uD800-\uDFFF]$", &[], &["", "a", "😀"]),
        ("^[a|b$.]$", &["$", "|", "."], &["c"]),
    ]);
}

#[test]
fn escapes() {
    check(&[
        (r"^\d$", &["0", "9"], &["a", "٣"]),
        (r"^\w$", &["a", "Z", "_", "0"], &["-", "é"]),
        (r"^\W$", &["é", "-"], &["a", "_"]),
        (
            r"^\s$",
            &[" ", "\t", "\u{FEFF}", "\u{A0}", "\u{2028}", "\u{3000}"],
            &["\u{85}", "\u{180E}"],
        ),
        (r"^\S$", &["a", "\u{85}"], &[" ", "\u{FEFF}"]),
        (r"^\t\n\v\f\r\0$", &["\t\n\u{B}\u{C}\r\0"], &["tnvfr0"]),
        (r"^\cJ\cj$", &["\n\n"], &["cJcj"]),
        (r"^\x41\u0042\u{43}\u{00044}$", &["ABCD"], &["abcd"]),
        (r"^\uD83D\uDE00$", &["😀"], &[""]),
        (r"^\u{1F600}$", &["😀"], &["a"]),
        (r"\uD83D", &[], &["", "😀"]),
        (r"\uD83D\u0041|x", &["x"], &["A"]),
        (r"^\/\.\*\-\_\@\'\ \#\é$", &["/.*-_@' #é"], &["/"]),
        (r"^\$\^\(\)\|\{\}\?\+\[\]\\$", &["$^()|{}?+[]\\"], &[""]),
        (r"^\p{L}\P{L}$", &["é1", "a "], &["1a", "éé"]),
        (r"^\p{Lu}[\p{Nd}_]$", &["Ä٣", "A_"], &["a1"]),
        (r"^\p{Script=Greek}\p{sc=Cyrillic}$", &["αж"], &["жα"]),
        (r"^[^\P{Letter}]$", &["x"], &["1"]),
    ]);
}

#[test]
fn groups_and_look_around() {
    check(&[
        ("^(?<year>[0-9]{2})(?:x)$", &["12x"], &["12"]),
        ("^(?!@@)[@a]+$", &["@a", "a@@", "@"], &["@@", "@@a"]),
        ("^(?!.*foo)bar", &["barfo", "bar"], &["barfoo", "foobar"]),
        (r"^(?=.*\d)(?=.*[a-z])(?=.*[A-Z]).{8,}$", &["abcdeF1x"], &["abcdef1x", "aF1"]),
        ("a(?=b)", &["ab"], &["a", "ac"]),
        ("^(?!-)[a-z-]+(?<!-)$", &["a-b"], &["-a", "a-", "-"]),
        ("(?<!x)$", &["", "a"], &["x", "ax"]),
        ("(?<=a{2,3}b*)c", &["aac", "aabbc"], &["ac", "abc"]),
        (r"\bcat\b", &["cat", "a cat.", "é cat é", "écat"], &["cats", "_cat", ""]),
        (r"\Bat", &["cat"], &["at", "-at"]),
        (r"^\B$", &[""], &["a"]),
        (r"(?=\bb)b$", &["b", "-b"], &["ab"]),
        ("^a(?=^b|b$)b", &["ab"], &["abb"]),
        ("a(?=(?<=a)b)", &["ab"], &["cb"]),
        ("(?:(?<!a)b)+c", &["bbc", "cbc"], &["abc"]),
    ]);
}

#[test]
fn what_ecma_does_not_know_is_refused_with_a_reason() {
    let syntax = [
        "(",
        ")",
        "a)",
        "[",
        "[a",
        "*",
        "a**",
        "a+*",
        "a++",
        "a{2}{3}",
        "{2}",
        "^*",
        r"\b+",
        "(?<=a)*",
        "a{3,2}",
        "[b-a]",
        r"\",
        r"\x4",
        r"\u12",
        r"\u{110000}",
        r"\u{}",
        r"\y",
        r"\i",
        r"\a",
        "(?P<a>b)",
        "(?>a)",
        "(?<>a)",
        "(?<1>a)",
        "(?",
        r"\p{Nonsense}",
        r"\pL",
        r"\c1",
        r"\01",
        r"[\1]",
        r"[\B]",
        "(?<a",
        "x(?!y",
    ];
    for source in syntax {
        let error = try_compile(source).err();
        assert!(matches!(error, Some(RegularError::Syntax { .. })), "{source}: {error:?}");
    }
    let unsupported = [
        r"(a)\1",
        r"(?<a>b)\k<a>",
        "(?i)a",
        "(?i:a)",
        "(?-i:a)",
        "(?s).",
        r"\Aa",
        r"a\Z",
        r"a\z",
        "(?<=a(?=b))b",
    ];
    for source in unsupported {
        let error = try_compile(source).err();
        assert!(matches!(error, Some(RegularError::Unsupported { .. })), "{source}: {error:?}");
    }
}

#[test]
fn a_syntax_error_says_where() {
    let error = try_compile("é[b-a]").err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("backwards") && error.contains("character 6"), "{error}");
}

#[test]
fn the_whole_of_a_text_can_be_asked_for() {
    let dfa = Dfa::whole_pattern("a|b(?=c|$)c?", &mut Fuel::new(100_000)).unwrap();
    for (text, expected) in [("a", true), ("b", true), ("bc", true), ("ab", false), ("bd", false)] {
        assert_eq!(dfa.accepts(text), expected, "{text}");
    }
}

#[test]
fn simple_repeats_are_seen() {
    let seen = |source: &str| {
        Dfa::pattern_is_simple_repeat(source).map(|(set, min, max)| (set.ranges().len(), min, max))
    };
    assert_eq!(seen("^[a-z]{0,100000}$"), Some((1, 0, Some(100_000))));
    assert_eq!(seen("^(?:[a-z0-9])+$"), Some((2, 1, None)));
    assert_eq!(seen("^([a-z]{1,255})$"), Some((1, 1, Some(255))));
    assert_eq!(seen("^(a|[xz])*$"), Some((3, 0, None)));
    assert_eq!(seen("^[^\n]$"), Some((3, 1, Some(1))));
    for source in ["[a-z]+", "^a+", "a+$", "^(ab)+$", "^a+|b$", "^a+b$", "^^a+$", "(", "^(?:a*)*$"]
    {
        assert_eq!(seen(source), None, "{source}");
    }
}

fn check(rows: &[Row]) {
    for (source, found, not_found) in rows {
        let dfa = compile(source);
        for text in *found {
            assert!(dfa.accepts(text), "{source} is found in {text:?}");
        }
        for text in *not_found {
            assert!(!dfa.accepts(text), "{source} is not found in {text:?}");
        }
    }
}
