//! Calls that write a block a parameter.

use super::{Family, format, sign, sign_without, special, tags, texts, think, think_lines};
use crate::chat::detect::Evidence;
use crate::chat::format::{
    ArgumentSyntax, ChatFormat, Parameters, Piece, Place, Text, ToolSyntax, Typing, Wrapping,
};

pub(super) const FAMILIES: &[Family] = &[
    Family {
        name: "kimi_k3",
        rank: 60,
        signs: &[sign(&["<|open|>", "<|close|>", "<|sep|>"]), sign(&["<|open|>call tool="])],
        tokens: &[],
        build: |_| kimi_k3(),
    },
    Family {
        // Its values nest tags, which no kind of arguments here reads: calls stay content.
        name: "minimax_m3",
        rank: 70,
        signs: &[sign(&["]<]minimax[>["]), sign(&["<mm:think>"])],
        tokens: &["]<]minimax[>["],
        build: |_| ChatFormat {
            reasoning: Some(tags("<mm:think>", "</mm:think>", ["", "", ""])),
            extra_stops: texts(&["[e~["]),
            ..format("minimax_m3")
        },
    },
    Family {
        name: "minimax_m2",
        rank: 80,
        signs: &[sign(&["<minimax:tool_call>"])],
        tokens: &["<minimax:tool_call>"],
        build: |_| {
            let tools = invokes(
                &["<minimax:tool_call>\n", "\n</minimax:tool_call>"],
                &["<invoke name=\"", "\">\n", "</invoke>"],
                quoted("<parameter name=\"", "</parameter>", Typing::Schema),
            );
            ChatFormat {
                reasoning: think_lines(),
                tools: Some(tools),
                extra_stops: texts(&["[e~["]),
                ..format("minimax_m2")
            }
        },
    },
    Family {
        name: "dsml_v3_2",
        rank: 90,
        signs: &[sign(&["｜DSML｜function_calls"]), sign(&["DSML", "function_calls"])],
        tokens: &[],
        build: |_| dsml("dsml_v3_2", "function_calls"),
    },
    Family {
        name: "dsml_v4_1",
        rank: 95,
        signs: &[sign(&["<｜DSML｜ calls>"])],
        tokens: &[],
        build: |_| dsml("dsml_v4", " calls"),
    },
    Family {
        name: "dsml_v4",
        rank: 100,
        signs: &[sign(&["DSML"])],
        tokens: &["｜DSML｜"],
        build: |_| dsml("dsml_v4", "tool_calls"),
    },
    Family {
        name: "ling3",
        rank: 130,
        signs: &[sign(&["<role>ASSISTANT</role>", "<arg_key>"])],
        tokens: &[],
        build: |_| {
            let reasoning = think();
            ChatFormat { reasoning, extra_stops: texts(&["<|role_end|>"]), ..glm("ling3", "\n") }
        },
    },
    Family {
        name: "hunyuan_v3",
        rank: 140,
        signs: &[sign(&["<tool_sep", "<arg_key"])],
        tokens: &["<tool_sep>", "<tool_sep:opensource>"],
        build: hunyuan_v3,
    },
    Family {
        name: "glm_xml_47",
        rank: 145,
        signs: &[sign_without(
            &["</arg_key><arg_value>", "</arg_value><"],
            &["</arg_key>\n<arg_value>", "</arg_key>\\n<arg_value>"],
        )],
        tokens: &[],
        build: |_| ChatFormat {
            reasoning: think(),
            extra_stops: texts(&["<|user|>", "<|observation|>"]),
            ..glm("glm_xml", "")
        },
    },
    Family {
        name: "glm_xml_45",
        rank: 150,
        signs: &[sign(&["<arg_key>", "<arg_value>"])],
        tokens: &["<arg_key>"],
        build: |_| ChatFormat {
            reasoning: Some(tags("<think>", "</think>", ["", "", "\n"])),
            extra_stops: texts(&["<|user|>", "<|observation|>"]),
            ..glm("glm_xml", "\n")
        },
    },
    Family {
        name: "step3",
        rank: 160,
        signs: &[sign(&["<steptml:invoke"])],
        tokens: &["<steptml:invoke"],
        build: |_| {
            let tools = invokes(
                &["<｜tool_calls_begin｜>", "<｜tool_calls_end｜>"],
                &[
                    "<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name=\"",
                    "\">",
                    "</steptml:invoke><｜tool_call_end｜>",
                ],
                Parameters {
                    between: Text::Borrowed(""),
                    after: Text::Borrowed(""),
                    ..quoted("<steptml:parameter name=\"", "</steptml:parameter>", Typing::Schema)
                },
            );
            let tools = ToolSyntax { between: Text::Borrowed(""), ..tools };
            ChatFormat { reasoning: think(), tools: Some(tools), ..format("step3") }
        },
    },
    Family {
        name: "seed_oss",
        rank: 170,
        signs: &[sign(&["seed:tool_call"])],
        tokens: &["<seed:tool_call>"],
        build: |_| {
            let parameters = Parameters { wrapping: Wrapping::None, ..function_parameters() };
            ChatFormat {
                reasoning: Some(tags("<seed:think>", "</seed:think>", ["", "", ""])),
                tools: Some(functions("<seed:tool_call>", "</seed:tool_call>", parameters)),
                extra_stops: texts(&["<seed:eos>"]),
                ..format("seed_oss")
            }
        },
    },
    Family {
        name: "minicpm5",
        rank: 270,
        signs: &[sign(&["<function name=", "<param name="])],
        tokens: &[],
        build: |_| {
            let parameters = Parameters {
                wrapping: Wrapping::Cdata,
                between: Text::Borrowed(""),
                after: Text::Borrowed(""),
                ..quoted("<param name=\"", "</param>", Typing::Schema)
            };
            let call = vec![
                Piece::text("<function name=\""),
                Piece::Name,
                Piece::text("\">"),
                Piece::Arguments(ArgumentSyntax::Parameters(parameters)),
                Piece::text("</function>"),
            ];
            ChatFormat {
                reasoning: think_lines(),
                tools: Some(blocks(call)),
                extra_stops: texts(&["<|im_end|>"]),
                ..format("minicpm5")
            }
        },
    },
    Family {
        name: "qwen_xml",
        rank: 280,
        signs: &[sign(&["<function=", "<parameter="])],
        tokens: &[],
        build: |_| ChatFormat {
            reasoning: think_lines(),
            tools: Some(functions("<tool_call>", "</tool_call>", function_parameters())),
            ..format("qwen_xml")
        },
    },
];

