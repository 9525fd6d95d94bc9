//! Compiles the first-party plugins to components, and packs them.

mod guest;

use std::path::{Path, PathBuf};

use guest::Guest;
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

/// Where a crate that is handed out has them, packed: whoever installs it needs no compiler for them.
const PREBUILT: &str = "prebuilt";

fn main() {
    let made = match Path::new(PREBUILT).exists() {
        true => take(Path::new(PREBUILT)),
        false => guest::build(&GUESTS).and_then(|paths| pack(&paths)),
    };
    if let Err(message) = made {
        println!("cargo::error={message}");
    }
}

/// Gives rustc the components that `cargo xtask package` put there.
fn take(folder: &Path) -> Result<(), String> {
    println!("cargo::rerun-if-changed={PREBUILT}");
    let folder = std::path::absolute(folder).map_err(|error| error.to_string())?;
    for Guest { variable, .. } in &GUESTS {
        let packed = folder.join(format!("{variable}.packed"));
        let digest = folder.join(format!("{variable}.digest"));
        let digest = std::fs::read_to_string(&digest)
            .map_err(|error| format!("{}: {error}", digest.display()))?;
        give(variable, &packed, &digest);
    }
    Ok(())
}

fn give(variable: &str, packed: &Path, digest: &str) {
    println!("cargo::rustc-env={variable}_PACKED={}", packed.display());
    println!("cargo::rustc-env={variable}_DIGEST={digest}");
}

/// How hard packing tries for what is handed out, some ten seconds, and while zeph-host is worked on.
const LEVEL_RELEASE: i32 = 19;
const LEVEL_DEBUG: i32 = 3;

/// Packs each component, and gives rustc the place of that and the digest of the component, so that no start of the program has to make
/// it.
#[expect(
    clippy::disallowed_methods,
    reason = "cargo speaks to build scripts through the environment"
)]
fn pack(paths: &[PathBuf]) -> Result<(), String> {
    let folder = std::env::var_os("OUT_DIR").ok_or("bug: cargo names a folder")?;
    let level = match std::env::var("PROFILE").as_deref() {
        Ok("release") => LEVEL_RELEASE,
        _ => LEVEL_DEBUG,
    };
    for (Guest { variable, .. }, path) in GUESTS.iter().zip(paths) {
        let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let packed = Path::new(&folder).join(format!("{variable}.packed"));
        zstd::bulk::compress(&bytes, level)
            .and_then(|bytes| std::fs::write(&packed, bytes))
            .map_err(|error| format!("{}: {error}", packed.display()))?;
        let digest = Sha256::digest(bytes);
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        give(variable, &packed, &format!("sha256:{digest}"));
    }
    Ok(())
}
