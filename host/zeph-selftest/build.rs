//! Compiles the guests of the self-test, so that the product carries components and no compiler of texts.
//!
//! A guest is the inside of one core module. Its head may say `;; with: clock poll` (parts of `wrap/` it imports) and
//! `;; pages: 16` (its memory at the start). Everything else is put around it: see `wrap/component.wat`.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// What a guest gets when it does not define it itself.
const DEFAULTS: [(&str, &str); 5] = [
    (
        "(func $call ",
        "(func $call (param i32) (result i32) (call $ok))",
    ),
    (
        "(export \"list\")",
        "(func (export \"list\") (result i32) (i32.const 1160))",
    ),
    ("(export \"realloc\")", "(export \"realloc\" (func $take))"),
    (
        "(export \"post_list\")",
        "(func (export \"post_list\") (param i32))",
    ),
    (
        "(export \"post_call\")",
        "(func (export \"post_call\") (param i32))",
    ),
];

fn main() {
    if let Err(error) = compile_guests(Path::new(".")) {
        println!("cargo::error=a guest of the self-test does not compile: {error}");
    }
}

/// Writes one component for each guest, and a table of them for `include!`.
#[expect(
    clippy::disallowed_methods,
    reason = "cargo speaks to build scripts through the environment"
)]
fn compile_guests(folder: &Path) -> Result<(), Box<dyn Error>> {
    for watched in ["build.rs", "guests", "wrap"] {
        println!("cargo::rerun-if-changed={}", folder.join(watched).display());
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let mut guests: Vec<PathBuf> = fs::read_dir(folder.join("guests"))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    guests.sort();
    let mut table = String::from("&[\n");
    for guest in guests {
        let name = guest.file_stem().and_then(|stem| stem.to_str());
        let name = name.ok_or("a guest has a strange name")?;
        let text = component(&folder.join("wrap"), &fs::read_to_string(&guest)?)
            .map_err(|error| format!("{name}: {error}"))?;
        let wasm = wat::parse_str(&text).map_err(|error| format!("{name}: {error}"))?;
        let path = out.join(name).with_extension("wasm");
        fs::write(&path, wasm)?;
        writeln!(table, "({name:?}, include_bytes!({path:?})),")?;
    }
    table.push(']');
    fs::write(out.join("guests.rs"), table)?;
    Ok(())
}

/// The text of the component around a guest.
fn component(wrap: &Path, guest: &str) -> Result<String, Box<dyn Error>> {
    let directive = |name: &str| {
        let start = format!(";; {name}:");
        let mut lines = guest.lines();
        lines
            .find_map(|line| line.strip_prefix(&start))
            .map(str::trim)
    };
    let (mut imports, mut with) = (String::new(), String::new());
    for part in directive("with").unwrap_or_default().split_whitespace() {
        let file = wrap.join(part).with_extension("wat");
        imports += &fs::read_to_string(&file).map_err(|error| format!("{part}: {error}"))?;
        writeln!(with, "    (with \"{part}\" (instance $core-{part}))")?;
    }
    let missing = DEFAULTS.iter().filter(|(mark, _)| !guest.contains(mark));
    let defaults: Vec<&str> = missing.map(|(_, text)| *text).collect();
    Ok(fs::read_to_string(wrap.join("component.wat"))?
        .replace("PAGES", directive("pages").unwrap_or("2"))
        .replace("IMPORTS", &imports)
        .replace("GUEST", guest)
        .replace("DEFAULTS", &defaults.join("\n"))
        .replace("WITH", &with))
}
