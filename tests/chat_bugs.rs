//! Faults that other servers had, each with the value that is right.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use pleach::chat::formats;
use pleach::chat::parse::{ChatMessage, ChatStream, Delta, ParseOptions, ToolSet, parse};
use serde_json::{Value, json};

fn tools() -> Arc<ToolSet> {
    let tool = |name: &str, properties: Value| {
        json!({"type": "function", "function": {"name": name,
            "parameters": {"type": "object", "properties": properties}}})
    };
    let zip =
        json!({"zip": {"type": "string"}, "on": {"type": "boolean"}, "n": {"type": "integer"}});
    let free = json!({"o": {}, "room": {"type": "string"}, "level": {"type": "integer"}});
    let lamp = json!({"tags": {"type": "array"}, "v": {"type": "string"}});
    let list =
        [tool("dim", free), tool("lamp", lamp), tool("post", zip), tool("free", Value::Null)];
    Arc::new(ToolSet::from_request(&list))
}

fn options(prefill: &str) -> ParseOptions {
    ParseOptions { tools: tools(), prefill: prefill.to_owned(), ..Default::default() }
}

/// Reads the text whole, and checks that every cut in two and every letter alone give the same.
fn read(name: &str, prefill: &str, text: &str) -> ChatMessage {
    let format = Arc::new(formats::named(name).unwrap());
    let whole = parse(&format, text, false, &options(prefill));
    let streamed = |pieces: &[&str]| {
        let mut stream = ChatStream::new(&format, options(prefill));
        pieces.iter().for_each(|piece| drop(stream.push(piece)));
        stream.finish();
        stream.message()
    };
    for (cut, _) in text.char_indices() {
        assert_eq!(streamed(&[&text[..cut], &text[cut..]]), whole, "cut at {cut}");
    }
    assert_eq!(streamed(&text.split("").collect::<Vec<_>>()), whole);
    whole
}

fn said(message: &ChatMessage) -> (&str, &str) {
    (&message.reasoning, &message.content)
}

fn calls(message: &ChatMessage) -> Vec<(&str, &str)> {
    let call =
        |call: &'_ pleach::chat::parse::ToolCall| (call.name.clone(), call.arguments.clone());
    let owned: Vec<(String, String)> = message.tool_calls.iter().map(call).collect();
    assert!(owned.iter().all(|(name, _)| !name.is_empty()));
    message.tool_calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect()
}

const NO_CALLS: [(&str, &str); 0] = [];

#[test]
fn nothing_that_was_told_is_taken_back() {
    let format = Arc::new(formats::named("hermes_json").unwrap());
    let mut stream = ChatStream::new(&format, options("<think>\n"));
    assert_eq!(stream.push("if a <"), [Delta::Reasoning("if a".to_owned())]);
    let rest = stream.push("b then stop</think>done");
    let expected =
        [Delta::Reasoning(" <b then stop".to_owned()), Delta::Content("done".to_owned())];
    assert_eq!(rest, expected);
    assert_eq!(stream.finish(), []);
}

