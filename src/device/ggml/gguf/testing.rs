//! For tests: the real model where it is there, and the library's own tokenizer.

use std::ffi::{CString, c_char, c_void};
use std::path::{Path, PathBuf};
use std::sync::Once;

use llama_cpp_sys_2 as sys;

use crate::TokenId;

/// The small real model: `PLEACH_MODEL`, else where set-up puts it. Prints where it is missing.
pub(crate) fn model_path() -> Option<PathBuf> {
    let cache = || {
        let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home)?;
        Some(cache.join("pleach/models/smollm2-135m-q4_1.gguf"))
    };
    let path = std::env::var_os("PLEACH_MODEL").map(PathBuf::from).or_else(cache);
    let path = path.filter(|path| path.is_file());
    if path.is_none() {
        println!("skipped: no model; set PLEACH_MODEL");
    }
    path
}

/// A file of `PLEACH_SHARED`. Prints where it is missing.
pub(crate) fn shared_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PLEACH_SHARED").map(|shared| PathBuf::from(shared).join(name));
    let path = path.filter(|path| path.is_file());
    if path.is_none() {
        println!("skipped: no {name}; set PLEACH_SHARED");
    }
    path
}

/// A model of which the library has loaded only the vocabulary.
pub(crate) struct LibraryTokenizer(*mut sys::llama_model);

unsafe extern "C" fn quiet(_: sys::ggml_log_level, _: *const c_char, _: *mut c_void) {}

/// Starts the library and turns its log off.
pub(crate) fn start_quietly() {
    static BACKEND: Once = Once::new();
    // SAFETY: both calls are sound at any time; the callback takes no part in anything else.
    BACKEND.call_once(|| unsafe {
        sys::llama_log_set(Some(quiet), std::ptr::null_mut());
        sys::llama_backend_init();
    });
}

impl LibraryTokenizer {
    pub(crate) fn load(path: &Path) -> Option<Self> {
        start_quietly();
        let name = CString::new(path.to_str()?).ok()?;
        // SAFETY: `name` is NUL-terminated and outlives the call.
        let model = unsafe {
            let mut params = sys::llama_model_default_params();
            params.vocab_only = true;
            sys::llama_model_load_from_file(name.as_ptr(), params)
        };
        (!model.is_null()).then_some(Self(model))
    }

    /// The library's tokens; special tokens are parsed if asked for, none is added.
    pub(crate) fn tokenize(&self, text: &str, parse_special: bool) -> Option<Vec<TokenId>> {
        let mut ids = vec![0; text.len() + 16];
        // SAFETY: the model is alive; both buffers are as long as said.
        let count = unsafe {
            sys::llama_tokenize(
                sys::llama_model_get_vocab(self.0),
                text.as_ptr().cast(),
                i32::try_from(text.len()).ok()?,
                ids.as_mut_ptr(),
                i32::try_from(ids.len()).ok()?,
                false,
                parse_special,
            )
        };
        ids.truncate(usize::try_from(count).ok()?);
        ids.into_iter().map(|id| TokenId::try_from(id).ok()).collect()
    }

    /// Whether the library ends an answer at the token.
    pub(crate) fn is_end(&self, id: TokenId) -> bool {
        // SAFETY: the model is alive; an id out of range is refused by the library's own check.
        unsafe {
            let vocab = sys::llama_model_get_vocab(self.0);
            i32::try_from(id).is_ok_and(|id| sys::llama_vocab_is_eog(vocab, id))
        }
    }
}

impl Drop for LibraryTokenizer {
    fn drop(&mut self) {
        // SAFETY: loaded by `load`, freed once.
        unsafe { sys::llama_model_free(self.0) }
    }
}

/// A change to a file's metadata.
pub(crate) enum Edit<'e> {
    Text(&'e str, &'e str),
    Texts(&'e str, Vec<String>),
    Ints(&'e str, Vec<i32>),
    Floats(&'e str, Vec<f32>),
    Number(&'e str, u32),
    Remove(&'e str),
}

/// Writes the metadata of `source`, without tensors and with the edits, to `target`.
pub(crate) fn rewrite(source: &Path, target: &Path, edits: &[Edit<'_>]) {
    let c = |text: &str| CString::new(text).expect("no NUL");
    let params = sys::gguf_init_params { no_alloc: true, ctx: std::ptr::null_mut() };
    // SAFETY: every string is NUL-terminated and outlives its call, which copies it; arrays are
    // as long as said; both contexts are freed once.
    unsafe {
        let from = sys::gguf_init_from_file(c(source.to_str().expect("UTF-8")).as_ptr(), params);
        assert!(!from.is_null());
        let to = sys::gguf_init_empty();
        sys::gguf_set_kv(to, from);
        for edit in edits {
            match edit {
                Edit::Text(key, value) => {
                    sys::gguf_set_val_str(to, c(key).as_ptr(), c(value).as_ptr());
                }
                Edit::Texts(key, values) => {
                    let values: Vec<CString> = values.iter().map(|value| c(value)).collect();
                    let mut pointers: Vec<_> = values.iter().map(|value| value.as_ptr()).collect();
                    sys::gguf_set_arr_str(to, c(key).as_ptr(), pointers.as_mut_ptr(), values.len());
                }
                Edit::Ints(key, values) => {
                    let (data, n) = (values.as_ptr().cast(), values.len());
                    sys::gguf_set_arr_data(to, c(key).as_ptr(), sys::GGUF_TYPE_INT32, data, n);
                }
                Edit::Floats(key, values) => {
                    let (data, n) = (values.as_ptr().cast(), values.len());
                    sys::gguf_set_arr_data(to, c(key).as_ptr(), sys::GGUF_TYPE_FLOAT32, data, n);
                }
                Edit::Number(key, value) => sys::gguf_set_val_u32(to, c(key).as_ptr(), *value),
                Edit::Remove(key) => {
                    sys::gguf_remove_key(to, c(key).as_ptr());
                }
            }
        }
        assert!(sys::gguf_write_to_file(to, c(target.to_str().expect("UTF-8")).as_ptr(), true));
        sys::gguf_free(to);
        sys::gguf_free(from);
    }
}
