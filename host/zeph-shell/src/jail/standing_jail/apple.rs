//! Nothing of a jail takes long to make under Seatbelt, so none is made ahead.

use std::os::fd::{OwnedFd, RawFd};

use super::{Guard, Jail, JailError, Job};
use crate::spawn::Launch;

/// There is none.
#[derive(Debug)]
pub(crate) enum StandingJail {}

impl Jail {
    /// None.
    ///
    /// Errors: none.
    pub(crate) fn stand(
        &self,
        _: Vec<(OwnedFd, RawFd)>,
    ) -> Result<Option<(Launch, StandingJail)>, JailError> {
        Ok(None)
    }

    /// Cannot be called.
    pub(crate) fn enter(
        &self,
        standing: StandingJail,
        _: &Job<'_>,
    ) -> Result<Guard, Box<StandingJail>> {
        match standing {}
    }
}
