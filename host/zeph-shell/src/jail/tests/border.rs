//! What a jail answers to its callers: descriptors, the text read first, refusals, explanations.

use std::io::Read as _;
use std::time::Instant;

use super::super::*;
use super::harness::{Room, bash, cgroup_parents, finish};

fn job<'a>(
    room: &'a Room,
    arguments: &'a [OsString],
    variables: &'a BTreeMap<String, String>,
) -> Job<'a> {
    Job {
        program: Path::new("/bin/bash"),
        arguments,
        directory: &room.work,
        variables,
        files: Vec::new(),
        rc: None,
        made: None,
    }
}

#[test]
fn files_and_the_first_text_arrive() {
    let room = Room::new();
    for jail in [room.jail(), Jail::without_namespaces(room.policy.clone())] {
        let (reader, writer) = std::io::pipe().unwrap();
        let arguments = [
            "-c".into(),
            "echo $FIRST $MINE >&9; ls /proc/self/fd | wc -l".into(),
        ];
        let variables = BTreeMap::from([
            ("MINE".to_owned(), "own".to_owned()),
            ("BASH_ENV".to_owned(), "/evil".to_owned()),
        ]);
        let mut job = job(&room, &arguments, &variables);
        job.files = vec![(writer.into(), 9)];
        job.rc = Some(b"FIRST=first; exec 63<&-");
        let end = finish(jail.prepare(job).unwrap());
        let mut told = String::new();
        (&reader).read_to_string(&mut told).unwrap();
        assert_eq!(
            (told.as_str(), end.stdout.as_str()),
            ("first own\n", "5\n"),
            "{end:#?}"
        );
    }
}

#[test]
fn what_cannot_be_jailed_is_refused() {
    let mut room = Room::new();
    let (arguments, variables) = (Vec::new(), BTreeMap::new());
    let home = room.policy.home.clone().unwrap();
    for (roots, directory) in [
        (vec![PathBuf::from("/")], "/"),
        (vec![home.clone()], home.to_str().unwrap()),
        (vec!["/usr/share".into()], "/usr/share"),
        (vec!["/proc/self".into()], "/proc/self"),
        (vec![room.work.join("none")], "/"),
        (vec![room.work.clone()], "/usr"),
    ] {
        room.policy.roots = roots;
        let mut job = job(&room, &arguments, &variables);
        job.directory = Path::new(directory);
        assert!(room.jail().prepare(job).is_err(), "{:?}", room.policy.roots);
    }
}

#[test]
fn a_program_that_is_not_there_is_told() {
    let room = Room::new();
    let (arguments, variables) = (Vec::new(), BTreeMap::new());
    let mut job = job(&room, &arguments, &variables);
    job.program = Path::new("/usr/bin/none");
    let end = finish(room.jail().prepare(job).unwrap());
    let Start::Refused {
        reason: Some(reason),
    } = &end.start
    else {
        panic!("{end:#?}");
    };
    assert!(reason.contains("starting the command"), "{reason}");
}

