use super::*;

fn named(programs: &[&str]) -> Programs {
    let named = programs
        .iter()
        .map(|name| ((*name).to_owned(), "x.js".to_owned()));
    Programs::Named(named.collect())
}

#[test]
fn the_program_is_chosen_as_npx_does() {
    let one = Programs::One("x.js".to_owned());
    for (package, programs, expect) in [
        ("server", Some(one), Ok("server")),
        (
            "@scope/server",
            Some(Programs::One("x.js".to_owned())),
            Ok("server"),
        ),
        ("@scope/server", Some(named(&["run"])), Ok("run")),
        (
            "@scope/server",
            Some(named(&["other", "server"])),
            Ok("server"),
        ),
        (
            "server",
            Some(named(&["a", "b"])),
            Err("several programs: a, b"),
        ),
        ("server", Some(named(&[])), Err("several programs")),
        ("server", None, Err("has no program")),
    ] {
        match (program_of(package, programs.as_ref()), expect) {
            (Ok(found), Ok(expect)) => assert_eq!(found, expect, "{package}"),
            (Err(problem), Err(expect)) => assert!(problem.contains(expect), "{problem}"),
            other => panic!("{package}: {other:?}"),
        }
    }
}

/// What a registry says of where a package lies does not count, what is in it does.
#[test]
fn the_digest_is_over_contents() {
    let folder = tempfile::tempdir().unwrap();
    let digest = |text: &str| {
        let path = folder.path().join("package-lock.json");
        fs::write(&path, text).unwrap();
        of_lock(&path)
    };
    let lock = |integrity: &str, resolved: &str| {
        digest(&format!(
            r#"{{"name":"x","packages":{{"":{{"name":"x"}},"node_modules/a":{{"version":"1.0.0","resolved":"{resolved}","integrity":"{integrity}"}}}}}}"#
        ))
        .unwrap()
    };
    let first = lock("sha512-a", "https://one.example/a.tgz");
    assert!(first.starts_with("sha256:"));
    assert_eq!(first, lock("sha512-a", "https://two.example/a.tgz"));
    assert_ne!(first, lock("sha512-b", "https://one.example/a.tgz"));
    assert_ne!(
        lock("", "https://one.example/a.tgz"),
        lock("", "https://two.example/a.tgz")
    );
    assert!(digest("{").is_err());
}

#[test]
fn a_program_that_is_not_there_or_is_a_path_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("node_modules/.bin");
    fs::create_dir_all(&bin).unwrap();
    fs::write(bin.join("server"), "").unwrap();
    assert!(link(folder.path(), "server").is_ok());
    for program in ["other", "../.bin/server", "..", ".", ""] {
        assert!(link(folder.path(), program).is_err(), "{program}");
    }
}
