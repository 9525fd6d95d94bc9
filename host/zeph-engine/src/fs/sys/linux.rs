//! Linux: `openat2`, handles opened with `O_PATH`, and the kernel's own names in `/proc/self/fd`.

use std::ffi::OsStr;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    Advice, AtFlags, CWD, FileType, Gid, Mode, OFlags, PROC_SUPER_MAGIC, RawDir, RenameFlags,
    ResolveFlags, StatxFlags, Timestamps, Uid,
};
use rustix::io::{Errno, ReadWriteFlags};
use rustix::path::DecInt;

use super::{Born, Hint, Meta, OPEN_ALWAYS, steps};

/// How often an `openat2` is repeated that the kernel gave up because something was renamed meanwhile.
const RENAME_RETRIES: usize = 128;

/// What the kernel appends to the name of an object that has lost it.
const DELETED: &[u8] = b" (deleted)";

/// File systems whose files act instead of holding data: reading may block, writing may reconfigure the machine, and
/// `/proc/self/mem` is this very process.
const KERNEL_FILE_SYSTEMS: [u32; 18] = [
    0x0000_9fa0, // proc
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0xcafe_4a11, // bpf
    0x6265_6570, // configfs
    0x6165_676c, // pstore
    0xde5e_81e4, // efivarfs
    0x0000_1cd1, // devpts
    0x1980_0202, // mqueue
    0x4249_4e4d, // binfmt_misc
    0xf97c_ff8c, // selinuxfs
    0x6573_5543, // fusectl
    0x6e73_6673, // nsfs
    0x5049_4446, // pidfs
];

/// What is opened once and asked all the time.
#[derive(Debug)]
pub(in super::super) struct Kernel {
    /// `/proc/self/fd`, checked to be the real one.
    self_fds: OwnedFd,
    /// Whether `openat2` exists (Linux 5.6) and is not filtered away.
    beneath: bool,
}

