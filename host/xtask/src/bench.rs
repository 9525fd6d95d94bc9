//! `cargo xtask bench`: builds and starts `zeph-bench`, which measures.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;

use crate::dist::TARGET;
use crate::program::{cargo, succeed};
use crate::setup;

/// Measures the named figures, or all, and prints the table.
pub(crate) fn bench(names: &[OsString]) -> Result<ExitCode> {
    setup::all()?;
    setup::target(TARGET)?;
    // With the profile of what is handed out, as the libraries that it measures without the program.
    let own = [
        "run",
        "--quiet",
        "--profile",
        "dist",
        "--package",
        "zeph-bench",
        "--",
    ];
    succeed(cargo()?.args(own).args(names))?;
    Ok(ExitCode::SUCCESS)
}
