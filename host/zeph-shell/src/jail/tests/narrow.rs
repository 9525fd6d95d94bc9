//! What the lists of the policy leave out, and names of directories.

use std::os::unix::fs::symlink;

use super::super::*;
use super::harness::{Room, run};

fn room() -> Room {
    let room = Room::new();
    room.host("git init -q . && mkdir -p src build/sub doc && echo x > src/main && echo doc > doc/text && echo file > file");
    room
}

fn named(room: &Room, names: &[&str]) -> Option<Vec<PathBuf>> {
    Some(names.iter().map(|name| room.work.join(name)).collect())
}

#[test]
fn what_may_be_changed_is_exactly_what_is_named() {
    let mut room = room();
    for (names, writable) in [
        (vec!["build"], vec!["build/x", "build/sub/x"]),
        (vec!["build/sub", "file"], vec!["build/sub/x", "file"]),
        (vec!["build", "build/sub"], vec!["build/x", "build/sub/x"]),
        (vec![], vec![]),
    ] {
        room.policy.allow_write = named(&room, &names);
        for jail in [room.jail(), Jail::without_namespaces(room.policy.clone())] {
            let script = "cat src/main; for f in x src/x src/main file build/x build/sub/x .git/x doc/x; do (echo y > $f) 2>/dev/null && echo $f; done; for d in src doc; do rm -r $d 2>/dev/null && echo $d; mv $d $d.2 2>/dev/null && echo $d; done; true";
            let end = run(&jail, &room.work, script);
            let mut found: Vec<&str> = end.stdout.lines().collect();
            assert_eq!(found.remove(0), "x", "{end:#?}");
            found.sort_unstable();
            let mut expect = writable.clone();
            expect.sort_unstable();
            assert_eq!(found, expect, "{names:?}: {end:#?}");
        }
    }
}

#[test]
fn what_may_be_read_is_exactly_what_is_named() {
    let mut room = room();
    room.policy.allow_read = named(&room, &["doc"]);
    room.policy.allow_write = named(&room, &["build"]);
    for jail in [room.jail(), Jail::without_namespaces(room.policy.clone())] {
        let script = "pwd; cat doc/text; cat src/main file .git/HEAD 2>/dev/null; echo y > build/x && echo built; (echo y > doc/x) 2>/dev/null || echo kept";
        let end = run(&jail, &room.work, script);
        let expect = format!("{}\ndoc\nbuilt\nkept\n", room.work.display());
        assert_eq!(end.stdout, expect, "{end:#?}");
    }
}