fn blocks(call: Vec<Piece>) -> ToolSyntax {
    ToolSyntax {
        open: Vec::new(),
        call,
        between: Text::Borrowed("\n"),
        close: Vec::new(),
        place: Place::Anywhere,
        arguments_sorted: false,
    }
}

/// `<parameter=NAME>` on lines of their own around the value.
fn function_parameters() -> Parameters {
    Parameters {
        open: Text::Borrowed("<parameter="),
        name_end: Text::Borrowed(">"),
        typing: Typing::Schema,
        wrapping: Wrapping::Newlines,
        close: Text::Borrowed("</parameter>"),
        between: Text::Borrowed("\n"),
        after: Text::Borrowed("\n"),
    }
}

/// `NAME">` between a parameter's opener and its value; the type too, where the format has one.
fn quoted(open: &'static str, close: &'static str, typing: Typing) -> Parameters {
    Parameters {
        open: Text::Borrowed(open),
        name_end: Text::Borrowed("\">"),
        typing,
        wrapping: Wrapping::None,
        close: Text::Borrowed(close),
        ..function_parameters()
    }
}

/// `<tool_call>` and `<function=NAME>`; the outer pair is left out by some models.
fn functions(open: &'static str, close: &'static str, parameters: Parameters) -> ToolSyntax {
    blocks(vec![
        Piece::one_of(&[open, ""]),
        Piece::text("\n<function="),
        Piece::Name,
        Piece::text(">\n"),
        Piece::Arguments(ArgumentSyntax::Parameters(parameters)),
        Piece::text("</function>\n"),
        Piece::one_of(&[close, ""]),
    ])
}

