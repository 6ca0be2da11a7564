//! What a GGUF file says about its model, without the tensors' data.
//!
//! The library's own reader is used, after a walk over the header (`header`) that bounds what it
//! will allocate and turns the usual damage into errors that name it.

mod header;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char};
use std::path::{Path, PathBuf};

use llama_cpp_sys_2 as sys;

/// Numbers in a tensor's shape (GGML_MAX_DIMS).
const DIMENSIONS: usize = 4;

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

/// The library's reading of a file. Never null.
struct Context(*mut sys::gguf_context);

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the pointer came from gguf_init_from_file, is not null and is freed once.
        unsafe { sys::gguf_free(self.0) }
    }
}

impl Context {
    fn open(path: &Path) -> Result<Self, GgufError> {
        let damaged =
            |reason: &str| GgufError::Damaged { path: path.to_owned(), reason: reason.to_owned() };
        let name = path.to_str().and_then(|name| CString::new(name).ok());
        let name = name.ok_or_else(|| damaged("its path is not UTF-8: rename it"))?;
        let params = sys::gguf_init_params { no_alloc: true, ctx: std::ptr::null_mut() };
        // SAFETY: `name` is NUL-terminated and outlives the call; without `ctx` nothing is written.
        let context = unsafe { sys::gguf_init_from_file(name.as_ptr(), params) };
        if context.is_null() {
            return Err(damaged("the model library cannot read its header"));
        }
        Ok(Self(context))
    }

    /// Where the tensors' data starts in the file.
    fn data_offset(&self) -> u64 {
        // SAFETY: the context is alive.
        unsafe { sys::gguf_get_data_offset(self.0) as u64 }
    }

    fn metadata(&self, path: &Path) -> Result<GgufMetadata, GgufError> {
        // SAFETY: the context is alive.
        let (keys, tensors) =
            unsafe { (sys::gguf_get_n_kv(self.0), sys::gguf_get_n_tensors(self.0)) };
        let mut metadata = GgufMetadata::default();
        for index in 0..keys {
            let (key, value) = self.entry(index).ok_or_else(|| GgufError::Damaged {
                path: path.to_owned(),
                reason: format!("key {index} is not UTF-8 or of an unknown type"),
            })?;
            metadata.values.insert(key, value);
        }
        for index in 0..tensors {
            let (parameters, end) = self.tensor(index);
            metadata.parameters = metadata.parameters.saturating_add(parameters);
            metadata.tensor_bytes = metadata.tensor_bytes.max(end);
        }
        metadata.tensors = u64::try_from(tensors).unwrap_or(0);
        Ok(metadata)
    }

    /// The numbers in a tensor, and where it ends in the data.
    fn tensor(&self, index: i64) -> (u64, u64) {
        // SAFETY: `index` is below the number of tensors; a shape is
        // `DIMENSIONS` numbers, which the library has checked to be positive or zero.
        let (shape, offset, size) = unsafe {
            let shape =
                std::slice::from_raw_parts(sys::gguf_get_tensor_ne(self.0, index), DIMENSIONS);
            let offset = sys::gguf_get_tensor_offset(self.0, index);
            (shape, offset, sys::gguf_get_tensor_size(self.0, index))
        };
        let sides = shape.iter().map(|side| u64::try_from(*side).unwrap_or(0));
        (sides.fold(1, u64::saturating_mul), (offset as u64).saturating_add(size as u64))
    }

    /// A key and its value; `None` where the key is not UTF-8 or the type is not known.
    fn entry(&self, index: i64) -> Option<(String, GgufValue)> {
        // SAFETY: `index` is below the number of keys; the key's text lives as long as the context.
        let key = unsafe { text(sys::gguf_get_key(self.0, index)) }?;
        // SAFETY: as above.
        let kind = unsafe { sys::gguf_get_kv_type(self.0, index) };
        let value = match kind {
            sys::GGUF_TYPE_ARRAY => self.array(index)?,
            sys::GGUF_TYPE_STRING => {
                // SAFETY: the key holds a string, as `kind` says.
                let value = unsafe { text(sys::gguf_get_val_str(self.0, index)) };
                value.map_or(GgufValue::NotUtf8, GgufValue::String)
            }
            _ => {
                // SAFETY: the key holds one plain value of type `kind`, which the library stores
                // in the type's size.
                let value = unsafe { numbers(sys::gguf_get_val_data(self.0, index), kind, 1) }?;
                single(value)?
            }
        };
        Some((key, value))
    }

