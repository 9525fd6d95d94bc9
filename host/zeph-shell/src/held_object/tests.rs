use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::{FollowedName, HeldObject};

fn room() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    fs::create_dir_all(path.join("a/b")).unwrap();
    fs::write(path.join("a/file"), "x").unwrap();
    (folder, path)
}

/// Ways to have another object at `a/b` or `a/file`.
#[test]
fn a_swapped_path_gives_nothing() {
    type Swap = fn(&PathBuf);
    let swaps: [(&str, Swap); 6] = [
        ("a/b", |path| {
            fs::remove_dir(path.join("a/b")).unwrap();
            symlink("/", path.join("a/b")).unwrap();
        }),
        ("a/b", |path| {
            fs::rename(path.join("a"), path.join("c")).unwrap();
            symlink("c", path.join("a")).unwrap();
        }),
        ("a/b", |path| {
            fs::rename(path.join("a/b"), path.join("c")).unwrap();
            fs::create_dir(path.join("a/b")).unwrap();
        }),
        ("a/b", |path| {
            fs::remove_dir(path.join("a/b")).unwrap();
            fs::create_dir(path.join("a/b")).unwrap();
        }),
        ("a/file", |path| {
            fs::remove_file(path.join("a/file")).unwrap();
            fs::create_dir(path.join("a/file")).unwrap();
        }),
        ("a/file", |path| {
            fs::write(path.join("new"), "y").unwrap();
            fs::rename(path.join("new"), path.join("a/file")).unwrap();
        }),
    ];
    for (name, swap) in swaps {
        let (_folder, path) = room();
        let held = HeldObject::open(&path.join(name)).unwrap();
        assert!(held.stands(), "{name}");
        swap(&path);
        assert!(!held.stands(), "{name}");
    }
}

#[test]
fn a_link_on_the_way_is_not_followed() {
    let (_folder, path) = room();
    symlink("a", path.join("link")).unwrap();
    assert!(HeldObject::open(&path.join("link")).is_err());
    assert!(HeldObject::open(&path.join("link/b")).is_err());
}

#[test]
fn what_was_moved_away_is_found_and_so_is_what_took_its_place() {
    let (_folder, path) = room();
    let secret = path.join("a/file");
    let followed = FollowedName::new(&secret);
    fs::rename(path.join("a"), path.join("c")).unwrap();
    assert_eq!(followed.places(), [secret.clone(), path.join("c/file")]);
    fs::create_dir(path.join("a")).unwrap();
    fs::write(&secret, "new").unwrap();
    fs::rename(path.join("c/file"), path.join("d")).unwrap();
    assert_eq!(followed.places(), [secret.clone(), path.join("d")]);
    fs::rename(&secret, path.join("e")).unwrap();
    fs::remove_file(path.join("d")).unwrap();
    assert_eq!(followed.places(), [secret, path.join("e")]);
}
