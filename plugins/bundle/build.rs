//! Compiles the first-party plugins to components.

mod guest;

use std::path::PathBuf;

use guest::Guest;
use sha2::{Digest as _, Sha256};

const GUESTS: [Guest; 2] = [
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
];

fn main() {
    if let Err(message) = guest::build(&GUESTS).and_then(|paths| name(&paths)) {
        println!("cargo::error={message}");
    }
}

/// Gives rustc the digest of each component, so that no start of the program has to make it.
fn name(paths: &[PathBuf]) -> Result<(), String> {
    for (Guest { variable, .. }, path) in GUESTS.iter().zip(paths) {
        let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let digest = Sha256::digest(bytes);
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        println!("cargo::rustc-env={variable}_DIGEST=sha256:{digest}");
    }
    Ok(())
}
