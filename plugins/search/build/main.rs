//! Writes the tables of the grammars (`src/grammar.rs`) out of the published ones, which are compiled for the machine that builds this.
#![expect(
    unsafe_code,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "reads the C structs of the grammars; a form that is not known has to stop the build, which cargo is told on standard output"
)]

mod automaton;
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the crate uses and shows all of it"
)]
#[path = "../src/grammar/format.rs"]
mod format;
mod original;
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the crate uses and shows all of it"
)]
#[path = "../src/grammar/raw.rs"]
mod raw;
mod tables;

use std::path::Path;

use original::ORIGINALS;

fn main() {
    for source in ["build", "src/grammar/format.rs", "src/grammar/raw.rs"] {
        println!("cargo::rerun-if-changed={source}");
    }
    if let Err(message) = write() {
        println!("cargo::error={message}");
    }
}

fn write() -> Result<(), String> {
    let out = variable("OUT_DIR")?;
    let sources = original::sources(&variable("CARGO")?, &variable("HOST")?)?;
    for original in ORIGINALS {
        let path = Path::new(&out).join(format!("{}.tables", original.name));
        let tables = tables::of(original.raw(), &original.text(&sources)?);
        std::fs::write(&path, tables).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "cargo speaks to build scripts through the environment"
)]
fn variable(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|_| format!("bug: cargo does not set `{name}`"))
}
