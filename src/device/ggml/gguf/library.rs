//! The model library's reader of GGUF files, and its values made our own.

use std::ffi::{CStr, CString, c_char};
use std::path::Path;

use llama_cpp_sys_2 as sys;

use super::{GgufError, GgufMetadata, GgufValue};

/// Numbers in a tensor's shape (GGML_MAX_DIMS).
const DIMENSIONS: usize = 4;

/// The library's reading of a file. Never null.
pub(super) struct Context(*mut sys::gguf_context);

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the pointer came from gguf_init_from_file, is not null and is freed once.
        unsafe { sys::gguf_free(self.0) }
    }
}

impl Context {
    /// Reads the header of a file that `header::check` has passed.
    pub(super) fn open(path: &Path) -> Result<Self, GgufError> {
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
    pub(super) fn data_offset(&self) -> u64 {
        // SAFETY: the context is alive.
        unsafe { sys::gguf_get_data_offset(self.0) as u64 }
    }

    /// All keys and values, and the tensors' summary.
    pub(super) fn metadata(&self, path: &Path) -> Result<GgufMetadata, GgufError> {
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
