//! `zeph:plugin/files`: what `wasi:filesystem` 0.2 has no words for.

use std::sync::Arc;

use rustix::fs::Mode;

use super::FsCtxView;
use super::error::{Code, Fail};
use super::walk::{Halt, locate};
use crate::bindings::zeph::plugin::files::{CopyModeError, Host};
use crate::bindings::zeph::plugin::walk::WalkError;

/// Read, write and execute for owner, group and others. Set-user-id and its like are never given.
const PERMISSION_BITS: u32 = 0o777;

impl Host for FsCtxView<'_> {
    fn copy_mode(
        &mut self,
        source: String,
        target: String,
    ) -> wasmtime::Result<Result<(), CopyModeError>> {
        match copy_mode(self, &source, &target) {
            Ok(()) => Ok(Ok(())),
            Err(Halt::Told(WalkError::NotFound)) => Ok(Err(CopyModeError::NotFound)),
            Err(Halt::Told(_)) => Ok(Err(CopyModeError::Denied)),
            Err(Halt::Trap(error)) => Err(error),
        }
    }
}

/// Only a file made in this call is changed: a mode is no content, and no right of a root speaks of modes.
fn copy_mode(view: &FsCtxView<'_>, source: &str, target: &str) -> Result<(), Halt> {
    let policy = Arc::clone(&view.ctx.policy);
    let source = locate(&policy, source)?;
    if !policy.rights(source.root).read {
        return Err(Fail::from(Code::NotPermitted).into());
    }
    let target = locate(&policy, target)?;
    if !target.meta.is_file() || !view.ctx.created.has(&target.fd, &target.meta) {
        return Err(Fail::from(Code::NotPermitted).into());
    }
    let bits = source.meta.mode.bits() & PERMISSION_BITS;
    let set = policy
        .kernel()
        .set_mode(&target.fd, Mode::from_raw_mode(bits));
    Ok(set.map_err(Fail::from)?)
}
