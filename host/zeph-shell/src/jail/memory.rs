//! Bytes handed to a process as a descriptor: files in memory that nobody can change any more.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::MemfdFlags;

use super::JailError;
use crate::platform;

const FLAGS: MemfdFlags = MemfdFlags::CLOEXEC.union(MemfdFlags::ALLOW_SEALING);

/// Makes a sealed file of `bytes`, to be read from its beginning.
///
/// Errors: `JailError::System`.
pub(super) fn sealed(name: &str, bytes: &[u8]) -> Result<OwnedFd, JailError> {
    make(name, bytes, MemfdFlags::empty()).map_err(JailError::system("make a file in memory"))
}

/// Like `sealed`, of a program that can be run through its descriptor.
///
/// Errors: `JailError::System`.
pub(super) fn program(name: &str, bytes: &[u8]) -> Result<OwnedFd, JailError> {
    // Kernels before 6.3 do not know the flag and let every such file be run.
    make(name, bytes, MemfdFlags::EXEC)
        .or_else(|_| make(name, bytes, MemfdFlags::empty()))
        .map_err(JailError::system("make a program in memory"))
}

/// An empty file that is to be filled once.
///
/// Errors: `JailError::System`.
pub(super) fn empty(name: &str) -> Result<File, JailError> {
    let file = rustix::fs::memfd_create(name, FLAGS).map_err(io::Error::from);
    let file = file.map_err(JailError::system("make a file in memory"))?;
    Ok(file.into())
}

/// Writes `bytes` to a file that is empty and seals it.
///
/// Errors: the memory is full, or the file was filled before.
pub(super) fn fill(file: &File, bytes: &[u8]) -> io::Result<()> {
    platform::fill(file, bytes)
}

fn make(name: &str, bytes: &[u8], extra: MemfdFlags) -> io::Result<OwnedFd> {
    let file = File::from(rustix::fs::memfd_create(name, FLAGS | extra)?);
    fill(&file, bytes)?;
    Ok(file.into())
}
