//! From one weight type to another.

use std::path::Path;

use llama_cpp_sys_2 as sys;

use super::library;
use super::model::{check_file, reason};
use crate::device::DeviceError;

/// The weight types that [`quantize`] writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightType {
    /// 4 bits; the type with the fastest batched steps on CPUs.
    Q4_0,
    /// 4 bits with an offset: a little more exact than Q4_0, and far slower in batches.
    Q4_1,
    /// 8 bits.
    Q8_0,
    /// 4 to 6 bits, mixed (`Q4_K_M`).
    Q4KM,
}

/// Writes the model `input` to `output` with its weights in another type. Weights that are
/// quantized already are quantized again, which loses a little more than from the original. Takes
/// a few seconds for 100 million weights. The output appears whole or not at all (it is written
/// beside its place, as `*.part`, and renamed).
///
/// # Errors
/// [`DeviceError::Load`] when `input` is not a model or `output` cannot be written.
pub fn quantize(input: &Path, output: &Path, to: WeightType) -> Result<(), DeviceError> {
    library::start()?;
    check_file(input)?;
    let mut part = output.as_os_str().to_owned();
    part.push(".part");
    let part = Path::new(&part);
    let (c_input, c_output) = (library::c_path(input)?, library::c_path(part)?);
    // SAFETY: fills in a plain struct.
    let mut params = unsafe { sys::llama_model_quantize_default_params() };
    params.ftype = match to {
        WeightType::Q4_0 => sys::LLAMA_FTYPE_MOSTLY_Q4_0,
        WeightType::Q4_1 => sys::LLAMA_FTYPE_MOSTLY_Q4_1,
        WeightType::Q8_0 => sys::LLAMA_FTYPE_MOSTLY_Q8_0,
        WeightType::Q4KM => sys::LLAMA_FTYPE_MOSTLY_Q4_K_M,
    };
    params.allow_requantize = true;
    let (code, errors) = library::with_errors(|| {
        // SAFETY: both strings end in a zero; the params are read during the call only.
        unsafe { sys::llama_model_quantize(c_input.as_ptr(), c_output.as_ptr(), &params) }
    });
    let refuse = |reason: &str| {
        DeviceError::Load(format!(
            "{} cannot be quantized to {}: {reason}",
            input.display(),
            output.display()
        ))
    };
    if code == 0 {
        return std::fs::rename(part, output).map_err(|error| refuse(&error.to_string()));
    }
    // Whatever was written is of no use; if it is not there, all the better.
    let _ = std::fs::remove_file(part);
    Err(refuse(reason(&errors)))
}
