//! What an object is: `stat`, `stat-at`, the metadata hashes, and the times.

use rustix::fs::{FileType, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p2::bindings::sync::filesystem::types::{
    DescriptorStat, DescriptorType, MetadataHashValue, NewTimestamp,
};
use zeph_core::capability::FsRights;

use super::FsCtx;
use super::error::{Code, FsOutcome};
use super::handle::DirHandle;
use super::path::GuestPath;
use super::policy::{FsPolicy, RootId};
use super::refusal::WRITE;
use super::sys::{Meta, Moment};
use super::touched::Told;
use super::uses::FileUses;

impl FsCtx {
    /// Describes what `path` leads to. Reading metadata needs the right to read, except of the call's own objects.
    pub(super) fn meta_at(&mut self, dir: &DirHandle, path: &str, follow: bool) -> FsOutcome<Meta> {
        let path = GuestPath::parse(path)?;
        let found = self.look_at(dir, path, follow);
        let asked = dir.asked(path.as_str(), follow);
        match &found {
            Ok((root, meta)) => {
                let policy = &*self.policy;
                self.touched
                    .found(policy, asked, (*root, meta), Told::State);
                let name = || {
                    let found = policy
                        .reach(dir.asking(FsRights::READ), path, follow)
                        .ok()?;
                    policy.kernel().name(&found.fd).ok()
                };
                self.uses.note((*root, meta.is_dir()), FileUses::LOOK, name);
            }
            Err(fail) => self.touched.refused(asked, fail),
        }
        if matches!(&found, Err(fail) if fail.is_absent()) {
            self.note_absent(dir, path);
            self.use_absent(dir, path);
        }
        found.map(|(_, meta)| meta)
    }

    fn look_at(
        &self,
        dir: &DirHandle,
        path: GuestPath<'_>,
        follow: bool,
    ) -> FsOutcome<(RootId, Meta)> {
        let policy = &*self.policy;
        if self.has_lost_drafts() && self.is_lost_at(dir, path) {
            // The call asks for what it made, and that is not there any more.
            return Err(Code::NoEntry.into());
        }
        if let Some(found) = self.plain_meta(policy, dir, path, follow)? {
            return Ok(found);
        }
        let found = policy.reach(dir.asking(FsRights::READ), path, follow)?;
        if !policy.rights(found.root).read && !self.created.has(&found.fd, &found.meta) {
            return Err(found.refused(policy, FsRights::READ));
        }
        Ok((found.root, found.meta))
    }

    /// Looks at an object with one system call in the common case of a plain name that is not a link to follow: nothing has to
    /// be resolved, so nothing has to be opened.
    fn plain_meta(
        &self,
        policy: &FsPolicy,
        dir: &DirHandle,
        path: GuestPath<'_>,
        follow: bool,
    ) -> FsOutcome<Option<(RootId, Meta)>> {
        if !path.is_plain_name() {
            return Ok(None);
        }
        let entry = policy.entry(dir.asking(FsRights::READ), path)?;
        let meta = entry.meta()?;
        let foreign = meta.id.dev != policy.root(entry.root).dev;
        if foreign || follow && meta.is_link() {
            return Ok(None);
        }
        if !policy.rights(entry.root).read && !self.created.has_at(entry.dir(), entry.leaf, &meta) {
            return Err(entry.refused(policy, FsRights::READ));
        }
        Ok(Some((entry.root, meta)))
    }

    /// Sets the times of what `path` leads to.
    pub(super) fn set_times_at(
        &self,
        dir: &DirHandle,
        path: &str,
        follow: bool,
        times: &Timestamps,
    ) -> FsOutcome<()> {
        let policy = &*self.policy;
        let found = policy.reach(dir.asking(WRITE), GuestPath::parse(path)?, follow)?;
        let own = self.created.has(&found.fd, &found.meta);
        if !own && !policy.rights(found.root).write {
            return Err(found.refused(policy, WRITE));
        }
        let shared = !found.meta.is_dir() && found.meta.links > 1;
        if !own && shared {
            return Err(Code::NotPermitted.into());
        }
        if !(found.meta.is_file() || found.meta.is_dir()) {
            return Err(Code::Unsupported.into());
        }
        policy.kernel().set_times(&found.fd, times)?;
        if !own {
            let name = || policy.kernel().name(&found.fd).ok();
            let object = (found.root, found.meta.is_dir());
            self.uses.note(object, FileUses::WRITE, name);
        }
        Ok(())
    }
}

/// The description as WASI has it.
///
/// Directories have no size and one name: the kernel's figures count their entries, hidden ones included.
pub(super) fn to_stat(meta: &Meta) -> DescriptorStat {
    let counts_entries = meta.is_dir();
    DescriptorStat {
        type_: to_type(meta.kind),
        link_count: if counts_entries { 1 } else { meta.links },
        size: if counts_entries { 0 } else { meta.size },
        data_access_timestamp: to_datetime(meta.accessed),
        data_modification_timestamp: to_datetime(meta.modified),
        status_change_timestamp: to_datetime(meta.changed),
    }
}

/// The kind as WASI has it.
pub(super) fn to_type(kind: FileType) -> DescriptorType {
    match kind {
        FileType::RegularFile => DescriptorType::RegularFile,
        FileType::Directory => DescriptorType::Directory,
        FileType::Symlink => DescriptorType::SymbolicLink,
        FileType::Fifo => DescriptorType::Fifo,
        FileType::Socket => DescriptorType::Socket,
        FileType::CharacterDevice => DescriptorType::CharacterDevice,
        FileType::BlockDevice => DescriptorType::BlockDevice,
        FileType::Unknown => DescriptorType::Unknown,
    }
}

/// The half that stays the same while the object lives serves C libraries as inode number; the other one changes with the
/// object. Neither tells the real numbers.
pub(super) fn to_hash(policy: &FsPolicy, meta: &Meta) -> MetadataHashValue {
    MetadataHashValue {
        lower: policy.blur(meta.id),
        upper: policy.blur((meta.id, meta.modified, meta.changed, meta.size)),
    }
}

/// The times a guest wants to set.
///
/// Errors: overflow for a time the system cannot express.
pub(super) fn to_times(accessed: NewTimestamp, modified: NewTimestamp) -> Result<Timestamps, Code> {
    Ok(Timestamps {
        last_access: to_timespec(accessed)?,
        last_modification: to_timespec(modified)?,
    })
}

fn to_timespec(time: NewTimestamp) -> Result<Timespec, Code> {
    Ok(match time {
        NewTimestamp::NoChange => Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        NewTimestamp::Now => Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_NOW,
        },
        // The two marks above are numbers beyond a second: a guest's number must not pass for one.
        NewTimestamp::Timestamp(time) if time.nanoseconds >= 1_000_000_000 => {
            return Err(Code::Invalid);
        }
        NewTimestamp::Timestamp(time) => Timespec {
            tv_sec: time.seconds.try_into().map_err(|_| Code::Overflow)?,
            tv_nsec: time.nanoseconds.into(),
        },
    })
}

/// WASI knows no time before 1970: such a file has none.
fn to_datetime((seconds, nanoseconds): Moment) -> Option<Datetime> {
    Some(Datetime {
        seconds: u64::try_from(seconds).ok()?,
        nanoseconds,
    })
}
