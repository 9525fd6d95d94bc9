//! `SHA256SUMS`, for `sha256sum --check`.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

use crate::release;

/// Its name.
pub(crate) const FILE: &str = "SHA256SUMS";

/// Writes the digests of all files in the folder, by their names.
pub(crate) fn write(folder: &Path) -> Result<()> {
    let mut names: Vec<String> = std::fs::read_dir(folder)?
        .filter_map(|entry| entry.ok())
        .filter(|entry| entry.path().is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name != FILE)
        .collect();
    names.sort();
    let mut sums = String::new();
    for name in names {
        let path = folder.join(&name);
        let bytes =
            std::fs::read(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
        let digest = Sha256::digest(bytes);
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(sums, "{digest}  {name}")?;
    }
    release::write(folder, FILE, sums.as_bytes())
}
