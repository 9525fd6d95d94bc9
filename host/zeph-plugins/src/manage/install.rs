//! Into the folder of plugins: whether a name is free, and a copy that is there whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use zeph_core::id::{Digest, PluginId};
use zeph_engine::ComponentBytes;

use super::ManageError;
use super::names::KnownPlugin;
use super::sync::{SeenPlugin, only_one};
use crate::folder::FILES_MAX;
use crate::signature::{FoundSignatures, SignatureFile};

/// What stands where a component is to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstallTarget {
    /// Nothing.
    Free(PathBuf),
    /// The very same file.
    Same(PathBuf),
    /// Another, which is to be replaced.
    Taken(PathBuf),
}

/// Whether what has the name may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    /// Only the same may be there.
    No,
    /// It is meant.
    Yes,
}

impl InstallTarget {
    /// The file.
    pub fn file(&self) -> &Path {
        match self {
            Self::Free(file) | Self::Same(file) | Self::Taken(file) => file,
        }
    }

    /// What stands there under this name, for who agrees to put a component with the digest `wasm` there. Blocks.
    pub fn seen(&self, name: &PluginId, wasm: Digest, known: &[KnownPlugin]) -> SeenPlugin {
        let folder = self.file().parent();
        let mut known = known.iter();
        let there = known.find(|known| known.name == *name && Some(&*known.folder) == folder);
        let pinned = there.and_then(|known| known.locked.as_ref());
        SeenPlugin {
            pin: pinned.map(|locked| locked.pin),
            wasm: match self {
                Self::Free(_) => None,
                Self::Same(_) => Some(wasm),
                Self::Taken(file) => {
                    let bytes = ComponentBytes::read(file).ok();
                    bytes.map(|bytes| zeph_engine::digest(&bytes))
                }
            },
        }
    }
}

/// Where a component with this digest goes under this name: into `folder`, or over what has the name.
///
/// Errors: `Exists` and `Pinned` when another plugin has the name and may not be replaced; `Full`; `Off`.
pub fn place(
    name: &PluginId,
    wasm: Digest,
    known: &[KnownPlugin],
    folder: Option<&Path>,
    replace: Replace,
) -> Result<InstallTarget, ManageError> {
    let folder = folder.ok_or(ManageError::Off)?;
    let mut of_name = known.iter().filter(|known| known.name == *name);
    let file = of_name.clone().find_map(|known| known.file.clone());
    if let Some(file) = file {
        return match (is_same(&file, wasm), replace) {
            (true, _) => Ok(InstallTarget::Same(file)),
            (false, Replace::Yes) => Ok(InstallTarget::Taken(file)),
            (false, Replace::No) => Err(ManageError::Exists {
                name: name.clone(),
                file,
            }),
        };
    }
    let is_other = |known: &KnownPlugin| {
        let locked = known.locked.as_ref();
        known.folder == folder && locked.is_some_and(|locked| locked.pin.wasm != wasm)
    };
    if replace == Replace::No && of_name.any(is_other) {
        return Err(ManageError::Pinned(name.clone()));
    }
    let here = known.iter().filter(|known| known.folder == folder);
    if here.filter(|known| known.file.is_some()).count() >= FILES_MAX {
        return Err(ManageError::Full(folder.to_owned()));
    }
    Ok(InstallTarget::Free(folder.join(format!("{name}.wasm"))))
}

fn is_same(file: &Path, wasm: Digest) -> bool {
    ComponentBytes::read(file).is_ok_and(|bytes| zeph_engine::digest(&bytes) == wasm)
}

/// Puts `bytes` with their signatures where `place` says, while other commands that change the folder wait. Blocks, for some seconds where
/// another one changes it.
///
/// Errors: `Busy`, `File`; what was there stays, but some of its signatures may be missing.
pub fn put(
    bytes: &[u8],
    found: &FoundSignatures,
    place: &InstallTarget,
) -> Result<(), ManageError> {
    let folder = folder_of(place.file());
    make(folder).map_err(|source| ManageError::File {
        operation: "make",
        path: folder.to_owned(),
        source,
    })?;
    let _only_one = only_one(folder)?;
    // Those of the component that was there would have this one refused.
    copy_signatures(found, place)?;
    copy(bytes, place)
}

/// Puts `bytes` where `place` says. A host that looks meanwhile sees the old or the new, whole.
///
/// Errors: `File`; then nothing is changed, but that the folder may have been made.
fn copy(bytes: &[u8], place: &InstallTarget) -> Result<(), ManageError> {
    let (target, replace) = match place {
        InstallTarget::Same(_) => return Ok(()),
        InstallTarget::Free(target) => (target, Replace::No),
        InstallTarget::Taken(target) => (target, Replace::Yes),
    };
    write(bytes, target, replace).map_err(|source| ManageError::File {
        operation: "write",
        path: target.clone(),
        source,
    })
}

/// Puts the signatures of the component that goes there beside it, before it: a look at the component finds them. Those of
/// another component are removed.
///
/// Errors: `File`; then some of them may be missing, and the component is not there yet.
pub fn copy_signatures(found: &FoundSignatures, place: &InstallTarget) -> Result<(), ManageError> {
    let component = place.file();
    // What is the same keeps what vouches for it.
    if matches!(place, InstallTarget::Same(_)) && found.is_empty() {
        return Ok(());
    }
    for file in SignatureFile::ALL {
        let path = file.beside(component);
        let (operation, done) = match found.get(file) {
            Some(bytes) => ("write", write(bytes, &path, Replace::Yes)),
            None => ("delete", removed(&path)),
        };
        done.map_err(|source| ManageError::File {
            operation,
            path,
            source,
        })?;
    }
    Ok(())
}

/// Removes a file that may not be there.
pub(super) fn removed(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new("."))
}

/// One that everybody may write into would not be looked at.
fn make(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o755).create(folder)
}

fn write(bytes: &[u8], target: &Path, replace: Replace) -> io::Result<()> {
    let folder = folder_of(target);
    make(folder)?;
    // Its name does not end in `.wasm`, so that no host takes it for a plugin.
    let mut temporary = tempfile::Builder::new()
        .prefix(".adding-")
        .tempfile_in(folder)?;
    temporary.write_all(bytes)?;
    temporary.as_file().sync_all()?;
    match replace {
        Replace::Yes => temporary.persist(target),
        Replace::No => temporary.persist_noclobber(target),
    }
    .map_err(|error| error.error)?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests;
