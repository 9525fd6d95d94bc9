//! `open-at`.
//!
//! An existing object is opened in two steps: as a handle that wakes nothing, and after all checks anew through that handle
//! with the access wanted. So a pipe, device or socket is refused without ever being opened, and a file is truncated
//! only when everything else has been decided. An absent file is made with "must not exist" in the directory whose
//! handle was checked.

use std::sync::Arc;

use rustix::fs::{FileType, OFlags};
use wasmtime_wasi::p2::bindings::sync::filesystem::types::{DescriptorFlags, OpenFlags};
use zeph_core::capability::FsRights;

use super::FsCtx;
use super::error::{Code, Fail, FsOutcome};
use super::handle::{DirHandle, FileHandle, Handle};
use super::mutate::may_create;
use super::obeyed::NameUse;
use super::path::GuestPath;
use super::policy::FsPolicy;
use super::refusal::{CREATE, NONE};
use super::resolve::ResolvedObject;
use super::sys;
use super::uses::FileUses;

/// How often "not there" and "already there" may alternate before the open gives up.
const RACES_MAX: usize = 64;

/// What a guest asks of an open, checked for sense.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenRequest {
    flags: DescriptorFlags,
    oflags: OpenFlags,
    pub(super) follow: bool,
}

impl OpenRequest {
    /// Errors: invalid for a directory that is to be created or truncated, and for truncating without writing: what cuts
    /// must hold a descriptor that could have written.
    pub(super) fn new(
        follow: bool,
        oflags: OpenFlags,
        flags: DescriptorFlags,
    ) -> Result<Self, Code> {
        let makes = OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::TRUNCATE;
        if oflags.contains(OpenFlags::DIRECTORY) && oflags.intersects(makes) {
            return Err(Code::Invalid);
        }
        if oflags.contains(OpenFlags::TRUNCATE) && !flags.contains(DescriptorFlags::WRITE) {
            return Err(Code::Invalid);
        }
        // A file that is opened for nothing is opened for reading, as in POSIX.
        let write = flags.contains(DescriptorFlags::WRITE);
        let flags = if write {
            flags
        } else {
            flags | DescriptorFlags::READ
        };
        Ok(Self {
            flags: flags & !DescriptorFlags::MUTATE_DIRECTORY,
            oflags,
            follow,
        })
    }

    fn has(self, flag: OpenFlags) -> bool {
        self.oflags.contains(flag)
    }

    fn reads(self) -> bool {
        self.flags.contains(DescriptorFlags::READ)
    }

    fn writes(self) -> bool {
        self.flags.contains(DescriptorFlags::WRITE)
    }

    /// The rights without which an existing file is not opened so.
    fn rights_on_file(self) -> FsRights {
        FsRights {
            read: self.reads(),
            write: self.writes(),
            ..NONE
        }
    }

    /// The rights it takes when nothing may be known of what stands there.
    fn rights(self) -> FsRights {
        let on_file = self.rights_on_file();
        match (self.has(OpenFlags::CREATE), self.has(OpenFlags::EXCLUSIVE)) {
            (false, _) => on_file,
            (true, false) => on_file.union(CREATE),
            // What a guest makes it may read and write.
            (true, true) => CREATE,
        }
    }

    /// The kernel's flags for the access wanted.
    fn access(self) -> OFlags {
        let mode = match (self.reads(), self.writes()) {
            (true, true) => OFlags::RDWR,
            (false, true) => OFlags::WRONLY,
            (_, false) => OFlags::RDONLY,
        };
        let integrity =
            DescriptorFlags::FILE_INTEGRITY_SYNC | DescriptorFlags::REQUESTED_WRITE_SYNC;
        if self.flags.intersects(integrity) {
            mode | OFlags::SYNC
        } else if self.flags.contains(DescriptorFlags::DATA_INTEGRITY_SYNC) {
            mode | OFlags::DSYNC
        } else {
            mode
        }
    }
}

impl FsCtx {
    /// Opens or makes what `path` names from `dir`.
    pub(super) fn open(
        &mut self,
        dir: &DirHandle,
        path: &str,
        request: OpenRequest,
    ) -> FsOutcome<Handle> {
        let policy = Arc::clone(&self.policy);
        let path = GuestPath::parse(path)?;
        if !request.has(OpenFlags::CREATE) {
            for _ in 0..RACES_MAX {
                let found = policy.reach(dir.asking(request.rights()), path, request.follow);
                let asked = dir.asked(path.as_str(), request.follow);
                let asked = self.touched.reached(&policy, asked, &found);
                if matches!(&found, Err(fail) if fail.is_absent()) {
                    self.note_absent(dir, path);
                    self.use_absent(dir, path);
                }
                if let Some(opened) = self.open_found(&policy, (found?, asked), request)? {
                    return Ok(opened);
                }
            }
            return Err(Code::Busy.into());
        }
        self.touched.spoil();
        for _ in 0..RACES_MAX {
            if !request.has(OpenFlags::EXCLUSIVE) {
                match policy.reach(dir.asking(request.rights()), path, request.follow) {
                    Err(fail) if fail.is_absent() => {}
                    found => match self.open_found(&policy, (found?, None), request)? {
                        Some(opened) => return Ok(opened),
                        None => continue,
                    },
                }
            }
            match self.create(&policy, dir, path, request) {
                Err(Fail::Code(Code::Exist)) if !request.has(OpenFlags::EXCLUSIVE) => {}
                done => return done,
            }
        }
        // A link that leads nowhere, or to something hidden: neither there nor free.
        Err(Code::NotPermitted.into())
    }