#[test]
fn denials_are_explained() {
    let mut room = Room::new();
    room.policy.roots = vec!["/w".into()];
    for (tail, expect) in [
        (
            "bash: line 1: /etc/x: Read-only file system",
            Some("denied writing `/etc/x`"),
        ),
        (
            "touch: cannot touch '/opt/x y': Read-only file system",
            Some("allow_write"),
        ),
        ("cat: /home/u/f: Permission denied", Some("`/home/u/f`")),
        (
            "fatal: not a git repository (or any parent up to mount point /w)",
            Some("nothing above `/w`"),
        ),
        (
            "cat: /home/u/f: No such file or directory",
            Some("shows nothing at `/home/u/f`"),
        ),
        (
            "bash: .git/hooks/x: Read-only file system",
            Some("keeps `/w/.git/hooks` as it is"),
        ),
        (
            "mv: cannot move '.git/config' to 'x': Device or resource busy",
            Some("keeps `/w/.git/config` as it is"),
        ),
        (
            "rm: cannot remove '.git': Device or resource busy",
            Some("keeps `/w/.git` as it is"),
        ),
        (
            "sed: cannot rename ./sedDOyN9n: Device or resource busy",
            Some("what was to be changed is kept by the jail"),
        ),
        (
            "curl: (6) Could not resolve host: example.org",
            Some("allow_network"),
        ),
        (
            "unshare: unshare failed: Operation not permitted",
            Some("system calls"),
        ),
        (
            "Error: listen EPERM: operation not permitted /tmp/x.sock\n    at Server.setupListenHandle",
            Some("Unix sockets"),
        ),
        (
            "    s=socket.socket(socket.AF_UNIX)\nPermissionError: [Errno 1] Operation not permitted",
            Some("Unix sockets"),
        ),
        (
            "    s.connect('app.sock')\nConnectionRefusedError: [Errno 111] Connection refused",
            Some("port of the loopback"),
        ),
        (
            "connection to server on socket \"/w/.s.PGSQL.5432\" failed: Connection refused",
            Some("`/w/.s.PGSQL.5432`"),
        ),
        ("connect ECONNREFUSED /tmp/other.sock", None),
        (
            "    self.sock = self._create_connection(\n    sock.connect(sa)\nConnectionRefusedError: [Errno 111] Connection refused",
            None,
        ),
        (
            "    self.sock = open_raw(self.port)\nPermissionError: [Errno 1] Operation not permitted",
            None,
        ),
        (
            "nginx: bind() to unix:/w/x.sock failed (1: Operation not permitted)",
            Some("Unix sockets"),
        ),
        (
            "curl: (7) Failed to connect to 127.0.0.1 port 80: Connection refused",
            None,
        ),
        ("ping: socket: Operation not permitted", None),
        ("cat: f: No such file or directory", None),
        (
            "grep: /tmp/build.log: No such file or directory",
            Some("belongs in the working directory"),
        ),
        ("ls: /tmp: No such file or directory", None),
        ("cat: /usr/f: No such file or directory", None),
        ("bash: ./x: Permission denied", None),
        ("error: test failed", None),
        ("", None),
    ] {
        let walls = RunWalls {
            are_refused: true,
            covered: ["/w/app.sock", "/w/.s.PGSQL.5432"].map(Into::into).into(),
            kept: ["/w/.git/config", "/w/.git/hooks"].map(Into::into).into(),
            pinned: ["/w/.git"].map(Into::into).into(),
            ..RunWalls::default()
        };
        let got = explain(tail, &room.policy, &walls);
        match expect {
            Some(words) => assert!(
                got.as_deref().is_some_and(|got| got.contains(words)),
                "{tail}: {got:?}"
            ),
            None => assert_eq!(got, None, "{tail}"),
        }
    }
}

/// What git could not replace is told where it goes on and ends well, by the names of what is kept and by no other words.
#[test]
fn what_the_jail_keeps_is_told_of_a_command_that_ends_well() {
    let mut room = Room::new();
    room.policy.roots = vec!["/w".into()];
    let kept = ["/w/.npmrc", "/w/a/.npmrc", "/w/a/.envrc", "/w/b/.envrc"];
    let walls = RunWalls {
        kept: kept.map(Into::into).into(),
        pinned: ["/w/a"].map(Into::into).into(),
        ..RunWalls::default()
    };
    for (tail, expect, is_of_git) in [
        (
            "bash: line 1: .npmrc: Read-only file system",
            "`/w/.npmrc` as",
            false,
        ),
        (
            "bash: a/.npmrc: Read-only file system",
            "`/w/a/.npmrc` as",
            false,
        ),
        ("bash: .envrc: Read-only file system", "`.envrc` as", false),
        (
            "mv: cannot move 'a' to 'c': Device or resource busy",
            "`/w/a` as",
            false,
        ),
        (
            "Rebasing (1/2)\rerror: unable to unlink old '.npmrc': Device or resource busy",
            "`/w/.npmrc` as",
            true,
        ),
        (
            "error: unable to unlink old 'a/.envrc': Device or resource busy\nwarning: unable to unlink '/w/b/.envrc': Device or resource busy",
            "`/w/a/.envrc`, `/w/b/.envrc` as they are",
            true,
        ),
        ("bash: a/x: Read-only file system", "", false),
        (
            "sed: cannot rename ./sedDOyN9n: Device or resource busy",
            "",
            false,
        ),
        ("cat: .npmrc: No such file or directory", "", false),
    ] {
        let told = explain_kept(tail, &room.policy, &walls);
        let Some(told) = told else {
            assert_eq!(expect, "", "{tail}");
            continue;
        };
        assert!(
            !expect.is_empty() && told.contains(expect),
            "{tail}: {told}"
        );
        assert_eq!(told.contains("do not commit"), is_of_git, "{tail}: {told}");
    }
}