/// What is written beside the directories of the user, in the home directory that a command has of its own, would be lost.
#[test]
#[cfg(target_os = "linux")]
fn nothing_can_be_written_where_it_would_look_as_if_it_stayed() {
    let mut room = room();
    let home = room.outside.join("home");
    let work = home.join("src/project");
    std::fs::create_dir_all(work.join("doc")).unwrap();
    std::fs::create_dir_all(work.join("build")).unwrap();
    let script = "for f in x doc/x ../x build/x; do (echo y > $f) 2>/dev/null && echo $f; done; mkdir -p ~/new ~/.new && echo home; cd doc && pwd";
    room.policy.roots = vec![work.clone()];
    room.policy.home = Some(home);
    let at_end = format!("home\n{}/doc\n", work.display());
    for (read, write, written) in [
        (None, None, "x\ndoc/x\nbuild/x\n"),
        (None, Some("build"), "build/x\n"),
        (Some("doc"), Some("build"), "build/x\n"),
    ] {
        let named = |name: Option<&str>| name.map(|name| vec![work.join(name)]);
        room.policy.allow_read = named(read);
        room.policy.allow_write = named(write);
        let end = run(&room.jail(), &work, script);
        assert_eq!(end.stdout, format!("{written}{at_end}"), "{end:#?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn temporary_files_have_a_place_where_tmp_is_that_of_the_machine() {
    let mut room = room();
    let beside = tempfile::NamedTempFile::new_in("/tmp").unwrap();
    let seen = format!("[ -e {} ] && echo seen", beside.path().display());
    room.policy.allow_read = Some(vec![room.work.clone(), "/tmp".into()]);
    room.policy.allow_write = named(&room, &["build"]);
    let script =
        "f=$(mktemp) && echo x > $f && cat $f; (echo x > /tmp/of-a-test) 2>/dev/null || echo kept";
    let end = room.run(&format!("{seen}; {script}"));
    assert_eq!(end.stdout, "seen\nx\nkept\n", "{end:#?}");
    // Without the entry it is private as ever.
    room.policy.allow_read = Some(vec![room.work.clone()]);
    let end = room.run(&format!("{seen}; echo $TMPDIR; mktemp -u | grep -c ^/tmp/"));
    assert_eq!(end.stdout, "/tmp\n1\n", "{end:#?}");
}

#[test]
fn a_write_that_is_left_out_is_explained() {
    let mut room = room();
    room.policy.allow_write = named(&room, &["build"]);
    for path in ["src/x", &room.work.join("src/x").display().to_string()] {
        let end = room.run(&format!("echo y > {path}"));
        let told = explain(&end.stderr, &room.policy, &RunWalls::default()).unwrap_or_default();
        assert!(
            told.contains("tools.sandbox.allow_write"),
            "{end:#?}: {told}"
        );
    }
}

#[test]
fn a_list_without_anything_that_exists_gives_nothing() {
    let mut room = room();
    room.policy.allow_write = named(&room, &["none"]);
    for jail in [room.jail(), Jail::without_namespaces(room.policy.clone())] {
        let end = run(
            &jail,
            &room.work,
            "(echo y > x) 2>/dev/null || (echo y > build/x) 2>/dev/null || cat file",
        );
        assert_eq!(end.stdout, "file\n", "{end:#?}");
    }
}

#[test]
fn secrets_of_the_user_are_not_given_whole() {
    let mut room = room();
    let home = room.policy.home.clone().unwrap();
    for path in ["/", "/proc", "/run", "/home", home.to_str().unwrap()] {
        for is_write in [true, false] {
            let list = Some(vec![PathBuf::from(path)]);
            let mut policy = room.policy.clone();
            match is_write {
                true => policy.allow_write = list,
                false => policy.allow_read = list,
            }
            room.policy = policy;
            let variables = BTreeMap::new();
            let job = Job {
                program: Path::new("/bin/true"),
                arguments: &[],
                directory: &room.work,
                variables: &variables,
                files: Vec::new(),
                rc: None,
                made: None,
            };
            let is_home_of_all = path == "/home" && !is_write;
            let refused = room.jail().prepare(job).is_err();
            assert!(refused || is_home_of_all, "{path}, {is_write}");
            room.policy.allow_read = None;
            room.policy.allow_write = None;
        }
    }
}

#[test]
fn a_directory_keeps_the_names_it_was_reached_by() {
    let mut room = room();
    let link = room.outside.join("link");
    symlink(&room.work, &link).unwrap();
    let above = room.outside.join("above");
    symlink(room.work.parent().unwrap(), &above).unwrap();
    room.policy.spellings = vec![
        (link.clone(), room.work.clone()),
        (above.join("work"), room.work.clone()),
        (room.work.join("src"), room.work.join("doc")),
    ];
    let script = format!(
        "cat {0}/file {1}/work/file && cd {0} && pwd && echo y > {0}/src/new && cat src/new {0}/src/main",
        link.display(),
        above.display()
    );
    for jail in [room.jail(), Jail::without_namespaces(room.policy.clone())] {
        let end = run(&jail, &room.work, &script);
        let expect = format!("file\nfile\n{}\ny\nx\n", link.display());
        assert_eq!(
            (end.code, end.stdout),
            (Some(0), expect),
            "{:#?}",
            end.stderr
        );
        room.host("rm src/new");
    }
}

/// A repository of settings, with the host's own among them: the folder, a file in it, and a name that leads there.
#[test]
fn a_workspace_that_holds_what_is_hidden_works() {
    let mut room = room();
    room.host("mkdir -p config/zeph-host/plugins && echo hush > config/zeph-host/config.toml && echo hush > config/zeph-host/plugins/p && ln -s config/zeph-host short && mkdir -p config/other && echo other > config/other/file");
    room.policy.hidden = [
        "config/zeph-host",
        "config/zeph-host/config.toml",
        "config/zeph-host/none",
        "short",
        "short/config.toml",
        "state.db",
    ]
    .map(|name| room.work.join(name))
    .into();
    room.policy.protected = vec![room.work.join("config/zeph-host/rules.toml")];
    for jail in [room.jail(), Jail::without_namespaces(room.policy.clone())] {
        let script = "cat file config/other/file; cat config/zeph-host/config.toml short/plugins/p 2>/dev/null; (echo evil > config/zeph-host/config.toml) 2>/dev/null; echo y > config/other/new && git status -s >/dev/null && echo end";
        let end = run(&jail, &room.work, script);
        assert_eq!(end.stdout, "file\nother\nend\n", "{end:#?}");
    }
    assert_eq!(room.host("cat short/config.toml"), "hush\n");
}

#[test]
fn what_is_hidden_is_no_place_to_work_in() {
    let mut room = room();
    for hidden in [room.work.clone(), room.work.parent().unwrap().to_owned()] {
        room.policy.hidden = vec![hidden];
        let variables = BTreeMap::new();
        let job = Job {
            program: Path::new("/bin/true"),
            arguments: &[],
            directory: &room.work,
            variables: &variables,
            files: Vec::new(),
            rc: None,
            made: None,
        };
        let end = room.jail().prepare(job);
        assert!(matches!(end, Err(JailError::RootHidden { .. })), "{end:?}");
    }
}
