//! How a byte-level vocabulary cuts text into words before it merges bytes.
//!
//! The patterns are those of the models' own `tokenizer.json` files, in the reading of them that
//! llama.cpp gives a GGUF of that name: a GGUF's tokens are defined by what that library makes of
//! it, and the two are compared at load. The readings differ from the files where a pattern asks
//! for upper or lower case outside of ASCII.

use fancy_regex::{Regex, RegexBuilder};

use super::VocabError;

/// Steps that one match may go back over. The patterns below go back one step at most a
/// whitespace run, so this is never met; it is there so that a mistake here is an error and not
/// a hang.
const BACKTRACKS_MAX: usize = 10_000_000;

/// What a name in `tokenizer.ggml.pre` stands for.
#[derive(Clone, Copy, Debug)]
pub(super) struct PreTokenizer {
    /// Applied one after the other: each cuts the pieces so far into its matches and the gaps.
    pub(super) patterns: &'static [&'static str],
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
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
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

const GPT2: &str =
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = llama3_like!(r"\p{N}{1,3}");
const QWEN2: &str = llama3_like!(r"\p{N}");
const QWEN35: &str = concat!(
    contraction!(),
    r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*",
    spaces!()
);
const UFAKZEKA: &str =
    concat!(r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*", spaces!());
const JAIS2: &str = concat!(
    contraction!(),
    r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+",
    r"|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)",
    r"|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}"
);
const TEKKEN: &str = cased_words!(r"\p{L}", "", r"\p{N}");
const GPT4O: &str = cased_words!(r"\p{L}", concat!(contraction!(), "?"), r"\p{N}{1,3}");
const GRANITE_EMBED: &str =
    cased_words!(r"[\p{L}\p{M}]", concat!(contraction!(), "?"), r"\p{N}{1,3}");
const DEEPSEEK3: &str = concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"##,
    r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*",
    spaces!()
);
const SPARK2_5: &str = concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"##,
    r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+"
);
const DEEPSEEK_LETTERS: &str = concat!(
    r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚ",
    r"Ḁ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄ",
    r"Ⰰ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+"
);
const BLOOM: &str = r" ?[^(\s|.,!?…。，、।۔،)]+";
const KANA_AND_HAN: &str = r"[一-龥぀-ゟ゠-ヿ]+";

const fn plain(patterns: &'static [&'static str]) -> PreTokenizer {
    PreTokenizer { patterns, ignore_merges: false, add_bos: false }
}

const fn whole_words(patterns: &'static [&'static str]) -> PreTokenizer {
    PreTokenizer { patterns, ignore_merges: true, add_bos: false }
}

