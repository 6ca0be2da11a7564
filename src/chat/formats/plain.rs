//! Formats without calls, of which only the reasoning is known.

use super::{Family, format, sign, tags, texts, think_lines};
use crate::chat::format::{ChatFormat, Reasoning, ReasoningMode};

pub(super) const FAMILIES: &[Family] = &[
    Family {
        name: "glm_4_1v",
        rank: 900,
        signs: &[sign(&["[gMASK]<sop>", "<|begin_of_video|>"])],
        tokens: &[],
        // Its template never shows the thinking, which every answer has.
        build: |_| ChatFormat {
            reasoning: Some(Reasoning {
                mode: ReasoningMode::Forced,
                ..tags("<think>", "</think>", ["", "", ""])
            }),
            content_marks: texts(&["<answer>", "</answer>", "<|begin_of_box|>", "<|end_of_box|>"]),
            extra_stops: texts(&["<|user|>"]),
            ..format("content_only")
        },
    },
    Family {
        name: "marco_o1",
        rank: 910,
        signs: &[sign(&["<Thought>", "<Output>"])],
        tokens: &[],
        build: |_| ChatFormat {
            reasoning: Some(tags("<Thought>", "</Thought>", ["\n", "\n", "\n"])),
            content_marks: texts(&["<Output>", "</Output>"]),
            ..format("content_only")
        },
    },
    Family {
        name: "content_only",
        rank: 999,
        signs: &[sign(&[])],
        tokens: &[],
        build: |_| ChatFormat { reasoning: think_lines(), ..format("content_only") },
    },
];
