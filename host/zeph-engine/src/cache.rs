//! Compiled components on disk, so that a start does not compile.
//!
//! Loading a native artifact means trusting it, so an artifact is used only if it is the host's own and unchanged: it is in a
//! directory no other user may write, and its inode, length and change time are those recorded when it was written. A file
//! that was truncated, edited, copied in or half written no longer matches, and the component is compiled again. The change time of a file
//! cannot be set back through any system call. What other machines compiled comes into it through `shared.rs` alone.

mod prune;
mod shared;

use std::fs::{self, File, TryLockError};
use std::hash::{Hash, Hasher};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};
use wasmtime::component::Component;
use zeph_core::id::Digest;

use crate::compile::AnswerFile;

pub use shared::{SHARED_KEY_BYTES, SharedArtifacts};

/// How long another process may take to compile the same component before this one does it itself: the other may have been
/// stopped. The largest component known takes half a minute on two cores.
pub(crate) const LOCK_WAIT: Duration = Duration::from_secs(120);

/// A wait that is told. Most processes that hold a lock give it back at once.
const WAIT_TOLD: Duration = Duration::from_secs(1);

/// How often a lock that another process holds is tried again.
const LOCK_POLL: Duration = Duration::from_millis(20);

/// The artifact cache of one engine configuration.
pub(crate) struct ArtifactCache {
    dir: Option<PathBuf>,
    shared: Option<SharedArtifacts>,
    /// Differs between engine versions, configurations and processors.
    engine_key: String,
}

/// What must still be true of an artifact when it is loaded.
#[derive(PartialEq, Eq)]
struct Seal {
    inode: u64,
    n_bytes: u64,
    changed: (i64, i64),
}

/// What the engine says of a component that is too large for a slot, for which it has no type.
const NO_ROOM: &str = "does not fit in pooling allocator requirements";

impl ArtifactCache {
    pub(crate) fn new(
        dir: Option<PathBuf>,
        shared: Option<SharedArtifacts>,
        wasm: &wasmtime::Engine,
    ) -> Self {
        let mut hasher = Sha256Hasher(Sha256::new());
        wasm.precompile_compatibility_hash().hash(&mut hasher);
        Self {
            dir: dir.filter(|dir| is_usable(dir)),
            shared,
            engine_key: Digest::new(hasher.0.finalize().into()).hex()[..16].to_owned(),
        }
    }

    /// The artifact of the component with this digest; none when it has to be compiled.
    pub(crate) fn get(&self, wasm: &wasmtime::Engine, digest: Digest) -> Option<Component> {
        load(wasm, &self.path(digest)?)?.ok()
    }

    /// Whether the artifact of the component with this digest is there as it was written. That it can be used is found out by loading it.
    pub(crate) fn has(&self, digest: Digest) -> bool {
        self.path(digest).is_some_and(|path| is_sealed(&path))
    }

    /// The component with this digest, of its artifact, of the one that another machine shares, or of what `compile` makes; the last two
    /// are then put there.
    ///
    /// Two processes that want the same artifact at once compile it once: the second waits for the first, and takes what the compiler left
    /// when that one ended early. `waits` is called when that takes its time.
    ///
    /// Errors: those of `compile`. A cache that cannot be used only costs time.
    pub(crate) fn get_or_compile(
        &self,
        wasm: &wasmtime::Engine,
        digest: Digest,
        waits: impl FnOnce(),
        compile: impl FnOnce(Option<&AnswerFile>) -> wasmtime::Result<Vec<u8>>,
    ) -> wasmtime::Result<Component> {
        let Some(path) = self.path(digest) else {
            return just_made(wasm, &compile(None)?);
        };
        let only_one = lock(&path, waits);
        if let Some(loaded) = load(wasm, &path) {
            return loaded;
        }
        let name = self.name(digest);
        let from_others = self.shared.as_ref().and_then(|shared| shared.get(&name));
        // One that this engine does not take is compiled as if it were not there.
        if let Some(artifact) = from_others
            && let Ok(component) = self.keep(wasm, &path, &artifact)
        {
            return Ok(component);
        }
        let left = only_one.map(|lock| AnswerFile::new(path.with_extension("answer"), lock));
        let artifact = match left.as_ref().and_then(AnswerFile::left) {
            Some(artifact) => artifact,
            None => compile(left.as_ref())?,
        };
        if let Some(shared) = &self.shared
            && let Some(put) = shared.put(&name, &artifact)
        {
            prune::prune(&put, &self.engine_key);
        }
        self.keep(wasm, &path, &artifact)
    }

    /// The component of an artifact that is put into the cache first: a file that is mapped costs less memory than a copy.
    fn keep(
        &self,
        wasm: &wasmtime::Engine,
        path: &Path,
        artifact: &[u8],
    ) -> wasmtime::Result<Component> {
        if let Err(error) = write(path, artifact) {
            tracing::warn!(path = %path.display(), %error, "the compiled component cannot be cached");
            return just_made(wasm, artifact);
        }
        prune::prune(path, &self.engine_key);
        match load(wasm, path) {
            Some(loaded) => loaded,
            None => just_made(wasm, artifact),
        }
    }

    fn name(&self, digest: Digest) -> String {
        format!("{}-{}", digest.hex(), self.engine_key)
    }

    fn path(&self, digest: Digest) -> Option<PathBuf> {
        let dir = self.dir.as_ref()?;
        Some(dir.join(format!("{}.cwasm", self.name(digest))))
    }
}

