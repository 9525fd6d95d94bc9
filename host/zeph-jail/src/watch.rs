//! The calls that take paths, for a host that learns what a command lacks: which argument names what, and what the call wants there.
//!
//! Both sides use the one table: the filter says which calls are told to the host, the host reads their arguments by it. Calls that the
//! other filter refuses as "not there" are not in it: what takes their place is.

/// A call that takes paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathCall {
    /// Its number.
    pub number: i64,
    /// The paths it takes.
    pub paths: &'static [PathArgument],
}

/// A path among the arguments of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathArgument {
    /// Which argument is the directory that a relative path begins at; none where that is the working directory.
    pub directory: Option<usize>,
    /// Which argument points at the path.
    pub path: usize,
    /// What the call wants there.
    pub wish: Wish,
}

/// What a call wants of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// To know what it is.
    Look,
    /// To read or run it.
    Read,
    /// To change what is there.
    Write,
    /// To open it for writing, and to make it if it is not there.
    Create,
    /// To add a name to its directory.
    Add,
    /// To remove it from its directory.
    Remove,
    /// What the flags of `open` in this argument say.
    Flags(usize),
    /// What the mode of `access` in this argument says.
    Mode(usize),
}

/// The call with this number, if it takes paths.
pub fn call(number: i64) -> Option<PathCall> {
    calls().find(|call| call.number == number)
}

/// All of them.
pub fn calls() -> impl Iterator<Item = PathCall> {
    let all = EVERYWHERE.iter().chain(OF_OLD);
    all.map(|(number, paths)| PathCall {
        number: *number,
        paths,
    })
}

const fn at(directory: usize, path: usize, wish: Wish) -> PathArgument {
    PathArgument {
        directory: Some(directory),
        path,
        wish,
    }
}

const fn here(path: usize, wish: Wish) -> PathArgument {
    PathArgument {
        directory: None,
        path,
        wish,
    }
}

const FCHMODAT2: i64 = 452;

/// Calls of every architecture.
const EVERYWHERE: &[(i64, &[PathArgument])] = &[
    (libc::SYS_openat, &[at(0, 1, Wish::Flags(2))]),
    (libc::SYS_newfstatat, &[at(0, 1, Wish::Look)]),
    (libc::SYS_statx, &[at(0, 1, Wish::Look)]),
    (libc::SYS_statfs, &[here(0, Wish::Look)]),
    (libc::SYS_faccessat, &[at(0, 1, Wish::Mode(2))]),
    (libc::SYS_faccessat2, &[at(0, 1, Wish::Mode(2))]),
    (libc::SYS_readlinkat, &[at(0, 1, Wish::Look)]),
    (libc::SYS_chdir, &[here(0, Wish::Look)]),
    (libc::SYS_execve, &[here(0, Wish::Read)]),
    (libc::SYS_execveat, &[at(0, 1, Wish::Read)]),
    (libc::SYS_truncate, &[here(0, Wish::Write)]),
    (libc::SYS_fchmodat, &[at(0, 1, Wish::Write)]),
    (FCHMODAT2, &[at(0, 1, Wish::Write)]),
    (libc::SYS_fchownat, &[at(0, 1, Wish::Write)]),
    (libc::SYS_utimensat, &[at(0, 1, Wish::Write)]),
    (libc::SYS_mkdirat, &[at(0, 1, Wish::Add)]),
    (libc::SYS_mknodat, &[at(0, 1, Wish::Add)]),
    (libc::SYS_unlinkat, &[at(0, 1, Wish::Remove)]),
    (libc::SYS_symlinkat, &[at(1, 2, Wish::Add)]),
    (
        libc::SYS_linkat,
        &[at(0, 1, Wish::Read), at(2, 3, Wish::Add)],
    ),
    (
        libc::SYS_renameat2,
        &[at(0, 1, Wish::Remove), at(2, 3, Wish::Add)],
    ),
    (libc::SYS_inotify_add_watch, &[here(1, Wish::Read)]),
];

/// Calls that newer architectures never had.
#[cfg(target_arch = "x86_64")]
const OF_OLD: &[(i64, &[PathArgument])] = &[
    (libc::SYS_open, &[here(0, Wish::Flags(1))]),
    (libc::SYS_creat, &[here(0, Wish::Create)]),
    (libc::SYS_stat, &[here(0, Wish::Look)]),
    (libc::SYS_lstat, &[here(0, Wish::Look)]),
    (libc::SYS_access, &[here(0, Wish::Mode(1))]),
    (libc::SYS_readlink, &[here(0, Wish::Look)]),
    (libc::SYS_chmod, &[here(0, Wish::Write)]),
    (libc::SYS_chown, &[here(0, Wish::Write)]),
    (libc::SYS_lchown, &[here(0, Wish::Write)]),
    (libc::SYS_utime, &[here(0, Wish::Write)]),
    (libc::SYS_utimes, &[here(0, Wish::Write)]),
    (libc::SYS_futimesat, &[at(0, 1, Wish::Write)]),
    (libc::SYS_mkdir, &[here(0, Wish::Add)]),
    (libc::SYS_mknod, &[here(0, Wish::Add)]),
    (libc::SYS_rmdir, &[here(0, Wish::Remove)]),
    (libc::SYS_unlink, &[here(0, Wish::Remove)]),
    (libc::SYS_symlink, &[here(1, Wish::Add)]),
    (libc::SYS_link, &[here(0, Wish::Read), here(1, Wish::Add)]),
    (
        libc::SYS_rename,
        &[here(0, Wish::Remove), here(1, Wish::Add)],
    ),
    (
        libc::SYS_renameat,
        &[at(0, 1, Wish::Remove), at(2, 3, Wish::Add)],
    ),
];

#[cfg(not(target_arch = "x86_64"))]
const OF_OLD: &[(i64, &[PathArgument])] = &[];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_there_once_and_its_arguments_are_among_six() {
        for one in calls() {
            assert_eq!(
                calls().filter(|other| other.number == one.number).count(),
                1,
                "{one:?}"
            );
            for argument in one.paths {
                let of_wish = match argument.wish {
                    Wish::Flags(place) | Wish::Mode(place) => place,
                    _ => 0,
                };
                let places = [argument.path, argument.directory.unwrap_or(0), of_wish];
                assert!(places.iter().all(|place| *place < 6), "{one:?}");
            }
        }
    }
}
