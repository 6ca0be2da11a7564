//! Answers that are a sequence of messages with headers.

use super::{Family, format, sign, tags, texts};
use crate::chat::format::{
    ArgumentSyntax, CallIds, Channels, ChatFormat, Parameters, Piece, Place, Text, ToolSyntax,
    Typing, Wrapping,
};

pub(super) const FAMILIES: &[Family] = &[
    Family {
        name: "harmony_llmjp",
        rank: 10,
        signs: &[sign(&["<|channel|>", "llm-jp"])],
        tokens: &[],
        build: |_| {
            harmony(
                "harmony_llmjp",
                " to=functions.",
                "<|channel|>commentary <|constrain|> json<|message|>",
            )
        },
    },
    Family {
        name: "harmony",
        rank: 20,
        signs: &[sign(&["<|channel|>"])],
        tokens: &["<|channel|>"],
        build: |_| {
            harmony(
                "harmony",
                "<|channel|>commentary to=functions.",
                " <|constrain|>json<|message|>",
            )
        },
    },
    Family {
        name: "muse_atem",
        rank: 30,
        signs: &[sign(&["<atem:function_calls>"]), sign(&["<atem:invoke"])],
        tokens: &[],
        build: |_| muse(),
    },
];

fn harmony(kind: &'static str, before_name: &'static str, after_name: &'static str) -> ChatFormat {
    let call = vec![
        Piece::text(before_name),
        Piece::Name,
        Piece::text(after_name),
        Piece::json(),
        Piece::one_of(&["<|call|>", "<|end|>", "<|return|>"]),
    ];
    let channels = Channels {
        starts: texts(&["<|start|>", "<|channel|>"]),
        message: Text::Borrowed("<|message|>"),
        ends: texts(&["<|end|>", "<|return|>", "<|call|>"]),
        recipient: Text::Borrowed("to=functions."),
        reasoning: Text::Borrowed("analysis"),
        words: texts(&["analysis", "commentary", "final"]),
        reasoning_header: Text::Borrowed("<|channel|>analysis<|message|>"),
        content_headers: texts(&[
            "<|channel|>final<|message|>",
            "<|channel|>commentary<|message|>",
        ]),
        next: Text::Borrowed("<|start|>assistant"),
    };
    ChatFormat {
        reasoning: Some(tags("<|channel|>analysis<|message|>", "<|end|>", ["", "", ""])),
        channels: Some(channels),
        tools: Some(ToolSyntax {
            open: Vec::new(),
            call,
            between: Text::Borrowed(""),
            close: Vec::new(),
            place: Place::Anywhere,
            arguments_sorted: false,
        }),
        extra_stops: texts(&["<|call|>", "<|return|>"]),
        ..format(kind)
    }
}

fn muse() -> ChatFormat {
    let parameters = Parameters {
        open: Text::Borrowed("<atem:parameter name=\""),
        name_end: Text::Borrowed("\">"),
        typing: Typing::Schema,
        wrapping: Wrapping::None,
        close: Text::Borrowed("</atem:parameter>"),
        between: Text::Borrowed("\n"),
        after: Text::Borrowed("\n"),
    };
    let channels = Channels {
        starts: texts(&["<|start|>"]),
        message: Text::Borrowed("<|message|>"),
        ends: texts(&["<|eom|>", "<|eot|>"]),
        recipient: Text::Borrowed(""),
        reasoning: Text::Borrowed("to=self"),
        words: texts(&["to=self", "to=user"]),
        reasoning_header: Text::Borrowed(" to=self<|message|>"),
        content_headers: texts(&[" to=user<|message|>"]),
        next: Text::Borrowed("<|start|>assistant"),
    };
    ChatFormat {
        reasoning: Some(tags("to=self<|message|>", "<|eom|>", ["", "", ""])),
        channels: Some(channels),
        tools: Some(ToolSyntax {
            open: vec![Piece::text("<atem:function_calls>\n")],
            call: vec![
                Piece::text("<atem:invoke name=\""),
                Piece::Name,
                Piece::text("\">\n"),
                Piece::Arguments(ArgumentSyntax::Parameters(parameters)),
                Piece::text("</atem:invoke>"),
            ],
            between: Text::Borrowed("\n"),
            close: vec![Piece::text("\n</atem:function_calls>")],
            place: Place::Anywhere,
            arguments_sorted: false,
        }),
        call_ids: CallIds::Generated,
        extra_stops: texts(&["<|eot|>"]),
        ..format("muse_atem")
    }
}
