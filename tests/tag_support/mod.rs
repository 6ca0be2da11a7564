//! Answers written along the grammar of a chat format.
#![allow(dead_code, clippy::unwrap_used)]

use std::sync::Arc;

use pleach::TokenId;
use pleach::chat::constraint::{Function, Held, Wish, hold};
use pleach::chat::format::ChatFormat;
use pleach::chat::parse::{ChatMessage, ParseOptions, ToolSet, parse};
use pleach::grammar::json_schema::SchemaOptions;
use pleach::grammar::{
    CompiledGrammar, Fuel, GrammarSource, GrammarVocabulary, Limits, Matcher, StructuralTag,
};
use pleach::vocab::{Token, TokenKind, Vocabulary};
use serde_json::{Value, json};

/// What a marker of a format is in a vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Markers {
    /// Letters alone.
    Spelled,
    /// A token of text.
    UserDefined,
    /// A control token.
    Control,
}

/// Every byte, some words, the markers of a format, and an end token.
pub struct Words {
    pub vocabulary: Arc<Vocabulary>,
    pub grammar: Arc<GrammarVocabulary>,
    /// Tokens that are more than a byte.
    pub words: Vec<TokenId>,
    pub end: TokenId,
}

impl Words {
    pub fn new(format: &ChatFormat, markers: Markers) -> Self {
        let mut texts: Vec<(String, TokenKind)> =
            ["{\"", "\": ", "\", \"", "}", "true", "pin", "dye", "rest", " the", "on", "<", "\n\n"]
                .map(|text| (text.to_owned(), TokenKind::Text))
                .into();
        let kind = match markers {
            Markers::Control => TokenKind::Control,
            _ => TokenKind::UserDefined,
        };
        let found = markers_of(format);
        let found = found.into_iter().filter(|_| markers != Markers::Spelled);
        texts.extend(found.map(|text| (text, kind)));
        texts.sort_by(|a, b| a.0.cmp(&b.0));
        texts.dedup_by(|a, b| a.0 == b.0);
        let bytes = (0..=255u8).map(|byte| Token { bytes: vec![byte], kind: TokenKind::Text });
        let others = texts.into_iter().map(|(text, kind)| Token { bytes: text.into_bytes(), kind });
        let mut tokens: Vec<Token> = bytes.chain(others).collect();
        let end = tokens.len() as TokenId;
        tokens.push(Token { bytes: b"<|the end|>".to_vec(), kind: TokenKind::Control });
        let mut ends = vec![end];
        for stop in &format.extra_stops {
            ends.extend((0..end).filter(|id| tokens[*id as usize].bytes == stop.as_bytes()));
        }
        let vocabulary = Arc::new(Vocabulary::new(tokens, &ends, None));
        let grammar = GrammarVocabulary::new(&vocabulary);
        Self { grammar, vocabulary, words: (256..end).collect(), end }
    }
}

/// What looks like a token of its own in the texts of a format.
fn markers_of(format: &ChatFormat) -> Vec<String> {
    let text = format!("{format:?}").replace("\\n", " ");
    let mut markers = Vec::new();
    for (open, close) in [('<', '>'), ('[', ']')] {
        let mut rest = text.as_str();
        while let Some(at) = rest.find(open) {
            rest = &rest[at..];
            let end = rest.find(close).map_or(rest.len(), |end| end + 1);
            let marker = &rest[..end];
            let is_one = marker.len() > 3
                && !marker.contains(['"', ' ', ','])
                && !marker[1..].contains(open);
            if is_one {
                markers.push(marker.to_owned());
            }
            rest = &rest[1..];
        }
    }
    markers
}

/// The functions of the tests, with what their arguments are held to.
pub fn functions(tools: &[Value]) -> Vec<Function> {
    let function = |tool: &Value| {
        let function = &tool["function"];
        Function {
            name: function["name"].as_str().unwrap().to_owned(),
            schema: function["parameters"].to_string(),
            options: SchemaOptions::default(),
            place: String::new(),
        }
    };
    tools.iter().map(function).collect()
}

pub fn tools() -> Vec<Value> {
    let tool = |name: &str, parameters: Value| json!({"type": "function", "function": {"name": name, "parameters": parameters}});
    vec![
        tool(
            "pin",
            json!({"type": "object", "properties": {
                "page": {"type": "string"},
                "count": {"type": "integer", "minimum": -3, "maximum": 40},
                "kind": {"enum": ["a b", "True", "12", "</x>"]}},
                "required": ["page"], "additionalProperties": false}),
        ),
        tool(
            "dye",
            json!({"type": "object", "properties": {
                "on": {"type": "boolean"},
                "tints": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
                "deep": {"type": "object", "properties": {"x": {"type": ["number", "null"]}},
                         "required": ["x"], "additionalProperties": false}},
                "required": ["on", "tints"], "additionalProperties": false}),
        ),
        tool("rest", json!({"type": "object", "properties": {}, "additionalProperties": false})),
    ]
}

pub fn compile(tag: &StructuralTag, words: &Words) -> Result<Arc<CompiledGrammar>, String> {
    let limits = Limits::default();
    let mut fuel = Fuel::new(limits.compile_steps_max);
    let source = GrammarSource::StructuralTag(Arc::new(tag.clone()));
    CompiledGrammar::compile(&source, &words.grammar, &limits, &mut fuel)
        .map_err(|error| error.to_string())
}

/// A format that is held to a wish.
pub struct Case {
    pub format: Arc<ChatFormat>,
    pub options: ParseOptions,
    pub held: Held,
    pub words: Words,
    pub grammar: Arc<CompiledGrammar>,
}

