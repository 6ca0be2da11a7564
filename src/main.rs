//! The `pleach` command.

/// A thousand streams allocate on one thread and free on another, for months.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    pleach::cli::main()
}