impl Kernel {
    /// Opens the view of this process's own handles.
    pub(in super::super) fn open() -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let self_fds = rustix::fs::openat(CWD, c"/proc/self/fd", flags, Mode::empty())?;
        if rustix::fs::fstatfs(&self_fds)?.f_type != PROC_SUPER_MAGIC {
            return Err(Errno::NOENT);
        }
        let probe = rustix::fs::openat2(&self_fds, c".", flags, Mode::empty(), BENEATH);
        Ok(Self {
            self_fds,
            beneath: probe.is_ok(),
        })
    }

    /// Resolves step by step from now on, as on an older kernel.
    #[cfg(test)]
    pub(in super::super) fn forget_openat2(&mut self) {
        self.beneath = false;
    }

    /// Opens what `path` leads to beneath `dir` as a handle that can be looked at and named, and nothing else: no
    /// device wakes, no pipe waits.
    ///
    /// Errors: `XDEV` when the path or a link in it leads out of `dir`, `LOOP` on a link of `/proc` that has no text.
    pub(in super::super) fn open_beneath(
        &self,
        dir: BorrowedFd<'_>,
        path: &str,
        follow: bool,
    ) -> Result<OwnedFd, Errno> {
        if self.beneath
            && let Some(done) = resolve(dir, Path::new(path), follow)
        {
            return done;
        }
        steps::open_beneath(dir, path, follow, peek)
    }

    /// Like [`open_beneath`](Self::open_beneath), for a path that may not be UTF-8; guests cannot name such a path. A symbolic link at its end is not followed.
    ///
    /// Errors: `ILSEQ` when it is not UTF-8 and the kernel does not resolve paths beneath a directory itself.
    pub(in super::super) fn open_any_beneath(
        &self,
        dir: BorrowedFd<'_>,
        path: &Path,
    ) -> Result<OwnedFd, Errno> {
        match path.to_str() {
            Some(path) => self.open_beneath(dir, path, false),
            None if self.beneath => resolve(dir, path, false).unwrap_or(Err(Errno::ILSEQ)),
            None => Err(Errno::ILSEQ),
        }
    }

    // Handles are taken by reference throughout: one that were moved in would be closed before its number is used.

    /// Opens the very object behind `handle` anew, with the access in `flags`.
    pub(in super::super) fn reopen(
        &self,
        handle: &impl AsFd,
        flags: OFlags,
    ) -> Result<OwnedFd, Errno> {
        let number = DecInt::from_fd(handle);
        rustix::fs::openat(
            &self.self_fds,
            number.as_c_str(),
            flags | OPEN_ALWAYS,
            Mode::empty(),
        )
    }

    /// The real name of the object behind `handle`, now.
    ///
    /// Errors: `NOENT` when it has lost its name (the kernel then says `… (deleted)`, which no pattern would match),
    /// `NAMETOOLONG` when the name does not fit in a page.
    pub(in super::super) fn name(&self, handle: &impl AsFd) -> Result<PathBuf, Errno> {
        let number = DecInt::from_fd(handle.as_fd());
        let name =
            rustix::fs::readlinkat(&self.self_fds, number.as_c_str(), Vec::with_capacity(256))?;
        let bytes = name.as_bytes();
        if !bytes.starts_with(b"/") {
            return Err(Errno::NOENT);
        }
        if bytes.ends_with(DELETED) {
            let named = rustix::fs::statat(CWD, &name, AtFlags::SYMLINK_NOFOLLOW)?;
            let own = Meta::of(handle)?.id;
            if (named.st_dev, named.st_ino) != (own.dev, own.ino) {
                return Err(Errno::NOENT);
            }
        }
        Ok(PathBuf::from(OsStr::from_bytes(bytes)))
    }

    /// Gives the very file behind `handle` the further name `leaf` in `parent`.
    pub(in super::super) fn link(
        &self,
        handle: &impl AsFd,
        parent: BorrowedFd<'_>,
        leaf: &str,
    ) -> Result<(), Errno> {
        let number = DecInt::from_fd(handle);
        rustix::fs::linkat(
            &self.self_fds,
            number.as_c_str(),
            parent,
            leaf,
            AtFlags::SYMLINK_FOLLOW,
        )
    }

    /// Sets the permission bits of the very object behind `handle`.
    pub(in super::super) fn set_mode(&self, handle: &impl AsFd, mode: Mode) -> Result<(), Errno> {
        rustix::fs::chmodat(
            &self.self_fds,
            DecInt::from_fd(handle).as_c_str(),
            mode,
            AtFlags::empty(),
        )
    }

    /// Sets owner and group of the very object behind `handle`.
    pub(in super::super) fn set_owner(
        &self,
        handle: &impl AsFd,
        owner: Option<Uid>,
        group: Option<Gid>,
    ) -> Result<(), Errno> {
        rustix::fs::chownat(
            &self.self_fds,
            DecInt::from_fd(handle).as_c_str(),
            owner,
            group,
            AtFlags::empty(),
        )
    }

    /// Sets the times of the very object behind `handle`, which is no link.
    pub(in super::super) fn set_times(
        &self,
        handle: &impl AsFd,
        times: &Timestamps,
    ) -> Result<(), Errno> {
        rustix::fs::utimensat(
            &self.self_fds,
            DecInt::from_fd(handle).as_c_str(),
            times,
            AtFlags::empty(),
        )
    }

    /// Whether the object is on a kernel file system.
    pub(in super::super) fn is_kernel_file(&self, handle: &impl AsFd) -> Result<bool, Errno> {
        let magic = rustix::fs::fstatfs(handle)?.f_type;
        Ok(u32::try_from(magic).is_ok_and(|magic| KERNEL_FILE_SYSTEMS.contains(&magic)))
    }
}

/// File systems of this machine whose times are those of its own clock, and change with every change.
const LOCAL_FILE_SYSTEMS: [u32; 11] = [
    0x0000_ef53, // ext2, ext3, ext4
    0x5846_5342, // xfs
    0x9123_683e, // btrfs
    0x0102_1994, // tmpfs
    0x8584_58f6, // ramfs
    0x794c_7630, // overlayfs
    0xf2f5_2010, // f2fs
    0x2fc1_2fc1, // zfs
    0xca45_1a4e, // bcachefs
    0x7371_7368, // squashfs
    0xe0f5_e1e2, // erofs
];

/// Whether the object behind `handle` is on a file system that is known to tell of every change by this machine's clock.
pub(in super::super) fn is_local(handle: impl AsFd) -> bool {
    let magic = rustix::fs::fstatfs(handle).map(|found| u32::try_from(found.f_type));
    matches!(magic, Ok(Ok(magic)) if LOCAL_FILE_SYSTEMS.contains(&magic))
}

const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

/// Has the kernel resolve `path` beneath `dir`; none when others rename what is on the way all the time.
fn resolve(dir: BorrowedFd<'_>, path: &Path, follow: bool) -> Option<Result<OwnedFd, Errno>> {
    let nofollow = match follow {
        true => OFlags::empty(),
        false => OFlags::NOFOLLOW,
    };
    let flags = OFlags::PATH | OFlags::CLOEXEC | nofollow;
    for _ in 0..RENAME_RETRIES {
        match rustix::fs::openat2(dir, path, flags, Mode::empty(), BENEATH) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            done => return Some(done),
        }
    }
    None
}

