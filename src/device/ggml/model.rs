//! A loaded model: weights and vocabulary.

use std::any::Any;
use std::ffi::{CString, c_char, c_void};
use std::fs::File;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::ptr::NonNull;

use llama_cpp_sys_2 as sys;

use super::library;
use crate::TokenId;
use crate::device::DeviceError;

/// How a model's weights are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placement {
    /// Layers on a GPU; negative: all.
    pub(super) gpu_layers: i32,
    /// Whether weights may be repacked for faster kernels.
    pub(super) repack: bool,
}

pub(super) struct Model {
    raw: NonNull<sys::llama_model>,
}

// SAFETY: the library only reads a loaded model; its calls below take it as const, and it may be
// shared by contexts on several threads.
unsafe impl Send for Model {}
// SAFETY: as above.
unsafe impl Sync for Model {}

impl Drop for Model {
    fn drop(&mut self) {
        // SAFETY: made by `llama_model_load_from_file`, freed once; contexts on it own an `Arc` of
        // this value and are gone.
        unsafe { sys::llama_model_free(self.raw.as_ptr()) };
    }
}

/// What the progress callback of a load works with.
struct Watch<'a> {
    progress: &'a mut dyn FnMut(f32) -> bool,
    cancelled: bool,
    panic: Option<Box<dyn Any + Send>>,
}

