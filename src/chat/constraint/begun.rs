//! How much of an answer the prompt has written.

use crate::chat::format::{ChatFormat, Piece, Reasoning};

/// The end of the prompt that belongs to the answer, in the way the grammar writes it.
pub(super) fn begun(format: &ChatFormat, prefill: &str, message: Option<&str>) -> String {
    let continued = || message.and_then(|message| from_last(prefill, message.trim()));
    if let Some(channels) = &format.channels {
        return from_last(prefill, &channels.next).unwrap_or_default().to_owned();
    }
    if let Some(reasoning) = &format.reasoning
        && let Some(begun) = of_reasoning(reasoning, prefill)
    {
        return begun;
    }
    if let Some(continued) = continued() {
        return continued.to_owned();
    }
    opened(format, prefill).to_owned()
}

/// What follows the start of the last `text`, with it.
fn from_last<'p>(prefill: &'p str, text: &str) -> Option<&'p str> {
    if text.is_empty() {
        return None;
    }
    prefill.get(prefill.rfind(text)?..)
}

/// The reasoning that was opened, or opened and closed. One that was closed and never opened has
/// come to its end all the same.
fn of_reasoning(reasoning: &Reasoning, prefill: &str) -> Option<String> {
    let (open, close) = (reasoning.open.trim(), reasoning.close.trim());
    let last = |text: &str| if text.is_empty() { None } else { prefill.rfind(text) };
    match (last(open), last(close)) {
        (Some(opened), closed) if closed.is_none_or(|closed| closed < opened) => {
            prefill.get(opened..).map(str::to_owned)
        }
        (_, Some(closed)) => Some(format!("{open}{}", prefill.get(closed..)?)),
        _ => None,
    }
}

/// The markers at the end of the prompt: those of content, and what calls begin with.
fn opened<'p>(format: &ChatFormat, prefill: &'p str) -> &'p str {
    let mut rest = prefill.trim_end();
    let mut marks: Vec<&str> = format.content_marks.iter().map(|mark| mark.trim()).collect();
    marks.retain(|mark| !mark.is_empty());
    while let Some(before) = marks.iter().find_map(|mark| rest.strip_suffix(mark)) {
        rest = before.trim_end();
    }
    let first = format.tools.iter().flat_map(|tools| tools.open.iter().chain(&tools.call).next());
    let call = first.filter_map(|piece| match piece {
        Piece::Text(text) => Some(text.trim()),
        _ => None,
    });
    let starts_call = call.filter(|text| text.len() > 2).find(|text| rest.ends_with(text));
    let rest = starts_call.and_then(|text| rest.strip_suffix(text)).unwrap_or(rest);
    prefill.get(rest.len()..).unwrap_or_default().trim_start()
}

#[cfg(test)]
mod tests {
    use super::begun;
    use crate::chat::formats::named;

    fn of(name: &str, prefill: &str) -> String {
        begun(&named(name).unwrap(), prefill, None)
    }

    #[test]
    fn the_prompt_may_have_opened_or_closed_reasoning() {
        assert_eq!(of("hermes_json", "<|im_start|>assistant\n"), "");
        assert_eq!(of("hermes_json", "<|im_start|>assistant\n<think>\n"), "<think>\n");
        assert_eq!(
            of("hermes_json", "<|im_start|>assistant\n<think>\n\n</think>\n\n"),
            "<think></think>\n\n"
        );
        assert_eq!(of("deepseek_v3_1", "<｜Assistant｜></think>"), "<think></think>");
        assert_eq!(of("kimi_k3", "<|open|>think<|sep|>"), "<|open|>think<|sep|>");
    }

    #[test]
    fn the_prompt_may_have_written_headers_and_markers() {
        assert_eq!(of("harmony", "<|start|>assistant"), "<|start|>assistant");
        assert_eq!(of("functionary_v3_2", "<|end_header_id|>\n\n>>>"), ">>>");
        assert_eq!(of("solar_open", "\n<|begin|>assistant"), "<|begin|>assistant");
    }

    #[test]
    fn a_message_goes_on_where_it_stands() {
        let hermes = named("hermes_json").unwrap();
        let prefill = "<|im_start|>assistant\nIt is";
        assert_eq!(begun(&hermes, prefill, Some("It is ")), "It is");
        let thought = "<|im_start|>assistant\n<think>Hm.</think>It is";
        assert_eq!(begun(&hermes, thought, Some("It is")), "<think></think>It is");
    }
}
