//! The library as a whole: started once a process, its log, what it says of itself.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use llama_cpp_sys_2 as sys;

use crate::device::DeviceError;

/// Starts the library, once: its log goes to `tracing` (target `ggml`), and the backend that the
/// environment variable `GGML_BACKEND_PATH` names, if any, is loaded beside those linked in.
pub(super) fn start() -> Result<(), DeviceError> {
    static STARTED: OnceLock<Result<(), DeviceError>> = OnceLock::new();
    STARTED.get_or_init(start_now).clone()
}

fn start_now() -> Result<(), DeviceError> {
    // SAFETY: the callback is a plain function that lives as long as the process and ignores its
    // user data.
    unsafe { sys::llama_log_set(Some(forward_log), std::ptr::null_mut()) };
    // SAFETY: no precondition; called once.
    unsafe { sys::llama_backend_init() };
    if let Some(path) = std::env::var_os("GGML_BACKEND_PATH") {
        let c_path = c_path(Path::new(&path))?;
        // SAFETY: the string is valid and ends in a zero; the library copies what it keeps.
        let registered = unsafe { sys::ggml_backend_load(c_path.as_ptr()) };
        if registered.is_null() {
            return Err(DeviceError::Load(format!(
                "the backend {} (GGML_BACKEND_PATH) cannot be loaded: it must be a ggml backend \
                 library of the same API version",
                Path::new(&path).display()
            )));
        }
    }
    // SAFETY: no precondition.
    if unsafe { sys::ggml_backend_reg_count() } == 0 {
        // SAFETY: no precondition; looks beside the executable.
        unsafe { sys::ggml_backend_load_all() };
    }
    Ok(())
}

/// A path as the library takes it.
pub(super) fn c_path(path: &Path) -> Result<CString, DeviceError> {
    CString::new(path.as_os_str().as_encoded_bytes())
        .map_err(|_| DeviceError::Load(format!("the path {path:?} contains a zero byte")))
}

/// The library's version, as in `0.0.11434`.
pub(super) fn version() -> String {
    // SAFETY: returns a static string that ends in a zero, or null.
    unsafe { text(sys::llama_version()) }
}

/// The backends and the CPU features they were built for, in the library's own words.
pub(super) fn system_info() -> String {
    // The library builds the text in one static buffer.
    static BUFFER: Mutex<()> = Mutex::new(());
    let _guard = BUFFER.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the text is copied before the guard lets another caller rewrite it.
    unsafe { text(sys::llama_print_system_info()) }
}

/// Sequences that a context can have.
pub(super) fn max_sequences() -> u32 {
    // SAFETY: no precondition.
    u32::try_from(unsafe { sys::llama_max_parallel_sequences() }).unwrap_or(1)
}

/// Whether some of the work goes to a GPU or the like.
pub(super) fn offloads(gpu_layers: i32) -> bool {
    // SAFETY: no precondition.
    gpu_layers != 0 && unsafe { sys::llama_supports_gpu_offload() }
}

/// # Safety
/// `pointer` is null or points to a string that ends in a zero and stays valid during the call.
unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: not null; the rest is the caller's promise.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

thread_local! {
    /// What this thread is saying: a line in the making with its level, and the errors so far.
    static SPEECH: RefCell<Speech> = const { RefCell::new(Speech::new()) };
}

struct Speech {
    level: sys::ggml_log_level,
    line: String,
    /// `None`: nobody listens.
    errors: Option<Vec<String>>,
}

impl Speech {
    const fn new() -> Self {
        Self { level: sys::GGML_LOG_LEVEL_NONE, line: String::new(), errors: None }
    }

    /// Takes a piece of text and says each line that it ends.
    fn hear(&mut self, level: sys::ggml_log_level, text: &str) {
        if level != sys::GGML_LOG_LEVEL_CONT {
            self.say();
            self.level = level;
        }
        for part in text.split_inclusive('\n') {
            self.line.push_str(part);
            if part.ends_with('\n') {
                self.say();
            }
        }
    }

    fn say(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line = line.trim_end();
        // A row of dots is the library's own progress bar.
        if line.chars().all(|c| c == '.') {
            return;
        }
        match self.level {
            sys::GGML_LOG_LEVEL_ERROR => {
                tracing::error!(target: "ggml", "{line}");
                if let Some(errors) = &mut self.errors {
                    errors.push(line.to_owned());
                }
            }
            sys::GGML_LOG_LEVEL_WARN => tracing::warn!(target: "ggml", "{line}"),
            sys::GGML_LOG_LEVEL_DEBUG => tracing::trace!(target: "ggml", "{line}"),
            _ => tracing::debug!(target: "ggml", "{line}"),
        }
    }
}

/// Runs `work` and returns with its result the errors that the library logged on this thread.
pub(super) fn with_errors<T>(work: impl FnOnce() -> T) -> (T, Vec<String>) {
    SPEECH.with_borrow_mut(|speech| speech.errors = Some(Vec::new()));
    let result = work();
    let errors = SPEECH.with_borrow_mut(|speech| speech.errors.take()).unwrap_or_default();
    (result, errors)
}

unsafe extern "C" fn forward_log(
    level: sys::ggml_log_level,
    text: *const c_char,
    _user_data: *mut c_void,
) {
    // A panic (of a log subscriber, say) must not reach the C++ frames above.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the library passes a string that ends in a zero, or null.
        let text = unsafe { self::text(text) };
        // Borrowed already: the subscriber itself made the library speak. Let that line go.
        let _ = SPEECH.try_with(|speech| {
            if let Ok(mut speech) = speech.try_borrow_mut() {
                speech.hear(level, &text);
            }
        });
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_put_together_and_errors_kept() {
        let mut speech = Speech::new();
        speech.errors = Some(Vec::new());
        speech.hear(sys::GGML_LOG_LEVEL_ERROR, "no such ");
        speech.hear(sys::GGML_LOG_LEVEL_CONT, "tensor\nand ");
        speech.hear(sys::GGML_LOG_LEVEL_CONT, "more");
        assert_eq!(speech.errors, Some(vec!["no such tensor".to_owned()]));
        speech.hear(sys::GGML_LOG_LEVEL_INFO, "fine\n");
        let errors = speech.errors.unwrap_or_default();
        assert_eq!(errors, ["no such tensor", "and more"]);
    }

    #[test]
    fn the_library_names_its_version_and_backends() {
        start().unwrap();
        assert!(!version().is_empty());
        assert!(system_info().contains("CPU"), "{}", system_info());
    }
}