    /// None when the file lost its name meanwhile.
    fn open_found(
        &mut self,
        policy: &FsPolicy,
        (found, asked): (ResolvedObject, Option<u32>),
        request: OpenRequest,
    ) -> FsOutcome<Option<Handle>> {
        match found.meta.kind {
            FileType::Directory => self.open_directory((found, asked), request).map(Some),
            _ if request.has(OpenFlags::DIRECTORY) => Err(Code::NotDirectory.into()),
            FileType::RegularFile => self.open_file(policy, &found, request),
            FileType::Symlink => Err(Code::Loop.into()),
            _ => Err(Code::NotPermitted.into()),
        }
    }

    fn open_directory(
        &self,
        (found, asked): (ResolvedObject, Option<u32>),
        request: OpenRequest,
    ) -> FsOutcome<Handle> {
        if request.writes() || request.has(OpenFlags::CREATE) {
            return Err(Code::IsDirectory.into());
        }
        let held = self.allowance.hold(found.fd)?;
        Ok(Handle::Dir(DirHandle::below(held, found.root, asked)))
    }

    fn open_file(
        &mut self,
        policy: &FsPolicy,
        found: &ResolvedObject,
        request: OpenRequest,
    ) -> FsOutcome<Option<Handle>> {
        let own = self.created.has(&found.fd, &found.meta);
        let rights = policy.rights(found.root);
        let missing = request.rights_on_file().without(rights);
        if missing != NONE && !own {
            return Err(found.refused(policy, missing));
        }
        // A second name of the file may lie outside the root, where nothing may be changed. Replacing the file by
        // renaming a new one over it works, and leaves the other names alone.
        let shared = found.meta.links > 1 && !own;
        if request.writes() && shared {
            return Err(Code::NotPermitted.into());
        }
        if request.writes() && !own {
            let name = policy.kernel().name(&found.fd)?;
            self.may_obey(policy, (found.root, &name), NameUse::Change)?;
            self.is_file_as_read(policy, &name, &found.fd)?;
        }
        if request.reads() && shared {
            self.may_be_shown(policy, found)?;
        }
        let cut = if request.has(OpenFlags::TRUNCATE) {
            OFlags::TRUNC
        } else {
            OFlags::empty()
        };
        let fd = policy.kernel().reopen(&found.fd, request.access() | cut)?;
        match request.writes() {
            true => {
                self.touched.spoil();
                self.note_written(found.meta.id);
            }
            false if own => {}
            false => {
                if !self.note_read(policy, found.root, &found.fd, &fd)? {
                    return Ok(None);
                }
            }
        }
        if !own {
            let uses = FileUses {
                read: request.reads(),
                write: request.writes(),
                ..FileUses::default()
            };
            let name = || {
                let name = found.name.clone();
                name.or_else(|| policy.kernel().name(&found.fd).ok())
            };
            self.uses.note((found.root, false), uses, name);
        }
        Ok(Some(Handle::File(FileHandle {
            fd: Arc::new(self.allowance.hold(fd)?),
            root: found.root,
            flags: request.flags,
            may_stat: rights.read || own,
            may_touch: own || rights.write && !shared,
        })))
    }

    fn create(
        &mut self,
        policy: &FsPolicy,
        dir: &DirHandle,
        path: GuestPath<'_>,
        request: OpenRequest,
    ) -> FsOutcome<Handle> {
        let entry = policy.entry(dir.asking(request.rights()), path)?;
        may_create(policy, &entry)?;
        let name = entry.real_name(policy)?;
        self.may_obey(policy, (entry.root, &name), NameUse::Make)?;
        if entry.slash {
            return Err(Code::IsDirectory.into());
        }
        let fd = sys::create_file(entry.dir(), entry.leaf, request.access(), sys::ORDINARY)?;
        self.created.note(&fd);
        self.use_entry(policy, &entry, false, FileUses::CREATE);
        Ok(Handle::File(FileHandle {
            fd: Arc::new(self.allowance.hold(fd)?),
            root: entry.root,
            flags: request.flags,
            may_stat: true,
            may_touch: true,
        }))
    }
}