impl Case {
    /// `None`: nothing needs to be held.
    pub fn new(
        format: &ChatFormat,
        wish: Wish,
        prefill: &str,
        markers: Markers,
    ) -> Result<Option<Self>, String> {
        let words = Words::new(format, markers);
        let offered = wish.functions.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
        let set = ToolSet::from_request(&tools()).only(|name| offered.iter().any(|it| it == name));
        let options = ParseOptions {
            tools: Arc::new(set),
            prefill: prefill.to_owned(),
            whole_content: wish.content.is_some(),
            ..ParseOptions::default()
        };
        let held = hold(format, wish, prefill, None).map_err(|error| error.to_string())?;
        let Some(held) = held else { return Ok(None) };
        let grammar = compile(&held.tag, &words)?;
        Ok(Some(Self { format: Arc::new(format.clone()), options, held, words, grammar }))
    }

    pub fn start(&self) -> Result<Matcher, String> {
        let begun = self.held.begun.as_bytes();
        self.grammar.matcher_after(begun).map_err(|error| format!("{error}: {:?}", self.held.begun))
    }

    /// An answer along the masks, complete within so many tokens.
    pub fn walk(&self, rng: &mut fastrand::Rng, tokens_max: u32) -> Result<String, String> {
        let mut matcher = self.start()?;
        let mut bits = vec![0; self.grammar.vocabulary().mask_words()];
        let mut text: Vec<u8> = Vec::new();
        let shown = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
        for left in (0..=tokens_max).rev() {
            matcher
                .fill_mask_within(left, &mut bits)
                .map_err(|error| format!("{error} with {left} left after {:?}", shown(&text)))?;
            let mask = matcher.mask().map_err(|error| error.to_string())?;
            for _ in 0..8 {
                let token = rng.u32(..self.words.vocabulary.len() as u32);
                let accepted = matcher.fork().accept(token).is_ok();
                if mask.contains(token) != accepted {
                    let name = shown(self.words.vocabulary.bytes(token));
                    return Err(format!(
                        "the mask is wrong about {name:?} after {:?}",
                        shown(&text)
                    ));
                }
            }
            let token = self.choose(&bits, rng, &text);
            let Some(token) = token else {
                return Err(format!("nothing may follow {:?} with {left} left", shown(&text)));
            };
            if !mask.contains(token) {
                return Err(format!("less room allows more after {:?}", shown(&text)));
            }
            matcher.accept(token).map_err(|error| format!("{error} after {:?}", shown(&text)))?;
            if matcher.has_ended() {
                return Ok(String::from_utf8_lossy(&text).into_owned());
            }
            text.extend_from_slice(self.words.vocabulary.bytes(token));
        }
        if matcher.is_complete() {
            return Ok(String::from_utf8_lossy(&text).into_owned());
        }
        Err(format!("cut at {:?}", shown(&text)))
    }

    fn choose(&self, bits: &[u32], rng: &mut fastrand::Rng, text: &[u8]) -> Option<TokenId> {
        let has = |token: TokenId| bits[token as usize / 32] >> (token % 32) & 1 == 1;
        let ends: &[TokenId] = self.words.vocabulary.end_tokens();
        let may_end = ends.iter().any(|&end| has(end));
        if may_end && (rng.usize(..8) == 0 || text.len() > 600) {
            return ends.iter().copied().find(|&end| has(end));
        }
        // Words get an answer somewhere.
        if rng.usize(..3) > 0 {
            let words = &self.words.words;
            let from = rng.usize(..words.len());
            let word = words.iter().cycle().skip(from).take(words.len()).find(|&&word| has(word));
            if let Some(&word) = word {
                return Some(word);
            }
        }
        let from = rng.u32(..256);
        let bytes = |from: u32| (0..256u32).map(move |step| (from + step) % 256);
        // Broken characters are text too, but say nothing.
        let plain = bytes(from).find(|&byte| (0x20..0x7F).contains(&byte) && has(byte));
        let any = || (0..self.words.vocabulary.len() as TokenId).find(|&token| has(token));
        plain.or_else(|| bytes(from).find(|&byte| has(byte))).or_else(any)
    }

    /// Follows a text, in which the names of tokens are those tokens; an error says how far it came.
    pub fn follow(&self, text: &str) -> Result<(), String> {
        let vocabulary = &self.words.vocabulary;
        let mut matcher = self.start()?;
        let mut rest = text.as_bytes();
        while let Some(&byte) = rest.first() {
            let words = self.words.words.iter().copied();
            let longest = words
                .filter(|&word| vocabulary.get(word).unwrap().kind != TokenKind::Text)
                .filter(|&word| {
                    !vocabulary.is_end(word) && rest.starts_with(vocabulary.bytes(word))
                })
                .max_by_key(|&word| vocabulary.bytes(word).len());
            let token = longest.unwrap_or(byte.into());
            let at = String::from_utf8_lossy(rest).into_owned();
            let mask = matcher.mask().map_err(|error| format!("{error} before {at:?}"))?;
            if !mask.contains(token) {
                return Err(format!("not in the mask: {at:?}"));
            }
            matcher.accept(token).map_err(|error| format!("{error} before {at:?}"))?;
            rest = &rest[longest.map_or(1, |word| vocabulary.bytes(word).len())..];
        }
        if matcher.is_complete() { Ok(()) } else { Err("incomplete".to_owned()) }
    }

    pub fn read(&self, text: &str) -> ChatMessage {
        parse(&self.format, text, false, &self.options)
    }
}