    fn array(&self, index: i64) -> Option<GgufValue> {
        // SAFETY: `index` is below the number of keys and the key holds an array.
        let (kind, length) =
            unsafe { (sys::gguf_get_arr_type(self.0, index), sys::gguf_get_arr_n(self.0, index)) };
        if kind != sys::GGUF_TYPE_STRING {
            // SAFETY: the array holds `length` plain values of type `kind`.
            return unsafe { numbers(sys::gguf_get_arr_data(self.0, index), kind, length) };
        }
        // SAFETY: every index is below the array's length; the text lives as long as the context.
        let texts = (0..length).map(|i| unsafe { text(sys::gguf_get_arr_str(self.0, index, i)) });
        let texts: Option<Vec<String>> = texts.collect();
        Some(texts.map_or(GgufValue::NotUtf8, GgufValue::Strings))
    }
}

/// The one value of an array that holds one.
fn single(value: GgufValue) -> Option<GgufValue> {
    match value {
        GgufValue::Integers(values) => values.first().copied().map(GgufValue::Integer),
        GgufValue::Floats(values) => values.first().copied().map(GgufValue::Float),
        GgufValue::Bools(values) => values.first().copied().map(GgufValue::Bool),
        _ => None,
    }
}

/// A copy of a C string, or `None` where it is not UTF-8.
///
/// # Safety
/// `pointer` is null or points to a NUL-terminated string.
unsafe fn text(pointer: *const c_char) -> Option<String> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: not null, and NUL-terminated by the contract.
    unsafe { CStr::from_ptr(pointer) }.to_str().ok().map(str::to_owned)
}

/// `length` plain values of a GGUF type; `None` for a type that is not plain.
///
/// # Safety
/// `pointer` points to that many values of the type, or `length` is zero.
unsafe fn numbers(
    pointer: *const std::ffi::c_void,
    kind: sys::gguf_type,
    length: usize,
) -> Option<GgufValue> {
    /// # Safety
    /// As for `numbers`, with `T` for the type.
    unsafe fn each<T: Copy, U>(
        pointer: *const std::ffi::c_void,
        length: usize,
        convert: impl Fn(T) -> U,
    ) -> Vec<U> {
        // The library keeps values as bytes, so nothing is known of their alignment.
        // SAFETY: the value is inside of the array.
        let read = |index| unsafe { pointer.cast::<T>().add(index).read_unaligned() };
        (0..length).map(|index| convert(read(index))).collect()
    }
    // SAFETY: each type is read as what the library stores for it.
    unsafe {
        Some(match kind {
            sys::GGUF_TYPE_UINT8 => GgufValue::Integers(each::<u8, _>(pointer, length, i128::from)),
            sys::GGUF_TYPE_INT8 => GgufValue::Integers(each::<i8, _>(pointer, length, i128::from)),
            sys::GGUF_TYPE_UINT16 => {
                GgufValue::Integers(each::<u16, _>(pointer, length, i128::from))
            }
            sys::GGUF_TYPE_INT16 => {
                GgufValue::Integers(each::<i16, _>(pointer, length, i128::from))
            }
            sys::GGUF_TYPE_UINT32 => {
                GgufValue::Integers(each::<u32, _>(pointer, length, i128::from))
            }
            sys::GGUF_TYPE_INT32 => {
                GgufValue::Integers(each::<i32, _>(pointer, length, i128::from))
            }
            sys::GGUF_TYPE_UINT64 => {
                GgufValue::Integers(each::<u64, _>(pointer, length, i128::from))
            }
            sys::GGUF_TYPE_INT64 => {
                GgufValue::Integers(each::<i64, _>(pointer, length, i128::from))
            }
            sys::GGUF_TYPE_FLOAT32 => GgufValue::Floats(each::<f32, _>(pointer, length, f64::from)),
            sys::GGUF_TYPE_FLOAT64 => GgufValue::Floats(each::<f64, _>(pointer, length, |f| f)),
            sys::GGUF_TYPE_BOOL => GgufValue::Bools(each::<i8, _>(pointer, length, |b| b != 0)),
            _ => return None,
        })
    }
}
