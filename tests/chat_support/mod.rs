//! The test table of chat formats: one answer of every format, and what it says.
//!
//! All have the same thinking, the same content and the same two calls, as far as the format has
//! room for them. The strings hold what ends a block in one format or another.

// Each test uses a part of this.
#![allow(dead_code)]

use std::sync::Arc;

use pleach::chat::format::ChatFormat;
use pleach::chat::formats;
use pleach::chat::parse::{ChatMessage, ParseOptions, ToolSet};
use serde_json::{Value, json};

/// One answer.
pub struct Row {
    pub name: &'static str,
    pub prefill: &'static str,
    pub raw: String,
    pub reasoning: &'static str,
    pub content: &'static str,
    pub calls: Vec<(&'static str, Value)>,
}

impl Row {
    pub fn format(&self) -> Arc<ChatFormat> {
        Arc::new(formats::named(self.name).unwrap_or_else(|| panic!("no format {}", self.name)))
    }

    pub fn options(&self) -> ParseOptions {
        ParseOptions { prefill: self.prefill.to_owned(), tools: tools(), ..Default::default() }
    }

    /// Checks that this is what the answer says.
    pub fn check(&self, message: &ChatMessage, how: &str) {
        assert_eq!(message.reasoning, self.reasoning, "{} {how}", self.name);
        assert_eq!(message.content, self.content, "{} {how}", self.name);
        let calls: Vec<(&str, Value)> = message
            .tool_calls
            .iter()
            .map(|call| {
                assert!(call.complete, "{} {how}: {call:?}", self.name);
                let arguments = serde_json::from_str(&call.arguments);
                (call.name.as_str(), arguments.unwrap_or_else(|_| call.arguments.clone().into()))
            })
            .collect();
        assert_eq!(calls, self.calls, "{} {how}", self.name);
    }
}

/// The functions on offer.
pub fn tools() -> Arc<ToolSet> {
    Arc::new(ToolSet::from_request(&tool_list()))
}

pub fn tool_list() -> Vec<Value> {
    let tool = |name: &str, properties: Value| {
        json!({"type": "function", "function": {"name": name, "description": "A tool.",
            "parameters": {"type": "object", "properties": properties}}})
    };
    vec![
        tool("pin", json!({"page": {"type": "string"}, "count": {"type": "integer"}})),
        tool(
            "dye",
            json!({"on": {"type": "boolean"},
            "tints": {"type": "array", "items": {"type": "string"}}}),
        ),
        tool("rest", json!({})),
    ]
}

const THOUGHT: &str = "Pin, then dye.";
const SAID: &str = "Both at once.";
const PIN: &str = r#"{"page": "ink ]) </x> \"q\"}", "count": 2}"#;
const DYE: &str = r#"{"on": true, "tints": ["red", "sea, green"]}"#;
const PAGE: &str = "ink ]) </x> \"q\"}";
const TINTS: &str = r#"["red", "sea, green"]"#;

fn both_calls() -> Vec<(&'static str, Value)> {
    vec![
        ("pin", json!({"page": PAGE, "count": 2})),
        ("dye", json!({"on": true, "tints": ["red", "sea, green"]})),
    ]
}

/// An answer that thinks, speaks and calls.
fn full(name: &'static str, prefill: &'static str, raw: String) -> Row {
    Row { name, prefill, raw, reasoning: THOUGHT, content: SAID, calls: both_calls() }
}

/// An answer of a format that has no reasoning.
fn said(name: &'static str, raw: String) -> Row {
    Row { reasoning: "", ..full(name, "", raw) }
}

/// An answer of calls alone.
fn only_calls(name: &'static str, raw: String) -> Row {
    Row { content: "", ..said(name, raw) }
}

fn thought(raw: &str) -> String {
    format!("{THOUGHT}\n</think>\n\n{raw}")
}

fn thought_close(raw: &str) -> String {
    format!("{THOUGHT}</think>{SAID}{raw}")
}

fn members(name_key: &str, arguments_key: &str) -> [String; 2] {
    [("pin", PIN), ("dye", DYE)].map(|(name, arguments)| {
        format!(r#"{{"{name_key}": "{name}", "{arguments_key}": {arguments}}}"#)
    })
}

fn list() -> String {
    let [pin, dye] = members("name", "arguments");
    format!("[{pin}, {dye}]")
}

/// Calls of which each has its parameters between a head and a foot.
fn parameters(write: impl Fn(&str, &[(&str, &str)]) -> String) -> [String; 2] {
    [
        write("pin", &[("page", PAGE), ("count", "2")]),
        write("dye", &[("on", "true"), ("tints", TINTS)]),
    ]
}

fn tagged(head: [&str; 2], parameter: [&str; 3], foot: &str) -> [String; 2] {
    let ([before, after], [open, middle, close]) = (head, parameter);
    parameters(|name, values| {
        let values: String = values
            .iter()
            .map(|(key, value)| format!("{open}{key}{middle}{value}{close}"))
            .collect();
        format!("{before}{name}{after}{values}{foot}")
    })
}

/// Every answer.
pub fn rows() -> Vec<Row> {
    [enveloped(), named(), with_parameters(), others()].into_iter().flatten().collect()
}

fn enveloped() -> Vec<Row> {
    let [pin, dye] = members("name", "arguments");
    let [pin_parameters, dye_parameters] = members("name", "parameters");
    let [pin_tool, dye_tool] = members("tool_name", "parameters");
    let hermes = format!(
        "<think>\n{THOUGHT}\n</think>\n\n{SAID}\n<tool_call>\n{pin}\n</tool_call>\n<tool_call>\n{dye}\n</tool_call>"
    );
    let exaone =
        thought(&format!("{SAID}\n<tool_call>{pin}</tool_call>\n<tool_call>{dye}</tool_call>"));
    let cohere = |open: &str, close: &str| {
        format!(
            "{THOUGHT}<|END_THINKING|>{open}{SAID}{close}<|START_ACTION|>[\n    {{\"tool_call_id\": \"0\", {},\n    {{\"tool_call_id\": \"1\", {}\n]<|END_ACTION|>",
            pin_tool.trim_start_matches('{'),
            dye_tool.trim_start_matches('{')
        )
    };
    vec![
        full("hermes_json", "<|im_start|>assistant\n", hermes),
        full("exaone4", "[|assistant|]<think>\n", exaone),
        only_calls("mistral_json", format!("[TOOL_CALLS] {}", list())),
        only_calls("functools", format!(" functools{}", list())),
        full(
            "granite3",
            "",
            format!("<think>{THOUGHT}</think><response>{SAID}</response><|tool_call|>{}", list()),
        ),
        full(
            "cohere_action",
            "<|START_THINKING|>",
            cohere("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
        ),
        full(
            "cohere2moe",
            "<|CHATBOT_TOKEN|><|START_THINKING|>",
            cohere("<|START_TEXT|>", "<|END_TEXT|>"),
        ),
        said(
            "cohere_md",
            format!("{SAID}\nAction:\n```json\n[\n    {pin_tool},\n    {dye_tool}\n]\n```"),
        ),
        full(
            "nemotron_toolcall",
            "<think>\n",
            thought(&format!("{SAID}\n<TOOLCALL>{}</TOOLCALL>", list())),
        ),
        full(
            "hunyuan_a13b",
            "",
            format!(
                "<think>\n{THOUGHT}\n</think>\n<answer>\n{SAID}\n</answer>\n<tool_calls>{}</tool_calls>",
                list()
            ),
        ),
        full(
            "apriel",
            "<|begin_assistant|>\nHere are my reasoning steps:\n",
            format!(
                "{THOUGHT}\n[BEGIN FINAL RESPONSE]\n{SAID}\n<tool_calls>{}</tool_calls>\n[END FINAL RESPONSE]",
                list()
            ),
        ),
        said(
            "tool_calls_array",
            format!("{SAID}<tool_calls>[\n    {pin},\n    {dye}\n]</tool_calls>"),
        ),
        said("tool_calls_jsonl", format!("{SAID}\n<tool_calls>\n{pin}\n{dye}\n</tool_calls>")),
        full(
            "apertus",
            "",
            format!(
                "<|inner_prefix|>{THOUGHT}<|inner_suffix|>{SAID}<|tools_prefix|>[{{\"pin\": {PIN}}}, {{\"dye\": {DYE}}}]<|tools_suffix|>"
            ),
        ),
        said(
            "internlm2",
            format!(
                "{SAID}<|action_start|><|plugin|>\n{pin_parameters}<|action_end|><|action_start|><|plugin|>\n{dye_parameters}<|action_end|>"
            ),
        ),
        said(
            "gigachat3",
            format!(
                "{SAID}<|message_sep|>\n\nfunction call<|role_sep|>\n{pin}<|message_sep|>\n\nfunction call<|role_sep|>\n{dye}"
            ),
        ),
        said("gigachat3_1", format!("{SAID}<|function_call|>{pin}<|function_call|>{dye}")),
        said("granite20b_fc", format!("{SAID}\n<function_call> {pin}\n<function_call> {dye}")),
        said(
            "custom_deepseek_json",
            format!(
                "{SAID}<｜tool▁calls▁begin｜> <｜tool▁call▁begin｜> {pin_parameters} <｜tool▁call▁end｜> <｜tool▁call▁begin｜> {dye_parameters} <｜tool▁call▁end｜> <｜tool▁calls▁end｜>"
            ),
        ),
        only_calls("llama3_json", format!("{pin_parameters}; {dye_parameters}")),
        only_calls("llama4_json", format!("{pin_parameters}\n{dye_parameters}")),
        only_calls("json_array_bare", list()),
        only_calls("glm4_plain", format!("\npin\n{PIN}\ndye\n{DYE}")),
    ]
}

fn named() -> Vec<Row> {
    let deepseek = |before: &str, after: &str, end: &str, between: &str| {
        format!(
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{before}pin{after}{PIN}{end}<｜tool▁call▁end｜>{between}<｜tool▁call▁begin｜>{before}dye{after}{DYE}{end}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
        )
    };
    let v3 = deepseek("function<｜tool▁sep｜>", "\n```json\n", "\n```", "\n");
    let kimi = format!(
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.pin:4<|tool_call_argument_begin|>{PIN}<|tool_call_end|><|tool_call_begin|>functions.dye:5<|tool_call_argument_begin|>{DYE}<|tool_call_end|><|tool_calls_section_end|>"
    );
    let gemma = |string: &str, on: &str| {
        format!(
            "{{count:2,page:{string}{PAGE}{string}}}\u{0}{{on:{on},tints:[{string}red{string},{string}sea, green{string}]}}"
        )
    };
    let gemma4 = gemma("<|\"|>", "true");
    let function_gemma = gemma("<escape>", "<escape>True<escape>");
    let dicts =
        |text: &str| text.split_once('\0').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let ((pin4, dye4), (pin3, dye3)) = (dicts(&gemma4), dicts(&function_gemma));
    vec![
        full("deepseek_v3", "<｜Assistant｜><think>\n", thought(&format!("{SAID}{v3}"))),
        full("deepseek_v3_1", "<think>", thought_close(&deepseek("", "<｜tool▁sep｜>", "", ""))),
        full("kimi_k2", "<|im_middle|><think>", thought_close(&kimi)),
        said(
            "mistral_args_callid",
            format!(
                "{SAID}[TOOL_CALLS]pin[CALL_ID]a1b2c3d4e[ARGS]{PIN}[TOOL_CALLS]dye[CALL_ID]f5g6h7i8j[ARGS]{DYE}"
            ),
        ),
        full(
            "mistral_args",
            "",
            format!(
                "[THINK]{THOUGHT}[/THINK]{SAID}[TOOL_CALLS]pin[ARGS]{PIN}[TOOL_CALLS]dye[ARGS]{DYE}"
            ),
        ),
        said(
            "functionary_v3_1",
            format!("{SAID}<function=pin>{PIN}</function><function=dye>{DYE}</function>"),
        ),
        Row {
            prefill: "<|start_header_id|>assistant<|end_header_id|>\n\n>>>",
            ..said("functionary_v3_2", format!("all\n{SAID}\n>>>pin\n{PIN}\n>>>dye\n{DYE}"))
        },
        full(
            "solar_open",
            "<|begin|>assistant",
            format!(
                "<|think|>{THOUGHT}<|end|><|begin|>assistant<|content|>{SAID}<|end|><|begin|>assistant<|tool_calls|><|tool_call:begin|>a1b2c3d4e5<|tool_call:name|>pin<|tool_call:args|>{PIN}<|tool_call:end|><|tool_call:begin|>f6g7h8i9j0<|tool_call:name|>dye<|tool_call:args|>{DYE}<|tool_call:end|><|calls|>"
            ),
        ),
        full(
            "gemma4",
            "<|turn>model\n",
            format!(
                "<|channel>thought\n{THOUGHT}<channel|>{SAID}<|tool_call>call:pin{pin4}<tool_call|><|tool_call>call:dye{dye4}<tool_call|>"
            ),
        ),
        said(
            "functiongemma",
            format!(
                "{SAID}<start_function_call>call:pin{pin3}<end_function_call><start_function_call>call:dye{dye3}<end_function_call>"
            ),
        ),
    ]
}

fn with_parameters() -> Vec<Row> {
    let [pin, dye] = tagged(
        ["<tool_call>\n<function=", ">\n"],
        ["<parameter=", ">\n", "\n</parameter>\n"],
        "</function>\n</tool_call>",
    );
    let qwen = thought(&format!("{SAID}\n\n{pin}\n{dye}"));
    let [pin, dye] = tagged(
        ["<seed:tool_call>\n<function=", ">\n"],
        ["<parameter=", ">", "</parameter>\n"],
        "</function>\n</seed:tool_call>",
    );
    let seed = format!("<seed:think>{THOUGHT}</seed:think>{SAID}{pin}\n{dye}");
    let [pin, dye] = tagged(
        ["<invoke name=\"", "\">\n"],
        ["<parameter name=\"", "\">", "</parameter>\n"],
        "</invoke>",
    );
    let minimax =
        thought(&format!("{SAID}\n<minimax:tool_call>\n{pin}\n{dye}\n</minimax:tool_call>"));
    let glm = |line: &str| {
        let key_end = format!("</arg_key>{line}<arg_value>");
        let close = format!("</arg_value>{line}");
        tagged(["<tool_call>", line], ["<arg_key>", &key_end, &close], "</tool_call>")
    };
    let [pin, dye] = glm("\n");
    let glm_45 = format!("\n<think>{THOUGHT}</think>\n{SAID}\n{pin}\n{dye}");
    let ling = thought_close(&format!("\n{pin}\n{dye}"));
    let [pin, dye] = glm("");
    let glm_47 = thought_close(&format!("{pin}{dye}"));
    let [pin, dye] = tagged(
        ["<tool_call:opensource>", "<tool_sep:opensource>\n"],
        [
            "<arg_key:opensource>",
            "</arg_key:opensource>\n<arg_value:opensource>",
            "</arg_value:opensource>\n",
        ],
        "</tool_call:opensource>",
    );
    let hunyuan = format!(
        "{THOUGHT}</think:opensource>{SAID}<tool_calls:opensource>\n{pin}\n{dye}\n</tool_calls:opensource>"
    );
    let [pin, dye] =
        tagged(["<function name=\"", "\">"], ["<param name=\"", "\">", "</param>"], "</function>");
    let pin = pin.replace(PAGE, &format!("<![CDATA[{PAGE}]]>"));
    let minicpm = thought(&format!("{SAID}{pin}\n{dye}"));
    let [pin, dye] = tagged(
        ["<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name=\"", "\">"],
        ["<steptml:parameter name=\"", "\">", "</steptml:parameter>"],
        "</steptml:invoke><｜tool_call_end｜>",
    );
    let step3 = thought_close(&format!("<｜tool_calls_begin｜>{pin}{dye}<｜tool_calls_end｜>"));
    vec![
        full("qwen_xml", "<|im_start|>assistant\n<think>\n", qwen),
        full("seed_oss", "<seed:bos>assistant\n", seed),
        full("minimax_m2", "]~b]ai\n<think>\n", minimax),
        full("glm_xml_45", "<|assistant|>", glm_45),
        full("glm_xml_47", "<|assistant|><think>", glm_47),
        full("ling3", "<role>ASSISTANT</role>\n<think>", ling),
        full("hunyuan_v3", "<think:opensource>", hunyuan),
        full("minicpm5", "<think>\n", minicpm),
        full("step3", "<think>", step3),
        dsml("dsml_v3_2", "function_calls"),
        dsml("dsml_v4", "tool_calls"),
        dsml("dsml_v4_1", " calls"),
        kimi_k3(),
        Row {
            calls: Vec::new(),
            ..full("minimax_m3", "", format!("<mm:think>{THOUGHT}</mm:think>{SAID}"))
        },
    ]
}

fn dsml(name: &'static str, block: &str) -> Row {
    let [pin, dye] = parameters(|name, values| {
        let values: String = values
            .iter()
            .map(|(key, value)| {
                let string = *key == "page";
                format!("<｜DSML｜parameter name=\"{key}\" string=\"{string}\">{value}</｜DSML｜parameter>\n")
            })
            .collect();
        format!("<｜DSML｜invoke name=\"{name}\">\n{values}</｜DSML｜invoke>")
    });
    let calls = format!("\n\n<｜DSML｜{block}>\n{pin}\n{dye}\n</｜DSML｜{block}>");
    full(name, "<｜Assistant｜><think>", thought_close(&calls))
}

fn kimi_k3() -> Row {
    let [pin, dye] = parameters(|name, values| {
        let values: String = values
            .iter()
            .map(|(key, value)| {
                let kind = match *key {
                    "page" => "string",
                    "count" => "number",
                    "on" => "boolean",
                    _ => "array",
                };
                format!("<|open|>argument key=\"{key}\" type=\"{kind}\"<|sep|>{value}<|close|>argument<|sep|>")
            })
            .collect();
        format!("<|open|>call tool=\"{name}\" index=\"1\"<|sep|>{values}<|close|>call<|sep|>")
    });
    full(
        "kimi_k3",
        "<|open|>message role=\"assistant\"<|sep|><|open|>think<|sep|>",
        format!(
            "{THOUGHT}<|close|>think<|sep|><|open|>response<|sep|>{SAID}<|close|>response<|sep|><|open|>tools<|sep|>{pin}{dye}<|close|>tools<|sep|><|close|>message<|sep|>"
        ),
    )
}

fn others() -> Vec<Row> {
    let python = |between: &str| {
        format!(
            r#"pin(page="ink ]) </x> \"q\"}}", count=2){between}dye(on=True, tints=['red', "sea, green"])"#
        )
    };
    let message = |header: &str, arguments: &str, end: &str| {
        format!("<|start|>assistant{header}<|message|>{arguments}{end}")
    };
    let harmony = |pin_header: &str, dye_header: &str| {
        format!(
            "<|channel|>analysis<|message|>{THOUGHT}<|end|>{}{}{}",
            message("<|channel|>commentary", SAID, "<|end|>"),
            message(pin_header, PIN, "<|call|>"),
            message(dye_header, DYE, "<|call|>")
        )
    };
    let atem = tagged(
        ["<atem:function_calls>\n<atem:invoke name=\"", "\">\n"],
        ["<atem:parameter name=\"", "\">", "</atem:parameter>\n"],
        "</atem:invoke>\n</atem:function_calls>",
    );
    let [pin, dye] = atem;
    vec![
        full(
            "lfm2_pythonic",
            "",
            format!(
                "<think>{THOUGHT}</think>{SAID}<|tool_call_start|>[{}]<|tool_call_end|>",
                python(", ")
            ),
        ),
        only_calls("llama4_pythonic", format!("<|python_start|>[{}]<|python_end|>", python(", "))),
        only_calls("pythonic", format!("[{}]", python(", "))),
        full(
            "olmo3_pythonic",
            "<think>",
            thought_close(&format!("\n<function_calls>{}</function_calls>", python("\n"))),
        ),
        full(
            "harmony",
            "<|start|>assistant",
            harmony(
                "<|channel|>commentary to=functions.pin <|constrain|>json",
                " to=functions.dye<|channel|>commentary json",
            ),
        ),
        full(
            "harmony_llmjp",
            "<|start|>assistant",
            harmony(
                " to=functions.pin<|channel|>commentary <|constrain|> json",
                " to=functions.dye<|channel|>analysis <|constrain|> json",
            ),
        ),
        full(
            "muse_atem",
            "<|start|>assistant",
            format!(
                " to=self<|message|>{THOUGHT}<|eom|><|start|>assistant to=user<|message|>{SAID}<|eom|><|start|>assistant to=pin<|message|>{pin}<|eom|><|start|>assistant to=dye<|message|>{dye}<|eot|>"
            ),
        ),
        Row { calls: Vec::new(), ..full("content_only", "<think>\n", thought(SAID)) },
        Row {
            calls: Vec::new(),
            ..full("glm_4_1v", "", format!("<think>{THOUGHT}</think><answer>{SAID}</answer>"))
        },
        Row {
            calls: Vec::new(),
            ..full(
                "marco_o1",
                "",
                format!("<Thought>\n{THOUGHT}\n</Thought>\n<Output>\n{SAID}\n</Output>"),
            )
        },
    ]
}
