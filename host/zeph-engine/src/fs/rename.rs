//! `rename-at`: the operation with the most ways to go wrong, since it takes away, makes and replaces at once.
//!
//! Decided on two pairs of directory handle and name. A rename must not open what was closed (move a file to a root with
//! more rights), must not move hidden things out from under their patterns, and must not need the right to delete for
//! the common "write a new file, put it in the place of the old one".
//!
//! A link that moves to another directory must still stay in the root there. Links inside a directory that moves are not
//! looked at: the guard never follows one out of a root, but a program outside the guard might.

use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::Mode;
use rustix::io::Errno;

use super::FsCtx;
use super::error::{Code, Fail, FsOutcome};
use super::handle::DirHandle;
use super::mutate::{may_create, target_leaves, widening};
use super::obeyed::NameUse;
use super::path::GuestPath;
use super::policy::FsPolicy;
use super::read_log::HeldDirectories;
use super::refusal::{CREATE, DELETE, NONE, WRITE};
use super::resolve::ResolvedName;
use super::sweep::{Sweep, SweepEnd};
use super::sys::{self, Meta};
use super::uses::FileUses;

/// Names looked at before a directory is moved, to see that nothing hidden moves along: some 60 ms. A larger directory is
/// not moved while patterns apply. Smaller in tests, which would otherwise spend seconds on making files.
const ENTRIES_MAX: usize = if cfg!(test) { 1_000 } else { 100_000 };

/// How often the target may appear or vanish while a rename is decided.
const RACES_MAX: usize = 8;

impl FsCtx {
    /// Renames `old` below `from` to `new` below `to`.
    pub(super) fn rename(
        &mut self,
        from: &DirHandle,
        old: &str,
        to: &DirHandle,
        new: &str,
    ) -> FsOutcome<()> {
        let policy = Arc::clone(&self.policy);
        let source = policy.entry(from.asking(DELETE), GuestPath::parse(old)?)?;
        let target = policy.entry(to.asking(CREATE), GuestPath::parse(new)?)?;
        let meta = source.meta()?;
        if target.slash && !meta.is_dir() {
            return Err(Code::NotDirectory.into());
        }
        may_create(&policy, &target)?;
        self.may_move(&policy, &source, &meta, &target)?;
        self.may_rename_obeyed(&policy, (&source, &meta), &target)?;
        let _held = HeldDirectories::take_both([source.dir(), target.dir()], &self.stop)?;
        let own = self.created.has_at(source.dir(), source.leaf, &meta);
        for _ in 0..RACES_MAX {
            let replaced = match Meta::at(target.dir(), target.leaf) {
                Err(Errno::NOENT) => None,
                found => Some(found?),
            };
            self.is_as_read(&policy, &target, replaced.as_ref())?;
            match self.put(&policy, (&source, &meta), (&target, replaced)) {
                Err(Fail::Code(Code::Exist)) if replaced.is_none() => {}
                Ok(()) => {
                    self.use_removed(&policy, &source, (&meta, own));
                    let uses = match replaced {
                        Some(_) => FileUses::CREATE.union(FileUses::WRITE),
                        None => FileUses::CREATE,
                    };
                    self.use_entry(&policy, &target, meta.is_dir(), uses);
                    if let Some(gone) = replaced.filter(|replaced| replaced.id != meta.id) {
                        self.forget_gone(&gone);
                    }
                    return self.forget_moved(&policy, [&source, &target]);
                }
                failed => return failed,
            }
        }
        Err(Code::Busy.into())
    }

