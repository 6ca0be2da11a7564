//! Token bytes and kinds, the tokenizer, UTF-8 assembly.
