//! What counts as a change of the sources, and what does not.

use std::fs;
use std::path::Path;

use super::look;

fn check(change: impl FnOnce(&Path), is_change: bool) {
    let dir = tempfile::tempdir().unwrap();
    let at = |path: &str| dir.path().join(path);
    for folder in ["src/deep", "target/release", "node_modules", ".venv"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    for file in [
        "src/deep/lib.rs",
        "plugin.toml",
        "target/release/a.wasm",
        ".venv/a",
    ] {
        fs::write(at(file), "one").unwrap();
    }
    let before = look(dir.path());
    assert_eq!(before, look(dir.path()));
    change(dir.path());
    assert_eq!(look(dir.path()) != before, is_change, "{before:?}");
}

#[test]
fn changes() {
    check(
        |dir| fs::write(dir.join("src/deep/lib.rs"), "three").unwrap(),
        true,
    );
    check(|dir| fs::write(dir.join("src/new.rs"), "").unwrap(), true);
    check(
        |dir| fs::remove_file(dir.join("plugin.toml")).unwrap(),
        true,
    );
    check(
        |dir| fs::rename(dir.join("src"), dir.join("source")).unwrap(),
        true,
    );
    check(|_| {}, false);
    check(
        |dir| fs::write(dir.join("target/release/b.wasm"), "").unwrap(),
        false,
    );
    check(
        |dir| fs::write(dir.join("node_modules/x"), "").unwrap(),
        false,
    );
    check(|dir| fs::write(dir.join(".venv/a"), "two").unwrap(), false);
    check(|dir| fs::write(dir.join("Cargo.lock"), "").unwrap(), false);
}

#[tokio::test]
async fn a_change_ends_the_wait() {
    let dir = tempfile::tempdir().unwrap();
    let mut sources = super::Sources::note(dir.path());
    fs::write(dir.path().join("new.py"), "").unwrap();
    sources.changed().await;
}
