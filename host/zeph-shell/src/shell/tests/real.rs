//! The product's own way: with the whole jail, and with what stays of it on a machine without namespaces.

use super::*;
use crate::jail::tests::harness::cgroup_parents;
use crate::jail::tests::outlet::{READ, Tokens};

fn lab(jail: impl FnOnce(JailPolicy) -> Jail) -> Lab {
    Lab::jailed(config(), job::in_the_jail, jail)
}

#[tokio::test]
async fn the_real_jail_tells_ends_and_state_too() {
    let lab = lab(Jail::new);
    let root = lab.root();
    assert_eq!(lab.text("echo a; exit 3").await, "a\n[exit code 3]");
    assert_eq!(lab.text("kill -9 $$").await, "[killed by signal SIGKILL]");
    assert_eq!(lab.text("exit 137").await, "[exit code 137]");
    let end = lab.bash("mkdir d; cd d; export X='a b'").await;
    assert_eq!(
        (end.label, end.exit),
        (Some(JailLabel::Full), Some(CommandExit::Code(0))),
        "{end:?}"
    );
    assert_eq!(
        lab.text("pwd; echo $X $ZEPH_TURN_ID").await,
        format!("{}/d\na b one\n", root.display())
    );
    let end = lab.bash("mkdir /tmp/x; cd /tmp/x").await;
    assert!(
        end.notes[0].contains("ends with the command"),
        "{:?}",
        end.notes
    );
    assert_eq!(lab.session.directory(), root.join("d"));
    let end = lab.bash("cd /tmp && echo error > build.log").await;
    assert!(
        end.notes[0].contains("ends with the command"),
        "{:?}",
        end.notes
    );
    assert_eq!(lab.session.directory(), root.join("d"));
    let end = lab.bash("cat /tmp/build.log").await;
    assert!(
        end.notes[0].contains("`/tmp` of its own"),
        "{:?}",
        end.notes
    );
    let end = lab.bash("cd /usr").await;
    assert_eq!(end.changed_directory, Some((root.join("d"), "/usr".into())));
    assert_eq!(lab.text("pwd").await, "/usr\n");
}

#[tokio::test]
async fn what_any_program_leaves_where_nothing_stays_is_told() {
    let lab = lab(Jail::new);
    lab.text("echo x > a").await;
    for (command, lost) in [
        ("cp a ~/copy", Some("/copy` ended")),
        ("exec tee ~/out < a", Some("/out` ended")),
        ("sh -c 'mv a ~/moved'; echo x > a", Some("/moved` ended")),
        ("mkdir ~/empty; kill -9 $$", Some("/empty` ended")),
        ("install a ~/one; install a ~/two", Some("/one`, `")),
        ("dd if=a of=/tmp/disk", Some("`/tmp/disk` ended")),
        ("cd /tmp; echo x > in-tmp", Some("`/tmp/in-tmp` ended")),
        // What programs put there without being told to, and what the command itself uses again, is told once.
        ("cat a > /tmp/log; cat /tmp/log", Some("`/tmp/log` ended")),
        ("cat a > /tmp/log; cat /tmp/log", None),
        ("mktemp", None),
        ("echo x > ~/.rc", Some("/.rc` ended")),
        ("echo x > ~/.rc", None),
        (
            "echo x > ~/.cache-of-mine; cp a b; ls ~ /tmp",
            Some("/.cache-of-mine`"),
        ),
        ("cp a b; mkdir d; rm b; cat $ZEPH_TURN_STATE", None),
    ] {
        let end = lab.bash(command).await;
        let notes = end.notes.iter();
        let told: Vec<&String> = notes
            .filter(|note| note.contains(" ended with the command"))
            .collect();
        match lost {
            Some(lost) => assert!(
                told.len() == 1 && told[0].contains(lost),
                "{command}: {end:?}"
            ),
            None => assert!(told.is_empty(), "{command}: {end:?}"),
        }
    }
}

