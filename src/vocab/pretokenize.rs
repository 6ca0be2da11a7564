//! How a byte-level vocabulary cuts text into words before it merges bytes.
//!
//! The patterns are those of the models' own `tokenizer.json` files, in the reading of them that
//! llama.cpp gives a GGUF of that name: a GGUF's tokens are defined by what that library makes of
//! it, and the two are compared at load. The readings differ from the files where a pattern asks
//! for upper or lower case outside of ASCII.

use fancy_regex::{Regex, RegexBuilder};

use Pattern::{GivesBack, GivesBackInLine, Plain};

use super::VocabError;

/// Steps that one match may go back over. Only one pattern here has look-aheads, and those are
/// bounded: the limit is there so that a mistake is an error and not a hang.
const BACKTRACKS_MAX: usize = 1_000_000;

/// A pattern, and what becomes of white space before a word.
///
/// Most of these patterns end in `\s+(?!\S)|\s+`: the last white-space character before a word is
/// not taken into the run before it. A regular expression with that look-ahead needs a stack as
/// deep as the run is long, so here it ends in `\s+` alone and the last character is given back.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pattern {
    /// The pattern as it is.
    Plain(&'static str),
    /// White space gives its last character back.
    GivesBack(&'static str),
    /// The same, unless the last character is a line's end: there a run is cut anyway.
    GivesBackInLine(&'static str),
}

/// What a name in `tokenizer.ggml.pre` stands for.
#[derive(Clone, Copy, Debug)]
pub(super) struct PreTokenizer {
    /// Applied one after the other: each cuts the pieces so far into its matches and the gaps.
    pub(super) patterns: &'static [Pattern],
    /// A word that is a token is that token, whatever the merges would make of it.
    pub(super) ignore_merges: bool,
    /// Whether a text starts with the BOS token where the file does not say.
    pub(super) add_bos: bool,
}

macro_rules! contraction {
    () => {
        r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
    };
}

macro_rules! spaces {
    () => {
        r"|\s*[\r\n]+|\s+"
    };
}

/// The family of Llama 3 and Qwen 2, which differ in how many digits make a word.
macro_rules! llama3_like {
    ($digits:literal) => {
        concat!(
            contraction!(),
            r"|[^\r\n\p{L}\p{N}]?\p{L}+|",
            $digits,
            r"| ?[^\s\p{L}\p{N}]+[\r\n]*",
            spaces!()
        )
    };
}

/// The family of GPT-4o and Tekken: a word changes where lower case turns into upper.
macro_rules! cased_words {
    ($letter:literal, $suffix:expr, $digits:literal) => {
        concat!(
            r"[^\r\n\p{L}\p{N}]?[",
            $letter,
            r"&&[^a-z]]*[",
            $letter,
            r"&&[^A-Z]]+",
            $suffix,
            r"|[^\r\n\p{L}\p{N}]?[",
            $letter,
            r"&&[^a-z]]+[",
            $letter,
            r"&&[^A-Z]]*",
            $suffix,
            "|",
            $digits,
            r"| ?[^\s\p{L}\p{N}]+[\r\n/]*",
            spaces!()
        )
    };
}

const GPT2: Pattern =
    GivesBack(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+");
const LLAMA3: Pattern = GivesBackInLine(llama3_like!(r"\p{N}{1,3}"));
const QWEN2: Pattern = GivesBackInLine(llama3_like!(r"\p{N}"));
const QWEN35: Pattern = GivesBackInLine(concat!(
    contraction!(),
    r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*",
    spaces!()
));
const UFAKZEKA: Pattern = GivesBackInLine(concat!(
    r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*",
    spaces!()
));
const JAIS2: Pattern = Plain(concat!(
    contraction!(),
    r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+",
    r"|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)",
    r"|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}"
));
const TEKKEN: Pattern = GivesBackInLine(cased_words!(r"\p{L}", "", r"\p{N}"));
const GPT4O: Pattern =
    GivesBackInLine(cased_words!(r"\p{L}", concat!(contraction!(), "?"), r"\p{N}{1,3}"));
const GRANITE_EMBED: Pattern =
    GivesBackInLine(cased_words!(r"[\p{L}\p{M}]", concat!(contraction!(), "?"), r"\p{N}{1,3}"));
const DEEPSEEK3: Pattern = GivesBackInLine(concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"##,
    r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*",
    spaces!()
));
const SPARK2_5: Pattern = GivesBack(concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"##,
    r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+"
));
const DEEPSEEK_LETTERS: Pattern = Plain(concat!(
    r"\s?[A-Za-z",
    r"\u{b5}\u{c0}-\u{d6}\u{d8}-\u{f6}\u{f8}-\u{1ba}\u{1bc}-\u{1bf}\u{1c4}-\u{293}",
    r"\u{295}-\u{2af}\u{370}-\u{373}\u{376}\u{377}\u{37b}-\u{37d}\u{37f}\u{386}",
    r"\u{388}-\u{38a}\u{38c}\u{38e}-\u{3a1}\u{3a3}-\u{3f5}\u{3f7}-\u{481}",
    r"\u{48a}-\u{52f}\u{531}-\u{556}\u{10a0}-\u{10c5}\u{13a0}-\u{13f5}",
    r"\u{13f8}-\u{13fd}\u{1c90}-\u{1cba}\u{1cbd}-\u{1cbf}\u{1d00}-\u{1d2b}",
    r"\u{1d6b}-\u{1d77}\u{1d79}-\u{1d9a}\u{1e00}-\u{1f15}\u{1f18}-\u{1f1d}",
    r"\u{1f20}-\u{1f45}\u{1f48}-\u{1f4d}\u{1f50}-\u{1f57}\u{1f59}\u{1f5b}\u{1f5d}",
    r"\u{1f5f}-\u{1f7d}\u{1f80}-\u{1fb4}\u{1fb6}-\u{1fbc}\u{1fbe}\u{1fc2}-\u{1fc4}",
    r"\u{1fc6}-\u{1fcc}\u{1fd0}-\u{1fd3}\u{1fd6}-\u{1fdb}\u{1fe0}-\u{1fec}",
    r"\u{1ff2}-\u{1ff4}\u{1ff6}-\u{1ffc}\u{2102}\u{2107}\u{210a}-\u{2113}\u{2115}",
    r"\u{2119}-\u{211d}\u{2124}\u{2126}\u{2128}\u{212a}-\u{212d}\u{212f}-\u{2134}",
    r"\u{2139}\u{213c}-\u{213f}\u{2145}-\u{2149}\u{214e}\u{2183}\u{2184}",
    r"\u{2c00}-\u{2c7b}\u{2c7e}-\u{2ce4}\u{2ceb}-\u{2cee}\u{2cf2}\u{2cf3}",
    r"\u{a640}-\u{a66d}\u{a680}-\u{a69b}\u{a722}-\u{a76f}\u{a771}-\u{a787}",
    r"\u{a78b}-\u{a78e}\u{ab70}-\u{abbf}\u{fb00}-\u{fb06}\u{fb13}-\u{fb17}",
    r"\u{ff21}-\u{ff3a}\u{ff41}-\u{ff5a}\u{10400}-\u{1044f}\u{104b0}-\u{104d3}",
    r"\u{104d8}-\u{104fb}\u{10c80}-\u{10cb2}\u{10cc0}-\u{10cf2}\u{118a0}-\u{118df}",
    r"\u{1e900}-\u{1e943}",
    r"]+"
));
const BLOOM: Pattern = Plain(r" ?[^(\s|.,!?…。，、।۔،)]+");
const KANA_AND_HAN: Pattern = Plain(r"[一-龥぀-ゟ゠-ヿ]+");

const fn plain(patterns: &'static [Pattern]) -> PreTokenizer {
    PreTokenizer { patterns, ignore_merges: false, add_bos: false }
}

const fn whole_words(patterns: &'static [Pattern]) -> PreTokenizer {
    PreTokenizer { patterns, ignore_merges: true, add_bos: false }
}

impl PreTokenizer {
    /// The pre-tokeniser of that name, or an error that names it.
    pub(super) fn by_name(name: &str) -> Result<Self, VocabError> {
        Ok(match name {
            "default" => plain(&[
                Plain(r"[\p{P}\$\+<=>\^~\|]+"),
                GPT2,
                Plain(r"\p{N}+"),
                Plain("[0-9][0-9][0-9]"),
            ]),
            "llama3" | "llama-v3" | "llama-bpe" | "falcon3" | "falcon-h1" | "pixtral"
            | "midm-2.0" | "lfm2" => Self { add_bos: true, ..whole_words(&[LLAMA3]) },
            "dbrx" | "smaug-bpe" | "chatglm-bpe" => plain(&[LLAMA3]),
            "glm4" | "glm5" => whole_words(&[LLAMA3]),
            "minicpm5" => {
                whole_words(&[Plain(r"\p{N}{1,3}"), GivesBackInLine(llama3_like!(r"\p{N}+"))])
            }
            "jais-2" => plain(&[JAIS2]),
            "qwen2" | "deepseek-r1-qwen" | "kormo" | "f2llmv2" | "megrez" | "stablelm2"
            | "hunyuan" | "solar-open" | "grok-2" => plain(&[QWEN2]),
            "qwen35" => plain(&[QWEN35]),
            "ufakzeka" => plain(&[UFAKZEKA]),
            "laguna" => plain(&[Plain(r"[^\n]+|[\n]+"), QWEN2]),
            "gpt-2" | "phi-2" | "gigachat" | "a.x-4.0" | "mellum" | "exaone4" | "mpt" | "olmo"
            | "jais" | "trillion" | "granite-docling" => plain(&[GPT2]),
            "starcoder" | "refact" | "command-r" | "smollm" | "codeshell" | "exaone"
            | "minerva-7b" | "mellum2" => plain(&[Plain(r"\p{N}"), GPT2]),
            "falcon" => plain(&[Plain(r"[\p{P}\$\+<=>\^~\|`]+"), GPT2, Plain("[0-9][0-9][0-9]")]),
            "bloom" | "gpt3-finnish" | "poro-chat" => plain(&[BLOOM]),
            "viking" => plain(&[BLOOM, Plain(r"\p{N}")]),
            "tekken" => Self { add_bos: true, ..whole_words(&[TEKKEN]) },
            "gpt-4o" | "llama4" | "kanana2" | "talkie" | "minimax-m2" => plain(&[GPT4O]),
            "granite-embed-multi-97m" => whole_words(&[GRANITE_EMBED]),
            "deepseek-llm" => plain(&[
                Plain(r"[\r\n]"),
                DEEPSEEK_LETTERS,
                Plain(r"\s?[!-/:-~！-／：-～‘-‟　-。]+"),
                Plain(r"\s+$"),
                Plain(r"[一-龥ࠀ-一가-퟿]+"),
                Plain(r"\p{N}+"),
            ]),
            "deepseek-coder" => plain(&[
                Plain(r"[\r\n]"),
                Plain(r"\s?\p{L}+"),
                Plain(r"\s?\p{P}+"),
                Plain(r"[一-龥ࠀ-一가-퟿]+"),
                Plain(r"\p{N}"),
            ]),
            "deepseek-v3" | "hunyuan-dense" | "joyai-llm" | "hy_v4" => {
                plain(&[Plain(r"\p{N}{1,3}"), KANA_AND_HAN, DEEPSEEK3])
            }
            "spark2_5" => plain(&[Plain(r"\p{N}{1,3}"), KANA_AND_HAN, SPARK2_5, Plain(r"\p{N}")]),
            "bailingmoe" | "bailingmoe2" | "llada-moe" => plain(&[GivesBackInLine(concat!(
                r"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}",
                r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+"
            ))]),
            "seed-coder" => plain(&[GivesBackInLine(concat!(
                contraction!(),
                r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+",
                spaces!()
            ))]),
            "exaone-moe" => plain(&[GivesBackInLine(concat!(
                contraction!(),
                r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}",
                r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+"
            ))]),
            _ => return Err(VocabError::UnknownPreTokenizer { name: name.to_owned() }),
        })
    }
}

