//! What is known of a model.

use std::collections::HashSet;

use crate::vocab::Vocabulary;

/// What is known of a model: texts of its template, and its tokens.
#[derive(Clone, Debug, Default)]
pub struct Evidence<'a> {
    source: &'a str,
    renders: Vec<&'a str>,
    tokens: HashSet<&'a [u8]>,
}

impl<'a> Evidence<'a> {
    /// Nothing is known.
    pub fn none() -> Self {
        Self::default()
    }

    pub(super) fn new(
        source: &'a str,
        renders: Vec<&'a str>,
        vocabulary: Option<&'a Vocabulary>,
    ) -> Self {
        let tokens = vocabulary
            .map(|vocabulary| (0..).map_while(|id| Some(vocabulary.get(id)?.bytes.as_slice())))
            .into_iter()
            .flatten()
            .collect();
        Self { source, renders, tokens }
    }

    /// Whether the template's source, or what it renders, has this text.
    pub fn shows(&self, text: &str) -> bool {
        self.source.contains(text) || self.renders.iter().any(|render| render.contains(text))
    }

    /// Whether this is one token.
    pub fn has_token(&self, text: &str) -> bool {
        self.tokens.contains(text.as_bytes())
    }

    /// The word that stands between `before` and `after` in a render or a token.
    pub fn between(&self, before: &str, after: &str) -> Option<String> {
        let tokens = self.tokens.iter().filter_map(|token| std::str::from_utf8(token).ok());
        let renders = self.renders.iter().copied();
        renders.chain(tokens).find_map(|text| {
            let (_, rest) = text.split_once(before)?;
            let (found, _) = rest.split_once(after)?;
            let is_word = !found.contains(|letter: char| letter.is_whitespace() || letter == '<');
            is_word.then(|| found.to_owned())
        })
    }
}
