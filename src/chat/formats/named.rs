//! Calls that write the name first and then the arguments as one object.

use super::{Family, format, sign, sign_without, special, tags, texts, think, think_lines};
use crate::chat::arguments::Dialect;
use crate::chat::format::{
    ArgumentSyntax, CallIds, ChatFormat, Piece, Place, Reasoning, Text, ToolSyntax,
};

pub(super) const FAMILIES: &[Family] = &[
    Family {
        name: "functionary_v3_2",
        rank: 40,
        signs: &[sign(&[">>>all"])],
        tokens: &[],
        build: |_| {
            let call = vec![Piece::text(">>>"), Piece::Name, Piece::text("\n"), Piece::json()];
            ChatFormat {
                content_marks: texts(&[">>>all\n"]),
                tools: Some(blocks(call)),
                extra_stops: texts(&["<|eom_id|>", "<|eot_id|>"]),
                ..format("functionary_v3_2")
            }
        },
    },
    Family {
        name: "kimi_k2",
        rank: 50,
        signs: &[sign(&["<|tool_calls_section_begin|>"])],
        tokens: &["<|tool_calls_section_begin|>"],
        build: |_| kimi_k2(),
    },
    Family {
        name: "gemma4",
        rank: 110,
        signs: &[sign(&["<|tool_call>call:"]), sign(&["<|channel>", "<channel|>"])],
        tokens: &["<|tool_call>"],
        build: |_| {
            let call = vec![
                Piece::text("<|tool_call>call:"),
                Piece::Name,
                Piece::Arguments(ArgumentSyntax::Object(Dialect::Gemma4)),
                Piece::text("<tool_call|>"),
            ];
            ChatFormat {
                reasoning: special("<|channel>thought", "<channel|>", "\n"),
                content_marks: texts(&["<channel|>", "<|channel>"]),
                tools: Some(ToolSyntax { arguments_sorted: true, ..blocks(call) }),
                extra_stops: texts(&["<|tool_response>", "<turn|>"]),
                ..format("gemma4")
            }
        },
    },
    Family {
        name: "functiongemma",
        rank: 120,
        signs: &[sign(&["<start_function_call>"])],
        tokens: &["<start_function_call>"],
        build: |_| {
            let call = vec![
                Piece::text("<start_function_call>call:"),
                Piece::Name,
                Piece::Arguments(ArgumentSyntax::Object(Dialect::FunctionGemma)),
                Piece::text("<end_function_call>"),
            ];
            ChatFormat {
                tools: Some(blocks(call)),
                extra_stops: texts(&["<end_of_turn>"]),
                ..format("functiongemma")
            }
        },
    },
    Family {
        name: "deepseek_v3",
        rank: 230,
        signs: &[
            sign(&["<｜tool▁call▁begin｜>", "```json"]),
            sign(&["<｜tool▁calls▁begin｜>", "<｜tool▁sep｜>", "```json"]),
            sign_without(&["<｜Assistant｜>", "</think>"], &["<｜tool▁calls▁begin｜>"]),
        ],
        tokens: &[],
        build: |_| {
            let before = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>";
            let call = vec![
                Piece::text(before),
                Piece::Name,
                Piece::one_of(&["\n```json\n", ""]),
                Piece::json(),
                Piece::one_of(&["\n```<｜tool▁call▁end｜>", "<｜tool▁call▁end｜>"]),
            ];
            deepseek("deepseek_v3", call, "\n", think_lines())
        },
    },
    Family {
        name: "deepseek_v3_1",
        rank: 240,
        signs: &[sign_without(&["<｜tool▁call▁begin｜>"], &["```json"])],
        tokens: &["<｜tool▁calls▁begin｜>"],
        build: |_| {
            let call = vec![
                Piece::text("<｜tool▁call▁begin｜>"),
                Piece::Name,
                Piece::text("<｜tool▁sep｜>"),
                Piece::json(),
                Piece::text("<｜tool▁call▁end｜>"),
            ];
            deepseek("deepseek_v3_1", call, "", think())
        },
    },
    Family {
        name: "mistral_args_callid",
        rank: 245,
        signs: &[sign(&["[TOOL_CALLS]", "[CALL_ID]"])],
        tokens: &[],
        build: |evidence| {
            let call = vec![
                Piece::text("[TOOL_CALLS]"),
                Piece::Name,
                Piece::text("[CALL_ID]"),
                Piece::Id,
                Piece::text("[ARGS]"),
                Piece::json(),
            ];
            mistral("mistral_args_callid", call, evidence.shows("[THINK]"))
        },
    },
    Family {
        name: "mistral_args",
        rank: 250,
        signs: &[sign(&["[TOOL_CALLS]", "[ARGS]"])],
        tokens: &["[ARGS]"],
        build: |evidence| {
            let call = vec![
                Piece::text("[TOOL_CALLS]"),
                Piece::Name,
                Piece::text("[ARGS]"),
                Piece::json(),
            ];
            mistral("mistral_args", call, !evidence.shows("<think>"))
        },
    },
    Family {
        name: "functionary_v3_1",
        rank: 290,
        signs: &[sign_without(&["<function="], &["<tool_call>", "<parameter=", "<｜"])],
        tokens: &[],
        build: |_| {
            let call = vec![
                Piece::text("<function="),
                Piece::Name,
                Piece::text(">"),
                Piece::json(),
                Piece::text("</function>"),
            ];
            ChatFormat {
                tools: Some(blocks(call)),
                extra_stops: texts(&["<|eom_id|>", "<|eot_id|>"]),
                ..format("functionary_v3_1")
            }
        },
    },
    Family {
        name: "solar_open",
        rank: 295,
        signs: &[sign(&["<|tool_call:begin|>", "<|tool_call:name|>"])],
        tokens: &["<|tool_call:begin|>"],
        build: |_| {
            let call = vec![
                Piece::text("<|tool_call:begin|>"),
                Piece::Id,
                Piece::text("<|tool_call:name|>"),
                Piece::Name,
                Piece::text("<|tool_call:args|>"),
                Piece::json(),
                Piece::text("<|tool_call:end|>"),
            ];
            let tools = ToolSyntax {
                open: vec![Piece::text("<|tool_calls|>")],
                close: vec![Piece::text("<|calls|>")],
                ..blocks(call)
            };
            ChatFormat {
                reasoning: special("<|think|>", "<|end|>", ""),
                content_marks: texts(&["<|begin|>assistant", "<|content|>", "<|end|>"]),
                tools: Some(tools),
                call_ids: CallIds::Alphanumeric(10),
                extra_stops: texts(&["<|calls|>"]),
                ..format("solar_open")
            }
        },
    },
];

