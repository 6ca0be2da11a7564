use super::super::{Converter, Dialect, Progress};
use super::{End, assert_broken_at, convert, run_all_ways, table};

fn call(text: &str) -> String {
    convert(&Converter::call_arguments(["room", "level"]), text)
}

#[test]
fn call_arguments_become_an_object() {
    for (text, json) in [
        (")", "{}"),
        ("  )", "{}"),
        (r#"room="attic", level=3)"#, r#"{"room":"attic","level":3}"#),
        (
            r#"room='hall <2>', on=True, tags=["a", "b"])"#,
            r#"{"room":"hall <2>","on":true,"tags":["a","b"]}"#,
        ),
        ("room = \"a\" ,\n level\n=\n-3,\n)", r#"{"room":"a","level":-3}"#),
        (r#""attic", 3)"#, r#"{"room":"attic","level":3}"#),
        ("attic, level=3)", r#"{"room":"attic","level":3}"#),
        (r#"r"a\b", level=None)"#, r#"{"room":"a\\b","level":null}"#),
        ("{'a': 1}, [2])", r#"{"room":{"a":1},"level":[2]}"#),
        (r#"a="), g(\"", b='] , ')"#, r#"{"a":"), g(\"","b":"] , "}"#),
        ("where={'in': ('a', {'b': [1, []]})})", r#"{"where":{"in":["a",{"b":[1,[]]}]}}"#),
    ] {
        assert_eq!(call(text), json, "{text}");
    }
}

#[test]
fn a_call_ends_at_its_parenthesis() {
    let outcome = run_all_ways(&Converter::call_arguments([""; 0]), "a=(1), b=2), g(c=3)]");
    assert_eq!(outcome.json, r#"{"a":1,"b":2}"#);
    assert_eq!(outcome.end, End::Complete(11));
}

#[test]
fn a_call_that_is_no_call_breaks() {
    let converter = Converter::call_arguments(["room"]);
    for (text, at) in [
        ("1, 2)", 4),
        ("level=3, 'attic')", 9),
        ("a==1)", 2),
        ("a=1 b=2)", 4),
        ("a=)", 2),
        (",)", 0),
        ("a=1]", 3),
        ("a=1}", 3),
        ("a=date(1))", 6),
        ("a=1 # note", 4),
        ("**{'a': 1})", 0),
        ("'room'='attic')", 6),
    ] {
        assert_broken_at(&converter, text, at);
    }
}

#[test]
fn words() {
    table(
        &Dialect::Python,
        &[
            ("[True, true, False, false, None, null]", "[true,true,false,false,null,null]"),
            ("[0, 7, -7, +7, 1_000, 00, -0]", "[0,7,-7,7,1000,0,-0]"),
            ("[0x1F, 0XfF, 0o17, 0b1_01, -0x_10]", "[31,255,15,5,-16]"),
            (
                "[1.5, 1., .5, -.5, 1e5, 1E-5, 1.e+5, 1_0.0_1, 007.5]",
                "[1.5,1.0,0.5,-0.5,1e5,1e-5,1.0e+5,10.01,7.5]",
            ),
            (
                "[03106, 2026-01-15, 1.2.3, 1__0, 3j]",
                r#"["03106","2026-01-15","1.2.3","1__0","3j"]"#,
            ),
            ("[inf, -inf, nan, NaN, Infinity]", r#"["inf","-inf","nan","NaN","Infinity"]"#),
            ("[Color.RED, größe, TRUE]", r#"["Color.RED","größe","TRUE"]"#),
            ("[0x, 0b2, 1e, ., -, 1e+]", r#"["0x","0b2","1e",".","-","1e+"]"#),
            ("[123456789012345678901234567890]", "[123456789012345678901234567890]"),
            ("[0xffffffffffffffffffffffffffffffff]", "[340282366920938463463374607431768211455]"),
            ("[0x100000000000000000000000000000000]", r#"["0x100000000000000000000000000000000"]"#),
        ],
    );
}

#[test]
fn strings() {
    table(
        &Dialect::Python,
        &[
            (r#"['a"b', "a'b", '', ""]"#, r#"["a\"b","a'b","",""]"#),
            (r#"['''a'b''c''', """x"y""", """""", '''''']"#, r#"["a'b''c","x\"y","",""]"#),
            (
                r"['\n\t\r\a\b\f\v\\\'\0\07\101\1018\400']",
                r#"["\n\t\r\u0007\b\f\u000b\\'\u0000\u0007AA8Ā"]"#,
            ),
            (r"['\x41\u0041\U0001F980\N{DASH}\d\/']", r#"["AA🦀\\N{DASH}\\d\\/"]"#),
            (
                r"['\x4', '\x', '\u12', '\U0011', '\U00110000']",
                "[\"\\\\x4\",\"\\\\x\",\"\\\\u12\",\"\\\\U0011\",\"\u{fffd}\"]",
            ),
            (
                r"['\ud83e\udd80', '\ud83e', '\udd80', '\ud83ex', '\ud83e\n']",
                "[\"🦀\",\"\u{fffd}\",\"\u{fffd}\",\"\u{fffd}x\",\"\u{fffd}\\n\"]",
            ),
            ("['a\\\nb', 'a\nb']", r#"["ab","a\nb"]"#),
            (
                r#"[r'\d\'', R"\n", b'x\x41', f"{y}", u'z', rb'\x', Rb"", fr'''a'b''']"#,
                r#"["\\d\\'","\\n","xA","{y}","z","\\x","","a'b"]"#,
            ),
            (r#"['a' "b" r'\c' ''  '''d''']"#, r#"["ab\\cd"]"#),
            ("('a'\n 'b')", r#""ab""#),
            (r#"{'a' 'b': 'c' 'd'}"#, r#"{"ab":"cd"}"#),
            ("'x'", r#""x""#),
        ],
    );
}

#[test]
fn brackets() {
    table(
        &Dialect::Python,
        &[
            ("[]", "[]"),
            ("{}", "{}"),
            ("()", "[]"),
            ("[1, 2, ]", "[1,2]"),
            ("(1,)", "[1]"),
            ("(1, 2,)", "[1,2]"),
            ("{'a': 1,}", r#"{"a":1}"#),
            ("(((1)), 'b')", "[  1,\"b\"]"),
            ("((1, 2), (3))", "[[1,2],3]"),
            ("[(('a'))]", r#"["a"]"#),
            (
                "{1: 'a', True: 2, None: 3, 1.5: 4, x: 5, 0x10: 6}",
                r#"{"1":"a","true":2,"null":3,"1.5":4,"x":5,"16":6}"#,
            ),
            ("{'a': {'b': {}}, 'c': [[], ()]}", r#"{"a":{"b":{}},"c":[[],[]]}"#),
        ],
    );
}

#[test]
fn what_is_no_literal_breaks() {
    let python = Converter::new(Dialect::Python);
    for (text, at) in [
        ("[1 2]", 3),
        ("[,]", 1),
        ("[1,,]", 3),
        ("{1, 2}", 2),
        ("{'a'}", 4),
        ("{'a': }", 6),
        ("{(1, 2): 3}", 1),
        ("[)", 1),
        ("(1]", 2),
        ("[1)", 2),
        ("['a' + 'b']", 5),
        ("['a' x]", 6),
        ("[x'a']", 2),
        ("['a' * 3]", 5),
        ("*", 0),
        (")", 0),
    ] {
        assert_broken_at(&python, text, at);
    }
}

#[test]
fn what_waits_is_not_written() {
    for (text, written) in [
        ("room=\"at", r#"{"room":"at"#),
        ("room=\"attic\"", r#"{"room":"attic"#),
        ("room=\"a\\", r#"{"room":"a"#),
        ("level=3", r#"{"level":"#),
        ("level", "{"),
        ("on=Tru", r#"{"on":"#),
        ("at=(1", r#"{"at":"#),
        ("at=(1,", r#"{"at":[1"#),
        ("", ""),
    ] {
        let mut converter = Converter::call_arguments([""; 0]);
        let mut out = String::new();
        assert_eq!(converter.push(text, &mut out), Progress::Open);
        assert_eq!(converter.cut(&mut out), Progress::Open);
        assert_eq!(out, written, "{text}");
    }
}

#[test]
fn a_cut_ends_a_word_or_empty_string_on_its_own() {
    for (text, json) in [("0x10", "16"), ("True", "true"), ("''", "\"\"")] {
        let mut converter = Converter::new(Dialect::Python);
        let mut out = String::new();
        assert_eq!(converter.push(text, &mut out), Progress::Open);
        assert_eq!(converter.cut(&mut out), Progress::Complete { consumed: 0 });
        assert_eq!(out, json);
    }
}
