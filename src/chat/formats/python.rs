//! Calls as Python writes them.

use super::{Family, format, sign, sign_without, texts, think};
use crate::chat::format::{ArgumentSyntax, ChatFormat, Piece, Place, Text, ToolSyntax};

pub(super) const FAMILIES: &[Family] = &[
    Family {
        name: "lfm2_pythonic",
        rank: 320,
        signs: &[
            sign(&["<|tool_call_start|>"]),
            sign(&["<|tool_list_start|>"]),
            sign(&["List of tools: ["]),
        ],
        tokens: &["<|tool_call_start|>"],
        build: |_| {
            let tools = calls(
                &[Piece::text("<|tool_call_start|>"), Piece::text("[")],
                ", ",
                &[Piece::text("]"), Piece::text("<|tool_call_end|>")],
            );
            ChatFormat {
                reasoning: think(),
                tools: Some(tools),
                extra_stops: texts(&["<|im_end|>"]),
                ..format("lfm2_pythonic")
            }
        },
    },
    Family {
        name: "olmo3_pythonic",
        rank: 350,
        signs: &[sign(&["<function_calls>"])],
        tokens: &[],
        build: |_| {
            let open = [Piece::text("<function_calls>")];
            let tools = calls(&open, "\n", &[Piece::text("</function_calls>")]);
            ChatFormat {
                reasoning: think(),
                tools: Some(tools),
                extra_stops: texts(&["<|im_end|>"]),
                ..format("olmo3_pythonic")
            }
        },
    },
    Family {
        name: "llama4_pythonic",
        rank: 410,
        signs: &[sign(&["<|python_start|>", "<|python_end|>"])],
        tokens: &["<|python_start|>"],
        build: |_| {
            let open = [Piece::one_of(&["<|python_start|>", ""]), Piece::text("[")];
            let close = [Piece::text("]"), Piece::one_of(&["<|python_end|>", ""])];
            ChatFormat {
                tools: Some(ToolSyntax { place: Place::Start, ..calls(&open, ", ", &close) }),
                extra_stops: texts(&["<|eot|>", "<|eom|>"]),
                ..format("llama4_pythonic")
            }
        },
    },
    Family {
        name: "pythonic",
        rank: 415,
        signs: &[sign_without(&["[func_name1("], &["<|tool_call"])],
        tokens: &[],
        build: |_| {
            let open = [Piece::one_of(&["", "<|python_start|>"]), Piece::text("[")];
            let close = [Piece::text("]"), Piece::one_of(&["", "<|python_end|>"])];
            let tools = ToolSyntax { place: Place::Start, ..calls(&open, ", ", &close) };
            ChatFormat { tools: Some(tools), ..format("pythonic") }
        },
    },
];

fn calls(open: &[Piece], between: &'static str, close: &[Piece]) -> ToolSyntax {
    ToolSyntax {
        open: open.to_vec(),
        call: vec![Piece::Name, Piece::text("("), Piece::Arguments(ArgumentSyntax::PythonCall)],
        between: Text::Borrowed(between),
        close: close.to_vec(),
        place: Place::Anywhere,
        arguments_sorted: false,
    }
}
