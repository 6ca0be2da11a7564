use serde_json::json;

use super::super::{Converter, Dialect, Progress};
use super::{End, assert_broken_at, convert, run_all_ways, table};

#[test]
fn gemma_4() {
    table(
        &Dialect::Gemma4,
        &[
            (r#"{level:3,room:<|"|>attic<|"|>}"#, r#"{"level":3,"room":"attic"}"#),
            (
                r#"{on:true,room:<|"|>hall <2><|"|>,tags:[<|"|>a<|"|>,<|"|>b<|"|>]}"#,
                r#"{"on":true,"room":"hall <2>","tags":["a","b"]}"#,
            ),
            ("{}", "{}"),
            ("{a:{b c.d-e:[]},f:null,g:-1.5e3}", r#"{"a":{"b c.d-e":[]},"f":null,"g":-1.5e3}"#),
            (r#"{a:<|"|><|"|>,b:<|"|>say "hi" \n<|"|>}"#, r#"{"a":"","b":"say \"hi\" \\n"}"#),
            (r#"{a:<|"|><<|"<|"|>}"#, r#"{"a":"<<|\""}"#),
            (r#"{a:<|"|>}, <tool_call|>{[:<|"|>}"#, r#"{"a":"}, <tool_call|>{[:"}"#),
            (r#"{ <|"|>a b<|"|> : 1 , "c\u0041" : "x\/y" , }"#, r#"{"a b":1,"cA":"x/y"}"#),
            ("{a: True, b:False,c:None}", r#"{"a":true,"b":false,"c":null}"#),
            (
                "{a:in the attic ,b:12:30,c:03106}",
                r#"{"a":"in the attic","b":"12:30","c":"03106"}"#,
            ),
        ],
    );
}

#[test]
fn function_gemma_and_others() {
    table(
        &Dialect::FunctionGemma,
        &[(r#"{a:<escape>x<esc"<escape>,b:2}"#, r#"{"a":"x<esc\"","b":2}"#)],
    );
    table(&Dialect::Delimited("aab".into()), &[("{k:aabxaaaab}", r#"{"k":"xaa"}"#)]);
    table(&Dialect::Delimited("".into()), &[(r#"{k:"v",l:w<}"#, r#"{"k":"v","l":"w<"}"#)]);
    table(&Dialect::Delimited("｜".into()), &[("{k:｜v｜}", r#"{"k":"v"}"#)]);
}

#[test]
fn delimited_arguments_take_the_declared_type() {
    let parameters = json!({"properties": {
        "room": {"type": "string"}, "level": {"type": "integer"}, "on": {"type": "boolean"},
        "tags": {"type": "array"}, "zip": {"type": ["string", "null"]},
    }});
    let typed = Converter::typed(Dialect::FunctionGemma, parameters.into());
    for (text, json) in [
        (
            "{room:<escape>3<escape>,level:<escape>3<escape>,on:<escape>True<escape>,x:<escape>4<escape>}",
            r#"{"room":"3","level":3,"on":true,"x":"4"}"#,
        ),
        (
            "{tags:<escape>['a']<escape>,zip:<escape>03106<escape>,level:<escape>low<escape>}",
            r#"{"tags":["a"],"zip":"03106","level":"low"}"#,
        ),
        (
            "{tags:[<escape>1<escape>],o:{level:<escape>1<escape>}}",
            r#"{"tags":["1"],"o":{"level":"1"}}"#,
        ),
        ("{level: 3,room:<escape><escape>}", r#"{"level":3,"room":""}"#),
    ] {
        assert_eq!(convert(&typed, text), json);
    }
}

#[test]
fn what_is_no_dictionary_breaks() {
    let gemma = Converter::new(Dialect::Gemma4);
    for (text, at) in [
        ("{a}", 2),
        ("{a,", 2),
        ("{:1}", 1),
        ("{a:}", 3),
        ("{a:,", 3),
        ("{a:1<tool_call|>", 4),
        ("{a:<tool_call|>", 4),
        ("{a:<|\"x", 6),
        ("{a:[1}", 5),
        ("{a:b{", 4),
        ("{[a]:1}", 1),
        ("]", 0),
    ] {
        assert_broken_at(&gemma, text, at);
    }
}

#[test]
fn the_value_ends_at_its_brace() {
    let text = "{a:1}<tool_call|>";
    let outcome = run_all_ways(&Converter::new(Dialect::Gemma4), text);
    assert_eq!((outcome.json.as_str(), outcome.end), (r#"{"a":1}"#, End::Complete(5)));
}

#[test]
fn what_waits_is_not_written() {
    for (text, written) in [
        ("{lev", "{"),
        ("{level:3", r#"{"level":"#),
        (r#"{room:<|"|>at<|""#, r#"{"room":"at"#),
        (r#"{room:<|""#, r#"{"room":"#),
    ] {
        let mut converter = Converter::new(Dialect::Gemma4);
        let mut out = String::new();
        assert_eq!(converter.push(text, &mut out), Progress::Open);
        assert_eq!(converter.cut(&mut out), Progress::Open);
        assert_eq!(out, written, "{text}");
    }
    assert_eq!(convert(&Converter::new(Dialect::Gemma4), "{a:1 }"), r#"{"a":1}"#);
}
