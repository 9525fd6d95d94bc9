//! Where the system does not tell who opens a file.

use zeph_core::execution::PrivateFile;

use super::PrivateFiles;

/// Nothing.
#[derive(Debug)]
pub(in crate::jail) struct OpenWatch;

impl OpenWatch {
    /// None: nothing is known of what a run opens.
    pub(in crate::jail) fn begin(_: &PrivateFiles) -> Option<Self> {
        None
    }

    /// None.
    pub(in crate::jail) fn opened(&self) -> Vec<PrivateFile> {
        Vec::new()
    }
}
