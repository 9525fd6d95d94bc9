//! What a plugin was granted, carried over to another pin of it.
//!
//! Grants count for a pin, whichever folder it is in: what others may use stays, and gives nothing to anything else.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use zeph_config::{Config, StoreLocation};
use zeph_core::id::{Pin, PluginId};
use zeph_store::{OldGrants, Store, StoreError};

use super::names;

/// The name of the file of known folders, behind that of the store.
const FOLDERS_SUFFIX: &str = ".plugin-folders";

/// Bytes of that file, at most: some thousand folders.
const FOLDERS_BYTES_MAX: u64 = 128 << 10;

/// Remembers the folders of this run beside a store in a file: to be called where a plugin in one of them is granted something, since other
/// commands do not know those that were typed with this one. Blocks.
///
/// Shape:  one real path a line.
/// Limits: 128 KiB; what is not remembered is known to the commands that it is typed with.
pub fn remember_folders(config: &Config) {
    let Some(file) = folders_file(config) else {
        return;
    };
    let (known, n_bytes) = remembered(config);
    let mut lines = Vec::new();
    for folder in &config.plugins.folders {
        let Ok(folder) = folder.canonicalize() else {
            continue;
        };
        let path = folder.as_os_str().as_bytes();
        if !known.contains(&folder) && !path.contains(&b'\n') {
            lines.extend_from_slice(path);
            lines.push(b'\n');
        }
    }
    if lines.is_empty() || n_bytes + lines.len() as u64 > FOLDERS_BYTES_MAX {
        return;
    }
    let mut options = OpenOptions::new();
    let opened = options.append(true).create(true).mode(0o600).open(&file);
    if let Err(error) = opened.and_then(|mut opened| opened.write_all(&lines)) {
        let path = file.display();
        tracing::warn!(%error, %path, "folders of plugins cannot be remembered");
    }
}

/// The folders that are remembered, whether they are still there or not, and the bytes of their file.
fn remembered(config: &Config) -> (Vec<PathBuf>, u64) {
    let mut text = Vec::new();
    let opened = folders_file(config).and_then(|file| File::open(file).ok());
    let read = opened.map(|file| file.take(FOLDERS_BYTES_MAX).read_to_end(&mut text));
    if !matches!(read, Some(Ok(_))) {
        return (Vec::new(), 0);
    }
    let lines = text
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let folders = lines.map(|line| PathBuf::from(OsStr::from_bytes(line)));
    (folders.collect(), text.len() as u64)
}

/// Where folders are remembered; none where there is no file of the store, or where others use it, too.
fn folders_file(config: &Config) -> Option<PathBuf> {
    let mut name = config.store.path()?.as_os_str().to_owned();
    name.push(FOLDERS_SUFFIX);
    Some(name.into())
}

/// Whether something else than the plugin in `folder` may use what `name` was granted as `pin`: on a server every other host, because only it
/// knows its folders; beside a file what another folder pins, of this run or of one in which something was granted. Blocks.
///
/// Shape: folders are the same whichever their names are; one that cannot be read may.
pub fn is_used_elsewhere(config: &Config, (name, pin): (&PluginId, Pin), folder: &Path) -> bool {
    if matches!(config.store, StoreLocation::Server(_)) {
        return true;
    }
    let real = |folder: &Path| {
        let real = folder.canonicalize();
        real.unwrap_or_else(|_| folder.to_owned())
    };
    let own = real(folder);
    let (remembered, _) = remembered(config);
    let folders = config.plugins.folders.iter().chain(&remembered);
    let others: Vec<PathBuf> = folders
        .map(|folder| real(folder))
        .filter(|folder| *folder != own)
        .collect();
    if others.is_empty() {
        return false;
    }
    let Ok(known) = names::removable(&others) else {
        return true;
    };
    let mut others = known.iter();
    others.any(|other| other.name == *name && other.pin() == Some(pin))
}

/// Lets what the plugin in `folder` was granted as `old` count for `new`, after that is pinned.
///
/// Errors: [`StoreError`]; then nothing is carried over.
pub async fn carry(
    (config, store): (&Config, &Store),
    folder: &Path,
    name: &PluginId,
    (old, new): (Pin, Pin),
) -> Result<(), StoreError> {
    let stay = match is_used_elsewhere(config, (name, old), folder) {
        true => OldGrants::Stay,
        false => OldGrants::Go,
    };
    let bound = store.rebind_grants(name.clone(), Some(old), new, stay);
    bound.await.map(drop)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use zeph_config::StoreLocation;

    use super::super::tests::World;
    use super::{FOLDERS_BYTES_MAX, folders_file, remember_folders, remembered};

    #[test]
    fn a_folder_is_remembered_once_whichever_its_name_is() {
        let mut world = World::new();
        let home = world.home.clone();
        symlink("notes", home.join("alias")).unwrap();
        world.config.store = StoreLocation::File(home.join("zeph.db"));
        let names = ["notes", "alias", "missing", "work"];
        for n_named in 1..=names.len() {
            let named = names.iter().take(n_named).map(|name| home.join(name));
            world.config.plugins.folders = named.collect();
            remember_folders(&world.config);
        }
        let (folders, _) = remembered(&world.config);
        assert_eq!(folders, [home.join("notes"), home.join("work")]);
        // There is an end to it.
        let file = folders_file(&world.config).unwrap();
        let full = "x".repeat(FOLDERS_BYTES_MAX.try_into().unwrap());
        std::fs::write(&file, &full).unwrap();
        remember_folders(&world.config);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), full);
    }
}
