//! The simulated device's tokens: one for each byte, then a few that steer.

use crate::TokenId;

/// Starts a text.
pub const BOS: TokenId = 256;
/// Ends an answer.
pub const END: TokenId = 257;
/// Starts a message to the model.
pub const USER: TokenId = 258;
/// Starts a message from the model.
pub const ASSISTANT: TokenId = 259;

/// The control tokens with their names, by id.
pub const CONTROL: [(TokenId, &str); 4] =
    [(BOS, "<|bos|>"), (END, "<|end|>"), (USER, "<|user|>"), (ASSISTANT, "<|assistant|>")];

/// Tokens in all.
pub const TOKENS: usize = 256 + CONTROL.len();

/// A chat template for these tokens.
pub const CHAT_TEMPLATE: &str = "{% for m in messages %}\
    {% if m.role == 'assistant' %}<|assistant|>{% else %}<|user|>{% endif %}\
    {{ m.content }}<|end|>{% endfor %}\
    {% if add_generation_prompt %}<|assistant|>{% endif %}";
