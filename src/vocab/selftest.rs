//! Whether two tokenizers agree, on texts chosen to find where they do not.

use super::ends::ordinary_names;
use super::{SpecialTokens, Tokenizer, VocabError};
use crate::TokenId;

/// Texts on which tokenizers are known to differ.
pub fn texts() -> Vec<String> {
    let mut texts: Vec<String> = TEXTS.iter().map(|text| (*text).to_owned()).collect();
    texts.extend([" ", "\n", "a", "0", "é", "漢", "=", "\t"].map(|unit| unit.repeat(200)));
    texts.extend((1..=8).map(|length| format!("x{}y", " ".repeat(length))));
    texts.extend((1..=4).map(|length| format!("x{}y", "\n".repeat(length))));
    texts.push(TEXTS.join("\n"));
    texts.push(TEXTS.concat());
    texts
}

/// Compares the tokenizer with another one, usually the device's, on [`texts`].
///
/// `device_tokenize` parses special tokens and adds none; `None` means that it failed. The first
/// difference is [`VocabError::Mismatch`]. Two differences are known and left out:
/// * texts that the vocabulary cannot spell: llama.cpp drops characters there, and this tokenizer
///   refuses the text;
/// * names such as `</s>` where the vocabulary holds them as ordinary text: llama.cpp takes them
///   for control tokens, which the model has not learnt.
pub fn compare(
    tokenizer: &Tokenizer,
    device_tokenize: impl Fn(&str) -> Option<Vec<TokenId>>,
) -> Result<(), VocabError> {
    let ordinary = ordinary_names(&tokenizer.vocabulary());
    for text in texts() {
        let known = |text: String, name: &&str| text.replace(name, "");
        let text = tokenizer.normalize(&ordinary.iter().fold(text, known))?;
        let ours = match tokenizer.encode(&text, SpecialTokens::Parse) {
            Err(VocabError::Unencodable { .. }) => continue,
            ours => ours?,
        };
        let Some(device) = device_tokenize(&text) else {
            return Err(VocabError::DeviceFailed { text });
        };
        if ours != device {
            return Err(VocabError::Mismatch { text, ours, device });
        }
    }
    Ok(())
}

const TEXTS: [&str; 78] = [
    "",
    " ",
    "  ",
    "a",
    " a",
    "a ",
    "  a  b   c    d     ",
    "Hello, world!",
    "The quick brown fox jumps over the lazy dog.",
    "I'm you're he'll they've we'd it's don't",
    "I'M YOU'RE HE'LL THEY'VE WE'D IT'S DON'T",
    "rock'n'roll 'tis ''quoted'' 's's's '",
    "l’été aujourd’hui",
    "0 1 12 123 1234 12345 123456 1234567890",
    "3.14159 -2.5e-10 1,000,000 0x1F 1_000 50% $9.99 €5",
    "٠١٢٣٤٥ ०१२३ ⅓ ² Ⅷ ①②③",
    "2026-11-29T21:00:00Z",
    "192.168.0.1:8080",
    "HelloWorld camelCase snake_case SCREAMING_CASE kebab-case XMLHttpRequest",
    "ÉCOLE École éCole ÀÉÎÕÜ àéîõü ß ẞ ǅ ŉ",
    "\n",
    "\n\n\n",
    "\r\n",
    "a\r\nb\r\n\r\nc\rd",
    "\t\tif x:\n\t\t\treturn y\n",
    "    indented\n        more\n  \n    \n",
    "trailing spaces   \nand tabs\t\t\n",
    " \n \t\n  x",
    "\u{a0}no\u{a0}break \u{3000}ideographic \u{2003}em \u{2028}line \u{85}next",
    "zero\u{200b}width \u{feff}bom \u{ad}soft \u{200e}mark",
    "\u{0}",
    "a\u{0}b",
    "\u{1}\u{2}\u{7f}\u{1b}[31mred\u{1b}[0m",
    "fn main() { println!(\"{:?}\", vec![1, 2, 3]); } // done",
    "def f(x):\n    \"\"\"doc\"\"\"\n    return [i**2 for i in range(x)]\n",
    "#include <stdio.h>\nint main(void){return 0;}\n/* x */",
    "<html><body class=\"a b\">&amp;&nbsp;<br/></body></html>",
    "{\"key\": [1, 2.5, null, true], \"nested\": {\"a\": \"\\u00e9\\n\"}}",
    "SELECT * FROM t WHERE a = 'it''s' AND b <> 3;",
    "https://example.com/path?q=a%20b&c=d#frag user@example.org",
    "C:\\Users\\name\\file.txt ../../etc/passwd ~/.bashrc",
    "!!!??? ... --- === *** ### $$$ @@@ &&& ||| ^^^ ~~~ ```",
    "([{<>}])\"'`;:,.?!/\\|-_=+*&^%$#@~",
    "«guillemets» “quotes” ‘single’ „low“ — – … • · ¿ ¡ § ¶ † ™ © ®",
    "∑ ∫ √ ∞ ≠ ≤ ≥ ± × ÷ ∂ ∇ ∈ ∀ ∃ → ⇒ α β γ λ",
    "漢字かな交じり文です。カタカナ、ひらがな。",
    "中文没有空格，标点是全角的！数字123混在一起。",
    "한국어 텍스트입니다. 띄어쓰기가 있어요!",
    "ﾊﾝｶｸ ＦＵＬＬＷＩＤＴＨ １２３",
    "Привет, мир! Ещё раз: съешь же ещё этих мягких французских булок.",
    "Γειά σου Κόσμε, τι κάνεις;",
    "שלום עולם! עברית עם ניקוד: בְּרֵאשִׁית",
    "مرحبا بالعالم، كيف حالك؟ العَرَبِيَّة",
    "हिन्दी में नमस्ते दुनिया क्षत्रिय",
    "বাংলা লেখা தமிழ் உரை తెలుగు",
    "ภาษาไทยไม่มีช่องว่าง",
    "ქართული Հայերեն አማርኛ",
    "Tiếng Việt có dấu: ộ ế ữ ẵ",
    "e\u{301} o\u{308}\u{304} a\u{30a} z\u{351}\u{36b}\u{343}\u{36a}\u{302}\u{36b}a\u{33d}",
    "👍 😀😃😄 ❤️ ☺ ☺️",
    "👨‍👩‍👧‍👦 👩🏽‍🚀 🏳️‍🌈 👋🏿 🇩🇪🇫🇷 1️⃣",
    "text👍text 👍 text",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝒎𝒂𝒕𝒉 𐍈 𓀀 𠜎",
    "\u{fffd} \u{fffe} \u{10ffff} \u{e000}",
    "▁ ▁▁ a▁b Ġ Ċ ĠĠ <0x0A> <0xFF>",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nx<|eot_id|>",
    "<s> </s> <unk> <pad> [INST] x [/INST] <s>[INST]<</SYS>>",
    "<|endoftext|><|endoftext|> x <|endoftext|>\n",
    "<start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n",
    "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>",
    "<think>\nhm\n</think>\n\nok",
    "<|im_start <|im_start| im_start|> <|IM_START|> <|im_end|><|im_end",
    "<｜User｜>x<｜Assistant｜>y<｜end▁of▁sentence｜>",
    "loooooooooooooooooooooooooooong wooooord",
    "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "aGVsbG8gd29ybGQhIQ== 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
    "mixed: 12abc34 äb1 a1b2 x²y³ 5kg 10€/h №5 foo_bar2baz 東京2024年 v1.2.3-rc4",
];
