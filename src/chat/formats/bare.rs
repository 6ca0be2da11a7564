//! Calls without a marker of their own: they stand at the start of an answer.

use super::{Family, format, name_and_arguments, sign, sign_without, texts};
use crate::chat::format::{ChatFormat, Member, Piece, Place, Text, ToolSyntax};

pub(super) const FAMILIES: &[Family] = &[
    Family {
        name: "json_array_bare",
        rank: 420,
        signs: &[sign(&["single JSON array", "\"arguments\""])],
        tokens: &[],
        build: |_| {
            let tools = ToolSyntax {
                open: vec![Piece::text("[")],
                close: vec![Piece::text("]")],
                ..bare(vec![name_and_arguments()], ", ")
            };
            ChatFormat { tools: Some(tools), ..format("json_array_bare") }
        },
    },
    Family {
        name: "glm4_plain",
        rank: 430,
        signs: &[sign_without(&["[gMASK]", "请使用 Json 格式表示调用的参数"], &["<tool_call>"])],
        tokens: &[],
        build: |_| {
            let tools = bare(vec![Piece::Name, Piece::text("\n"), Piece::json()], "");
            let extra_stops = texts(&["<|user|>", "<|observation|>"]);
            ChatFormat { tools: Some(tools), extra_stops, ..format("glm4_plain") }
        },
    },
    Family {
        name: "llama4_json",
        rank: 405,
        signs: &[sign(&["<|header_start|>", "\"parameters\": dictionary"])],
        tokens: &[],
        build: |_| {
            let extra_stops = texts(&["<|eom|>", "<|eot|>"]);
            ChatFormat { extra_stops, ..llama("llama4_json", "") }
        },
    },
    Family {
        name: "llama3_json",
        rank: 450,
        signs: &[
            sign(&["<|python_tag|>"]),
            sign(&["Environment: ipython"]),
            sign(&["\"parameters\": dictionary"]),
        ],
        tokens: &["<|python_tag|>"],
        build: |_| {
            let extra_stops = texts(&["<|eom_id|>", "<|eot_id|>"]);
            ChatFormat { extra_stops, ..llama("llama3_json", "; ") }
        },
    },
];

fn bare(call: Vec<Piece>, between: &'static str) -> ToolSyntax {
    ToolSyntax {
        open: Vec::new(),
        call,
        between: Text::Borrowed(between),
        close: Vec::new(),
        place: Place::Start,
        arguments_sorted: false,
    }
}

fn llama(kind: &'static str, between: &'static str) -> ChatFormat {
    let envelope = Piece::envelope(&[
        (Member::Name, &["name"]),
        (Member::Arguments, &["parameters", "arguments"]),
    ]);
    let call = vec![Piece::one_of(&["", "<|python_tag|>"]), envelope];
    ChatFormat { tools: Some(bare(call, between)), ..format(kind) }
}
