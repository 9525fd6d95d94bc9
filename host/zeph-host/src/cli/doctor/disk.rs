//! Whether there is free space on the disks where the host keeps its files.
//!
//! Tried by writing: what a file system says of its free blocks knows nothing of quotas, inodes and what is kept for root.

use std::io::{self, Write as _};
use std::path::Path;

use super::{CheckState, DoctorCheck};

/// Free bytes below which a disk counts as nearly full: a day of stored outputs takes as much.
const ROOM_MIN: u64 = 64 * 1024 * 1024;

/// Bytes that are written to an unnamed file.
const TRIAL_BYTES: usize = 64 * 1024;

/// `check` of a place that can be written, with what is wrong with the disk of `folder`, which exists.
pub(super) fn with_room(check: DoctorCheck, folder: &Path, key: &str) -> DoctorCheck {
    if check.state == CheckState::Missing {
        return check;
    }
    let how = format!("free some space, or set `{key}` to a place on another disk");
    match free_bytes(folder) {
        Err(error) => DoctorCheck {
            state: CheckState::Missing,
            detail: format!("{}: no room on the disk: {error}", check.detail),
            ..check
        }
        .how_to_get(how),
        Ok(Some(n_bytes)) if n_bytes < ROOM_MIN => DoctorCheck {
            state: CheckState::Degraded,
            detail: format!(
                "{}: only {} MiB are free on the disk",
                check.detail,
                n_bytes / 1024 / 1024
            ),
            ..check
        }
        .how_to_get(how),
        Ok(_) => check,
    }
}

/// Whether the error says that nothing more fits.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// The free bytes of the disk of `folder`, where they can be found out.
///
/// Errors: nothing more can be written there.
fn free_bytes(folder: &Path) -> io::Result<Option<u64>> {
    let tried =
        tempfile::tempfile_in(folder).and_then(|mut file| file.write_all(&[0; TRIAL_BYTES]));
    if let Err(error) = tried
        && is_full(&error)
    {
        return Err(error);
    }
    let about = rustix::fs::statvfs(folder).ok();
    // A file system that has no blocks does not count them.
    let about = about.filter(|about| about.f_blocks > 0);
    Ok(about.map(|about| about.f_bavail.saturating_mul(about.f_frsize)))
}
