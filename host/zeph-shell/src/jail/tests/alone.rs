//! The jail without namespaces.

use super::super::*;
use super::harness::{End, Room, run};

fn alone(room: &Room, script: &str) -> End {
    run(
        &Jail::without_namespaces(room.policy.clone()),
        &room.work,
        script,
    )
}

#[test]
fn ordinary_commands_work() {
    let room = Room::new();
    for (script, expect) in [
        ("echo x > f && cat f && pwd | wc -l", "x\n1\n"),
        (
            "echo t > $TMPDIR/t && cat $TMPDIR/t; echo h > ~/h; cat ~/h",
            "t\nh\n",
        ),
        (
            "git init -q . && git -c user.name=n -c user.email=e commit -q --allow-empty -m m && git log --oneline | wc -l",
            "1\n",
        ),
        (
            "python3 -c 'print(2)'; true & wait; cat < /dev/null | wc -l; ls /proc/self/fd | wc -l",
            "2\n0\n4\n",
        ),
    ] {
        let end = alone(&room, script);
        assert_eq!(
            (end.code, end.stdout.as_str()),
            (Some(0), expect),
            "{script}: {end:#?}"
        );
    }
}

#[test]
fn the_walls_that_are_left_hold() {
    let room = Room::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let outside = room.outside.display().to_string();
    let secret = format!("cat {outside}/secret; echo x > {outside}/secret; echo x > {outside}/new");
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo hush");
    for script in [
        secret.as_str(),
        connect.as_str(),
        "cat /etc/shadow && echo hush; ls /root /tmp && echo hush",
        "echo 1 > /proc/sys/vm/swappiness && echo hush; cat /proc/$PPID/environ && echo hush",
        "kill -0 $PPID && echo hush; kill -0 1 && echo hush; mount -t tmpfs x /mnt && echo hush; unshare -r true && echo hush",
        "grep -h CapEff /proc/self/status | grep -v 0000000000000000 && echo hush",
    ] {
        let end = alone(&room, script);
        assert_eq!(end.start, Start::Ran, "{end:#?}");
        assert!(!end.stdout.contains("hush"), "{script}: {end:#?}");
    }
    assert_eq!(room.host("cat ../outside/*"), "hush\n");
}

#[test]
fn what_must_be_hidden_stops_it() {
    let mut room = Room::new();
    room.policy.hidden = vec![room.work.join("key")];
    let jail = Jail::without_namespaces(room.policy.clone());
    let variables = BTreeMap::new();
    let job = Job {
        program: Path::new("/bin/true"),
        arguments: &[],
        directory: &room.work,
        variables: &variables,
        files: Vec::new(),
        rc: None,
    };
    assert!(matches!(
        jail.prepare(job),
        Err(JailError::Unavailable { .. })
    ));
}

/// No mount protects anything there, so what was changed is told.
#[test]
fn what_programs_obey_is_told_when_it_was_changed() {
    let room = Room::new();
    room.host("git init -q repo && mkdir -p repo/.vscode && echo x > repo/.vscode/tasks.json && ln ../outside/secret linked");
    for (script, expect) in [
        ("echo x > repo/new; git -C repo status -s; cat linked", None),
        (
            "echo evil > repo/.git/hooks/post-commit",
            Some("repo/.git/hooks"),
        ),
        (
            "git -C repo config core.pager evil",
            Some("repo/.git/config"),
        ),
        (
            "echo evil > repo/.vscode/tasks.json; touch -r repo/new repo/.vscode/tasks.json",
            Some("repo/.vscode"),
        ),
        ("mv repo r2; cp -r r2 repo", Some("repo/.git")),
        ("echo evil >> linked", Some("linked")),
        ("rm linked", None),
    ] {
        let end = alone(&room, script);
        let found = end.findings.first().map(|one| one.path.as_path());
        let fits = match (found, expect) {
            (Some(found), Some(expect)) => found.starts_with(room.work.join(expect)),
            (found, expect) => found.is_none() && expect.is_none(),
        };
        assert!(fits, "{script}: {end:#?}");
    }
}
