//! Reads and writes of an open file. All inline: guests have threads of their own.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::buffer::spare_capacity;
use rustix::io::Errno;

use super::sys::{self, Meta};

/// Most bytes one `descriptor.read` returns. The guest has to hold them too, and asks again for more.
pub(super) const READ_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Up to this size a buffer is cheaper to allocate than the file's size is to ask.
const SMALL_READ_BYTES: u64 = 64 * 1024;

/// Reads up to `len` bytes at `offset`. Empty at the end of the file.
pub(super) fn read(file: impl AsFd, len: u64, offset: u64) -> Result<Vec<u8>, Errno> {
    let mut len = len.min(READ_BYTES_MAX);
    if len == 0 {
        return Ok(Vec::new());
    }
    if len > SMALL_READ_BYTES {
        // A program that asks for megabytes of a small file shall not cost megabytes.
        let rest = Meta::of(&file)?.size.saturating_sub(offset);
        len = len.min(rest.max(SMALL_READ_BYTES));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(len).map_err(|_| Errno::INVAL)?);
    retry(|| rustix::io::pread(&file, spare_capacity(&mut bytes), offset))?;
    bytes.truncate(usize::try_from(len).unwrap_or(usize::MAX));
    Ok(bytes)
}

/// Writes all of `bytes` at `offset`.
pub(super) fn write_all(file: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> Result<(), Errno> {
    each_piece(bytes, |piece, done| {
        let at = offset.checked_add(done as u64).ok_or(Errno::FBIG)?;
        rustix::io::pwrite(file, piece, at)
    })
}

/// Appends all of `bytes`.
pub(super) fn append_all(file: BorrowedFd<'_>, bytes: &[u8]) -> Result<(), Errno> {
    each_piece(bytes, |piece, _| sys::append(file, piece))
}

fn each_piece(
    bytes: &[u8],
    mut write: impl FnMut(&[u8], usize) -> Result<usize, Errno>,
) -> Result<(), Errno> {
    let mut done = 0;
    while done < bytes.len() {
        match retry(|| write(&bytes[done..], done))? {
            0 => return Err(Errno::IO),
            written => done += written,
        }
    }
    Ok(())
}

fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
}
