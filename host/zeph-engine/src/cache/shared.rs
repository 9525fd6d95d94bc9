//! Compiled components that several machines share: a directory of sealed files, from which each machine fills its own cache.
//!
//! Loading a compiled component means running it as native code, and others may be able to write to a shared directory. So each
//! file begins with a code over what it is for and what it contains, made with a key that only the operator's hosts have. A
//! file is read once into memory, checked there, and written into the machine's own cache; nothing is ever loaded from the directory itself.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit as _, Mac as _};
use rustix::fs::{Mode, OFlags};
use sha2::Sha256;

/// Bytes of a key.
pub const SHARED_KEY_BYTES: usize = 32;

/// Bytes of the code a file begins with.
const CODE_BYTES: usize = 32;

/// Bytes of a compiled component, at most: what is longer is not read. The largest component known comes to some 100 MB.
const ARTIFACT_BYTES_MAX: u64 = 256 << 20;

/// What the code is about, before anything else: one made for another purpose with the same key does not count here.
const PURPOSE: &[u8] = b"zeph-host compiled component 1\0";

/// A directory of compiled components that several hosts fill and use.
#[derive(Clone)]
pub struct SharedArtifacts {
    dir: PathBuf,
    keys: Vec<[u8; SHARED_KEY_BYTES]>,
}

impl SharedArtifacts {
    /// The directory `dir`, whose files are sealed with the first of `keys`; files sealed with any of them are used. Without a key
    /// none is used and none is written.
    pub fn new(dir: impl Into<PathBuf>, keys: Vec<[u8; SHARED_KEY_BYTES]>) -> Self {
        Self {
            dir: dir.into(),
            keys,
        }
    }

    /// The artifact of this name; none when there is none, or when it cannot be trusted.
    pub(super) fn get(&self, name: &str) -> Option<Vec<u8>> {
        let path = self.path(name);
        let problem = match read(&path) {
            Ok((code, artifact)) if self.is_sealed(name, &artifact, &code) => {
                return Some(artifact);
            }
            Ok(_) => "its seal is not of `engine.shared_cache_keys`".to_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => error.to_string(),
        };
        tracing::warn!(path = %path.display(), problem, "a shared compiled component is not used");
        None
    }

    /// Puts an artifact there for the other hosts; its file. One that cannot be written costs them time, and nothing else.
    pub(super) fn put(&self, name: &str, artifact: &[u8]) -> Option<PathBuf> {
        let key = self.keys.first()?;
        let code: [u8; CODE_BYTES] = mac(key, name, artifact).finalize().into_bytes().into();
        let path = self.path(name);
        match write(&self.dir, &path, &[&code, artifact]) {
            Ok(()) => return Some(path),
            // A directory that this machine may only read is an arrangement, not a fault.
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {}
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "a compiled component cannot be shared");
            }
        }
        None
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}.sealed"))
    }

    /// Whether `code` is that of one of the keys, in a time that says nothing about where it differs.
    fn is_sealed(&self, name: &str, artifact: &[u8], code: &[u8; CODE_BYTES]) -> bool {
        let mut keys = self.keys.iter();
        keys.any(|key| mac(key, name, artifact).verify_slice(code).is_ok())
    }
}

impl std::fmt::Debug for SharedArtifacts {
    /// Without the keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedArtifacts")
            .field("dir", &self.dir)
            .finish_non_exhaustive()
    }
}

/// The name says which component and which engine: one that was made for another component or engine does not match, even with a valid seal.
fn mac(key: &[u8; SHARED_KEY_BYTES], name: &str, artifact: &[u8]) -> Hmac<Sha256> {
    let mut block = hmac::digest::Key::<Hmac<Sha256>>::default();
    block[..key.len()].copy_from_slice(key);
    let n_bytes = u64::try_from(name.len()).unwrap_or(u64::MAX).to_be_bytes();
    Hmac::<Sha256>::new(&block)
        .chain_update(PURPOSE)
        .chain_update(n_bytes)
        .chain_update(name)
        .chain_update(artifact)
}

/// The code and the artifact of a file, which is a regular one and not too long.
fn read(path: &Path) -> io::Result<([u8; CODE_BYTES], Vec<u8>)> {
    // A pipe in its place is not waited on.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if metadata.len() > ARTIFACT_BYTES_MAX {
        return Err(io::Error::from(io::ErrorKind::FileTooLarge));
    }
    let mut code = [0; CODE_BYTES];
    file.read_exact(&mut code)?;
    let mut artifact = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
    // It may grow meanwhile: then its seal does not fit.
    file.take(ARTIFACT_BYTES_MAX).read_to_end(&mut artifact)?;
    Ok((code, artifact))
}

/// Writes under a temporary name and moves it into place, so that no host finds half of a file.
fn write(dir: &Path, path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let mut file = super::unfinished_in(dir)?;
    for part in parts {
        file.write_all(part)?;
    }
    // Hosts of the group may use it; what it contains is the plugin's.
    file.as_file()
        .set_permissions(fs::Permissions::from_mode(0o440))?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
