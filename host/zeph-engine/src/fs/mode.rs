//! `zeph:plugin/files`: what `wasi:filesystem` 0.2 has no words for.

use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use zeph_core::capability::FsRights;

use super::FsCtxView;
use super::drafts::has_temporary_name;
use super::error::{Code, Fail, FsOutcome};
use super::handle::DirHandle;
use super::mutate::may_create;
use super::obeyed::NameUse;
use super::path::GuestPath;
use super::refusal::CREATE;
use super::sys;
use super::uses::FileUses;
use super::walk::{Halt, locate, place};
use crate::bindings::zeph::plugin::files::{CopyModeError, Host, MakePrivateError};
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

    fn make_private(
        &mut self,
        path: String,
        directory: bool,
    ) -> wasmtime::Result<Result<(), MakePrivateError>> {
        let made = make_private(self, &path, directory);
        let code = match self.ctx.tell(made) {
            Ok(()) => return Ok(Ok(())),
            Err(error) => error.downcast()?,
        };
        Ok(Err(match code {
            Code::Exist => MakePrivateError::Exists,
            Code::NoEntry | Code::NotDirectory => MakePrivateError::NotFound,
            Code::NotPermitted | Code::Access | Code::ReadOnly => MakePrivateError::Denied,
            _ => MakePrivateError::Failed,
        }))
    }
}

/// Bits of a directory and of a file that are the owner's alone.
const PRIVATE: [Mode; 2] = [Mode::RWXU, Mode::RUSR.union(Mode::WUSR)];

fn make_private(view: &mut FsCtxView<'_>, path: &str, directory: bool) -> FsOutcome<()> {
    view.ctx.touched.spoil();
    let policy = Arc::clone(&view.ctx.policy);
    let (root, below) = place(&policy, path).ok_or(Code::NotPermitted)?;
    let start = DirHandle::top(root);
    let entry = policy.entry(start.asking(CREATE), GuestPath::parse(&below)?)?;
    may_create(&policy, &entry)?;
    let name = entry.real_name(&policy)?;
    let is_draft = directory && has_temporary_name(&name);
    let place = (entry.root, &*name);
    match is_draft {
        // What leads there would have it obeyed before it gets its name.
        true => view.ctx.may_lead(&policy, place, NameUse::Make)?,
        false => view.ctx.may_obey(&policy, place, NameUse::Make)?,
    }
    let made = match directory {
        true => rustix::fs::mkdirat(entry.dir(), entry.leaf, PRIVATE[0]),
        false => sys::create_file(entry.dir(), entry.leaf, OFlags::WRONLY, PRIVATE[1]).map(drop),
    };
    made.map_err(|errno: Errno| Fail::from(errno))?;
    match is_draft {
        true => view.ctx.begin_draft(&entry, name),
        false => view.ctx.created.note_at(entry.dir(), entry.leaf),
    }
    view.ctx
        .use_entry(&policy, &entry, directory, FileUses::CREATE);
    Ok(())
}

/// Only what was made in this call is changed: the rights of a root do not cover modes.
fn copy_mode(view: &FsCtxView<'_>, source: &str, target: &str) -> Result<(), Halt> {
    view.ctx.touched.spoil();
    let policy = Arc::clone(&view.ctx.policy);
    let source = locate(&policy, source, FsRights::READ)?;
    if !policy.rights(source.root).read {
        return Err(source.refused(&policy, FsRights::READ).into());
    }
    let target = locate(&policy, target, CREATE)?;
    let is_plain = target.meta.is_file() || target.meta.is_dir();
    if !is_plain || !view.ctx.created.has(&target.fd, &target.meta) {
        return Err(Fail::from(Code::NotPermitted).into());
    }
    let bits = source.meta.mode.bits() & PERMISSION_BITS;
    let set = policy
        .kernel()
        .set_mode(&target.fd, Mode::from_raw_mode(bits));
    Ok(set.map_err(Fail::from)?)
}
