//! `[model]`: what is served, and under which name.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::check::Problems;
use crate::chat::formats;

/// What is served, and under which name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// The GGUF file. No default; the ggml device needs it.
    pub path: Option<PathBuf>,
    /// The id under which the model is served. Default: see [`ModelConfig::served_name`].
    pub name: Option<String>,
    /// Further ids that requests may use. Default none.
    pub aliases: Vec<String>,
    /// A `tokenizer.json` to use. Default: the one beside the model, else the GGUF's vocabulary.
    pub tokenizer: Option<PathBuf>,
    /// A chat template (Jinja) to use in place of the model's own. No default.
    pub chat_template: Option<PathBuf>,
    /// The name of the format in which the model writes reasoning and tool calls, as in
    /// `hermes_json`. Default: what its template and its tokens tell.
    pub chat_format: Option<String>,
    /// Tokens that one session can hold, prompt and answer together. Default 0: what the model was
    /// trained for, but at most 4096; 0 to 16777216. KV memory grows with this times
    /// `limits.max_sessions`.
    pub context_tokens: u32,
}

impl ModelConfig {
    /// The id under which the model is served: `name`, else the model file's name without its
    /// ending, else `simulated`.
    pub fn served_name(&self) -> String {
        if let Some(name) = &self.name {
            return name.clone();
        }
        let stem = self.path.as_deref().and_then(Path::file_stem);
        stem.map_or_else(|| "simulated".to_owned(), |stem| stem.to_string_lossy().into_owned())
    }

    pub(super) fn resolve_paths(&mut self, folder: &Path) {
        let paths = [&mut self.path, &mut self.tokenizer, &mut self.chat_template];
        for path in paths.into_iter().flatten() {
            *path = folder.join(&*path);
        }
    }

    pub(super) fn check(&self, problems: &mut Problems) {
        problems.range("model.context_tokens", self.context_tokens, 0..=16_777_216);
        if let Some(name) = &self.name {
            problems.not_blank("model.name", name);
        }
        if let Some(format) = &self.chat_format
            && formats::named(format).is_none()
        {
            let known: Vec<_> = formats::families().iter().map(|family| family.name).collect();
            let message = format!("is {format:?}; known are {}", known.join(", "));
            problems.add("model.chat_format", message);
        }
        let served = self.served_name();
        for (index, alias) in self.aliases.iter().enumerate() {
            let key = format!("model.aliases[{index}]");
            problems.not_blank(&*key, alias);
            let earlier = self.aliases.iter().take(index);
            if *alias == served || earlier.into_iter().any(|other| other == alias) {
                problems.add(key, format!("is {alias:?}, which is already a name of the model"));
            }
        }
    }

    pub(super) fn check_files(&self, problems: &mut Problems) {
        let files = [
            ("model.path", &self.path),
            ("model.tokenizer", &self.tokenizer),
            ("model.chat_template", &self.chat_template),
        ];
        for (key, path) in files {
            if let Some(path) = path {
                problems.readable_file(key, path);
            }
        }
    }
}
