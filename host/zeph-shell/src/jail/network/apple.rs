//! Commands under Seatbelt have no network of their own that a session could share.

use super::Jail;
use crate::spawn::Launch;

/// There is none.
#[derive(Debug)]
pub(crate) enum SessionNetwork {}

impl Jail {
    /// None: the commands share the machine's loopback, or have no network.
    ///
    /// Errors: none.
    pub(crate) fn make_network(&self) -> Result<Option<SessionNetwork>, String> {
        Ok(None)
    }
}

impl SessionNetwork {
    /// Cannot be called.
    pub(crate) fn enter(&self, _: &mut Launch) -> Result<(), String> {
        match *self {}
    }
}
