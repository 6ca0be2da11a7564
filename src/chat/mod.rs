//! Chat templates and formats.

pub mod template;
