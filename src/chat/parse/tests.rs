use std::sync::Arc;

use serde_json::json;

use super::machine::Machine;
use super::{ParseOptions, ToolSet};
use crate::chat::format::Piece;
use crate::chat::formats::families;

/// Looks at a byte of text, on average. Real text needs a little more than one; a text that is read
/// again from every marker on would need hundreds.
const LOOKS_MAX: usize = 8;

#[test]
fn no_text_is_read_again_and_again() {
    let tools = [json!({"function": {"name": "pin", "parameters": {"type": "object"}}})];
    let tools = Arc::new(ToolSet::from_request(&tools));
    for family in families() {
        let format = Arc::new((family.build)(&crate::chat::detect::Evidence::none()));
        let mut words: Vec<String> =
            ["{", "[", "\"", "pin", "{\"name\": \"pin\", ", "{\"name\": \"x\"}", "(", " "]
                .map(str::to_owned)
                .into();
        if let Some(tools) = &format.tools {
            let pieces = tools.open.iter().chain(&tools.call).chain(&tools.close);
            words.extend(pieces.flat_map(Piece::texts).map(ToString::to_string));
        }
        words.retain(|word| !word.is_empty());
        for one in &words {
            for other in &words {
                let text = format!("{one}{other}").repeat(2_000 / (one.len() + other.len()));
                let options = ParseOptions { tools: Arc::clone(&tools), ..Default::default() };
                let mut machine = Machine::new(Arc::clone(&format), options);
                machine.push(&text);
                machine.finish();
                assert!(
                    machine.looks <= LOOKS_MAX * text.len(),
                    "{}: {} looks at {} bytes of {one:?}{other:?}",
                    family.name,
                    machine.looks,
                    text.len()
                );
            }
        }
    }
}