fn peek(dir: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::empty())
}

/// Opens the directory `name` of `parent` for listing; a link in its place is refused with `LOOP` or `NOTDIR`.
///
/// Safe on any object: the kernel checks that it is a directory before it opens anything.
pub(in super::super) fn open_directory(parent: impl AsFd, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OPEN_ALWAYS;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

/// Opens the regular file `name` of `parent` for reading, without waking whatever else may stand there.
pub(in super::super) fn open_regular(
    kernel: &Kernel,
    parent: BorrowedFd<'_>,
    name: &str,
) -> Result<OwnedFd, Errno> {
    let handle = peek(parent, name)?;
    if !Meta::of(&handle)?.is_file() {
        return Err(Errno::NOENT);
    }
    kernel.reopen(&handle, OFlags::RDONLY)
}

/// Renames onto a free name, and onto nothing else: what appears there meanwhile was not decided upon.
pub(in super::super) fn rename_free<P: rustix::path::Arg + Copy>(
    from: BorrowedFd<'_>,
    old: P,
    to: BorrowedFd<'_>,
    new: P,
) -> Result<(), Errno> {
    match rustix::fs::renameat_with(from, old, to, new, RenameFlags::NOREPLACE) {
        // The file system cannot promise it.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            rustix::fs::renameat(from, old, to, new)
        }
        done => done,
    }
}

/// Writes the data of a file to the disk, and as little of the rest as will do.
pub(in super::super) fn sync_data(file: impl AsFd) -> Result<(), Errno> {
    rustix::fs::fdatasync(file)
}

/// Passes a hint about the use of a file to the page cache.
pub(in super::super) fn advise(
    file: BorrowedFd<'_>,
    offset: u64,
    len: u64,
    hint: Hint,
) -> Result<(), Errno> {
    let advice = match hint {
        Hint::Normal => Advice::Normal,
        Hint::Sequential => Advice::Sequential,
        Hint::Random => Advice::Random,
        Hint::WillNeed => Advice::WillNeed,
        Hint::DontNeed => Advice::DontNeed,
        Hint::NoReuse => Advice::NoReuse,
    };
    rustix::fs::fadvise(file, offset, NonZeroU64::new(len), advice)
}

/// Appends to a file wherever its end is at that moment, in one step.
pub(in super::super) fn append(file: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
    rustix::io::pwritev2(file, &[IoSlice::new(bytes)], 0, ReadWriteFlags::APPEND)
}

/// When the object behind `handle` was made.
pub(in super::super) fn birth(handle: &impl AsFd) -> Result<Born, Errno> {
    born(handle, "", AtFlags::EMPTY_PATH)
}

/// When the entry `leaf` of `parent` was made.
pub(in super::super) fn born_at(parent: impl AsFd, leaf: &str) -> Result<Born, Errno> {
    born(parent, leaf, AtFlags::SYMLINK_NOFOLLOW)
}

fn born(dir: impl AsFd, path: &str, flags: AtFlags) -> Result<Born, Errno> {
    let found = rustix::fs::statx(dir, path, flags, StatxFlags::BTIME)?;
    Ok(if found.stx_mask & StatxFlags::BTIME.bits() == 0 {
        (0, 0)
    } else {
        (found.stx_btime.tv_sec, found.stx_btime.tv_nsec)
    })
}

/// Reads the names of a directory in batches, as the kernel hands them out.
#[derive(Debug)]
pub(in super::super) struct Listing<D> {
    dir: D,
}

/// Bytes the kernel may fill per call: some thousand names.
const BATCH_BYTES: usize = 32 * 1024;

impl<D: AsFd> Listing<D> {
    /// Lists `dir`, which was opened for reading and is at its beginning.
    pub(in super::super) fn new(dir: D) -> Self {
        Self { dir }
    }

    /// The directory that is listed.
    pub(in super::super) fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// Passes the next batch of names to `take`, without `.` and `..`. False at the end.
    ///
    /// The kind is `Unknown` where the file system does not tell.
    pub(in super::super) fn batch(
        &mut self,
        mut take: impl FnMut(&OsStr, FileType),
    ) -> Result<bool, Errno> {
        let mut buffer = [const { MaybeUninit::<u8>::uninit() }; BATCH_BYTES];
        let mut raw = RawDir::new(&self.dir, &mut buffer);
        let mut any = false;
        while let Some(entry) = raw.next() {
            let entry = entry?;
            any = true;
            match entry.file_name().to_bytes() {
                b"." | b".." => {}
                name => take(OsStr::from_bytes(name), entry.file_type()),
            }
            if raw.is_buffer_empty() {
                break;
            }
        }
        Ok(any)
    }
}
