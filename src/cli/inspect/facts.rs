//! The facts that are told of a model.

use std::fmt;

use serde::Serialize;

use super::file_type::file_type_name;
use super::kv::kv_bytes_per_token;
use crate::TokenId;
use crate::device::ggml::gguf::{GgufError, GgufMetadata};
use crate::vocab::Tokenizer;

/// What `pleach inspect` tells; `null` in JSON where the file does not say.
#[derive(Debug, Serialize)]
pub(super) struct ModelFacts {
    name: Option<String>,
    architecture: Option<String>,
    parameters: u64,
    file_type: Option<String>,
    tensor_bytes: u64,
    /// Tokens of context that the model was trained with.
    context_tokens: Option<u64>,
    kv_bytes_per_token: Option<u64>,
    tokenizer: TokenizerFacts,
    chat_template: Option<TemplateFacts>,
}

#[derive(Debug, Serialize)]
struct TokenizerFacts {
    model: Option<String>,
    pre: Option<String>,
    tokens: Option<usize>,
    bos: Option<NamedToken>,
    /// Whether a prompt starts with the `bos` token.
    add_bos: Option<bool>,
    end_tokens: Vec<NamedToken>,
    /// Why Pleach cannot use the vocabulary in the file.
    error: Option<String>,
}

#[derive(Debug, Serialize)]
struct NamedToken {
    id: TokenId,
    text: String,
}

#[derive(Debug, Serialize)]
struct TemplateFacts {
    bytes: usize,
    first_line: String,
}

impl ModelFacts {
    /// Reads the facts from a file's metadata. A vocabulary that cannot be used is a fact, too.
    pub(super) fn of(metadata: &GgufMetadata) -> Result<Self, GgufError> {
        let owned = |key: &str| Ok::<_, GgufError>(metadata.string(key)?.map(str::to_owned));
        let architecture = owned("general.architecture")?;
        let context_key = format!("{}.context_length", architecture.as_deref().unwrap_or_default());
        let template = metadata.string("tokenizer.chat_template")?;
        Ok(Self {
            name: owned("general.name")?,
            parameters: metadata.parameters(),
            file_type: metadata.file_type()?.map(file_type_name),
            tensor_bytes: metadata.tensor_bytes(),
            context_tokens: metadata.integer(&context_key)?,
            kv_bytes_per_token: match &architecture {
                Some(architecture) => kv_bytes_per_token(metadata, architecture)?,
                None => None,
            },
            tokenizer: TokenizerFacts::of(metadata)?,
            chat_template: template.map(TemplateFacts::of),
            architecture,
        })
    }
}

impl TokenizerFacts {
    fn of(metadata: &GgufMetadata) -> Result<Self, GgufError> {
        let owned = |key: &str| Ok::<_, GgufError>(metadata.string(key)?.map(str::to_owned));
        let facts = Self {
            model: owned("tokenizer.ggml.model")?,
            pre: owned("tokenizer.ggml.pre")?,
            tokens: metadata.strings("tokenizer.ggml.tokens")?.map(<[String]>::len),
            bos: None,
            add_bos: None,
            end_tokens: Vec::new(),
            error: None,
        };
        let tokenizer = match Tokenizer::from_gguf(metadata) {
            Ok(tokenizer) => tokenizer,
            Err(error) => return Ok(Self { error: Some(error.to_string()), ..facts }),
        };
        let vocabulary = tokenizer.vocabulary();
        let named = |id: TokenId| {
            let text = String::from_utf8_lossy(vocabulary.bytes(id)).into_owned();
            NamedToken { id, text }
        };
        Ok(Self {
            bos: vocabulary.bos().map(named),
            add_bos: Some(tokenizer.add_bos()),
            end_tokens: vocabulary.end_tokens().iter().copied().map(named).collect(),
            ..facts
        })
    }
}