#[test]
fn brackets_survive_every_cut() {
    let text = "<tool_call>\n{\"name\":\"dim\",\"arguments\":{\"o\":{\"k\":1}}}\n</tool_call>";
    assert_eq!(calls(&read("hermes_json", "", text)), [("dim", r#"{"o":{"k":1}}"#)]);
}

#[test]
fn the_prompt_tells_whether_thinking_is_open() {
    for (name, prefill) in [
        ("hermes_json", "<think>\n\n</think>\n\n"),
        ("qwen_xml", "<|im_start|>assistant\n<think>\n\n</think>\n\n"),
        ("deepseek_v3_1", "<｜Assistant｜></think>"),
        ("glm_xml_47", "<|assistant|></think>"),
    ] {
        assert_eq!(said(&read(name, prefill, "Blue.")), ("", "Blue."), "{name}");
        // A model may think all the same.
        let thinks = read(name, prefill, "<think>Sky.</think>Blue.");
        assert_eq!(said(&thinks), ("Sky.", "Blue."), "{name}");
    }
    assert_eq!(said(&read("qwen_xml", "<think>\n", "Blue.")), ("Blue.", ""));
}

#[test]
fn prose_wakes_no_call() {
    for text in [
        "A functional answer: {\"name\": \"x\"}",
        "A functional answer: {\"name\": \"dim\", \"parameters\": {}}",
        "{\"name\": \"x\", \"parameters\": {}}",
        "{\"name\": \"dim\", \"age\": 3}",
        "{\"answer\": [1, 2]}",
        "{\"name\": \"dim\"}",
        "{ not json",
        "functools.reduce(f, [1])",
    ] {
        for name in ["llama3_json", "functools"] {
            let message = read(name, "", text);
            assert_eq!((message.content.as_str(), calls(&message).len()), (text, 0), "{text}");
        }
    }
    for (name, text) in [
        ("pythonic", "[1, 2] is a list"),
        ("pythonic", "[x(1)] and [dim] are lists"),
        ("json_array_bare", "[{\"a\": 1}]"),
        ("glm4_plain", "dim the lights\n{\"x\": 1}"),
        ("functionary_v3_1", "Write <function=name> or <function=dim> with arguments."),
        ("mistral_args", "[TOOL_CALLS] is a token, [ARGS] too"),
        ("cohere_md", "Action: none"),
        ("olmo3_pythonic", "the <function_calls> tag"),
        ("gemma4", "a <|tool_call> without call:dim{x"),
    ] {
        let message = read(name, "", text);
        assert_eq!((message.content.as_str(), calls(&message).len()), (text, 0), "{name}");
    }
}

#[test]
fn a_call_within_thinking_counts_and_a_mention_does_not() {
    let call = "<tool_call>\n{\"name\":\"dim\",\"arguments\":{}}\n</tool_call>";
    let message = read("hermes_json", "", &format!("<think>go {call}"));
    assert_eq!((said(&message), calls(&message)), (("go", ""), vec![("dim", "{}")]));
    let mention = read("hermes_json", "", "<think>I could write <tool_call> here</think>no");
    assert_eq!(said(&mention), ("I could write <tool_call> here", "no"));
    assert_eq!(calls(&mention), NO_CALLS);
    let closed = read("hermes_json", "<think>\n", &format!("go {call}\n</think>\n\ndone"));
    assert_eq!(said(&closed), ("go", "done"));
}

#[test]
fn broken_and_cut_arguments_are_no_error() {
    let text = "<|channel|>commentary to=functions.dim<|message|>{\"level\": 3";
    let message = read("harmony", "<|start|>assistant", text);
    assert_eq!(calls(&message).len(), 1);
    assert!("{\"level\": 3".starts_with(calls(&message)[0].1));
    assert!(!message.tool_calls[0].complete);
    let broken = read(
        "hermes_json",
        "",
        "<tool_call>\n{\"name\":\"dim\",\"arguments\":{\"o\": oops}}\n</tool_call>",
    );
    assert!(!broken.tool_calls[0].complete);
}

#[test]
fn values_take_their_declared_types() {
    let parameter =
        |name: &str, value: &str| format!("<parameter={name}>\n{value}\n</parameter>\n");
    let values = [parameter("zip", "03106"), parameter("on", "True"), parameter("n", "2026-01-15")];
    let text =
        format!("<tool_call>\n<function=post>\n{}</function>\n</tool_call>", values.concat());
    let message = read("qwen_xml", "", &text);
    let arguments: Value = serde_json::from_str(calls(&message)[0].1).unwrap();
    assert_eq!(arguments, json!({"zip": "03106", "on": true, "n": "2026-01-15"}));
    let text = text.replace("post", "free").replace("2026-01-15", "[1]");
    let message = read("qwen_xml", "", &text);
    let arguments: Value = serde_json::from_str(calls(&message)[0].1).unwrap();
    assert_eq!(arguments["n"], json!([1]));
}

#[test]
fn a_cut_call_keeps_the_start_of_its_arguments() {
    let text = "<tool_call>\n{\"name\":\"dim\",\"arguments\":{\"room\":\"at";
    let message = read("hermes_json", "", text);
    assert_eq!(calls(&message), [("dim", "{\"room\":\"at")]);
    assert!(!message.tool_calls[0].complete);
}

#[test]
fn parallel_calls_are_told_one_by_one() {
    let call = |name: &str| {
        format!("<tool_call>\n{{\"name\":\"{name}\",\"arguments\":{{\"o\":1}}}}\n</tool_call>\n")
    };
    let format = Arc::new(formats::named("hermes_json").unwrap());
    let mut stream = ChatStream::new(&format, options(""));
    let mut deltas = Vec::new();
    for letter in format!("{}{}", call("dim"), call("lamp")).split("") {
        deltas.extend(stream.push(letter));
    }
    deltas.extend(stream.finish());
    let begins: Vec<(usize, &str, &str)> = deltas
        .iter()
        .filter_map(|delta| match delta {
            Delta::CallBegin { index, id, name } => Some((*index, id.as_str(), name.as_str())),
            _ => None,
        })
        .collect();
    let [(0, one, "dim"), (1, other, "lamp")] = begins[..] else { panic!("{begins:?}") };
    assert_ne!(one, other);
    assert!(stream.calls_are_complete());
}

#[test]
fn markers_in_strings_end_nothing() {
    let inner = "</tool_call> ] ) } <tool_call>";
    let arguments = json!({"v": inner}).to_string();
    let hermes =
        format!("<tool_call>\n{{\"name\": \"lamp\", \"arguments\": {arguments}}}\n</tool_call>");
    assert_eq!(calls(&read("hermes_json", "", &hermes)), [("lamp", arguments.as_str())]);
    let python = "<|tool_call_start|>[lamp(v=\"a\\\", g()]<|tool_call_end|>\")]<|tool_call_end|>";
    let message = read("lfm2_pythonic", "", python);
    let value: Value = serde_json::from_str(calls(&message)[0].1).unwrap();
    assert_eq!(value, json!({"v": "a\", g()]<|tool_call_end|>"}));
    let xml = "<tool_call>\n<function=lamp>\n<parameter=v>\n\n  a </parameter> b\n</parameter\n\n</parameter>\n</function>\n</tool_call>";
    let message = read("qwen_xml", "", xml);
    let value: Value = serde_json::from_str(calls(&message)[0].1).unwrap();
    assert_eq!(value, json!({"v": "\n  a </parameter> b\n</parameter\n"}));
}

#[test]
fn arguments_come_in_many_shapes() {
    for (text, arguments) in [
        (r#"{"name":"dim","arguments":"{\"level\": 3}"}"#, r#"{"level": 3}"#),
        (r#"{"arguments":{"level":3},"name":"dim"}"#, r#"{"level":3}"#),
        (r#"{"name":"dim","arguments":null}"#, "{}"),
        (r#"{"name":"dim"}"#, "{}"),
        (r#"{"id":7,"name":"dim","parameters":{},"more":[{}]}"#, "{}"),
    ] {
        let message = read("hermes_json", "", &format!("<tool_call>\n{text}\n</tool_call>"));
        assert_eq!(calls(&message), [("dim", arguments)], "{text}");
        assert!(message.tool_calls[0].complete, "{text}");
    }
}

#[test]
fn frames_that_models_leave_out_are_not_missed() {
    let kimi =
        "<|tool_call_begin|>functions.dim:0<|tool_call_argument_begin|>{\"o\": 1}<|tool_call_end|>";
    assert_eq!(calls(&read("kimi_k2", "", kimi)), [("dim", "{\"o\": 1}")]);
    let singular = format!("<|tool_call_section_begin|>{kimi}<|tool_call_section_end|>");
    assert_eq!(calls(&read("kimi_k2", "", &singular)), [("dim", "{\"o\": 1}")]);
    let deepseek = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>dim\n{\"o\": 1}<｜tool▁call▁end｜>";
    assert_eq!(calls(&read("deepseek_v3", "", deepseek)), [("dim", "{\"o\": 1}")]);
    let qwen = "<function=dim>\n<parameter=room>\nx\n</parameter>\n</function>";
    assert_eq!(calls(&read("qwen_xml", "", qwen)), [("dim", r#"{"room":"x"}"#)]);
    let none = read("glm_xml_47", "", "<tool_call>free</tool_call>");
    assert_eq!(calls(&none), [("free", "{}")]);
    for spaced in ["[TOOL_CALLS] [", "[TOOL_CALLS]["] {
        let text = format!("{spaced}{{\"name\": \"dim\", \"arguments\": {{\"o\": 1}}}}]");
        assert_eq!(calls(&read("mistral_json", "", &text)), [("dim", "{\"o\": 1}")]);
    }
}

#[test]
fn harmony_headers_come_in_many_orders() {
    for header in [
        "<|channel|>commentary to=functions.dim <|constrain|>json",
        " to=functions.dim<|channel|>commentary json",
        "<|channel|>analysis to=functions.dim code",
        "<|channel|>commentary<|channel|>commentary to=functions.dim",
    ] {
        let text = format!("{header}<|message|>{{\"o\": 1}}<|call|>");
        assert_eq!(calls(&read("harmony", "<|start|>assistant", &text)), [("dim", "{\"o\": 1}")]);
    }
    let text = "<|channel|>commentary<|channel|>analysis<|message|>Hm.<|channel|>final<|message|>Yes.<|return|>";
    assert_eq!(said(&read("harmony", "<|start|>assistant", text)), ("Hm.", "Yes."));
    let unknown = "<|channel|>commentary to=functions.nobody<|message|>{\"o\": 1}<|call|>";
    let message = read("harmony", "<|start|>assistant", unknown);
    assert_eq!(calls(&message), NO_CALLS);
    assert!(message.content.contains("nobody") && message.content.contains("{\"o\": 1}"));
}

#[test]
fn gemma_writes_its_thinking_channel_in_odd_places() {
    let cases = [
        ("Blue.<|channel>thought\n<channel|>", ("", "Blue.")),
        ("<channel|>Blue.", ("", "Blue.")),
        ("<|channel><|channel>thought\nSky.<channel|>Blue.", ("Sky.", "Blue.")),
    ];
    for (text, expected) in cases {
        assert_eq!(said(&read("gemma4", "", text)), expected, "{text}");
    }
}

#[test]
fn what_other_parsers_lost_is_kept() {
    let functools = r#"functools[{"name":"lamp","arguments":{"tags":["a"]}}]"#;
    assert_eq!(calls(&read("functools", "", functools)), [("lamp", r#"{"tags":["a"]}"#)]);
    let olmo = read("olmo3_pythonic", "", "Hello.<function_calls>free()</function_calls>");
    assert_eq!((said(&olmo), calls(&olmo)), (("", "Hello."), vec![("free", "{}")]));
    let callid = "[TOOL_CALLS]dim[CALL_ID]a1b2c3d4e[ARGS]{\"o\": 1}";
    let message = read("mistral_args_callid", "", callid);
    assert_eq!(
        (calls(&message), message.tool_calls[0].id.as_str()),
        (vec![("dim", "{\"o\": 1}")], "a1b2c3d4e")
    );
    let step = "<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name=\"lamp\"><steptml:parameter name=\"v\">a < b</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>";
    assert_eq!(calls(&read("step3", "", step)), [("lamp", r#"{"v":"a < b"}"#)]);
    let llama = r#"{"name": "dim", "parameters": {}}; {"name": "lamp", "parameters": {}}"#;
    assert_eq!(calls(&read("llama3_json", "", llama)), [("dim", "{}"), ("lamp", "{}")]);
}

#[test]
fn a_message_that_is_continued_keeps_its_spaces() {
    let format = Arc::new(formats::named("hermes_json").unwrap());
    let continues = |prefill: &str, text: &str| {
        let options = ParseOptions { continues: true, ..options(prefill) };
        let message = parse(&format, text, false, &options);
        (message.reasoning, message.content)
    };
    let pair = |reasoning: &str, content: &str| (reasoning.to_owned(), content.to_owned());
    assert_eq!(continues("<|im_start|>assistant\nIt is", " blue."), pair("", " blue."));
    assert_eq!(continues("<think>\nThe sky", " is.</think>Blue."), pair(" is.", "Blue."));
}

#[test]
fn raw_text_is_content_where_reasoning_is_not_separated() {
    let format = Arc::new(formats::named("hermes_json").unwrap());
    let options = ParseOptions { separate_reasoning: false, ..options("") };
    let message = parse(&format, "<think>\nHm.\n</think>\n\nYes.", false, &options);
    assert_eq!(said(&message), ("", "<think>\nHm.\n</think>\n\nYes."));
}
