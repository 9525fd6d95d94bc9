//! The bytes of a component: held without copying, hashed, and read from a file. Nothing here looks into them.

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Deref;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use bytes::Bytes;
use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};
use zeph_core::id::Digest;

/// Most bytes of a component. The largest known in use, Python with its packages, have some 40 MiB; compiling takes some
/// twenty times this in memory (measured: 475 MB for 18 MB).
pub const COMPONENT_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// The bytes of a component. Clones share them.
#[derive(Clone)]
pub struct ComponentBytes(Bytes);

/// The SHA-256 of `bytes`: what a component is known by in the cache, in records and in grants.
pub fn digest(bytes: &[u8]) -> Digest {
    Digest::new(Sha256::digest(bytes).into())
}

impl ComponentBytes {
    /// Reads an untrusted file: only a regular file, and never more than [`COMPONENT_BYTES_MAX`].
    ///
    /// Errors: the system's; `InvalidInput` when it is not a regular file, `FileTooLarge` when it is larger. Never waits for a
    /// FIFO's other end.
    pub fn read(path: &Path) -> io::Result<Self> {
        let flags = OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let file = File::options()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(path)?;
        let meta = file.metadata()?;
        if !meta.is_file() {
            let problem = "it is not a regular file";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let capacity = meta.len().min(COMPONENT_BYTES_MAX);
        let mut bytes = Vec::with_capacity(usize::try_from(capacity).unwrap_or_default());
        let n_read = file.take(COMPONENT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if n_read as u64 > COMPONENT_BYTES_MAX {
            let problem = format!("it is larger than {COMPONENT_BYTES_MAX} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
        }
        Ok(bytes.into())
    }
}

impl From<&'static [u8]> for ComponentBytes {
    fn from(bytes: &'static [u8]) -> Self {
        Self(Bytes::from_static(bytes))
    }
}

impl From<Vec<u8>> for ComponentBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Bytes::from(bytes))
    }
}

impl Deref for ComponentBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for ComponentBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ComponentBytes({} bytes)", self.len())
    }
}
