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
fn what_must_be_hidden_is_not_given() {
    let mut room = Room::new();
    room.host(
        "mkdir -p in/side && echo hush > in/key && echo hush > key && echo seen > in/side/file",
    );
    room.policy.hidden = ["key", "in/key", "in/none"]
        .map(|name| room.work.join(name))
        .into();
    let end = alone(
        &room,
        "cat key in/key; echo evil > key; echo evil > in/none; cat in/side/file; echo y > in/side/new; ls in | wc -l",
    );
    assert_eq!(end.stdout, "seen\n2\n", "{end:#?}");
    let said = end
        .findings
        .iter()
        .all(|one| one.text.contains("nothing new can be made directly"));
    assert!(said && end.findings.len() == 2, "{end:#?}");
    assert_eq!(
        room.host("cat key in/key in/side/new; ls in"),
        "hush\nhush\ny\nkey\nside\n"
    );
}

#[test]
fn all_that_was_changed_is_named() {
    let room = Room::new();
    room.host("mkdir .vscode; for f in .envrc .npmrc .vscode/tasks.json; do echo fine > $f; done");
    let end = alone(
        &room,
        "for f in .envrc .npmrc .vscode/tasks.json; do echo evil > $f; done",
    );
    for name in [".envrc", ".npmrc", ".vscode"] {
        let name = format!("{name}`");
        let is_told = end.findings.iter().any(|one| one.text.contains(&name));
        assert!(is_told, "{name}: {end:#?}");
    }
}

#[test]
fn another_directory_in_the_place_of_one_that_programs_obey_is_held_back() {
    let room = Room::new();
    room.host("mkdir .vscode; echo fine > .vscode/tasks.json");
    let end = alone(
        &room,
        "mv .vscode v2; mkdir .vscode; echo evil > .vscode/tasks.json",
    );
    assert_eq!(
        room.host("ls -A; cat .vscode.held-back/tasks.json"),
        ".vscode.held-back\nv2\nevil\n",
        "{end:#?}"
    );
}

/// Ways to leave what a run is known by: session, group, parent, environment.
const LEAVING: [&str; 5] = [
    "setsid -f MARK 60",
    "(env -i setsid -f MARK 60 &) &",
    "env -i bash -c 'exec -a quiet MARK 60 & disown; exit'",
    "python3 -c 'import os,sys\nif os.fork(): sys.exit()\nos.setsid()\nif os.fork(): sys.exit()\nos.environ.clear()\nos.closerange(0,3)\nos.execve(\"MARK\", [\"x\", \"60\"], {})'",
    "for i in 1 2 3 4 5 6 7 8; do (trap '' TERM HUP INT; env -i setsid MARK 60 & ) ; done",
];

fn living(program: &Path) -> String {
    let script = format!(
        "for p in /proc/[0-9]*; do [ \"$(readlink $p/exe)\" = {0} ] && echo $p; done; true",
        program.display()
    );
    let output = super::harness::bash(&script).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn leave_everything(room: &Room, keeps_signals: bool) {
    room.host("cp /bin/sleep mark");
    let mark = room.work.join("mark");
    for leaving in LEAVING {
        let script = leaving.replace("MARK", &mark.display().to_string());
        let mut jail = Jail::without_namespaces(room.policy.clone());
        jail.keeps_signals = keeps_signals;
        let end = run(&jail, &room.work, &format!("{script}\necho left; exit 3"));
        assert_eq!(
            (end.code, end.stdout.as_str()),
            (Some(3), "left\n"),
            "{leaving}: {end:#?}"
        );
        assert_eq!(living(&mark), "", "{leaving}");
        assert_eq!(end.findings, [], "{leaving}");
    }
}

#[test]
fn nothing_of_a_command_is_left() {
    leave_everything(&Room::new(), true);
}

/// As on kernels that do not keep signals within a run.
#[test]
fn nothing_of_a_command_is_left_on_old_kernels() {
    leave_everything(&Room::new(), false);
}

#[test]
fn a_command_ends_as_it_ended() {
    let room = Room::new();
    for (script, code) in [
        ("exit 0", Some(0)),
        ("exit 97", Some(97)),
        ("kill -9 $$", None),
        ("kill -TERM $$", None),
    ] {
        let end = alone(&room, script);
        assert_eq!((end.code, end.start), (code, Start::Ran), "{script}");
    }
}

/// Objects of the kernel that processes of one user share.
#[test]
fn what_the_host_shares_is_not_reached() {
    let room = Room::new();
    let calls = "python3 - <<'E'\nimport ctypes\nc=ctypes.CDLL(None,use_errno=True)\nfor name,args in [('shmget',(0x7a65,4096,0o1666)),('semget',(0x7a65,1,0o1666)),('msgget',(0x7a65,0o1666)),('mq_open',(b'/zeph',0o102,0o600,None))]:\n  print(name, getattr(c,name)(*args), ctypes.get_errno())\nE";
    let end = alone(&room, calls);
    let expect = ["shmget", "semget", "msgget", "mq_open"].map(|name| format!("{name} -1 38\n"));
    assert_eq!(end.stdout, expect.concat(), "{end:#?}");
    let acts = "prlimit --pid $PPID --nofile=10:10 && echo hush; renice 5 -p $PPID >/dev/null && echo hush; kill -0 -1 && echo hush; for t in /dev/tty /dev/pts/*; do (: < $t) 2>/dev/null && echo hush; done; true";
    let end = alone(&room, acts);
    assert_eq!(end.stdout, "", "{end:#?}");
}

/// The tests of this kind of jail once more, under a terminal that they are controlled by.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the tests run themselves once more"
)]
fn a_controlling_terminal_is_in_nobodys_way() {
    let program = std::env::current_exe().unwrap();
    if std::env::var_os("ZEPH_TEST_IN_A_TERMINAL").is_some() {
        return;
    }
    let tests = "jail::tests::alone::ordinary_commands_work jail::tests::alone::what_the_host_shares_is_not_reached jail::tests::ordinary::commands_run_where_they_should";
    let command = format!("tty && {} --exact {tests}", program.display());
    let output = std::process::Command::new("/usr/bin/script")
        .args(["-qec", &command, "/dev/null"])
        .env("ZEPH_TEST_IN_A_TERMINAL", "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        told.starts_with("/dev/") && told.contains("3 passed"),
        "{told}"
    );
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

/// A hook of a repository, say: no mount keeps it from being made, and nothing runs it afterwards.
#[test]
fn what_is_new_where_programs_obey_is_held_back() {
    let room = Room::new();
    room.host("git init -q repo && mkdir -p repo/.vscode && echo x > repo/.vscode/tasks.json");
    let hooks = room.work.join("repo/.git/hooks");
    let vscode = room.work.join("repo/.vscode");
    for n in ["", "-2"] {
        let end = alone(
            &room,
            "echo evil > repo/.git/hooks/post-commit; mkdir repo/.vscode/new; echo evil > repo/.vscode/new/x; test -e repo/.git/hooks/a.sample || touch repo/.git/hooks/a.sample",
        );
        assert_eq!(end.findings.len(), 2, "{end:#?}");
        for (directory, name) in [(&hooks, "post-commit"), (&vscode, "new")] {
            assert!(!directory.join(name).exists(), "{end:#?}");
            assert!(directory.join(format!("{name}.held-back{n}")).exists());
        }
        assert!(vscode.join("tasks.json").exists() && hooks.join("a.sample").exists());
    }
}
