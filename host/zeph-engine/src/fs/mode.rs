//! `zeph:plugin/files`: what `wasi:filesystem` 0.2 has no words for.

use std::sync::Arc;

use rustix::fs::Mode;
use zeph_core::capability::FsRights;

use super::FsCtxView;
use super::error::{Code, Fail};
use super::refusal::CREATE;
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
            Err(halt) => Ok(Err(match self.ctx.tell_halted(halt)? {
                WalkError::NotFound => CopyModeError::NotFound,
                _ => CopyModeError::Denied,
            })),
        }
    }
}

/// Only a file made in this call is changed: a mode is no content, and no right of a root speaks of modes.
fn copy_mode(view: &FsCtxView<'_>, source: &str, target: &str) -> Result<(), Halt> {
    let policy = Arc::clone(&view.ctx.policy);
    let source = locate(&policy, source, FsRights::READ)?;
    if !policy.rights(source.root).read {
        return Err(source.refused(&policy, FsRights::READ).into());
    }
    let target = locate(&policy, target, CREATE)?;
    if !target.meta.is_file() || !view.ctx.created.has(&target.fd, &target.meta) {
        return Err(Fail::from(Code::NotPermitted).into());
    }
    let bits = source.meta.mode.bits() & PERMISSION_BITS;
    let set = policy
        .kernel()
        .set_mode(&target.fd, Mode::from_raw_mode(bits));
    Ok(set.map_err(Fail::from)?)
}