/// Makes the directory if needed; false when others could write into it.
fn is_usable(dir: &Path) -> bool {
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir);
    let meta = made.and_then(|()| fs::metadata(dir));
    let problem = match meta {
        Err(error) => error.to_string(),
        Ok(meta) if meta.uid() != rustix::process::geteuid().as_raw() => {
            "it belongs to another user".to_owned()
        }
        Ok(meta) if meta.mode() & 0o022 != 0 => "others may write into it".to_owned(),
        Ok(_) => return true,
    };
    tracing::warn!(dir = %dir.display(), problem, "components are compiled at every start: the cache (`engine.cache_dir`) cannot be used");
    false
}

/// Whether an artifact is the host's own, and unchanged since it was written.
fn is_sealed(path: &Path) -> bool {
    let (Ok(recorded), Ok(meta)) = (
        fs::read_to_string(seal_path(path)),
        fs::symlink_metadata(path),
    ) else {
        return false;
    };
    let is_ours = meta.is_file() && meta.uid() == rustix::process::geteuid().as_raw();
    is_ours && Seal::of(&meta).to_text() == recorded
}

/// The component of an artifact; none when there is no artifact that can be used.
///
/// Errors: it is as it was written, and this engine has no room for such a component.
fn load(wasm: &wasmtime::Engine, path: &Path) -> Option<wasmtime::Result<Component>> {
    if !is_sealed(path) {
        return None;
    }
    // SAFETY: the file was written by this cache (its seal agrees and cannot be forged by writing the file), of what this host or one with
    // the operator's key compiled, for an engine with this compatibility hash, and stands in a directory that only this user can write.
    #[expect(unsafe_code, reason = "loading native code; see SAFETY")]
    let loaded = unsafe { Component::deserialize_file(wasm, path) };
    match loaded {
        Ok(component) => Some(Ok(component)),
        // To compile it again would change nothing.
        Err(error) if error.to_string().contains(NO_ROOM) => Some(Err(error)),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "a cached component is not usable and is compiled again");
            None
        }
    }
}

/// The component of an artifact that the compiler returned a moment ago, in this process or under the seal of another host.
fn just_made(wasm: &wasmtime::Engine, artifact: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: these bytes come from wasmtime's compiler, with a configuration of the same compatibility hash, which is checked: in this
    // process, or in one that has the operator's key, whose seal over these bytes in memory was checked. Nothing could have changed them.
    #[expect(unsafe_code, reason = "loading native code; see SAFETY")]
    unsafe {
        Component::deserialize(wasm, artifact)
    }
}

/// Writes the artifact under a temporary name, makes it durable, and moves it into place; the seal comes last.
fn write(path: &Path, artifact: &[u8]) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut file = unfinished_in(dir)?;
    file.write_all(artifact)?;
    file.as_file()
        .set_permissions(fs::Permissions::from_mode(0o400))?;
    file.as_file().sync_all()?;
    let kept = file.persist(path).map_err(|error| error.error)?;
    let seal = Seal::of(&kept.metadata()?);
    let mut file = unfinished_in(dir)?;
    file.write_all(seal.to_text().as_bytes())?;
    file.persist(seal_path(path)).map_err(|error| error.error)?;
    Ok(())
}

/// A file that is moved to its name when it is whole.
fn unfinished_in(dir: &Path) -> io::Result<tempfile::NamedTempFile> {
    tempfile::Builder::new()
        .prefix(prune::UNFINISHED)
        .tempfile_in(dir)
}

/// Held while an artifact is compiled. None when locking is not possible, or takes too long: then two may compile the same.
fn lock(path: &Path, waits: impl FnOnce()) -> Option<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    let file = options.open(path.with_extension("lock")).ok()?;
    let started = Instant::now();
    let mut waits = Some(waits);
    loop {
        match file.try_lock() {
            Ok(()) => return Some(file),
            Err(TryLockError::Error(_)) => return None,
            Err(TryLockError::WouldBlock) if started.elapsed() > LOCK_WAIT => {
                tracing::warn!(path = %path.display(), "another process holds a component of the cache for too long");
                return None;
            }
            Err(TryLockError::WouldBlock) => {
                if let Some(waits) = waits.take_if(|_| started.elapsed() > WAIT_TOLD) {
                    waits();
                }
                thread::sleep(LOCK_POLL);
            }
        }
    }
}

fn seal_path(path: &Path) -> PathBuf {
    path.with_extension("seal")
}

impl Seal {
    fn of(meta: &fs::Metadata) -> Self {
        Self {
            inode: meta.ino(),
            n_bytes: meta.len(),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }

    fn to_text(&self) -> String {
        let (secs, nanos) = self.changed;
        format!("{} {} {secs}.{nanos}", self.inode, self.n_bytes)
    }
}

struct Sha256Hasher(Sha256);

impl Hasher for Sha256Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        unreachable!("bug: the digest is taken from the inner hasher")
    }
}

#[cfg(test)]
mod tests {
    use super::lock;

    /// A host waited for up to two minutes and said nothing. The test ends when it is told.
    #[test]
    fn waiting_for_another_process_is_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.cwasm");
        let mut n_told = 0;
        let held = lock(&path, || n_told += 1).unwrap();
        assert_eq!(n_told, 0);
        let released = move || {
            n_told += 1;
            drop(held);
            assert_eq!(n_told, 1);
        };
        assert!(lock(&path, released).is_some());
    }
}