impl TemplateFacts {
    fn of(template: &str) -> Self {
        const SHOWN: usize = 100;
        let line = template.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let first_line = match line.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{}…", line.get(..end).unwrap_or(line)),
            None => line.to_owned(),
        };
        Self { bytes: template.len(), first_line }
    }
}

impl fmt::Display for ModelFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |name: &str, value: String| writeln!(f, "{name:<15}{value}");
        line("name", or_unknown(self.name.as_ref()))?;
        line("architecture", or_unknown(self.architecture.as_ref()))?;
        line("parameters", thousands(self.parameters))?;
        line("file type", or_unknown(self.file_type.as_ref()))?;
        line("tensors", format!("{} bytes", thousands(self.tensor_bytes)))?;
        let context = self.context_tokens.map(|tokens| format!("{} tokens", thousands(tokens)));
        line("context", or_unknown(context.as_ref()))?;
        let kv = self.kv_bytes_per_token.map(|bytes| format!("{} bytes a token", thousands(bytes)));
        line("KV memory", or_unknown(kv.as_ref()))?;
        line(
            "chat template",
            self.chat_template.as_ref().map_or("none".into(), |template| {
                format!("{} bytes: {}", thousands(template.bytes as u64), template.first_line)
            }),
        )?;
        let tokenizer = &self.tokenizer;
        line("tokenizer", or_unknown(tokenizer.model.as_ref()))?;
        line("pre-tokenizer", or_unknown(tokenizer.pre.as_ref()))?;
        let count = tokenizer.tokens.map(|count| thousands(count as u64));
        line("tokens", or_unknown(count.as_ref()))?;
        if let Some(error) = &tokenizer.error {
            return line("unusable", error.clone());
        }
        let bos = tokenizer.bos.as_ref().map_or("none".into(), NamedToken::to_string);
        let added = if tokenizer.add_bos == Some(true) { "added" } else { "not added" };
        line("bos", format!("{bos}, {added} to prompts"))?;
        let ends: Vec<String> = tokenizer.end_tokens.iter().map(NamedToken::to_string).collect();
        line("end tokens", if ends.is_empty() { "none".into() } else { ends.join(", ") })
    }
}

impl fmt::Display for NamedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.id, self.text)
    }
}

fn or_unknown(value: Option<&String>) -> String {
    value.map_or_else(|| "not told by the file".to_owned(), String::clone)
}

/// A number with a space between each three digits.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut spaced = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            spaced.push(' ');
        }
        spaced.push(digit);
    }
    spaced
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::ggml::gguf::GgufValue;

    #[test]
    fn thousands_are_spaced() {
        let spaced = [0, 999, 1000, 1_234_567].map(thousands);
        assert_eq!(spaced, ["0", "999", "1 000", "1 234 567"]);
    }

    #[test]
    fn a_vocabulary_that_cannot_be_used_is_told_with_the_rest() {
        let text = |text: &str| GgufValue::String(text.to_owned());
        let metadata = GgufMetadata::from_values(
            [
                ("general.architecture", text("llama")),
                ("llama.context_length", GgufValue::Integer(2048)),
                ("tokenizer.ggml.model", text("runes")),
                ("tokenizer.ggml.tokens", GgufValue::Strings(vec!["a".into(), "b".into()])),
                ("tokenizer.chat_template", text("\n{{ messages }}\n")),
            ]
            .map(|(key, value)| (key.to_owned(), value)),
        );
        let facts = ModelFacts::of(&metadata).unwrap();
        assert_eq!(facts.context_tokens, Some(2048));
        assert_eq!(facts.tokenizer.tokens, Some(2));
        assert!(facts.tokenizer.error.as_deref().unwrap().contains("runes"), "{facts:?}");
        let shown = facts.to_string();
        assert!(shown.contains("chat template  16 bytes: {{ messages }}\n"), "{shown}");
        assert!(shown.contains("\nunusable       "), "{shown}");
    }
}
