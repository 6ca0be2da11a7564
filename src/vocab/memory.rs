//! Memory after loading: reading a tokenizer takes several times what it leaves.

/// Gives free memory back to the system, where the allocator would keep it.
pub(super) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes no pointer and may be called by any thread at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}
