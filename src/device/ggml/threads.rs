//! The threads that compute a step.

use std::collections::BTreeSet;
use std::ptr::NonNull;
use std::thread::available_parallelism;

use llama_cpp_sys_2 as sys;

use crate::device::DeviceError;

/// Threads to compute with where the settings say 0: one a physical core, one of which is left to
/// the sessions and the wire where there are more than two.
///
/// The library's threads wait for each other by spinning, so a thread too many costs far more than
/// it brings: with one busy process beside it a step took 1.8 times as long on two threads of two
/// cores, with two 4.5 times.
pub fn default_threads() -> u32 {
    let allowed = available_parallelism().map_or(1, |count| count.get());
    let cores = physical_cores().map_or(allowed, |cores| cores.min(allowed));
    let threads = if cores > 2 { cores - 1 } else { cores };
    u32::try_from(threads).unwrap_or(1)
}

/// Physical cores of the machine, where Linux tells: hardware threads of one core count once.
fn physical_cores() -> Option<usize> {
    let mut cores = BTreeSet::new();
    for entry in std::fs::read_dir("/sys/devices/system/cpu").ok()?.flatten() {
        let siblings = entry.path().join("topology/thread_siblings_list");
        if let Ok(list) = std::fs::read_to_string(siblings) {
            cores.insert(list);
        }
    }
    (!cores.is_empty()).then_some(cores.len())
}

/// The library's limit (`GGML_MAX_N_THREADS`); more would end the process.
const MAX_THREADS: i32 = 512;

/// Threads that stay from step to step.
///
/// Left alone, the library starts its threads anew for every step. Kept threads that sleep at once
/// (`polling` 0) cost the same CPU time and were faster on a busy machine; with the library's own
/// `polling` of 50 they spin through the pauses between steps, which took four to five times the
/// CPU time of the steps (2 threads, 8 ms between steps), from cores that sessions and the wire
/// share.
pub(super) struct ThreadPool {
    raw: NonNull<sys::ggml_threadpool>,
}

// SAFETY: the pool is a plain heap object; whoever owns it may use it from any one thread.
unsafe impl Send for ThreadPool {}

impl ThreadPool {
    /// A pool of `threads` (at least 1, the caller of a step counts as one). A thread that waits
    /// for the next step spins for about `polling` × 2 ms before it sleeps.
    pub(super) fn new(threads: u32, polling: u32) -> Result<Self, DeviceError> {
        let count = i32::try_from(threads).unwrap_or(i32::MAX);
        if !(1..=MAX_THREADS).contains(&count) {
            return Err(DeviceError::Load(format!(
                "{threads} threads were asked for: set 1 to {MAX_THREADS}, or 0 for a default"
            )));
        }
        // SAFETY: fills in a plain struct.
        let mut params = unsafe { sys::ggml_threadpool_params_default(count) };
        params.poll = polling;
        // SAFETY: the params are read during the call only.
        let raw = unsafe { sys::ggml_threadpool_new(&mut params) };
        match NonNull::new(raw) {
            Some(raw) => Ok(Self { raw }),
            None => Err(DeviceError::Load(format!("{threads} threads cannot be started"))),
        }
    }

    /// For the library's calls. Valid as long as this value.
    pub(super) fn as_ptr(&self) -> *mut sys::ggml_threadpool {
        self.raw.as_ptr()
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        // SAFETY: made by `ggml_threadpool_new`, freed once; the context that used it is gone,
        // because it owned this value.
        unsafe { sys::ggml_threadpool_free(self.raw.as_ptr()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_is_at_least_one_and_no_more_than_allowed() {
        let allowed = available_parallelism().map_or(1, |count| count.get());
        let threads = default_threads() as usize;
        assert!((1..=allowed).contains(&threads), "{threads} of {allowed}");
    }
}