#[tokio::test]
async fn the_real_jail_ends_with_all_it_holds() {
    let lab = lab(Jail::new);
    let mark = format!("1000.{}", uuid::Uuid::new_v4().as_u128());
    let stubborn = format!(
        "trap '' TERM; setsid -f sleep {mark}; (kill -STOP $BASHPID; : {mark}) & echo begun; sleep {mark}"
    );
    let arguments = json!({ "command": stubborn, "timeout": 1 });
    let end = lab.call("bash", arguments, RunControl::default()).await;
    assert_eq!(end.category(), Some(ErrorCategory::Timeout));
    assert_eq!(
        end.partial.expect("it had printed").to_text(),
        "begun\n[ended: it took too long]"
    );
    assert!(!is_running(&mark));
    // What a command leaves behind does not outlive it either, nor is it waited for.
    assert_eq!(
        lab.text(&format!("setsid -f sleep {mark}; sleep {mark} & echo done"))
            .await,
        "done\n"
    );
    assert!(!is_running(&mark));
    lab.background(&format!("sleep {mark}")).await;
    lab.session.shutdown().await;
    assert!(!is_running(&mark));
}

#[tokio::test]
async fn without_namespaces_it_is_said_and_nothing_stays() {
    let lab = lab(Jail::without_namespaces);
    let end = lab.bash("mkdir d; cd d; export X='a b'; exit 3").await;
    assert_eq!(text(&end), "[exit code 3]\n[sandbox: landlock-only]");
    assert_eq!(end.label, Some(JailLabel::LandlockOnly));
    let expect = format!(
        "{}/d a b one\n[sandbox: landlock-only]",
        lab.root().display()
    );
    assert_eq!(lab.text("echo $PWD $X $ZEPH_TURN_ID").await, expect);
    let killed = lab.text("kill -9 $$").await;
    assert!(killed.starts_with("[killed by signal SIGKILL]"), "{killed}");

    let mark = format!("1000.{}", uuid::Uuid::new_v4().as_u128());
    let stubborn = format!(
        "trap '' TERM; setsid -f sleep {mark}; (setsid -f bash -c 'setsid -f sleep {mark}' &); echo begun; sleep {mark}"
    );
    let arguments = json!({ "command": stubborn, "timeout": 1 });
    let end = lab.call("bash", arguments, RunControl::default()).await;
    assert_eq!(end.category(), Some(ErrorCategory::Timeout));
    assert!(!is_running(&mark));
    let left = lab
        .text(&format!("setsid -f sleep {mark}; sleep {mark} & echo done"))
        .await;
    assert!(left.starts_with("done\n"), "{left}");
    assert!(!is_running(&mark));
}

#[tokio::test]
async fn what_ends_with_a_command_that_left_it_running_is_named() {
    async fn check(jail: fn(JailPolicy) -> Jail, command: &str, expect: &[&str]) {
        let end = lab(jail).bash(command).await;
        let told = end
            .notes
            .iter()
            .find(|note| note.starts_with("still running"));
        match (told, expect) {
            (None, []) => {}
            (Some(note), [_, ..]) => {
                assert!(note.contains("`background` true"), "{command}: {note}");
                for left in expect {
                    assert!(note.contains(left), "{command}: {note}");
                }
            }
            _ => panic!("{command}: {:?}", end.notes),
        }
    }
    for jail in [Jail::new, Jail::without_namespaces] {
        // Before it is `sleep`, a child is a subshell, and for a moment nothing.
        let are_asleep = "for p in $(jobs -p); do until read -r -d '' name < /proc/$p/cmdline && [ $name = sleep ]; do :; done; done";
        let one = format!("sleep 1000 & {are_asleep}; echo hi");
        check(jail, &one, &["sleep 1000"]).await;
        let one = format!("sleep 1000 & {are_asleep}; set -efu; IFS=1; false");
        check(jail, &one, &["sleep 1000"]).await;
        let four = "sleep 1001 & sleep 1002 & sleep 1003 & sleep 1004 &";
        check(jail, &format!("{four} {are_asleep}"), &["and 1 more"]).await;
        let subshell = "until false; do :; done & echo hi";
        check(jail, subshell, &["with it: `a subshell`"]).await;
        check(jail, "sleep 0 & wait; sleep 0 | cat; echo hi", &[]).await;
    }
    let is_asleep = "{ until read -r p < ready && read -r -d '' name < /proc/$p/cmdline && [ $name = sleep ]; do :; done; } 2>/dev/null";
    for leaves in ["setsid -f", "(nohup"] {
        let end = if leaves.starts_with('(') { " &)" } else { "" };
        let command =
            format!("{leaves} sh -c 'echo $$ > ready; exec sleep 1000' >&2{end}; {is_asleep}");
        check(Jail::new, &command, &["sleep 1000"]).await;
    }
    // In the background the shell alone counts, too.
    let lab = lab(Jail::new);
    lab.background("sleep 1000 &").await;
    lab.all_ended().await;
    let ends = lab.session.take_completed();
    assert!(
        ends[0]
            .notes
            .iter()
            .any(|note| note.starts_with("still running")),
        "{ends:?}"
    );
}