fn blocks(call: Vec<Piece>) -> ToolSyntax {
    ToolSyntax {
        open: Vec::new(),
        call,
        between: Text::Borrowed(""),
        close: Vec::new(),
        place: Place::Anywhere,
        arguments_sorted: false,
    }
}

fn deepseek(
    kind: &'static str,
    call: Vec<Piece>,
    between: &'static str,
    reasoning: Option<Reasoning>,
) -> ChatFormat {
    let tools = ToolSyntax {
        open: vec![Piece::text("<｜tool▁calls▁begin｜>")],
        between: Text::Borrowed(between),
        close: vec![Piece::text("<｜tool▁calls▁end｜>")],
        ..blocks(call)
    };
    ChatFormat { reasoning, tools: Some(tools), ..format(kind) }
}

/// From version 13 on thinking is in tokens, before it was in tags.
fn mistral(kind: &'static str, call: Vec<Piece>, thinks_in_tokens: bool) -> ChatFormat {
    let reasoning = if thinks_in_tokens {
        special("[THINK]", "[/THINK]", "")
    } else {
        Some(tags("<think>", "</think>", ["\n", "\n", "\n"]))
    };
    ChatFormat {
        reasoning,
        tools: Some(blocks(call)),
        call_ids: CallIds::Alphanumeric(9),
        ..format(kind)
    }
}

fn kimi_k2() -> ChatFormat {
    let call = vec![
        Piece::text("<|tool_call_begin|>"),
        Piece::one_of(&["functions.", ""]),
        Piece::Name,
        Piece::text(":"),
        Piece::Ordinal,
        Piece::text("<|tool_call_argument_begin|>"),
        Piece::json(),
        Piece::text("<|tool_call_end|>"),
    ];
    let tools = ToolSyntax {
        open: vec![Piece::one_of(&["<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"])],
        close: vec![Piece::one_of(&["<|tool_calls_section_end|>", "<|tool_call_section_end|>"])],
        ..blocks(call)
    };
    ChatFormat {
        reasoning: think(),
        tools: Some(tools),
        call_ids: CallIds::Header,
        extra_stops: texts(&["<|im_end|>"]),
        ..format("kimi_k2")
    }
}
