//! What a process that stands still in a call is about to ask for.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use zeph_jail::watch::PathArgument;

/// Bytes of the longest path that the kernel takes, with its end.
const PATH_BYTES_MAX: usize = 4096;

/// The number that stands for the working directory in place of a descriptor.
const HERE: i32 = libc::AT_FDCWD;

/// A thread that stands still in a call with these arguments.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoppedThread<'a> {
    pub(super) id: u32,
    pub(super) arguments: &'a [u64; 6],
}

impl StoppedThread<'_> {
    /// A path of the call, absolute as the process sees it, dots and symbolic links still in it. None where the call names no path but a
    /// descriptor.
    ///
    /// Errors: the memory of the process cannot be read.
    pub(super) fn path(&self, argument: &PathArgument) -> io::Result<Option<PathBuf>> {
        let address = self.arguments[argument.path];
        if address == 0 {
            return Ok(None);
        }
        let bytes = read_text(self.id, address)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let path = PathBuf::from(OsString::from_vec(bytes));
        if path.is_absolute() {
            return Ok(Some(path));
        }
        // What is not there any more begins no path.
        let directory = self.directory(argument).ok();
        Ok(directory
            .filter(|directory| directory.is_absolute())
            .map(|directory| directory.join(path)))
    }

    fn directory(&self, argument: &PathArgument) -> io::Result<PathBuf> {
        let number = argument
            .directory
            .map(|place| low_half(self.arguments[place]));
        match number {
            None | Some(HERE) => fs::read_link(format!("/proc/{}/cwd", self.id)),
            Some(number) => fs::read_link(format!("/proc/{}/fd/{number}", self.id)),
        }
    }

    /// The number in an argument that holds one of 32 bits.
    pub(super) fn number(&self, argument: usize) -> i32 {
        low_half(self.arguments[argument])
    }

    /// The directory that the process sees as `/`.
    pub(super) fn root(&self) -> PathBuf {
        Path::new("/proc").join(self.id.to_string()).join("root")
    }
}

/// The kernel looks at no more of such an argument.
fn low_half(argument: u64) -> i32 {
    let [b0, b1, b2, b3, ..] = argument.to_le_bytes();
    i32::from_le_bytes([b0, b1, b2, b3])
}

/// The text at an address up to its zero, at most a path long. In two pieces, of which the second may not be there: the border of a
/// page lies between them.
fn read_text(thread: u32, address: u64) -> io::Result<Vec<u8>> {
    const PAGE: u64 = 4096;
    let to_border = usize::try_from(PAGE - address % PAGE).unwrap_or(PATH_BYTES_MAX);
    let mut bytes = vec![0; PATH_BYTES_MAX];
    let n_read = read_memory(thread, address, to_border, &mut bytes)?;
    bytes.truncate(n_read);
    let end = bytes.iter().position(|byte| *byte == 0);
    // Longer ones are refused by the kernel itself.
    bytes.truncate(end.unwrap_or(0));
    Ok(bytes)
}

#[expect(unsafe_code, reason = "no library reads the memory of another process")]
fn read_memory(thread: u32, address: u64, first: usize, into: &mut [u8]) -> io::Result<usize> {
    let thread = libc::pid_t::try_from(thread).map_err(|_error| io::ErrorKind::InvalidInput)?;
    let first = first.min(into.len());
    let local = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    let at = |address: u64, length| libc::iovec {
        iov_base: std::ptr::without_provenance_mut(usize::try_from(address).unwrap_or(0)),
        iov_len: length,
    };
    let remote = [
        at(address, first),
        at(address.wrapping_add(first as u64), into.len() - first),
    ];
    // SAFETY: the kernel writes to `into` only, at most its length; the addresses of the other process are numbers to it.
    let n_read =
        unsafe { libc::process_vm_readv(thread, &raw const local, 1, remote.as_ptr(), 2, 0) };
    usize::try_from(n_read).map_err(|_error| io::Error::last_os_error())
}