/// Compiled patterns.
#[derive(Clone, Debug)]
pub(super) struct Splitter {
    patterns: Vec<(Regex, Pattern)>,
}

impl Splitter {
    /// Compiles the patterns.
    pub(super) fn new(patterns: &[Pattern]) -> Result<Self, VocabError> {
        let compile = |pattern: &Pattern| {
            let (Plain(text) | GivesBack(text) | GivesBackInLine(text)) = pattern;
            let regex = RegexBuilder::new(text)
                .backtrack_limit(BACKTRACKS_MAX)
                .build()
                .map_err(|error| VocabError::Split { reason: error.to_string() })?;
            Ok::<_, VocabError>((regex, *pattern))
        };
        Ok(Self { patterns: patterns.iter().map(compile).collect::<Result<_, _>>()? })
    }

    /// The words of `text`: together they are the text.
    pub(super) fn split<'t>(&self, text: &'t str) -> Result<Vec<&'t str>, VocabError> {
        let mut pieces = vec![text];
        for (regex, pattern) in &self.patterns {
            let mut finer = Vec::with_capacity(pieces.len() * 2);
            for piece in pieces {
                cut(regex, *pattern, piece, &mut finer)?;
            }
            pieces = finer;
        }
        Ok(pieces)
    }
}

/// Cuts `text` into the pattern's matches and the gaps between them.
fn cut<'t>(
    regex: &Regex,
    pattern: Pattern,
    text: &'t str,
    pieces: &mut Vec<&'t str>,
) -> Result<(), VocabError> {
    let mut done = 0;
    while done < text.len() {
        let found = regex
            .find_from_pos(text, done)
            .map_err(|error| VocabError::Split { reason: error.to_string() })?;
        let Some(found) = found.filter(|found| found.start() < found.end()) else { break };
        let end = found.end() - pattern.given_back(found.as_str(), found.end() < text.len());
        pieces.extend(text.get(done..found.start()).filter(|gap| !gap.is_empty()));
        pieces.extend(text.get(found.start()..end));
        done = end;
    }
    pieces.extend(text.get(done..).filter(|gap| !gap.is_empty()));
    Ok(())
}