unsafe extern "C" fn report_progress(fraction: f32, watch: *mut c_void) -> bool {
    // SAFETY: `load` passes its `Watch`, which outlives the call and is used by nobody else in it.
    let watch = unsafe { &mut *watch.cast::<Watch<'_>>() };
    // A panic must not reach the C++ frames; it goes on in `load`.
    match catch_unwind(AssertUnwindSafe(|| (watch.progress)(fraction))) {
        Ok(go_on) => watch.cancelled |= !go_on,
        Err(panic) => watch.panic = Some(panic),
    }
    !watch.cancelled && watch.panic.is_none()
}

impl Model {
    /// Loads a GGUF file. `progress` hears fractions from 0 to 1; when it returns false the load
    /// ends with an error.
    pub(super) fn load(
        path: &Path,
        placement: Placement,
        progress: &mut dyn FnMut(f32) -> bool,
    ) -> Result<Self, DeviceError> {
        library::start()?;
        check_file(path)?;
        let c_path = library::c_path(path)?;
        let mut watch = Watch { progress, cancelled: false, panic: None };
        // SAFETY: fills in a plain struct.
        let mut params = unsafe { sys::llama_model_default_params() };
        params.n_gpu_layers = placement.gpu_layers;
        params.use_extra_bufts = placement.repack;
        params.progress_callback = Some(report_progress);
        params.progress_callback_user_data = std::ptr::from_mut(&mut watch).cast();
        let (raw, errors) = library::with_errors(|| {
            // SAFETY: the path ends in a zero; `watch` outlives the call, and the library keeps
            // neither the callback nor its data afterwards.
            unsafe { sys::llama_model_load_from_file(c_path.as_ptr(), params) }
        });
        // Owned at once, so that no way out of this function leaks it.
        let model = NonNull::new(raw).map(|raw| Self { raw });
        if let Some(panic) = watch.panic {
            resume_unwind(panic);
        }
        if watch.cancelled {
            return Err(DeviceError::cancelled());
        }
        let model = model.ok_or_else(|| {
            DeviceError::Load(format!(
                "{} cannot be loaded as a model: {}; the file may be truncated or of a newer \
                 format: fetch it again and compare its checksum",
                path.display(),
                reason(&errors)
            ))
        })?;
        model.check_kind(path)?;
        Ok(model)
    }

    /// Refuses what cannot be stepped token by token.
    fn check_kind(&self, path: &Path) -> Result<(), DeviceError> {
        // SAFETY: reads a loaded model; so do the next two.
        let encoder = unsafe { sys::llama_model_has_encoder(self.as_ptr()) };
        // SAFETY: as above.
        let decoder = unsafe { sys::llama_model_has_decoder(self.as_ptr()) };
        // SAFETY: as above.
        let diffusion = unsafe { sys::llama_model_is_diffusion(self.as_ptr()) };
        if encoder || !decoder || diffusion || self.vocab_size() == 0 {
            return Err(DeviceError::Load(format!(
                "{} is not a model that writes text token by token: take a decoder-only language \
                 model",
                path.display()
            )));
        }
        Ok(())
    }

    pub(super) fn as_ptr(&self) -> *mut sys::llama_model {
        self.raw.as_ptr()
    }

    fn vocab(&self) -> *const sys::llama_vocab {
        // SAFETY: reads a loaded model; the vocabulary lives as long as it.
        unsafe { sys::llama_model_get_vocab(self.as_ptr()) }
    }

    /// Entries in a row of logits.
    pub(super) fn vocab_size(&self) -> usize {
        // SAFETY: the vocabulary of a live model.
        let size = unsafe { sys::llama_vocab_n_tokens(self.vocab()) };
        usize::try_from(size).unwrap_or(0)
    }

    /// Tokens of context that the model was trained with; 0 where the file does not say.
    pub(super) fn trained_context_tokens(&self) -> u32 {
        // SAFETY: reads a loaded model.
        u32::try_from(unsafe { sys::llama_model_n_ctx_train(self.as_ptr()) }).unwrap_or(0)
    }

    /// Tokens that a layer with sliding-window attention looks back; 0: no such layer.
    pub(super) fn sliding_window(&self) -> u32 {
        // SAFETY: reads a loaded model.
        u32::try_from(unsafe { sys::llama_model_n_swa(self.as_ptr()) }).unwrap_or(0)
    }

    /// Whether the model keeps a running state that cannot be cut back.
    pub(super) fn is_recurrent(&self) -> bool {
        // SAFETY: reads a loaded model.
        let recurrent = unsafe { sys::llama_model_is_recurrent(self.as_ptr()) };
        // SAFETY: as above.
        recurrent || unsafe { sys::llama_model_is_hybrid(self.as_ptr()) }
    }

    /// Family, size and weight type, as in `llama 135M Q4_1`.
    pub(super) fn description(&self) -> String {
        read_text(|buffer, size| {
            // SAFETY: writes at most `size` bytes to `buffer`.
            unsafe { sys::llama_model_desc(self.as_ptr(), buffer, size) }
        })
        .unwrap_or_default()
    }

    /// A metadata value of the file, as text. Arrays cannot be read this way.
    pub(super) fn metadata(&self, key: &str) -> Option<String> {
        let key = CString::new(key).ok()?;
        read_text(|buffer, size| {
            // SAFETY: the key ends in a zero; writes at most `size` bytes to `buffer`.
            unsafe { sys::llama_model_meta_val_str(self.as_ptr(), key.as_ptr(), buffer, size) }
        })
    }

    /// Key-value heads and all heads of the first layer, width of the model, and layers.
    pub(super) fn attention(&self) -> Attention {
        // SAFETY: reads a loaded model; so do the next three.
        let head_count_kv = unsafe { sys::llama_model_n_head_kv(self.as_ptr()) };
        // SAFETY: as above.
        let head_count = unsafe { sys::llama_model_n_head(self.as_ptr()) };
        // SAFETY: as above.
        let width = unsafe { sys::llama_model_n_embd(self.as_ptr()) };
        // SAFETY: as above.
        let layers = unsafe { sys::llama_model_n_layer(self.as_ptr()) };
        let count = |value: i32| u64::try_from(value).unwrap_or(0);
        Attention {
            head_count_kv: count(head_count_kv),
            head_count: count(head_count),
            width: count(width),
            layers: count(layers),
        }
    }

    /// The tokens of `text`: special tokens in it are parsed, none is added. `None`: the file has
    /// no vocabulary of text.
    pub(super) fn tokenize(&self, text: &str) -> Option<Result<Vec<TokenId>, DeviceError>> {
        let vocab = self.vocab();
        // SAFETY: the vocabulary of a live model.
        if unsafe { sys::llama_vocab_type(vocab) } == sys::LLAMA_VOCAB_TYPE_NONE {
            return None;
        }
        let Ok(length) = i32::try_from(text.len()) else {
            return Some(Err(DeviceError::Unsupported("tokenize more than 2 GiB of text")));
        };
        let mut tokens: Vec<sys::llama_token> = vec![0; text.len() + 8];
        for _ in 0..2 {
            let room = i32::try_from(tokens.len()).unwrap_or(i32::MAX);
            // SAFETY: `text` has `length` bytes, `tokens` has room for `room`.
            let count = unsafe {
                let text = text.as_ptr().cast::<c_char>();
                sys::llama_tokenize(vocab, text, length, tokens.as_mut_ptr(), room, false, true)
            };
            if let Ok(count) = usize::try_from(count) {
                tokens.truncate(count);
                return Some(Ok(tokens.into_iter().map(i32::cast_unsigned).collect()));
            }
            tokens.resize(usize::try_from(count.unsigned_abs()).unwrap_or(0), 0);
        }
        Some(Err(DeviceError::Fatal("the library's tokenizer gave no answer".to_owned())))
    }
}

/// Sizes that the KV memory follows from.
pub(super) struct Attention {
    pub(super) head_count_kv: u64,
    pub(super) head_count: u64,
    pub(super) width: u64,
    pub(super) layers: u64,
}

/// What a failed call gave as its reason: the first error that it logged.
pub(super) fn reason(errors: &[String]) -> &str {
    errors.first().map_or("the library gives no reason", String::as_str)
}

/// Names the plain mistakes before the library is asked.
pub(super) fn check_file(path: &Path) -> Result<(), DeviceError> {
    let shown = path.display();
    let refuse = |text: String| Err(DeviceError::Load(text));
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) => {
            return refuse(format!("the model {shown} cannot be opened: {error}: check the path"));
        }
    };
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return refuse(format!("{shown} is a directory: name the GGUF file in it"));
    }
    let mut magic = [0; 4];
    match file.read_exact(&mut magic) {
        Ok(()) if magic == *b"GGUF" => Ok(()),
        _ => refuse(format!(
            "{shown} is not a GGUF file (it does not start with \"GGUF\"): download or convert the \
             model in that format"
        )),
    }
}

/// Reads a text that the library writes into a buffer; it returns the text's whole length, or a
/// negative number.
fn read_text(read: impl Fn(*mut c_char, usize) -> i32) -> Option<String> {
    let mut buffer = vec![0u8; 256];
    let length = usize::try_from(read(buffer.as_mut_ptr().cast(), buffer.len())).ok()?;
    if length >= buffer.len() {
        buffer.resize(length + 1, 0);
        read(buffer.as_mut_ptr().cast(), buffer.len());
    }
    buffer.truncate(length);
    Some(String::from_utf8_lossy(&buffer).into_owned())
}