/// Without namespaces there is no private `/tmp`, and opening that of the machine is no advice.
#[test]
fn without_namespaces_notes_about_tmp_name_the_directory_for_temporary_files() {
    let room = Room::new();
    let walls = RunWalls {
        is_alone: true,
        ..RunWalls::default()
    };
    for tail in [
        "bash: line 1: /tmp/t: Permission denied",
        "ls: cannot open directory '/tmp': Permission denied",
        "cat: /tmp/zeph-run-1/x: No such file or directory",
        "touch: cannot touch '/dev/shm/x': Permission denied",
    ] {
        let told = explain(tail, &room.policy, &walls).unwrap_or_default();
        assert!(told.contains("`$TMPDIR`"), "{tail}: {told}");
        assert!(!told.contains("allow_"), "{tail}: {told}");
    }
}

/// A host that runs as root in a directory of another user.
#[test]
fn files_of_another_user_explain_why_root_cannot_change_them() {
    let mut room = Room::new();
    room.policy.roots = vec!["/w".into()];
    let foreign = super::super::ForeignRoot {
        path: "/w".into(),
        owner: 1000,
    };
    let walls = RunWalls {
        foreign: Some(foreign),
        ..RunWalls::default()
    };
    for (tail, expect) in [
        ("bash: line 1: a: Permission denied", true),
        ("touch: cannot touch '/w/n': Permission denied", true),
        (
            "fatal: detected dubious ownership in repository at '/w'",
            true,
        ),
        ("cat: /other/x: Permission denied", false),
        ("cat: x: No such file or directory", false),
    ] {
        let told = explain(tail, &room.policy, &walls).unwrap_or_default();
        let words = "belongs to the user with the number 1000";
        assert_eq!(told.contains(words), expect, "{tail}: {told}");
    }
}

#[test]
fn the_sanitizer_that_looks_for_leaks_is_explained() {
    let tail = "==8==LeakSanitizer has encountered a fatal error.\n==8==HINT: LeakSanitizer does not work under ptrace";
    let told = super::super::explain_sanitizer(tail).unwrap_or_default();
    assert!(told.contains("`ASAN_OPTIONS=detect_leaks=0`"), "{told}");
    let other = "==8==ERROR: LeakSanitizer: detected memory leaks";
    assert_eq!(super::super::explain_sanitizer(other), None);
}

/// Keys of servers lie among the settings that every command sees, and root could read them.
#[test]
fn keys_of_the_machine_are_not_shown() {
    let room = Room::new();
    let script = "cat /etc/ssl/private/* /etc/pki/tls/private/* 2>/dev/null | wc -c";
    room.check(script, "0\n");
    let alone = super::super::Jail::without_namespaces(room.policy.clone());
    let end = super::harness::run(&alone, &room.work, script);
    assert_eq!(end.stdout, "0\n", "{end:#?}");
}

/// Of sockets only that is said which the run met.
#[test]
fn sockets_that_are_allowed_explain_nothing() {
    let room = Room::new();
    for tail in [
        "x b.sock\nchattr: Operation not permitted while setting flags on b.sock",
        "connect ECONNREFUSED /tmp/a.sock",
    ] {
        let told = explain(tail, &room.policy, &RunWalls::default());
        assert_eq!(told, None, "{tail}");
    }
}

#[test]
fn groups_of_ended_runs_are_gone() {
    let room = Room::new();
    let parents = cgroup_parents();
    let groups = || -> usize {
        let own = format!("run-{}-", std::process::id());
        let entries = parents.iter().flat_map(|parent| {
            std::fs::read_dir(&parent.path)
                .into_iter()
                .flatten()
                .flatten()
        });
        entries
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(&own))
            .count()
    };
    let end = room.run("sleep 60 & sleep 60 & echo started");
    assert_eq!(end.stdout, "started\n");
    assert_eq!(groups(), 0);
}

#[test]
fn the_cost_of_a_start_is_told() {
    let room = Room::new();
    let jail = room.jail();
    let mut times: Vec<_> = (0..10)
        .map(|_| {
            let begun = Instant::now();
            let end = super::harness::run(&jail, &room.work, "true");
            assert_eq!(end.code, Some(0), "{end:#?}");
            begun.elapsed()
        })
        .collect();
    times.sort();
    let begun = Instant::now();
    drop(bash("exec bwrap --unshare-all --ro-bind / / bash -c true").output());
    // Told and not judged: other tests run at the same time.
    println!(
        "least {:?}, median {:?}; bare bubblewrap {:?}",
        times[0],
        times[5],
        begun.elapsed()
    );
}