/// A server that says hello to everybody, and then that it is there.
const SERVER: &str = r#"exec perl -MIO::Socket::INET -e '
    $server = IO::Socket::INET->new(Listen => 5, LocalAddr => "127.0.0.1", LocalPort => 8123) or die $@;
    open(READY, ">", "ready"); close(READY);
    while ($client = $server->accept) { print $client "hello\n"; close($client); }'"#;

const CLIENT: &str = "cat </dev/tcp/127.0.0.1/8123";

#[tokio::test]
async fn a_server_in_the_background_is_reached_by_later_commands_of_its_session_alone() {
    let lab = lab(Jail::new);
    let alone = lab.bash(CLIENT).await;
    assert_eq!(alone.exit, Some(CommandExit::Code(1)), "{alone:?}");
    let begun = lab.background(SERVER).await;
    assert!(
        begun.run_id.is_some() && begun.notes.is_empty(),
        "{begun:?}"
    );
    let end = std::time::Instant::now() + Duration::from_secs(20);
    while !lab.root().join("ready").exists() && std::time::Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(lab.text(CLIENT).await, "hello\n");
    // The walls around a command are the same as without a shared network.
    let walls = "grep CapEff /proc/self/status; unshare -U true 2>/dev/null || echo closed; ls /proc | grep -c '^[0-9]'";
    let shown = lab.text(walls).await;
    assert!(
        shown.starts_with("CapEff:\t0000000000000000\nclosed\n"),
        "{shown}"
    );
    let alone = lab.bash("cat </dev/tcp/192.0.2.1/80").await;
    assert!(text(&alone).contains("unreachable"), "{alone:?}");
    let other = ShellSession::new(&lab.shell, turn("other"));
    let call = authorized("bash", json!({ "command": CLIENT }));
    let end = lab.shell.call(call, &other, RunControl::default()).await;
    assert_eq!(end.exit, Some(CommandExit::Code(1)), "{end:?}");
    lab.session.shutdown().await;
    assert_eq!(lab.bash(CLIENT).await.exit, Some(CommandExit::Code(1)));
}

