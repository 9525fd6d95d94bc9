//! Changes that the system reports of no folder that is watched.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::timeout;
use zeph_config::lock_of;

use super::Watcher;

/// Longer than any look takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// What `change` does is noticed in the folder that `made` names.
async fn check(made: impl FnOnce(&Path) -> PathBuf, change: impl FnOnce(&Path)) {
    let dir = tempfile::tempdir().unwrap();
    let folder = made(dir.path());
    fs::write(lock_of(&folder), "").unwrap();
    let mut watcher = Watcher::start(std::slice::from_ref(&folder));
    // The watch begins, and what it began with is no change.
    timeout(PATIENCE, watcher.changed()).await.unwrap();
    assert!(!watcher.watch_more() && !watcher.links_changed());
    change(dir.path());
    timeout(PATIENCE, watcher.changed()).await.unwrap();
}

#[tokio::test]
async fn the_file_behind_a_link_is_followed() {
    let linked = |dir: &Path| {
        let folder = dir.join("folder");
        fs::create_dir_all(&folder).unwrap();
        fs::write(dir.join("built.wasm"), "one").unwrap();
        symlink(dir.join("built.wasm"), folder.join("a.wasm")).unwrap();
        folder
    };
    check(linked, |dir| {
        fs::write(dir.join("built.wasm"), "three").unwrap();
    })
    .await;
    check(linked, |dir| {
        fs::remove_file(dir.join("built.wasm")).unwrap();
    })
    .await;
}

#[tokio::test]
async fn another_folder_at_the_same_path_is_followed() {
    check(
        |dir| {
            for release in ["first", "second"] {
                fs::create_dir(dir.join(release)).unwrap();
            }
            symlink("first", dir.join("folder")).unwrap();
            dir.join("folder")
        },
        |dir| {
            symlink("second", dir.join("new")).unwrap();
            fs::rename(dir.join("new"), dir.join("folder")).unwrap();
        },
    )
    .await;
    check(
        |dir| {
            for app in ["app", "app.new"] {
                fs::create_dir_all(dir.join(app).join("folder")).unwrap();
            }
            dir.join("app/folder")
        },
        |dir| {
            fs::rename(dir.join("app"), dir.join("app.old")).unwrap();
            fs::rename(dir.join("app.new"), dir.join("app")).unwrap();
        },
    )
    .await;
}
