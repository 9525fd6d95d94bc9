use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::thread;

use super::{Keyring, KeyringError, SecretFolder, SecretPlace, SecretRecord, SecretsError};
use crate::logins::LoginFolder;

fn folder() -> (tempfile::TempDir, SecretFolder) {
    let dir = tempfile::tempdir().unwrap();
    let folder = SecretFolder::new(dir.path().join("deep/secrets"));
    (dir, folder)
}

fn names(folder: &SecretFolder) -> Vec<String> {
    let secrets = folder.read().unwrap().into_iter();
    secrets.map(|secret| secret.name).collect()
}

#[test]
fn a_secret_is_set_replaced_and_removed() {
    let (_dir, folder) = folder();
    assert_eq!(names(&folder), [""; 0]);
    assert!(folder.stamp().is_none());
    assert!(!folder.set("B", "value one", 1).unwrap().has_replaced);
    let first = folder.stamp();
    assert!(folder.set("B", "value two", 2).unwrap().has_replaced);
    assert_ne!(folder.stamp(), first);
    assert!(!folder.set("A", "value", 3).unwrap().has_replaced);
    assert_eq!(names(&folder), ["A", "B"]);
    let read = folder.read().unwrap();
    assert_eq!(
        (read[1].value.as_str(), read[1].created_at_ms),
        ("value two", 2)
    );
    assert!(!format!("{read:?}").contains("value"));
    assert!(folder.remove("B").unwrap() && !folder.remove("B").unwrap());
    assert_eq!(names(&folder), ["A"]);
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(folder.file()), 0o600);
    assert_eq!(mode(folder.file().parent().unwrap().to_owned()), 0o700);
}

#[test]
fn concurrent_changes_lose_nothing() {
    let (_dir, folder) = folder();
    thread::scope(|scope| {
        for writer in 0..8 {
            let folder = &folder;
            scope.spawn(move || {
                for n in 0..8 {
                    let name = format!("S{writer}-{n}");
                    folder.set(&name, "some value", n).unwrap();
                    if n % 2 == 0 {
                        assert!(folder.remove(&name).unwrap());
                    }
                }
            });
        }
    });
    assert_eq!(names(&folder).len(), 32);
}

#[test]
fn what_others_could_read_or_change_is_refused() {
    let (_dir, folder) = folder();
    folder.set("A", "some value", 1).unwrap();
    let file = folder.file();
    let parent = file.parent().unwrap().to_owned();
    let refused = |why: &str| {
        for result in [
            folder.read().map(drop),
            folder.set("B", "another", 1).map(drop),
        ] {
            let error = result.unwrap_err();
            assert!(
                matches!(error, SecretsError::Exposed { .. }),
                "{why}: {error}"
            );
            assert!(error.hint().is_some());
        }
    };
    fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    refused("a group that reads");
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(&parent, Permissions::from_mode(0o701)).unwrap();
    refused("a folder that is open");
    fs::set_permissions(&parent, Permissions::from_mode(0o700)).unwrap();
    fs::hard_link(&file, parent.join("other")).unwrap();
    refused("a second name");
    fs::rename(parent.join("other"), parent.parent().unwrap().join("moved")).unwrap();
    fs::remove_file(&file).unwrap();
    symlink("../moved", &file).unwrap();
    refused("a link in the place of the file");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    refused("a directory in the place of the file");
    fs::remove_dir(&file).unwrap();
    assert_eq!(names(&folder), [""; 0]);
    fs::rename(&parent, parent.with_extension("real")).unwrap();
    symlink(parent.with_extension("real"), &parent).unwrap();
    refused("a link in the place of the folder");
}

/// A home that is none, as service users have, is no secret that somebody could read.
#[test]
fn below_a_file_there_are_no_secrets() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("null");
    fs::write(&home, "").unwrap();
    for path in [home.join("secrets"), home.join(".local/secrets")] {
        assert_eq!(names(&SecretFolder::new(&path)), [""; 0]);
        let logins = LoginFolder::new(&path);
        assert!(logins.read().unwrap().is_empty());
        let error = SecretFolder::new(&path)
            .set("A", "some value", 1)
            .unwrap_err();
        assert!(matches!(error, SecretsError::File { .. }), "{error}");
    }
    let error = SecretFolder::new(&home).read().unwrap_err();
    let hint = error.hint().unwrap();
    assert!(hint.starts_with("move `"), "{hint}");
}

#[test]
fn a_broken_file_is_reported_without_its_content() {
    let (_dir, folder) = folder();
    folder.set("A", "some value", 1).unwrap();
    for text in [
        "{\"some value\"",
        "{\"version\":2,\"secrets\":{}}",
        "[\"some value\"]",
    ] {
        fs::write(folder.file(), text).unwrap();
        let error = folder.read().unwrap_err();
        assert!(matches!(error, SecretsError::Broken { .. }), "{error}");
        assert!(!error.to_string().contains("some value"), "{error}");
    }
}

#[test]
fn without_a_keyring_the_file_keeps_the_value() {
    let (_dir, folder) = folder();
    for address in ["", "unix:path=/there/is/none", "tcp:host=localhost"] {
        let folder = folder.clone().with_keyring(Keyring::at(address));
        let set = folder.set("A", "some value", 1).unwrap();
        assert_eq!(set.place, SecretPlace::File, "{address}");
        assert_eq!(folder.read().unwrap()[0].value, "some value");
    }
}

#[test]
fn what_a_keyring_has_is_known_by_name_while_it_cannot_be_reached() {
    let (_dir, folder) = folder();
    folder.set("HERE", "some value", 1).unwrap();
    folder.set("THERE", "another", 2).unwrap();
    let text = fs::read_to_string(folder.file()).unwrap();
    let mut file: serde_json::Value = serde_json::from_str(&text).unwrap();
    let there = file["secrets"]["THERE"].as_object_mut().unwrap();
    there.remove("value");
    fs::write(folder.file(), file.to_string()).unwrap();
    let records = folder.list().unwrap();
    let there = SecretRecord {
        name: "THERE".to_owned(),
        place: SecretPlace::Keyring,
        created_at_ms: 2,
    };
    assert_eq!((records.len(), &records[1]), (2, &there));
    let reachable = folder.read_reachable().unwrap();
    assert_eq!(reachable.secrets.len(), 1);
    let problem = reachable.problem.unwrap();
    assert!(
        matches!(problem, SecretsError::Keyring(KeyringError::Absent(_))),
        "{problem}"
    );
    assert!(problem.hint().unwrap().contains("store.keyring = false"));
    assert!(folder.read().is_err());
    // It is not forgotten while its value is still somewhere, and can be set anew.
    assert!(folder.remove("THERE").is_err());
    assert_eq!(folder.list().unwrap().len(), 2);
    folder.set("THERE", "anew", 3).unwrap();
    assert_eq!(names(&folder), ["HERE", "THERE"]);
}
