//! Which private files a run opened, in every jail and in none.

use zeph_core::execution::{PRIVATE_FILES_MAX, PrivateFile};
use zeph_core::policy::PrivatePaths;

use super::super::*;
use super::harness::{Room, run};

fn room() -> Room {
    let mut room = Room::new();
    let private = ["**/.env".to_owned(), "**/customers".to_owned()];
    room.policy.private = Arc::new(PrivatePaths::new(&private).unwrap());
    room.host("mkdir -p a/b customers/one && echo key > a/b/.env && echo name > customers/one/file && echo x > plain");
    room.host("ln -s a/b/.env link");
    room
}

fn jails(room: &Room) -> [Jail; 3] {
    let none = JailPolicy {
        mode: Mode::Disabled,
        ..room.policy.clone()
    };
    [
        room.jail(),
        Jail::without_namespaces(room.policy.clone()),
        Jail::new(none),
    ]
}

#[test]
fn a_run_tells_which_private_file_was_opened() {
    let room = room();
    for jail in jails(&room) {
        for (script, expect) in [
            ("true", None),
            (
                "cat plain; find . -name .env; ls -la a/b; stat a/b/.env",
                None,
            ),
            ("cat a/b/.env", Some("a/b/.env")),
            ("grep -r key a", Some("a/b/.env")),
            ("cat link", Some("a/b/.env")),
            (
                "cd a/b; ln .env other && cat other; rm -f other",
                Some("a/b/.env"),
            ),
            ("cat customers/*/*", Some("customers/one/file")),
        ] {
            let end = run(&jail, &room.work, script);
            let expect = expect.map(|path| room.work.join(path).to_string_lossy().into_owned());
            assert_eq!(
                end.private_files,
                Vec::from_iter(expect.map(PrivateFile::Opened)),
                "{script}: {:?}",
                jail.label()
            );
        }
    }
}

/// What one file was released for, another one is not.
#[test]
fn a_run_tells_of_all_private_files_that_were_opened() {
    let room = room();
    for jail in jails(&room) {
        let end = run(
            &jail,
            &room.work,
            "cat a/b/.env customers/one/file a/b/.env",
        );
        let all = ["a/b/.env", "customers/one/file"].map(|path| room.work.join(path));
        let all = all.map(|path| PrivateFile::Opened(path.to_string_lossy().into_owned()));
        assert_eq!(end.private_files, all, "{:?}", jail.label());
        // Beyond the most there may be, one stands for the others.
        let many = "cd customers; for n in {1..99}; do echo > $n; done; cat [1-9]*";
        let end = run(&jail, &room.work, many);
        assert_eq!(end.private_files.len(), PRIVATE_FILES_MAX + 1);
    }
}

/// A directory above has another name then, and the file is private by the old one alone.
#[test]
fn a_private_file_that_moves_with_a_directory_is_told() {
    for (script, expect) in [
        ("mv conf other", Some("conf/keys/one")),
        ("perl -e 'rename q(conf), q(other)'", Some("conf/keys/one")),
        ("mv conf/keys other", Some("conf/keys/one")),
        ("mv conf other; mv other conf", None),
        ("rm -r conf", None),
        ("mv a other", None),
    ] {
        let mut room = room();
        let fixed = room.work.join("conf/keys/one");
        let private = ["**/.env".to_owned(), fixed.to_string_lossy().into_owned()];
        room.policy.private = Arc::new(PrivatePaths::new(&private).unwrap());
        room.host("mkdir -p conf/keys && echo key > conf/keys/one");
        let end = run(&room.jail(), &room.work, script);
        let expect = expect.map(|path| room.work.join(path).to_string_lossy().into_owned());
        assert_eq!(
            end.private_files,
            Vec::from_iter(expect.map(PrivateFile::Opened)),
            "{script}"
        );
    }
}

#[test]
fn what_could_not_be_looked_through_is_told_apart() {
    let room = room();
    room.host("mkdir many && cd many && seq 20000 | xargs touch && mkdir -p ../node_modules/x && touch ../node_modules/x/.env");
    let end = run(&room.jail(), &room.work, "cat plain");
    let many = room.work.join("many").to_string_lossy().into_owned();
    assert_eq!(end.private_files, [PrivateFile::Unknown(many)]);
    room.host("rm -r many; cd node_modules/x && seq 20000 | xargs touch");
    // The survey before was one of many entries, and holds for a while.
    let end = run(&room.jail(), &room.work, "cat plain");
    assert_eq!(end.private_files, []);
}
