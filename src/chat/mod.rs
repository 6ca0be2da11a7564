//! Chat templates and formats.