impl PreTokenizer {
    /// The pre-tokeniser of that name, or an error that names it.
    pub(super) fn by_name(name: &str) -> Result<Self, VocabError> {
        Ok(match name {
            "default" => plain(&[r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"]),
            "llama3" | "llama-v3" | "llama-bpe" | "falcon3" | "falcon-h1" | "pixtral"
            | "midm-2.0" | "lfm2" => Self { add_bos: true, ..whole_words(&[LLAMA3]) },
            "dbrx" | "smaug-bpe" | "chatglm-bpe" => plain(&[LLAMA3]),
            "glm4" | "glm5" => whole_words(&[LLAMA3]),
            "minicpm5" => whole_words(&[r"\p{N}{1,3}", llama3_like!(r"\p{N}+")]),
            "jais-2" => plain(&[JAIS2]),
            "qwen2" | "deepseek-r1-qwen" | "kormo" | "f2llmv2" | "megrez" | "stablelm2"
            | "hunyuan" | "solar-open" | "grok-2" => plain(&[QWEN2]),
            "qwen35" => plain(&[QWEN35]),
            "ufakzeka" => plain(&[UFAKZEKA]),
            "laguna" => plain(&[r"[^\n]+|[\n]+", QWEN2]),
            "gpt-2" | "phi-2" | "gigachat" | "a.x-4.0" | "mellum" | "exaone4" | "mpt" | "olmo"
            | "jais" | "trillion" | "granite-docling" => plain(&[GPT2]),
            "starcoder" | "refact" | "command-r" | "smollm" | "codeshell" | "exaone"
            | "minerva-7b" | "mellum2" => plain(&[r"\p{N}", GPT2]),
            "falcon" => plain(&[r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"]),
            "bloom" | "gpt3-finnish" | "poro-chat" => plain(&[BLOOM]),
            "viking" => plain(&[BLOOM, r"\p{N}"]),
            "tekken" => Self { add_bos: true, ..whole_words(&[TEKKEN]) },
            "gpt-4o" | "llama4" | "kanana2" | "talkie" | "minimax-m2" => plain(&[GPT4O]),
            "granite-embed-multi-97m" => whole_words(&[GRANITE_EMBED]),
            "deepseek-llm" => plain(&[
                r"[\r\n]",
                DEEPSEEK_LETTERS,
                r"\s?[!-/:-~！-／：-～‘-‟　-。]+",
                r"\s+$",
                r"[一-龥ࠀ-一가-퟿]+",
                r"\p{N}+",
            ]),
            "deepseek-coder" => plain(&[
                r"[\r\n]",
                r"\s?\p{L}+",
                r"\s?\p{P}+",
                r"[一-龥ࠀ-一가-퟿]+",
                r"\p{N}",
            ]),
            "deepseek-v3" | "hunyuan-dense" | "joyai-llm" | "hy_v4" => {
                plain(&[r"\p{N}{1,3}", KANA_AND_HAN, DEEPSEEK3])
            }
            "spark2_5" => plain(&[r"\p{N}{1,3}", KANA_AND_HAN, SPARK2_5, r"\p{N}"]),
            "bailingmoe" | "bailingmoe2" | "llada-moe" => plain(&[concat!(
                r"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}",
                r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
            )]),
            "seed-coder" => plain(&[concat!(
                contraction!(),
                r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+",
                spaces!()
            )]),
            "exaone-moe" => plain(&[concat!(
                contraction!(),
                r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}",
                r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"
            )]),
            _ => return Err(VocabError::UnknownPreTokenizer { name: name.to_owned() }),
        })
    }
}

/// Compiled patterns.
#[derive(Clone, Debug)]
pub(super) struct Splitter {
    patterns: Vec<Regex>,
}

impl Splitter {
    /// Compiles the patterns.
    pub(super) fn new(patterns: &[&str]) -> Result<Self, VocabError> {
        let compile = |pattern: &&str| {
            RegexBuilder::new(pattern)
                .backtrack_limit(BACKTRACKS_MAX)
                .build()
                .map_err(|error| VocabError::Split { reason: error.to_string() })
        };
        Ok(Self { patterns: patterns.iter().map(compile).collect::<Result<_, _>>()? })
    }

    /// The words of `text`: together they are the text.
    pub(super) fn split<'t>(&self, text: &'t str) -> Result<Vec<&'t str>, VocabError> {
        let mut pieces = vec![text];
        for pattern in &self.patterns {
            let mut finer = Vec::with_capacity(pieces.len() * 2);
            for piece in pieces {
                cut(pattern, piece, &mut finer)?;
            }
            pieces = finer;
        }
        Ok(pieces)
    }
}

/// Cuts `text` into the pattern's matches and the gaps between them.
fn cut<'t>(pattern: &Regex, text: &'t str, pieces: &mut Vec<&'t str>) -> Result<(), VocabError> {
    let mut done = 0;
    for found in pattern.find_iter(text) {
        let found = found.map_err(|error| VocabError::Split { reason: error.to_string() })?;
        pieces.extend(text.get(done..found.start()).filter(|gap| !gap.is_empty()));
        pieces.extend(Some(found.as_str()).filter(|word| !word.is_empty()));
        done = found.end();
    }
    pieces.extend(text.get(done..).filter(|gap| !gap.is_empty()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(
            words("gpt-2", text),
            ["I", "'", "LL", " pay", " 12345", " €", "\n\n ", " now"]
        );
        assert_eq!(words("gpt-4o", "HelloWorld's"), ["Hello", "World's"]);
        assert_eq!(words("tekken", "HelloWorld's"), ["Hello", "World", "'s"]);
    }

    #[test]
    fn a_million_spaces_are_one_word_or_an_error_never_a_hang() {
        let text = " ".repeat(3_000_000);
        for name in ["llama-bpe", "gpt-2"] {
            let pre = PreTokenizer::by_name(name).expect("known");
            match Splitter::new(pre.patterns).expect("compiles").split(&text) {
                Ok(pieces) => assert_eq!(pieces, [text.as_str()]),
                Err(error) => panic!("{name}: {error}"),
            }
        }
    }
}
