//! The commands of the repository, reached as `cargo xtask`.
//!
//! Each command sets the machine up first (see `setup`), so a clone with a Rust toolchain needs no other step.
//! This program only starts others: checks are tests, never xtasks. It depends on next to nothing, so that `cargo xtask run` compiles
//! the product at once; measuring is `zeph-bench`.

mod bench;
mod ci;
mod dist;
mod program;
mod run;
mod setup;
mod test;

use std::io::Write as _;
use std::process::ExitCode;

const HELP: &str = "\
The commands of the zeph-host repository.

Usage: cargo xtask COMMAND [ARGS…]

Commands:
  run [--release] [ARGS…]  Build zeph-host and start `zeph-host run ARGS…` in the current directory
  test [ARGS…]             Run every test; ARGS go to the test runner and leave the doc tests out
  bench [NAME…]            Measure the published figures, of the program that `dist` packs; NAMEs pick some of them,
                           `--program FILE` another program
  dist [FOLDER]            Build the release: a static program, packages for Debian, npm and PyPI, a container image,
                           crates, bills of materials, checksums. --check builds it twice and compares;
                           --program FILE packages an existing program
  package [FOLDER]         Build the crates only, with the compiled components inside
  ci                       Format check, licenses, clippy, a check for macOS and every test: what .ci/run calls

Every command first adds the wasm32-wasip2 target when it is missing, and installs bubblewrap when apt and root
rights allow it.

Examples:
  cargo xtask run
      An interactive prompt; the tools may touch the current directory.
  printf '{\"id\":1,\"tool\":\"grep\",\"params\":{\"pattern\":\"fn main\"}}\\n' | cargo xtask run
      One call in, one result out.
  cargo xtask run --help
      What `zeph-host run` can do.
  cargo xtask test -E 'package(zeph-core)'
      The tests of one crate, when cargo-nextest is installed.
";

fn main() -> ExitCode {
    match command() {
        Ok(code) => code,
        Err(error) => {
            complain(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn command() -> anyhow::Result<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    let name = args.next().unwrap_or_default();
    let rest: Vec<_> = args.collect();
    match name.to_str() {
        Some("run") => run::run(&rest),
        Some("test") => test::test(&rest),
        Some("bench") => bench::bench(&rest),
        Some(command @ ("dist" | "package")) => dist::dist(command, &rest),
        Some("ci") => ci::ci(),
        Some("help" | "--help" | "-h") => {
            std::io::stdout().write_all(HELP.as_bytes())?;
            Ok(ExitCode::SUCCESS)
        }
        Some("") => {
            complain(HELP.trim_end());
            Ok(ExitCode::from(2))
        }
        _ => {
            complain(&format!(
                "error: no command `{}`\n\nhint: `cargo xtask --help` lists them",
                name.display()
            ));
            Ok(ExitCode::from(2))
        }
    }
}

/// Writes one message to standard error; standard output belongs to the program that was asked for.
fn complain(message: &str) {
    // Nobody is left to tell when standard error is closed.
    drop(writeln!(std::io::stderr(), "{message}"));
}
