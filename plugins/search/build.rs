//! Unpacks the tables of the grammars (`grammars/*.packed`), which the crate embeds.

use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=grammars");
    if let Err(message) = unpack() {
        println!("cargo::error={message}");
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "cargo speaks to build scripts through the environment"
)]
fn unpack() -> Result<(), String> {
    let out = std::env::var_os("OUT_DIR").ok_or("bug: cargo names a folder")?;
    let folder = std::fs::read_dir("grammars").map_err(|error| format!("grammars: {error}"))?;
    for file in folder {
        let path = file.map_err(|error| format!("grammars: {error}"))?.path();
        unpack_file(&path, &Path::new(&out).join(unpacked_name(&path)))
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

fn unpacked_name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default();
    Path::new(name).with_extension("tables")
}

fn unpack_file(from: &Path, to: &Path) -> Result<(), String> {
    let packed = std::fs::read(from).map_err(|error| error.to_string())?;
    let bytes = miniz_oxide::inflate::decompress_to_vec(&packed)
        .map_err(|error| format!("damaged: {error}"))?;
    std::fs::write(to, bytes).map_err(|error| error.to_string())
}
