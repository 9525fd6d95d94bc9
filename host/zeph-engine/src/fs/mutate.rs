//! Changes to names: make and remove directories, remove files, make and read links. Renaming has a file of its own.
//!
//! Each works on a pair of directory handle and name. The handle is what was checked, and a link in place of the name is
//! never followed, so there is no path left that could be bent between check and change.

use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;
use zeph_core::capability::FsRights;
use zeph_core::obeyed;

use super::FsCtx;
use super::drafts::names_draft;
use super::error::{Code, FsOutcome};
use super::globs::normalize;
use super::handle::DirHandle;
use super::obeyed::{NameUse, in_packages, refused};
use super::path::{GuestPath, leaves, passes_through};
use super::policy::FsPolicy;
use super::read_log::HeldDirectories;
use super::refusal::{CREATE, DELETE, NONE, WRITE};
use super::resolve::ResolvedName;
use super::sys::Meta;
use super::touched::Told;
use super::uses::FileUses;

/// Longest text of a symbolic link, as on Linux.
const LINK_BYTES_MAX: usize = 4095;

impl FsCtx {
    /// Makes a directory, which needs the right to create.
    pub(super) fn make_directory(&mut self, dir: &DirHandle, path: &str) -> FsOutcome<()> {
        let policy = Arc::clone(&self.policy);
        let path = GuestPath::parse(path)?;
        if !path.split().names_entry() {
            return Err(Code::Exist.into());
        }
        let entry = policy.entry(dir.asking(CREATE), path)?;
        may_create(&policy, &entry)?;
        let name = entry.real_name(&policy)?;
        self.may_obey(&policy, (entry.root, &name), NameUse::Make)?;
        rustix::fs::mkdirat(entry.dir(), entry.leaf, Mode::from_raw_mode(0o777))?;
        self.created.note_at(entry.dir(), entry.leaf);
        self.use_entry(&policy, &entry, true, FileUses::CREATE);
        Ok(())
    }

