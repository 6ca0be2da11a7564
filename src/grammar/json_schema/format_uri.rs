//! Resource identifiers of RFC 3986 and RFC 3987, and the templates of RFC 6570.

use super::format_host::ipv6;

/// The characters in which URIs and IRIs differ, as parts of a class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alphabet {
    /// Added to the unreserved ones.
    letters: &'static str,
    /// Added in queries.
    private: &'static str,
}

/// RFC 3986: ASCII only.
pub(super) const URI: Alphabet = Alphabet { letters: "", private: "" };
/// RFC 3987.
pub(super) const IRI: Alphabet = Alphabet { letters: UCS, private: PRIVATE };

/// `ucschar`, and `iprivate`.
const UCS: &str = concat!(
    r"\u{a0}-\u{d7ff}\u{f900}-\u{fdcf}\u{fdf0}-\u{ffef}\u{10000}-\u{1fffd}\u{20000}-\u{2fffd}",
    r"\u{30000}-\u{3fffd}\u{40000}-\u{4fffd}\u{50000}-\u{5fffd}\u{60000}-\u{6fffd}",
    r"\u{70000}-\u{7fffd}\u{80000}-\u{8fffd}\u{90000}-\u{9fffd}\u{a0000}-\u{afffd}",
    r"\u{b0000}-\u{bfffd}\u{c0000}-\u{cfffd}\u{d0000}-\u{dfffd}\u{e1000}-\u{efffd}",
);
const PRIVATE: &str = r"\u{e000}-\u{f8ff}\u{f0000}-\u{ffffd}\u{100000}-\u{10fffd}";

const ESCAPE: &str = "%[0-9A-Fa-f]{2}";
const SCHEME: &str = "[A-Za-z][A-Za-z0-9+.-]*";
/// `unreserved` and `sub-delims` of ASCII.
const PLAIN: &str = "A-Za-z0-9._~!$&'()*+,;=-";

impl Alphabet {
    /// One character of `PLAIN`, or `more`, or escaped.
    fn one_of(self, more: &str) -> String {
        format!("([{}{more}{PLAIN}]|{ESCAPE})", self.letters)
    }

    fn authority(self) -> String {
        let address = format!(r"\[({}|[vV][0-9A-Fa-f]+\.[:{PLAIN}]+)\]", ipv6());
        format!("({}*@)?({address}|{}*)(:[0-9]*)?", self.one_of(":"), self.one_of(""))
    }

    /// Query and fragment.
    fn end(self) -> String {
        let fragment = self.one_of(":@/?");
        let query = format!("([{}]|{fragment})", self.private);
        let query = if self.private.is_empty() { &fragment } else { &query };
        format!(r"(\?{query}*)?(#{fragment}*)?")
    }
}

/// With a scheme.
pub(super) fn absolute(alphabet: Alphabet) -> String {
    let (any, authority) = (alphabet.one_of(":@"), alphabet.authority());
    format!(
        "{SCHEME}:(//{authority}(/{any}*)*|/({any}+(/{any}*)*)?|({any}+(/{any}*)*)?){}",
        alphabet.end()
    )
}

/// With a scheme or relative.
pub(super) fn reference(alphabet: Alphabet) -> String {
    let (any, authority) = (alphabet.one_of(":@"), alphabet.authority());
    let first = alphabet.one_of("@");
    format!(
        "({SCHEME}:)?(//{authority}(/{any}*)*|/({any}+(/{any}*)*)?)?{end}|\
         {SCHEME}:{any}+(/{any}*)*{end}|{first}+(/{any}*)*{end}",
        end = alphabet.end()
    )
}

/// RFC 6570, without the operators that it reserves.
pub(super) fn template() -> String {
    let name = format!("([A-Za-z0-9_]|{ESCAPE})");
    let variable = format!(r"{name}(\.?{name})*(:[1-9][0-9]{{0,3}}|\*)?");
    let expression = format!(r"\{{[+#./;?&]?{variable}(,{variable})*\}}");
    format!(r"([!#$&-;=?-\[\]_a-z~{UCS}{PRIVATE}]|{ESCAPE}|{expression})*")
}