impl Pattern {
    /// Bytes at the end of a match that belong to what follows it.
    fn given_back(self, found: &str, something_follows: bool) -> usize {
        let Some(last) = found.chars().next_back().filter(|last| last.is_whitespace()) else {
            return 0;
        };
        let gives_back = match self {
            Plain(_) => false,
            GivesBack(_) => true,
            GivesBackInLine(_) => !matches!(last, '\r' | '\n'),
        };
        let keeps_some = found.len() > last.len_utf8();
        if gives_back && keeps_some && something_follows { last.len_utf8() } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        for name in [
            "default",
            "llama3",
            "dbrx",
            "glm4",
            "minicpm5",
            "jais-2",
            "qwen2",
            "qwen35",
            "ufakzeka",
            "laguna",
            "gpt-2",
            "starcoder",
            "falcon",
            "bloom",
            "viking",
            "tekken",
            "gpt-4o",
            "granite-embed-multi-97m",
            "deepseek-llm",
            "deepseek-coder",
            "deepseek-v3",
            "spark2_5",
            "bailingmoe",
            "seed-coder",
            "exaone-moe",
        ] {
            let pre = PreTokenizer::by_name(name).expect("known");
            for pattern in pre.patterns {
                Splitter::new(&[*pattern])
                    .unwrap_or_else(|error| panic!("{name}: {error}\n{pattern:?}"));
            }
        }
    }

