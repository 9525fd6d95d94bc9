//! The lines of the audit file that go with the jobs of one transaction: written at once, before its commit.

use std::sync::Arc;

use crate::audit::file::AuditFile;
use crate::error::StoreError;
use crate::store::Job;

/// How long a line waits for other hosts that write to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileWait {
    /// Until they have written.
    Long,
    /// Not at all.
    None,
}

/// Writes what is not written yet.
///
/// Errors: when a line cannot be written that its job needs, or when one would have to wait that may not; the transaction is not to be
/// committed then.
pub(crate) fn write(jobs: &mut [Box<dyn Job>], wait: FileWait) -> Result<(), StoreError> {
    let mut text = Vec::new();
    let mut file: Option<Arc<AuditFile>> = None;
    let mut is_needed = false;
    let mut at_ms = i64::MIN;
    for line in jobs.iter_mut().filter_map(|job| job.line()) {
        text.extend_from_slice(&line.bytes);
        is_needed |= line.is_needed;
        at_ms = at_ms.max(line.at_ms);
        file.get_or_insert_with(|| Arc::clone(&line.file));
    }
    let Some(file) = file else { return Ok(()) };
    match file.append_lines(&text, at_ms, wait) {
        Ok(()) => {}
        Err(error) if is_needed || wait == FileWait::None => return Err(error),
        Err(error) => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "the end of a call cannot be recorded in the audit file"
            );
            // The same disk may be that of the database: where it cannot take the end either, both are tried again.
            return Ok(());
        }
    }
    // A transaction that is lost after this writes none of them twice.
    for line in jobs.iter_mut().filter_map(|job| job.line()) {
        line.bytes.clear();
    }
    Ok(())
}
