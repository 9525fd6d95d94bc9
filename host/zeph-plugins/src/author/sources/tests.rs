//! What counts as a change of the sources, and what does not.

use std::fs;
use std::path::Path;

use super::look;

const FILES: [&str; 10] = [
    "src/deep/lib.rs",
    "src/build/mod.rs",
    "src/target/dist.rs",
    ".cargo/config.toml",
    "plugin.toml",
    "target/release/a.wasm",
    "node_modules/a.js",
    ".venv/a",
    "fuzz/target/CACHEDIR.TAG",
    "fuzz/target/debug/a.wasm",
];

fn check(change: impl FnOnce(&Path), is_change: bool) {
    let dir = tempfile::tempdir().unwrap();
    for file in FILES {
        let path = dir.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "one").unwrap();
    }
    let before = look(dir.path());
    assert_eq!(before, look(dir.path()));
    change(dir.path());
    assert_eq!(look(dir.path()) != before, is_change, "{before:?}");
}

#[test]
fn what_is_written_is_a_change_where_people_write() {
    for (file, is_change) in [
        ("src/deep/lib.rs", true),
        ("src/new.rs", true),
        ("src/build/mod.rs", true),
        ("src/build/new.rs", true),
        ("src/target/dist.rs", true),
        ("src/dist", true),
        (".cargo/config.toml", true),
        ("target/release/b.wasm", false),
        ("fuzz/target/debug/a.wasm", false),
        ("node_modules/x", false),
        (".venv/a", false),
        ("Cargo.lock", false),
    ] {
        check(|dir| fs::write(dir.join(file), "three").unwrap(), is_change);
    }
}

#[test]
fn what_is_moved_or_removed_is_a_change() {
    check(|_| {}, false);
    check(
        |dir| fs::remove_file(dir.join("plugin.toml")).unwrap(),
        true,
    );
    check(
        |dir| fs::rename(dir.join("src"), dir.join("source")).unwrap(),
        true,
    );
}

#[tokio::test]
async fn a_change_ends_the_wait() {
    let dir = tempfile::tempdir().unwrap();
    let mut sources = super::Sources::note(dir.path());
    fs::write(dir.path().join("new.py"), "").unwrap();
    sources.changed().await;
}