    fn words<'t>(name: &str, text: &'t str) -> Vec<&'t str> {
        let pre = PreTokenizer::by_name(name).expect("known");
        Splitter::new(pre.patterns).expect("compiles").split(text).expect("splits")
    }

    #[test]
    fn an_unknown_name_is_refused_by_name() {
        let error = PreTokenizer::by_name("brand-new").expect_err("unknown");
        assert!(error.to_string().contains("brand-new"));
    }

    #[test]
    fn words_are_cut_as_each_family_cuts_them() {
        let text = "I'LL pay 12345 €\n\n  now";
        let llama3 = ["I", "'LL", " pay", " ", "123", "45", " €\n\n", " ", " now"];
        assert_eq!(words("llama-bpe", text), llama3);
        let qwen = ["I", "'LL", " pay", " ", "1", "2", "3", "4", "5", " €\n\n", " ", " now"];
        assert_eq!(words("qwen2", text), qwen);
        assert_eq!(words("gpt-2", text), ["I", "'", "LL", " pay", " 12345", " €", "\n\n ", " now"]);
        assert_eq!(words("gpt-4o", "HelloWorld's"), ["Hello", "World's"]);
        assert_eq!(words("tekken", "HelloWorld's"), ["Hello", "World", "'s"]);
    }

    #[test]
    fn a_run_of_a_million_spaces_is_cut_like_a_short_one() {
        let run = " ".repeat(1_500_000);
        for name in ["llama-bpe", "gpt-2", "tekken", "deepseek-v3", "smollm"] {
            assert_eq!(words(name, &run), [run.as_str()], "{name}");
            let text = format!("{run}x");
            assert_eq!(words(name, &text), [&run[1..], " x"], "{name}");
        }
    }
}
