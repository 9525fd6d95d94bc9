//! `cargo xtask dist` and `cargo xtask package`: builds and starts `zeph-dist`, which makes what is handed out.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;

use crate::program::{cargo, succeed};
use crate::setup;

/// What the program that is handed out is built for: it needs nothing of the machine but Linux.
pub(crate) const TARGET: &str = "x86_64-unknown-linux-musl";

/// Makes everything, or for `package` the crates only.
pub(crate) fn dist(command: &str, args: &[OsString]) -> Result<ExitCode> {
    setup::all()?;
    setup::target(TARGET)?;
    let own = ["run", "--quiet", "--locked", "--package", "zeph-dist", "--"];
    // Paths are those of the folder it was called in, which cargo leaves.
    let args = args.iter().map(|arg| match arg.to_str() {
        Some(option) if option.starts_with('-') => Ok(arg.clone()),
        _ => std::path::absolute(arg).map(OsString::from),
    });
    let args: Vec<OsString> = args.collect::<std::io::Result<_>>()?;
    succeed(cargo()?.args(own).arg(command).args(args))?;
    Ok(ExitCode::SUCCESS)
}
