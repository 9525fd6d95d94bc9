//! The program itself, so that tests always run the current one.

use std::process::ExitCode;

fn main() -> ExitCode {
    zeph_host::cli::main()
}
