//! Formats are told from templates written for these tests.

#![allow(clippy::unwrap_used)]

mod chat_support;

use chat_support::rows;
use pleach::chat::detect::{Detected, ModelFiles, detect, named};
use pleach::chat::format::{ChatFormat, ReasoningMode};
use pleach::chat::template::ChatTemplate;
use pleach::vocab::{Token, TokenKind, Vocabulary};
use serde_json::json;

/// Turns in the style of ChatML; a template's own text goes before.
const TURNS: &str = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n\
                     {% endfor %}";
const OPENING: &str = "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

fn detected(source: &str, vocabulary: Option<&Vocabulary>) -> ChatFormat {
    let template = ChatTemplate::compile(source).unwrap();
    let files = ModelFiles { source, template: &template, vocabulary, response_template: None };
    detect(&files).format
}

fn stops(format: &ChatFormat) -> Vec<&str> {
    format.extra_stops.iter().map(AsRef::as_ref).collect()
}

fn mode(format: &ChatFormat) -> Option<ReasoningMode> {
    format.reasoning.as_ref().map(|reasoning| reasoning.mode)
}

/// A template that tells its model how to call, by an example.
#[test]
fn every_format_is_told_by_its_own_markup() {
    // What a format without markers of its own is told by.
    let hints = [
        ("llama3_json", "Respond with {\"name\": name, \"parameters\": dictionary of arguments}."),
        ("llama4_json", "<|header_start|>: {\"name\": name, \"parameters\": dictionary}"),
        ("json_array_bare", "Make calls in a single JSON array with \"name\" and \"arguments\""),
        ("glm4_plain", "[gMASK]在调用上述函数时，请使用 Json 格式表示调用的参数。"),
        ("pythonic", "in the format [func_name1(params_name1=value1), func_name2(params)]"),
        ("custom_deepseek_json", "{\"name\": name, \"parameters\": dictionary of arguments}"),
        ("tool_calls_jsonl", "<tool_calls>\n{...}\n...\n</tool_calls>"),
        ("harmony_llmjp", "made by llm-jp"),
        ("exaone4", "[|endofturn|]"),
        ("glm_4_1v", "[gMASK]<sop><|begin_of_video|>"),
        ("gigachat3_1", "<|role_sep|>"),
        ("ling3", "<role>ASSISTANT</role>"),
        ("functionary_v3_2", ">>>all"),
    ];
    for row in rows() {
        let hint = hints.iter().find(|(name, _)| *name == row.name).map_or("", |(_, hint)| hint);
        let text = format!("{hint}\n{}", row.raw);
        let source = format!("{{% raw %}}{text}{{% endraw %}}{TURNS}{OPENING}");
        let format = detected(&source, None);
        assert_eq!(format.kind, row.format().kind, "{}", row.name);
        let thinks = !row.reasoning.is_empty();
        // The answers of these two do not show the thinking that the formats have.
        let silent = ["hunyuan_a13b", "tool_calls_array"].contains(&row.name);
        assert!(silent || format.reasoning.is_some() == thinks, "{}", row.name);
    }
}

#[test]
fn markers_that_a_template_builds_are_seen_in_what_it_renders() {
    let source = "{% set ns = ['tool', 'call']|join('_') %}{% for m in messages %}\
        <|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls or [] %}<{{ ns }}>{\"name\": \
        \"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments|tojson }}}</{{ ns }}>\
        {% endfor %}{% endfor %}";
    assert!(!source.contains("<tool_call>"));
    assert_eq!(detected(source, None).kind, "hermes_json");
}

fn vocabulary(names: &[&str]) -> Vocabulary {
    let token =
        |name: &&str| Token { bytes: name.as_bytes().to_vec(), kind: TokenKind::UserDefined };
    Vocabulary::new(names.iter().map(token).collect(), &[], None)
}