/// The process of the jail that waits, once it does.
async fn waiting(session: &ShellSession) -> i32 {
    let end = std::time::Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(process) = session.ahead.process() {
            return process;
        }
        assert!(std::time::Instant::now() < end, "no jail is made ahead");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn is_there(process: i32) -> bool {
    std::path::Path::new(&format!("/proc/{process}")).exists()
}

#[tokio::test]
async fn a_jail_is_made_ahead_and_serves_one_command_of_its_session() {
    let lab = lab(Jail::new);
    // The first one in the background makes the network of the session, which no jail from before has.
    lab.background("true").await;
    lab.all_ended().await;
    assert_eq!(lab.session.ahead.process(), None);
    assert_eq!(lab.text("echo two; mkdir d; cd d").await, "two\n");
    let first = waiting(&lab.session).await;
    // What the turn handed on reaches a command in it.
    let root = lab.root();
    let mark = format!("1000.{}", uuid::Uuid::new_v4().as_u128());
    lab.background(&format!("pwd; sleep {mark}")).await;
    while !is_running(&mark) {
        tokio::task::yield_now().await;
    }
    assert_eq!(lab.session.ahead.process(), None, "it serves one command");
    assert_eq!(lab.text("pwd").await, format!("{}/d\n", root.display()));
    let second = waiting(&lab.session).await;
    assert_ne!(first, second);
    assert!(
        is_there(first),
        "the run in the background has another jail"
    );
    lab.session.shutdown().await;
    assert!(!is_running(&mark) && !is_there(first) && !is_there(second));
    assert_eq!(lab.text("echo more").await, "more\n");
    assert_eq!(lab.session.ahead.process(), None);
}

#[tokio::test]
async fn a_command_that_is_expected_has_its_jail_made_before_there_is_a_session() {
    let lab = lab(Jail::new);
    lab.shell.expect_command();
    let session = ShellSession::new(&lab.shell, turn("first"));
    let process = waiting(&session).await;
    let call = authorized("bash", json!({ "command": "echo one" }));
    let end = lab.shell.call(call, &session, RunControl::default()).await;
    assert_eq!(text(&end), "one\n");
    assert!(!is_there(process), "it served the command");
    assert_eq!(session.ahead.process(), None);
    let other = ShellSession::new(&lab.shell, turn("other"));
    assert_eq!(other.ahead.process(), None, "it was for the first session");
}

#[tokio::test]
async fn a_command_that_was_expected_and_never_came_leaves_nothing() {
    let lab = lab(Jail::new);
    lab.shell.expect_command();
    let session = ShellSession::new(&lab.shell, turn("first"));
    let process = waiting(&session).await;
    assert!(is_there(process));
    drop(session);
    assert!(!is_there(process));
    // While it is still being made, with a session and without one.
    lab.shell.expect_command();
    drop(ShellSession::new(&lab.shell, turn("second")));
    lab.shell.expect_command();
    let shell = lab.shell.clone();
    drop(lab);
    drop(shell);
    let me = std::process::id();
    let children = std::fs::read_dir(format!("/proc/{me}/task")).expect("it is there");
    let children = children
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    assert_eq!(children.collect::<String>().trim(), "");
}

#[tokio::test]
async fn a_jail_that_waits_ends_with_its_session_and_sleeps_until_then() {
    let lab = lab(Jail::new);
    let parents = cgroup_parents();
    let groups = || {
        let own = format!("run-{}-", std::process::id());
        let folders = parents
            .iter()
            .flat_map(|parent| std::fs::read_dir(&parent.path));
        let names = folders.flatten().flatten().map(|entry| entry.file_name());
        names
            .filter(|name| name.to_string_lossy().starts_with(&own))
            .count()
    };
    let session = ShellSession::new(&lab.shell, turn("other"));
    for _ in 0..2 {
        let call = authorized("bash", json!({ "command": "true" }));
        lab.shell.call(call, &session, RunControl::default()).await;
    }
    let process = waiting(&session).await;
    let root = rustix::process::Pid::from_raw(process).expect("it is one");
    let end = std::time::Instant::now() + Duration::from_secs(20);
    while crate::run::Tree::Namespace.first(root).is_none() {
        assert!(std::time::Instant::now() < end, "it has no namespace");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(groups() > 0 || parents.is_empty());
    drop(session);
    assert!(!is_there(process));
    assert_eq!(groups(), 0);
}

#[tokio::test]
async fn two_commands_at_once_do_not_share_a_jail() {
    let lab = lab(Jail::new);
    for _ in 0..2 {
        lab.bash("true").await;
    }
    waiting(&lab.session).await;
    for _ in 0..5 {
        let commands = [
            "echo a > /tmp/x; ls /tmp; ls /proc | grep -c '^[0-9]*$'",
            "echo b; exit 3",
            "ls /tmp; echo c",
        ];
        let [one, two, three] = commands.map(|command| lab.text(command));
        let (one, two, three) = tokio::join!(one, two, three);
        assert_eq!(
            (one.lines().next(), two.as_str(), three.as_str()),
            (Some("x"), "b\n[exit code 3]", "c\n")
        );
    }
}

#[tokio::test]
async fn the_jails_that_wait_are_bounded() {
    let lab = lab(Jail::new);
    let sessions: Vec<ShellSession> = (0..11)
        .map(|_| ShellSession::new(&lab.shell, turn("many")))
        .collect();
    for session in &sessions {
        for _ in 0..3 {
            let call = authorized("bash", json!({ "command": "echo done" }));
            let end = lab.shell.call(call, session, RunControl::default()).await;
            assert_eq!(text(&end), "done\n");
        }
    }
    for session in &sessions[..8] {
        waiting(session).await;
    }
    let n_waiting = sessions
        .iter()
        .filter(|session| session.ahead.process().is_some())
        .count();
    assert_eq!(n_waiting, 8);
}

/// The network of a session may begin after the jail was made.
#[tokio::test]
async fn a_jail_made_ahead_has_the_network_of_its_session() {
    let lab = lab(Jail::new);
    for _ in 0..2 {
        lab.bash("true").await;
    }
    waiting(&lab.session).await;
    lab.background(SERVER).await;
    while !lab.root().join("ready").exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for _ in 0..3 {
        assert_eq!(lab.text(CLIENT).await, "hello\n");
        waiting(&lab.session).await;
    }
}

/// A session whose commands share a loopback has a way out for each of them, and reaches its servers besides.
#[tokio::test]
async fn each_command_of_a_session_has_a_way_out_of_its_own() {
    let (closed, told) = std::sync::mpsc::channel();
    let runtime = tokio::runtime::Handle::current();
    let lab = lab(|mut policy| {
        policy.network = Network::Hosts;
        Jail::new(policy).with_outlets(Arc::new(Tokens { runtime, closed }))
    });
    let mut seen = std::collections::BTreeSet::new();
    let mut check = |end: &ShellEnd| {
        assert_eq!(end.exit, Some(CommandExit::Code(0)), "{end:?}");
        assert!(
            end.notes.contains(&"a note of the way out".to_owned()),
            "{end:?}"
        );
        let token = text(end).lines().next().unwrap().to_owned();
        assert_eq!(token.len(), 32, "{end:?}");
        assert!(told.try_iter().any(|closed| closed == token), "{token}");
        assert!(seen.insert(token), "{end:?}");
    };
    for _ in 0..4 {
        check(&lab.bash(READ).await);
    }
    lab.background(SERVER).await;
    while !lab.root().join("ready").exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for _ in 0..4 {
        let end = lab.bash(&format!("{READ}; {CLIENT}")).await;
        check(&end);
        assert!(text(&end).contains("\nhello\n"), "{end:?}");
        waiting(&lab.session).await;
    }
}

/// What a command removes is not brought back by the mounts of the next jail.
#[tokio::test]
async fn no_jail_is_made_beside_a_command_that_is_waited_for() {
    let lab = lab(Jail::new);
    let line =
        "for n in 1 2 3 4 5; do git init -q r && rm -rf r && mkdir r && rmdir r || exit 9; done";
    for _ in 0..6 {
        let end = lab.bash(line).await;
        assert_eq!(end.exit, Some(CommandExit::Code(0)), "{end:?}");
        assert!(!lab.root().join("r").exists());
    }
    let (slow, _) = tokio::join!(lab.bash("sleep 0.5; echo done"), async {
        lab.bash("true").await;
        assert_eq!(lab.session.ahead.process(), None);
    });
    assert_eq!(text(&slow), "done\n");
    waiting(&lab.session).await;
}

/// The first command has a jail of its own, a later one a jail that was made ahead.
#[tokio::test]
async fn commands_read_what_their_turn_held_and_cannot_change_it() {
    const STATE: &[u8] = br#"{"urls":["https://example.org/"]}"#;
    let jailed: fn(JailPolicy) -> Jail = Jail::new;
    let alone: fn(JailPolicy) -> Jail = Jail::without_namespaces;
    for make in [jailed, alone] {
        let lab = lab(make);
        for _ in 0..4 {
            let control = RunControl {
                turn_state: Some(STATE.into()),
                ..RunControl::default()
            };
            let command = "cat $ZEPH_TURN_STATE; echo; (exec 58<&-; cat $ZEPH_TURN_STATE >/dev/null && echo again); \
                { echo x >$ZEPH_TURN_STATE; } 2>/dev/null || echo fixed";
            let arguments = json!({ "command": command });
            let said = text(&lab.call("bash", arguments, control).await);
            let expected = format!("{}\nagain\nfixed\n", String::from_utf8_lossy(STATE));
            assert!(said.starts_with(&expected), "{said}");
        }
        let none = lab.text("echo ${ZEPH_TURN_STATE-none}").await;
        assert!(none.starts_with("none\n"), "{none}");
    }
}
