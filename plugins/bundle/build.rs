//! Compiles the first-party plugins to components, and packs them.

mod guest;

use std::path::{Path, PathBuf};

use guest::Guest;
use miniz_oxide::deflate::compress_to_vec;
use sha2::{Digest as _, Sha256};

const GUESTS: [Guest; 5] = [
    Guest {
        package: "zeph-plugin-diagnostics",
        folders: &["plugins/diagnostics"],
        variable: "GUEST_DIAGNOSTICS",
    },
    Guest {
        package: "zeph-plugin-file",
        folders: &["plugins/file"],
        variable: "GUEST_FILE",
    },
    Guest {
        package: "zeph-filters-standard",
        folders: &["filters/standard", "filters/strategies"],
        variable: "GUEST_STANDARD",
    },
    Guest {
        package: "zeph-plugin-scrape",
        folders: &["plugins/scrape"],
        variable: "GUEST_SCRAPE",
    },
    Guest {
        package: "zeph-plugin-search",
        folders: &["plugins/search"],
        variable: "GUEST_SEARCH",
    },
];

fn main() {
    if let Err(message) = guest::build(&GUESTS).and_then(|paths| pack(&paths)) {
        println!("cargo::error={message}");
    }
}

/// How hard packing tries; more saves nothing that counts.
const LEVEL: u8 = 9;

/// Packs each component, and gives rustc the place of that and the digest of the component, so that no start of the program has to make
/// it.
#[expect(
    clippy::disallowed_methods,
    reason = "cargo speaks to build scripts through the environment"
)]
fn pack(paths: &[PathBuf]) -> Result<(), String> {
    let folder = std::env::var_os("OUT_DIR").ok_or("bug: cargo names a folder")?;
    for (Guest { variable, .. }, path) in GUESTS.iter().zip(paths) {
        let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let packed = Path::new(&folder).join(format!("{variable}.packed"));
        std::fs::write(&packed, compress_to_vec(&bytes, LEVEL))
            .map_err(|error| format!("{}: {error}", packed.display()))?;
        println!("cargo::rustc-env={variable}_PACKED={}", packed.display());
        let digest = Sha256::digest(bytes);
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        println!("cargo::rustc-env={variable}_DIGEST=sha256:{digest}");
    }
    Ok(())
}