/// A block with calls, each with a head and a foot.
fn invokes(
    block: &[&'static str; 2],
    call: &[&'static str; 3],
    parameters: Parameters,
) -> ToolSyntax {
    ToolSyntax {
        open: vec![Piece::text(block[0])],
        close: vec![Piece::text(block[1])],
        ..blocks(vec![
            Piece::text(call[0]),
            Piece::Name,
            Piece::text(call[1]),
            Piece::Arguments(ArgumentSyntax::Parameters(parameters)),
            Piece::text(call[2]),
        ])
    }
}

fn dsml(kind: &'static str, block: &'static str) -> ChatFormat {
    let parameters = Parameters {
        name_end: Text::Borrowed("\" string=\""),
        ..quoted(
            "<｜DSML｜parameter name=\"",
            "</｜DSML｜parameter>",
            Typing::StringFlag(Text::Borrowed("\">")),
        )
    };
    let tools =
        invokes(&["", ""], &["<｜DSML｜invoke name=\"", "\">\n", "</｜DSML｜invoke>"], parameters);
    let frame = |before: &str, after: &str| {
        vec![Piece::Text(Text::Owned(format!("{before}{block}{after}")))]
    };
    let tools =
        ToolSyntax {
            open: frame("<｜DSML｜", ">\n"), close: frame("\n</｜DSML｜", ">"), ..tools
        };
    ChatFormat { reasoning: think(), tools: Some(tools), ..format(kind) }
}

fn glm(kind: &'static str, line: &'static str) -> ChatFormat {
    let name_end =
        if line.is_empty() { "</arg_key><arg_value>" } else { "</arg_key>\n<arg_value>" };
    let parameters = Parameters {
        open: Text::Borrowed("<arg_key>"),
        name_end: Text::Borrowed(name_end),
        close: Text::Borrowed("</arg_value>"),
        between: Text::Borrowed(line),
        after: Text::Borrowed(line),
        wrapping: Wrapping::None,
        ..function_parameters()
    };
    let mut call = vec![Piece::text("<tool_call>"), Piece::Name];
    if !line.is_empty() {
        call.push(Piece::one_of(&["\n", ""]));
    }
    call.push(Piece::Arguments(ArgumentSyntax::Parameters(parameters)));
    call.push(Piece::text("</tool_call>"));
    let tools = ToolSyntax { between: Text::Borrowed(line), ..blocks(call) };
    ChatFormat { tools: Some(tools), ..format(kind) }
}

/// Every marker ends with a suffix that the tokenizer's files name.
fn hunyuan_v3(evidence: &Evidence) -> ChatFormat {
    let suffix = evidence.between("<tool_sep", ">").unwrap_or_else(|| ":opensource".to_owned());
    let tag = |before: &str, name: &str, after: &str| {
        Text::Owned(format!("{before}{name}{suffix}>{after}"))
    };
    let parameters = Parameters {
        open: tag("<", "arg_key", ""),
        name_end: Text::Owned(format!("</arg_key{suffix}>\n<arg_value{suffix}>")),
        close: tag("</", "arg_value", ""),
        wrapping: Wrapping::None,
        ..function_parameters()
    };
    let call = vec![
        Piece::Text(tag("<", "tool_call", "")),
        Piece::Name,
        Piece::Text(tag("<", "tool_sep", "\n")),
        Piece::Arguments(ArgumentSyntax::Parameters(parameters)),
        Piece::Text(tag("</", "tool_call", "")),
    ];
    let tools = ToolSyntax {
        open: vec![Piece::Text(tag("<", "tool_calls", "\n"))],
        close: vec![Piece::Text(tag("\n</", "tool_calls", ""))],
        ..blocks(call)
    };
    let reasoning = think().map(|reasoning| crate::chat::format::Reasoning {
        open: tag("<", "think", ""),
        close: tag("</", "think", ""),
        ..reasoning
    });
    ChatFormat { reasoning, tools: Some(tools), ..format("hunyuan_v3") }
}

fn kimi_k3() -> ChatFormat {
    let parameters = Parameters {
        open: Text::Borrowed("<|open|>argument key=\""),
        name_end: Text::Borrowed("\" type=\""),
        typing: Typing::TypeName(Text::Borrowed("\"<|sep|>")),
        wrapping: Wrapping::None,
        close: Text::Borrowed("<|close|>argument<|sep|>"),
        between: Text::Borrowed(""),
        after: Text::Borrowed(""),
    };
    let call = vec![
        Piece::text("<|open|>call tool=\""),
        Piece::Name,
        Piece::text("\" index=\""),
        Piece::Ordinal,
        Piece::text("\"<|sep|>"),
        Piece::Arguments(ArgumentSyntax::Parameters(parameters)),
        Piece::text("<|close|>call<|sep|>"),
    ];
    let tools = ToolSyntax {
        open: vec![Piece::text("<|open|>tools<|sep|>")],
        close: vec![Piece::text("<|close|>tools<|sep|>")],
        between: Text::Borrowed(""),
        ..blocks(call)
    };
    ChatFormat {
        reasoning: special("<|open|>think<|sep|>", "<|close|>think<|sep|>", ""),
        content_marks: texts(&[
            "<|open|>response<|sep|>",
            "<|close|>response<|sep|>",
            "<|close|>message<|sep|>",
            "<|end_of_msg|>",
        ]),
        tools: Some(tools),
        extra_stops: texts(&["<|end_of_msg|>"]),
        ..format("kimi_k3")
    }
}