#[test]
fn tokens_tell_what_no_template_prints() {
    let source = format!("{TURNS}{OPENING}");
    assert_eq!(detected(&source, None).kind, "content_only");
    assert_eq!(mode(&detected(&source, None)), None);
    let tokens = vocabulary(&["a", "<|tool_call_start|>", "<think>", "</think>"]);
    let format = detected(&source, Some(&tokens));
    assert_eq!((format.kind.as_ref(), mode(&format)), ("lfm2_pythonic", Some(ReasoningMode::Tags)));
    let tokens = vocabulary(&["<tool_sep:mine>"]);
    let source = format!("<tool_sep<arg_key{source}");
    let format = detected(&source, Some(&tokens));
    assert_eq!(format.tools.unwrap().trigger(), "<tool_calls:mine>\n");
}

#[test]
fn the_prompt_and_its_switches_are_read() {
    let think = "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}";
    let format = detected(&format!("{TURNS}{think}"), None);
    assert_eq!(mode(&format), Some(ReasoningMode::Forced));
    assert_eq!(format.prefill, "<|im_start|>assistant\n<think>\n");
    let switch = "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n\
        {% if enable_thinking is defined and not enable_thinking %}\n</think>\n\n{% endif %}{% endif %}";
    assert_eq!(mode(&detected(&format!("{TURNS}{switch}"), None)), Some(ReasoningMode::Tags));
    let closed = "{% if add_generation_prompt %}<|im_start|>assistant\n</think>{% endif %}";
    let format = detected(&format!("{TURNS}{closed}"), None);
    assert_eq!(mode(&format), Some(ReasoningMode::Tags));
    assert_eq!(format.prefill, "<|im_start|>assistant\n</think>");
}

#[test]
fn the_end_of_a_turn_is_a_stop_and_the_end_of_a_sequence_is_none() {
    assert_eq!(stops(&detected(&format!("{TURNS}{OPENING}"), None)), ["<|im_end|>"]);
    let eos = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{{ eos_token }}{% endfor %}";
    assert!(stops(&detected(eos, None)).is_empty());
    let prose = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n\n{% endfor %}";
    assert!(stops(&detected(prose, None)).is_empty());
    let harmony = "{% for m in messages %}<|start|>{{ m.role }}<|channel|>final<|message|>\
        {{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}";
    assert_eq!(stops(&detected(harmony, None)), ["<|call|>", "<|return|>"]);
    let gemma = "<|tool_call>call:{% for m in messages %}<|turn>{{ m.role }}\n{{ m.content }}<turn|>\n{% endfor %}";
    assert_eq!(stops(&detected(gemma, None)), ["<|tool_response>", "<turn|>"]);
}

#[test]
fn a_description_comes_first_if_it_can_be_read() {
    let source = format!("<tool_call>{TURNS}{OPENING}");
    let template = ChatTemplate::compile(&source).unwrap();
    let with = |response: &serde_json::Value| -> Detected {
        detect(&ModelFiles {
            source: &source,
            template: &template,
            vocabulary: None,
            response_template: Some(response),
        })
    };
    let readable = json!({"fields": {"content": {}, "tool_calls":
        {"open": "<do>", "close": "</do>", "content": "json"}}});
    let found = with(&readable);
    assert_eq!((found.format.kind.as_ref(), found.unreadable), ("response_template", None));
    assert_eq!(found.format.prefill, "<|im_start|>assistant\n");
    let found = with(&json!({"fields": {"content": {}, "tool_calls": {"open_pattern": "."}}}));
    assert_eq!(found.format.kind, "hermes_json");
    assert_eq!(found.unreadable.unwrap().field, "fields.tool_calls.open_pattern");
}

#[test]
fn a_format_can_be_named() {
    let source = format!("<think>{TURNS}{OPENING}");
    let template = ChatTemplate::compile(&source).unwrap();
    let files = ModelFiles {
        source: &source,
        template: &template,
        vocabulary: None,
        response_template: None,
    };
    let format = named("qwen_xml", &files).unwrap();
    assert_eq!((format.kind.as_ref(), stops(&format)), ("qwen_xml", vec!["<|im_end|>"]));
    assert!(format.reasoning.is_some());
    assert!(named("no_such", &files).is_none());
}
