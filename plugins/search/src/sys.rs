//! Files: what the host lists and opens for this call; in native builds, what lies there.

use std::io;
use std::path::Path;

#[cfg_attr(target_family = "wasm", path = "sys/wasi.rs")]
#[cfg_attr(not(target_family = "wasm"), path = "sys/native.rs")]
mod platform;

pub use platform::{roots, walk, working_directory};

/// A file that this call may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Below what was walked, `/`-separated.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// Milliseconds since the Unix epoch.
    pub modified_ms: u64,
}

/// Most files of one walk; what comes after them is not searched.
pub const FILES_MAX: usize = 50_000;

/// Directories that hold what was made or fetched, whatever .gitignore says.
pub const SKIPPED: &[&str] = &[".git", ".zeph", "node_modules", "target"];

/// Reads a file through the guard; what is no UTF-8 is replaced. None: it is no text.
///
/// Errors: it may not be read, or is not there any more.
pub fn read(path: &Path) -> io::Result<Option<(Vec<u8>, String)>> {
    const HEAD: usize = 8_192;
    let bytes = std::fs::read(path)?;
    if memchr::memchr(0, &bytes[..bytes.len().min(HEAD)]).is_some() {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(Some((bytes, text)))
}
