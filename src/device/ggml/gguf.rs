//! What a GGUF file says about its model, without the tensors' data.
//!
//! The library's own reader is used, after a walk over the header (`header`) that bounds what it
//! will allocate and turns the usual damage into errors that name it.

mod header;
mod library;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use library::Context;

/// Why a file's metadata could not be had.
#[derive(Debug, thiserror::Error)]
pub enum GgufError {
    /// The file could not be opened or read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },

    /// The path is a directory, a pipe or a device.
    #[error("{path} is not a regular file")]
    NotAFile {
        /// The path.
        path: PathBuf,
    },

    /// The file does not start as a GGUF file does.
    #[error("{path} is not a GGUF file: it does not start with the letters GGUF")]
    NotGguf {
        /// The file.
        path: PathBuf,
    },

    /// A version of the format that the library does not read.
    #[error("{path} is a GGUF file of version {version}; versions 2 and 3 can be read")]
    Version {
        /// The file.
        path: PathBuf,
        /// As the file says.
        version: u32,
    },

    /// The file ends too early.
    #[error("{path} ends too early, in {place}; it was probably not copied whole: fetch it again")]
    Truncated {
        /// The file.
        path: PathBuf,
        /// What was being read.
        place: String,
    },

    /// The header contradicts itself or asks for more than a model can need.
    #[error("{path} is damaged: {reason}; fetch it again")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },

    /// A key holds another type than it should.
    #[error("the model file's `{key}` is {found}, but should be {wanted}")]
    WrongType {
        /// The metadata key.
        key: String,
        /// What it should be.
        wanted: &'static str,
        /// What it is.
        found: &'static str,
    },
}

/// A metadata value, owned.
#[derive(Clone, Debug, PartialEq)]
pub enum GgufValue {
    /// Any of the eight integer types.
    Integer(i128),
    /// Either float type.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// Text.
    String(String),
    /// An array of any integer type.
    Integers(Vec<i128>),
    /// An array of either float type.
    Floats(Vec<f64>),
    /// An array of truth values.
    Bools(Vec<bool>),
    /// An array of text.
    Strings(Vec<String>),
    /// Text, or an array of it, that is not UTF-8. Every getter refuses it.
    NotUtf8,
}

impl GgufValue {
    fn type_name(&self) -> &'static str {
        match self {
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Bool(_) => "a truth value",
            Self::String(_) => "text",
            Self::Integers(_) => "an array of integers",
            Self::Floats(_) => "an array of floats",
            Self::Bools(_) => "an array of truth values",
            Self::Strings(_) => "an array of text",
            Self::NotUtf8 => "not valid UTF-8",
        }
    }
}

/// The key/value metadata of a GGUF file and a summary of its tensors.
#[derive(Clone, Debug, Default)]
pub struct GgufMetadata {
    values: BTreeMap<String, GgufValue>,
    tensors: u64,
    parameters: u64,
    tensor_bytes: u64,
}

impl GgufMetadata {
    /// Reads the metadata of the file at `path`.
    pub fn read(path: &Path) -> Result<Self, GgufError> {
        let file_bytes = header::check(path)?;
        let context = Context::open(path)?;
        let metadata = context.metadata(path)?;
        let end = context.data_offset().saturating_add(metadata.tensor_bytes);
        if end > file_bytes {
            let place = format!("the tensors: {file_bytes} of {end} bytes are there");
            return Err(GgufError::Truncated { path: path.to_owned(), place });
        }
        Ok(metadata)
    }

    /// Metadata that comes from no file: for tests and tools.
    pub fn from_values(values: impl IntoIterator<Item = (String, GgufValue)>) -> Self {
        Self { values: values.into_iter().collect(), ..Self::default() }
    }

    /// Tensors in the file.
    pub fn tensors(&self) -> u64 {
        self.tensors
    }

    /// Numbers in all tensors together: the model's parameters.
    pub fn parameters(&self) -> u64 {
        self.parameters
    }

    /// Bytes of all tensors together, padding included.
    pub fn tensor_bytes(&self) -> u64 {
        self.tensor_bytes
    }

    /// The quantization that most tensors have, as llama.cpp numbers it (`general.file_type`).
    pub fn file_type(&self) -> Result<Option<u32>, GgufError> {
        self.integer("general.file_type")
    }

    /// Every key with its value, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &GgufValue)> {
        self.values.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&GgufValue> {
        self.values.get(key)
    }

    /// An integer that fits `T`; `None` where the key is missing.
    pub fn integer<T: TryFrom<i128>>(&self, key: &str) -> Result<Option<T>, GgufError> {
        self.typed(key, "an integer of a smaller size", |value| match value {
            GgufValue::Integer(integer) => T::try_from(*integer).ok(),
            _ => None,
        })
    }

    /// A float, or an integer as one; `None` where the key is missing.
    pub fn float(&self, key: &str) -> Result<Option<f64>, GgufError> {
        self.typed(key, "a number", |value| match value {
            GgufValue::Float(float) => Some(*float),
            GgufValue::Integer(integer) => Some(*integer as f64),
            _ => None,
        })
    }

    /// A truth value; `None` where the key is missing.
    pub fn boolean(&self, key: &str) -> Result<Option<bool>, GgufError> {
        self.typed(key, "a truth value", |value| match value {
            GgufValue::Bool(truth) => Some(*truth),
            _ => None,
        })
    }

    /// Text; `None` where the key is missing.
    pub fn string(&self, key: &str) -> Result<Option<&str>, GgufError> {
        self.typed(key, "text", |value| match value {
            GgufValue::String(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// An array of text; `None` where the key is missing.
    pub fn strings(&self, key: &str) -> Result<Option<&[String]>, GgufError> {
        self.typed(key, "an array of text", |value| match value {
            GgufValue::Strings(texts) => Some(texts.as_slice()),
            _ => None,
        })
    }

    /// An array of integers; `None` where the key is missing.
    pub fn integers(&self, key: &str) -> Result<Option<&[i128]>, GgufError> {
        self.typed(key, "an array of integers", |value| match value {
            GgufValue::Integers(integers) => Some(integers.as_slice()),
            _ => None,
        })
    }

    /// An array of numbers as floats; `None` where the key is missing.
    pub fn floats(&self, key: &str) -> Result<Option<Vec<f64>>, GgufError> {
        self.typed(key, "an array of numbers", |value| match value {
            GgufValue::Floats(floats) => Some(floats.clone()),
            GgufValue::Integers(integers) => {
                Some(integers.iter().map(|integer| *integer as f64).collect())
            }
            _ => None,
        })
    }

    fn typed<'v, T>(
        &'v self,
        key: &str,
        wanted: &'static str,
        read: impl FnOnce(&'v GgufValue) -> Option<T>,
    ) -> Result<Option<T>, GgufError> {
        let Some(value) = self.values.get(key) else { return Ok(None) };
        let found = value.type_name();
        read(value).map(Some).ok_or(GgufError::WrongType { key: key.to_owned(), wanted, found })
    }
}
