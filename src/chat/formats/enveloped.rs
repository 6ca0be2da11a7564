//! Calls as JSON objects that hold the name and the arguments.

use super::{
    Family, format, name_and_arguments, name_arguments_and_id, sign, sign_without, special, tags,
    texts, think, think_lines,
};
use crate::chat::format::{
    CallIds, ChatFormat, Envelope, Member, Piece, Place, Reasoning, Text, ToolSyntax,
};

pub(super) const FAMILIES: &[Family] = &[
    Family {
        name: "cohere2moe",
        rank: 180,
        signs: &[sign(&["<|START_ACTION|>", "<|START_TEXT|>"])],
        tokens: &[],
        build: |_| cohere("cohere2moe", &["<|START_TEXT|>", "<|END_TEXT|>"]),
    },
    Family {
        name: "cohere_action",
        rank: 190,
        signs: &[sign(&["<|START_ACTION|>"])],
        tokens: &["<|START_ACTION|>"],
        build: |_| cohere("cohere_action", &["<|START_RESPONSE|>", "<|END_RESPONSE|>"]),
    },
    Family {
        name: "cohere_md",
        rank: 200,
        signs: &[sign(&["Action:", "```json", "tool_name"])],
        tokens: &[],
        build: |_| {
            let open = [Piece::text("Action:\n```json\n"), Piece::text("[\n")];
            let close = [Piece::text("\n]"), Piece::text("\n```")];
            let tools = list(&open, cohere_call(false), ",\n", &close);
            ChatFormat { tools: Some(tools), ..format("cohere_md") }
        },
    },
    Family {
        name: "apertus",
        rank: 210,
        signs: &[sign(&["<|tools_prefix|>"])],
        tokens: &["<|tools_prefix|>"],
        build: |_| {
            let open = [Piece::text("<|tools_prefix|>"), Piece::text("[")];
            let close = [Piece::text("]"), Piece::text("<|tools_suffix|>")];
            ChatFormat {
                reasoning: special("<|inner_prefix|>", "<|inner_suffix|>", ""),
                tools: Some(list(&open, Piece::Envelope(Envelope::NameIsKey), ", ", &close)),
                extra_stops: texts(&["<|assistant_end|>"]),
                ..format("apertus")
            }
        },
    },
    Family {
        name: "custom_deepseek_json",
        rank: 225,
        signs: &[sign_without(
            &["<｜tool▁call▁begin｜>", "\"parameters\": dictionary"],
            &["<｜tool▁sep｜>"],
        )],
        tokens: &[],
        build: |_| {
            let call = vec![
                Piece::text("<｜tool▁call▁begin｜>"),
                Piece::envelope(&[
                    (Member::Name, &["name"]),
                    (Member::Arguments, &["parameters", "arguments"]),
                ]),
                Piece::text("<｜tool▁call▁end｜>"),
            ];
            let tools = ToolSyntax {
                open: vec![Piece::text("<｜tool▁calls▁begin｜>")],
                close: vec![Piece::text("<｜tool▁calls▁end｜>")],
                ..blocks(call)
            };
            ChatFormat { tools: Some(tools), ..format("custom_deepseek_json") }
        },
    },
    Family {
        name: "mistral_json",
        rank: 260,
        signs: &[sign_without(&["[TOOL_CALLS]"], &["[ARGS]"])],
        tokens: &["[TOOL_CALLS]"],
        build: |_| {
            let open = [Piece::text("[TOOL_CALLS]"), Piece::text("[")];
            ChatFormat {
                tools: Some(list(&open, name_arguments_and_id(), ", ", &[Piece::text("]")])),
                call_ids: CallIds::Alphanumeric(9),
                ..format("mistral_json")
            }
        },
    },
    Family {
        name: "gigachat3",
        rank: 300,
        signs: &[sign(&["function call<|role_sep|>"])],
        tokens: &[],
        build: |_| {
            let call = vec![Piece::text("function call<|role_sep|>\n"), name_and_arguments()];
            ChatFormat {
                content_marks: texts(&["<|message_sep|>"]),
                tools: Some(ToolSyntax {
                    between: Text::Borrowed("<|message_sep|>\n\n"),
                    ..blocks(call)
                }),
                ..format("gigachat3")
            }
        },
    },
    Family {
        name: "gigachat3_1",
        rank: 305,
        signs: &[sign(&["<|function_call|>", "role_sep"])],
        tokens: &[],
        build: |_| {
            let call = vec![Piece::text("<|function_call|>"), name_and_arguments()];
            ChatFormat {
                tools: Some(blocks(call)),
                extra_stops: texts(&["<|message_sep|>"]),
                ..format("gigachat3_1")
            }
        },
    },
    Family {
        name: "nemotron_toolcall",
        rank: 310,
        signs: &[sign(&["<TOOLCALL>"])],
        tokens: &[],
        build: |_| {
            let open = [Piece::text("<TOOLCALL>"), Piece::text("[")];
            let close = [Piece::text("]"), Piece::text("</TOOLCALL>")];
            ChatFormat {
                reasoning: think_lines(),
                tools: Some(list(&open, name_and_arguments(), ", ", &close)),
                extra_stops: texts(&["<SPECIAL_12>"]),
                ..format("nemotron_toolcall")
            }
        },
    },
    Family {
        name: "functools",
        rank: 330,
        signs: &[sign(&["functools["]), sign(&["functools", "<|/tool_call|>"])],
        tokens: &[],
        build: |_| {
            let open = [Piece::one_of(&["functools", "<|tool_call|>"]), Piece::text("[")];
            let close = [Piece::text("]"), Piece::one_of(&["", "<|/tool_call|>"])];
            ChatFormat {
                tools: Some(list(&open, name_and_arguments(), ", ", &close)),
                extra_stops: texts(&["<|end|>"]),
                ..format("functools")
            }
        },
    },
    Family {
        name: "granite3",
        rank: 340,
        signs: &[sign_without(&["<|tool_call|>"], &["<tool_call>"])],
        tokens: &[],
        build: |evidence| {
            let open = [Piece::one_of(&["<|tool_call|>", "<tool_call>"]), Piece::text("[")];
            ChatFormat {
                reasoning: granite_reasoning(evidence.shows("Here is my thought process:")),
                content_marks: texts(&["<response>", "</response>"]),
                tools: Some(list(&open, name_and_arguments(), ", ", &[Piece::text("]")])),
                extra_stops: texts(&["<|end_of_text|>"]),
                ..format("granite3")
            }
        },
    },
    Family {
        name: "hunyuan_a13b",
        rank: 360,
        signs: &[sign(&["<tool_calls>", "<answer>"])],
        tokens: &[],
        build: |_| ChatFormat {
            reasoning: Some(tags("<think>", "</think>", ["\n", "\n", "\n"])),
            content_marks: texts(&["<answer>", "</answer>"]),
            ..tool_calls_array("hunyuan_a13b", name_and_arguments())
        },
    },
    Family {
        name: "apriel",
        rank: 365,
        signs: &[sign(&["<tool_calls>", "[BEGIN FINAL RESPONSE]"])],
        tokens: &[],
        build: |_| ChatFormat {
            reasoning: Some(tags(
                "Here are my reasoning steps:",
                "[BEGIN FINAL RESPONSE]",
                ["\n", "\n", "\n"],
            )),
            content_marks: texts(&["[END FINAL RESPONSE]"]),
            extra_stops: texts(&["<|end|>"]),
            ..tool_calls_array("tool_calls_array", name_arguments_and_id())
        },
    },
    Family {
        name: "tool_calls_jsonl",
        rank: 370,
        signs: &[
            sign(&["<tool_calls>", "\n...\n</tool_calls>"]),
            sign(&["<tool_calls>", "\\n...\\n</tool_calls>"]),
        ],
        tokens: &[],
        build: |_| {
            let tools = list(
                &[Piece::text("<tool_calls>\n")],
                name_and_arguments(),
                "\n",
                &[Piece::text("\n</tool_calls>")],
            );
            ChatFormat {
                reasoning: think_lines(),
                tools: Some(tools),
                ..format("tool_calls_jsonl")
            }
        },
    },
    Family {
        name: "tool_calls_array",
        rank: 375,
        signs: &[sign(&["<tool_calls>", "</tool_calls>"])],
        tokens: &[],
        build: |_| ChatFormat {
            reasoning: think_lines(),
            ..tool_calls_array("tool_calls_array", name_and_arguments())
        },
    },
    Family {
        name: "internlm2",
        rank: 380,
        signs: &[sign(&["<|action_start|>"])],
        tokens: &[],
        build: |_| {
            let call = vec![
                Piece::text("<|action_start|><|plugin|>\n"),
                Piece::envelope(&[
                    (Member::Name, &["name"]),
                    (Member::Arguments, &["parameters", "arguments"]),
                ]),
                Piece::text("<|action_end|>"),
            ];
            ChatFormat { tools: Some(blocks(call)), ..format("internlm2") }
        },
    },
    Family {
        name: "granite20b_fc",
        rank: 385,
        signs: &[sign(&["<function_call> {"])],
        tokens: &[],
        build: |_| {
            let call = vec![Piece::text("<function_call> "), name_and_arguments()];
            let tools = ToolSyntax { between: Text::Borrowed("\n"), ..blocks(call) };
            ChatFormat { tools: Some(tools), ..format("granite20b_fc") }
        },
    },
    Family {
        name: "exaone4",
        rank: 395,
        signs: &[sign(&["[|endofturn|]", "<tool_call>"])],
        tokens: &[],
        build: |_| hermes("<tool_call>", "</tool_call>"),
    },
    Family {
        name: "hermes_json",
        rank: 400,
        signs: &[sign(&["<tool_call>"])],
        tokens: &["<tool_call>"],
        build: |_| hermes("<tool_call>\n", "\n</tool_call>"),
    },
];

