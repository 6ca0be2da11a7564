//! The llama.cpp device.

pub mod gguf;
