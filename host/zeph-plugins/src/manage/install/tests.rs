use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use zeph_core::id::{Pin, PluginId};
use zeph_engine::digest;

use super::{InstallTarget, Replace, copy, place, put};
use crate::definitions::Definitions;
use crate::lock::LockedPlugin;
use crate::manage::ManageError;
use crate::manage::names::KnownPlugin;
use crate::signature::FoundSignatures;

const NEW: &[u8] = b"new";
const OLD: &[u8] = b"old";

struct Folders {
    _dir: tempfile::TempDir,
    both: [PathBuf; 2],
}

impl Folders {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let both = [dir.path().join("a/plugins"), dir.path().join("b/plugins")];
        both.iter()
            .for_each(|folder| fs::create_dir_all(folder).unwrap());
        Self { _dir: dir, both }
    }

    /// Something named `x`, with a file and a pin of this content.
    fn known(&self, folder_idx: usize, file: Option<&[u8]>, pin: Option<&[u8]>) -> KnownPlugin {
        let name = PluginId("x".to_owned());
        let folder = self.both[folder_idx].clone();
        KnownPlugin {
            file: file.map(|bytes| {
                let path = folder.join("x.wasm");
                fs::write(&path, bytes).unwrap();
                path
            }),
            locked: pin.map(|bytes| LockedPlugin {
                name: name.clone(),
                file: "x.wasm".to_owned(),
                pin: Pin {
                    wasm: digest(bytes),
                    tools: digest(b""),
                },
                accepted_at_ms: 0,
                disabled: false,
                operator_wants: false,
                provenance: None,
                next: None,
                definitions: Definitions::default(),
            }),
            name,
            folder,
        }
    }

    fn place(&self, known: &[KnownPlugin], replace: Replace) -> Result<InstallTarget, ManageError> {
        place(
            &PluginId("x".to_owned()),
            digest(NEW),
            known,
            self.both.last().map(PathBuf::as_path),
            replace,
        )
    }
}

#[test]
fn a_name_is_taken_by_what_has_it() {
    let folders = Folders::new();
    let [first, last] = folders.both.each_ref().map(|folder| folder.join("x.wasm"));
    let free = InstallTarget::Free(last.clone());
    for replace in [Replace::No, Replace::Yes] {
        let other = KnownPlugin {
            name: PluginId("y".to_owned()),
            ..folders.known(1, None, Some(OLD))
        };
        assert_eq!(folders.place(&[other], replace).unwrap(), free);
        let known = [folders.known(1, None, Some(NEW))];
        assert_eq!(
            folders.place(&known, replace).unwrap(),
            free,
            "its pin is known"
        );
        let known = [folders.known(0, Some(NEW), Some(OLD))];
        assert_eq!(
            folders.place(&known, replace).unwrap(),
            InstallTarget::Same(first.clone())
        );
    }
    let known = [folders.known(0, Some(OLD), None)];
    assert!(matches!(
        folders.place(&known, Replace::No),
        Err(ManageError::Exists { .. })
    ));
    assert_eq!(
        folders.place(&known, Replace::Yes).unwrap(),
        InstallTarget::Taken(first)
    );
    let known = [folders.known(1, None, Some(OLD))];
    assert!(matches!(
        folders.place(&known, Replace::No),
        Err(ManageError::Pinned(_))
    ));
    assert_eq!(folders.place(&known, Replace::Yes).unwrap(), free);
}

#[test]
fn a_copy_never_overwrites_what_came_meanwhile() {
    let folders = Folders::new();
    let target = folders.both[1].join("deeper/x.wasm");
    copy(NEW, &InstallTarget::Free(target.clone())).unwrap();
    assert_eq!(fs::read(&target).unwrap(), NEW);
    copy(OLD, &InstallTarget::Free(target.clone())).unwrap_err();
    assert_eq!(fs::read(&target).unwrap(), NEW);
    copy(OLD, &InstallTarget::Taken(target.clone())).unwrap();
    assert_eq!(fs::read(&target).unwrap(), OLD);
    let left: Vec<_> = fs::read_dir(target.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn nothing_is_put_in_place_while_another_command_changes_the_folder() {
    let folders = Folders::new();
    let folder = folders.both[1].join("new/plugins");
    let signed = FoundSignatures {
        minisign: Some(b"signature".to_vec()),
        ..FoundSignatures::default()
    };
    let target = InstallTarget::Free(folder.join("x.wasm"));
    let names = || {
        let entries = fs::read_dir(&folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    };
    // The guard cannot be had.
    let guard = folder.with_file_name(".zeph.sync.guard");
    fs::create_dir(folder.parent().unwrap()).unwrap();
    symlink("nowhere", &guard).unwrap();
    put(NEW, &signed, &target).unwrap_err();
    assert!(names().is_empty());
    fs::remove_file(&guard).unwrap();
    put(NEW, &signed, &target).unwrap();
    assert_eq!(names(), ["x.wasm", "x.wasm.minisig"]);
}
