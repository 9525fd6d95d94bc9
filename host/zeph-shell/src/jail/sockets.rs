//! The named sockets of other programs that lie where a command sees them. They are covered, so that it may make some of its own.
//!
//! A name that nobody serves any more is left as it is: the next server removes it and takes its place.

use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::mount::within_any;
use super::survey::Survey;
use crate::held_object;

/// Most sockets that are covered; each is a mount. Where there are more, commands make none.
const COVERED_MAX: usize = 64;

/// All sockets of the network of the host. The last column is a path, as its server wrote it.
const LIST: &str = "/proc/net/unix";

/// Columns of the list before the path.
const COLUMNS: usize = 7;

/// The sockets that somebody serves.
#[derive(Debug, Default)]
pub(super) struct NamedSockets {
    /// Where they are.
    pub(super) served: Vec<PathBuf>,
    /// Whether there may be more.
    pub(super) is_open: bool,
}

/// Those below `roots`, of which `survey` is a look.
///
/// Limits: of directories that the survey did not read, only servers in the network of the host are known.
pub(super) fn of(survey: &Survey, roots: &[&PathBuf]) -> NamedSockets {
    let (listed, is_whole) = match survey.complete {
        true => (Vec::new(), true),
        false => listed(&std::fs::read(LIST).unwrap_or_default(), roots),
    };
    let mut paths: Vec<&PathBuf> = survey.sockets.iter().chain(&listed).collect();
    paths.sort();
    paths.dedup();
    let mut served: Vec<PathBuf> = Vec::new();
    for path in paths {
        if served.len() <= COVERED_MAX && is_served(path) {
            served.push(path.clone());
        }
    }
    match is_whole && served.len() <= COVERED_MAX {
        true => NamedSockets {
            served,
            is_open: false,
        },
        false => NamedSockets {
            served: Vec::new(),
            is_open: true,
        },
    }
}

/// The paths of a list that lie below `roots`, and whether it is certain of every other that it does not.
fn listed(list: &[u8], roots: &[&PathBuf]) -> (Vec<PathBuf>, bool) {
    let mut found = Vec::new();
    let mut is_whole = !list.is_empty();
    for path in list.split(|byte| *byte == b'\n').filter_map(path_in) {
        // One that begins elsewhere has no name in the file system, or one that only its server can find.
        if path.is_relative() {
            is_whole = false;
            continue;
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            continue;
        };
        let real = parent.canonicalize().map(|parent| parent.join(name));
        found.extend(
            real.ok()
                .filter(|path| within_any(path, roots.iter().copied())),
        );
    }
    (found, is_whole)
}

/// The path in a line of the list; nothing for an abstract name and the line of headings.
fn path_in(line: &[u8]) -> Option<&Path> {
    let mut rest = line;
    for _ in 0..COLUMNS {
        rest = rest.trim_ascii_start();
        let end = rest.iter().position(|byte| *byte == b' ')?;
        rest = &rest[end..];
    }
    let path = rest.strip_prefix(b" ")?;
    let is_named = !path.is_empty() && path[0] != b'@' && line.contains(&b':');
    is_named.then(|| Path::new(std::ffi::OsStr::from_bytes(path)))
}

/// Whether a program has the socket at `path` open. Asked with a socket of the kind that is never waited for: no server notices, and one of
/// another kind is told by the refusal. What cannot be asked counts as served.
fn is_served(path: &Path) -> bool {
    let asked = || {
        let socket = held_object::find(path)?;
        let own_name = format!("/proc/self/fd/{}", socket.as_raw_fd());
        UnixDatagram::unbound()?.connect(own_name)
    };
    let error: Option<i32> = match asked() {
        Ok(()) => None,
        Err(error) => error.raw_os_error(),
    };
    let nobody = [Errno::CONNREFUSED, Errno::NOENT, Errno::NOTDIR];
    !nobody
        .iter()
        .any(|errno| error == Some(errno.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixDatagram, UnixListener};
    use std::path::PathBuf;

    use super::{is_served, listed};

    #[test]
    fn a_socket_is_served_while_a_program_has_it_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let stream = UnixListener::bind(path("stream")).unwrap();
        let datagram = UnixDatagram::bind(path("datagram")).unwrap();
        assert!(is_served(&path("stream")) && is_served(&path("datagram")));
        stream.set_nonblocking(true).unwrap();
        assert!(stream.accept().is_err(), "its server was asked");
        drop((stream, datagram));
        for name in ["stream", "datagram", "none"] {
            assert!(!is_served(&path(name)), "{name}");
        }
    }

    #[test]
    fn servers_below_the_roots_are_found_in_the_list() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("in")).unwrap();
        std::os::unix::fs::symlink(root.join("in"), root.join("link")).unwrap();
        let lines = |paths: &[&str]| {
            let mut list = "Num       RefCount Protocol Flags    Type St Inode Path\n".to_owned();
            for path in paths {
                list +=
                    &format!("0000000000000000: 00000002 00000000 00010000 0001 01 31764 {path}\n");
            }
            list
        };
        let at = |name: &str| root.join(name).to_str().unwrap().to_owned();
        let roots = [&root.join("in")];
        for (path, expect, is_whole) in [
            (at("in/a b.sock"), Some("in/a b.sock"), true),
            (at("link/x"), Some("in/x"), true),
            (at("other"), None, true),
            ("@abstract".to_owned(), None, true),
            ("here.sock".to_owned(), None, false),
        ] {
            let expect: Vec<PathBuf> = expect.iter().map(|name| root.join(name)).collect();
            let found = listed(lines(&[&path]).as_bytes(), &roots);
            assert_eq!(found, (expect, is_whole), "{path}");
        }
        let nameless = "0000000000000000: 00000003 00000000 00000000 0001 03 31764\n";
        assert_eq!(listed(nameless.as_bytes(), &roots), (Vec::new(), true));
        assert_eq!(listed(b"", &roots), (Vec::new(), false));
    }
}
