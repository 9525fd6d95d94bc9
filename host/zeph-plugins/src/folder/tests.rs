use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::{FILES_MAX, QUIET, ReadError, everything, read, scan, unused};

fn names(folder: &std::path::Path) -> Vec<(String, bool)> {
    let found = scan(folder).unwrap();
    found
        .into_iter()
        .map(|found| (found.name.0, found.stamp.is_ok()))
        .collect()
}

#[test]
fn only_wasm_files_count_and_each_has_a_verdict() {
    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str| fs::write(dir.path().join(name), "x").unwrap();
    for name in [
        "b.wasm",
        "a-1.wasm",
        "Upper.wasm",
        "x.cwasm",
        "notes.txt",
        ".hidden.wasm",
        "wasm",
    ] {
        put(name);
    }
    fs::create_dir(dir.path().join("dir.wasm")).unwrap();
    std::os::unix::fs::symlink("b.wasm", dir.path().join("link.wasm")).unwrap();
    std::os::unix::fs::symlink("nowhere", dir.path().join("dangling.wasm")).unwrap();
    let name = |text: &str, ok| (text.to_owned(), ok);
    assert_eq!(
        names(dir.path()),
        [
            name(".hidden", false),
            name("Upper", false),
            name("a-1", true),
            name("b", true),
            name("dangling", false),
            name("dir", false),
            name("link", true),
        ]
    );
}

/// A name that was folded or cut would hide the file whose name it became.
#[test]
fn a_file_never_has_the_name_of_another() {
    let dir = tempfile::tempdir().unwrap();
    let long = "n".repeat(60);
    let others = [
        " count".to_owned(),
        "count ".to_owned(),
        "count\u{a0}".to_owned(),
        "co\u{200b}unt".to_owned(),
        "count\n".to_owned(),
        "count.wasm".to_owned(),
        long.clone(),
        format!("{long}n"),
    ];
    for name in others.iter().map(String::as_str).chain(["count"]) {
        fs::write(dir.path().join(format!("{name}.wasm")), "x").unwrap();
    }
    let mut found = names(dir.path());
    let good: Vec<_> = found.iter().filter(|(_, is_good)| *is_good).collect();
    assert_eq!(good, [&("count".to_owned(), true)]);
    let n_files = found.len();
    found.sort();
    found.dedup();
    assert_eq!((found.len(), n_files), (others.len() + 1, others.len() + 1));
}

/// What makes a folder unusable must not keep its operator from removing it.
#[test]
fn a_folder_that_is_not_used_is_listed_to_remove_from_it() {
    let dir = tempfile::tempdir().unwrap();
    for n in 0..=FILES_MAX {
        fs::write(dir.path().join(format!("p{n}.wasm")), "x").unwrap();
    }
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(scan(dir.path()).is_err());
    assert_eq!(everything(dir.path()).unwrap().len(), FILES_MAX + 1);
    assert!(everything(&dir.path().join("nothing")).unwrap().is_empty());
}

#[test]
fn a_folder_that_is_not_there_is_empty_and_one_for_everybody_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    assert!(scan(&dir.path().join("nothing")).unwrap().is_empty());
    let open = dir.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let problem = scan(&open).unwrap_err();
    assert!(problem.contains("chmod o-w"), "{problem}");
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(scan(&file).is_err());
}

#[test]
fn a_file_that_changed_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.wasm");
    fs::write(&path, "one").unwrap();
    let stamp = scan(dir.path()).unwrap().remove(0).stamp.unwrap();
    assert_eq!(&*read(&path, &stamp).unwrap(), b"one");
    fs::write(&path, "three").unwrap();
    assert!(matches!(read(&path, &stamp), Err(ReadError::Changing)));
    fs::remove_file(&path).unwrap();
    assert!(matches!(read(&path, &stamp), Err(ReadError::Io(_))));
}

#[test]
fn a_file_is_fresh_for_a_moment() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.wasm"), "one").unwrap();
    let stamp = scan(dir.path()).unwrap().remove(0).stamp.unwrap();
    let (secs, nanos) = stamp.changed;
    let changed_ms = secs * 1000 + nanos / 1_000_000;
    let quiet_ms = i64::try_from(QUIET.as_millis()).unwrap();
    assert!(stamp.is_fresh(changed_ms));
    assert!(!stamp.is_fresh(changed_ms + quiet_ms));
    assert!(!stamp.is_fresh(changed_ms - 1000));
}

#[test]
fn plugins_that_lie_here_are_mentioned_with_the_line_that_uses_them() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path().canonicalize().unwrap();
    let plugins = here.join("plugins");
    fs::create_dir(&plugins).unwrap();
    assert_eq!(unused(&here, &[]), None);
    fs::write(plugins.join("x.wasm"), "").unwrap();
    let note = unused(&here, &[]).unwrap();
    for words in [
        "holds a plugin that is not used",
        "`--plugins plugins`",
        &format!("folders = [\"{}\"]", plugins.display()),
    ] {
        assert!(note.contains(words), "{note}");
    }
    fs::write(plugins.join("y.wasm"), "").unwrap();
    assert!(unused(&here, &[]).unwrap().contains("holds 2 plugins"));
    assert_eq!(unused(&here, &[plugins]), None);
    assert_eq!(unused(&here.join("elsewhere"), &[]), None);
}
