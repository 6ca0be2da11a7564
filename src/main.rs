//! The `pleach` command.

fn main() -> std::process::ExitCode {
    pleach::cli::main()
}