    /// Whether neither name, nor anything in a directory that moves, is or becomes what programs obey.
    fn may_rename_obeyed(
        &mut self,
        policy: &FsPolicy,
        (source, meta): (&ResolvedName<'_>, &Meta),
        target: &ResolvedName<'_>,
    ) -> FsOutcome<()> {
        let (old, new) = (source.real_name(policy)?, target.real_name(policy)?);
        let (from, to) = ((source.root, &*old), (target.root, &*new));
        self.may_move_draft(policy, source.root, &old)?;
        self.may_move_draft(policy, target.root, &new)?;
        let is_own = self.created.has_at(source.dir(), source.leaf, meta);
        if !is_own {
            self.may_obey(policy, from, NameUse::Change)?;
        }
        let given = NameUse::given_to_own(is_own);
        match meta.is_link() {
            true => self.may_lead(policy, to, given)?,
            false => self.may_obey(policy, to, given)?,
        }
        match meta.is_dir() {
            true => self.may_move_obeyed(policy, from, to, is_own),
            false => Ok(()),
        }
    }

    /// What stood under the two names is another now, by the call's own doing.
    fn forget_moved(&mut self, policy: &FsPolicy, ends: [&ResolvedName<'_>; 2]) -> FsOutcome<()> {
        if self.seen.is_empty() {
            return Ok(());
        }
        for entry in ends {
            self.seen.forget(&entry.real_name(policy)?);
        }
        Ok(())
    }

    /// Whether the source may leave its place for that of the target, whatever stands there now.
    fn may_move(
        &self,
        policy: &FsPolicy,
        source: &ResolvedName<'_>,
        meta: &Meta,
        target: &ResolvedName<'_>,
    ) -> FsOutcome<()> {
        self.may_remove(policy, source, meta)?;
        // What the call made itself is not opened by moving it. A directory is: others' files may have been moved in.
        let own_leaf = !meta.is_dir() && self.created.has_at(source.dir(), source.leaf, meta);
        let widened = widening(policy.rights(source.root), policy.rights(target.root));
        if !own_leaf && widened != NONE {
            return Err(source.refused(policy, widened));
        }
        if meta.is_link() {
            let text = rustix::fs::readlinkat(source.dir(), source.leaf, Vec::with_capacity(128))?;
            let text = text.into_string().map_err(|_| Code::NotPermitted)?;
            let moves_dir = source.root != target.root || !same_dir(source, target);
            if moves_dir && !text.starts_with('/') && target_leaves(policy, target, &text)? {
                return Err(Code::NotPermitted.into());
            }
        }
        if meta.is_dir() {
            self.may_move_tree(policy, source, target)?;
        }
        Ok(())
    }

    /// Whether a directory holds nothing that must stay where it is: no root, and nothing hidden under its old name or
    /// under the new one.
    fn may_move_tree(
        &self,
        policy: &FsPolicy,
        source: &ResolvedName<'_>,
        target: &ResolvedName<'_>,
    ) -> FsOutcome<()> {
        let (Some(old), Some(new)) = (&source.name, &target.name) else {
            return Ok(());
        };
        if policy.holds_root(old) || policy.holds_root(new) {
            return Err(Code::NotPermitted.into());
        }
        if policy.patterns().is_empty() {
            return Ok(());
        }
        match self.holds_hidden(policy, source, &[old, new])? {
            Some(false) => Ok(()),
            Some(true) | None => Err(Code::NotPermitted.into()),
        }
    }

    /// Whether something in a directory is hidden, under any of the `names` that it has or is to get; nothing when that cannot be found
    /// out.
    pub(super) fn holds_hidden(
        &self,
        policy: &FsPolicy,
        directory: &ResolvedName<'_>,
        names: &[&PathBuf],
    ) -> FsOutcome<Option<bool>> {
        let top = policy
            .kernel()
            .open_beneath(directory.dir(), directory.leaf, false)?;
        let hides = |below: &Path| names.iter().any(|name| policy.hides(&name.join(below)));
        let mut sweep = Sweep::new(policy.kernel(), &self.stop, ENTRIES_MAX);
        let swept = sweep.run(top.as_fd(), |sight| match hides(sight.path) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })?;
        Ok(match swept {
            SweepEnd::Finished => Some(true),
            SweepEnd::All if sweep.saw_all() => Some(false),
            SweepEnd::All | SweepEnd::Incomplete => None,
        })
    }

    /// Renames onto what stands at the target, or onto nothing.
    fn put(
        &self,
        policy: &FsPolicy,
        (source, meta): (&ResolvedName<'_>, &Meta),
        (target, replaced): (&ResolvedName<'_>, Option<Meta>),
    ) -> FsOutcome<()> {
        let (from, to) = (source.dir(), target.dir());
        let Some(replaced) = replaced else {
            return Ok(sys::rename_free(from, source.leaf, to, target.leaf)?);
        };
        if replaced.id == meta.id {
            // Two names of one object: POSIX says nothing happens.
            return Ok(());
        }
        self.may_replace(policy, target, &replaced)?;
        if meta.is_file()
            && replaced.is_file()
            && self.created.has_at(source.dir(), source.leaf, meta)
        {
            keep_access(policy, source, meta, &replaced)?;
        }
        Ok(rustix::fs::renameat(from, source.leaf, to, target.leaf)?)
    }

    /// Replacing a file or link is a way to write it; replacing anything else removes it.
    fn may_replace(
        &self,
        policy: &FsPolicy,
        target: &ResolvedName<'_>,
        replaced: &Meta,
    ) -> FsOutcome<()> {
        let needed = if replaced.is_file() || replaced.is_link() {
            WRITE
        } else {
            DELETE
        };
        let missing = needed.without(policy.rights(target.root));
        if missing != NONE && !self.created.has_at(target.dir(), target.leaf, replaced) {
            return Err(target.refused(policy, missing));
        }
        Ok(())
    }
}

/// Gives the file that takes another one's place the other's permissions, owner and group, because guests have no way to
/// set them. Access control lists and extended attributes are not carried over.
///
/// Never gives more than the replaced file gave: when the group cannot be kept, the group's bits shrink to everyone's.
fn keep_access(
    policy: &FsPolicy,
    source: &ResolvedName<'_>,
    meta: &Meta,
    replaced: &Meta,
) -> Result<(), Errno> {
    let kernel = policy.kernel();
    let file = kernel.open_beneath(source.dir(), source.leaf, false)?;
    if Meta::of(&file)?.id != meta.id {
        return Err(Errno::BUSY);
    }
    let mut bits = replaced.mode.bits() & 0o777;
    if replaced.group != meta.group && kernel.set_owner(&file, None, Some(replaced.group)).is_err()
    {
        bits = bits & !0o070 | (bits & 0o007) << 3;
    }
    if replaced.owner != meta.owner {
        // Only the superuser may; anybody else stays the owner of what they wrote.
        kernel.set_owner(&file, Some(replaced.owner), None).ok();
    }
    kernel.set_mode(&file, Mode::from_raw_mode(bits))
}

fn same_dir(source: &ResolvedName<'_>, target: &ResolvedName<'_>) -> bool {
    let ids = (Meta::of(source.dir()), Meta::of(target.dir()));
    matches!(ids, (Ok(a), Ok(b)) if a.id == b.id)
}
