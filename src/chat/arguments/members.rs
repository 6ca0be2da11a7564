//! The object around parameters that a format writes one by one.

use super::write::write_string;

/// Writes the brackets, names and commas of one JSON object; the values are written by others.
#[derive(Clone, Debug, Default)]
pub struct Members {
    count: usize,
}

impl Members {
    /// An object of which nothing has been written.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes what stands before a value: `{"name":` or `,"name":`.
    pub fn name(&mut self, name: &str, out: &mut String) {
        out.push(if self.count == 0 { '{' } else { ',' });
        self.count += 1;
        write_string(name, out);
        out.push(':');
    }

    /// Writes the end of the object, all of it if it has no members.
    pub fn end(self, out: &mut String) {
        out.push_str(if self.count == 0 { "{}" } else { "}" });
    }
}