/// Each call is a block of its own.
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

/// One block with all calls.
fn list(open: &[Piece], call: Piece, between: &'static str, close: &[Piece]) -> ToolSyntax {
    ToolSyntax {
        open: open.to_vec(),
        between: Text::Borrowed(between),
        close: close.to_vec(),
        ..blocks(vec![call])
    }
}

fn hermes(open: &'static str, close: &'static str) -> ChatFormat {
    let call = vec![Piece::text(open), name_and_arguments(), Piece::text(close)];
    ChatFormat {
        reasoning: think_lines(),
        tools: Some(ToolSyntax { between: Text::Borrowed("\n"), ..blocks(call) }),
        ..format("hermes_json")
    }
}

fn tool_calls_array(kind: &'static str, call: Piece) -> ChatFormat {
    let open = [Piece::text("<tool_calls>"), Piece::text("[")];
    let close = [Piece::text("]"), Piece::text("</tool_calls>")];
    let tools = list(&open, call, ", ", &close);
    ChatFormat { tools: Some(tools), ..format(kind) }
}

fn cohere(kind: &'static str, marks: &[&'static str]) -> ChatFormat {
    let open = [Piece::text("<|START_ACTION|>"), Piece::text("[\n    ")];
    let close = [Piece::text("\n]"), Piece::text("<|END_ACTION|>")];
    ChatFormat {
        reasoning: special("<|START_THINKING|>", "<|END_THINKING|>", ""),
        content_marks: texts(marks),
        tools: Some(list(&open, cohere_call(true), ",\n    ", &close)),
        extra_stops: texts(&["<|END_OF_TURN_TOKEN|>"]),
        ..format(kind)
    }
}

fn cohere_call(with_id: bool) -> Piece {
    let members: &[(Member, &[&'static str])] = &[
        (Member::Id, &["tool_call_id"]),
        (Member::Name, &["tool_name", "name"]),
        (Member::Arguments, &["parameters", "arguments"]),
    ];
    Piece::envelope(members.get(usize::from(!with_id)..).unwrap_or(members))
}

/// Granite 3.2 thinks between two sentences, 3.3 between tags.
fn granite_reasoning(in_words: bool) -> Option<Reasoning> {
    if in_words {
        let gaps = ["\n", "\n\n", "\n"];
        return Some(tags("Here is my thought process:", "Here is my response:", gaps));
    }
    think()
}
