//! A program by its bare name: looked for once, where the command's own search path leads.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::{JailError, Job};

/// The program of `job`, which will have `variables`.
///
/// Errors: `NoProgram`.
pub(super) fn program(
    job: &Job<'_>,
    variables: &BTreeMap<String, String>,
) -> Result<PathBuf, JailError> {
    if job.program.is_absolute() {
        return Ok(job.program.to_owned());
    }
    let path = variables.get("PATH").map_or("", String::as_str);
    let mut places = path
        .split(':')
        .map(|entry| Path::new(entry).join(job.program));
    let found = places.find(|place| place.is_absolute() && is_program(place));
    found.ok_or_else(|| JailError::NoProgram {
        name: job.program.to_owned(),
    })
}

/// Whether there is an executable file.
fn is_program(path: &Path) -> bool {
    let found = path.metadata();
    found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