    /// Removes an empty directory, which needs the right to delete, or to have made it.
    ///
    /// Errors: not-empty; not-permitted, when it holds something hidden as well, so that nobody removes the rest in vain.
    pub(super) fn remove_directory(&mut self, dir: &DirHandle, path: &str) -> FsOutcome<()> {
        let policy = Arc::clone(&self.policy);
        let entry = policy.entry(dir.asking(DELETE), GuestPath::parse(path)?)?;
        let meta = entry.meta()?;
        if !meta.is_dir() {
            return Err(Code::NotDirectory.into());
        }
        self.may_remove(&policy, &entry, &meta)?;
        self.may_remove_obeyed(&policy, &entry, &meta)?;
        let own = self.created.has_at(entry.dir(), entry.leaf, &meta);
        match rustix::fs::unlinkat(entry.dir(), entry.leaf, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST) if !own && self.keeps(&policy, &entry)? => {
                return Err(Code::NotPermitted.into());
            }
            removed => removed?,
        }
        self.created.forget(meta.id);
        self.use_removed(&policy, &entry, (&meta, own));
        Ok(())
    }

    /// Whether a directory is known to hold something hidden, which stays where it is.
    fn keeps(&self, policy: &FsPolicy, entry: &ResolvedName<'_>) -> FsOutcome<bool> {
        if policy.patterns().is_empty() {
            return Ok(false);
        }
        let name = entry.real_name(policy)?;
        Ok(self.holds_hidden(policy, entry, &[&name])? == Some(true))
    }

    /// Removes a name of anything but a directory, which needs the right to delete, or to have made it.
    pub(super) fn unlink(&mut self, dir: &DirHandle, path: &str) -> FsOutcome<()> {
        let policy = Arc::clone(&self.policy);
        let entry = policy.entry(dir.asking(DELETE), GuestPath::parse(path)?)?;
        let meta = entry.meta()?;
        if meta.is_dir() {
            return Err(Code::IsDirectory.into());
        }
        self.may_remove(&policy, &entry, &meta)?;
        self.may_remove_obeyed(&policy, &entry, &meta)?;
        let own = self.created.has_at(entry.dir(), entry.leaf, &meta);
        self.remove_as_read(&policy, &entry)?;
        self.forget_gone(&meta);
        self.use_removed(&policy, &entry, (&meta, own));
        Ok(())
    }

    /// Forgets an object, described by `meta`, that has just lost a name, if it was the last one: its number may be another file's now.
    pub(super) fn forget_gone(&mut self, meta: &Meta) {
        if meta.links <= 1 || meta.is_dir() {
            self.created.forget(meta.id);
            self.seen.forget_object(meta.id);
        }
    }

    /// Whether the entry, described by `meta`, may be taken away: by right, or because the call made it.
    pub(super) fn may_remove(
        &self,
        policy: &FsPolicy,
        entry: &ResolvedName<'_>,
        meta: &Meta,
    ) -> FsOutcome<()> {
        let is_root = meta.is_dir()
            && entry
                .name
                .as_ref()
                .is_some_and(|name| policy.holds_root(name));
        let own = || self.created.has_at(entry.dir(), entry.leaf, meta);
        if is_root {
            return Err(Code::NotPermitted.into());
        }
        if self.has_lost_drafts() {
            self.may_fill(&entry.real_name(policy)?)?;
        }
        if !(policy.rights(entry.root).delete || own()) {
            return Err(entry.refused(policy, DELETE));
        }
        Ok(())
    }

    /// Whether the entry may be removed although programs obey it: the call created it, or it is part of a package directory or a draft.
    fn may_remove_obeyed(
        &self,
        policy: &FsPolicy,
        entry: &ResolvedName<'_>,
        meta: &Meta,
    ) -> FsOutcome<()> {
        let name = entry.real_name(policy)?;
        let root = Path::new(&policy.root(entry.root).path);
        let below = name.strip_prefix(root).unwrap_or(&name);
        let is_own = || self.created.has_at(entry.dir(), entry.leaf, meta);
        if in_packages(root, &name) || self.is_in_draft(root, &name) || is_own() {
            return Ok(());
        }
        // By its own name alone: taking away what a name leads to runs nothing.
        match obeyed::name_of(below) {
            Some(found) if !policy.leave().covers(&name, found) => Err(refused(&name, found)),
            _ => Ok(()),
        }
    }

    /// Takes a name away that is not a directory's, when it still stands for what the call read there.
    fn remove_as_read(&mut self, policy: &FsPolicy, entry: &ResolvedName<'_>) -> FsOutcome<()> {
        // Also for a call that read nothing: others compare and change under it.
        let _held = HeldDirectories::take(entry.dir(), &self.stop)?;
        if self.seen.is_empty() {
            return Ok(rustix::fs::unlinkat(
                entry.dir(),
                entry.leaf,
                AtFlags::empty(),
            )?);
        }
        self.is_as_read(policy, entry, Some(&entry.meta()?))?;
        let name = entry.real_name(policy)?;
        rustix::fs::unlinkat(entry.dir(), entry.leaf, AtFlags::empty())?;
        self.seen.forget(&name);
        Ok(())
    }

    /// Makes a symbolic link, which needs the right to create.
    ///
    /// The target must be relative and stay in the root: programs outside the guard follow links too. Where patterns hide
    /// things, a target that passes through a directory (`a/../b`) is refused: it would tell whether `a` exists. So is one that passes
    /// through a draft.
    pub(super) fn symlink(&mut self, dir: &DirHandle, target: &str, path: &str) -> FsOutcome<()> {
        let policy = Arc::clone(&self.policy);
        if target.is_empty() {
            return Err(Code::NoEntry.into());
        }
        if target.contains('\0') {
            return Err(Code::Invalid.into());
        }
        if target.len() > LINK_BYTES_MAX {
            return Err(Code::NameTooLong.into());
        }
        let entry = policy.entry(dir.asking(CREATE), GuestPath::parse(path)?)?;
        may_create(&policy, &entry)?;
        let name = entry.real_name(&policy)?;
        self.may_lead(&policy, (entry.root, &name), NameUse::Make)?;
        if entry.slash {
            return Err(Code::NotDirectory.into());
        }
        let probes = passes_through(target) && !policy.patterns().is_empty();
        if probes || names_draft(target) || target_leaves(&policy, &entry, target)? {
            return Err(Code::NotPermitted.into());
        }
        rustix::fs::symlinkat(target, entry.dir(), entry.leaf)?;
        self.created.note_at(entry.dir(), entry.leaf);
        self.use_entry(&policy, &entry, false, FileUses::CREATE);
        Ok(())
    }

    /// The text of a symbolic link, which needs the right to read.
    ///
    /// Errors: not-permitted when the text names something outside every root, or hidden.
    pub(super) fn read_link(&self, dir: &DirHandle, path: &str) -> FsOutcome<String> {
        let read = self.link_text(dir, path);
        read.inspect_err(|fail| self.touched.refused(dir.asked(path, false), fail))
    }

    fn link_text(&self, dir: &DirHandle, path: &str) -> FsOutcome<String> {
        let policy = &*self.policy;
        let entry = policy.entry(dir.asking(FsRights::READ), GuestPath::parse(path)?)?;
        let meta = entry.meta()?;
        if !meta.is_link() {
            return Err(Code::Invalid.into());
        }
        if !policy.rights(entry.root).read && !self.created.has_at(entry.dir(), entry.leaf, &meta) {
            return Err(entry.refused(policy, FsRights::READ));
        }
        let found = (entry.root, &meta);
        self.touched
            .found(policy, dir.asked(path, false), found, Told::State);
        let target = rustix::fs::readlinkat(entry.dir(), entry.leaf, Vec::with_capacity(128))?;
        self.use_entry(policy, &entry, false, FileUses::LOOK);
        let target = target
            .into_string()
            .map_err(|_| Code::IllegalByteSequence)?;
        let named = normalize(&policy.kernel().name(&entry.dir())?.join(&target));
        if policy.governing(&named).is_none() || policy.hides(&named) {
            return Err(Code::NotPermitted.into());
        }
        Ok(target)
    }

    /// Gives a regular file a further name, which needs the right to create there, and to read and write the file where it
    /// is: rights belong to roots, and a name in another root must not open what the old one did not.
    pub(super) fn link(
        &mut self,
        from: &DirHandle,
        follow: bool,
        old: &str,
        to: &DirHandle,
        new: &str,
    ) -> FsOutcome<()> {
        let policy = Arc::clone(&self.policy);
        let needed = FsRights::READ.union(WRITE);
        let source = policy.reach(from.asking(needed), GuestPath::parse(old)?, follow)?;
        if !source.meta.is_file() {
            return Err(Code::NotPermitted.into());
        }
        let entry = policy.entry(to.asking(CREATE), GuestPath::parse(new)?)?;
        may_create(&policy, &entry)?;
        let own = self.created.has(&source.fd, &source.meta);
        let name = entry.real_name(&policy)?;
        self.may_obey(&policy, (entry.root, &name), NameUse::given_to_own(own))?;
        if entry.slash {
            return Err(Code::NotDirectory.into());
        }
        // A guest that may read and write a file under its old name gains nothing by a new one, wherever it stands.
        let missing = needed.without(policy.rights(source.root));
        if !own && missing != NONE {
            return Err(source.refused(&policy, missing));
        }
        if !own && source.meta.links > 1 {
            self.may_be_shown(&policy, &source)?;
        }
        policy.kernel().link(&source.fd, entry.dir(), entry.leaf)?;
        if !own {
            let name = || policy.kernel().name(&source.fd).ok();
            let uses = FileUses::READ.union(FileUses::WRITE);
            self.uses.note((source.root, false), uses, name);
        }
        self.use_entry(&policy, &entry, false, FileUses::CREATE);
        Ok(())
    }

    /// Writes down that the name of an entry was used.
    pub(super) fn use_entry(
        &self,
        policy: &FsPolicy,
        entry: &ResolvedName<'_>,
        is_directory: bool,
        uses: FileUses,
    ) {
        let object = (entry.root, is_directory);
        self.uses
            .note(object, uses, || entry.real_name(policy).ok());
    }

    /// Writes down that the name of an entry, described by `meta` and made by the call where it is its `own`, is gone.
    pub(super) fn use_removed(
        &self,
        policy: &FsPolicy,
        entry: &ResolvedName<'_>,
        (meta, own): (&Meta, bool),
    ) {
        match own {
            true => (self.uses).undo_creation(entry.root, || entry.real_name(policy).ok()),
            false => self.use_entry(policy, entry, meta.is_dir(), FileUses::DELETE),
        }
    }

    /// Writes down that nothing was found at `path`.
    pub(super) fn use_absent(&self, dir: &DirHandle, path: GuestPath<'_>) {
        let policy = &*self.policy;
        let name = || {
            let entry = policy.entry(dir.asking(FsRights::READ), path).ok()?;
            entry.real_name(policy).ok()
        };
        self.uses.note((dir.root, false), FileUses::LOOK, name);
    }
}

/// Whether the entry may be made.
pub(super) fn may_create(policy: &FsPolicy, entry: &ResolvedName<'_>) -> FsOutcome<()> {
    if entry.hidden {
        return Err(Code::NotPermitted.into());
    }
    if !policy.rights(entry.root).create {
        return Err(entry.refused(policy, CREATE));
    }
    Ok(())
}

/// The rights to read and write that an object would come under by moving from `from` to `to`.
pub(super) fn widening(from: FsRights, to: FsRights) -> FsRights {
    let content = FsRights::READ.union(WRITE);
    to.intersect(content).without(from)
}

/// Whether `target`, as text of a link at `entry`, leads lexically out of the root.
pub(super) fn target_leaves(
    policy: &FsPolicy,
    entry: &ResolvedName<'_>,
    target: &str,
) -> FsOutcome<bool> {
    if target.starts_with('/') {
        return Ok(true);
    }
    let dir = policy.kernel().name(&entry.dir())?;
    let below = dir
        .strip_prefix(Path::new(&policy.root(entry.root).path))
        .map_err(|_| Code::NotPermitted)?;
    Ok(leaves(target, below.components().count()))
}
