//! The tables in `grammars/` are those of the published grammars, and trees made with them are those made with the originals.
//!
//! `ZEPH_BLESS=1` writes the tables anew, after a change of version.
#![expect(
    unsafe_code,
    clippy::unwrap_used,
    reason = "reads the C structs of the original grammars; a failure is a failed test"
)]

mod automaton;
mod original;
mod samples;
mod tables;

use std::path::{Path, PathBuf};

use original::ORIGINALS;

/// How hard packing tries.
const LEVEL: u8 = 10;

fn packed(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("grammars");
    folder.join(format!("{name}.packed"))
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "blessing is asked for by a variable"
)]
fn the_tables_are_those_of_the_published_grammars() {
    let is_blessing = std::env::var_os("ZEPH_BLESS").is_some();
    let sources = original::sources();
    for original in ORIGINALS {
        let made = tables::of(original, &sources);
        let path = packed(original.name);
        if is_blessing {
            let bytes = miniz_oxide::deflate::compress_to_vec(&made, LEVEL);
            std::fs::write(&path, bytes).unwrap();
        }
        let kept = std::fs::read(&path).unwrap_or_default();
        let kept = miniz_oxide::inflate::decompress_to_vec(&kept).unwrap_or_default();
        assert!(
            kept == made,
            "`{}` differs: run with ZEPH_BLESS=1",
            original.name
        );
    }
}
